//! What a server reports on a procedure's text when a session has it parsed: on MySQL, the first call's warnings.

use headwater_lab::private_server::PrivateServer;

use super::stage::TAIL;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::timeline::{Timeline, insert};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{COM_PING, COM_RESET_CONNECTION, Login, WireClient};

const NEWEST: &str = "CALL fetch_timeline_ids(1)";
const BOUNDED: &str = "CALL fetch_timeline_ids2(1, 300)";
const HEADS: &str = "CALL build_max_ids_of_followers(1, 300)";

const QUESTIONS: &[&str] = &[
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW ERRORS",
    "SELECT @@warning_count, @@error_count",
    "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
    "GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @e = MYSQL_ERRNO, @m = MESSAGE_TEXT",
    "SELECT ROW_COUNT()",
    TAIL,
    "SELECT COUNT(*), SUM(id) FROM fetch_timeline_tt",
];

fn login() -> Login {
    Login::default().database("tl")
}

/// Runs a test for each kind of text, with memory and without.
#[track_caller]
fn on_each_text(story: impl Fn(&PrivateServer, &Proxy)) {
    let options = [
        "ENGINE=MEMORY",
        "ENGINE=heap DEFAULT CHARSET=utf8",
        "ENGINE=heap CHARACTER SET utf8 CHARSET=utf8",
        "ENGINE=heap DEFAULT CHARSET=utf8 COLLATE=utf8_general_ci",
    ];
    on_servers_of_its_own(
        |_| &[],
        |server| {
            for options in options {
                let timeline = Timeline {
                    options,
                    ..Timeline::CLASSIC
                };
                let mut root = WireClient::login(server.addr(), &Login::default());
                root.ok("DROP DATABASE IF EXISTS tl");
                root.ok("CREATE DATABASE tl");
                let mut client = WireClient::login(server.addr(), &login());
                timeline.create(&mut client);
                let follows: Vec<(u32, u32)> = (2..12).map(|author| (1, author)).collect();
                insert(&mut client, "follower", &follows, |(reader, author)| {
                    format!("({reader},{author})")
                });
                let messages: Vec<u32> = (1..200).collect();
                insert(&mut client, "message", &messages, |id| {
                    format!("({id},{},'message {id}')", id % 13)
                });
                for flags in [ROOT_SERVICE, &[]] {
                    eprintln!("{options}, {flags:?}");
                    story(server, &Proxy::start(server.addr(), flags));
                }
            }
        },
    );
}

fn twin(server: &PrivateServer, proxy: &Proxy) -> Twin {
    let direct = WireClient::login(server.addr(), &login());
    Twin::between(direct, proxy.login(&login()))
}

#[test]
fn the_first_call_of_a_session_is_told_what_the_text_gives_rise_to() {
    on_each_text(|server, proxy| {
        for first in [NEWEST, BOUNDED, HEADS] {
            for question in QUESTIONS {
                let mut twin = twin(server, proxy);
                for call in [first, first, NEWEST, HEADS, BOUNDED, NEWEST, BOUNDED] {
                    twin.run(call);
                    if !question.contains("fetch_timeline_tt") || first != HEADS {
                        twin.run(question);
                    }
                }
                twin.command(&[COM_RESET_CONNECTION]);
                twin.run(first);
                twin.command(&[COM_PING]);
                twin.run("SHOW WARNINGS");
            }
        }
        let counts = proxy.counts();
        let others = counts.relayed() - counts.of("calls_relayed[parse_warnings]");
        assert!(counts.of("calls_owned") > others, "{counts:?}");
    });
}

#[test]
fn what_has_parsed_the_text_before_leaves_the_call_nothing_to_say() {
    on_each_text(|server, proxy| {
        for before in [
            "SELECT nothing_such",
            "SHOW CREATE PROCEDURE fetch_timeline_ids",
            "CALL fetch_timeline_ids()",
            "PREPARE s FROM 'CALL fetch_timeline_ids(1)'",
            "BEGIN; CALL fetch_timeline_ids(1); COMMIT",
            "SET max_error_count = 0",
            "SET max_error_count = 1",
            "SET sql_notes = 0",
            "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
            "DO _utf8'', _utf8''",
        ] {
            let mut twin = twin(server, proxy);
            for statement in before.split("; ") {
                twin.run(statement);
            }
            for _ in 0..2 {
                twin.run(NEWEST);
                twin.run("SHOW WARNINGS");
                twin.run(BOUNDED);
                twin.run("SHOW WARNINGS");
                twin.run(TAIL);
            }
        }
        let mut prepared = twin(server, proxy);
        let statement = prepared.prepare("CALL fetch_timeline_ids(?)");
        for _ in 0..3 {
            prepared.execute(statement, &[Some("1")]);
            prepared.run("SHOW WARNINGS");
        }
        let mut several = twin(server, proxy);
        for _ in 0..2 {
            several.run(&format!("{NEWEST}; SELECT @@warning_count"));
            several.run(&format!("{BOUNDED}; {TAIL}"));
            several.run("SHOW WARNINGS");
        }
    });
}

#[test]
fn a_routine_that_changes_has_the_next_call_told_again() {
    on_each_text(|server, proxy| {
        let mut twin = twin(server, proxy);
        for _ in 0..2 {
            for change in [
                "CREATE PROCEDURE other() SELECT 1",
                "ALTER PROCEDURE other COMMENT 'another'",
                "DROP PROCEDURE other",
            ] {
                twin.run(NEWEST);
                twin.run(BOUNDED);
                // Once, because the two sides share the database.
                twin.proxied.ok(change);
                for call in [NEWEST, BOUNDED, NEWEST] {
                    twin.run(call);
                    twin.run("SHOW WARNINGS");
                }
            }
        }
    });
}

/// An explanation decides as the call does, and is none.
#[test]
fn an_explanation_before_the_first_call_takes_no_warning_from_it() {
    on_each_text(|server, _| {
        // Explanations need the service account.
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        for call in [NEWEST, BOUNDED] {
            let mut twin = twin(server, &proxy);
            for _ in 0..2 {
                twin.proxied.rows(&format!("SHOW HEADWATER WHY FOR {call}"));
                twin.run(call);
                twin.run("SHOW WARNINGS");
            }
        }
    });
}

/// The order of the proofs: a call that is relayed after its lookups must find the text not yet parsed.
#[test]
fn a_call_that_is_relayed_after_all_is_told_by_the_server() {
    on_each_text(|server, proxy| {
        let mut root = WireClient::login(server.addr(), &Login::default());
        root.ok("CREATE USER IF NOT EXISTS executes@'%'");
        root.ok("GRANT EXECUTE ON tl.* TO executes@'%'");
        let executes = login().user("executes");
        let direct = WireClient::login(server.addr(), &executes);
        let mut twin = Twin::between(direct, proxy.login(&executes));
        for call in [NEWEST, BOUNDED, HEADS, NEWEST] {
            twin.run(call);
            twin.run("SHOW WARNINGS");
        }
    });
}
