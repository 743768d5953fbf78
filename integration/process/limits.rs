//! Limits of the process, each crossed.

use std::thread;
use std::time::Duration;

use crate::kit::proxy::Proxy;
use crate::kit::servers::mariadb;
use crate::kit::wire_client::{Login, WireClient};

/// The limit of open files is Headwater's, and the server has nothing to do with it.
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
    let mut guests = Vec::new();
    // The look whether it listens may still hold a place.
    while guests.len() < room {
        match enter() {
            Ok(guest) => guests.push(guest),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
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
    // The look whether it listens may still hold a place.
    while enter().is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    let mut guests = Vec::new();
    while guests.len() < 3 {
        match enter() {
            Ok(guest) => guests.push(guest),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    let error = enter().unwrap_err();
    assert_eq!((error.code, error.sqlstate.as_str()), (1040, ""));
    assert!(error.message.contains("limits.sessions = 3"), "{error:?}");
    assert_eq!(guests[0].column("SELECT 1"), ["1"]);
    guests.pop();
    while enter().is_err() {
        thread::sleep(Duration::from_millis(5));
    }
}
