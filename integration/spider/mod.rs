//! Timelines whose messages Spider spreads over data nodes: answered by lookups through the Spider node, as its procedure answers.

mod equal;
mod many;
mod measured;
mod odd;
mod writers;

use headwater::lab::spider::Spider;

use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{Login, WireClient};

const DATABASE: &str = "tl";
/// The definer's rights are proved by a run of the procedure, which locks what it reads on the data nodes: seldom here.
const SELDOM: &str = "[privileges]\nttl_s = 3600\n";

/// A Spider node with empty tables, and how to log in there.
#[derive(Debug)]
struct Spread {
    spider: Spider,
    login: Login,
}

impl Spread {
    /// `None` on a machine without Spider. The follow lists are on the data nodes too where `follows_too`.
    #[track_caller]
    fn start(data: usize, follows_too: bool) -> Option<Spread> {
        let spider = crate::kit::spider::spider(data, &[])?;
        spider.furnish(DATABASE, follows_too).unwrap();
        let login = Login::default().database(DATABASE);
        Some(Spread { spider, login })
    }

    fn direct(&self) -> WireClient {
        WireClient::login(self.spider.node.addr(), &self.login)
    }

    /// Straight on the data node that keeps this user's rows.
    fn data_node_of(&self, user: u64) -> WireClient {
        let data = &self.spider.data;
        WireClient::login(data[user as usize % data.len()].addr(), &self.login)
    }

    /// Headwater in front, once it knows the timeline; with a service account, whose memory is of no use here.
    #[track_caller]
    fn proxy(&self) -> Proxy {
        let proxy = Proxy::configured(self.spider.node.addr(), SELDOM, ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {DATABASE}: accelerated"));
        assert!(proxy.log().contains("spread by Spider"), "{}", proxy.log());
        proxy
    }
}
