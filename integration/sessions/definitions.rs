//! Procedures that Headwater does not know, or no longer knows.

use super::stage::{TAIL, on_each_stage, on_each_stage_with};
use super::transcripts::stories;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::timeline::{Timeline, insert};
use crate::kit::twin::Twin;

stories!(
    "definitions":
    an_index_dropped_through_headwater_changes_no_answer,
    a_table_changed_past_headwater_changes_no_answer,
    a_database_made_anew_has_new_procedures,
);

const CALL: &str = "CALL fetch_timeline_ids(1)";

#[test]
fn a_procedure_that_differs_by_one_token_is_relayed_and_the_log_names_the_token() {
    on_each_stage_with(&["--log-level", "info"], |stage| {
        let [_, newest, _] = stage.timeline.procedures();
        stage.aside("DROP PROCEDURE {db}.fetch_timeline_ids");
        let odd = newest.replace("LIMIT 20; END IF", "LIMIT 19; END IF");
        assert_ne!(odd, newest);
        for database in &stage.databases {
            database.connect().ok(&odd);
        }
        let mut twin = stage.twin();
        if stage.service {
            // Headwater renews the start's verdict after limits.recheck_ms at the latest; a statement
            // through Headwater that touches procedures renews it at once.
            twin.run("DROP PROCEDURE IF EXISTS nothing_such");
        }
        for _ in 0..3 {
            twin.run(CALL);
            twin.run(TAIL);
            twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
        }
        stage.proxy.wait_for_log("19");
        stage.owned(0);
        twin.run("CALL fetch_timeline_ids2(1, 300)");
        twin.run(TAIL);
    });
}

#[test]
fn a_procedure_altered_through_headwater_is_relayed_from_the_next_call_on() {
    on_each_stage(|stage| {
        let [_, newest, _] = stage.timeline.procedures();
        let mut twin = stage.twin();
        twin.run(CALL);
        twin.run(TAIL);
        twin.run("DROP PROCEDURE fetch_timeline_ids");
        // Headwater serves the client from the definition, where the server alone reports 1305.
        assert_eq!(twin.direct.error(CALL).code, 1305);
        twin.proxied.ok(CALL);
        twin.run(&newest.replace("DESC LIMIT 20", "ASC LIMIT 20"));
        for _ in 0..3 {
            twin.run(CALL);
            twin.run(TAIL);
        }
        twin.run("DROP PROCEDURE fetch_timeline_ids");
        twin.run(&newest);
        for _ in 0..3 {
            twin.run(CALL);
        }
        twin.run(TAIL);
        // Where the altered procedure ran, it may have set a one-shot transaction: then the next call is relayed too.
        let owned = stage.proxy.counts().of("calls_owned");
        assert!((4..=5).contains(&owned), "{owned}");
    });
}

#[test]
fn without_the_procedures_the_definition_is_served() {
    on_each_stage(|stage| {
        for procedure in [
            "fetch_timeline_ids",
            "fetch_timeline_ids2",
            "build_max_ids_of_followers",
        ] {
            stage.aside(&format!("DROP PROCEDURE {{db}}.{procedure}"));
        }
        let mut twin = stage.twin();
        // This discards the verdict that a service account gave at the start.
        twin.run("DROP PROCEDURE IF EXISTS nothing_such");
        let client = &mut twin.proxied;
        client.ok(CALL);
        let page = client.rows(TAIL);
        assert_eq!((page.len(), page[0][0].as_deref()), (20, Some("480")));
        client.ok("CALL fetch_timeline_ids2(1, 300)");
        let page = client.rows(TAIL);
        assert_eq!((page.len(), page[0][0].as_deref()), (20, Some("300")));
        let count = client.column("SELECT COUNT(*) FROM fetch_timeline_tt");
        assert_ne!(count, ["0"]);
        assert_eq!(
            client
                .column("SELECT COUNT(*) FROM max_ids_of_followers")
                .len(),
            1
        );
        client.ok("CALL build_max_ids_of_followers(2, 300)");
        let heads = client.column("SELECT user_id FROM max_ids_of_followers ORDER BY user_id");
        assert_eq!(heads, ["1", "5"]);
        stage.owned(3);
    });
}

#[test]
fn a_body_that_cannot_be_seen_is_relayed_and_the_log_names_the_way_out() {
    on_each_stage(|stage| {
        if stage.service {
            return;
        }
        let login = stage.account("SELECT, EXECUTE");
        let mut twin = stage.twin_of(&login);
        for _ in 0..3 {
            twin.run(CALL);
            twin.run(TAIL);
        }
        stage.owned(0);
        stage.proxy.wait_for_log("trust_unseen_body");
        // One session that may see the procedure is enough for all sessions.
        let mut seeing = stage.twin();
        seeing.run(CALL);
        twin.run(CALL);
        twin.run(TAIL);
        stage.owned(2);
    });
}

