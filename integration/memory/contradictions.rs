//! A change that was not logged shows when a log event contradicts memory: memory is emptied then, and the log reports it.

use super::stage::{CALL, Stage, page};
use super::warm;
use crate::kit::servers::on_servers_of_its_own;

#[test]
fn a_logged_change_of_a_row_that_was_never_logged_empties_memory_and_is_named_and_counted() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            stage.post(1);
            assert_eq!(stage.page(), page(&mut stage.root));
            let counted = |stage: &Stage| stage.proxy.counts().of("memory_contradictions");
            let logged = [
                "DELETE FROM message WHERE id = 2",
                "UPDATE message SET user_id = 2 WHERE id = 3",
                "DELETE FROM follower WHERE user_id = 1 AND follower_id = 4",
            ];
            let unlogged = [
                "INSERT INTO message VALUES (2, 2, 'x')",
                "UPDATE message SET user_id = 4 WHERE id = 3",
                "INSERT INTO follower VALUES (1, 4)",
            ];
            for (number, (unlogged, logged)) in unlogged.iter().zip(logged).enumerate() {
                stage.post(3 + 10 * number as u64);
                assert_eq!(stage.page(), page(&mut stage.root));
                warm(&stage.proxy, &mut stage.client, CALL);
                let before = counted(&stage);
                stage.root.ok("SET sql_log_bin = 0");
                stage.root.ok(unlogged);
                stage.root.ok("SET sql_log_bin = 1");
                stage.root.ok(logged);
                stage.page();
                warm(&stage.proxy, &mut stage.client, CALL);
                let log = stage.proxy.log();
                assert_eq!(counted(&stage), before + 1, "{logged}\n{log}");
                assert!(log.contains("contradict each other"), "{log}");
                assert_eq!(stage.page(), page(&mut stage.root), "{logged}");
            }
        },
    );
}
