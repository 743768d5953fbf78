//! What may come between a call and its follow-up SELECT.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::stage::{TAIL, on_each_stage};
use super::transcripts::stories;
use crate::kit::patience;
use crate::kit::wire_client::{
    Answer, COM_DEBUG, COM_PING, COM_SET_OPTION, COM_STATISTICS, COM_STMT_RESET,
};

stories!(
    "between":
    a_tail_may_be_asked_twice_or_late,
    a_call_reaches_the_database_that_it_names,
    the_database_may_be_chosen_by_command,
    a_reset_or_a_change_of_user_forgets_the_result_table,
    on_mysql_the_result_table_is_of_the_calls_time_whoever_writes_meanwhile,
    a_tail_of_another_shape_gets_its_own_answer,
);

const CALLS: [&str; 2] = [
    "CALL fetch_timeline_ids(1)",
    "CALL fetch_timeline_ids2(1, 300)",
];

/// Each command sets the row count in its own way.
#[test]
fn commands_that_are_no_statements_leave_their_counts_behind() {
    on_each_stage(|stage| {
        let on = [COM_SET_OPTION, 0, 0].to_vec();
        let off = [COM_SET_OPTION, 1, 0].to_vec();
        for commands in [
            vec![vec![COM_PING]],
            vec![on.clone()],
            vec![off.clone(), on.clone()],
            vec![vec![COM_PING], on.clone()],
            vec![vec![COM_DEBUG]],
            vec![vec![COM_STATISTICS]],
            // An unknown statement id, then a known one.
            vec![[&[COM_STMT_RESET][..], &[9, 9, 9, 0]].concat()],
            vec![[&[COM_STMT_RESET][..], &[1, 0, 0, 0]].concat()],
        ] {
            for tail in ["DO 1", TAIL] {
                for question in [
                    "SELECT ROW_COUNT()",
                    "SHOW WARNINGS",
                    "SELECT COUNT(*) FROM fetch_timeline_tt",
                ] {
                    let mut twin = stage.twin();
                    twin.prepare("SELECT 1");
                    for call in CALLS {
                        twin.run(call);
                        if tail == TAIL {
                            twin.run(tail);
                        }
                        for command in &commands {
                            // The text of the statistics differs each time.
                            if command[..] == [COM_STATISTICS] {
                                twin.direct.send(command).unwrap();
                                twin.direct.read_packet().unwrap();
                                twin.proxied.send(command).unwrap();
                                twin.proxied.read_packet().unwrap();
                            } else {
                                twin.command(command);
                            }
                        }
                        twin.run(question);
                    }
                }
            }
        }
    });
}

