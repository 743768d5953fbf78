//! Earlier types of a parameter: MySQL continues to compare by them, whatever type follows, and refuses text that it cannot convert.

use super::app::{SMALL, settings_in};
use super::narrowed::narrowed_where;
use super::rules::BEHIND;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::Param;

const PAGE: &str = "SELECT id, caption FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = ?) \
    AND kind <> ? ORDER BY id DESC LIMIT ?";

/// Parameters that are numbers or times by their type. Each comes once instead of text.
fn others() -> Vec<Param> {
    vec![
        Param::long(5),
        Param::new(8, 128, &5_u64.to_le_bytes()),
        Param::new(5, 0, &5.5_f64.to_le_bytes()),
        Param::new(4, 0, &5.5_f32.to_le_bytes()),
        Param::new(246, 0, b"\x011"),
        Param::new(10, 0, &[4, 0xea, 7, 1, 2]),
        Param::new(12, 0, &[4, 0xea, 7, 1, 2]),
        Param::new(7, 0, &[4, 0xea, 7, 1, 2]),
        Param::new(1, 0, &[5]),
        Param::new(253, 0, b"\x015"),
    ]
}

/// Two sessions of an app after these changes to its tables, and the Headwater that one of them uses.
fn scene(server: &'static Server, name: &str, changes: &[&str]) -> (Database, Proxy, Twin) {
    let database = Database::empty(server, name);
    let mut root = database.connect();
    SMALL.make(&mut root, &mut Random(5));
    for change in changes {
        root.ok(change);
    }
    let proxy = served(server, &database, "home", &settings_in(&database));
    let twin = Twin::new(server, &proxy, &database.login());
    (database, proxy, twin)
}

#[test]
fn text_behind_a_number_is_compared_as_the_server_compares_it() {
    on_each_server(|server| {
        let (_database, proxy, mut twin) = scene(server, "feedkinds", &[]);
        let with = |kind: Param| [Param::long(2), kind, Param::long(5)];
        let text = |text: &str| with(Param::text(Some(text)));
        for other in others() {
            let statement = twin.prepare(PAGE);
            narrowed_where(&proxy, PAGE, |_| {
                twin.execute_with(statement, &text("photo"), 0, true);
            });
            twin.execute_with(statement, &with(other), 0, true);
            for value in ["photo", "x", "5", "2026-01-02"] {
                for typed in [true, false, true] {
                    twin.execute_with(statement, &text(value), 0, typed);
                    twin.run("SHOW WARNINGS");
                }
            }
        }
        for value in [
            "3",
            "-3",
            "1.5",
            "1.5e0",
            "18446744073709551615",
            "TRUE",
            "'3'",
        ] {
            twin.run(
                "PREPARE page FROM 'SELECT id, caption FROM statuses WHERE profile_id IN (1, 2) AND kind <> ? ORDER BY id DESC LIMIT 5'",
            );
            for set in ["'x'", "'x'", value, "'x'", "'3'"] {
                twin.run(&format!("SET @v = {set}"));
                twin.run("EXECUTE page USING @v");
                twin.run("SHOW WARNINGS");
            }
        }
    });
}

#[test]
fn text_that_the_server_cannot_convert_is_refused_as_directly() {
    on_each_server(|server| {
        let changes =
            ["ALTER TABLE statuses MODIFY kind VARCHAR(10) CHARACTER SET latin1 NOT NULL"];
        let (_database, proxy, mut twin) = scene(server, "feedconverts", &changes);
        let with = |kind: &str| [Param::long(2), Param::text(Some(kind)), Param::long(5)];
        for names in ["utf8mb4", "gbk", "latin1"] {
            twin.run(&format!("SET NAMES {names}"));
            let statement = twin.prepare(PAGE);
            narrowed_where(&proxy, PAGE, |_| {
                twin.execute_with(statement, &with("photo"), 0, true);
            });
            for kind in ["\u{e9}t\u{e9}", "\u{1f600}", "\u{4e2d}", "photo"] {
                for before in [
                    "SELECT 1",
                    "SELECT FOUND_ROWS()",
                    "SELECT nothing FROM nowhere",
                ] {
                    for left in BEHIND {
                        twin.run(before);
                        twin.execute_with(statement, &with(kind), 0, true);
                        twin.run(left);
                    }
                }
            }
        }
    });
}

