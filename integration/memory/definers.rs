//! A procedure runs with its definer's rights: once the definer is dropped or lacks rights, every caller gets the server's error.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::warm;
use crate::kit::database::{Database, fill, one_message, run};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{Server, on_each_quiet_server};
use crate::kit::wire_client::{Answer, WireClient};

const CALLS: [&str; 3] = [
    "CALL fetch_timeline_ids(1)",
    "CALL fetch_timeline_ids2(1, 50)",
    "CALL build_max_ids_of_followers(1, 50)",
];
/// `privileges.ttl_s`, plus time for work in progress.
const TTL: Duration = Duration::from_millis(1_300);

/// The kinds of service account: all rights, only the rights that Headwater requires, none.
const SERVICES: [&str; 3] = ["root", "modest", "none"];

fn start(database: &Database, service: &str, settings: &str) -> Proxy {
    let server = database.server();
    let modest;
    let flags: &[&str] = match service {
        "root" => ROOT_SERVICE,
        "none" => &[],
        _ => {
            let login = database.account("SELECT", "");
            let bodies = match server.is_mariadb() {
                true => "SELECT ON mysql.proc",
                false => "SHOW_ROUTINE ON *.*",
            };
            for right in [
                bodies,
                "REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.*",
            ] {
                let grant = format!("GRANT {right} TO {}@'%'", login.user);
                server.connect().ok(&grant);
            }
            modest = login.user;
            &["--service-user", &modest]
        }
    };
    Proxy::configured(server.addr(), settings, flags)
}

/// The error's number, or 0 for success.
#[track_caller]
fn code(client: &mut WireClient, call: &str) -> u16 {
    match client.query(call).last() {
        Some(Answer::Err(error)) => error.code,
        Some(Answer::Ok(_)) => 0,
        other => panic!("{call}: {other:?}"),
    }
}

#[test]
fn known_bodies_of_somebody_who_may_not_read_the_tables_give_nothing_away() {
    on_each_quiet_server(|server| {
        for service in SERVICES {
            let database = Database::empty(server, "attack");
            let mut root = database.connect();
            fill(&mut root);
            for name in [
                "fetch_timeline_ids",
                "fetch_timeline_ids2",
                "build_max_ids_of_followers",
            ] {
                root.ok(&format!("DROP PROCEDURE {name}"));
            }
            one_message(&mut root);
            let proxy = start(&database, service, "[limits]\nrecheck_ms = 200\n");
            let mut reader = proxy.login(&database.login());
            // Without procedures, the session's own rights to the tables count.
            assert_eq!(code(&mut reader, CALLS[0]), 0);
            let login = database.account("CREATE ROUTINE, CREATE TEMPORARY TABLES, EXECUTE", "");
            let mut attacker = WireClient::login(server.addr(), &login);
            run(&mut attacker, headwater_lab::demo::load::PROCEDURES);
            let mut through = proxy.login(&login);
            let until = Instant::now() + Duration::from_secs(1);
            while Instant::now() < until {
                for call in CALLS {
                    assert_eq!(
                        code(&mut through, call),
                        1142,
                        "{call} {service}\n{}",
                        proxy.log()
                    );
                }
                sleep(Duration::from_millis(50));
            }
            // Every other caller gets the same error.
            for call in CALLS {
                assert_eq!(code(&mut reader, call), 1142, "{call}");
            }
        }
    });
}

/// What `root` takes from the definer, and how `root` gives it back.
struct Loss {
    takes: &'static [&'static str],
    gives: &'static [&'static str],
}

