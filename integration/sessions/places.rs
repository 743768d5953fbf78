//! Several timelines in one session: another database's, another definition's.

use std::io::Write as _;

use super::stage::{Stage, TAIL, on_each_stage, on_each_stage_with};

const COM_RESET_CONNECTION: u8 = 0x1f;

#[test]
fn each_database_has_result_tables_of_its_own() {
    on_each_stage(|stage| {
        with_seconds(stage);
        let mut twin = stage.twin();
        let second = other("{db}");
        for _ in 0..3 {
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(&format!("USE {second}"));
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run("CALL fetch_timeline_ids2(2, 400)");
            twin.run("CALL fetch_timeline_ids2(1, 400)");
            twin.run(TAIL);
            twin.run("USE {db}");
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids2(1, 300)");
            twin.run(&format!("SELECT COUNT(*) FROM {second}.fetch_timeline_tt"));
            twin.run(&format!(
                "SELECT COUNT(*) FROM {second}.max_ids_of_followers"
            ));
            twin.run_unordered("SELECT * FROM max_ids_of_followers");
        }
        let counts = stage.proxy.counts();
        assert!(counts.of("calls_owned") >= 9, "{counts:?}");
        without_seconds(stage);
    });
}

/// A reset session stays in its database, which may be unknown.
#[test]
fn a_reset_does_not_make_a_database_certain() {
    on_each_stage(|stage| {
        with_seconds(stage);
        let second = other("{db}");
        let mut twin = stage.twin();
        twin.run("CALL fetch_timeline_ids(1)");
        // Not every client is notified that this changes the database.
        twin.run(&format!("DO 1; USE {second}"));
        twin.command(&[COM_RESET_CONNECTION]);
        let call = twin.prepare("CALL fetch_timeline_ids(?)");
        twin.run("USE {db}");
        for _ in 0..2 {
            twin.execute(call, &[Some("1")]);
            let left = format!("SELECT COUNT(*),SUM(id) FROM {second}.fetch_timeline_tt");
            twin.run(&left);
            twin.run("SELECT COUNT(*),SUM(id) FROM {db}.fetch_timeline_tt");
        }
        without_seconds(stage);
    });
}

/// Gives each database a second one, with fewer authors.
fn with_seconds(stage: &mut Stage) {
    // The other side's database cannot serve as the second one, because the names would differ; so both get a new one.
    for database in stage
        .databases
        .iter()
        .map(|database| database.name().to_owned())
    {
        let other = other(&database);
        stage.root.ok(&format!("DROP DATABASE IF EXISTS {other}"));
        stage.root.ok(&format!("CREATE DATABASE {other}"));
        stage.root.ok(&format!("USE {other}"));
        stage.timeline.create(&mut stage.root);
        for table in ["message", "follower"] {
            stage.root.ok(&format!(
                "INSERT INTO {other}.{table} SELECT * FROM {database}.{table} WHERE user_id < 7"
            ));
        }
    }
}

fn without_seconds(stage: &mut Stage) {
    for database in &stage.databases {
        stage
            .root
            .ok(&format!("DROP DATABASE {}", other(database.name())));
    }
}

fn other(database: &str) -> String {
    format!("{database}_2")
}

#[test]
fn two_definitions_keep_their_result_tables_apart() {
    let mut settings = tempfile::NamedTempFile::new().unwrap();
    settings
        .write_all(
            b"[[definition]]\n[[definition]]\nname = \"second\"\n\
              procedures = { newest = \"second_ids\", bounded = \"second_ids2\", heads = \"second_heads\" }\n\
              result = { table = \"second_tt\" }\nheads = { table = \"second_heads_tt\" }\n",
        )
        .unwrap();
    let path = settings.path().to_str().unwrap().to_owned();
    on_each_stage_with(&["--config", &path], |stage| {
        for procedure in stage.timeline.procedures() {
            let second = procedure
                .replace("fetch_timeline_tt", "second_tt")
                .replace("build_max_ids_of_followers", "second_heads")
                .replace("max_ids_of_followers", "second_heads_tt")
                .replace("fetch_timeline_ids", "second_ids");
            for database in &stage.databases {
                database.connect().ok(&second);
            }
        }
        let mut twin = stage.twin();
        // This renews the verdict of the start, which found no procedure.
        twin.run("DROP PROCEDURE IF EXISTS nothing_such");
        let second_tail = TAIL.replace("fetch_timeline_tt", "second_tt");
        for _ in 0..3 {
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run("CALL second_ids(2)");
            twin.run(TAIL);
            twin.run(&second_tail);
            twin.run("CALL second_ids2(1, 300)");
            twin.run("CALL fetch_timeline_ids2(1, 400)");
            twin.run("CALL second_ids2(2, 200)");
            twin.run(&second_tail);
            twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
            twin.run("SELECT COUNT(*) FROM second_heads_tt");
            twin.run("SELECT COUNT(*) FROM max_ids_of_followers");
        }
        let counts = stage.proxy.counts();
        assert!(
            counts.of("calls_owned") >= 14,
            "{counts:?}\n{}",
            stage.proxy.log()
        );
    });
}
