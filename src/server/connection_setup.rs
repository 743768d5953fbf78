//! One client that has come: whom it speaks for, its connection to the server, or why it has none.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::account::SelectedServer;
use crate::backend::BackendConnection;
use crate::clock;
use crate::config::ProxyProtocolSection;
use crate::drain::DrainSignal;
use crate::link::{NetworkLink, StreamSocket, proxy_header};
use crate::session::admission::SessionAdmission;
use crate::session::current_generation::CurrentGeneration;
use crate::session::quota::QuotaPermit;
use crate::session::state::{Session, SessionEnd};
use crate::session_capacity::{descriptor_exhaustion_message, is_out_of_files};
use crate::upstreams::ListenerRoute;
use crate::wire::packet;
use crate::wire::response::ErrPacket;

/// ER_CONNECT_TO_FOREIGN_DATA_SOURCE. Not the 2003 with which clients say the like themselves: MariaDB's take that for no error of a
/// server, and report a malformed packet.
const CANNOT_CONNECT: u16 = 1429;
/// ER_CON_COUNT_ERROR.
pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;
/// A server that could not be connected to, and is the primary still, is tried again after so long.
const DIAL_RETRY_DELAY: Duration = Duration::from_millis(20);

/// A turn to connect to the server: so many connections are made at a time.
pub(super) struct DialPermit {
    permits: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl DialPermit {
    /// Waits for one.
    pub(super) async fn acquire(turns: &Arc<Semaphore>) -> DialPermit {
        let turns = Arc::clone(turns);
        let turn = DialPermit {
            permits: turns,
            permit: None,
        };
        turn.reacquire().await
    }

    pub(super) fn release(&mut self) {
        self.permit = None;
    }

    /// Waits for one, where it was given back.
    pub(super) async fn reacquire(self) -> DialPermit {
        let DialPermit {
            permits: turns,
            permit: taken,
        } = self;
        let taken = match taken {
            Some(taken) => Some(taken),
            // They are never closed.
            None => Arc::clone(&turns).acquire_owned().await.ok(),
        };
        DialPermit {
            permits: turns,
            permit: taken,
        }
    }
}

pub(super) type AddressPair = Option<(SocketAddr, SocketAddr)>;

/// Between whom a connection is, where that matters to somebody.
pub(super) fn address_pair(
    settings: &ProxyProtocolSection,
    source: Option<SocketAddr>,
    socket: &StreamSocket,
) -> AddressPair {
    if settings == &ProxyProtocolSection::default() {
        return None;
    }
    Some((source?, socket.local_addr().ok()??))
}

/// True where a connection begins with whom it speaks for.
pub(super) fn expects_proxy_header(ends: AddressPair, settings: &ProxyProtocolSection) -> bool {
    ends.is_some_and(|(source, _)| settings.trusts(source.ip()))
}

/// Whom a connection speaks for, and what it has said behind that: who is trusted with it says so first.
pub(super) async fn read_proxy_header(
    client: &mut NetworkLink,
    ends: AddressPair,
    settings: &ProxyProtocolSection,
) -> io::Result<(AddressPair, Vec<u8>)> {
    match ends {
        Some((source, destination)) if expects_proxy_header(ends, settings) => {
            let (told, begun) = proxy_header::read(client).await?;
            Ok((Some((told.unwrap_or(source), destination)), begun))
        }
        _ => Ok((ends, Vec::new())),
    }
}

/// Gives a client a connection to the server, and moves its bytes until either ends.
pub(super) async fn serve(
    (mut client, source, begun): (NetworkLink, Option<SocketAddr>, Vec<u8>),
    (entry, header, turn): (&ListenerRoute, &[u8], DialPermit),
    (current, mut admission): (&Arc<CurrentGeneration>, SessionAdmission),
    draining: DrainSignal,
) {
    match address_permit(source, current) {
        Ok(place) => admission.set_address_permit(place),
        Err(message) => return refuse(&mut client, TOO_MANY_CONNECTIONS, &message).await,
    }
    let limit = Duration::from_millis(current.shared().limits.connect_ms);
    let upstreams = &entry.upstreams;
    let dialled = dial(entry, header, turn, limit).await;
    match dialled {
        Ok((backend, aim)) => {
            upstreams.reach.connection_succeeded();
            let place = aim.index;
            let session = Session::new(client, source, begun, (backend, aim), current, admission);
            let ended = Box::pin(session.run(draining)).await;
            if matches!(ended, SessionEnd::ServerClosed(_)) {
                upstreams.wake(place);
            }
        }
        Err(error) if is_out_of_files(&error) => {
            let message = descriptor_exhaustion_message("now");
            refuse(&mut client, TOO_MANY_CONNECTIONS, &message).await;
        }
        Err(error) => {
            upstreams.reach.connection_failed(&error);
            let address = upstreams.address_list();
            let message =
                format!("Headwater can't connect to the MySQL server on '{address}' ({error})");
            refuse(&mut client, CANNOT_CONNECT, &message).await;
        }
    }
}

/// Connects to the server that is followed. Where there are several, one is waited for, and one that cannot be connected to is tried again
/// while there is time: another one may be followed by then.
async fn dial(
    entry: &ListenerRoute,
    header: &[u8],
    mut turn: DialPermit,
    limit: Duration,
) -> io::Result<(BackendConnection, SelectedServer)> {
    let target = &entry.target;
    let until = clock::now() + limit;
    loop {
        let left = until.saturating_duration_since(clock::now());
        let aim = match target.select() {
            Some(aim) => aim,
            None => {
                // Others may want to be refused.
                turn.release();
                let aim = target.select_within(left).await;
                turn = turn.reacquire().await;
                aim.ok_or_else(|| io::Error::other(entry.unavailable_reason()))?
            }
        };
        let dialled = async {
            let mut backend = BackendConnection::dial(aim.server.address(), left).await?;
            backend.link.send(header)?;
            Ok::<_, io::Error>(backend)
        };
        let dialled = tokio::select! {
            biased;
            dialled = dialled => dialled,
            () = aim.server_change.wait() => continue,
        };
        let error = match dialled {
            Ok(backend) => return Ok((backend, aim)),
            Err(error) => error,
        };
        if !target.has_several_servers() || is_out_of_files(&error) {
            return Err(error);
        }
        entry.upstreams.wake(aim.index);
        if until <= clock::now() + DIAL_RETRY_DELAY {
            return Err(error);
        }
        let _ = tokio::time::timeout(DIAL_RETRY_DELAY, aim.server_change.wait()).await;
    }
}

/// A place among those of an address, where these are limited; or what is said where there is none.
fn address_permit(
    source: Option<SocketAddr>,
    current: &CurrentGeneration,
) -> Result<Option<QuotaPermit<IpAddr>>, String> {
    let shared = current.shared();
    let most = shared.limits.sessions_per_address;
    let Some(source) = source.filter(|_| most > 0) else {
        return Ok(None);
    };
    let address = source.ip().to_canonical();
    let place = shared.addresses.acquire(address, most);
    place.map(Some).ok_or_else(|| {
        format!(
            "Too many connections: {address} already has {most} in Headwater (limits.sessions_per_address = {most})"
        )
    })
}

/// An ERR in place of the greeting. Servers send no SQLSTATE there, since nothing is agreed on yet.
pub(super) async fn refuse(client: &mut NetworkLink, code: u16, message: &str) {
    let error = ErrPacket {
        code,
        sqlstate: None,
        message: message.as_bytes().to_vec(),
    };
    let mut payload = Vec::new();
    error.write(&mut payload);
    let packet = packet::encode_first(&payload);
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        let _ = client.send_all(&packet).await;
        let _ = client.shutdown_write().await;
    })
    .await;
}
