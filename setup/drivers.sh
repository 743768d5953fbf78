#!/bin/sh
# Gets the drivers and ORMs whose programs integration/drivers holds: from the distribution's packages,
# and from PyPI, npm and the crates in the versions that the lock files there name. And MariaDB 11.8,
# whose clients log in as no older ones do.
#
# Says what it does, and nothing when there is nothing to do. What is not the distribution's goes
# into a private folder, what is built into target/drivers.
# Usage: setup/drivers.sh [--list]      --list names what is there, and installs nothing.
# Environment: HEADWATER_DRIVERS           the private folder (default: ~/.cache/headwater/drivers)
#              HEADWATER_MARIADB11_PREFIX  that of MariaDB 11.8 (default: ~/.cache/headwater/mariadb-11.8)
#              CI=true                     a driver that cannot be had is an error
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/packages.sh"
programs=$here/../integration/drivers
run=$programs/run.sh
private=${HEADWATER_DRIVERS:-$HOME/.cache/headwater/drivers}
built=$here/../target/drivers
mariadb11=${HEADWATER_MARIADB11_PREFIX:-$HOME/.cache/headwater/mariadb-11.8}

lacks() { ! "$run" --has "$1"; }
all="$("$run" --names) $("$run" --orms)"
installed() { dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

if [ "${1:-}" = --list ]; then
    for driver in $all; do
        lacks "$driver" || echo "$driver"
    done
    exit 0
fi

# Packages of the distribution that the drivers lacking here need.
wanted() {
    packages=
    lacks mysqlclient && packages="$packages python3-mysqldb"
    lacks odbc && packages="$packages python3-pyodbc odbc-mariadb odbcinst"
    for driver in pymysql connector_python mysqlclient odbc; do
        lacks $driver && packages="$packages python3-venv"
    done
    lacks mysqli && packages="$packages php-cli php-mysql"
    lacks pdo && packages="$packages php-cli php-mysql"
    lacks dbd_mysql && packages="$packages libdbd-mysql-perl"
    lacks dbd_mariadb && packages="$packages libdbd-mariadb-perl"
    lacks ruby_mysql2 && packages="$packages ruby-mysql2"
    lacks connector_j && packages="$packages libmariadb-java"
    lacks orm_active_record && packages="$packages ruby-activerecord ruby-mysql2"
    lacks orm_eloquent && packages="$packages php-illuminate-database php-illuminate-pagination php-mysql"
    lacks orm_doctrine && packages="$packages php-doctrine-orm php-symfony-cache php-mysql"
    lacks orm_django && packages="$packages python3-mysqldb python3-venv"
    lacks orm_diesel && packages="$packages libmariadb-dev"
    lacks go && packages="$packages golang-github-go-sql-driver-mysql-dev"
    have java && have javac || packages="$packages default-jdk-headless"
    have go || packages="$packages golang-go"
    have node || packages="$packages nodejs"
    have npm || packages="$packages npm"
    for package in $packages; do
        installed "$package" || echo "$package"
    done | sort -u
}

# The distribution's Python, so that it sees the distribution's drivers too.
install_python() {
    say "installing the Python drivers into $private/python"
    rm -rf "$private/python"
    /usr/bin/python3 -m venv --system-site-packages "$private/python" &&
        "$private/python/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps \
            --ignore-installed --only-binary :all: --requirement "$programs/python/requirements.txt"
}

install_node() {
    say "installing the npm drivers into $private/node"
    rm -rf "$private/node"
    mkdir -p "$private/node" &&
        cp "$programs/node/package.json" "$programs/node/package-lock.json" "$private/node" &&
        (cd "$private/node" && npm ci --silent --no-audit --no-fund --ignore-scripts)
}

# Without modules: the driver's source is the distribution's.
build_go() {
    mkdir -p "$built" && (
        cd "$programs/go" &&
            GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS= GOCACHE="$private/go" go build -o "$built/go" .
    )
}

# Cargo itself knows whether there is anything to do.
build_rust() {
    "${CARGO:-cargo}" build --quiet --locked --manifest-path "$programs/rust/Cargo.toml" --target-dir "$built" "$@"
}

packages=$(wanted)
[ -z "$packages" ] || install_packages $packages || say "not all packages could be installed"

# Installed anew when the file that names the versions is another one.
same() { cmp -s "$1" "$2"; }
if ! same "$programs/python/requirements.txt" "$private/python/requirements.txt" || lacks pymysql; then
    install_python && cp "$programs/python/requirements.txt" "$private/python"
fi || say "the Python drivers could not be installed"
if ! same "$programs/node/package-lock.json" "$private/node/package-lock.json" || lacks node_mysql2; then
    install_node
fi || say "the npm drivers could not be installed"
if lacks go || [ -n "$(find "$programs/go" -name '*.go' -newer "$built/go")" ]; then
    say "building the Go driver's program"
    build_go
fi || say "the Go driver's program could not be built"
if lacks sqlx || lacks mysql_async || lacks orm_diesel; then
    say "building the Rust drivers' programs (one to two minutes, once)"
fi
build_rust --features diesel || build_rust || say "the Rust drivers' programs could not be built"

missing=
"$here/mariadb11.sh" "$mariadb11" || missing=" MariaDB 11.8"
for driver in $all; do
    lacks "$driver" && missing="$missing $driver"
done
if [ -n "$missing" ]; then
    if [ "${CI:-}" = true ]; then
        say "these drivers and ORMs could not be had, and CI needs them all:$missing"
        exit 1
    fi
    say "these drivers and ORMs could not be had, their stories are left out:$missing"
fi