/// Beyond 2^53 a double cannot represent every whole number.
#[test]
fn great_numbers_behind_other_kinds_are_compared_as_the_server_compares_them() {
    on_each_server(|server| {
        let changes = [
            "ALTER TABLE statuses MODIFY likes BIGINT NOT NULL",
            "UPDATE statuses SET likes = 9007199254740991 + id % 4",
        ];
        let (_database, proxy, mut twin) = scene(server, "feedgreat", &changes);
        let great = |value: u64| Param::new(8, 0, &value.to_le_bytes());
        let digits = |value: u64| Param::text(Some(&value.to_string()));
        for compared in ["likes = ?", "likes > ?"] {
            let page = PAGE.replace("kind <> ?", compared);
            let with = |value: Param| [Param::long(2), value, Param::long(5)];
            for other in others() {
                let statement = twin.prepare(&page);
                narrowed_where(&proxy, &page, |_| {
                    twin.execute_with(statement, &with(great(1)), 0, true);
                });
                twin.execute_with(statement, &with(other), 0, true);
                for value in 9_007_199_254_740_991..9_007_199_254_740_995 {
                    for value in [great(value), digits(value)] {
                        for typed in [true, false] {
                            twin.execute_with(statement, &with(value.clone()), 0, typed);
                        }
                    }
                }
            }
        }
        for before in ["0.5", "5e0", "'5'", "7"] {
            twin.run(
                "PREPARE page FROM 'SELECT id FROM statuses WHERE profile_id IN (1, 2) AND likes = ? ORDER BY id DESC LIMIT 5'",
            );
            for set in ["7", before, "7", "9007199254740993", "'9007199254740993'"] {
                twin.run(&format!("SET @v = {set}"));
                twin.run("EXECUTE page USING @v");
            }
        }
    });
}

/// Text can be a time, also after a number.
#[test]
fn moments_behind_other_kinds_are_compared_as_the_server_compares_them() {
    on_each_server(|server| {
        // With a key, column flags follow the plan, and the plan follows the value.
        let changes =
            ["ALTER TABLE statuses DROP KEY by_time, MODIFY created_at DATETIME(6) NOT NULL"];
        let (_database, proxy, mut twin) = scene(server, "feedmoments", &changes);
        const VALUES: [&str; 6] = [
            "2026-01-01 10:00:30",
            "2026-01-01",
            "20260101",
            "20260101100030",
            "2026-01-01 10:00:30.000001",
            "2026",
        ];
        for compared in ["created_at < ?", "created_at > ?"] {
            let page = PAGE.replace("kind <> ?", compared);
            let with = |value: Param| [Param::long(2), value, Param::long(5)];
            for other in others() {
                let statement = twin.prepare(&page);
                narrowed_where(&proxy, &page, |_| {
                    twin.execute_with(statement, &with(Param::text(Some(VALUES[0]))), 0, true);
                });
                twin.execute_with(statement, &with(other), 0, true);
                for value in VALUES {
                    for typed in [true, false] {
                        twin.execute_with(statement, &with(Param::text(Some(value))), 0, typed);
                        twin.run("SHOW WARNINGS");
                    }
                }
            }
        }
        for before in [
            "20260101100030",
            "20260101.5",
            "2026e4",
            "'5'",
            "DATE'2026-01-01'",
        ] {
            twin.run(
                "PREPARE page FROM 'SELECT id FROM statuses WHERE profile_id IN (1, 2) AND created_at < ? ORDER BY id DESC LIMIT 5'",
            );
            for set in [VALUES[0], VALUES[0]].map(|value| format!("'{value}'")) {
                twin.run(&format!("SET @v = {set}"));
                twin.run("EXECUTE page USING @v");
            }
            twin.run(&format!("SET @v = {before}"));
            twin.run("EXECUTE page USING @v");
            for set in VALUES {
                twin.run(&format!("SET @v = '{set}'"));
                twin.run("EXECUTE page USING @v");
                twin.run("SHOW WARNINGS");
            }
        }
    });
}
