//! How Headwater is, as tables: for clients (`SHOW HEADWATER ...`), for the admin port (`/api/...`) and for Prometheus. It reads what
//! sessions have counted and decides nothing.
//!
//! | module | what it tells |
//! |---|---|
//! | `metrics` | everything that is counted, as Prometheus reads it |
//! | `process` | what the system says of the process |
//! | `feeds` | definitions and feeds, and templates of statements |
//! | `memory` | what memory holds, and its bounds |
//! | `sessions` | client sessions |
//! | `upstreams` | the servers |

mod feeds;
mod memory;
pub mod metrics;
pub(crate) mod process;
mod sessions;
mod upstreams;

use crate::session::own::Overview;
use crate::session::shared::Shared;
use crate::session::table::Table;
use crate::statement::OwnTable;

/// Makes the tables.
#[derive(Clone, Copy, Debug)]
pub struct Tables;

impl Overview for Tables {
    fn table(&self, shared: &Shared, table: OwnTable) -> Table {
        match table {
            OwnTable::Status => status(shared),
            OwnTable::Feeds => feeds::feeds(shared),
            OwnTable::Statements => feeds::statements(shared),
            OwnTable::Sessions => sessions::sessions(shared),
            OwnTable::Memory => memory::memory(shared),
            OwnTable::Settings => settings(shared),
            OwnTable::Upstreams => upstreams::upstreams(shared),
        }
    }
}

/// Everything that is counted, by the names of the metrics. Who asks has been let in by the server, so it is there.
fn status(shared: &Shared) -> Table {
    let mut table = Table::of(&["name", "value"]);
    for (name, value) in metrics::flat(shared, true) {
        table.add([name.into(), value]);
    }
    table
}

fn settings(shared: &Shared) -> Table {
    let mut table = Table::of(&["name", "value"]);
    for (name, value) in &shared.settings {
        table.add([name.as_str().into(), value.as_str().into()]);
    }
    table
}
