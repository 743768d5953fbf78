//! A session that waits for a row lock keeps no rows out of memory, however long it waits.

use std::thread;

use super::kept::{PAGES, kept};
use super::rules::app;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;
use crate::kit::wait_until;

const WAITERS: &str = "SELECT COUNT(*) FROM information_schema.INNODB_TRX \
                       JOIN information_schema.PROCESSLIST ON ID = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND DB = DATABASE()";

#[test]
fn rows_are_cached_while_a_session_waits_for_a_lock() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "lockwaits");
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(&proxy, &mut twin, PAGES[0]);
        let (mut holder, mut other) = (database.connect(), database.connect());
        holder.ok("CREATE TABLE job (id INT PRIMARY KEY, done INT)");
        holder.ok("INSERT INTO job VALUES (1, 0)");
        holder.ok("BEGIN");
        holder.ok("UPDATE job SET done = 1");
        let mut waiter = database.connect();
        waiter.ok("SET innodb_lock_wait_timeout = 600");
        let waits = thread::spawn(move || waiter.ok("UPDATE job SET done = 2"));
        wait_until("a session waits for the lock", || {
            other.column(WAITERS) == ["1"]
        });
        // A change of rows that moves no message: no row in memory proves that it is readable.
        other.ok("UPDATE statuses SET likes = likes + 1");
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
        }
        assert!(!waits.is_finished());
        holder.ok("ROLLBACK");
        waits.join().unwrap();
        assert_eq!(other.column("SELECT done FROM job"), ["2"]);
    });
}
