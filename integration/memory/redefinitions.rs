//! The log contains a new definition before sessions can see it: the server blocks whoever needs the procedure until then.

use std::time::Duration;

use super::{prepare, warm};
use crate::kit::database::one_message;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::semi_sync::run_told_early;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Answer, WireClient};

const CALL: &str = "CALL fetch_timeline_ids(1)";
/// During a test, Headwater checks definitions and rights only when the log reports a change.
const SETTINGS: &str = "[limits]\nrecheck_ms = 600000\n[privileges]\nttl_s = 600\n";
/// How long commits wait between their log event and their visibility to other sessions.
const WAIT: Duration = Duration::from_millis(1_500);

#[test]
fn a_procedure_is_another_as_soon_as_the_server_says_so() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            one_message(&mut root);
            let proxy = Proxy::configured(server.addr(), SETTINGS, ROOT_SERVICE);
            let mut client = proxy.login(&login);
            warm(&proxy, &mut client, CALL);
            let made = root.rows("SHOW CREATE PROCEDURE fetch_timeline_ids");
            let made = made[0][2].clone().unwrap();
            let other = "CREATE PROCEDURE fetch_timeline_ids(IN reader INT) SELECT 'another'";
            for _ in 0..2 {
                root.ok("DROP PROCEDURE fetch_timeline_ids");
                run_told_early(server, &mut root, other, WAIT);
                let told = client.query(CALL);
                assert!(
                    matches!(&told[..], [Answer::Rows(rows), _] if rows.rows == [[Some("another".to_owned())]]),
                    "{told:?}\n{}",
                    proxy.log()
                );
                root.ok("DROP PROCEDURE fetch_timeline_ids");
                root.ok(&made);
                warm(&proxy, &mut client, CALL);
            }
        },
    );
}
