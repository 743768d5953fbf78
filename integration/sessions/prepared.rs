//! Calls that COM_STMT_PREPARE prepares: served where their values are certainly numbers, and the same as the
//! server's in every other case.

use super::stage::{Stage, TAIL, look, on_each_stage, on_each_stage_with};
use super::transcripts::stories;
use crate::kit::proxy::settings_file;
use crate::kit::twin::Twin;
use crate::kit::wire_client::{
    COM_INIT_DB, COM_RESET_CONNECTION, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH,
    COM_STMT_PREPARE, COM_STMT_RESET, COM_STMT_SEND_LONG_DATA, Login, Param, Reply, capability,
};

stories!(
    "prepared":
    types_that_came_once_hold_for_later_executions_owned_or_not,
    an_execution_without_types_is_refused_as_the_server_refuses_it,
    a_cursor_changes_nothing,
    what_a_prepared_call_leaves_behind_is_what_the_real_one_leaves,
    a_name_means_what_it_meant_where_it_was_prepared,
    a_prepared_statement_that_is_no_call_has_the_effects_of_its_own_text,
);

const UNSIGNED: u8 = 0x80;

#[test]
fn integers_of_every_type_are_owned() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let newest = twin.prepare("CALL fetch_timeline_ids(?)");
        let bounded = twin.prepare("CALL fetch_timeline_ids2(?,?)");
        let heads = twin.prepare("CALL build_max_ids_of_followers(?,?)");
        twin.run("CALL build_max_ids_of_followers(3, 1)");
        let read = twin.prepare("SELECT * FROM max_ids_of_followers ORDER BY max_id");
        let one = |code, sign| match code {
            1 => Param::new(code, sign, &[1]),
            2 => Param::new(code, sign, &[1, 0]),
            3 => Param::new(code, sign, &[1, 0, 0, 0]),
            _ => Param::new(code, sign, &[1, 0, 0, 0, 0, 0, 0, 0]),
        };
        let mut calls = 1;
        for code in [1, 2, 3, 8] {
            for sign in [0, UNSIGNED] {
                twin.execute_with(newest, &[one(code, sign)], 0, true);
                look(&mut twin);
                let bound = Param::new(8, sign, &300_u64.to_le_bytes());
                twin.execute_with(bounded, &[one(code, sign), bound], 0, true);
                look(&mut twin);
                let bound = Param::new(2, sign, &200_u16.to_le_bytes());
                twin.execute_with(heads, &[one(code, sign), bound], 0, true);
                twin.execute(read, &[]);
                look(&mut twin);
                calls += 3;
            }
        }
        stage.owned(calls);
    });
}

#[test]
fn doubles_and_strings_of_languages_without_integers_are_owned() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let newest = twin.prepare("CALL fetch_timeline_ids(?)");
        let mut calls = 0;
        for code in [0, 15, 246, 253, 254] {
            twin.execute_with(newest, &[Param::new(code, 0, b"\x03001")], 0, true);
            look(&mut twin);
            calls += 1;
        }
        let double = Param::new(5, 0, &1f64.to_le_bytes());
        twin.execute_with(newest, &[double], 0, true);
        look(&mut twin);
        for charset in ["utf8mb4", "latin1", "gbk", "sjis"] {
            twin.run(&format!("SET NAMES {charset}"));
            twin.execute(newest, &[Some("2")]);
            look(&mut twin);
            calls += 1;
        }
        stage.owned(calls + 1);
    });
}

