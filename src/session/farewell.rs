//! How a session's connections are closed: nothing that was said is lost, nobody is waited for in vain.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::driver::{Ended, Inbound, Session, flush};

/// How long a side that neither reads nor closes is waited for at the end.
const FAREWELL: Duration = Duration::from_secs(1);

impl Session {
    /// Passes on that the client has closed its side: the server answers what it was sent, and closes.
    pub(super) async fn close_inbound(&mut self) {
        // The start of a packet that will never be whole: the server has it judged, not us.
        let rest = std::mem::take(&mut self.client_in);
        self.inbound = Inbound::Closed;
        // When this fails the server has closed already, and reading will show it.
        let closing = async {
            let _ = self.backend.stream.write_all(&rest).await;
            let _ = self.backend.stream.shutdown().await;
        };
        let _ = tokio::time::timeout(FAREWELL, closing).await;
    }

    /// Lets either side have what was meant for it.
    pub(super) async fn farewell(&mut self, ended: &Ended) {
        if let Ended::Server(_) = ended {
            return self.last_words().await;
        }
        let rest = async {
            let _ = self.client.write_all(&self.to_client).await;
            let _ = self.backend.stream.write_all(&self.to_server).await;
        };
        let _ = tokio::time::timeout(FAREWELL, rest).await;
    }

    /// The server is gone. A client gets its last words however slowly it reads, as it would from
    /// the server's own system. What it still sends is dropped, not left unread: closing then would
    /// reset the connection, and the reset could overtake those words.
    async fn last_words(&mut self) {
        while !self.to_client.is_empty() {
            let sent = tokio::select! {
                ready = self.client.writable() => {
                    ready.and_then(|()| flush(&self.client, &mut self.to_client))
                }
                dropped = drop_input(&self.client) => match dropped {
                    Ok(0) => break,
                    other => other.map(|_| ()),
                }
            };
            if sent.is_err() {
                return;
            }
        }
        let closing = async {
            let _ = self.client.write_all(&self.to_client).await;
            let _ = self.client.shutdown().await;
            while matches!(drop_input(&self.client).await, Ok(1..)) {}
        };
        let _ = tokio::time::timeout(FAREWELL, closing).await;
    }
}

/// Reads once and forgets; 0 when the other side has closed.
async fn drop_input(socket: &tokio::net::TcpStream) -> std::io::Result<usize> {
    loop {
        socket.readable().await?;
        match socket.try_read(&mut [0; 4096]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}
