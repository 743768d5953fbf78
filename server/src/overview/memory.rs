//! The contents of memory, and its limits.

use super::process::ProcessStats;
use headwater_proxy::session::overview_table::{OverviewCell, OverviewTable};
use headwater_proxy::session::shared_state::SharedState;

/// One row for each kind of entry.
pub(super) fn memory(shared: &SharedState) -> OverviewTable {
    let mut table = OverviewTable::with_columns(&[
        "name",
        "entries",
        "bytes",
        "limit_bytes",
        "evicted",
        "setting",
    ]);
    let process = ProcessStats::now(0.0);
    table.add([
        "process".into(),
        OverviewCell::Null,
        process
            .resident_bytes
            .map_or(OverviewCell::Null, OverviewCell::Number),
        shared.memory_limit.into(),
        OverviewCell::Null,
        "memory.limit".into(),
    ]);
    let (Some(binlog), Some(held)) = (&shared.binlog, shared.index_usage()) else {
        return table;
    };
    let [bytes, follows, authors, messages] = held.sizes;
    table.add([
        "timelines".into(),
        held.timelines.into(),
        bytes.into(),
        held.max_bytes.into(),
        held.evicted.into(),
        "index.memory_bytes".into(),
    ]);
    for (name, entries) in [
        ("follows", follows),
        ("authors", authors),
        ("messages", messages),
    ] {
        table.add([
            name.into(),
            entries.into(),
            OverviewCell::Null,
            OverviewCell::Null,
            OverviewCell::Null,
            OverviewCell::Null,
        ]);
    }
    if let Some(rows) = binlog.row_cache() {
        table.add([
            "rows".into(),
            (rows.cached_messages() as u64).into(),
            rows.memory_bytes().into(),
            binlog.limits().rows_bytes.into(),
            rows.evicted_rows().into(),
            "rows.memory_bytes".into(),
        ]);
    }
    table
}