#[test]
fn whatever_is_no_number_is_the_servers() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let newest = twin.prepare("CALL fetch_timeline_ids(?)");
        let bounded = twin.prepare("CALL fetch_timeline_ids2(?,?)");
        let values = [
            Param::text(None),
            Param::new(6, 0, b""),
            Param::new(1, 0, &[0xff]),
            Param::new(8, UNSIGNED, &[0xff; 8]),
            Param::new(8, 0, &(1_u64 << 32).to_le_bytes()),
            Param::new(4, 0, &1f32.to_le_bytes()),
            Param::new(5, 0, &1.5f64.to_le_bytes()),
            Param::new(5, 0, &f64::MAX.to_le_bytes()),
            Param::new(5, 0, &(-0f64).to_le_bytes()),
            Param::text(Some("")),
            Param::text(Some("x")),
            Param::text(Some("1x")),
            Param::text(Some(" 1")),
            Param::text(Some("1 ")),
            Param::text(Some("1.0")),
            Param::text(Some("1e0")),
            Param::text(Some("+1")),
            Param::text(Some("4294967296")),
            Param::text(Some("000000000000000000001")),
            Param::new(252, 0, b"\x011"),
            Param::new(9, 0, b"\x011"),
            Param::new(10, 0, b"\x04\xea\x07\x01\x02"),
            Param::new(11, 0, b"\0"),
        ];
        twin.run("CALL fetch_timeline_ids(2)");
        for value in values {
            twin.execute_with(newest, std::slice::from_ref(&value), 0, true);
            twin.run("SHOW WARNINGS");
            look(&mut twin);
            twin.execute_with(bounded, &[Param::long(1), value.clone()], 0, true);
            twin.run("SELECT @@warning_count, ROW_COUNT()");
            look(&mut twin);
            twin.execute_with(bounded, &[value, Param::long(300)], 0, true);
            look(&mut twin);
        }
        stage.owned(1);
        // None of them keeps other calls from being served.
        twin.execute_with(newest, &[Param::long(1)], 0, true);
        look(&mut twin);
        stage.owned(2);
    });
}

#[test]
fn long_data_belongs_to_one_execution() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let call = twin.prepare("CALL fetch_timeline_ids(?)");
        let absent = [Param::text(None)];
        let long = [Param {
            value: Some(Vec::new()),
            ..Param::text(None)
        }];
        twin.of_statement(COM_STMT_SEND_LONG_DATA, call, b"\0\x001");
        twin.execute_with(call, &long, 0, true);
        look(&mut twin);
        twin.execute(call, &[Some("2")]);
        look(&mut twin);
        twin.of_statement(COM_STMT_SEND_LONG_DATA, call, b"\0\x001");
        twin.of_statement(COM_STMT_RESET, call, b"");
        twin.execute(call, &[Some("2")]);
        look(&mut twin);
        twin.execute_with(call, &absent, 0, true);
        look(&mut twin);
        stage.owned(2);
    });
}

#[test]
fn a_client_that_is_told_of_no_database_has_its_calls_where_it_prepared_them() {
    on_each_stage(|stage| {
        let login = Login::default().without(capability::SESSION_TRACK);
        let mut twin = stage.twin_of(&login);
        let one = [Param::long(1)];
        twin.run("SET NAMES latin1");
        let call = twin.prepare("CALL fetch_timeline_ids(?)");
        twin.execute_with(call, &one, 0, true);
        look(&mut twin);
        stage.owned(1);
        // Headwater does not see which database this chooses, but the database has not changed since.
        twin.run("USE mysql; USE {db}");
        let unknown = twin.prepare("CALL fetch_timeline_ids(?)");
        twin.execute_with(unknown, &one, 0, true);
        look(&mut twin);
        twin.execute_with(call, &one, 0, true);
        look(&mut twin);
        let [direct, proxied] = [0, 1].map(|side| stage.databases[side].name().to_owned());
        for (client, name) in [(&mut twin.direct, direct), (&mut twin.proxied, proxied)] {
            let reply = client.command(&[&[COM_INIT_DB], name.as_bytes()].concat());
            assert_eq!(reply.unwrap().packets.len(), 1);
        }
        let again = twin.prepare("CALL fetch_timeline_ids(?)");
        twin.execute_with(again, &one, 0, true);
        look(&mut twin);
        stage.owned(4);
        // The database changes between preparation and execution: which one it was then is no longer known.
        twin.run("USE mysql; USE {db}");
        let between = twin.prepare("CALL fetch_timeline_ids(?)");
        twin.run("USE mysql; USE {db}");
        twin.execute_with(between, &one, 0, true);
        look(&mut twin);
        stage.owned(4);
    });
}

