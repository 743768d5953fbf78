//! Limits of the process, each exceeded.

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, headwater, settings_file};
use crate::kit::servers::{mariadb, on_each_server};
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::warm;

/// The limit of open files concerns Headwater, not the server.
#[test]
fn too_few_files_are_said_at_the_start_and_to_whom_there_is_no_room_for() {
    let proxy = Proxy::with_open_files(64, mariadb().addr(), &[]);
    proxy.wait_for_log("there is room for ");
    let log = proxy.log();
    let (_, room) = log.split_once("there is room for ").unwrap();
    let room: usize = room.split(' ').next().unwrap().parse().unwrap();
    assert!((5..=28).contains(&room), "{log}");
    for part in [
        "64 files",
        "limits.sessions = 10000",
        "ulimit -n",
        "LimitNOFILE",
    ] {
        assert!(log.contains(part), "no {part} in:\n{log}");
    }
    let enter = || WireClient::try_login(proxy.addr(), &Login::default()).unwrap();
    let guest = |_| proxy.enter(&Login::default());
    let mut guests: Vec<WireClient> = (0..room).map(guest).collect();
    let error = enter().unwrap_err();
    assert_eq!(error.code, 1040, "{error:?}");
    assert!(
        error
            .message
            .contains("Headwater is out of file descriptors"),
        "{error:?}"
    );
    for guest in &mut guests {
        assert_eq!(guest.column("SELECT 1"), ["1"]);
    }
}

#[test]
fn one_session_too_many_is_refused_by_name_and_a_place_is_given_back() {
    let proxy = Proxy::configured(mariadb().addr(), "[limits]\nsessions = 3", &[]);
    let enter = || WireClient::try_login(proxy.addr(), &Login::default()).unwrap();
    let guest = |_| proxy.enter(&Login::default());
    let mut guests: Vec<WireClient> = (0..3).map(guest).collect();
    let error = enter().unwrap_err();
    assert_eq!((error.code, error.sqlstate.as_str()), (1040, ""));
    assert!(error.message.contains("limits.sessions = 3"), "{error:?}");
    assert_eq!(guests[0].column("SELECT 1"), ["1"]);
    guests.pop();
    while enter().is_err() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_account_has_so_many_sessions_and_others_are_not_disturbed() {
    on_each_server(|server| {
        let settings = "[limits]\nsessions_per_account = 2";
        let proxy = Proxy::configured(server.addr(), settings, &[]);
        let database = Database::empty(server, "per_account");
        let other = database.account("SELECT", "secret");
        let root = Login::default();
        let guests = [proxy.enter(&root), proxy.enter(&root)];
        for _ in 0..3 {
            let error = WireClient::try_login(proxy.addr(), &root).unwrap();
            let error = error.unwrap_err();
            assert_eq!((error.code, error.sqlstate.as_str()), (1203, "42000"));
            assert!(
                error.message.contains("sessions_per_account = 2"),
                "{error:?}"
            );
        }
        // The server refuses a wrong password, and the refused login takes no connection slot.
        let wrong = Login {
            password: "wrong".into(),
            ..other.clone()
        };
        for _ in 0..3 {
            let error = WireClient::try_login(proxy.addr(), &wrong).unwrap();
            assert_eq!(error.unwrap_err().code, 1045);
        }
        let mut others = [proxy.enter(&other), proxy.enter(&other)];
        assert_eq!(others[1].column("SELECT 1"), ["1"]);
        drop(guests);
        let mut again = proxy.enter(&root);
        assert_eq!(again.column("SELECT 1"), ["1"]);
    });
}

#[test]
fn an_address_has_so_many_sessions() {
    on_each_server(|server| {
        let settings = "[limits]\nsessions_per_address = 2";
        let proxy = Proxy::configured(server.addr(), settings, &[]);
        let root = Login::default();
        let mut guests = vec![proxy.enter(&root), proxy.enter(&root)];
        let error = WireClient::try_login(proxy.addr(), &root).unwrap();
        let error = error.unwrap_err();
        assert_eq!((error.code, error.sqlstate.as_str()), (1040, ""));
        for part in ["127.0.0.1", "limits.sessions_per_address = 2"] {
            assert!(error.message.contains(part), "{error:?}");
        }
        guests.pop();
        proxy.enter(&root);
    });
}

#[test]
fn who_does_not_log_in_is_let_go_and_who_has_is_not() {
    on_each_server(|server| {
        let settings = "[limits]\nlogin_ms = 3000";
        let proxy = Proxy::configured(server.addr(), settings, &[]);
        let mut guest = proxy.enter(&Login::default());
        let mut silent = TcpStream::connect(proxy.addr()).unwrap();
        silent
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let begun = Instant::now();
        let mut said = Vec::new();
        silent.read_to_end(&mut said).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(2_500));
        proxy.wait_for_log("did not log in within limits.login_ms = 3000");
        assert_eq!(guest.column("SELECT 1"), ["1"]);
    });
}

#[test]
fn with_one_connection_at_a_time_all_of_many_clients_come_in() {
    on_each_server(|server| {
        let settings = "[limits]\nconnecting = 1";
        let proxy = Proxy::configured(server.addr(), settings, &[]);
        thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| {
                    let mut guest = proxy.login(&Login::default());
                    assert_eq!(guest.column("SELECT 1"), ["1"]);
                });
            }
        });
    });
}

#[test]
fn one_cap_holds_for_all_timelines_together() {
    on_each_server(|server| {
        let first = Database::classic(server, "cap_a");
        let second = Database::classic(server, "cap_b");
        let settings = "[memory]\nlimit = 67108864\n[rows]\nmemory_bytes = 16777216";
        let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
        // Three quarters are 48 MiB, of which the index has 48 * 256 / (256 + 16).
        proxy.wait_for_log("index.memory_bytes = 268435456 is held to 47");
        let limits = |client: &mut WireClient| -> Vec<u64> {
            let rows = client.rows("SHOW HEADWATER MEMORY");
            let limits = rows.iter().filter_map(|row| row[3].as_ref());
            limits.map(|limit| limit.parse().unwrap()).collect()
        };
        let mut client = proxy.login(&first.login());
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        let mut other = proxy.login(&second.login());
        warm(&proxy, &mut other, "CALL fetch_timeline_ids(1)");
        let [cap, index, rows] = limits(&mut client)[..] else {
            panic!("{:?}", client.rows("SHOW HEADWATER MEMORY"));
        };
        assert_eq!(cap, 67_108_864);
        let kept = 48 << 20;
        assert!(
            index + rows <= kept && index + rows > kept - 100,
            "{index} {rows}"
        );
    });
    for (limit, told) in [
        ("1024", "33554432 or more"),
        ("1073741824000000000000", "memory.limit"),
    ] {
        let (_folder, path) = settings_file(&format!("[memory]\nlimit = {limit}\n"));
        let output = headwater(&[]).args(["check", "--config", &path]).output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(told), "{text}");
    }
}