const LOSSES: [Loss; 6] = [
    Loss {
        takes: &["REVOKE SELECT ON {db}.message FROM {user}"],
        gives: &["GRANT SELECT ON {db}.message TO {user}"],
    },
    Loss {
        takes: &["REVOKE SELECT ON {db}.follower FROM {user}"],
        gives: &["GRANT SELECT (user_id, follower_id) ON {db}.follower TO {user}"],
    },
    Loss {
        takes: &["REVOKE SELECT (follower_id) ON {db}.follower FROM {user}"],
        gives: &["GRANT SELECT (follower_id) ON {db}.follower TO {user}"],
    },
    Loss {
        takes: &["REVOKE CREATE TEMPORARY TABLES ON {db}.* FROM {user}"],
        gives: &["GRANT CREATE TEMPORARY TABLES ON {db}.* TO {user}"],
    },
    Loss {
        takes: &["REVOKE EXECUTE ON {db}.* FROM {user}"],
        gives: &["GRANT EXECUTE ON {db}.* TO {user}"],
    },
    Loss {
        takes: &["DROP USER {user}"],
        gives: &[
            "CREATE USER {user}",
            "GRANT EXECUTE, CREATE TEMPORARY TABLES, SELECT ON {db}.* TO {user}",
        ],
    },
];

/// Creates procedures whose definer has exactly the rights that they need.
fn of_a_definer(server: &'static Server) -> (Database, String) {
    let database = Database::empty(server, "definer");
    let mut root = database.connect();
    run(&mut root, headwater_lab::demo::load::SCHEMA);
    one_message(&mut root);
    let login = database.account("EXECUTE, CREATE TEMPORARY TABLES", "");
    for table in ["message", "follower"] {
        root.ok(&format!(
            "GRANT SELECT ON {}.{table} TO {}@'%'",
            database.name(),
            login.user
        ));
    }
    let definer = format!("CREATE DEFINER={}@'%' PROCEDURE", login.user);
    let text = headwater_lab::demo::load::PROCEDURES.replace("CREATE PROCEDURE", &definer);
    run(&mut root, &text);
    (database, format!("{}@'%'", login.user))
}

#[test]
fn what_a_definer_may_not_do_any_more_nobody_is_answered_within_the_ttl() {
    on_each_quiet_server(|server| {
        for service in SERVICES {
            let (database, user) = of_a_definer(server);
            let proxy = start(&database, service, "");
            let mut root = database.connect();
            let mut direct = database.connect();
            let mut clients = [(); 2].map(|()| proxy.login(&database.login()));
            if service != "none" {
                proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
                warm(&proxy, &mut clients[0], CALLS[0]);
            }
            for loss in LOSSES.iter().step_by(if service == "root" { 1 } else { 5 }) {
                for call in CALLS {
                    assert_eq!(code(&mut clients[0], call), 0, "{call}");
                }
                for statement in loss.takes {
                    root.ok(&said(statement, &database, &user));
                }
                let expected = CALLS.map(|call| code(&mut direct, call));
                assert_ne!(expected, [0; 3], "{:?}", loss.takes);
                let lost = Instant::now();
                while lost.elapsed() < TTL + Duration::from_millis(100) {
                    let late = lost.elapsed() > TTL;
                    for client in &mut clients {
                        let told = CALLS.map(|call| code(client, call));
                        assert!(
                            told == expected || !late,
                            "{service} {:?}: {told:?} {expected:?}\n{}",
                            loss.takes,
                            proxy.log()
                        );
                    }
                    sleep(Duration::from_millis(20));
                }
                for statement in loss.gives {
                    root.ok(&said(statement, &database, &user));
                }
                let before = proxy.counts().of("calls_owned");
                let given = Instant::now();
                while proxy.counts().of("calls_owned") < before + 20 {
                    assert!(given.elapsed() < Duration::from_secs(20), "{}", proxy.log());
                    for call in CALLS {
                        assert_eq!(code(&mut clients[0], call), 0, "{call}");
                    }
                }
            }
        }
    });
}

fn said(statement: &str, database: &Database, user: &str) -> String {
    statement
        .replace("{db}", database.name())
        .replace("{user}", user)
}

