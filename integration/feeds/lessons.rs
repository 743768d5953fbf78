//! Many statements of a new form at once, as after a restart: one is relayed, and its reply provides the metadata sample for the others.

use std::time::{Duration, Instant};

use super::narrowed::narrowed;
use super::rules::{LISTED, app};
use crate::kit::servers::on_each_quiet_server;

const CLIENTS: u64 = 8;
/// A statement of a new form.
const FIRST: &str = "SELECT id, caption, profile_id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 4";
const WHY: &str = "SHOW HEADWATER WHY FOR ";

#[test]
fn one_of_many_that_come_at_once_teaches_the_others() {
    // Changes by other tests on a server may have a form examined again, and relayed until then.
    on_each_quiet_server(|server| {
        let (database, proxy) = app(server, "feedlesson");
        let mut clients: Vec<_> = (0..CLIENTS)
            .map(|_| proxy.login(&database.login()))
            .collect();
        // The authors are in memory, and the sessions' state is known.
        for client in &mut clients {
            narrowed(&proxy, client, LISTED);
        }
        // `SHOW HEADWATER WHY` examines the form for its client only: it takes no metadata sample, and no other client waits for it.
        let why = clients[0].rows(&format!("{WHY}{FIRST}"));
        assert_eq!(why[0][0].as_deref(), Some("server"), "{why:?}");

        let mut root = database.connect();
        let expected = root.column(FIRST);
        let before = proxy.counts();
        // The lock makes the sampling statement as slow as one that is expensive for the server.
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
        // If sampling takes longer than the others wait, one more statement is relayed.
        let most = 1 + begun.elapsed().as_secs();
        assert!(learned <= most, "{learned} of {most}: {counts:?}");
        // Some statements may have come while the form was examined again.
        let answered = counts.feeds_answered() - before.feeds_answered();
        assert!(answered >= CLIENTS / 2, "{counts:?}");
    });
}
