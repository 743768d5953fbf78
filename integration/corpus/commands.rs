//! Every command byte, with a valid body.

use super::mask;
use super::player::Player;
use super::side::Side;
use crate::kit::database::Database;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::{
    COM_BINLOG_DUMP, COM_DEBUG, COM_FIELD_LIST, COM_INIT_DB, COM_PING, COM_PROCESS_INFO,
    COM_PROCESS_KILL, COM_RESET_CONNECTION, COM_SET_OPTION, COM_STATISTICS, Login, capability,
};

/// Result sets with and without EOF packets, session trackers, query attributes.
pub(super) fn logins(login: &Login) -> [Login; 4] {
    [
        login.clone(),
        login.clone().without(capability::DEPRECATE_EOF),
        login
            .clone()
            .with(capability::SESSION_TRACK | capability::QUERY_ATTRIBUTES),
        login
            .clone()
            .without(capability::MULTI_STATEMENTS | capability::MULTI_RESULTS),
    ]
}

#[test]
fn commands_that_leave_the_session_open() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_commands");
        database
            .connect()
            .ok("CREATE TABLE t (id int DEFAULT 7, word varchar(20) DEFAULT 'x' COMMENT 'c', g geometry)");
        let player = Player::new(server);
        for login in logins(&database.login()) {
            player.play("commands", &login, |side| open(side, database.name()));
        }
    });
}

fn open(side: &mut Side, database: &str) {
    let with = |command: u8, body: &[u8]| [&[command], body].concat();
    for name in [
        "information_schema",
        "no_such_database",
        "",
        "a`b",
        database,
    ] {
        side.command(&with(COM_INIT_DB, name.as_bytes()));
    }
    for body in [
        &b"t\0"[..],
        b"t\0%",
        b"t\0w%",
        b"t\0nothing",
        b"t\0id\0",
        b"no_such_table\0",
        b"\0",
    ] {
        side.command(&with(COM_FIELD_LIST, body));
    }
    side.command(&[COM_PING]);
    side.command(&with(COM_PING, b"a body"));
    side.masked(&[COM_STATISTICS], mask::numbers);
    side.masked(&[COM_PROCESS_INFO], mask::rows);
    side.command(&[COM_DEBUG]);
    for option in 0..4_u16 {
        side.command(&with(COM_SET_OPTION, &option.to_le_bytes()));
        side.query("SELECT 1; SELECT 2");
    }
    // Grants, hosts, status: these do not disturb other sessions.
    for flags in [0_u8, 1, 8, 16] {
        side.command(&with(0x07, &[flags]));
    }
    side.command(&with(COM_PROCESS_KILL, &0x7fff_fff0_u32.to_le_bytes()));
    // COM_CREATE_DB and COM_DROP_DB, which servers no longer support.
    side.command(&with(0x05, b"hw_corpus_never"));
    side.command(&with(0x06, b"hw_corpus_never"));
    side.query("SET @x = 1, NAMES latin1");
    side.query("CREATE TEMPORARY TABLE tt (id int)");
    side.command(&[COM_RESET_CONNECTION]);
    side.query("SELECT @x, DATABASE(), @@character_set_client");
    side.query("SELECT * FROM tt");
    side.command(&[COM_RESET_CONNECTION, 1, 2, 3]);
    side.command(&[COM_PING]);
}

/// A statement follows: the session continues or ends as it does directly.
#[test]
fn commands_that_servers_do_not_know_or_take_from_nobody() {
    on_each_release(|server| {
        let player = Player::new(server);
        let known = [
            0x01, 0x02, 0x03, 0x04, 0x07, 0x08, 0x09, 0x0a, 0x0c, 0x11, 0x12, 0x16, 0x17, 0x18,
            0x19, 0x1c, 0x1e,
        ];
        for command in (0..=0x2a).chain([0x7f, 0x80, 0xaa, 0xf9, 0xfb, 0xfc, 0xfd, 0xfe, 0xff]) {
            if known.contains(&command) {
                continue;
            }
            for body in [&[][..], &[1, 2, 3], b"a longer body than any of them has"] {
                player.play("an unknown command", &Login::default(), |side| {
                    side.command(&[&[command], body].concat());
                    side.query("SELECT 'after it'");
                });
            }
        }
        let (conversations, _) = player.compared();
        assert!(conversations > 100, "{conversations}");
    });
}

#[test]
fn who_may_not_shut_a_server_down_does_not() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_shutdown");
        let player = Player::new(server);
        let login = database.account("SELECT", "");
        for body in [&[][..], &[0], &[16]] {
            player.play("a shutdown", &login, |side| {
                side.command(&[&[0x08], body].concat());
                side.query("SELECT 'after it'");
                side.query("SHUTDOWN");
            });
        }
    });
}

#[test]
fn sessions_that_end_themselves() {
    on_each_release(|server| {
        let player = Player::new(server);
        let login = Login::default();
        player.play("quit", &login, |side| {
            side.query("SELECT 1");
            side.command(&[0x01]);
            side.until_it_closes("waits", Ok(()));
        });
        player.play("leaves", &login, |side| side.last_words(&[COM_PING]));
        player.play("quits and leaves", &login, |side| {
            side.last_words(&[0x01, 7])
        });
        for soft in ["", "CONNECTION ", "QUERY "] {
            player.play("kills itself", &login, |side| {
                let id = side.client.greeting.thread_id;
                side.silent(&format!("KILL {soft}{id}"));
                side.query("SELECT 'after it'");
            });
        }
        player.play("kills itself by a command", &login, |side| {
            let id = side.client.greeting.thread_id;
            side.unsaid(&[&[COM_PROCESS_KILL], &id.to_le_bytes()[..]].concat());
            side.query("SELECT 'after it'");
        });
        player.play("idles", &login, |side| {
            side.query("SET SESSION wait_timeout = 1");
            side.until_it_closes("idles", Ok(()));
        });
    });
}

/// The log's first file, whose first events describe it and its format, and files that do not exist.
#[test]
fn logs_are_dumped() {
    on_each_release(|server| {
        let player = Player::new(server);
        let file = server.connect().column("SHOW BINARY LOGS").remove(0);
        let dump = |at: u32, flags: u16, file: &str| {
            let mut payload = vec![COM_BINLOG_DUMP];
            payload.extend(at.to_le_bytes());
            payload.extend(flags.to_le_bytes());
            payload.extend(4_242_u32.to_le_bytes());
            payload.extend(file.as_bytes());
            payload
        };
        for login in logins(&Login::default()) {
            for checksum in ["'NONE'", "'CRC32'", "NULL"] {
                player.play("a log's first events", &login, |side| {
                    side.query(format!(
                        "SET @master_binlog_checksum = {checksum}, @source_binlog_checksum = {checksum}"
                    ));
                    side.first_packets(&dump(4, 1, &file), 2);
                });
            }
            for (at, flags, name) in [
                (4, 0, "no_such_file.000001"),
                (0, 1, &file),
                (3, 1, &file),
                (u32::MAX, 1, &file),
                (4, 1, ""),
            ] {
                player.play("a log that is not there", &login, |side| {
                    side.last_words(&dump(at, flags, name));
                });
            }
        }
        player.play("a dump with GTIDs", &Login::default(), |side| {
            side.last_words(&[0x1e, 1, 0]);
        });
    });
}
