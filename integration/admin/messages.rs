//! Log lines that clients can cause without end: a few are written, all are counted, and the log has the number of suppressed lines.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::http::Admin;
use super::metrics::value;
use crate::kit::servers::mariadb;

#[test]
fn a_flood_of_clients_that_are_let_go_does_not_flood_the_log() {
    let settings = "[proxy_protocol]\ntrusted = ['127.0.0.1']\n";
    let (proxy, admin) = Admin::beside(mariadb().addr(), settings, &[]);
    let before = admin.get("/metrics").body;
    let warned = |page: &str| value(page, "headwater_log_messages_total{level=\"warn\"}");
    assert_eq!(
        value(&before, "headwater_log_messages_total{level=\"error\"}"),
        0.0
    );
    assert_eq!(value(&before, "headwater_log_suppressed_total"), 0.0);
    for _ in 0..50 {
        let mut client = TcpStream::connect(proxy.addr()).unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n")
            .unwrap();
        // Read until the connection is closed.
        let _ = client.read_to_end(&mut Vec::new());
    }
    let after = admin.get("/metrics").body;
    assert_eq!(warned(&after) - warned(&before), 50.0, "{}", proxy.log());
    assert_eq!(value(&after, "headwater_log_suppressed_total"), 40.0);
    let (_, log) = proxy.terminate();
    let written = log
        .lines()
        .filter(|line| line.contains("}: a client is let go: "));
    assert_eq!(written.count(), 10, "{log}");
    let summary = log
        .lines()
        .find(|line| line.contains("… and 40 more like it in the last "));
    assert!(
        summary.is_some_and(|line| line.contains("WARN") && line.contains("a client is let go")),
        "{log}"
    );
}
