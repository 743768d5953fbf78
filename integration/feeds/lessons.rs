//! Many statements of one kind that come at once, as behind a restart: one goes as it is, and teaches the others.

use std::time::{Duration, Instant};

use super::narrowed::narrowed;
use super::rules::{LISTED, app};
use crate::kit::servers::on_each_quiet_server;

const CLIENTS: u64 = 8;
/// Of a form that has not come before.
const FIRST: &str = "SELECT id, caption, profile_id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 4";
const WHY: &str = "SHOW HEADWATER WHY FOR ";

#[test]
fn one_of_many_that_come_at_once_teaches_the_others() {
    // What others change on a server may have a form looked at again, and relayed until then.
    on_each_quiet_server(|server| {
        let (database, proxy) = app(server, "feedlesson");
        let mut clients: Vec<_> = (0..CLIENTS)
            .map(|_| proxy.login(&database.login()))
            .collect();
        // Memory has the authors, and sessions are known.
        for client in &mut clients {
            narrowed(&proxy, client, LISTED);
        }
        // Its form is looked at for the one who asks; nothing is learned by that, and nobody waits for it.
        let why = clients[0].rows(&format!("{WHY}{FIRST}"));
        assert_eq!(why[0][0].as_deref(), Some("server"), "{why:?}");

        let mut root = database.connect();
        let expected = root.column(FIRST);
        let before = proxy.counts();
        // While it is, a statement takes as long as one that the server finds hard.
        root.ok("LOCK TABLES statuses WRITE");
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let expected = &expected;
            for client in &mut clients {
                scope.spawn(move || assert_eq!(&client.column(FIRST), expected));
            }
            std::thread::sleep(Duration::from_millis(300));
            root.ok("UNLOCK TABLES");
        });
        let counts = proxy.counts();
        let rose = |name| counts.of(name) - before.of(name);
        let learned = rose("feeds_learned");
        // Where that takes longer than others wait, one more goes as it is.
        let most = 1 + begun.elapsed().as_secs();
        assert!(learned <= most, "{learned} of {most}: {counts:?}");
        // Some may have come while the form was looked at again.
        let answered = counts.feeds_answered() - before.feeds_answered();
        assert!(answered >= CLIENTS / 2, "{counts:?}");
    });
}
