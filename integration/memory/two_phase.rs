//! Two-phase transactions (XA): their changes become readable at commit, not before.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::linear::numbers;
use super::stage::{CALL, Stage};
use super::{CLASSIC, warm};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

const IDS: &str = "SELECT id FROM fetch_timeline_tt";

struct Trial {
    server: SocketAddr,
    stage: Stage,
    /// The number of times that memory may have been emptied.
    losses: usize,
}

impl Trial {
    fn new(server: SocketAddr) -> Trial {
        let statements = [
            "CREATE TABLE other (id int NOT NULL PRIMARY KEY)",
            "INSERT INTO follower VALUES (1, 3)",
            "INSERT INTO message VALUES (10, 2, 'ten')",
        ];
        let stage = Stage::new(server, &statements, "");
        Trial {
            server,
            stage,
            losses: 0,
        }
    }

    /// Runs the statements on a separate connection and closes it: prepared transactions survive that.
    fn run(&self, statements: &[&str]) {
        let mut root = WireClient::login(self.server, &self.stage.login);
        for statement in statements {
            root.ok(statement);
        }
    }

    /// Checks that the answer holds these ids.
    #[track_caller]
    fn answers(&mut self, expected: &[u64]) {
        let expected = expected.iter().copied().collect();
        assert_eq!(self.stage.page(), expected, "{}", self.stage.proxy.log());
    }

    /// Checks the same of an answer from memory, and that memory was not emptied meanwhile.
    #[track_caller]
    fn remembers(&mut self, expected: &[u64]) {
        self.answers(expected);
        warm(&self.stage.proxy, &mut self.stage.client, CALL);
        self.answers(expected);
        let log = self.stage.proxy.log();
        let losses = log.matches("nothing is answered from memory").count();
        assert_eq!(losses, self.losses, "{log}");
    }
}

#[test]
fn one_that_does_not_touch_the_tables_does_not_disturb_memory() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut trial = Trial::new(server.addr());
            for statements in [
                &[
                    "XA START 'a'",
                    "INSERT INTO other VALUES (1)",
                    "XA END 'a'",
                    "XA PREPARE 'a'",
                ][..],
                &["XA COMMIT 'a'"],
                &[
                    "XA START 'b', 'x', 3",
                    "INSERT INTO other VALUES (2)",
                    "XA END 'b', 'x', 3",
                    "XA PREPARE 'b', 'x', 3",
                ],
                &["XA ROLLBACK 'b', 'x', 3"],
                &[
                    "XA START 'c'",
                    "INSERT INTO other VALUES (3)",
                    "XA END 'c'",
                    "XA COMMIT 'c' ONE PHASE",
                ],
                &[
                    "XA START 'd'",
                    "SELECT COUNT(*) FROM message",
                    "XA END 'd'",
                    "XA PREPARE 'd'",
                    "XA COMMIT 'd'",
                ],
                &[
                    "XA START 'e'",
                    "INSERT INTO other VALUES (4)",
                    "XA END 'e'",
                    "XA ROLLBACK 'e'",
                ],
            ] {
                let mut root = WireClient::login(trial.server, &trial.stage.login);
                for statement in statements {
                    root.query(statement);
                }
                drop(root);
                eprintln!("behind {statements:?}");
                trial.remembers(&[10]);
            }
            assert_eq!(others(&trial), "2");
        },
    );
}

fn others(trial: &Trial) -> String {
    let mut root = WireClient::login(trial.server, &trial.stage.login);
    root.column("SELECT COUNT(*) FROM other").remove(0)
}

#[test]
fn what_is_prepared_is_in_no_answer_and_what_is_committed_in_the_next() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut trial = Trial::new(server.addr());
            let post = |name: &str, id: u64, end: &[&str]| -> Vec<String> {
                let mut all = vec![
                    format!("XA START '{name}'"),
                    format!("INSERT INTO message VALUES ({id}, 2, 'x')"),
                    "INSERT INTO follower VALUES (9, 9) ON DUPLICATE KEY UPDATE user_id = 9".into(),
                    format!("XA END '{name}'"),
                ];
                all.extend(end.iter().map(|verb| format!("XA {verb}")));
                all
            };
            let run = |trial: &Trial, statements: Vec<String>| {
                trial.run(&statements.iter().map(String::as_str).collect::<Vec<_>>());
            };
            // A process that starts to read the log after a prepare does not know what the transaction changed.
            run(&trial, post("before", 11, &["PREPARE 'before'"]));
            trial.remembers(&[10]);
            run(
                &trial,
                vec!["INSERT INTO message VALUES (12, 3, 'x')".into()],
            );
            trial.answers(&[10, 12]);
            run(&trial, vec!["XA ROLLBACK 'before'".into()]);
            trial.remembers(&[10, 12]);
            run(&trial, post("after", 13, &["PREPARE 'after'"]));
            trial.remembers(&[10, 12]);
            run(&trial, vec!["XA COMMIT 'after'".into()]);
            trial.answers(&[10, 12, 13]);
            trial.losses += 1;
            trial.remembers(&[10, 12, 13]);
            run(&trial, post("one", 14, &["COMMIT 'one' ONE PHASE"]));
            trial.remembers(&[10, 12, 13, 14]);
            // A second Headwater also answers; it did not read the first phase.
            run(&trial, post("late", 15, &["PREPARE 'late'"]));
            let other = Proxy::start(trial.server, ROOT_SERVICE);
            other.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let mut client = other.login(&trial.stage.login);
            run(
                &trial,
                vec!["INSERT INTO message VALUES (16, 3, 'x')".into()],
            );
            let mut answer = |id: &str| {
                client.ok(CALL);
                client.column(IDS).contains(&id.to_owned())
            };
            assert!(answer("16") && !answer("15"));
            thread::sleep(Duration::from_millis(300));
            assert!(answer("16") && !answer("15"));
            run(&trial, vec!["XA COMMIT 'late'".into()]);
            assert!(answer("16") && answer("15"));
            trial.answers(&[10, 12, 13, 14, 15, 16]);
            warm(&other, &mut client, CALL);
            client.ok(CALL);
            assert_eq!(numbers(&client.column(IDS)).len(), 6);
        },
    );
}

