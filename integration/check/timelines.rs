//! The verdict on each call of each definition in each database.

use super::{check, only_in};
use crate::kit::database::Database;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_each_quiet_server;

#[test]
fn each_call_is_told_what_answers_it_and_why() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "verdicts");
        let settings = only_in(database.name());
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(
            (checked.status, checked.words()),
            (0, vec!["memory", "memory", "memory"])
        );
        checked.says(&format!("definition classic, database {}", database.name()));
        checked.says("the procedure is as known");

        let mut root = database.connect();
        root.ok("DROP PROCEDURE fetch_timeline_ids");
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(
            (checked.status, checked.words()),
            (1, vec!["lookups", "memory", "memory"])
        );
        checked.says("there is no procedure: the definition is served, by lookups");
        root.ok("CREATE PROCEDURE fetch_timeline_ids(IN reader int unsigned) SELECT reader");
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(
            (checked.status, checked.words()),
            (1, vec!["relay", "memory", "memory"])
        );
        checked.says("2 of 3 calls are answered from memory.");

        root.ok("CREATE TABLE author (id int unsigned NOT NULL PRIMARY KEY) ENGINE=InnoDB");
        root.ok(
            "ALTER TABLE follower ADD CONSTRAINT of_reader FOREIGN KEY (user_id) REFERENCES author (id) \
             ON DELETE CASCADE",
        );
        root.ok(
            "ALTER TABLE message ADD CONSTRAINT of_author FOREIGN KEY (user_id) REFERENCES author (id) \
             ON UPDATE CASCADE",
        );
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(
            (checked.status, checked.words()),
            (1, vec!["relay", "lookups", "lookups"])
        );
        checked.says("`of_author` of `message` changes its rows by ON UPDATE CASCADE");
        checked.says("`of_reader` of `follower` changes its rows by ON DELETE CASCADE");

        root.ok("DROP TABLE follower");
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(
            (checked.status, checked.words()),
            (1, vec!["relay", "relay", "relay"])
        );
        checked.says("there is no table `follower`");
        assert!(checked.missing().is_empty());
    });
}

#[test]
fn a_definition_that_is_found_nowhere_is_named() {
    on_each_quiet_server(|server| {
        let settings =
            "[[definition]]\nname = \"nobodys\"\n[definition.message]\ntable = \"hw_none\"";
        let checked = check(server.addr(), settings, ROOT_SERVICE);
        assert_eq!((checked.status, checked.words()), (1, vec![]));
        checked.says("definition nobodys: no database that the account may see has the tables follower and hw_none");
        checked.says("Definitions found nowhere: 1 of 1.");
    });
}

#[test]
fn every_database_with_the_tables_is_told_of() {
    on_each_quiet_server(|server| {
        let one = Database::classic(server, "one");
        let two = Database::classic(server, "two");
        let settings = only_in(one.name()) + &only_in(two.name());
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        assert_eq!(checked.words(), ["memory"; 6]);
        assert_eq!(checked.grants().len(), 8);
        // The account sees these, whatever other databases exist.
        let checked = check(server.addr(), "", ROOT_SERVICE);
        for database in [&one, &two] {
            checked.says(&format!("definition classic, database {}", database.name()));
        }
    });
}
