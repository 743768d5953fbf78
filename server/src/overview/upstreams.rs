//! The servers, and the role of each if there are several.

use std::time::Instant;

use headwater_cluster::{ServerObservation, ServerStatus};
use headwater_proxy::clock;
use headwater_proxy::session::overview_table::{OverviewCell, OverviewTable};
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::upstreams::unfit_reason;

/// One row for each server, in the order of the list. A single server is not probed.
pub(super) fn upstreams(shared: &SharedState) -> OverviewTable {
    let mut table = OverviewTable::with_columns(&[
        "server",
        "role",
        "role_seconds",
        "serves",
        "serves_seconds",
        "read_only",
        "says",
    ]);
    for (index, (server, status)) in shared.upstreams.statuses().into_iter().enumerate() {
        let cells = match status {
            Some(status) => server_cells(server, &status, &shared.upstreams.ports_led_to(index)),
            None => [
                server.into(),
                "primary".into(),
                OverviewCell::Null,
                "listen".into(),
                OverviewCell::Null,
                OverviewCell::Null,
                OverviewCell::Null,
            ],
        };
        table.add(cells);
    }
    table
}

/// `leads`: the ports that lead their clients to it, each with the start time.
fn server_cells(
    server: &str,
    status: &ServerStatus,
    leads: &[(&str, Option<Instant>)],
) -> [OverviewCell; 7] {
    let read_only = match &status.observation {
        ServerObservation::Reported(facts) => u64::from(facts.read_only).into(),
        ServerObservation::Unasked
        | ServerObservation::Unreachable(_)
        | ServerObservation::Refused(_) => OverviewCell::Null,
    };
    let observation_cell = match &status.observation {
        ServerObservation::Reported(facts) if facts.primary_fault().is_none() => OverviewCell::Null,
        observation => unfit_reason(observation).as_str().into(),
    };
    let ports: Vec<&str> = leads.iter().map(|(port, _)| *port).collect();
    let serves = match ports.is_empty() {
        true => OverviewCell::Null,
        false => ports.join(", ").into(),
    };
    // The first port is `relay_listener`, if it leads there.
    let since = leads.first().and_then(|(_, since)| *since);
    [
        server.into(),
        status.role.name().into(),
        clock::since(status.since).as_secs_f64().into(),
        serves,
        since.map(|it| clock::since(it).as_secs_f64()).into(),
        read_only,
        observation_cell,
    ]
}