#[test]
fn statements_end_with_a_close_a_reset_and_a_change_of_user() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let one = [Param::long(1)];
        // Prepared before any call: on MariaDB a procedure advances the statement ids.
        let closed = twin.prepare("CALL fetch_timeline_ids(?)");
        let reset = twin.prepare("CALL fetch_timeline_ids(?)");
        twin.execute_with(closed, &one, 0, true);
        twin.of_statement(COM_STMT_CLOSE, closed, b"");
        twin.execute_with(closed, &one, 0, true);
        look(&mut twin);
        twin.command(&[COM_RESET_CONNECTION]);
        twin.execute_with(reset, &one, 0, true);
        twin.run("CALL fetch_timeline_ids(1)");
        look(&mut twin);
        twin.change_to_root();
        twin.run("USE {db}");
        twin.execute_with(reset, &one, 0, true);
        twin.execute_with([u32::MAX; 2], &one, 0, true);
        twin.execute_with([4711; 2], &one, 0, true);
        twin.run("CALL fetch_timeline_ids(1)");
        look(&mut twin);
    });
}

#[test]
fn the_one_prepared_last_may_be_called_by_no_number() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let last = [u32::MAX; 2];
        twin.prepare("CALL fetch_timeline_ids(?)");
        twin.execute_with(last, &[Param::long(1)], 0, true);
        look(&mut twin);
        twin.prepare("SELECT ?");
        twin.execute_with(last, &[Param::long(1)], 0, true);
        look(&mut twin);
        stage.owned(u64::from(stage.server.is_mariadb()));
    });
}

/// MariaDB's C library sends a direct execution this way.
#[test]
fn an_execution_may_follow_its_text_without_waiting() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let mut together = |text: &str, params: &[Param]| {
            let [direct, proxied] = [&mut twin.direct, &mut twin.proxied].map(|client| {
                let prepare = [&[COM_STMT_PREPARE], text.as_bytes()].concat();
                let execute = client.execution(u32::MAX, params, 0, true);
                client.send(&prepare).unwrap();
                client.send(&execute).unwrap();
                let prepared = client.reply(COM_STMT_PREPARE).unwrap();
                (prepared, client.reply(COM_STMT_EXECUTE).unwrap())
            });
            // MariaDB's procedures advance the statement ids.
            let without_id = |reply: Reply| {
                let packet = &reply.packets[0];
                (packet.seq, packet.payload.len(), reply.packets.len())
            };
            assert_eq!(without_id(direct.0), without_id(proxied.0), "{text}");
            assert_eq!(direct.1.packets.len(), proxied.1.packets.len(), "{text}");
            assert_eq!(
                direct.1.packets[0].first_byte(),
                proxied.1.packets[0].first_byte(),
                "{text}"
            );
        };
        for reader in [1, 2, -1, 2] {
            together("CALL fetch_timeline_ids(?)", &[Param::long(reader)]);
            together(TAIL, &[]);
            together("SELECT COUNT(*) FROM fetch_timeline_tt", &[]);
        }
        together("CALL nothing(?)", &[Param::long(1)]);
        twin.run("SELECT 1");
        stage.owned(if stage.server.is_mariadb() { 3 } else { 0 });
    });
}

#[test]
fn calls_beyond_the_limit_are_relayed() {
    let (_folder, path) = settings_file("[limits]\nprepared_statements = 2\n");
    on_each_stage_with(&["--config", &path], |stage| many(stage, 2));
}

fn many(stage: &mut Stage, limit: usize) {
    let mut twin = stage.twin();
    let calls: Vec<_> = (0..limit + 2)
        .map(|_| twin.prepare("CALL fetch_timeline_ids(?)"))
        .collect();
    for call in &calls {
        twin.execute_with(*call, &[Param::long(1)], 0, true);
        look(&mut twin);
    }
    stage.owned(limit as u64);
    twin.of_statement(COM_STMT_CLOSE, calls[0], b"");
    // Statements that Headwater does not know may have set a one-shot transaction, and may have changed the database.
    twin.run("CALL fetch_timeline_ids(1)");
    twin.run("CALL fetch_timeline_ids(1)");
    let another = twin.prepare("CALL fetch_timeline_ids(?)");
    twin.execute_with(another, &[Param::long(1)], 0, true);
    look(&mut twin);
    stage.owned(limit as u64 + 2);
}

