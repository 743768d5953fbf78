//! A database name forges log lines: no output contains it unescaped.

use super::http::Admin;
use crate::check::check;
use crate::kit::database::fill;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::warm;

const CALL: &str = "CALL fetch_timeline_ids(1)";
const FEED: &str = "
[[feed]]
name = 'home'
message = { table = 'message', author = 'user_id' }
follow = { table = 'follower', reader = 'user_id', author = 'follower_id' }
";

/// Two names: one with line breaks and colour codes, one with every other control character that a name may contain.
fn names() -> [String; 2] {
    let controls: String = ('\u{1}'..='\u{1f}').chain(['\u{7f}']).collect();
    [
        "tl\n2026-01-01T00:00:00.0Z ERROR forged \u{1b}[31m\r".to_owned() + "x",
        format!("c{controls}ERROR forged"),
    ]
}

/// True for characters that are not visible as themselves.
fn is_hidden(letter: char) -> bool {
    letter.is_control() && letter != '\n'
}

#[test]
fn nobody_forges_a_line_by_the_name_of_a_database() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut root = WireClient::connect(server.addr());
            for name in names() {
                root.ok(&format!("CREATE DATABASE `{name}`"));
                fill(&mut WireClient::login(
                    server.addr(),
                    &Login::default().database(&name),
                ));
            }
            for feed in ["", FEED] {
                let checked = check(server.addr(), feed, ROOT_SERVICE);
                assert!(checked.report.contains("tl\\n2026"), "{}", checked.report);
                assert!(!checked.report.contains(is_hidden), "{:?}", checked.report);
            }
            for format in ["text", "json"] {
                let flags = [ROOT_SERVICE, &["--log-format", format]].concat();
                let (proxy, admin) = Admin::beside(server.addr(), "", &flags);
                let mut client = proxy.login(&Login::default());
                for name in names() {
                    let mut client = proxy.login(&Login::default().database(&name));
                    warm(&proxy, &mut client, CALL);
                }
                // A statement form contains forged text too.
                let forged = "SELECT id AS `a\nERROR forged\u{1b}[31m` FROM message m JOIN follower f ON f.follower_id = m.user_id";
                for name in names() {
                    let mut client = proxy.login(&Login::default().database(&name));
                    client.query(&format!(
                        "{forged} WHERE f.user_id = 1 ORDER BY m.id DESC LIMIT 3"
                    ));
                }
                proxy.counts_line();
                let printed = proxy.output();
                assert!(!printed.contains(is_hidden), "{printed:?}");
                assert!(!printed.contains("\nERROR forged"), "{printed}");
                let log = proxy.log();
                assert!(log.matches("ERROR forged").count() >= 2, "{log}");
                assert!(!log.contains(is_hidden), "{log:?}");
                for line in log.lines() {
                    match format {
                        "json" => drop(serde_json::from_str::<serde_json::Value>(line).unwrap()),
                        _ => assert!(
                            !line.contains("Z ERROR forged") || line.contains("tl\\n2026"),
                            "{line}"
                        ),
                    }
                }
                let mut told = Vec::new();
                for table in ["FEEDS", "MEMORY", "STATUS", "STATEMENTS", "SESSIONS"] {
                    let rows = client.rows(&format!("SHOW HEADWATER {table}"));
                    told.extend(rows.into_iter().flatten().flatten());
                }
                assert!(
                    told.iter().any(|cell| cell.contains("tl\\n2026")),
                    "{told:?}"
                );
                assert!(
                    !told.iter().any(|cell| cell.contains(char::is_control)),
                    "{told:?}"
                );
                for path in ["/metrics", "/ready", "/accelerating"] {
                    let answer = admin.get(path);
                    assert!(!answer.body.contains(is_hidden), "{path}: {answer:?}");
                    assert!(
                        !answer.body.lines().any(|line| line.starts_with("2026")),
                        "{path}: {answer:?}"
                    );
                }
                for path in [
                    "feeds", "memory", "status", "health", "sessions", "shadow", "hottest",
                ] {
                    let answer = admin.get(&format!("/api/{path}"));
                    let forged = answer.body.contains("\\u00") || answer.body.contains(is_hidden);
                    assert!(
                        !forged && !answer.body.contains("tl\\n2026"),
                        "{path}: {answer:?}"
                    );
                }
            }
        },
    );
}
