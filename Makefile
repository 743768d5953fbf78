# Everything a newcomer types. `make` alone says what there is.

CARGO ?= cargo

.PHONY: help demo test test-drivers test-package test-page faults interleavings mutants soak fuzz bench-relay bench-clusters bench-strategies check advisories package settings book setup

help:
	@echo "make demo        a private MariaDB with a million messages, and Headwater in front"
	@echo "make test        every story, against real servers, but for three parts whose set-up is long:"
	@echo "make test-drivers, make test-package, make test-page: drivers of eight languages, the .deb, the admin port's page in a browser"
	@echo "make faults      the test of the tests: planted faults, which the simulated worlds have to find"
	@echo "make interleavings what threads share, in 40,000 orders that a checker draws"
	@echo "make mutants     what no unit test of log, timeline, rows and session would miss: one of 40 parts, MUTANTS=0/1 for all (a day and more)"
	@echo "make soak        200,000 answers from memory, and as many of feeds, checked on each server while others write, simulated worlds, then make fuzz, make faults, make interleavings and make mutants"
	@echo "make fuzz        ten minutes of each fuzz target, or FUZZ_SECONDS=60, as many at a time as processors"
	@echo "make bench-relay relaying alone, beside HAProxy and MySQL Router on the same servers (about 10 minutes)"
	@echo "make bench-clusters several servers: what they cost, and how long clients wait when the primary changes (about 6 minutes)"
	@echo "make bench-strategies every way to have timelines side by side: pull, push, Redis (FLAGS=--quick: under five minutes)"
	@echo "make check       format, lints, documentation, licences of dependencies"
	@echo "make advisories  known faults of dependencies (asks the network)"
	@echo "make package     a .deb of the program, its unit, manual and documentation: target/debian/"
	@echo "make settings    docs/settings.md, anew from headwater.example.toml and the flags"
	@echo "make book        docs/ as a site: target/book/index.html"
	@echo "make setup       what the others need and this machine lacks (they run it themselves)"

demo:
	@setup/servers.sh --mariadb
	$(CARGO) run --locked --profile demo -- demo

# What the stories need, and what few people need and takes long to get: stories of drivers, of the package and of the admin port's page.
# `make test` leaves the latter out unless it is CI's.
NEEDED = servers haproxy redis operators
PARTS = drivers package browser
DRIVERS = drivers::
PACKAGE = process::package::
PAGE = admin::page:: clusters::operators::which_server_is_in_use
ifneq ($(CI),true)
SKIPPED = $(DRIVERS) $(PACKAGE) $(PAGE)
endif

# Most of a story is waiting for a server: so many are told at a time.
THREADS = $$((2 * $$(nproc)))

# Not nextest: the stories share their servers, so they run in one process. Those of clusters take turns and mostly wait, so they are told
# beside all others, one after the other, in a process of their own. What failed is said once more at the end, where it is looked for.
test:
	@CARGO="$(CARGO)" setup/all.sh $(NEEDED) $(if $(SKIPPED),,$(PARTS))
	$(CARGO) test --locked --workspace --no-run
	@said="$${CARGO_TARGET_DIR:-target}"; \
	$(CARGO) test --locked --test integration -- --test-threads 1 clusters:: $(SKIPPED:%=--skip %) >"$$said/clusters.log" 2>&1 & beside=$$!; \
	{ $(CARGO) test --locked --workspace -- --test-threads $(THREADS) --skip clusters:: $(SKIPPED:%=--skip %) 2>&1; echo $$? >"$$said/others.rc"; } | tee "$$said/others.log"; \
	wait $$beside; clusters=$$?; \
	cat "$$said/clusters.log"; \
	grep -hE -A 4 "^thread '.* panicked at" "$$said/others.log" "$$said/clusters.log" | cut -c 1-400; \
	test "$$(cat "$$said/others.rc")" -eq 0 && test $$clusters -eq 0
	@setup/servers.sh --list | sed 's/^/every story passed on: /'
	@echo $(if $(SKIPPED),"left out: make test-drivers test-package test-page","drivers of the stories: $$(setup/drivers.sh --list | tr '\n' ' ')")

test-drivers:
	@CARGO="$(CARGO)" setup/all.sh servers drivers
	$(CARGO) test --locked --test integration -- $(DRIVERS)

test-package:
	@setup/all.sh servers package
	$(CARGO) test --locked --test integration -- $(PACKAGE)

test-page:
	@setup/all.sh servers browser
	$(CARGO) test --locked --test integration -- $(PAGE)

