//! Three Headwaters of one server behind HAProxy, by the example that operators start from.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::kit::haproxy::HaProxy;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, free_addr};
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::{CLASSIC, warm};

/// HAProxy says whom it speaks for. On a busy machine memory takes its time: what it says then is to be checked as well.
const SETTINGS: &str = "[proxy_protocol]\ntrusted = [\"127.0.0.1\"]\n[freshness]\nwait_ms = 10000\n\
                        [index]\nwait_ms = 10000\n[log]\nslow_ms = 200\n";
/// Who comes past HAProxy says so: for itself.
const ITSELF: &[u8] = b"PROXY UNKNOWN\r\n";
/// How many sessions more than another a Headwater has in these stories, at most.
const OTHERS: usize = 60;

#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) headwaters: [Proxy; 3],
    balancer: HaProxy,
    login: Login,
}

impl Fleet {
    /// In front of this server, each with the classic timeline of reader 1 in memory.
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

    /// Where apps connect.
    pub(super) fn addr(&self) -> SocketAddr {
        self.balancer.addr()
    }

    /// One more session of the app's.
    #[track_caller]
    pub(super) fn session(&self) -> WireClient {
        WireClient::login(self.addr(), &self.login)
    }

    /// Which of the three a session is on.
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

    /// A session on each of the three, in their order.
    ///
    /// HAProxy gives a session to the Headwater that has fewest. So those that are found twice stay open until all three are found: else the one
    /// with fewest would be found for ever.
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
            // One of the three may be away for a while.
            if others.len() > OTHERS {
                others.pop_front();
            }
        }
        found.map(Option::unwrap)
    }
}
