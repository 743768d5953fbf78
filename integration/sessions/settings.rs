//! Session settings that change what the procedure does, or what its OK says.

use std::thread::sleep;
use std::time::Duration;

use super::stage::{TAIL, on_each_stage};
use crate::kit::database::classic_on;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient, capability};

/// Each changes something; the second one of a pair puts it back.
const SETTINGS: &[[&str; 2]] = &[
    ["SET sql_safe_updates = 1", "SET sql_safe_updates = 0"],
    ["SET sql_select_limit = 3", "SET sql_select_limit = DEFAULT"],
    [
        "SET sql_select_limit = 10",
        "SET sql_select_limit = 18446744073709551615",
    ],
    ["SET max_join_size = 1", "SET max_join_size = DEFAULT"],
    ["SET sql_big_selects = 0", "SET sql_big_selects = 1"],
    [
        "SET max_heap_table_size = 16384",
        "SET max_heap_table_size = DEFAULT",
    ],
    [
        "SET SESSION sql_mode = ''",
        "SET SESSION sql_mode = DEFAULT",
    ],
    [
        "SET SESSION sql_mode = 'ANSI_QUOTES'",
        "SET SESSION sql_mode = DEFAULT",
    ],
    [
        "SET SESSION sql_mode = 'ANSI'",
        "SET SESSION sql_mode = DEFAULT",
    ],
    [
        "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "SET SESSION sql_mode = DEFAULT",
    ],
    [
        "SET SESSION sql_mode = 'NO_UNSIGNED_SUBTRACTION,IGNORE_SPACE'",
        "SET SESSION sql_mode = DEFAULT",
    ],
    [
        "SET SESSION sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
        "SET SESSION sql_mode = DEFAULT",
    ],
    ["SET NAMES latin1", "SET NAMES utf8mb4"],
    [
        "SET character_set_results = NULL",
        "SET character_set_results = utf8mb4",
    ],
    ["SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET NAMES utf8mb4"],
    [
        "SET SESSION session_track_state_change = ON",
        "SET SESSION session_track_state_change = OFF",
    ],
    [
        "SET SESSION session_track_schema = OFF",
        "SET SESSION session_track_schema = ON",
    ],
    ["SET sql_warnings = 1", "SET sql_warnings = 0"],
    ["SET max_error_count = 0", "SET max_error_count = DEFAULT"],
    ["SET sql_notes = 0", "SET sql_notes = 1"],
    ["SET profiling = 1", "SET profiling = 0"],
    ["SET sql_buffer_result = 1", "SET sql_buffer_result = 0"],
    ["SET max_sort_length = 8", "SET max_sort_length = DEFAULT"],
    ["SET sql_auto_is_null = 1", "SET sql_auto_is_null = 0"],
    [
        "SET default_storage_engine = MyISAM",
        "SET default_storage_engine = DEFAULT",
    ],
    [
        "SET default_tmp_storage_engine = InnoDB",
        "SET default_tmp_storage_engine = DEFAULT",
    ],
    ["SET big_tables = 1", "SET big_tables = 0"],
    [
        "SET low_priority_updates = 1",
        "SET low_priority_updates = 0",
    ],
    [
        "SET SESSION optimizer_switch = 'derived_merge=off'",
        "SET SESSION optimizer_switch = DEFAULT",
    ],
    [
        "SET SESSION sql_mode = 'ORACLE'",
        "SET SESSION sql_mode = DEFAULT",
    ],
    [
        "SET SESSION sql_require_primary_key = ON",
        "SET SESSION sql_require_primary_key = OFF",
    ],
    [
        "SET SESSION max_execution_time = 100000",
        "SET SESSION max_execution_time = 0",
    ],
    [
        "SET SESSION max_statement_time = 100",
        "SET SESSION max_statement_time = 0",
    ],
    [
        "SET SESSION transaction_read_only = 1",
        "SET SESSION transaction_read_only = 0",
    ],
    [
        "SET SESSION tx_read_only = 1",
        "SET SESSION tx_read_only = 0",
    ],
    [
        "SET SESSION binlog_format = STATEMENT",
        "SET SESSION binlog_format = ROW",
    ],
    [
        "SET @@max_sp_recursion_depth = 1",
        "SET @@max_sp_recursion_depth = 0",
    ],
    [
        "SET SESSION windowing_use_high_precision = OFF",
        "SET SESSION windowing_use_high_precision = ON",
    ],
    [
        "SET SESSION group_concat_max_len = 4",
        "SET SESSION group_concat_max_len = DEFAULT",
    ],
    [
        "SET SESSION div_precision_increment = 0",
        "SET SESSION div_precision_increment = DEFAULT",
    ],
    [
        "SET SESSION show_create_table_verbosity = 1",
        "SET SESSION show_create_table_verbosity = 0",
    ],
    [
        "SET SESSION sql_quote_show_create = 0",
        "SET SESSION sql_quote_show_create = 1",
    ],
    [
        "SET SESSION information_schema_stats_expiry = 0",
        "SET SESSION information_schema_stats_expiry = DEFAULT",
    ],
    [
        "SET SESSION eq_range_index_dive_limit = 1",
        "SET SESSION eq_range_index_dive_limit = DEFAULT",
    ],
    [
        "SET SESSION range_optimizer_max_mem_size = 1",
        "SET SESSION range_optimizer_max_mem_size = DEFAULT",
    ],
    [
        "SET SESSION max_seeks_for_key = 1",
        "SET SESSION max_seeks_for_key = DEFAULT",
    ],
    [
        "SET SESSION join_cache_level = 0",
        "SET SESSION join_cache_level = DEFAULT",
    ],
    [
        "SET SESSION time_zone = '+05:00'",
        "SET SESSION time_zone = DEFAULT",
    ],
    [
        "SET SESSION lc_messages = 'de_DE'",
        "SET SESSION lc_messages = DEFAULT",
    ],
    [
        "SET SESSION query_cache_type = OFF",
        "SET SESSION query_cache_type = DEFAULT",
    ],
    [
        "SET SESSION column_compression_threshold = 1",
        "SET SESSION column_compression_threshold = DEFAULT",
    ],
    [
        "SET SESSION tmp_memory_table_size = 0",
        "SET SESSION tmp_memory_table_size = DEFAULT",
    ],
    [
        "SET SESSION enforce_storage_engine = InnoDB",
        "SET SESSION enforce_storage_engine = DEFAULT",
    ],
    [
        "SET SESSION enforce_storage_engine = MEMORY",
        "SET SESSION enforce_storage_engine = DEFAULT",
    ],
    [
        "SET SESSION max_session_mem_used = 200000",
        "SET SESSION max_session_mem_used = DEFAULT",
    ],
    [
        "SET SESSION in_predicate_conversion_threshold = 2",
        "SET SESSION in_predicate_conversion_threshold = DEFAULT",
    ],
    [
        "SET SESSION in_predicate_conversion_threshold = 0",
        "SET SESSION in_predicate_conversion_threshold = DEFAULT",
    ],
    [
        "SET SESSION require_row_format = 1",
        "SET SESSION require_row_format = 0",
    ],
    [
        "SET SESSION updatable_views_with_limit = 0",
        "SET SESSION updatable_views_with_limit = DEFAULT",
    ],
];

