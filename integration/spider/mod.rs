//! Timelines whose messages Spider spreads over data nodes: answered by lookups through the Spider node, as its procedure answers.

mod equal;
mod many;
mod measured;
mod odd;
mod remembered;
mod writers;

use headwater::lab::spider::SpiderCluster;

use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{Login, WireClient};

const DATABASE: &str = "tl";
/// The definer's rights are proved by a run of the procedure, which locks what it reads on the data nodes: seldom here.
const SELDOM: &str = "[privileges]\nttl_s = 3600\n";

/// A Spider node with empty tables, and how to log in there.
#[derive(Debug)]
struct Spread {
    spider: SpiderCluster,
    login: Login,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Memory,
    Lookups,
    /// The follow lists are on data nodes as well.
    LookupsAlone,
}

impl Spread {
    /// With Headwater in front; `None` on a machine without Spider.
    #[track_caller]
    fn answering(data: usize, answers: Answers) -> Option<(Spread, Proxy)> {
        let spread = Spread::start(data, answers == Answers::LookupsAlone)?;
        let proxy = match answers {
            Answers::Lookups => spread.without_memory(),
            Answers::Memory | Answers::LookupsAlone => spread.proxy(),
        };
        Some((spread, proxy))
    }

    /// `None` on a machine without Spider. The follow lists are on the data nodes too where `follows_too`.
    #[track_caller]
    fn start(data: usize, follows_too: bool) -> Option<Spread> {
        let spider = crate::kit::spider::spider(data, &[])?;
        spider.create_tables(DATABASE, follows_too).unwrap();
        Some(Spread::of(spider))
    }

    /// One that has its tables.
    fn of(spider: SpiderCluster) -> Spread {
        let login = Login::default().database(DATABASE);
        Spread { spider, login }
    }

    fn direct(&self) -> WireClient {
        WireClient::login(self.spider.node.addr(), &self.login)
    }

    /// Straight on the data node that keeps this user's rows.
    fn data_node_of(&self, user: u64) -> WireClient {
        let data = &self.spider.data_nodes;
        WireClient::login(data[user as usize % data.len()].addr(), &self.login)
    }

    /// Headwater in front, once it knows the timeline; with a service account, which the data nodes know as well.
    #[track_caller]
    fn proxy(&self) -> Proxy {
        self.behind(SELDOM)
    }

    /// The same, which answers by lookups alone.
    #[track_caller]
    fn without_memory(&self) -> Proxy {
        self.behind(&format!("{SELDOM}[index]\nmemory_bytes = 0\n"))
    }

    #[track_caller]
    fn behind(&self, settings: &str) -> Proxy {
        let proxy = Proxy::configured(self.spider.node.addr(), settings, ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {DATABASE}: accelerated"));
        assert!(proxy.log().contains("spread by Spider"), "{}", proxy.log());
        proxy
    }
}
