//! One client that has come: whom it speaks for, its connection to the server, or why it has none.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::backend::Backend;
use crate::config::ProxyProtocolSection;
use crate::link::{Link, Socket, proxy_header};
use crate::reach::Upstream;
use crate::room::{full_of_files, is_out_of_files};
use crate::session::current::Current;
use crate::session::state::Session;
use crate::wire::frame;
use crate::wire::response::ErrPacket;

/// ER_CONNECT_TO_FOREIGN_DATA_SOURCE. Not the 2003 with which clients say the like themselves: MariaDB's take that for no error of a
/// server, and report a malformed packet.
const CANNOT_CONNECT: u16 = 1429;
/// ER_CON_COUNT_ERROR.
pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;

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

/// Whom a connection speaks for, and what it has said behind that: who is trusted with it says so first.
pub(super) async fn spoken_for(
    client: &mut Link,
    ends: Ends,
    settings: &ProxyProtocolSection,
) -> io::Result<(Ends, Vec<u8>)> {
    match ends {
        Some((source, destination)) if settings.trusts(source.ip()) => {
            let (told, begun) = proxy_header::read(client).await?;
            Ok((Some((told.unwrap_or(source), destination)), begun))
        }
        _ => Ok((ends, Vec::new())),
    }
}

/// Gives a client a connection to the server, and moves its bytes until either ends.
pub(super) async fn serve(
    (mut client, source, begun): (Link, Option<SocketAddr>, Vec<u8>),
    header: &[u8],
    upstream: &Upstream,
    current: &Arc<Current>,
    draining: watch::Receiver<bool>,
) {
    let address = upstream.address.as_str();
    let limit = Duration::from_millis(current.shared().limits.connect_ms);
    let dialled = async {
        let mut backend = Backend::dial(address, limit).await?;
        backend.link.send(header)?;
        Ok::<_, io::Error>(backend)
    };
    match dialled.await {
        Ok(backend) => {
            upstream.answers();
            let session = Session::new(client, source, begun, backend, current);
            Box::pin(session.run(draining)).await;
        }
        Err(error) if is_out_of_files(&error) => {
            let message = full_of_files("now");
            refuse(&mut client, TOO_MANY_CONNECTIONS, &message).await;
        }
        Err(error) => {
            upstream.refuses(&error);
            let message =
                format!("Headwater can't connect to the MySQL server on '{address}' ({error})");
            refuse(&mut client, CANNOT_CONNECT, &message).await;
        }
    }
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
