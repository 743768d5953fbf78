//! The API: its reports are correct, and `docs/inspect.md` documents each key.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::health::let_follow;
use super::http::Admin;
use super::scene::{NAME, Scene, told};
use crate::kit::database::{Database, one_message};
use crate::kit::patience;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::{on_each_quiet_server, on_each_server};

const PAGE: &str = include_str!("../../docs/inspect.md");
/// Tables that `SHOW HEADWATER` shows as well.
const TABLES: [&str; 7] = [
    "status",
    "feeds",
    "statements",
    "sessions",
    "memory",
    "settings",
    "upstreams",
];

#[test]
fn each_path_and_key_is_documented_and_there() {
    on_each_quiet_server(|server| {
        let mut scene = Scene::with_a_feed(server, &["--shadow", "1"]);
        let admin = scene.admin;
        let tried = told(admin, &scene.trial("1"));
        scene.differ();
        let deadline = patience();
        while told(admin, "/api/history")["samples"] == Value::Array(Vec::new())
            || told(admin, "/api/shadow")["last"].is_null()
        {
            assert!(Instant::now() < deadline, "no sample, or no difference");
            std::thread::sleep(Duration::from_millis(50));
        }
        let paths = told(admin, "/api");
        let documented: Vec<&str> = PAGE.lines().filter_map(path_of).collect();
        for path in paths.as_array().unwrap() {
            let path = path.as_str().unwrap();
            let Some(name) = path.strip_prefix("/api/") else {
                continue;
            };
            if TABLES.contains(&name) {
                assert!(PAGE.contains(&format!("`{path}`")), "{path}");
                let first = told(admin, &format!("{path}?most=1"));
                assert_eq!(first.as_array().unwrap().len(), 1, "{first}");
                let mut columns = BTreeSet::new();
                keys(&first, &mut columns);
                assert_eq!(columns, columns_in_docs(name), "{first}");
                continue;
            }
            assert!(
                documented.contains(&path),
                "{path} is not in docs/inspect.md"
            );
            let value = match path {
                "/api/try" => tried.clone(),
                "/api/reload" => serde_json::from_str(&admin.post(path, "").body).unwrap(),
                _ => told(admin, path),
            };
            let mut there = BTreeSet::new();
            keys(&value, &mut there);
            assert_eq!(there, keys_in_docs(path), "{path}: {value}");
        }
        for path in documented.into_iter().filter(|path| *path != "/api/status") {
            let known = paths.as_array().unwrap().iter().any(|it| it == path);
            assert!(known, "{path} is in docs/inspect.md, and not there");
        }
    });
}

#[test]
fn what_it_says_is_so() {
    on_each_quiet_server(|server| {
        let mut scene = Scene::of(server, &["--shadow", "1"]);
        let admin = scene.admin;
        let lamp = told(admin, "/api/health");
        assert_eq!(
            (&lamp["state"], &lamp["reason"], &lamp["ready"]),
            (&"memory".into(), &"".into(), &true.into())
        );

        let tried = told(admin, &scene.trial("1"));
        assert_eq!(tried["call"], "CALL `fetch_timeline_ids`(1)");
        assert_eq!(tried["memory"]["ids"], Value::from(vec![10]), "{tried}");
        assert_eq!(tried["memory"]["from"], "memory");
        assert_eq!(tried["server"]["ids"], Value::from(vec![10]));
        assert_eq!(tried["equal"], true);
        // A reader who is not in memory is loaded, as for a call; no author has messages up to 9.
        let other = told(admin, &scene.trial("77"));
        assert_eq!(
            (&other["equal"], &other["memory"]["from"]),
            (&true.into(), &"loaded".into()),
            "{other}"
        );
        let bounded = told(admin, &format!("{}&bound=9", scene.trial("1")));
        assert_eq!(
            (&bounded["equal"], &bounded["server"]["ids"]),
            (&true.into(), &Value::Array(vec![])),
            "{bounded}"
        );
        for (path, error) in [
            (
                "/api/try?definition=none&database=x&reader=1".to_owned(),
                "no definition of that name",
            ),
            (
                scene.trial("1").replace(scene.database.name(), "nowhere"),
                "it is relayed in this database: ",
            ),
            (scene.trial("-1"), "reader has to be a whole number"),
        ] {
            let answer = told(admin, &path);
            assert!(
                answer["error"].as_str().unwrap().contains(error),
                "{answer}"
            );
        }
        let foreign = admin.get_with(&scene.trial("1"), "Sec-Fetch-Site: cross-site\r\n");
        assert_eq!(foreign.status, 403, "{foreign:?}");

        for _ in 0..64 {
            scene.client.ok("CALL fetch_timeline_ids(1)");
        }
        let hottest = told(admin, "/api/hottest");
        let [reader, author] = ["readers", "authors"].map(|of| &hottest[of][0]);
        assert_eq!(
            (&reader["id"], &reader["definition"]),
            (&1.into(), &NAME.into()),
            "{hottest}"
        );
        assert_eq!(
            (&author["id"], &author["calls"]),
            (&2.into(), &hottest["of"]),
            "{hottest}"
        );

        assert!(told(admin, "/api/shadow")["last"].is_null());
        scene.differ();
        let deadline = patience();
        let last = loop {
            let last = told(admin, "/api/shadow")["last"].take();
            if !last.is_null() {
                break last;
            }
            assert!(Instant::now() < deadline);
        };
        assert_eq!(last["headwater"]["ids"], Value::from(vec![10]), "{last}");
        assert_eq!(
            last["procedure"]["ids"],
            Value::from(vec![20, 10]),
            "{last}"
        );
        // The only definition is relayed now.
        let lamp = told(admin, "/api/health");
        assert_eq!(
            (&lamp["state"], &lamp["reason"]),
            (&"relaying".into(), &"nothing_served".into()),
            "{lamp}"
        );
        // Memory is still wrong, and a trial reports that.
        let tried = told(admin, &scene.trial("1"));
        assert_eq!(tried["equal"], false, "{tried}");
        assert!(
            tried["why"].as_str().unwrap().contains("sql_log_bin"),
            "{tried}"
        );
    });
}

