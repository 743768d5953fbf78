//! The servers: what each is, where there are several.

use std::time::Instant;

use crate::clock;
use crate::cluster::{Seen, Status};
use crate::session::shared::Shared;
use crate::session::table::{Cell, Table};
use crate::upstreams::why;

/// One row a server, in the order of the list. Of one that is the only one nothing is asked.
pub(super) fn upstreams(shared: &Shared) -> Table {
    let mut table = Table::of(&[
        "server",
        "role",
        "role_seconds",
        "serves",
        "serves_seconds",
        "read_only",
        "says",
    ]);
    for (place, (server, status)) in shared.upstreams.statuses().into_iter().enumerate() {
        let cells = match status {
            Some(status) => told(server, &status, &shared.upstreams.leads(place)),
            None => [
                server.into(),
                "primary".into(),
                Cell::Null,
                "listen".into(),
                Cell::Null,
                Cell::Null,
                Cell::Null,
            ],
        };
        table.add(cells);
    }
    table
}

/// `leads`: the ports whose clients are led to it, each with since when.
fn told(server: &str, status: &Status, leads: &[(&str, Option<Instant>)]) -> [Cell; 7] {
    let read_only = match &status.seen {
        Seen::Told(facts) => u64::from(facts.read_only).into(),
        Seen::Not | Seen::Away(_) | Seen::Refuses(_) => Cell::Null,
    };
    let says = match &status.seen {
        Seen::Told(facts) if facts.fault().is_none() => Cell::Null,
        seen => why(seen).as_str().into(),
    };
    let ports: Vec<&str> = leads.iter().map(|(port, _)| *port).collect();
    let serves = match ports.is_empty() {
        true => Cell::Null,
        false => ports.join(", ").into(),
    };
    // The first of them is `listen`, where that leads there.
    let since = leads.first().and_then(|(_, since)| *since);
    [
        server.into(),
        status.role.name().into(),
        clock::since(status.since).as_secs_f64().into(),
        serves,
        since.map(|it| clock::since(it).as_secs_f64()).into(),
        read_only,
        says,
    ]
}
