//! Ids below 0, of which memory holds none: only what they concern leaves it.

use super::warm;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_each_server;
use crate::kit::timeline::{Timeline, insert};
use crate::kit::twin::Twin;

/// A fault that was found: one such row emptied memory, for seconds, of everything that it held.
#[test]
fn a_row_below_zero_costs_the_lists_that_it_is_in() {
    on_each_server(|server| {
        let timeline = Timeline {
            id_type: "int",
            user_type: "int",
            ..Timeline::SILENT
        };
        let database = Database::empty(server, "belowzero");
        let mut client = database.connect();
        timeline.create(&mut client);
        let follows = [(1, 2), (1, 3), (4, 3), (5, 6), (7, 2), (7, 6)];
        insert(&mut client, "follower", &follows, |(a, b)| {
            format!("({a},{b})")
        });
        let messages = [(30, 2), (50, 7), (80, 3), (90, 7), (95, 6), (96, 2)];
        insert(&mut client, "message", &messages, |(id, author)| {
            format!("({id},{author},'message {id}')")
        });
        client.query("ANALYZE TABLE message, follower");
        let proxy = Proxy::configured(server.addr(), &timeline.toml(), ROOT_SERVICE);
        let login = database.login();
        let mut steady = proxy.login(&login);
        let mut twins: Vec<Twin> = (0..4)
            .map(|_| Twin::new(server, &proxy, &login).parse_is_silent())
            .collect();
        let call = |reader| format!("CALL fetch_timeline_ids({reader})");
        for image in ["FULL", "MINIMAL"] {
            client.ok(&format!("SET SESSION binlog_row_image = {image}"));
            for statement in [
                "INSERT INTO message VALUES (-5, 6, '')",
                "INSERT INTO message VALUES (-6, 2, ''), (-7, 6, '')",
                "UPDATE message SET body = 'other' WHERE id < 0",
                "UPDATE message SET user_id = -3 WHERE id = 96",
                "UPDATE message SET user_id = 2 WHERE id = 96",
                "INSERT INTO message VALUES (200, -3, '')",
                "INSERT INTO follower VALUES (7, -3)",
                "INSERT INTO follower VALUES (-7, 3), (-7, -3)",
                "UPDATE message SET id = 100 WHERE id = -5",
                "UPDATE message SET id = -100 WHERE id = 100",
                "DELETE FROM message WHERE id < 0",
                "DELETE FROM message WHERE id = 200",
                "DELETE FROM follower WHERE user_id < 0 OR follower_id < 0",
            ] {
                client.ok(statement);
                // Reader 4 follows author 3 alone.
                warm(&proxy, &mut steady, &call(4));
                for (twin, reader) in twins.iter_mut().zip([1, 4, 5, 7]) {
                    for bound in ["", ", 95"] {
                        let form = if bound.is_empty() { "" } else { "2" };
                        twin.run(&format!("CALL fetch_timeline_ids{form}({reader}{bound})"));
                        twin.run_unordered("SELECT id FROM fetch_timeline_tt");
                    }
                }
            }
        }
        for reader in [1, 4, 5, 7] {
            warm(&proxy, &mut steady, &call(reader));
        }
        let log = proxy.log();
        assert!(!log.contains("nothing is answered from memory"), "{log}");
        assert!(log.contains("whose id is below 0"), "{log}");
    });
}
