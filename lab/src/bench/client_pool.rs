//! The connections of a bench: on each route as many as the largest number measured.

use std::time::Duration;

use super::BenchError;
use super::client::BenchClient;
use super::depth::PageDepth;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::proxy_process::ProxyProcess;
use crate::feed::SettingsFile;
use crate::query_path::{ConnectionRoute, QueryForm, QueryPath};

/// Open connections by route, and the Headwaters that some of them use.
#[derive(Debug)]
pub struct ClientPool {
    routes: Vec<RouteClients>,
    proxies: Vec<(ConnectionRoute, ProxyProcess)>,
    /// True if each page uses a new connection.
    pub reconnect: bool,
    /// The server's process, if its processor time is measured.
    pub server_pid: Option<u32>,
    /// Calls the procedure when an answer is to be verified.
    pub direct: BenchClient,
}

#[derive(Debug)]
struct RouteClients {
    route: ConnectionRoute,
    address: String,
    clients: Vec<BenchClient>,
}

/// What a Headwater reported of itself.
#[derive(Debug, Default)]
pub struct ProxyReport {
    /// Its log lines about definitions.
    pub log: Vec<String>,
    /// The counters that it printed at its end.
    pub counts: Option<String>,
}

impl ClientPool {
    /// Starts a Headwater for each of these routes, or uses the running one, and logs in there and directly. `feeds`: the feed settings of
    /// the first one.
    ///
    /// # Errors
    /// Fails if a Headwater does not start, or a login fails.
    pub fn connect(
        flags: &BenchFlags,
        account: &BenchAccount,
        connections: usize,
        routes: &[ConnectionRoute],
        feeds: Option<&str>,
    ) -> Result<ClientPool, BenchError> {
        let connect = |address: &str| {
            BenchClient::connect(address, account).map_err(BenchError::for_address(address))
        };
        let line = |route, address: String| {
            let clients = (0..connections)
                .map(|_| connect(&address))
                .collect::<Result<Vec<_>, _>>()?;
            Ok::<_, BenchError>(RouteClients {
                route,
                address,
                clients,
            })
        };
        let mut pool = ClientPool {
            routes: vec![line(ConnectionRoute::Direct, flags.upstream.clone())?],
            proxies: Vec::new(),
            reconnect: flags.reconnect,
            server_pid: flags.server_pid,
            direct: connect(&flags.upstream)?,
        };
        if let Some(proxy) = &flags.proxy {
            pool.routes
                .push(line(ConnectionRoute::Headwater, proxy.clone())?);
            return Ok(pool);
        }
        for route in routes.iter().copied() {
            let relay: &[&str] = match route {
                ConnectionRoute::Relay => &["--relay-only"],
                _ => &[],
            };
            let mut args = relay.to_vec();
            let settings = match (feeds, route) {
                (Some(text), ConnectionRoute::Headwater) => Some(write_settings(text)?),
                _ => None,
            };
            if let Some(path) = settings.as_ref().and_then(|file| file.path().to_str()) {
                args.extend(["--config", path]);
            }
            let proxy = ProxyProcess::start(flags, &args)?;
            let address = proxy.address();
            pool.proxies.push((route, proxy));
            pool.routes.push(line(route, address)?);
        }
        Ok(pool)
    }

    /// The query paths by which a page can be requested on these connections.
    #[must_use]
    pub fn query_paths(&self, lateral: bool, feeds: bool, page: PageDepth) -> Vec<QueryPath> {
        let has = |path: &QueryPath| self.routes.iter().any(|line| line.route == path.route);
        let of_feeds = QueryPath::FEEDS.into_iter().filter(|_| feeds);
        QueryPath::ALL
            .into_iter()
            .chain(of_feeds)
            .filter(has)
            .filter(|path| lateral || path.form != QueryForm::Lateral)
            .filter(|path| page == PageDepth::Random || path.form != QueryForm::Newest)
            .collect()
    }

    /// The first connections of a route, and the direct connection for the procedure.
    pub fn clients(
        &mut self,
        route: ConnectionRoute,
        connections: usize,
    ) -> (&mut [BenchClient], &mut BenchClient) {
        let line = self.routes.iter_mut().find(|line| line.route == route);
        let clients = line.map_or(Default::default(), |line| line.clients.as_mut_slice());
        let connections = connections.min(clients.len());
        (
            clients.get_mut(..connections).unwrap_or_default(),
            &mut self.direct,
        )
    }

    /// The address of a route.
    #[must_use]
    pub fn address(&self, route: ConnectionRoute) -> &str {
        self.routes
            .iter()
            .find(|line| line.route == route)
            .map_or("", |line| &line.address)
    }

    /// Waits until the started Headwater logs a line that contains this text; false on timeout.
    #[must_use]
    pub fn wait_for_log(&self, text: &str, limit: Duration) -> bool {
        let mut proxies = self.proxies.iter();
        let accelerated = proxies.find(|(route, _)| *route == ConnectionRoute::Headwater);
        accelerated.is_none_or(|(_, proxy)| proxy.wait_for(text, limit).is_some())
    }

    /// Logs out, and stops the Headwaters that were started.
    #[must_use]
    pub fn close(self) -> ProxyReport {
        drop(self.routes);
        let mut report = ProxyReport::default();
        for (route, proxy) in self.proxies {
            let (log, counts) = proxy.stop();
            if route == ConnectionRoute::Headwater {
                report.log = log
                    .iter()
                    .filter_map(|line| definition_text(line))
                    .collect();
                report.counts = Some(counts);
            }
        }
        report
    }
}

fn write_settings(text: &str) -> Result<SettingsFile, BenchError> {
    SettingsFile::new(text).map_err(|(path, source)| BenchError::Write { path, source })
}

/// The definition part of a log line, without time and level.
fn definition_text(line: &str) -> Option<String> {
    line.find("definition ")
        .and_then(|at| line.get(at..))
        .map(str::to_owned)
}
