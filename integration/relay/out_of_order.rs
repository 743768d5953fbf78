//! Commands whose first packet has a sequence number other than 0: servers refuse them, whatever their content.

use super::talk::read_to_end;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::capability::COMPRESS;
use crate::kit::wire_client::{
    COM_CHANGE_USER, COM_INIT_DB, COM_PING, COM_QUERY, COM_QUIT, COM_RESET_CONNECTION,
    COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_PREPARE, Login, WireClient,
};

const CALL: &str = "CALL fetch_timeline_ids(1)";
const TAIL: &str = "SELECT message.id, body FROM message INNER JOIN fetch_timeline_tt USING(id) \
                    ORDER BY message.id DESC LIMIT 20";

/// Each follows a call, and so runs with pending ids; `id` is that of a prepared call.
fn commands(id: u32) -> Vec<Vec<u8>> {
    let text = |command: u8, text: &str| [&[command], text.as_bytes()].concat();
    let execution = [&[COM_STMT_EXECUTE][..], &id.to_le_bytes(), &[0, 1, 0, 0, 0]].concat();
    vec![
        text(COM_QUERY, CALL),
        text(COM_QUERY, TAIL),
        text(COM_QUERY, "SELECT id FROM fetch_timeline_tt"),
        text(COM_QUERY, "SET @a = 1"),
        text(COM_QUERY, "PREPARE s FROM 'CALL fetch_timeline_ids(1)'"),
        text(COM_QUERY, "CALL fetch_timeline_ids(1); SELECT 1"),
        text(COM_STMT_PREPARE, CALL),
        execution,
        [&[COM_STMT_CLOSE][..], &id.to_le_bytes()].concat(),
        text(COM_INIT_DB, "mysql"),
        text(COM_CHANGE_USER, "root\0\0\0"),
        vec![COM_RESET_CONNECTION],
        vec![COM_PING],
        vec![COM_QUIT],
    ]
}

/// The server's reply to the last command, up to the end of the connection.
fn heard(mut client: WireClient, seq: u8, number: usize) -> Vec<u8> {
    let id = client.prepare(CALL);
    client.ok(CALL);
    client.send_packet(seq, &commands(id)[number]).unwrap();
    read_to_end(&mut client.stream)
}

#[test]
fn a_command_that_is_out_of_order_is_refused_as_the_server_refuses_it() {
    on_each_server(|server| {
        let database = Database::classic(server, "order");
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        let settings = "[compression]\nserver = 'where-offered'\n";
        let framed = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
        for proxy in [&proxy, &framed] {
            proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        }
        let mut sessions = 0;
        for number in 0..commands(0).len() {
            for seq in [1, 2, 7, 255] {
                let [direct, relayed, reframed] = [server.addr(), proxy.addr(), framed.addr()]
                    .map(|addr| heard(WireClient::login(addr, &database.login()), seq, number));
                let command = commands(0)[number].escape_ascii().to_string();
                assert!(direct[3..].starts_with(b"\0\xff\x84\x04"), "{direct:?}");
                assert_eq!(relayed, direct, "{command} numbered {seq}");
                assert_eq!(reframed, direct, "{command} numbered {seq}, in frames");
                sessions += 1;
            }
        }
        for proxy in [&proxy, &framed] {
            // Only the call before it is served.
            assert_eq!(proxy.counts().of("calls_owned"), sessions);
        }
    });
}

/// Within compressed frames servers ignore the sequence numbers of packets, and so does Headwater.
#[test]
fn a_command_in_a_frame_may_have_any_number() {
    on_each_server(|server| {
        let database = Database::classic(server, "order_framed");
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let login: Login = database.login().with(COMPRESS);
        for seq in [1, 255] {
            let [direct, relayed] = [server.addr(), proxy.addr()].map(|addr| {
                let mut client = WireClient::login(addr, &login);
                client.ok(CALL);
                client.stream.begin_command();
                let payload = [&[COM_QUERY], &b"SELECT 'in order'"[..]].concat();
                client.send_packet(seq, &payload).unwrap();
                client.reply(COM_QUERY).unwrap().raw
            });
            assert_eq!(relayed, direct, "numbered {seq}");
        }
    });
}