/// A signed type allows ids below zero; Headwater's ids are unsigned.
#[test]
fn negative_ids_are_left_to_the_server() {
    on_each_server(|server| {
        let timeline = Timeline {
            id_type: "int",
            ..Timeline::SILENT
        };
        let database = Database::empty(server, "negative");
        let mut client = database.connect();
        timeline.create(&mut client);
        insert(
            &mut client,
            "follower",
            &[(1, 2), (1, 3), (4, 3), (5, 6)],
            |(a, b)| format!("({a},{b})"),
        );
        let messages = [(-5, 2), (3, 2), (5, 7), (-1, 3), (8, 3), (-9, 6), (9, 7)];
        insert(&mut client, "message", &messages, |(id, author)| {
            format!("({id},{author},'message {id}')")
        });
        client.query("ANALYZE TABLE message, follower");
        let proxy = Proxy::configured(server.addr(), &timeline.toml(), &[]);
        for reader in [1, 4, 5] {
            // Each in its own session: a session does not retry what failed once.
            for bound in ["", ", 100", ", 4", ", 0", ", -3"] {
                let mut twin = Twin::new(server, &proxy, &database.login()).parse_is_silent();
                let form = if bound.is_empty() { "" } else { "2" };
                for _ in 0..2 {
                    if !bound.is_empty() {
                        twin.run(&format!("CALL build_max_ids_of_followers({reader}{bound})"));
                        twin.run_unordered("SELECT * FROM max_ids_of_followers");
                    }
                    twin.run(&format!("CALL fetch_timeline_ids{form}({reader}{bound})"));
                    twin.run(TAIL);
                    twin.run_unordered("SELECT id FROM fetch_timeline_tt");
                }
            }
        }
        // What memory knows of an author from before does not hide the ids below zero that the author has now.
        client.ok("INSERT INTO message VALUES (50, 11, ''), (40, 11, ''), (60, 13, '')");
        client.ok("INSERT INTO follower VALUES (10, 11), (10, 12), (10, 13)");
        for (id, author) in [(70, 13), (-10, 11), (-20, 12)] {
            for call in [
                "CALL fetch_timeline_ids(10)",
                "CALL fetch_timeline_ids2(10, 90)",
            ] {
                let mut twin = Twin::new(server, &proxy, &database.login()).parse_is_silent();
                for _ in 0..2 {
                    twin.run(call);
                    twin.run_unordered("SELECT id FROM fetch_timeline_tt");
                }
            }
            client.ok(&format!("INSERT INTO message VALUES ({id}, {author}, '')"));
        }
        for call in [
            "CALL fetch_timeline_ids(10)",
            "CALL fetch_timeline_ids2(10, 90)",
        ] {
            let mut twin = Twin::new(server, &proxy, &database.login()).parse_is_silent();
            twin.run(call);
            twin.run_unordered("SELECT id FROM fetch_timeline_tt");
        }
    });
}

/// MariaDB reads a list of a thousand ids as a subquery.
#[test]
fn a_tail_of_more_than_a_thousand_ids_keeps_its_columns() {
    on_each_server(|server| {
        let timeline = Timeline {
            n: 40,
            ..Timeline::SILENT
        };
        let database = Database::empty(server, "thousand");
        let mut client = database.connect();
        timeline.create(&mut client);
        let follows: Vec<u32> = (100..140).collect();
        insert(&mut client, "follower", &follows, |author| {
            format!("(1,{author})")
        });
        let messages: Vec<u32> = (1..20_000).collect();
        insert(&mut client, "message", &messages, |id| {
            format!("({id},{},'message {id}')", 100 + id % 40)
        });
        client.query("ANALYZE TABLE message, follower");
        let proxy = Proxy::configured(server.addr(), &timeline.toml(), &[]);
        let mut twin = Twin::new(server, &proxy, &database.login()).parse_is_silent();
        for limit in [40, 999, 1_000, 1_500, 1_600] {
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(&TAIL.replace("LIMIT 20", &format!("LIMIT {limit}")));
        }
        assert_eq!(proxy.counts().of("calls_owned"), 5);
    });
}

/// Without column definitions, a reply from Headwater contains less than it seems to.
#[test]
fn a_session_without_column_definitions_is_relayed() {
    const OPTIONAL_RESULTSET_METADATA: u64 = 1 << 25;
    on_each_server(|server| {
        if server.is_mariadb() {
            return;
        }
        let database = Database::empty(server, "bare");
        Timeline::SILENT.create(&mut database.connect());
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client = proxy.login(&database.login().with(OPTIONAL_RESULTSET_METADATA));
        client.ok("SET sql_safe_updates = 1");
        client.ok("SET resultset_metadata = NONE");
        assert_eq!(client.error("CALL fetch_timeline_ids(1)").code, 1175);
    });
}
