//! Waiting until a statement is narrowed, or relayed for a reason.

use std::time::Instant;

use crate::kit::proxy::{Counts, Proxy};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;
use crate::kit::{patience, pause_since};

/// Asks until it is narrowed: what other stories change on this server may have it looked at again any time.
#[track_caller]
pub(crate) fn narrowed(proxy: &Proxy, client: &mut WireClient, statement: &str) {
    narrowed_where(proxy, statement, |statement| {
        client.query(statement);
    });
}

/// As [`narrowed`], where each question may have its own session.
#[track_caller]
pub(super) fn narrowed_where(proxy: &Proxy, statement: &str, mut ask: impl FnMut(&str)) {
    let never = format!("narrowed: {statement}");
    until_risen(proxy, &never, Counts::feeds_answered, || ask(statement));
}

/// Asks until what is counted has risen; else says what never came.
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

/// Asks so often on both sides, where answers and warnings have to be equal, whatever becomes of it.
#[track_caller]
pub(super) fn same(twin: &mut Twin, statement: &str, times: u32) {
    for _ in 0..times {
        twin.run(statement);
        twin.run("SHOW WARNINGS");
    }
}

/// Asks on both sides, where answers have to be equal, until it is relayed for this reason: it never may be narrowed.
#[track_caller]
pub(super) fn relayed(proxy: &Proxy, twin: &mut Twin, statement: &str, why: &str) {
    let before = proxy.counts().feeds_answered();
    relayed_beside(proxy, twin, statement, why);
    let after = proxy.counts().feeds_answered();
    assert_eq!(after, before, "narrowed: {statement}");
}

/// The same while others ask for pages of their own.
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

/// Asks on both sides, where answers have to be equal, until it is narrowed.
#[track_caller]
pub(super) fn equal(proxy: &Proxy, twin: &mut Twin, statement: &str) {
    narrowed_where(proxy, statement, |statement| {
        twin.run(statement);
    });
}
