//! Two sessions run random sequences of the statements that may come between calls.

use super::stage::{Stage, TAIL, on_each_stage};
use crate::kit::random::Random;
use crate::kit::twin::Twin;
use crate::kit::wire_client::{COM_PING, COM_RESET_CONNECTION};

const STEPS: usize = 500;

/// Statements whose replies have only one correct order of rows.
const STATEMENTS: &[&str] = &[
    TAIL,
    TAIL,
    TAIL,
    "SELECT message.id FROM message JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 3",
    "SELECT m.body b FROM message m JOIN fetch_timeline_tt USING(id) ORDER BY m.id DESC LIMIT 100",
    "SELECT COUNT(*) FROM fetch_timeline_tt",
    "SELECT COUNT(*), MAX(max_id) FROM max_ids_of_followers",
    "SELECT id FROM fetch_timeline_tt ORDER BY id LIMIT 50",
    "SELECT user_id, max_id FROM max_ids_of_followers ORDER BY max_id, user_id",
    "SELECT COUNT(*) FROM message",
    "SELECT 1",
    "SELECT nothing",
    "SET @a = 1",
    "COMMIT",
    "ROLLBACK",
    "SET autocommit = 1",
    "SET sql_safe_updates = 0",
    "SET sql_select_limit = DEFAULT",
    "SET sql_mode = DEFAULT",
    "INSERT INTO message SELECT MAX(id) + 1, 2, 'new' FROM message",
    "INSERT INTO message VALUES (777, 5, 'x')",
    "DELETE FROM message WHERE user_id = 2 ORDER BY id DESC LIMIT 1",
    "DELETE FROM message WHERE id = 777",
    "INSERT INTO follower VALUES (2, 7)",
    "DELETE FROM follower WHERE user_id = 2 AND follower_id = 7",
    "UPDATE message SET body = 'changed' WHERE id = 480",
    "INSERT INTO note (body) VALUES ('n')",
    "DELETE FROM fetch_timeline_tt",
    "DELETE FROM fetch_timeline_tt WHERE id < 200",
    "INSERT INTO fetch_timeline_tt VALUES (1)",
    "INSERT IGNORE INTO fetch_timeline_tt VALUES (1), (2), (480)",
    "TRUNCATE fetch_timeline_tt",
    "DROP TEMPORARY TABLE IF EXISTS fetch_timeline_tt",
    "DROP TEMPORARY TABLE IF EXISTS max_ids_of_followers",
    "DROP TEMPORARY TABLE IF EXISTS fetch_timeline_tt, max_ids_of_followers",
    "DROP TEMPORARY TABLE IF EXISTS message",
    "SHOW COLUMNS FROM fetch_timeline_tt",
    "SHOW ERRORS",
    "SELECT ROW_COUNT()",
    "SELECT LAST_INSERT_ID()",
    "SELECT @@error_count",
    "UNLOCK TABLES",
    "USE {db}",
    "USE {db}",
    "USE {db}",
    "SELECT CONNECTION_ID() > 0",
    "SAVEPOINT s",
    "ROLLBACK TO s",
];

/// After these, calls are relayed for a while; so they are rarer.
const CORNERS: &[&str] = &[
    "BEGIN",
    "START TRANSACTION READ ONLY",
    "SET autocommit = 0",
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET sql_safe_updates = 1",
    "SET sql_select_limit = 5",
    "SET sql_mode = ''",
    "CREATE TEMPORARY TABLE fetch_timeline_tt (id int unsigned NOT NULL PRIMARY KEY)",
    "CREATE TEMPORARY TABLE IF NOT EXISTS message LIKE note",
    "LOCK TABLES message READ, follower READ",
    "LOCK TABLES note WRITE",
    "USE mysql",
    "PREPARE p FROM 'CALL fetch_timeline_ids(2)'",
    "EXECUTE p",
    "SELECT 1; CALL fetch_timeline_ids(1); SELECT COUNT(*) FROM fetch_timeline_tt",
    "CALL fetch_timeline_ids(NULL)",
];

#[test]
fn a_random_walk_gives_the_same_replies() {
    on_each_stage(|stage| {
        let seed = std::env::var("HEADWATER_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(if stage.service { 3 } else { 4 });
        eprintln!("HEADWATER_SEED={seed}");
        let mut random = Random(seed);
        let mut twin = stage.twin();
        for step in 0..STEPS {
            if step % 125 == 124 {
                twin = refreshed(stage, &mut twin);
            }
            walk(&mut twin, &mut random);
        }
        let counts = stage.proxy.counts();
        eprintln!("{counts:?}");
        assert!(counts.of("calls_owned") > STEPS as u64 / 10, "{counts:?}");
    });
}

/// Opens new sessions after the old ones release what they hold.
#[track_caller]
fn refreshed(stage: &Stage, twin: &mut Twin) -> Twin {
    twin.run("ROLLBACK");
    twin.run("UNLOCK TABLES");
    twin.command(&[COM_RESET_CONNECTION]);
    twin.run("USE {db}");
    twin.run("SELECT * FROM message ORDER BY id");
    twin.run("SELECT * FROM follower ORDER BY user_id, follower_id");
    stage.twin()
}

#[track_caller]
fn walk(twin: &mut Twin, random: &mut Random) {
    match random.below(40) {
        0..=9 => {
            let reader = 1 + random.below(5);
            twin.run(&format!("CALL fetch_timeline_ids({reader})"));
            if random.one_in(2) {
                twin.run(TAIL);
            }
        }
        10..=16 => {
            let (reader, bound) = (1 + random.below(5), random.below(500));
            twin.run(&format!("CALL fetch_timeline_ids2({reader}, {bound})"));
            if random.one_in(2) {
                twin.run(TAIL);
            }
        }
        22 | 23 => {
            let (reader, bound) = (1 + random.below(5), random.below(500));
            twin.run(&format!(
                "CALL build_max_ids_of_followers({reader}, {bound})"
            ));
            if random.one_in(2) {
                twin.run_unordered("SELECT * FROM max_ids_of_followers");
            }
        }
        17 => drop(twin.command(&[COM_PING])),
        // Restores a state in which calls are served; otherwise a sequence could relay everything to its end.
        18 | 21 => {
            for statement in [
                "ROLLBACK",
                "UNLOCK TABLES",
                "USE {db}",
                "SET autocommit = 1, sql_safe_updates = 0, sql_select_limit = DEFAULT",
            ] {
                twin.run(statement);
            }
        }
        19 | 20 => {
            let corner = random.pick(CORNERS);
            twin.run(corner);
        }
        _ => {
            let statement = random.pick(STATEMENTS);
            twin.run(statement);
        }
    }
}
