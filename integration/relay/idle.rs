//! The memory of an idle session.

use std::thread;
use std::time::Duration;

use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::{Login, WireClient};

#[test]
fn a_thousand_idle_sessions_take_at_most_20_kib_each() {
    const SESSIONS: u64 = 1_000;
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        drop(proxy.login(&Login::default()));
        let before = proxy.resident_kib();
        let mut clients: Vec<WireClient> = Vec::new();
        for _ in 0..SESSIONS {
            let mut client = proxy.login(&Login::default());
            // It has worked before it idles.
            assert_eq!(client.column("SELECT repeat('x', 20000)").len(), 1);
            clients.push(client);
        }
        thread::sleep(Duration::from_millis(100));
        let each = proxy
            .resident_kib()
            .saturating_sub(before)
            .div_ceil(SESSIONS);
        eprintln!("{each} KiB each");
        assert!(each <= 20, "{each} KiB each");
        for client in &mut clients {
            assert_eq!(client.column("SELECT 1"), ["1"]);
        }
    });
}