/// MariaDB keeps warnings and errors after a statement that reads no table.
#[test]
fn conditions_stay_behind_statements_that_read_no_table() {
    on_each_stage(|stage| {
        for before in ["DO 1", "SELECT 1 + 'x'"] {
            for raised in ["SELECT 2 + 'y'", "SELECT nothing FROM nowhere", "DO 2"] {
                for reads in ["SELECT 1", "SELECT 1 FROM DUAL", "SELECT @a"] {
                    for ask in ["SHOW WARNINGS", "SELECT @@warning_count, @@error_count"] {
                        // Six are more statements than are recorded for another run.
                        for many in [2, 6] {
                            let mut twin = stage.twin();
                            twin.run(before);
                            twin.run(CALLS[0]);
                            twin.run(TAIL);
                            twin.run(raised);
                            for statement in [reads].repeat(many).into_iter().chain([ask, TAIL]) {
                                twin.run(statement);
                            }
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn a_connection_lost_after_a_call_is_lost_on_the_server_too() {
    on_each_stage(|stage| {
        let login = stage.databases[1].login();
        let mut client = stage.proxy.login(&login);
        client.ok(CALLS[0]);
        let thread = client.greeting.thread_id;
        drop(client);
        let gone = format!("SELECT id FROM information_schema.processlist WHERE id = {thread}");
        let deadline = patience();
        while !stage.root.rows(&gone).is_empty() {
            assert!(Instant::now() < deadline, "the server's side stays");
            sleep(Duration::from_millis(10));
        }

        // The reverse: the server ends the connection.
        let mut client = stage.proxy.login(&login);
        client.ok(CALLS[0]);
        let thread = client.greeting.thread_id;
        stage.root.ok(&format!("KILL {thread}"));
        assert!(client.query_reply(TAIL).is_err_or_error());
        let mut client = stage.proxy.login(&login);
        client.ok(CALLS[0]);
        assert_eq!(client.rows(TAIL).len(), 20);
    });
}

trait Lost {
    fn is_err_or_error(&self) -> bool;
}

impl Lost for std::io::Result<crate::kit::wire_client::Reply> {
    /// Some servers send an ERR before they close the connection.
    fn is_err_or_error(&self) -> bool {
        match self {
            Err(_) => true,
            Ok(reply) => reply
                .packets
                .iter()
                .all(|packet| packet.first_byte() == Some(0xff)),
        }
    }
}

#[test]
fn kill_query_during_a_call_interrupts_it_and_no_more() {
    on_each_stage(|stage| {
        let login = stage.databases[1].login();
        let mut client = stage.proxy.login(&login);
        let expected = {
            client.ok(CALLS[0]);
            client.rows(TAIL)
        };
        // The procedure's own handler may take an interrupted cursor (1329) for the end of the list, and the call succeeds: on MariaDB,
        // directly, 2 or 3 calls in a hundred leave another page. A row of another reader's is never right.
        let readable = client.rows(
            "SELECT m.id, m.user_id, m.body FROM message m JOIN follower f ON f.follower_id = m.user_id WHERE f.user_id = 1",
        );
        let thread = client.greeting.thread_id;
        let mut killer = stage.server.connect();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let killing = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_micros(700)).is_err() {
                killer.query(&format!("KILL QUERY {thread}"));
            }
        });
        let mut interrupted = 0;
        // On a busy machine the first kills may find nothing to interrupt.
        for round in 0..40_000 {
            if round >= 400 && interrupted > 0 {
                break;
            }
            for statement in [CALLS[round % 2], TAIL] {
                match client.query(statement).pop() {
                    Some(Answer::Err(error)) => {
                        // Where a cursor is interrupted: no more rows. While MySQL waits for its accounts: a lock that it did not get.
                        assert!([1317, 1329, 3547].contains(&error.code), "{error:?}");
                        interrupted += 1;
                        break;
                    }
                    Some(Answer::Rows(page)) => {
                        let mut rows = page.rows.iter();
                        assert!(rows.all(|row| readable.contains(row)), "{page:?}");
                    }
                    _ => {}
                }
            }
        }
        let _ = stop.send(());
        killing.join().unwrap();
        eprintln!("{interrupted} interrupted");
        assert!(interrupted > 0);
        // A late kill may interrupt the next statement.
        client.query("SELECT 1");
        client.ok(CALLS[0]);
        assert_eq!(client.rows(TAIL), expected);
    });
}

#[test]
fn a_message_deleted_between_call_and_tail_makes_room_for_the_next() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run(CALLS[0]);
        let page = twin.rows(TAIL);
        let third = page[2][0].clone().unwrap();
        twin.run(CALLS[0]);
        stage.aside(&format!("DELETE FROM {{db}}.message WHERE id = {third}"));
        let page = twin.rows(TAIL);
        assert_eq!(page.len(), 20);
        twin.run(TAIL);
        let mut twin = stage.twin();
        twin.run(CALLS[1]);
        stage.aside("UPDATE {db}.message SET body = 'edited' WHERE id = 300");
        twin.run(TAIL);
        stage.owned(3);
    });
}

#[test]
fn two_sessions_have_a_timeline_each() {
    on_each_stage(|stage| {
        let (mut one, mut two) = (stage.twin(), stage.twin());
        one.run("CALL fetch_timeline_ids(1)");
        two.run("CALL fetch_timeline_ids(2)");
        one.run(TAIL);
        two.run(TAIL);
        one.run("CALL fetch_timeline_ids2(2, 300)");
        two.run(TAIL);
        one.run("SELECT COUNT(*) FROM fetch_timeline_tt");
        two.run("SELECT COUNT(*) FROM fetch_timeline_tt");
    });
}

#[test]
fn a_writers_next_call_shows_what_it_wrote() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        for id in 1000..1030 {
            twin.run(&format!("INSERT INTO message VALUES ({id}, 5, 'new')"));
            twin.run("CALL fetch_timeline_ids(1)");
            let page = twin.rows(TAIL);
            assert_eq!(page[0][0], Some(id.to_string()));
        }
        twin.run("INSERT INTO follower VALUES (3, 5)");
        twin.run("CALL fetch_timeline_ids(3)");
        assert_eq!(twin.rows(TAIL).len(), 20);
        twin.run("DELETE FROM follower WHERE user_id = 3");
        twin.run("CALL fetch_timeline_ids(3)");
        assert_eq!(twin.rows(TAIL).len(), 0);
        stage.owned(32);
    });
}

/// Wherever in a call or a follow-up SELECT the server's connection is lost, its client's connection ends, and no other one.
#[test]
fn a_connection_killed_in_the_middle_of_a_call_ends_and_harms_no_other() {
    on_each_stage(|stage| {
        let mut other = stage.twin();
        for pause in 0..40_u64 {
            let login = stage.databases[1].login();
            let mut client = stage.proxy.login(&login);
            let id = client.greeting.thread_id;
            let mut root = stage.server.connect();
            let killer = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(pause * 97));
                root.query(&format!("KILL CONNECTION {id}"));
            });
            let ended = (0..10_000).any(|_| {
                let call = client.query_reply("CALL fetch_timeline_ids(1)");
                call.is_err() || client.query_reply(TAIL).is_err()
            });
            killer.join().unwrap();
            assert!(ended, "the client was not told");
            if pause % 10 == 0 {
                other.run("CALL fetch_timeline_ids(1)");
                other.run(TAIL);
                other.run("SELECT COUNT(*) FROM fetch_timeline_tt");
            }
        }
    });
}
