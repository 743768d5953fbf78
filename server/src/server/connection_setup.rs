//! A new client: its address, its connection to the server, or the error that it gets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::ProxyProtocolSection;
use crate::session_capacity::{descriptor_exhaustion_message, is_out_of_files};
use headwater_proxy::account::SelectedServer;
use headwater_proxy::backend::BackendConnection;
use headwater_proxy::clock;
use headwater_proxy::drain::DrainSignal;
use headwater_proxy::link::{NetworkLink, StreamSocket, proxy_header};
use headwater_proxy::session::admission::SessionAdmission;
use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_proxy::session::quota::QuotaPermit;
use headwater_proxy::session::state::{Session, SessionEnd};
use headwater_proxy::upstreams::ListenerRoute;
use headwater_wire::packet;
use headwater_wire::response::ErrPacket;

/// ER_CONNECT_TO_FOREIGN_DATA_SOURCE. Not 2003, which clients use themselves: MariaDB's clients do not accept it from a server, and report
/// a malformed packet.
const CANNOT_CONNECT: u16 = 1429;
/// ER_CON_COUNT_ERROR.
pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;
/// Delay before another attempt to connect to a server that is still the primary.
const DIAL_RETRY_DELAY: Duration = Duration::from_millis(20);

/// Permit to connect to the server: bounds the connections being made at a time.
pub(super) struct DialPermit {
    permits: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl DialPermit {
    /// Waits for a permit.
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

    /// Waits for a permit again, if it was released.
    pub(super) async fn reacquire(self) -> DialPermit {
        let DialPermit {
            permits: turns,
            permit: taken,
        } = self;
        let taken = match taken {
            Some(taken) => Some(taken),
            // The semaphore is never closed.
            None => Arc::clone(&turns).acquire_owned().await.ok(),
        };
        DialPermit {
            permits: turns,
            permit: taken,
        }
    }
}

pub(super) type AddressPair = Option<(SocketAddr, SocketAddr)>;

/// Both addresses of a connection, if a setting needs them.
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

/// True if the connection has to start with a PROXY header.
pub(super) fn expects_proxy_header(ends: AddressPair, settings: &ProxyProtocolSection) -> bool {
    ends.is_some_and(|(source, _)| settings.trusts(source.ip()))
}

/// The client's address, and the bytes after the PROXY header; only trusted peers send a header.
pub(super) async fn read_proxy_header(
    client: &mut NetworkLink,
    ends: AddressPair,
    settings: &ProxyProtocolSection,
) -> io::Result<(AddressPair, Vec<u8>)> {
    match ends {
        Some((source, destination)) if expects_proxy_header(ends, settings) => {
            let (client_address, begun) = proxy_header::read(client).await?;
            Ok((Some((client_address.unwrap_or(source), destination)), begun))
        }
        _ => Ok((ends, Vec::new())),
    }
}

/// Connects a client to the server, and relays its bytes until either side ends.
pub(super) async fn serve(
    (mut client, source, begun): (NetworkLink, Option<SocketAddr>, Vec<u8>),
    (entry, header, turn): (&ListenerRoute, &[u8], DialPermit),
    (current, mut admission): (&Arc<CurrentGeneration>, SessionAdmission),
    draining: DrainSignal,
) {
    match address_permit(source, current) {
        Ok(permit) => admission.set_address_permit(permit),
        Err(message) => return refuse(&mut client, TOO_MANY_CONNECTIONS, &message).await,
    }
    let limit = Duration::from_millis(current.shared().limits.connect_ms);
    let upstreams = &entry.upstreams;
    let dialled = dial(entry, header, turn, limit).await;
    match dialled {
        Ok((backend, aim)) => {
            upstreams.reach.connection_succeeded();
            let index = aim.index;
            let session = Session::new(client, source, begun, (backend, aim), current, admission);
            let ended = session.run(draining).await;
            if matches!(ended, SessionEnd::ServerClosed(_)) {
                upstreams.wake(index);
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

/// Connects to the followed server. If there are several, waits for one to be followed, and retries within the time limit: another one may
/// be followed by then.
async fn dial(
    entry: &ListenerRoute,
    header: &[u8],
    mut turn: DialPermit,
    limit: Duration,
) -> io::Result<(BackendConnection, SelectedServer)> {
    let target = &entry.target;
    let until = clock::now() + limit;
    loop {
        let remaining = until.saturating_duration_since(clock::now());
        let aim = match target.select() {
            Some(aim) => aim,
            None => {
                // Clients that have to be refused may need the permit.
                turn.release();
                let aim = target.select_within(remaining).await;
                turn = turn.reacquire().await;
                aim.ok_or_else(|| io::Error::other(entry.unavailable_reason()))?
            }
        };
        let dialled = async {
            let mut backend = BackendConnection::dial(aim.server.address(), remaining).await?;
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

/// A permit of the client's address, if these are limited; else the error for the client.
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
    let permit = shared.addresses.acquire(address, most);
    permit.map(Some).ok_or_else(|| {
        format!(
            "Too many connections: {address} already has {most} in Headwater (limits.sessions_per_address = {most})"
        )
    })
}

/// Sends an ERR instead of the greeting. Servers send no SQLSTATE there, since no capabilities are agreed yet.
pub(super) async fn refuse(client: &mut NetworkLink, code: u16, message: &str) {
    let error = ErrPacket {
        code,
        sqlstate: None,
        message: message.as_bytes().to_vec(),
    };
    let mut payload = Vec::new();
    error.write(&mut payload);
    let packet = packet::encode_first(&payload);
    // Do not wait for a client that does not read.
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        let _ = client.send_all(&packet).await;
        let _ = client.shutdown_write().await;
    })
    .await;
}
