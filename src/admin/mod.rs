//! Where operators look in: HTTP on a port of its own, served by a thread of its own. It reads what sessions have counted and decides
//! nothing but when settings are to be read again: no session waits for anything here.
//!
//! | module | what it is |
//! |---|---|
//! | `section` | the settings |
//! | `port` | connections: how many, how long, how large |
//! | `access_guard` | who may ask |
//! | `routes` | what is asked for |
//! | `health` | whether clients can log in, and calls are answered from memory |
//! | `json_tables` | tables as JSON |
//! | `reload_request` | the other end: `headwater reload` |
//! | `page` | the page at `/`, which asks `/api` |
//! | `status_lamp`, `history`, `hottest_readers`, `shadow_report` | what `/api` tells: who answers, the last fifteen minutes, who is asked for, what shadow found |
//! | `trial` | a reader's page from memory, beside the server's |

mod access_guard;
mod health;
mod history;
mod hottest_readers;
mod json_tables;
mod page;
mod port;
mod reload_request;
mod routes;
mod section;
mod shadow_report;
mod status_lamp;
mod trial;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use self::health::ReachabilityCache;
use self::history::SampleHistory;
pub use self::reload_request::{ReloadRequestError, reload};
pub use self::section::{AdminSection, DEFAULT_ADDRESS};
use crate::drain::DrainSignal;
use crate::server::SettingsReloader;
use crate::session::current_generation::CurrentGeneration;
use crate::session::shared_state::SharedState;
use crate::upstreams::Upstreams;

/// The port, opened.
#[derive(Debug)]
pub struct AdminPort {
    listener: TcpListener,
    token: String,
}

/// What is looked at.
#[derive(Debug)]
pub(crate) struct AdminContext {
    pub(crate) current: Arc<CurrentGeneration>,
    /// Reads settings again.
    pub(crate) reloader: Arc<SettingsReloader>,
    /// Where the servers are.
    pub(crate) upstreams: Arc<Upstreams>,
    /// True once no more clients are taken.
    pub(crate) draining: DrainSignal,
    /// Where proofs are made.
    pub(crate) runtime: Handle,
}

impl AdminContext {
    /// What sessions share now.
    pub(crate) fn shared(&self) -> Arc<SharedState> {
        self.current.shared()
    }
}

impl AdminPort {
    /// Opens the port. `None`: none is wished for, or nobody asked for one and somebody else is there.
    ///
    /// # Errors
    /// The port that was asked for cannot be opened.
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

    /// On a port that is open already.
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

    /// The same port once more, for another process.
    pub(crate) fn duplicate_listener(&self) -> io::Result<TcpListener> {
        self.listener.try_clone()
    }

    /// Where it is.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers for good, on a thread of its own.
    pub(crate) fn start(self, seen: AdminContext) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let state = Arc::new(AdminState {
            reachable: ReachabilityCache::default(),
            context: seen,
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

/// What answers are made of.
#[derive(Debug)]
struct AdminState {
    context: AdminContext,
    token: String,
    reachable: ReachabilityCache,
    history: SampleHistory,
    /// Room for readers that are tried.
    trials: Semaphore,
}
