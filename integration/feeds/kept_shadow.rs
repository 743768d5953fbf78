//! The server beside pages of kept rows: whole replies are compared, and what is found to be wrong is not told.

use nix::sys::signal::Signal;

use super::app::{SMALL, settings};
use super::kept::{PAGES, kept, same_rows};
use super::kept_joined;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;

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
        assert_eq!(counts.of("shadow_different"), 0, "{}", proxy.log());

        // Nothing but a comparison can notice this one.
        other.ok("SET sql_log_bin = 0");
        other.ok("UPDATE statuses SET caption = 'unseen' WHERE id > 2900");
        same_rows(&mut twin, PAGES[0]);
        proxy.wait_for_log("a page made of kept rows is not the server's: row 1 is another one");
        let counts = proxy.counts();
        assert_eq!(counts.of("shadow_different"), 1, "{counts:?}");
        for statement in PAGES {
            same_rows(&mut twin, statement);
        }
        assert_eq!(proxy.counts().of("feeds_kept"), counts.of("feeds_kept"));

        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("kept again");
        kept(&proxy, &mut twin, PAGES[0]);
        assert_eq!(proxy.counts().of("shadow_different"), 1);
    });
}