/// A query for the row count makes Headwater repeat what came after the call, but not what would undo the remainder.
#[test]
fn a_reset_behind_a_call_takes_no_long_data_that_came_behind_it() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let insert = twin.prepare("INSERT INTO note (body) VALUES (CONCAT(?, ROW_COUNT()))");
        let closed = twin.prepare("SELECT ?");
        let sent = [Param {
            value: Some(Vec::new()),
            ..Param::text(None)
        }];
        for question in ["SELECT ROW_COUNT()", "SHOW WARNINGS"] {
            twin.run("CALL fetch_timeline_ids(1)");
            twin.of_statement(COM_STMT_RESET, insert, b"");
            twin.of_statement(COM_STMT_SEND_LONG_DATA, insert, b"\0\0long");
            twin.run(question);
            twin.execute_with(insert, &sent, 0, true);
            twin.run("SELECT body FROM note ORDER BY id DESC LIMIT 1");
        }
        twin.run("CALL fetch_timeline_ids(1)");
        twin.of_statement(COM_STMT_RESET, closed, b"");
        twin.of_statement(COM_STMT_CLOSE, closed, b"");
        twin.run("SHOW WARNINGS");
    });
}

#[test]
fn bits_that_mean_nothing_in_a_type_are_the_servers_to_judge() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let call = twin.prepare("CALL fetch_timeline_ids(?)");
        let one = |sign| [Param::new(3, sign, &[1, 0, 0, 0])];
        for sign in [1, 0x40, 0x7f, 0x81, 0xff] {
            twin.execute_with(call, &one(sign), 0, true);
            twin.run("SHOW WARNINGS");
            twin.execute_with(call, &one(UNSIGNED), 0, true);
            look(&mut twin);
        }
    });
}

/// A cursor keeps the rows it was opened on, whatever happens to their table.
#[test]
fn a_tail_is_fetched_in_pieces_with_calls_in_between() {
    on_each_stage(|stage| {
        for login in [
            Login::default(),
            Login::default().without(capability::DEPRECATE_EOF),
        ] {
            let mut twin = stage.twin_of(&login);
            let fetch = |twin: &mut Twin, tail, rows: u32| {
                let reply = twin.of_statement(COM_STMT_FETCH, tail, &rows.to_le_bytes());
                reply.packets.len() - 1
            };
            twin.run("CALL fetch_timeline_ids(1)");
            let tail = twin.prepare(TAIL);
            let ids = twin.prepare("SELECT id FROM fetch_timeline_tt ORDER BY id");
            for call in [
                "CALL fetch_timeline_ids(1)",
                "CALL fetch_timeline_ids2(1, 300)",
            ] {
                for statement in [tail, ids] {
                    twin.run(call);
                    let opened = twin.execute_with(statement, &[], 1, true);
                    let rows_too = opened.packets.len();
                    assert!(rows_too < 8, "no cursor, but {rows_too} packets");
                    assert_eq!(fetch(&mut twin, statement, 3), 3);
                    twin.run("CALL fetch_timeline_ids(2)");
                    assert_eq!(fetch(&mut twin, statement, 4), 4);
                    look(&mut twin);
                    twin.run("CALL fetch_timeline_ids(3)");
                    assert_eq!(fetch(&mut twin, statement, 1), 1);
                    // The remaining rows: twelve of the follow-up SELECT, more of the table.
                    assert!(fetch(&mut twin, statement, 1_000) >= 12);
                    fetch(&mut twin, statement, 1);
                    look(&mut twin);
                }
            }
            twin.of_statement(COM_STMT_CLOSE, tail, b"");
            twin.run("CALL fetch_timeline_ids(1)");
            look(&mut twin);
        }
        stage.owned(28);
    });
}
