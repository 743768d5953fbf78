//! `SHOW HEADWATER WHY FOR` a feed's statement: the explanation agrees with what happens.

use std::time::Instant;

use super::kept::kept;
use super::narrowed::narrowed;
use super::rules::{LISTED, app};
use crate::kit::patience;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;

#[test]
fn what_would_become_of_a_feeds_statement_becomes_of_it() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedwhy");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let why = |twin: &mut Twin, statement: &str| {
            let rows = twin
                .proxied
                .rows(&format!("SHOW HEADWATER WHY FOR {statement}"));
            [0, 1, 4].map(|cell| rows[0][cell].clone().unwrap_or_default())
        };
        // The explanation itself makes Headwater check the template.
        let [from, reason, _] = why(&mut twin, LISTED);
        assert_ne!(reason, "new_template", "{from}");
        // The explanation does not execute the statement.
        assert_eq!(proxy.counts().feeds_answered(), 0);
        narrowed(&proxy, &mut proxy.login(&database.login()), LISTED);
        let [from, reason, feed] = why(&mut twin, LISTED);
        assert!(from.starts_with("memory"), "{from} {reason}");
        assert_eq!((reason.as_str(), feed.as_str()), ("", "home"));
        let deadline = patience();
        while why(&mut twin, LISTED) != ["memory", "", "home"] {
            assert!(Instant::now() < deadline, "{:?}", why(&mut twin, LISTED));
            kept(&proxy, &mut twin, LISTED);
        }
        let count = "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3)";
        kept(&proxy, &mut twin, count);
        database
            .connect()
            .ok("UPDATE statuses SET likes = likes + 1 WHERE profile_id = 2 LIMIT 1");
        // Until that can be read, the number of author 2 cannot be cached.
        let explained = why(&mut twin, count);
        let expected = [
            ["memory and server", "", "home"],
            ["server", "changed_meanwhile", "home"],
        ];
        assert!(
            expected.iter().any(|one| explained == *one),
            "{explained:?}"
        );
        while why(&mut twin, count) != ["memory", "", "home"] {
            assert!(Instant::now() < deadline, "{:?}", why(&mut twin, count));
            kept(&proxy, &mut twin, count);
        }
        for (statement, reason) in [
            ("SELECT * FROM statuses WHERE id = 7", "no_page"),
            ("SELECT COUNT(*) FROM statuses WHERE likes > 5", "authors"),
            (
                "SELECT COUNT(DISTINCT kind) FROM statuses WHERE profile_id IN (1, 2)",
                "count",
            ),
            (
                "SELECT id FROM profiles ORDER BY id DESC LIMIT 3",
                "no_feed",
            ),
            (
                "SELECT RAND(), id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 3",
                "",
            ),
        ] {
            let [from, told, _] = why(&mut twin, statement);
            assert_eq!(from, "server", "{statement}");
            assert!(reason.is_empty() || told == reason, "{statement}: {told}");
        }
        // What the grammar does not know is shown.
        let refused = "SELECT id FROM statuses WHERE profile_id IN (1,2) AND likes + 1 > 0 ORDER BY id DESC LIMIT 3";
        let rows = twin
            .proxied
            .rows(&format!("SHOW HEADWATER WHY FOR {refused}"));
        let (reason, means) = (rows[0][1].clone().unwrap(), rows[0][2].clone().unwrap());
        assert_eq!(reason, "not_plain");
        assert!(
            means.ends_with("; read as far as `+ 1 > 0 ORDER BY id DESC LIMIT 3`"),
            "{means}"
        );
    });
}