#[test]
fn a_session_setting_has_the_effect_that_it_has_on_the_procedure() {
    on_each_stage(|stage| {
        // MySQL tells of settings that change where that is agreed on; MariaDB of others.
        let track = [0, capability::SESSION_TRACK][usize::from(stage.service)];
        let mut twin = stage.twin_of(&Login::default().with(track));
        for [change, restore] in SETTINGS {
            twin.run("CALL fetch_timeline_ids(1)");
            // Some are known to one server alone, some need what the other one lacks.
            twin.run(change);
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
            twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
            twin.run("CALL fetch_timeline_ids2(1, 300)");
            twin.run_unordered("SELECT id FROM fetch_timeline_tt");
            twin.run_unordered("SELECT * FROM max_ids_of_followers");
            twin.run("SHOW WARNINGS");
            twin.run(restore);
            twin.run("CALL fetch_timeline_ids(2)");
            twin.run("SHOW CREATE TABLE fetch_timeline_tt");
        }
        let counts = stage.proxy.counts();
        assert!(
            counts.of("calls_owned") >= 2 * SETTINGS.len() as u64,
            "{counts:?}"
        );
    });
}

#[test]
fn a_setting_made_out_of_sight_is_seen() {
    on_each_stage(|stage| {
        stage.aside("CREATE PROCEDURE {db}.careful() SET sql_safe_updates = 1");
        let mut twin = stage.twin();
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("CALL careful()");
        assert_eq!(twin.error("CALL fetch_timeline_ids(1)"), 1175);
        twin.run("PREPARE careless FROM 'SET sql_safe_updates = 0'");
        twin.run("EXECUTE careless");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("CALL fetch_timeline_ids(1)");
        let statement = twin.prepare("SET sql_safe_updates = 1");
        twin.execute(statement, &[]);
        assert_eq!(twin.error("CALL fetch_timeline_ids(1)"), 1175);
        twin.run("SET sql_safe_updates = 0; SELECT 1");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        stage.owned(4);
    });
}

/// MySQL tells each statement's number then, and gives each transaction the one that the client chose.
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
        // A number that was given already has its statements left out.
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

/// Calls from memory ask the server nothing, but it has to hear of the session.
#[test]
fn a_session_that_makes_calls_is_not_idle() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("SET wait_timeout = 1");
        for _ in 0..8 {
            sleep(Duration::from_millis(450));
            twin.run("CALL fetch_timeline_ids(1)");
        }
        twin.run(TAIL);
    });
}

/// MariaDB has no such setting, and `enforce_storage_engine` in its place.
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
