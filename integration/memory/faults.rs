//! Faults while readers and writers run: no wrong answer, no error from Headwater, and memory recovers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::linear::numbers;
use super::world::{READERS, World};
use super::{CLASSIC, prepare, warm};
use crate::kit::database::one_message;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, settings_file};
use crate::kit::relay::Relay;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::answer::answers;
use crate::kit::wire_client::{Answer, Login, WireClient};

/// Acknowledged changes survive a crash.
const DURABLE: &[&str] = &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
const WRITERS: u64 = 3;

struct Trial {
    server: SocketAddr,
    login: Login,
    /// Headwater's address.
    addr: SocketAddr,
    proxy: Mutex<Proxy>,
    /// Headwater's connection to the server.
    relay: Relay,
    world: World,
    /// The number of checked answers.
    checked: AtomicU64,
}

impl Trial {
    fn new(server: &PrivateServer, flags: &[&str]) -> Trial {
        let login = prepare(server.addr());
        let relay = Relay::start(server.addr());
        let proxy = Proxy::start(relay.addr(), &[ROOT_SERVICE, flags].concat());
        proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
        Trial {
            server: server.addr(),
            login,
            addr: proxy.addr(),
            proxy: Mutex::new(proxy),
            relay,
            world: World::new(WRITERS).resting(Duration::from_millis(20)),
            checked: AtomicU64::new(0),
        }
    }

