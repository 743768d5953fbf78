//! Rows that a statement names by their ids, as ORMs load what a page refers to: from cached rows, as the server has them.

use std::time::{Duration, Instant};

use headwater_lab::private_server::ServerKind;

use super::app::{SMALL, settings_in};
use super::counts::{change, change_row_image};
use super::kept::kept;
use super::rules::BEHIND;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;

/// As ORMs write them; `{ids}` is a list of ids.
const STATEMENTS: [&str; 11] = [
    "select * from `statuses` where `statuses`.`id` in ({ids})",
    "SELECT `statuses`.* FROM `statuses` WHERE `statuses`.`id` IN ({ids}) AND `statuses`.`visibility` = 'public'",
    "SELECT s.id, s.caption, s.profile_id, p.name FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.id IN ({ids}) ORDER BY s.id DESC",
    "SELECT s.*, p.name AS author FROM statuses s LEFT JOIN profiles p ON s.profile_id = p.id WHERE s.id IN ({ids}) AND s.likes < 40 ORDER BY s.id",
    "SELECT `id`, `caption`, `likes` FROM `statuses` WHERE (`id` IN ({ids}) AND 1=1)",
    "SELECT id, profile_id, caption FROM statuses WHERE id IN ({ids}) AND kind = 'photo' ORDER BY id DESC LIMIT 5",
    "SELECT * FROM statuses WHERE id IN ({ids}) ORDER BY id LIMIT 4 OFFSET 2",
    "SELECT id, caption FROM statuses WHERE id IN ({ids}) AND deleted_at IS NULL ORDER BY statuses.id ASC, caption -- so",
    "SELECT * FROM statuses WHERE id IN ({ids}) LIMIT 2",
    "SELECT * FROM statuses WHERE id IN (2950)",
    "/* load */ SELECT s.kind, s.likes FROM statuses AS s WHERE s.profile_id IN (1, 2, 3) AND s.id IN ({ids})",
];

const EXECUTED: [&str; 3] = [
    "SELECT * FROM statuses WHERE id IN (?, ?, ?, ?)",
    "SELECT s.id, s.profile_id, p.name FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.id IN (?, ?, ?, ?) ORDER BY s.id DESC",
    "SELECT id, caption, created_at FROM statuses WHERE likes < 45 AND id IN (?, ?, ?, ?) ORDER BY id",
];

/// Half the feeds say that the id orders what the server leaves open.
pub(super) fn app_with_ties(server: &'static Server, story: &str, ties: bool) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    SMALL.make(&mut database.connect(), &mut Random(5));
    let mut settings = settings_in(&database);
    if ties {
        settings = settings.replace("name = \"home\"", "name = \"home\"\nties = \"id\"");
    }
    let proxy = served(server, &database, "home", &settings);
    (database, proxy)
}

/// A list of ids: some twice, in any order, some of no message.
fn ids(random: &mut Random) -> String {
    let several = 1 + random.below(6);
    let one = |_| (2_900 + random.below(130)).to_string();
    (0..several).map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn rows_by_their_ids_are_the_servers_whatever_changes_between_them() {
    on_each_server(|server| {
        let ties = server.kind() == ServerKind::Mariadb;
        let (database, proxy) = app_with_ties(server, "idlists", ties);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let (mut other, mut random) = (database.connect(), Random(51));
        for statement in &STATEMENTS[..10] {
            let list = "2950, 2941, 2933, 2950, 2921, 2911";
            kept(&proxy, &mut twin, &statement.replace("{ids}", list));
        }
        let prepared = EXECUTED.map(|text| twin.prepare(text));
        for statement in prepared {
            let before = proxy.counts().of("feeds_kept");
            let begun = Instant::now();
            let values = ["2950", "2941", "2933", "2921"].map(Some);
            while proxy.counts().of("feeds_kept") == before {
                twin.execute(statement, &values);
                assert!(
                    begun.elapsed() < Duration::from_secs(120),
                    "{}",
                    proxy.log()
                );
            }
        }
        let before = proxy.counts();
        for turn in 0..150 {
            change_row_image(&mut other, turn);
            other.query(&change(&mut random, turn));
            let list = ids(&mut random);
            for statement in STATEMENTS {
                for _ in 0..2 {
                    twin.run(&statement.replace("{ids}", &list));
                }
                if turn % 5 == 0 {
                    twin.run(random.pick::<&str>(&BEHIND));
                }
            }
            for statement in prepared {
                let values: Vec<String> = (0..4)
                    .map(|_| (2_900 + random.below(130)).to_string())
                    .collect();
                let values: Vec<Option<&str>> = values.iter().map(|id| Some(&**id)).collect();
                for _ in 0..2 {
                    twin.execute(statement, &values);
                }
            }
        }
        let counts = proxy.counts();
        let kept = counts.of("feeds_kept") - before.of("feeds_kept");
        assert!(kept > 300, "{counts:?}");
        eprintln!("{kept} kept: {counts:?}");
        for statement in [
            "ALTER TABLE statuses ADD COLUMN extra INT NULL",
            "DELETE FROM profiles WHERE id < 9",
            "TRUNCATE TABLE statuses",
        ] {
            other.ok(statement);
            for statement in STATEMENTS.iter().chain(&STATEMENTS) {
                twin.run(&statement.replace("{ids}", "2950, 2941, 2933"));
            }
        }
    });
}

/// Without an order the server reads by the primary key, whatever other indexes there are and however many rows.
#[test]
fn rows_without_an_order_come_as_the_server_reads_them() {
    on_each_server(|server| {
        let (database, proxy) = app_with_ties(server, "idorder", false);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut root = database.connect();
        let mut random = Random(52);
        let texts = [
            "SELECT * FROM statuses WHERE id IN ({ids})",
            "SELECT profile_id, caption FROM statuses WHERE id IN ({ids})",
            "SELECT id FROM statuses WHERE id IN ({ids})",
            "SELECT id, kind, likes FROM statuses WHERE id IN ({ids}) AND visibility = 'public'",
            "SELECT id, created_at FROM statuses WHERE id IN ({ids})",
            "SELECT id, caption FROM statuses WHERE id IN ({ids}) AND profile_id IN (1, 2, 3)",
        ];
        for (change, is_known) in [
            ("DO 1", true),
            (
                "ALTER TABLE statuses ADD KEY wide (likes, kind, visibility)",
                true,
            ),
            ("DELETE FROM statuses WHERE id % 7 <> 3", true),
            ("DELETE FROM statuses WHERE id < 2000", true),
            (
                "ALTER TABLE statuses DROP KEY wide, ADD KEY (visibility, likes DESC)",
                true,
            ),
            ("ALTER TABLE statuses ADD KEY (caption(5))", false),
            (
                "ALTER TABLE statuses PARTITION BY HASH (id) PARTITIONS 4",
                false,
            ),
        ] {
            root.query(change);
            root.query("ANALYZE TABLE statuses");
            if is_known {
                kept(&proxy, &mut twin, &texts[0].replace("{ids}", "2901, 2908"));
            }
            for _ in 0..40 {
                let several = [2, 3, 20, 400][random.below(4) as usize];
                let list: Vec<String> = (0..several)
                    .map(|_| (1 + random.below(3_000)).to_string())
                    .collect();
                for text in texts {
                    for _ in 0..2 {
                        twin.run(&text.replace("{ids}", &list.join(",")));
                    }
                }
            }
        }
        let counts = proxy.counts();
        assert!(counts.of("feeds_kept") > 300, "{counts:?}");
    });
}
