//! Spider: a MariaDB whose messages are on one, two or four data nodes.

use headwater::lab::private_server::PrivateServerError;
use headwater::lab::spider::{Spider, SpiderError};

/// With further options of the Spider node; `None` on a machine that could not get Spider. On CI (`CI=true`) that is a failure.
#[track_caller]
pub(crate) fn spider(data: usize, options: &[&str]) -> Option<Spider> {
    match Spider::start(data, options) {
        Ok(spider) => Some(spider),
        Err(SpiderError::Server(error @ PrivateServerError::Missing { .. })) => {
            let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!on_ci, "{error}");
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
