//! Waiting until a statement is narrowed.

use std::time::{Duration, Instant};

use crate::kit::proxy::Proxy;
use crate::kit::wire_client::WireClient;

/// Asks until it is narrowed: what other stories change on this server may have it looked at again any time.
#[track_caller]
pub(super) fn narrowed(proxy: &Proxy, client: &mut WireClient, statement: &str) {
    narrowed_where(proxy, statement, |statement| {
        client.query(statement);
    });
}

/// As [`narrowed`], where each question may have its own session.
#[track_caller]
pub(super) fn narrowed_where(proxy: &Proxy, statement: &str, mut ask: impl FnMut(&str)) {
    let before = proxy.counts().of("feeds_narrowed");
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        ask(statement);
        let counts = proxy.counts();
        if counts.of("feeds_narrowed") > before {
            return;
        }
        let log = proxy.log();
        assert!(
            Instant::now() < deadline,
            "never narrowed: {statement}: {counts:?}\n{log}"
        );
    }
}
