//! Three Headwaters of one server behind HAProxy, with the example configuration that operators start from.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::kit::haproxy::HaProxy;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, free_addr};
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::{CLASSIC, warm};

/// Trusts HAProxy's header. The waits are long because memory is slow on a busy machine, and its late answers must be checked too.
const SETTINGS: &str = "[proxy_protocol]\ntrusted = [\"127.0.0.1\"]\n[freshness]\nwait_ms = 10000\n\
                        [index]\nwait_ms = 10000\n[log]\nslow_ms = 200\n";
/// The PROXY header of a client that connects without HAProxy: it speaks for itself.
const ITSELF: &[u8] = b"PROXY UNKNOWN\r\n";
/// The most surplus sessions that [`Fleet::sessions`] keeps open.
const OTHERS: usize = 60;

#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) headwaters: [Proxy; 3],
    balancer: HaProxy,
    login: Login,
}

impl Fleet {
    /// Starts the fleet before this server. Each Headwater caches the classic timeline of reader 1.
    #[track_caller]
    pub(super) fn start(server: SocketAddr, login: &Login) -> Fleet {
        let admins = [(); 3].map(|()| free_addr());
        let headwaters = admins.map(|admin| {
            let admin = admin.to_string();
            let flags = [ROOT_SERVICE, &["--admin-listen", &admin]].concat();
            Proxy::configured(server, SETTINGS, &flags)
        });
        let [one, two, three] = &headwaters;
        let both = [(one, 0), (two, 1), (three, 2)];
        let balancer = HaProxy::by_the_example(both.map(|(one, at)| (one.addr(), admins[at])));
        let fleet = Fleet {
            headwaters,
            balancer,
            login: login.clone(),
        };
        for headwater in &fleet.headwaters {
            fleet.warm(headwater);
        }
        fleet
    }

    /// Waits until a Headwater answers from memory.
    #[track_caller]
    pub(super) fn warm(&self, headwater: &Proxy) {
        headwater.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
        let mut client = headwater.login(&self.login.clone().speaking_for(ITSELF));
        warm(headwater, &mut client, "CALL fetch_timeline_ids(1)");
    }

    /// The address that apps connect to.
    pub(super) fn addr(&self) -> SocketAddr {
        self.balancer.addr()
    }

    /// Opens another session of the app.
    #[track_caller]
    pub(super) fn session(&self) -> WireClient {
        WireClient::login(self.addr(), &self.login)
    }

    /// The index of the Headwater that a session is on.
    #[track_caller]
    pub(super) fn of(&self, session: &mut WireClient) -> usize {
        let row = session
            .rows("SHOW HEADWATER SETTINGS LIKE 'listen'")
            .remove(0);
        let listen = row[1].as_deref().unwrap().trim_matches('"').to_owned();
        let addrs = self.headwaters.each_ref().map(|one| one.addr().to_string());
        let found = addrs.iter().position(|addr| *addr == listen);
        found.unwrap_or_else(|| panic!("{listen} is none of {addrs:?}"))
    }

    /// Opens a session on each of the three, in their order.
    ///
    /// HAProxy assigns a session to the Headwater with the fewest. Surplus sessions stay open until all three are found: else HAProxy would
    /// assign each new session to the same one.
    #[track_caller]
    pub(super) fn sessions(&self) -> [WireClient; 3] {
        let deadline = Instant::now() + Duration::from_secs(120);
        let mut found = [const { None }; 3];
        let mut others = VecDeque::new();
        while found.iter().any(Option::is_none) {
            assert!(
                Instant::now() < deadline,
                "one of the three gets no session: {found:?}"
            );
            let mut session = self.session();
            let at = self.of(&mut session);
            others.extend(found[at].replace(session));
            // One of the three may be down for a while.
            if others.len() > OTHERS {
                others.pop_front();
            }
        }
        found.map(Option::unwrap)
    }
}
