//! What memory holds, and its bounds.

use super::process::Process;
use crate::session::shared::Shared;
use crate::session::table::{Cell, Table};

/// One row for each kind of thing that is kept.
pub(super) fn memory(shared: &Shared) -> Table {
    let mut table = Table::of(&[
        "name",
        "entries",
        "bytes",
        "limit_bytes",
        "evicted",
        "setting",
    ]);
    let process = Process::now(0.0);
    table.add([
        "process".into(),
        Cell::Null,
        process.resident_bytes.map_or(Cell::Null, Cell::Number),
        shared.memory_limit.into(),
        Cell::Null,
        "memory.limit".into(),
    ]);
    let (Some(binlog), Some(held)) = (&shared.binlog, shared.held()) else {
        return table;
    };
    let [bytes, follows, authors, messages] = held.sizes;
    table.add([
        "timelines".into(),
        held.timelines.into(),
        bytes.into(),
        held.most_bytes.into(),
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
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]);
    }
    if let Some(rows) = binlog.rows() {
        table.add([
            "rows".into(),
            (rows.messages() as u64).into(),
            rows.bytes().into(),
            binlog.limits().rows_bytes.into(),
            rows.evicted().into(),
            "rows.memory_bytes".into(),
        ]);
    }
    table
}
