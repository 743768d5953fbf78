//! Session settings that change what the procedure does, or what its OK contains.

use super::stage::on_each_stage;
use super::transcripts::stories;
use crate::kit::database::classic_on;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient, capability};

stories!(
    "settings":
    a_session_setting_has_the_effect_that_it_has_on_the_procedure,
    a_setting_made_out_of_sight_is_seen,
    a_session_that_makes_calls_is_not_idle,
);

/// MySQL then reports each statement's number, and gives each transaction the number that the client chose.
#[test]
fn what_only_the_server_can_number_is_its_own_to_answer() {
    on_each_stage(|stage| {
        if stage.server.is_mariadb() {
            return;
        }
        let login = Login::default()
            .with(capability::SESSION_TRACK)
            .database(stage.databases[1].name());
        let mut client = stage.proxy.login(&login);
        let call = "CALL fetch_timeline_ids(1)";
        for tracked in ["'*'", "'autocommit,statement_id'"] {
            client.ok(&format!(
                "SET SESSION session_track_system_variables = {tracked}"
            ));
            let before = stage.proxy.counts().of("calls_relayed[session_settings]");
            client.ok(call);
            let after = stage.proxy.counts().of("calls_relayed[session_settings]");
            assert_eq!(after, before + 1);
        }
        client.ok("SET SESSION session_track_system_variables = 'autocommit,sql_mode'");
        client.ok(call);
        stage.owned(1);
        let mut direct = stage.server.connect();
        direct.ok(&format!("USE {}", stage.databases[0].name()));
        direct.ok(call);
        client.ok(call);
        // The server skips the statements of a number that is already used.
        let first = 1 + 2 * u32::from(stage.service);
        for (client, number) in [(&mut direct, first), (&mut client, first + 1)] {
            let uuid = "5ca1ab1e-0000-0000-0000-000000000000";
            client.ok(&format!("SET gtid_next = '{uuid}:{number}'"));
            assert_eq!(client.error(call).code, 1837);
            client.ok("ROLLBACK");
            client.ok("SET gtid_next = AUTOMATIC");
            client.ok(call);
        }
    });
}

/// MariaDB has `enforce_storage_engine` instead of this setting.
#[test]
fn where_the_engine_of_the_result_table_is_disabled_the_server_says_so() {
    let options = |mariadb| match mariadb {
        true => &[][..],
        false => &["--disabled-storage-engines=MEMORY"],
    };
    on_servers_of_its_own(options, |server| {
        let login = classic_on(server.addr(), "tl");
        let proxy = Proxy::start(server.addr(), &[]);
        let mut through = proxy.login(&login);
        let mut direct = WireClient::login(server.addr(), &login);
        for _ in 0..3 {
            let call = "CALL fetch_timeline_ids(1)";
            let [told, expected] = [&mut through, &mut direct].map(|client| client.query(call));
            assert_eq!(told, expected, "{}", proxy.log());
        }
        let counts = proxy.counts();
        let disabled = options(false).len() as u64;
        let relayed = counts.of("calls_relayed[session_settings]");
        assert!(relayed == 0 || relayed == 3 * disabled, "{counts:?}");
        assert_eq!(counts.of("calls_owned") + relayed, 3, "{counts:?}");
    });
}
