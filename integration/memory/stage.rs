//! The smallest setup with a timeline in memory: reader 1, who follows author 2, and a client whose call is answered from
//! memory.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::linear::numbers;
use super::{CLASSIC, prepare, warm};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{Login, WireClient};

/// Requests reader 1's newest page.
pub(crate) const CALL: &str = "CALL fetch_timeline_ids(1)";

pub(crate) struct Stage {
    pub(crate) login: Login,
    /// A direct connection to the server.
    pub(crate) root: WireClient,
    pub(crate) proxy: Proxy,
    pub(crate) client: WireClient,
}

impl Stage {
    /// Creates the tables, runs these statements, and starts a Headwater with these settings.
    pub(crate) fn new(server: SocketAddr, statements: &[&str], settings: &str) -> Stage {
        let login = prepare(server);
        let mut root = WireClient::login(server, &login);
        root.ok("INSERT INTO follower VALUES (1, 2)");
        for statement in statements {
            root.ok(statement);
        }
        let proxy = Proxy::configured(server, settings, ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
        let mut client = proxy.login(&login);
        warm(&proxy, &mut client, CALL);
        Stage {
            login,
            root,
            proxy,
            client,
        }
    }

    /// Replaces Headwater with a new one, which has new sessions. Its client runs this statement first.
    pub(crate) fn begin_anew(&mut self, server: SocketAddr, first: &str) {
        let proxy = Proxy::start(server, ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
        self.client = proxy.login(&self.login);
        self.client.ok(first);
        warm(&proxy, &mut self.client, CALL);
        self.proxy = proxy;
    }

    /// Author 2 writes a message.
    pub(crate) fn post(&mut self, id: u64) {
        post(&mut self.root, id);
    }

    pub(crate) fn page(&mut self) -> BTreeSet<u64> {
        page(&mut self.client)
    }
}

/// Author 2 writes a message.
pub(crate) fn post(root: &mut WireClient, id: u64) {
    root.ok(&format!(
        "INSERT INTO message (id, user_id, body) VALUES ({id}, 2, 'text')"
    ));
}

/// The ids on reader 1's newest page.
pub(crate) fn page(client: &mut WireClient) -> BTreeSet<u64> {
    client.ok(CALL);
    numbers(&client.column("SELECT id FROM fetch_timeline_tt"))
}