# Slips that somebody could make are planted in a copy of the sources: the simulated worlds have to find each.
faults:
	$(CARGO) test --locked --test world -- --faults

# What threads share: with the locks of a checker, which draws in what order they are taken.
interleavings:
	$(CARGO) test --locked --package headwater-proxy --lib --features interleavings interleavings -- --nocapture

# Each change that cargo-mutants knows, in a copy of the sources, against the unit tests of its package. Another part each day; what is missed is
# listed (cargo-mutants ends with 2 then), to be looked at one by one: .cargo/mutants.toml has those that change nothing, and why.
MUTANTS = $$(($$(date +%s) / 86400 % 40))/40
mutants:
	@setup/mutants.sh
	PROPTEST_CASES=64 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO) mutants --workspace --output "$${CARGO_TARGET_DIR:-target}" --shard "$(MUTANTS)" --sharding round-robin || test $$? -eq 2

# The stories of memory and feeds beside writers, as `make test` tells them but for the number of checks; WORLDS=500000 for a night of worlds.
WORLDS = 20000
soak:
	@setup/all.sh servers haproxy
	HEADWATER_CHECKS=200000 $(CARGO) test --locked --test integration -- --nocapture memory::linear memory::snapshot memory::kept_linear memory::failover::nothing memory::drift memory::crash many::balanced::what feeds::linear feeds::moved feeds::transactions feeds::kept_joined::no_name feeds::kept_lists::no_edge feeds::counts::a_count feeds::counts::a_readers feeds::counts::no_count feeds::newest::nothing clusters::group::no clusters::galera::no
	HEADWATER_FEEDS=20000 HEADWATER_TEXTS=50000 HEADWATER_CALLS=50000 $(CARGO) test --locked --test integration -- --nocapture differential::calls_leave feeds::differential feeds::keys feeds::alike feeds::described feeds::several feeds::named feeds::prepared::executions_are feeds::nested feeds::postings
	HEADWATER_APPS=475 $(CARGO) test --locked --test integration -- --nocapture feeds::apps
	HEADWATER_PLANS=5000000 $(CARGO) test --locked --release --package headwater-feed --lib -- --nocapture fuzzing::plans
	HEADWATER_DRAWS=1000000 $(CARGO) test --locked --test integration -- --nocapture feeds::drawn
	HEADWATER_AWAY_SECONDS=30 $(CARGO) test --locked --test integration -- --nocapture clusters::failover::all
	$(CARGO) test --locked --release --test world -- --seeds $(WORLDS)
	@$(MAKE) --no-print-directory fuzz faults interleavings mutants

fuzz:
	@CARGO="$(CARGO)" fuzz/run.sh $(FUZZ_SECONDS)

# FLAGS="--server mysql --figures p99,cpu", for instance; FLAGS=--help lists them.
bench-relay:
	@setup/all.sh servers relays
	$(CARGO) bench --locked --bench relay -- $(FLAGS)

# HEADWATER_ROUNDS=3, for instance.
bench-clusters:
	@setup/servers.sh
	$(CARGO) bench --locked --bench clusters

# FLAGS="--quick --report FOLDER", for instance; FLAGS=--help lists them.
bench-strategies:
	@setup/all.sh servers redis
	$(CARGO) run --locked --release -- bench strategies $(FLAGS)

check:
	@setup/check.sh
	$(CARGO) fmt --check
	$(CARGO) fmt --check --manifest-path integration/drivers/rust/Cargo.toml
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --all-targets --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	$(CARGO) deny --locked check licenses bans sources
	$(CARGO) fetch --locked --manifest-path fuzz/Cargo.toml

# Apart from check, because its answer changes with the day and not with the code.
advisories:
	@setup/check.sh
	$(CARGO) deny --locked check advisories

# What the laboratory writes, and the program without it.
package:
	@setup/package.sh
	$(CARGO) run --locked -- manual "$${CARGO_TARGET_DIR:-target}/release/manual"
	gzip -9nf "$${CARGO_TARGET_DIR:-target}"/release/manual/man/*.8
	$(CARGO) build --locked --release --no-default-features
	$(CARGO) deb --locked --no-build --output target/debian/
	@ls target/debian/*.deb

settings:
	$(CARGO) run --locked -- manual target/manual
	cp target/manual/settings.md docs/settings.md

book:
	@setup/book.sh

# After the servers: some of their packages bring a driver.
setup:
	@CARGO="$(CARGO)" setup/all.sh $(NEEDED) $(PARTS)
	@setup/check.sh
