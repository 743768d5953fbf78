//! Timelines whose messages Spider spreads over data nodes: lookups through the Spider node answer as its procedure does.

mod equal;
mod many;
mod measured;
mod odd;
mod remembered;
mod writers;

use headwater_lab::spider::SpiderCluster;

use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{Login, WireClient};

const DATABASE: &str = "tl";
/// A run of the procedure proves the definer's rights and locks what it reads on the data nodes, so runs are rare here.
const SELDOM: &str = "[privileges]\nttl_s = 3600\n";

/// A Spider node with empty tables, and a login for it.
#[derive(Debug)]
struct Spread {
    spider: SpiderCluster,
    login: Login,
}

/// The source of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Memory,
    Lookups,
    /// The follow lists are on data nodes as well.
    LookupsAlone,
}

impl Spread {
    /// Starts nodes with Headwater; `None` on a machine without Spider.
    #[track_caller]
    fn answering(data: usize, answers: Answers) -> Option<(Spread, Proxy)> {
        let spread = Spread::start(data, answers == Answers::LookupsAlone)?;
        let proxy = match answers {
            Answers::Lookups => spread.without_memory(),
            Answers::Memory | Answers::LookupsAlone => spread.proxy(),
        };
        Some((spread, proxy))
    }

    /// `None` on a machine without Spider. With `follows_too`, the follow lists are on the data nodes too.
    #[track_caller]
    fn start(data: usize, follows_too: bool) -> Option<Spread> {
        let spider = crate::kit::spider::spider(data, &[])?;
        spider.create_tables(DATABASE, follows_too).unwrap();
        Some(Spread::of(spider))
    }

    /// A Spider node with its tables.
    fn of(spider: SpiderCluster) -> Spread {
        let login = Login::default().database(DATABASE);
        Spread { spider, login }
    }

    fn direct(&self) -> WireClient {
        WireClient::login(self.spider.node.addr(), &self.login)
    }

    /// A direct connection to the data node that stores this user's rows.
    fn data_node_of(&self, user: u64) -> WireClient {
        let data = &self.spider.data_nodes;
        WireClient::login(data[user as usize % data.len()].addr(), &self.login)
    }

    /// Starts Headwater and waits until it knows the timeline; its service account exists on the data nodes as well.
    #[track_caller]
    fn proxy(&self) -> Proxy {
        self.behind(SELDOM)
    }

    /// As [`Self::proxy`], with answers by lookups only.
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
