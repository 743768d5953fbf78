//! Limits of the process, each crossed.

use std::thread;
use std::time::Duration;

use crate::kit::proxy::Proxy;
use crate::kit::servers::mariadb;
use crate::kit::wire_client::{Login, WireClient};

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
