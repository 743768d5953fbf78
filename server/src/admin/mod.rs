//! The admin port: HTTP, on its own port and its own thread. It reads the counters of sessions and triggers settings reloads; no session
//! waits for it.
//!
//! | module | what it is |
//! |---|---|
//! | `port` | connections, and their limits in number, time and size |
//! | `access_guard` | access control |
//! | `routes` | paths and their responses |
//! | `health` | whether clients can log in, and calls are answered from memory |
//! | `json_tables` | tables as JSON |
//! | `reload_request` | the client side: `headwater reload` |
//! | `page` | the page at `/`, which requests `/api` |
//! | `status_lamp`, `history`, `hottest_readers`, `shadow_report` | parts of `/api`: health, recent rates, frequent readers, comparisons |
//! | `trial` | a reader's page from memory, next to the server's |

mod access_guard;
mod health;
mod history;
mod hottest_readers;
mod json_tables;
mod page;
mod port;
mod reload_request;
mod routes;
mod shadow_report;
mod status_lamp;
mod trial;

use std::fmt::Debug;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use self::health::ReachabilityCache;
use self::history::SampleHistory;
pub use self::reload_request::{ReloadRequestError, reload};
use crate::config::{AdminSection, ReloadOutcome};
use headwater_proxy::drain::DrainSignal;
use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::upstreams::Upstreams;

/// The opened admin port.
#[derive(Debug)]
pub struct AdminPort {
    listener: TcpListener,
    token: String,
}

/// The settings of the process, as the admin port reloads them.
pub(crate) trait ReloadableSettings: Debug + Send + Sync {
    /// Reads the settings again and applies those that can change.
    ///
    /// # Errors
    /// What is wrong with the settings, for people; nothing has changed.
    fn reload(&self) -> BoxFuture<'_, Result<ReloadOutcome, String>>;
}

/// What the admin port reads and controls.
#[derive(Debug)]
pub(crate) struct AdminContext {
    pub(crate) current: Arc<CurrentGeneration>,
    pub(crate) settings: Arc<dyn ReloadableSettings>,
    pub(crate) upstreams: Arc<Upstreams>,
    /// True once the process accepts no more clients.
    pub(crate) draining: DrainSignal,
    /// The runtime on which freshness proofs run.
    pub(crate) runtime: Handle,
}

impl AdminContext {
    /// The current generation of the shared state.
    pub(crate) fn shared(&self) -> Arc<SharedState> {
        self.current.shared()
    }
}

impl AdminPort {
    /// Opens the port. `None`: it is switched off, or the default port, which no setting names, is in use.
    ///
    /// # Errors
    /// A port that the settings name cannot be opened.
    pub fn bind(section: &AdminSection) -> io::Result<Option<AdminPort>> {
        let Some(address) = section.address() else {
            return Ok(None);
        };
        let listener = match TcpListener::bind(address) {
            Ok(listener) => listener,
            Err(error) if section.listen.is_none() => {
                tracing::warn!(
                    "no admin port: {address} cannot be opened ({error}). Set admin.listen (--admin-listen, HEADWATER_ADMIN_LISTEN) to another \
                     address, or to \"\" for none"
                );
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        AdminPort::on_listener(listener, section).map(Some)
    }

    /// Uses a port that is open already.
    ///
    /// # Errors
    /// Other machines can reach it, and there is no token.
    pub fn on_listener(listener: TcpListener, section: &AdminSection) -> io::Result<AdminPort> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        if !address.ip().to_canonical().is_loopback() {
            if section.token.is_empty() {
                return Err(io::Error::other(format!(
                    "{address} is open to other machines, so askers have to show a token: set admin.token (HEADWATER_ADMIN_TOKEN)"
                )));
            }
            tracing::warn!(
                "the admin port {address} is open to other machines: whoever has admin.token sees counters and names, and the token goes \
                 unencrypted"
            );
        }
        Ok(AdminPort {
            listener,
            token: section.token.clone(),
        })
    }

    /// Duplicates the listener, for another process.
    pub(crate) fn duplicate_listener(&self) -> io::Result<TcpListener> {
        self.listener.try_clone()
    }

    /// The port's address.
    ///
    /// # Errors
    /// The operating system cannot report the address.
    pub fn local_addr(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves requests until the process ends, on its own thread.
    pub(crate) fn start(self, context: AdminContext) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let state = Arc::new(AdminState {
            reachable: ReachabilityCache::default(),
            context,
            token: self.token,
            history: SampleHistory::default(),
            trials: Semaphore::new(1),
        });
        let listener = self.listener;
        std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                runtime.spawn(history::record_samples(Arc::clone(&state)));
                runtime.block_on(port::serve(listener, state));
            })?;
        Ok(())
    }
}

/// What responses are made from.
#[derive(Debug)]
struct AdminState {
    context: AdminContext,
    token: String,
    reachable: ReachabilityCache,
    history: SampleHistory,
    /// Permits for reader trials.
    trials: Semaphore,
}
