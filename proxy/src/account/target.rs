//! Which server to connect to: the only one, or the one of several that is followed now.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::connection_permits::ConnectionPermits;
use super::host;
use crate::link::is_path;
use crate::tls::{TlsConnector, TlsError, UpstreamTlsSection};

/// A server, as one account or one kind of session connects to it.
#[derive(Debug)]
pub struct UpstreamServer {
    address: String,
    connector: TlsConnector,
    pub(super) permits: ConnectionPermits,
}

impl UpstreamServer {
    fn new(address: &str, connector: &TlsConnector) -> UpstreamServer {
        UpstreamServer {
            address: address.to_owned(),
            connector: connector.clone(),
            permits: ConnectionPermits::default(),
        }
    }

    /// `HOST:PORT`, or a socket path.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The TLS settings for connections to it.
    #[must_use]
    pub fn connector(&self) -> &TlsConnector {
        &self.connector
    }

    /// The TLS settings for the service account: used only where TLS is required.
    pub(super) fn tls(&self) -> Option<&TlsConnector> {
        let tls = self.connector.mode.is_required() && !is_path(&self.address);
        tls.then_some(&self.connector)
    }
}

/// The followed server, by its index in the list. Each change has a new generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowedServer {
    /// Which one.
    pub server: Option<usize>,
    /// Counts changes.
    pub generation: u64,
    /// When the last change was.
    pub since: Option<Instant>,
}

/// Where connections go.
#[derive(Clone, Debug)]
pub struct UpstreamTarget {
    servers: Arc<[Arc<UpstreamServer>]>,
    /// `None` if there is only one server.
    followed: Option<watch::Receiver<FollowedServer>>,
}

/// The server selected for a connection, with a signal that fires when it is no longer followed.
#[derive(Clone, Debug)]
pub struct SelectedServer {
    /// The server.
    pub server: Arc<UpstreamServer>,
    /// Its index in the list.
    pub index: usize,
    /// Fires when another server, or none, is followed.
    pub server_change: ServerChangeSignal,
}

/// Signals that the selected server is no longer followed.
#[derive(Clone, Debug, Default)]
pub struct ServerChangeSignal(Option<watch::Receiver<FollowedServer>>);

impl UpstreamTarget {
    /// A target of one server.
    #[must_use]
    pub fn one(address: &str, connector: &TlsConnector) -> UpstreamTarget {
        let server = Arc::new(UpstreamServer::new(address, connector));
        UpstreamTarget {
            servers: Arc::new([server]),
            followed: None,
        }
    }

    /// A target that follows one of these servers.
    ///
    /// # Errors
    /// When the TLS settings cannot be used.
    pub fn of(
        addresses: &[String],
        tls: &UpstreamTlsSection,
        followed: watch::Receiver<FollowedServer>,
    ) -> Result<UpstreamTarget, TlsError> {
        let server = |address: &String| {
            let connector = TlsConnector::new(tls, host(address))?;
            Ok(Arc::new(UpstreamServer::new(address, &connector)))
        };
        let servers: Result<Vec<_>, TlsError> = addresses.iter().map(server).collect();
        Ok(UpstreamTarget {
            servers: servers?.into(),
            followed: Some(followed),
        })
    }

    /// A target of one server of the list, whichever is followed.
    #[must_use]
    pub fn server_at(&self, index: usize) -> Option<UpstreamTarget> {
        let server = self.servers.get(index)?;
        Some(UpstreamTarget {
            servers: Arc::new([Arc::clone(server)]),
            followed: None,
        })
    }

    /// True if there are several servers.
    #[must_use]
    pub fn has_several_servers(&self) -> bool {
        self.followed.is_some()
    }

    /// The server to connect to; `None` if none is followed now.
    #[must_use]
    pub fn select(&self) -> Option<SelectedServer> {
        let Some(followed) = &self.followed else {
            let server = Arc::clone(self.servers.first()?);
            return Some(SelectedServer {
                server,
                index: 0,
                server_change: ServerChangeSignal::default(),
            });
        };
        let mut followed = followed.clone();
        let index = followed.borrow_and_update().server?;
        Some(SelectedServer {
            server: Arc::clone(self.servers.get(index)?),
            index,
            server_change: ServerChangeSignal(Some(followed)),
        })
    }

    /// As [`Self::select`], but waits up to `limit` until a server is followed.
    pub async fn select_within(&self, limit: Duration) -> Option<SelectedServer> {
        if let Some(selected) = self.select() {
            return Some(selected);
        }
        let mut followed = self.followed.clone()?;
        let change = followed.wait_for(|followed| followed.server.is_some());
        let _ = tokio::time::timeout(limit, change).await;
        self.select()
    }

    /// Every address, for display.
    #[must_use]
    pub fn address_list(&self) -> String {
        let addresses: Vec<&str> = self.servers.iter().map(|it| it.address()).collect();
        addresses.join(", ")
    }
}

