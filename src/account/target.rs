//! Which server is connected to: the only one that there is, or, of several, the one that is followed now.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::host;
use super::seats::Seats;
use crate::link::is_path;
use crate::tls::{Connector, TlsError, UpstreamTlsSection};

/// A server, as one account or one kind of sessions connects to it.
#[derive(Debug)]
pub struct Server {
    address: String,
    connector: Connector,
    pub(super) seats: Seats,
}

impl Server {
    fn new(address: &str, connector: &Connector) -> Server {
        Server {
            address: address.to_owned(),
            connector: connector.clone(),
            seats: Seats::default(),
        }
    }

    /// `HOST:PORT`, or the path of its socket.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What it is shown, and has to show, where there is TLS.
    #[must_use]
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// The same for the service account: there is TLS where the settings leave no choice.
    pub(super) fn tls(&self) -> Option<&Connector> {
        let tls = self.connector.mode.is_required() && !is_path(&self.address);
        tls.then_some(&self.connector)
    }
}

/// Who is followed: a server by its place in the list, if one is. Each change has another number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Which one.
    pub server: Option<usize>,
    /// Counts changes.
    pub turn: u64,
    /// When the last change was.
    pub since: Option<Instant>,
}

/// Where connections are made to.
#[derive(Clone, Debug)]
pub struct Target {
    servers: Arc<[Arc<Server>]>,
    /// `None`: there is one server.
    followed: Option<watch::Receiver<Followed>>,
}

/// A server that was aimed at, and what tells that it is followed no more.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The server.
    pub server: Arc<Server>,
    /// Its place in the list.
    pub place: usize,
    /// What tells that another one, or none, is followed.
    pub moved: Moved,
}

/// Tells that the server that was aimed at is not followed any more.
#[derive(Clone, Debug, Default)]
pub struct Moved(Option<watch::Receiver<Followed>>);

impl Target {
    /// One server.
    #[must_use]
    pub fn one(address: &str, connector: &Connector) -> Target {
        let server = Arc::new(Server::new(address, connector));
        Target {
            servers: Arc::new([server]),
            followed: None,
        }
    }

    /// The one of these that is followed.
    ///
    /// # Errors
    /// When the settings of TLS cannot be used.
    pub fn of(
        addresses: &[String],
        tls: &UpstreamTlsSection,
        followed: watch::Receiver<Followed>,
    ) -> Result<Target, TlsError> {
        let server = |address: &String| {
            let connector = Connector::new(tls, host(address))?;
            Ok(Arc::new(Server::new(address, &connector)))
        };
        let servers: Result<Vec<_>, TlsError> = addresses.iter().map(server).collect();
        Ok(Target {
            servers: servers?.into(),
            followed: Some(followed),
        })
    }

    /// One server of them, whoever is followed.
    #[must_use]
    pub fn only(&self, place: usize) -> Option<Target> {
        let server = self.servers.get(place)?;
        Some(Target {
            servers: Arc::new([Arc::clone(server)]),
            followed: None,
        })
    }

    /// True where there are several servers.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        self.followed.is_some()
    }

    /// The server to connect to; `None`: none is followed now.
    #[must_use]
    pub fn aim(&self) -> Option<Aim> {
        let Some(followed) = &self.followed else {
            let server = Arc::clone(self.servers.first()?);
            return Some(Aim {
                server,
                place: 0,
                moved: Moved::default(),
            });
        };
        let mut followed = followed.clone();
        let place = followed.borrow_and_update().server?;
        Some(Aim {
            server: Arc::clone(self.servers.get(place)?),
            place,
            moved: Moved(Some(followed)),
        })
    }

    /// The same, which waits for one for so long.
    pub async fn aim_within(&self, limit: Duration) -> Option<Aim> {
        if let Some(aim) = self.aim() {
            return Some(aim);
        }
        let mut followed = self.followed.clone()?;
        let found = followed.wait_for(|followed| followed.server.is_some());
        let _ = tokio::time::timeout(limit, found).await;
        self.aim()
    }

    /// Every address, as it is shown to people.
    #[must_use]
    pub fn shown(&self) -> String {
        let addresses: Vec<&str> = self.servers.iter().map(|it| it.address()).collect();
        addresses.join(", ")
    }
}