#[test]
fn the_lamp_names_what_cures() {
    on_each_server(|server| {
        let cases: [(&str, &[&str], &str, &str); 3] = [
            ("", &["--relay-only"], "switched_off", "accelerate = true"),
            ("", &[], "no_service_account", "headwater check "),
            (
                "[index]\nmemory_bytes = 0\n",
                ROOT_SERVICE,
                "no_memory",
                "index.memory_bytes = ",
            ),
        ];
        for (settings, flags, reason, cure) in cases {
            let (_proxy, admin) = Admin::beside(server.addr(), settings, flags);
            let lamp = told(admin, "/api/health");
            assert_eq!(lamp["reason"], reason, "{lamp}");
            assert_ne!(lamp["state"], "memory", "{lamp}");
            assert!(lamp["cure"].as_str().unwrap().starts_with(cure), "{lamp}");
        }
        // A right is missing: the reply contains the statement that grants it.
        let mut root = server.connect();
        let user = "hw_lamp";
        root.ok(&format!("DROP USER IF EXISTS {user}@'%'"));
        root.ok(&format!("CREATE USER {user}@'%' IDENTIFIED BY ''"));
        let (_proxy, admin) = Admin::beside(server.addr(), "", &["--service-user", user]);
        admin.wait_for("/accelerating", 503, "right: ");
        let lamp = told(admin, "/api/health");
        let cure = lamp["cure"].as_str().unwrap().to_owned();
        assert!(
            cure.starts_with("GRANT ") && cure.ends_with(" TO `hw_lamp`@`HOST`;"),
            "{lamp}"
        );
        root.ok(&cure.replace("HOST", "%"));
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

#[test]
fn a_trial_without_the_right_to_compare_shows_memorys_page_and_names_the_right() {
    on_each_server(|server| {
        let database = Database::classic(server, "trial");
        let name = database.name();
        let mut root = database.connect();
        one_message(&mut root);
        let user = database.account("SELECT", "").user;
        let_follow(server, &mut root, &user, name);
        root.ok(&format!("REVOKE EXECUTE ON {name}.* FROM {user}@'%'"));
        let (_proxy, admin) = Admin::beside(server.addr(), "", &["--service-user", &user]);
        admin.wait_for("/accelerating", 200, "accelerating\n");
        let path = format!("/api/try?definition=classic&database={name}&reader=1");
        let deadline = patience();
        let tried = loop {
            let tried = told(admin, &path);
            if tried["memory"]["ids"] == Value::from(vec![10]) || Instant::now() > deadline {
                break tried;
            }
        };
        assert_eq!(tried["memory"]["ids"], Value::from(vec![10]), "{tried}");
        assert!(
            tried["server"].is_null() && tried["equal"].is_null(),
            "{tried}"
        );
        let right = format!("EXECUTE ON PROCEDURE `{name}`.`fetch_timeline_ids`");
        assert!(tried["why"].as_str().unwrap().ends_with(&right), "{tried}");
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// Keys in a path's section of the documentation.
fn keys_in_docs(path: &str) -> BTreeSet<String> {
    let lines = PAGE.lines().skip_while(|line| path_of(line) != Some(path));
    cells(lines.skip(1))
}

/// Documented columns of a table of `SHOW HEADWATER`.
fn columns_in_docs(table: &str) -> BTreeSet<String> {
    let table = table.to_uppercase();
    let is_its = |line: &&str| {
        let heading = line.strip_prefix("### ");
        heading.is_some_and(|names| names.split(", ").any(|name| name == table))
    };
    cells(PAGE.lines().skip_while(|line| !is_its(line)).skip(1))
}

/// The first cells of the table rows in a section.
fn cells<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let section = lines.take_while(|line| !line.starts_with('#'));
    let cells = section.filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let keys = cells.flat_map(|cell| cell.split(", ").map(|key| key.trim_matches('`').to_owned()));
    keys.collect()
}

fn path_of(heading: &str) -> Option<&str> {
    heading.strip_prefix("## `")?.split(['`', '?']).next()
}

/// Every key at any depth.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}
