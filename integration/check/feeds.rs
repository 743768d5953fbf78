//! Whether each feed is served, and how to fix it if not.

use super::{check, only_in};
use crate::kit::database::Database;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_each_quiet_server;

fn settings(database: &Database) -> String {
    let name = database.name();
    format!(
        "{}\n[[feed]]\nname = 'home'\ndatabase = '{name}'\n[feed.message]\ntable = 'message'\nauthor = 'user_id'\n\
         [feed.follow]\ntable = 'follower'\nreader = 'user_id'\nauthor = 'follower_id'\n",
        only_in(name)
    )
}

#[test]
fn each_feed_is_told_to_be_served_or_what_would_mend_it() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "checkedfeed");
        let settings = settings(&database);
        let feed = format!("feed home, database {}", database.name());
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(checked.status, 0);
        checked.says(&format!("{feed}: its SELECTs are narrowed"));
        checked.says("Every feed is served.");

        let mut root = database.connect();
        root.ok("ALTER TABLE message DROP INDEX user_id_id");
        root.ok("ALTER TABLE follower DROP PRIMARY KEY");
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(checked.status, 1);
        checked.says(&format!("{feed}: relayed"));
        checked.says("ALTER TABLE `message` ADD INDEX (`user_id`)");
        checked.says("ALTER TABLE `follower` ADD INDEX (`user_id`)");
        checked.says("0 of 1 feeds are served.");

        root.ok("ALTER TABLE message ADD INDEX (user_id)");
        // Follows need not be unique.
        root.ok("ALTER TABLE follower ADD INDEX (user_id)");
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        checked.says(&format!("{feed}: its SELECTs are narrowed"));

        let elsewhere = settings.replace("'message'", "'no_such_table'");
        let checked = check(server.addr(), &elsewhere, ROOT_SERVICE);
        assert_eq!(checked.status, 1);
        checked.says("there is no table no_such_table, or the service account may not see it");
    });
}
