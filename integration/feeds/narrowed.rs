//! Helpers that wait until a statement is narrowed, or relayed for a reason.

use std::time::Instant;

use crate::kit::proxy::{Counts, Proxy};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;
use crate::kit::{patience, pause_since};

/// Sends the query until it is narrowed: changes by other tests on this server may cause a new check at any time.
#[track_caller]
pub(crate) fn narrowed(proxy: &Proxy, client: &mut WireClient, statement: &str) {
    narrowed_where(proxy, statement, |statement| {
        client.query(statement);
    });
}

/// As [`narrowed`], but each query may have its own session.
#[track_caller]
pub(super) fn narrowed_where(proxy: &Proxy, statement: &str, mut ask: impl FnMut(&str)) {
    let never = format!("narrowed: {statement}");
    until_risen(proxy, &never, Counts::feeds_answered, || ask(statement));
}

/// Repeats the query until the count rises; otherwise panics with `never`.
#[track_caller]
pub(super) fn until_risen(
    proxy: &Proxy,
    never: &str,
    count: impl Fn(&Counts) -> u64,
    mut ask: impl FnMut(),
) {
    let before = count(&proxy.counts());
    let (begun, deadline) = (Instant::now(), patience());
    loop {
        ask();
        let counts = proxy.counts();
        if count(&counts) > before {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "never {never}: {counts:?}\n{}",
            proxy.log()
        );
        pause_since(begun);
    }
}

/// Sends the query so often on both sides. Answers and warnings must be equal, whether it is narrowed or relayed.
#[track_caller]
pub(super) fn same(twin: &mut Twin, statement: &str, times: u32) {
    for _ in 0..times {
        twin.run(statement);
        twin.run("SHOW WARNINGS");
    }
}

/// Sends the query on both sides until it is relayed for this reason. Answers must be equal, and it must never be narrowed.
#[track_caller]
pub(super) fn relayed(proxy: &Proxy, twin: &mut Twin, statement: &str, why: &str) {
    let before = proxy.counts().feeds_answered();
    relayed_beside(proxy, twin, statement, why);
    let after = proxy.counts().feeds_answered();
    assert_eq!(after, before, "narrowed: {statement}");
}

/// The same while other clients request pages.
#[track_caller]
pub(super) fn relayed_beside(proxy: &Proxy, twin: &mut Twin, statement: &str, why: &str) {
    let name = format!("feeds_relayed[{why}]");
    let never = format!("relayed for {why}: {statement}");
    until_risen(
        proxy,
        &never,
        |counts| counts.of(&name),
        || {
            same(twin, statement, 1);
        },
    );
}

/// Sends the query on both sides until it is narrowed. Answers must be equal.
#[track_caller]
pub(super) fn equal(proxy: &Proxy, twin: &mut Twin, statement: &str) {
    narrowed_where(proxy, statement, |statement| {
        twin.run(statement);
    });
}
