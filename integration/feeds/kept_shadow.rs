//! The shadow comparison of cached pages with the server: whole replies are compared, and a wrong page is not sent.

use nix::sys::signal::Signal;

use super::app::{SMALL, settings};
use super::kept::{PAGES, kept, same_rows};
use super::kept_joined;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;
use crate::kit::wire_client::Param;

#[test]
fn a_wrong_page_is_found_and_not_told() {
    on_each_server(|server| {
        let database = Database::empty(server, "keptshadow");
        SMALL.make(&mut database.connect(), &mut Random(5));
        let settings = format!("{}\n[shadow]\nrate = 1\n", settings());
        let proxy = served(server, &database, "home", &settings);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        for statement in PAGES.iter().chain(&kept_joined::PAGES) {
            kept(&proxy, &mut twin, statement);
            same_rows(&mut twin, statement);
        }
        for turn in 0..20 {
            other.ok(&format!(
                "UPDATE statuses SET caption = 'turn {turn}' WHERE id > 2950"
            ));
            other.ok(&format!("UPDATE profiles SET name = 'turn {turn}'"));
            same_rows(&mut twin, PAGES[0]);
            same_rows(&mut twin, kept_joined::PAGES[0]);
        }
        kept(&proxy, &mut twin, PAGES[0]);
        let counts = proxy.counts();
        assert!(counts.of("shadow_same") > 12, "{counts:?}");

        // The client sends an execution's types once: the server must have received them for the comparison and for later executions.
        let listed = "SELECT id, caption FROM statuses WHERE profile_id IN (?, ?, 3) ORDER BY id DESC LIMIT 5";
        let statement = twin.prepare(listed);
        let values = [2, 1].map(|it: u64| Param::new(8, 0, &it.to_le_bytes()));
        twin.execute_with(statement, &values, 0, true);
        for turn in 0..4 {
            let before = proxy.counts().of("shadow_same");
            let mut asked = 0;
            while proxy.counts().of("shadow_same") < before + 10 {
                asked += 1;
                assert!(asked < 4_000, "{:?}", proxy.counts());
                twin.execute_with(statement, &values, 0, asked % 7 == 6);
            }
            other.ok(&format!(
                "UPDATE statuses SET caption = 'again {turn}' WHERE id > 2950"
            ));
            twin.execute_with(statement, &values, 0, false);
        }
        let counts = proxy.counts();
        assert_eq!(counts.of("shadow_different"), 0, "{}", proxy.log());

        // Only a comparison can detect this change.
        kept(&proxy, &mut twin, PAGES[0]);
        let before = proxy.counts().of("shadow_same");
        kept(&proxy, &mut twin, PAGES[0]);
        assert!(proxy.counts().of("shadow_same") > before);
        other.ok("SET sql_log_bin = 0");
        other.ok("UPDATE statuses SET caption = 'unseen' WHERE id > 2900");
        same_rows(&mut twin, PAGES[0]);
        proxy.wait_for_log("a page made of kept rows is not the server's: row 1 is another one");
        let counts = proxy.counts();
        assert_eq!(counts.of("shadow_different"), 1, "{counts:?}");
        for statement in PAGES {
            same_rows(&mut twin, statement);
        }
        twin.execute_with(statement, &values, 0, false);
        assert_eq!(proxy.counts().of("feeds_kept"), counts.of("feeds_kept"));

        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("kept again");
        kept(&proxy, &mut twin, PAGES[0]);
        assert_eq!(proxy.counts().of("shadow_different"), 1);

        // The same holds for an execution.
        let before = proxy.counts().of("shadow_same");
        while proxy.counts().of("shadow_same") < before + 3 {
            twin.execute_with(statement, &values, 0, false);
        }
        other.ok("UPDATE statuses SET caption = 'unseen again' WHERE id > 2900");
        twin.execute_with(statement, &values, 0, false);
        proxy.wait_for_log("a page made of kept rows is not the server's: row 1 is another one");
        assert_eq!(proxy.counts().of("shadow_different"), 2);
    });
}
