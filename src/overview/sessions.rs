//! Client sessions.

use crate::session::shared::Shared;
use crate::session::table::{Cell, Table};

/// One row a session, the oldest first.
pub(super) fn sessions(shared: &Shared) -> Table {
    let mut table = Table::of(&[
        "id",
        "account",
        "client",
        "state",
        "state_seconds",
        "age_seconds",
        "bytes_to_server",
        "bytes_to_client",
    ]);
    let mut all = shared.sessions.all();
    all.sort_by_key(|listed| std::cmp::Reverse(listed.age()));
    for listed in all {
        let client = listed.client.map(|client| client.to_string());
        let [to_server, to_client] = listed.bytes();
        table.add([
            listed.thread().map(u64::from).into(),
            listed.account().into(),
            client.map_or_else(|| Cell::from("socket"), Cell::from),
            listed.doing().name().into(),
            listed.since().as_secs_f64().into(),
            listed.age().as_secs_f64().into(),
            to_server.into(),
            to_client.into(),
        ]);
    }
    table
}
