//! The servers: what each is, where there are several.

use crate::cluster::{Seen, Status};
use crate::session::shared::Shared;
use crate::session::table::{Cell, Table};
use crate::upstreams::why;

/// One row a server, in the order of the list. Of one that is the only one nothing is asked.
pub(super) fn upstreams(shared: &Shared) -> Table {
    let mut table = Table::of(&["server", "role", "role_seconds", "read_only", "says"]);
    for (server, status) in shared.upstreams.statuses() {
        let cells = match status {
            Some(status) => told(server, &status),
            None => [
                server.into(),
                "primary".into(),
                Cell::Null,
                Cell::Null,
                Cell::Null,
            ],
        };
        table.add(cells);
    }
    table
}

fn told(server: &str, status: &Status) -> [Cell; 5] {
    let read_only = match &status.seen {
        Seen::Told(facts) => u64::from(facts.read_only).into(),
        Seen::Not | Seen::Away(_) | Seen::Refuses(_) => Cell::Null,
    };
    let says = match &status.seen {
        Seen::Told(facts) if facts.fault().is_none() => Cell::Null,
        seen => why(seen).as_str().into(),
    };
    [
        server.into(),
        status.role.name().into(),
        status.since.elapsed().as_secs_f64().into(),
        read_only,
        says,
    ]
}