/// How long the two-phase commits last.
const TIME: Duration = Duration::from_secs(2);

#[test]
fn no_answer_is_stale_or_ahead_while_others_commit_in_two_phases() {
    on_servers_of_its_own(
        |_| &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"],
        |server| {
            let trial = Trial::new(server.addr());
            let (stop, two_phases) = (AtomicBool::new(false), AtomicBool::new(true));
            // The newest committed id of each of two authors; one has even ids, the other odd ones.
            let newest = [AtomicU64::new(10), AtomicU64::new(0)];
            thread::scope(|scope| {
                for (author, told) in newest.iter().enumerate() {
                    let (stop, two_phases, trial) = (&stop, &two_phases, &trial);
                    scope.spawn(move || {
                        let mut root = WireClient::login(trial.server, &trial.stage.login);
                        let mut id = 100 + author as u64;
                        while !stop.load(Ordering::Relaxed) {
                            id += 2;
                            let insert =
                                format!("INSERT INTO message VALUES ({id}, {}, 'x')", author + 2);
                            if author == 0 && two_phases.load(Ordering::Relaxed) {
                                root.ok(&format!("XA START '{id}'"));
                                root.ok(&insert);
                                root.ok(&format!("XA END '{id}'"));
                                root.ok(&format!("XA PREPARE '{id}'"));
                                root.ok(&format!("XA COMMIT '{id}'"));
                            } else {
                                root.ok(&insert);
                            }
                            told.store(id, Ordering::SeqCst);
                            thread::sleep(Duration::from_millis(2));
                        }
                    });
                }
                let checks = || {
                    let mut client = trial.stage.proxy.login(&trial.stage.login);
                    let mut direct = WireClient::login(trial.server, &trial.stage.login);
                    let remembered = || trial.stage.proxy.counts().of("calls_from_memory");
                    let begun = Instant::now();
                    let mut checked = 0_u64;
                    // Until the one author's writes are no longer two-phase, and memory has recovered.
                    let mut enough = u64::MAX;
                    while two_phases.load(Ordering::Relaxed) || remembered() < enough {
                        if begun.elapsed() > TIME && two_phases.swap(false, Ordering::Relaxed) {
                            enough = remembered() + 50;
                        }
                        assert!(begun.elapsed() < 10 * TIME, "{}", trial.stage.proxy.log());
                        let told = newest.each_ref().map(|told| told.load(Ordering::SeqCst));
                        client.ok(CALL);
                        let readable = numbers(&direct.column("SELECT id FROM message"));
                        let answer = numbers(&client.column(IDS));
                        for told in told.iter().filter(|told| **told > 0) {
                            let own = |id: &&u64| **id % 2 == told % 2;
                            // Twenty newer ones may have come meanwhile.
                            let newer = answer.iter().filter(own).filter(|id| *id > told);
                            let full = newer.count() == 20;
                            assert!(
                                full || answer.contains(told),
                                "stale: no {told} in {answer:?}"
                            );
                        }
                        let ahead: Vec<_> = answer.difference(&readable).collect();
                        assert!(ahead.is_empty(), "ahead: {ahead:?} could not be read");
                        checked += 1;
                    }
                    checked
                };
                let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(checks));
                stop.store(true, Ordering::Relaxed);
                match checked {
                    Ok(checked) => assert!(checked > 100, "{checked}"),
                    Err(fault) => std::panic::resume_unwind(fault),
                }
            });
            let counts = trial.stage.proxy.counts();
            assert_eq!(counts.relayed(), 0, "{}", trial.stage.proxy.log());
        },
    );
}
