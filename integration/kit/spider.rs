//! Spider: a MariaDB whose messages are stored on one, two or four data nodes.

use headwater_lab::spider::{SpiderCluster, SpiderError};

use super::servers::if_here;

/// Starts Spider with further options of the Spider node; `None` on a machine that has not got Spider. On CI (`CI=true`) that is a failure.
#[track_caller]
pub(crate) fn spider(data: usize, options: &[&str]) -> Option<SpiderCluster> {
    match SpiderCluster::start(data, options) {
        Ok(spider) => Some(spider),
        Err(SpiderError::Server(error)) => if_here(Err(error)),
        Err(error) => panic!("{error}"),
    }
}