impl Moved {
    /// True once it is not followed any more.
    #[must_use]
    pub fn is_so(&self) -> bool {
        // Who tells it is gone with the process.
        self.0
            .as_ref()
            .is_some_and(|followed| followed.has_changed().unwrap_or(false))
    }

    /// True where it could come to that.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until it is so.
    pub async fn wait(&self) {
        let Some(followed) = &self.0 else {
            return std::future::pending().await;
        };
        let mut followed = followed.clone();
        if followed.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// What `future` comes to; `None` at once when the server is followed no more, whatever that does.
    pub async fn or<F: Future>(&self, mut future: Pin<&mut F>) -> Option<F::Output> {
        if !self.is_possible() {
            return Some(future.await);
        }
        let mut waits = pin!(self.wait());
        poll_fn(|context| {
            // Each time anew: who begins to wait while others are still told of the change before is woken for that one, and for no other
            // until asked again.
            if self.is_so() || waits.as_mut().poll(context).is_ready() {
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

    fn target() -> (watch::Sender<Followed>, Target) {
        let (follow, followed) = watch::channel(Followed::default());
        let servers = ["a:1".to_owned(), "b:2".to_owned()];
        let target = Target::of(&servers, &UpstreamTlsSection::default(), followed);
        (follow, target.unwrap())
    }

    fn followed(place: usize, turn: u64) -> Followed {
        let server = Some(place);
        Followed {
            server,
            turn,
            since: None,
        }
    }

    #[tokio::test]
    async fn the_server_that_is_followed_is_aimed_at_until_another_one_is() {
        let (follow, target) = target();
        assert!(target.aim().is_none());
        follow.send_replace(followed(1, 1));
        let aim = target.aim().unwrap();
        assert_eq!((aim.server.address(), aim.place), ("b:2", 1));
        assert!(!aim.moved.is_so());
        // The same server, found again, is another one for those that were on it.
        follow.send_replace(followed(1, 2));
        assert!(aim.moved.is_so());
        tokio::time::timeout(Duration::from_secs(1), aim.moved.wait())
            .await
            .unwrap();
        let aim = target.aim().unwrap();
        assert!(!aim.moved.is_so() && aim.moved.is_possible());
    }

    #[tokio::test]
    async fn who_waits_for_a_server_gets_it_when_it_is_there() {
        let (follow, target) = target();
        let none = target.aim_within(Duration::from_millis(1)).await;
        assert!(none.is_none());
        let (aim, ()) = tokio::join!(target.aim_within(Duration::from_secs(10)), async {
            follow.send_replace(followed(0, 1));
        });
        assert_eq!(aim.unwrap().server.address(), "a:1");
    }

    /// Those who came first are told of a change one after the other, and who comes meanwhile must not miss the next one for that.
    #[test]
    fn who_comes_while_a_server_begins_to_be_followed_learns_when_it_is_no_more() {
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
                        match target.aim() {
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
                        let told = tokio::time::timeout(PATIENCE, aim.moved.or(session)).await;
                        // What was not told of it is asked a last time when the patience is over.
                        let told = told.is_ok() && waits.elapsed() < PATIENCE;
                        left.send(told).unwrap();
                    });
                }
            });
            for round in 0..ROUNDS {
                let moved: Vec<_> = (0..OTHERS)
                    .map(|_| Moved(Some(follow.subscribe())))
                    .collect();
                let mut others: Vec<_> = moved.iter().map(|it| Box::pin(it.wait())).collect();
                for other in &mut others {
                    let mut context = Context::from_waker(Waker::noop());
                    assert!(other.as_mut().poll(&mut context).is_pending());
                }
                follow.send_replace(followed(0, 2 * round));
                aimed.recv().unwrap();
                thread::sleep(Duration::from_micros(100));
                follow.send_replace(Followed::default());
                assert!(ended.recv().unwrap(), "not told in round {round}");
            }
        });
    }

    #[test]
    fn one_server_is_always_there() {
        let connector = Connector::new(&UpstreamTlsSection::default(), "a").unwrap();
        let target = Target::one("a:1", &connector);
        let aim = target.aim().unwrap();
        assert!(!aim.moved.is_possible() && !aim.moved.is_so() && !target.is_moving());
        assert_eq!(target.shown(), "a:1");
    }
}
