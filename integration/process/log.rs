//! Which session a log line belongs to: it names the client, the session's number at the server, and its account.

use std::os::unix::net::UnixStream;

use crate::kit::proxy::Proxy;
use crate::kit::servers::{mariadb, on_each_server};
use crate::kit::wire_client::{Login, WireClient};

/// The address and number of a session.
fn who(client: &mut WireClient) -> (String, String) {
    let address = client.stream.tcp().local_addr().unwrap().to_string();
    let number = client.column("SELECT CONNECTION_ID()").remove(0);
    (address, number)
}

/// The session has no database, so the server refuses this call.
const CALL: &str = "CALL fetch_timeline_ids(1)";

#[test]
fn lines_of_sessions_say_whose_they_are() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &["--log-level", "debug"]);
        let mut sessions = [(); 2].map(|()| proxy.login(&Login::default()));
        let whose = sessions.each_mut().map(who);
        assert_ne!(whose[0], whose[1]);
        for session in &mut sessions {
            session.error(CALL);
        }
        drop(sessions);
        for (address, number) in &whose {
            let span = format!("session{{client={address} thread={number} account=\"root\"}}: ");
            proxy.wait_for_log(&format!("{span}a call is relayed"));
            proxy.wait_for_log(&format!("{span}a session ended: "));
        }
        let log = proxy.log();
        assert!(!log.contains("fetch_timeline_ids("), "{log}");
    });
}

#[test]
fn lines_in_json_say_so_in_fields() {
    let flags = ["--log-format", "json", "--log-level", "debug"];
    let proxy = Proxy::start(mariadb().addr(), &flags);
    let mut session = proxy.login(&Login::default());
    let (address, number) = who(&mut session);
    session.error(CALL);
    proxy.wait_for_log("a call is relayed");
    let log = proxy.log();
    let line = log
        .lines()
        .find(|line| line.contains("a call is relayed"))
        .unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let span = &line["span"];
    assert_eq!(span["client"], address.as_str(), "{line}");
    assert_eq!(span["thread"].to_string(), number, "{line}");
    assert_eq!(span["account"], "root", "{line}");
}

#[test]
fn who_comes_by_the_socket_and_does_not_log_in_is_named_by_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headwater.sock");
    let flags = ["--log-level", "debug", "--socket", path.to_str().unwrap()];
    let proxy = Proxy::start(mariadb().addr(), &flags);
    drop(UnixStream::connect(&path).unwrap());
    proxy.wait_for_log("session{client=socket");
    let log = proxy.log();
    let line = log
        .lines()
        .find(|line| line.contains("client=socket"))
        .unwrap();
    assert!(!line.contains("account"), "{line}");
}
