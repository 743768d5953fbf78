//! The smallest scenario before one member: reader 1, who follows author 2, and a client whose calls memory answers.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use super::attack::classic;
use crate::kit::cluster::Cluster;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::linear::numbers;
use crate::memory::warm;

/// The call for reader 1's newest page.
pub(super) const CALL: &str = "CALL fetch_timeline_ids(1)";
const PAGE: &str = "SELECT id FROM fetch_timeline_tt";
/// A member may have to apply thousands of transactions first.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

pub(super) struct Scene {
    pub(super) login: Login,
    /// The member that Headwater is before.
    pub(super) member: usize,
    pub(super) proxy: Proxy,
    /// A session through Headwater.
    pub(super) client: WireClient,
}

impl Scene {
    /// Makes the tables on `writer`, and starts a Headwater before `member`.
    #[track_caller]
    pub(super) fn new(cluster: &Cluster, member: usize, writer: usize) -> Scene {
        let login = classic(cluster, writer, member);
        WireClient::login(cluster.addr(writer), &login).ok("INSERT INTO follower VALUES (1, 2)");
        let mut direct = WireClient::login(cluster.addr(member), &login);
        until("the follow", || {
            direct.column("SELECT COUNT(*) FROM follower") == ["1"]
        });
        let proxy = Proxy::start(cluster.addr(member), ROOT_SERVICE);
        proxy.wait_for_log(&format!(
            "in database {}: accelerated",
            login.database.as_deref().unwrap()
        ));
        let mut client = proxy.login(&login);
        warm(&proxy, &mut client, CALL);
        Scene {
            login,
            member,
            proxy,
            client,
        }
    }

    /// Connects straight to a member.
    #[track_caller]
    pub(super) fn direct(&self, cluster: &Cluster, member: usize) -> WireClient {
        WireClient::login(cluster.addr(member), &self.login)
    }

    /// Opens a session through Headwater, and runs a first statement in it.
    #[track_caller]
    pub(super) fn session(&self, first: &str) -> WireClient {
        let mut client = self.proxy.login(&self.login);
        client.ok(first);
        client
    }

    pub(super) fn remembered(&self) -> u64 {
        self.proxy.counts().of("calls_from_memory")
    }

    pub(super) fn relayed_for(&self, reason: &str) -> u64 {
        self.proxy.counts().of(&format!("calls_relayed[{reason}]"))
    }

    /// Compares a page through Headwater with the procedure's on the same member, without concurrent writes.
    #[track_caller]
    pub(super) fn is_as_directly(&mut self, cluster: &Cluster) -> BTreeSet<u64> {
        let mut direct = self.direct(cluster, self.member);
        let (own, theirs) = (page(&mut self.client), page(&mut direct));
        assert_eq!(own, theirs, "{}", self.proxy.log());
        own
    }
}

/// Author 2 writes a message.
#[track_caller]
pub(super) fn post(client: &mut WireClient, id: u64) {
    client.ok(&message(id));
}

pub(super) fn message(id: u64) -> String {
    format!("INSERT INTO message (id, user_id, body) VALUES ({id}, 2, 'text')")
}

/// The ids on reader 1's newest page.
#[track_caller]
pub(super) fn page(client: &mut WireClient) -> BTreeSet<u64> {
    client.ok(CALL);
    numbers(&client.column(PAGE))
}

/// Waits until a condition is true.
#[track_caller]
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} does not come");
        thread::sleep(Duration::from_millis(20));
    }
}
