//! Headwater's state as tables: for clients (`SHOW HEADWATER ...`), the admin port (`/api/...`) and Prometheus. It only reads what sessions
//! have counted.
//!
//! | module | what it reports |
//! |---|---|
//! | `metrics` | every metric, as Prometheus reads it |
//! | `process` | the operating system's numbers of the process |
//! | `feeds` | definitions and feeds, and templates of statements |
//! | `memory` | the contents of memory, and its limits |
//! | `sessions` | client sessions |
//! | `upstreams` | the servers |

mod feeds;
mod memory;
pub mod metrics;
pub(crate) mod process;
mod sessions;
mod upstreams;

use headwater_proxy::session::overview_table::OverviewTable;
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::session::show_statements::OverviewSource;
use headwater_statement::HeadwaterTable;

/// Builds the tables.
#[derive(Clone, Copy, Debug)]
pub struct OverviewBuilder;

impl OverviewSource for OverviewBuilder {
    fn table(&self, shared: &SharedState, table: HeadwaterTable) -> OverviewTable {
        match table {
            HeadwaterTable::Status => status(shared),
            HeadwaterTable::Feeds => feeds::feeds(shared),
            HeadwaterTable::Statements => feeds::statements(shared),
            HeadwaterTable::Sessions => sessions::sessions(shared),
            HeadwaterTable::Memory => memory::memory(shared),
            HeadwaterTable::Settings => settings(shared),
            HeadwaterTable::Upstreams => upstreams::upstreams(shared),
        }
    }
}

/// Every value, by the names of the metrics. The client has logged in, so the server is up.
fn status(shared: &SharedState) -> OverviewTable {
    let mut table = OverviewTable::with_columns(&["name", "value"]);
    for (name, value) in metrics::flat_values(shared, true) {
        table.add([name.into(), value]);
    }
    table
}

fn settings(shared: &SharedState) -> OverviewTable {
    let mut table = OverviewTable::with_columns(&["name", "value"]);
    for (name, value) in &shared.settings {
        table.add([name.as_str().into(), value.as_str().into()]);
    }
    table
}
