//! Client sessions.

use headwater_proxy::session::overview_table::{OverviewCell, OverviewTable};
use headwater_proxy::session::shared_state::SharedState;

/// One row for each session, oldest first.
pub(super) fn sessions(shared: &SharedState) -> OverviewTable {
    let mut table = OverviewTable::with_columns(&[
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
            listed.thread_id().map(u64::from).into(),
            listed.account().into(),
            client.map_or_else(|| OverviewCell::from("socket"), OverviewCell::from),
            listed.activity().name().into(),
            listed.since().as_secs_f64().into(),
            listed.age().as_secs_f64().into(),
            to_server.into(),
            to_client.into(),
        ]);
    }
    table
}