impl ServerChangeSignal {
    /// True once the server is no longer followed.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        // If the sender is gone, the process is ending.
        self.0
            .as_ref()
            .is_some_and(|followed| followed.has_changed().unwrap_or(false))
    }

    /// True if the followed server can change at all.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until the followed server has changed; never returns if it cannot.
    pub async fn wait(&self) {
        let Some(followed) = &self.0 else {
            return std::future::pending().await;
        };
        let mut followed = followed.clone();
        if followed.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Runs `future`; returns `None` at once when the server is no longer followed.
    pub async fn run_unless_changed<F: Future>(
        &self,
        mut future: Pin<&mut F>,
    ) -> Option<F::Output> {
        if !self.is_possible() {
            return Some(future.await);
        }
        let mut waits = pin!(self.wait());
        poll_fn(|context| {
            // Checked at each poll: a waiter registered while earlier ones are still being notified of the previous change is woken for
            // that change, and for no later one until it is polled again.
            if self.has_changed() || waits.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::task::{Context, Waker};
    use std::thread;

    use super::*;

    const ROUNDS: u64 = 300;
    const OTHERS: usize = 1_000;
    const PATIENCE: Duration = Duration::from_secs(5);

    fn target() -> (watch::Sender<FollowedServer>, UpstreamTarget) {
        let (follow, followed) = watch::channel(FollowedServer::default());
        let servers = ["a:1".to_owned(), "b:2".to_owned()];
        let target = UpstreamTarget::of(&servers, &UpstreamTlsSection::default(), followed);
        (follow, target.unwrap())
    }

    fn followed(place: usize, turn: u64) -> FollowedServer {
        let server = Some(place);
        FollowedServer {
            server,
            generation: turn,
            since: None,
        }
    }

    #[tokio::test]
    async fn the_server_that_is_followed_is_aimed_at_until_another_one_is() {
        let (follow, target) = target();
        assert!(target.select().is_none());
        follow.send_replace(followed(1, 1));
        let aim = target.select().unwrap();
        assert_eq!((aim.server.address(), aim.index), ("b:2", 1));
        assert!(!aim.server_change.has_changed());
        // The same server, followed again, counts as another one for its former connections.
        follow.send_replace(followed(1, 2));
        assert!(aim.server_change.has_changed());
        tokio::time::timeout(Duration::from_secs(1), aim.server_change.wait())
            .await
            .unwrap();
        let aim = target.select().unwrap();
        assert!(!aim.server_change.has_changed() && aim.server_change.is_possible());
    }

    #[tokio::test]
    async fn a_waiter_gets_a_server_once_it_is_followed() {
        let (follow, target) = target();
        let none = target.select_within(Duration::from_millis(1)).await;
        assert!(none.is_none());
        let (aim, ()) = tokio::join!(target.select_within(Duration::from_secs(10)), async {
            follow.send_replace(followed(0, 1));
        });
        assert_eq!(aim.unwrap().server.address(), "a:1");
    }

    /// A waiter that registers while earlier ones are being notified must not miss the next change.
    #[test]
    fn a_waiter_registered_during_a_change_sees_the_next_change() {
        let (follow, target) = target();
        let (left, ended) = std::sync::mpsc::channel();
        let (tell, aimed) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build()
                    .unwrap();
                for _ in 0..ROUNDS {
                    let begun = Instant::now();
                    let aim = loop {
                        match target.select() {
                            Some(aim) => break aim,
                            // The test has failed.
                            None if begun.elapsed() > 2 * PATIENCE => return,
                            None => std::hint::spin_loop(),
                        }
                    };
                    tell.send(()).unwrap();
                    runtime.block_on(async {
                        let session = pin!(std::future::pending::<()>());
                        let waits = Instant::now();
                        let told = tokio::time::timeout(
                            PATIENCE,
                            aim.server_change.run_unless_changed(session),
                        )
                        .await;
                        // A missed change is polled a last time when the patience is over.
                        let told = told.is_ok() && waits.elapsed() < PATIENCE;
                        left.send(told).unwrap();
                    });
                }
            });
            for round in 0..ROUNDS {
                let moved: Vec<_> = (0..OTHERS)
                    .map(|_| ServerChangeSignal(Some(follow.subscribe())))
                    .collect();
                let mut others: Vec<_> = moved.iter().map(|it| Box::pin(it.wait())).collect();
                for other in &mut others {
                    let mut context = Context::from_waker(Waker::noop());
                    assert!(other.as_mut().poll(&mut context).is_pending());
                }
                follow.send_replace(followed(0, 2 * round));
                aimed.recv().unwrap();
                thread::sleep(Duration::from_micros(100));
                follow.send_replace(FollowedServer::default());
                assert!(ended.recv().unwrap(), "not told in round {round}");
            }
        });
    }

    #[test]
    fn one_server_is_always_there() {
        let connector = TlsConnector::new(&UpstreamTlsSection::default(), "a").unwrap();
        let target = UpstreamTarget::one("a:1", &connector);
        let aim = target.select().unwrap();
        assert!(
            !aim.server_change.is_possible()
                && !aim.server_change.has_changed()
                && !target.has_several_servers()
        );
        assert_eq!(target.address_list(), "a:1");
    }
}
