//! The connections of a bench: as many as the largest number measured, on each route.

use std::time::Duration;

use super::BenchError;
use super::child::Proxy;
use super::client::Client;
use super::depth::Depth;
use super::flags::BenchFlags;
use super::login::Account;
use super::way::{Form, Route, Way};
use crate::lab::feed::SettingsFile;

/// Open connections by route, and the Headwaters that some of them go through.
#[derive(Debug)]
pub struct Crew {
    lines: Vec<Line>,
    proxies: Vec<(Route, Proxy)>,
    /// Connections are made anew for each page.
    pub reconnect: bool,
    /// The server's process, if it is to be looked at.
    pub server: Option<u32>,
    /// Asks the procedure when an answer is doubted.
    pub direct: Client,
}

/// The connections of a route.
#[derive(Debug)]
struct Line {
    route: Route,
    address: String,
    clients: Vec<Client>,
}

/// What a Headwater said of itself.
#[derive(Debug, Default)]
pub struct Said {
    /// Log lines on definitions.
    pub log: Vec<String>,
    /// The counters it printed at its end.
    pub counts: Option<String>,
}

impl Crew {
    /// Starts a Headwater for each of these routes, or takes the one that runs, and logs in there and directly. `feeds`: settings of those
    /// that the first is to have.
    ///
    /// # Errors
    /// When a Headwater does not come up, or a login fails.
    pub fn gather(
        flags: &BenchFlags,
        account: &Account,
        connections: usize,
        routes: &[Route],
        feeds: Option<&str>,
    ) -> Result<Crew, BenchError> {
        let connect =
            |address: &str| Client::connect(address, account).map_err(BenchError::at(address));
        let line = |route, address: String| {
            let clients = (0..connections)
                .map(|_| connect(&address))
                .collect::<Result<Vec<_>, _>>()?;
            Ok::<_, BenchError>(Line {
                route,
                address,
                clients,
            })
        };
        let mut crew = Crew {
            lines: vec![line(Route::Direct, flags.upstream.clone())?],
            proxies: Vec::new(),
            reconnect: flags.reconnect,
            server: flags.server_pid,
            direct: connect(&flags.upstream)?,
        };
        if let Some(proxy) = &flags.proxy {
            crew.lines.push(line(Route::Headwater, proxy.clone())?);
            return Ok(crew);
        }
        for route in routes.iter().copied() {
            let relay: &[&str] = match route {
                Route::Relay => &["--relay-only"],
                _ => &[],
            };
            let mut args = relay.to_vec();
            let settings = match (feeds, route) {
                (Some(text), Route::Headwater) => Some(written(text)?),
                _ => None,
            };
            if let Some(path) = settings.as_ref().and_then(|file| file.path().to_str()) {
                args.extend(["--config", path]);
            }
            let proxy = Proxy::start(flags, &args)?;
            let address = proxy.address();
            crew.proxies.push((route, proxy));
            crew.lines.push(line(route, address)?);
        }
        Ok(crew)
    }

    /// The ways in which a page can be asked for with these connections.
    #[must_use]
    pub fn ways(&self, lateral: bool, feeds: bool, page: Depth) -> Vec<Way> {
        let has = |way: &Way| self.lines.iter().any(|line| line.route == way.route);
        let of_feeds = Way::FEEDS.into_iter().filter(|_| feeds);
        Way::ALL
            .into_iter()
            .chain(of_feeds)
            .filter(has)
            .filter(|way| lateral || way.form != Form::Lateral)
            .filter(|way| page == Depth::Random || way.form != Form::Newest)
            .collect()
    }

    /// The first connections of a route, and the connection to the procedure.
    pub fn clients(&mut self, route: Route, connections: usize) -> (&mut [Client], &mut Client) {
        let line = self.lines.iter_mut().find(|line| line.route == route);
        let clients = line.map_or(Default::default(), |line| line.clients.as_mut_slice());
        let connections = connections.min(clients.len());
        (
            clients.get_mut(..connections).unwrap_or_default(),
            &mut self.direct,
        )
    }

    /// Where a route leads.
    #[must_use]
    pub fn address(&self, route: Route) -> &str {
        self.lines
            .iter()
            .find(|line| line.route == route)
            .map_or("", |line| &line.address)
    }

    /// Waits until the Headwater that was started logs a line with this in it; false where it does not in time.
    #[must_use]
    pub fn waits_for(&self, text: &str, limit: Duration) -> bool {
        let mut proxies = self.proxies.iter();
        let own = proxies.find(|(route, _)| *route == Route::Headwater);
        own.is_none_or(|(_, proxy)| proxy.wait_for(text, limit).is_some())
    }

    /// Logs out and stops what was started.
    #[must_use]
    pub fn dismiss(self) -> Said {
        drop(self.lines);
        let mut said = Said::default();
        for (route, proxy) in self.proxies {
            let (log, counts) = proxy.stop();
            if route == Route::Headwater {
                said.log = log
                    .iter()
                    .filter_map(|line| on_a_definition(line))
                    .collect();
                said.counts = Some(counts);
            }
        }
        said
    }
}

fn written(text: &str) -> Result<SettingsFile, BenchError> {
    SettingsFile::new(text).map_err(|(path, source)| BenchError::Write { path, source })
}

/// What a log line says of a definition, without its time and level.
fn on_a_definition(line: &str) -> Option<String> {
    line.find("definition ")
        .and_then(|at| line.get(at..))
        .map(str::to_owned)
}
