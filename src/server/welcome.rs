//! One client that has come: whom it speaks for, its connection to the server, or why it has none.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::account::Aim;
use crate::backend::Backend;
use crate::clock;
use crate::config::ProxyProtocolSection;
use crate::drain::DrainSignal;
use crate::link::{Link, Socket, proxy_header};
use crate::room::{full_of_files, is_out_of_files};
use crate::session::admission::Admission;
use crate::session::current::Current;
use crate::session::quota::Taken;
use crate::session::state::{Ended, Session};
use crate::upstreams::Entry;
use crate::wire::frame;
use crate::wire::response::ErrPacket;

/// ER_CONNECT_TO_FOREIGN_DATA_SOURCE. Not the 2003 with which clients say the like themselves: MariaDB's take that for no error of a
/// server, and report a malformed packet.
const CANNOT_CONNECT: u16 = 1429;
/// ER_CON_COUNT_ERROR.
pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;
/// A server that could not be connected to, and is the primary still, is tried again after so long.
const AGAIN: Duration = Duration::from_millis(20);

/// A turn to connect to the server: so many connections are made at a time.
pub(super) struct Turn {
    turns: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Waits for one.
    pub(super) async fn take(turns: &Arc<Semaphore>) -> Turn {
        let turns = Arc::clone(turns);
        let turn = Turn { turns, taken: None };
        turn.again().await
    }

    pub(super) fn give_back(&mut self) {
        self.taken = None;
    }

    /// Waits for one, where it was given back.
    pub(super) async fn again(self) -> Turn {
        let Turn { turns, taken } = self;
        let taken = match taken {
            Some(taken) => Some(taken),
            // They are never closed.
            None => Arc::clone(&turns).acquire_owned().await.ok(),
        };
        Turn { turns, taken }
    }
}

pub(super) type Ends = Option<(SocketAddr, SocketAddr)>;

/// Between whom a connection is, where that matters to somebody.
pub(super) fn ends(
    settings: &ProxyProtocolSection,
    source: Option<SocketAddr>,
    socket: &Socket,
) -> Ends {
    if settings == &ProxyProtocolSection::default() {
        return None;
    }
    Some((source?, socket.local_addr().ok()??))
}

/// True where a connection begins with whom it speaks for.
pub(super) fn is_announced(ends: Ends, settings: &ProxyProtocolSection) -> bool {
    ends.is_some_and(|(source, _)| settings.trusts(source.ip()))
}

/// Whom a connection speaks for, and what it has said behind that: who is trusted with it says so first.
pub(super) async fn spoken_for(
    client: &mut Link,
    ends: Ends,
    settings: &ProxyProtocolSection,
) -> io::Result<(Ends, Vec<u8>)> {
    match ends {
        Some((source, destination)) if is_announced(ends, settings) => {
            let (told, begun) = proxy_header::read(client).await?;
            Ok((Some((told.unwrap_or(source), destination)), begun))
        }
        _ => Ok((ends, Vec::new())),
    }
}

/// Gives a client a connection to the server, and moves its bytes until either ends.
pub(super) async fn serve(
    (mut client, source, begun): (Link, Option<SocketAddr>, Vec<u8>),
    (entry, header, turn): (&Entry, &[u8], Turn),
    (current, mut admission): (&Arc<Current>, Admission),
    draining: DrainSignal,
) {
    match place_of(source, current) {
        Ok(place) => admission.take_of_address(place),
        Err(message) => return refuse(&mut client, TOO_MANY_CONNECTIONS, &message).await,
    }
    let limit = Duration::from_millis(current.shared().limits.connect_ms);
    let upstreams = &entry.upstreams;
    let dialled = dial(entry, header, turn, limit).await;
    match dialled {
        Ok((backend, aim)) => {
            upstreams.reach.answers();
            let place = aim.place;
            let session = Session::new(client, source, begun, (backend, aim), current, admission);
            let ended = Box::pin(session.run(draining)).await;
            if matches!(ended, Ended::Server(_)) {
                upstreams.wake(place);
            }
        }
        Err(error) if is_out_of_files(&error) => {
            let message = full_of_files("now");
            refuse(&mut client, TOO_MANY_CONNECTIONS, &message).await;
        }
        Err(error) => {
            upstreams.reach.refuses(&error);
            let address = upstreams.shown();
            let message =
                format!("Headwater can't connect to the MySQL server on '{address}' ({error})");
            refuse(&mut client, CANNOT_CONNECT, &message).await;
        }
    }
}

/// Connects to the server that is followed. Where there are several, one is waited for, and one that cannot be connected to is tried again
/// while there is time: another one may be followed by then.
async fn dial(
    entry: &Entry,
    header: &[u8],
    mut turn: Turn,
    limit: Duration,
) -> io::Result<(Backend, Aim)> {
    let target = &entry.target;
    let until = clock::now() + limit;
    loop {
        let left = until.saturating_duration_since(clock::now());
        let aim = match target.aim() {
            Some(aim) => aim,
            None => {
                // Others may want to be refused.
                turn.give_back();
                let aim = target.aim_within(left).await;
                turn = turn.again().await;
                aim.ok_or_else(|| io::Error::other(entry.nowhere()))?
            }
        };
        let dialled = async {
            let mut backend = Backend::dial(aim.server.address(), left).await?;
            backend.link.send(header)?;
            Ok::<_, io::Error>(backend)
        };
        let dialled = tokio::select! {
            biased;
            dialled = dialled => dialled,
            () = aim.moved.wait() => continue,
        };
        let error = match dialled {
            Ok(backend) => return Ok((backend, aim)),
            Err(error) => error,
        };
        if !target.is_moving() || is_out_of_files(&error) {
            return Err(error);
        }
        entry.upstreams.wake(aim.place);
        if until <= clock::now() + AGAIN {
            return Err(error);
        }
        let _ = tokio::time::timeout(AGAIN, aim.moved.wait()).await;
    }
}

/// A place among those of an address, where these are limited; or what is said where there is none.
fn place_of(
    source: Option<SocketAddr>,
    current: &Current,
) -> Result<Option<Taken<IpAddr>>, String> {
    let shared = current.shared();
    let most = shared.limits.sessions_per_address;
    let Some(source) = source.filter(|_| most > 0) else {
        return Ok(None);
    };
    let address = source.ip().to_canonical();
    let place = shared.addresses.take(address, most);
    place.map(Some).ok_or_else(|| {
        format!(
            "Too many connections: {address} already has {most} in Headwater (limits.sessions_per_address = {most})"
        )
    })
}

/// An ERR in place of the greeting. Servers send no SQLSTATE there, since nothing is agreed on yet.
pub(super) async fn refuse(client: &mut Link, code: u16, message: &str) {
    let error = ErrPacket {
        code,
        sqlstate: None,
        message: message.as_bytes().to_vec(),
    };
    let mut payload = Vec::new();
    error.write(&mut payload);
    let packet = frame::opening(&payload);
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        let _ = client.send_all(&packet).await;
        let _ = client.finish().await;
    })
    .await;
}
