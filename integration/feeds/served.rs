//! Starts a Headwater whose feed is served from a database.

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::Server;

/// Memory is slow on a busy machine, and the tests check its answers then too.
pub(crate) const PATIENT: &str = "
[freshness]
wait_ms = 10000
[index]
wait_ms = 10000
[feeds]
narrow = \"always\"
";

/// Starts Headwater with these settings, and waits until the log reports that the feed of this name is served from the database.
#[track_caller]
pub(super) fn served(server: &Server, database: &Database, name: &str, settings: &str) -> Proxy {
    let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
    proxy.wait_for_log(&format!(
        "feed {name} in database {}: served",
        database.name()
    ));
    proxy
}