    fn proxy(&self) -> MutexGuard<'_, Proxy> {
        self.proxy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls and checks; returns early when the server is gone.
    fn read(&self, number: u64) -> std::io::Result<()> {
        let mut client = match WireClient::try_login(self.addr, &self.login)? {
            Ok(client) => client,
            // Headwater relays the server's error.
            Err(error) => return Err(std::io::Error::other(error.message)),
        };
        let mut turn = number;
        while !self.world.is_stopping() {
            turn += 1;
            let reader = 1 + turn % READERS;
            let before = self.world.look();
            let reply = client.query_reply(&format!("CALL fetch_timeline_ids({reader})"))?;
            let said = String::from_utf8_lossy(&reply.raw).into_owned();
            if reply.raw.get(4) == Some(&0xff) {
                let away = said.contains("shutdown") || said.contains("killed");
                assert!(away, "the call failed: {said}");
                return Err(std::io::Error::other(said));
            }
            let reply = client.query_reply("SELECT id FROM fetch_timeline_tt")?;
            if reply.raw.get(4) == Some(&0xff) {
                return Err(std::io::Error::other("the server goes away"));
            }
            let answer = answers(&reply.packets, client.capabilities);
            let Some(Answer::Rows(rows)) = answer.into_iter().next() else {
                return Err(std::io::Error::other("no rows"));
            };
            let ids: Vec<String> = rows.rows.iter().filter_map(|row| row[0].clone()).collect();
            let fault = self.world.fault(reader, &before, &numbers(&ids));
            assert_eq!(fault, None, "{}", self.proxy().log());
            self.checked.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// Runs writers and readers while a fault happens, and until memory answers again.
fn survive(
    trial: &Trial,
    server: &mut PrivateServer,
    name: &str,
    fault: impl FnOnce(&mut PrivateServer),
) {
    eprintln!("fault: {name}");
    let world = &trial.world;
    thread::scope(|scope| {
        let running = world.run();
        for number in 0..WRITERS {
            scope.spawn(move || world.write_through(number, trial.server, &trial.login));
        }
        let readers: Vec<_> = (0..2)
            .map(|number| {
                scope.spawn(move || {
                    while !world.is_stopping() {
                        let _ = trial.read(number);
                        thread::sleep(Duration::from_millis(5));
                    }
                })
            })
            .collect();
        let more = |what: &str, count: &dyn Fn() -> u64, wanted: u64| {
            // Headwater retries the stream after ten seconds at most.
            let (deadline, before) = (Instant::now() + Duration::from_secs(90), count());
            while count() < before + wanted && !readers.iter().any(|reader| reader.is_finished()) {
                assert!(
                    Instant::now() < deadline,
                    "{name}: no {what}:\n{}",
                    trial.proxy().log()
                );
                thread::sleep(Duration::from_millis(10));
            }
        };
        let checked = || trial.checked.load(Ordering::Relaxed);
        let remembered = || trial.proxy().counts().of("calls_from_memory");
        more("answers before", &checked, 100);
        fault(server);
        more("answers behind", &checked, 100);
        more("answers from memory behind", &remembered, 100);
        drop(running);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn memory_survives_what_happens_to_the_server_and_its_log() {
    on_servers_of_its_own(
        |_| DURABLE,
        |server| {
            let trial = Trial::new(server, &[]);
            let login = trial.login.clone();
            let sql = |server: &PrivateServer, statements: &[&str]| {
                let mut root = WireClient::login(server.addr(), &login);
                for statement in statements {
                    root.ok(statement);
                }
            };
            survive(&trial, server, "the log goes on in new files", |server| {
                for _ in 0..3 {
                    sql(server, &["FLUSH BINARY LOGS"]);
                    thread::sleep(Duration::from_millis(50));
                }
            });
            survive(&trial, server, "old files are purged", |server| {
                let mut root = WireClient::login(server.addr(), &login);
                let files = root.rows("SHOW BINARY LOGS");
                let last = files.last().unwrap()[0].clone().unwrap();
                root.ok(&format!("PURGE BINARY LOGS TO '{last}'"));
            });
            survive(&trial, server, "the log begins anew", |server| {
                let mut root = WireClient::login(server.addr(), &login);
                root.ok(match server.kind() {
                    ServerKind::Mariadb => "RESET MASTER",
                    ServerKind::Mysql => "RESET BINARY LOGS AND GTIDS",
                });
            });
            survive(
                &trial,
                server,
                "the stream is cut, again and again, while memory is filled",
                |server| {
                    let mut root = WireClient::login(server.addr(), &login);
                    // Not from information_schema: MariaDB 10.11 crashed in that next to KILL.
                    let dumps = |root: &mut WireClient| -> Vec<String> {
                        let rows = root.rows("SHOW PROCESSLIST");
                        let dumps = rows.iter().filter(|row| {
                            row[4]
                                .as_deref()
                                .is_some_and(|doing| doing.starts_with("Binlog Dump"))
                        });
                        dumps.filter_map(|row| row[0].clone()).collect()
                    };
                    for _ in 0..6 {
                        let deadline = patience();
                        let mut found = dumps(&mut root);
                        while found.is_empty() {
                            assert!(Instant::now() < deadline, "no stream comes back");
                            thread::sleep(Duration::from_millis(5));
                            found = dumps(&mut root);
                        }
                        thread::sleep(Duration::from_millis(30));
                        for dump in found {
                            root.query(&format!("KILL {dump}"));
                        }
                    }
                },
            );
            survive(&trial, server, "columns change their places", |server| {
                sql(
                    server,
                    &[
                        "ALTER TABLE message MODIFY body varchar(255) NOT NULL FIRST",
                        "ALTER TABLE follower ADD since int NOT NULL DEFAULT 0 FIRST",
                    ],
                );
                thread::sleep(Duration::from_millis(300));
                sql(
                    server,
                    &[
                        "ALTER TABLE follower DROP since",
                        "ALTER TABLE message MODIFY body varchar(255) NOT NULL AFTER user_id",
                    ],
                );
            });
            survive(
                &trial,
                server,
                "one transaction changes very many rows",
                |server| {
                    let ids: Vec<String> = (0..10_000)
                        .map(|n| format!("({},999,'x')", 3_000_000_000_u64 + n))
                        .collect();
                    let rows = ids.join(",");
                    let insert = format!("INSERT INTO message (id, user_id, body) VALUES {rows}");
                    // By id: a filter on the author, who has most rows, would read and lock the whole table, and the
                    // writers' transactions could not end (1213).
                    sql(
                        server,
                        &[&insert, "DELETE FROM message WHERE id >= 3000000000"],
                    );
                },
            );
            survive(
                &trial,
                server,
                "one transaction changes 300,000 rows, more than are waited for",
                |server| {
                    let digit = "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 \
                                 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
                    let insert = format!(
                        "INSERT INTO message (id, user_id, body) \
                         SELECT 3000000000 + a.d + 10*b.d + 100*c.d + 1000*d.d + 10000*e.d + 100000*f.d, 999, 'x' \
                         FROM {digit} a, {digit} b, {digit} c, {digit} d, {digit} e, {digit} f WHERE f.d < 3"
                    );
                    // These rows stay: no reader follows their author, and deleting them would hold locks for long.
                    sql(server, &[&insert]);
                },
            );
            survive(&trial, server, "the stream stands still", |_| {
                trial.relay.hold(true);
                thread::sleep(Duration::from_millis(1_500));
                trial.relay.hold(false);
            });
            survive(
                &trial,
                server,
                "the stream stands still until it is given up",
                |_| {
                    trial.relay.hold(true);
                    trial.proxy().wait_for_log("was silent for");
                    trial.relay.hold(false);
                },
            );
            survive(
                &trial,
                server,
                "the clock jumps, back and forth",
                |server| {
                    for moment in [1_000_000, 2_147_000_000, 1_000_000_000] {
                        sql(
                            server,
                            &[
                                &format!("SET timestamp = {moment}"),
                                "INSERT INTO message (id, user_id, body) VALUES (3500000000, 998, 'x')",
                                "DELETE FROM message WHERE id = 3500000000",
                            ],
                        );
                    }
                },
            );
            survive(&trial, server, "Headwater crashes", |_| {
                for _ in 0..3 {
                    trial.proxy().crash_and_start();
                    thread::sleep(Duration::from_millis(300));
                }
            });
            survive(&trial, server, "the server is restarted", |server| {
                server.restart().unwrap();
            });
            survive(&trial, server, "the server crashes", |server| {
                server.kill();
                thread::sleep(Duration::from_millis(200));
                server.restart().unwrap();
            });
            let log = trial.proxy().log();
            assert!(log.contains("nothing is answered from memory"), "{log}");
            assert!(log.contains("the server's log is followed again"), "{log}");
        },
    );
}

/// Memory is far too small, and waits for rows end early.
#[test]
fn tight_limits_make_memory_useless_but_not_wrong() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let (_folder, path) = settings_file(
                "[index]\nmemory_bytes = 2000\n[binlog]\ntransaction_rows = 50\n[freshness]\nwait_ms = 5\n",
            );
            let trial = Trial::new(server, &["--config", &path]);
            let world = &trial.world;
            thread::scope(|scope| {
                let running = world.run();
                for number in 0..WRITERS {
                    let trial = &trial;
                    scope.spawn(move || world.write(number, trial.server, &trial.login).unwrap());
                }
                let reader = scope.spawn(|| trial.read(1).unwrap());
                let deadline = patience();
                while trial.checked.load(Ordering::Relaxed) < 300 && !reader.is_finished() {
                    assert!(Instant::now() < deadline, "{}", trial.proxy().log());
                    thread::sleep(Duration::from_millis(10));
                }
                drop(running);
                reader.join().unwrap();
            });
            assert_eq!(
                trial.proxy().counts().relayed(),
                0,
                "{}",
                trial.proxy().log()
            );
        },
    );
}

/// Headwater logs a log format that it cannot follow, and answers calls by lookups.
#[test]
fn a_log_of_statements_is_named_and_followed_once_it_is_in_row_format() {
    on_servers_of_its_own(
        |_| &["--binlog-format=MIXED"],
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            one_message(&mut root);
            let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
            proxy.wait_for_log("binlog_format = \"MIXED\" on the server");
            let mut client = proxy.login(&login);
            client.ok("CALL fetch_timeline_ids(1)");
            assert_eq!(client.column("SELECT id FROM fetch_timeline_tt"), ["10"]);
            assert_eq!(proxy.counts().of("calls_from_memory"), 0);
            root.ok("SET GLOBAL binlog_format = ROW");
            drop(root);
            let mut client = proxy.login(&login);
            warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        },
    );
}
