//! A Headwater whose feed is served from a database.

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::Server;

/// On a busy machine memory takes its time, and what it says then is to be checked as well.
pub(crate) const PATIENT: &str = "
[freshness]
wait_ms = 10000
[index]
wait_ms = 10000
[feeds]
narrow = \"always\"
";

/// With these settings, once the log says that its feed of this name is served from the database.
#[track_caller]
pub(super) fn served(server: &Server, database: &Database, name: &str, settings: &str) -> Proxy {
    let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
    proxy.wait_for_log(&format!(
        "feed {name} in database {}: served",
        database.name()
    ));
    proxy
}