/// A definer may have rights through a default role; which roles count inside a procedure differs by server.
#[test]
fn a_role_that_the_definer_loses_is_missed_within_the_ttl() {
    on_each_quiet_server(|server| {
        let (database, user) = of_a_definer(server);
        let mut root = database.connect();
        let role = format!("{}_role", database.name());
        root.ok(&format!("CREATE ROLE {role}"));
        for table in ["message", "follower"] {
            root.ok(&format!(
                "GRANT SELECT ON {}.{table} TO {role}",
                database.name()
            ));
            root.ok(&format!(
                "REVOKE SELECT ON {}.{table} FROM {user}",
                database.name()
            ));
        }
        root.ok(&format!("GRANT {role} TO {user}"));
        root.ok(&match server.is_mariadb() {
            true => format!("SET DEFAULT ROLE {role} FOR {user}"),
            false => format!("SET DEFAULT ROLE {role} TO {user}"),
        });
        let proxy = start(&database, "root", "");
        let mut direct = database.connect();
        let mut client = proxy.login(&database.login());
        for _ in 0..5 {
            for call in CALLS {
                assert_eq!(code(&mut client, call), code(&mut direct, call), "{call}");
            }
        }
        root.ok(&format!("REVOKE {role} FROM {user}"));
        sleep(TTL);
        for call in CALLS {
            let told = code(&mut client, call);
            assert_eq!((told, told), (code(&mut direct, call), 1142), "{call}");
        }
        root.ok(&format!("DROP ROLE {role}"));
    });
}

/// Within a cursor's loop the server checks rights only if there is a row.
#[test]
fn a_reader_who_follows_nobody_proves_nothing_for_others() {
    on_each_quiet_server(|server| {
        let (database, user) = of_a_definer(server);
        let mut root = database.connect();
        root.ok(&format!(
            "REVOKE SELECT ON {}.message FROM {user}",
            database.name()
        ));
        let proxy = start(&database, "root", "");
        let mut client = proxy.login(&database.login());
        for _ in 0..3 {
            assert_eq!(code(&mut client, "CALL fetch_timeline_ids2(9, 50)"), 0);
            assert_eq!(
                code(&mut client, "CALL build_max_ids_of_followers(9, 50)"),
                0
            );
            assert_eq!(code(&mut client, "CALL fetch_timeline_ids(9)"), 1142);
            for call in CALLS {
                assert_eq!(code(&mut client, call), 1142, "{call}");
            }
        }
    });
}

/// A call that is relayed for another reason also reveals the definer's rights.
#[test]
fn a_denial_that_passes_by_counts_at_once() {
    on_each_quiet_server(|server| {
        let (database, user) = of_a_definer(server);
        let mut root = database.connect();
        let proxy = start(&database, "root", "[privileges]\nttl_s = 600\n");
        let mut client = proxy.login(&database.login());
        let mut other = proxy.login(&database.login());
        assert_eq!(code(&mut client, CALLS[0]), 0);
        root.ok(&format!(
            "REVOKE SELECT ON {}.message FROM {user}",
            database.name()
        ));
        assert_eq!(code(&mut client, CALLS[0]), 0, "within the ttl");
        other.ok("BEGIN");
        assert_eq!(code(&mut other, CALLS[0]), 1142);
        assert_eq!(code(&mut client, CALLS[0]), 1142);
    });
}

#[test]
fn steady_calls_have_the_procedure_run_about_once_a_ttl() {
    on_each_quiet_server(|server| {
        for service in ["root", "none"] {
            let (database, _user) = of_a_definer(server);
            let proxy = start(&database, service, "[privileges]\nttl_s = 2\n");
            let mut clients = [(); 4].map(|()| proxy.login(&database.login()));
            let began = Instant::now();
            let (mut calls, mut stalls) = (0, 0);
            while began.elapsed() < Duration::from_secs(4) || calls <= 200 {
                for client in &mut clients {
                    let asked = Instant::now();
                    client.ok(CALLS[0]);
                    calls += 1;
                    stalls += u64::from(asked.elapsed() > Duration::from_millis(100));
                }
                sleep(Duration::from_millis(5));
            }
            let counts = proxy.counts();
            // One run a ttl, plus one a session after each stall of 1/4 s: two in 4 s, plus those after stalls that a call measured.
            let runs = counts.of("calls_run_for_rights");
            let most = began.elapsed().as_secs() / 2 + 9 + 4 * stalls;
            assert!((2..=most).contains(&runs), "{calls} {counts:?}");
            assert_eq!(
                counts.of("calls_owned"),
                calls,
                "{counts:?}\n{}",
                proxy.log()
            );
        }
    });
}
