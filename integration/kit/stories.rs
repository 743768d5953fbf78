//! Tests of the kit itself. Other tests can be trusted only if these pass.

use super::database::Database;
use super::proxy::Proxy;
use super::servers::{full, on_each_server, on_servers_of_its_own};
use super::wire_client::{
    Answer, COM_STMT_PREPARE, Login, WireClient, capability, packet::MAX_PART,
};

#[test]
fn a_client_sees_rows_counts_and_errors() {
    on_each_server(|server| {
        let database = Database::empty(server, "kit");
        let mut client = database.connect();
        assert_eq!(client.greeting.is_mariadb(), server.is_mariadb());
        client.ok("CREATE TABLE t (id int PRIMARY KEY, word varchar(9))");
        let ok = client.ok("INSERT INTO t VALUES (1, 'one'), (2, NULL)");
        assert_eq!(ok.affected_rows, 2);
        let result = client.result_set("SELECT id, word FROM t ORDER BY id");
        let cell = |text: &str| Some(text.to_owned());
        assert_eq!(result.rows, [[cell("1"), cell("one")], [cell("2"), None]]);
        assert_eq!(result.columns.len(), 2);
        assert_eq!(client.error("SELECT nothing FROM t").code, 1054);
        let answers =
            client.query("SELECT 1; DO 1; SELECT id FROM t WHERE id = (SELECT id FROM t)");
        assert!(matches!(
            answers[..],
            [Answer::Rows(_), Answer::Ok(_), Answer::Err(_)]
        ));
    });
}

#[test]
fn replies_end_where_they_end_with_and_without_eof_packets() {
    on_each_server(|server| {
        for login in [
            Login::default(),
            Login::default().without(capability::DEPRECATE_EOF),
            Login::default().with(capability::QUERY_ATTRIBUTES | capability::SESSION_TRACK),
            Login::default().with(capability::MARIADB_CACHE_METADATA),
        ] {
            let mut client = WireClient::login(server.addr(), &login);
            let statement = client.prepare("SELECT ?, 2 UNION SELECT 3, 4");
            let reply = client.execute(statement, &[Some("1")], 0).unwrap();
            assert!(reply.packets.len() >= 4, "{reply:?}");
            let prepared = [&[COM_STMT_PREPARE], &b"DO ?"[..]].concat();
            client.command(&prepared).unwrap();
            for command in [0x09, 0x0e, 0x0d, 0x1f] {
                client.command(&[command]).unwrap();
            }
            // If the client read any reply too short or too long, this answer would differ.
            assert_eq!(client.column("SELECT 'still in step'"), ["still in step"]);
        }
    });
}

#[test]
fn headwater_runs_in_front_of_a_server_and_ends_when_asked() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client = proxy.login(&Login::default());
        assert_eq!(client.column("SELECT 'through'"), ["through"]);
        drop(client);
        assert!(proxy.resident_kib() > 0);
        let (status, log) = proxy.terminate();
        assert!(status.success(), "{status}:\n{log}");
    });
}

#[test]
fn a_row_of_16_mib_comes_in_two_parts() {
    on_each_server(|server| {
        let mut client = server.connect();
        let len = MAX_PART - 4;
        let reply = client
            .query_reply(&format!("SELECT repeat('a', {len})"))
            .unwrap();
        let row = &reply.packets[reply.packets.len() - 2];
        assert_eq!((row.first_part, row.payload.len()), (MAX_PART, MAX_PART));
        let long = "b".repeat(MAX_PART);
        assert_eq!(
            client.column(&format!("SELECT length('{long}')")),
            [MAX_PART.to_string()]
        );
    });
}

#[test]
fn local_infile_sends_what_it_was_given() {
    on_each_server(|server| {
        let database = Database::empty(server, "kit_infile");
        let mut client = database.connect();
        client.ok("CREATE TABLE t (id int)");
        client.infile = b"1\n2\n3\n".to_vec();
        let ok = client.ok("LOAD DATA LOCAL INFILE 'x' INTO TABLE t");
        assert_eq!(ok.affected_rows, 3);
    });
}

#[test]
fn accounts_log_in_with_and_without_a_password() {
    on_each_server(|server| {
        let database = Database::empty(server, "kit_account");
        for password in ["", "secret"] {
            let login = database.account("SELECT", password);
            let mut client = WireClient::login(server.addr(), &login);
            assert_eq!(client.column("SELECT DATABASE()"), [database.name()]);
            assert_eq!(client.error("CREATE TABLE t (id int)").code, 1142);
            let wrong = WireClient::try_login(server.addr(), &login.password("wrong")).unwrap();
            assert_eq!(wrong.unwrap_err().code, 1045);
        }
    });
}

/// Connections of the last round still close while the next round takes the slots.
#[test]
fn a_server_that_is_full_stays_full() {
    on_servers_of_its_own(
        |_| &["--max-connections=3"],
        |server| {
            for round in 0..200 {
                let (guests, refused) = full(server.addr());
                assert_eq!(refused.code, 1040);
                let login = WireClient::try_login(server.addr(), &Login::default()).unwrap();
                assert!(login.is_err(), "round {round}: {} were in", guests.len());
            }
        },
    );
}
