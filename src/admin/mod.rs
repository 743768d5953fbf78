//! Where operators look in: HTTP on a port of its own, served by a thread of its own. It reads what sessions have counted and decides
//! nothing but when settings are to be read again: no session waits for anything here.
//!
//! | module | what it is |
//! |---|---|
//! | `section` | the settings |
//! | `port` | connections: how many, how long, how large |
//! | `guard` | who may ask |
//! | `routes` | what is asked for |
//! | `health` | whether clients can log in, and calls are answered from memory |
//! | `api` | tables as JSON |
//! | `ask` | the other end: `headwater reload` |
//! | `page` | the page at `/`, which asks `/api` |
//! | `lamp`, `history`, `hottest`, `difference` | what `/api` tells: who answers, the last fifteen minutes, who is asked for, what shadow found |
//! | `trial` | a reader's page from memory, beside the server's |

mod api;
mod ask;
mod difference;
mod guard;
mod health;
mod history;
mod hottest;
mod lamp;
mod page;
mod port;
mod routes;
mod section;
mod trial;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

pub use self::ask::{AskError, reload};
use self::health::Reachable;
use self::history::History;
pub use self::section::{AdminSection, DEFAULT};
use crate::drain::DrainSignal;
use crate::server::Reloads;
use crate::session::current::Current;
use crate::session::shared::Shared;
use crate::upstreams::Upstreams;

/// The port, opened.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    token: String,
}

/// What is looked at.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) current: Arc<Current>,
    /// Reads settings again.
    pub(crate) reloads: Arc<Reloads>,
    /// Where the servers are.
    pub(crate) upstreams: Arc<Upstreams>,
    /// True once no more clients are taken.
    pub(crate) draining: DrainSignal,
    /// Where proofs are made.
    pub(crate) runtime: Handle,
}

impl Seen {
    /// What sessions share now.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.current.shared()
    }
}

impl Admin {
    /// Opens the port. `None`: none is wished for, or nobody asked for one and somebody else is there.
    ///
    /// # Errors
    /// The port that was asked for cannot be opened.
    pub fn bind(section: &AdminSection) -> io::Result<Option<Admin>> {
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
        Admin::on(listener, section).map(Some)
    }

    /// On a port that is open already.
    ///
    /// # Errors
    /// Other machines can reach it, and there is no token.
    pub fn on(listener: TcpListener, section: &AdminSection) -> io::Result<Admin> {
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
        Ok(Admin {
            listener,
            token: section.token.clone(),
        })
    }

    /// The same port once more, for another process.
    pub(crate) fn copy(&self) -> io::Result<TcpListener> {
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
    pub(crate) fn start(self, seen: Seen) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let state = Arc::new(State {
            reachable: Reachable::default(),
            seen,
            token: self.token,
            history: History::default(),
            trials: Semaphore::new(1),
        });
        let listener = self.listener;
        std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                runtime.spawn(history::keep(Arc::clone(&state)));
                runtime.block_on(port::serve(listener, state));
            })?;
        Ok(())
    }
}

/// What answers are made of.
#[derive(Debug)]
struct State {
    seen: Seen,
    token: String,
    reachable: Reachable,
    history: History,
    /// Room for readers that are tried.
    trials: Semaphore,
}
