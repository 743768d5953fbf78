//! How a session's connections are closed: nothing that was said is lost, nobody is waited for in vain.

use std::io;
use std::time::Duration;

use super::session_counters::SessionEvent;
use super::state::{InboundState, Session, SessionEnd};
use crate::link::NetworkLink;
use crate::wire::packet::{self, HEADER_BYTES, PacketHeader};
use crate::wire::response::ErrPacket;

/// ER_SERVER_SHUTDOWN: what a server tells whoever waits for an answer when it is stopped.
const SERVER_SHUTDOWN: u16 = 1053;
/// How long a side that neither reads nor closes is waited for at the end.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl Session {
    /// Passes on that the client has closed its side: the server answers what it was sent, and closes.
    pub(super) async fn close_inbound(&mut self) {
        // The start of a packet that will never be whole: the server has it judged, not us.
        let rest = std::mem::take(&mut self.client_in);
        self.inbound = InboundState::Closed;
        // When this fails the server has closed already, and reading will show it.
        let closing = async {
            let _ = self.backend.link.send_all(&rest).await;
            let _ = self.backend.link.shutdown_write().await;
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    }

    /// Lets either side have what was meant for it.
    pub(super) async fn close_connections(mut self, ended: &SessionEnd) {
        self.end_login(ended).await;
        match ended {
            SessionEnd::ServerClosed(error) => {
                let reset = error.kind() == io::ErrorKind::ConnectionReset;
                return self.finish_client(reset).await;
            }
            SessionEnd::Refused => return self.finish_client(false).await,
            // It had its time.
            SessionEnd::Stalled { .. } => return,
            SessionEnd::ServerMoved => {
                self.leave_server().await;
                return self.finish_client(false).await;
            }
            SessionEnd::ClientLeft | SessionEnd::Drained | SessionEnd::LoginTimeout { .. } => {}
        }
        let rest = async {
            let _ = self.client.flush_all().await;
            let _ = self.backend.link.flush_all().await;
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, rest).await;
    }

    /// The server is followed no more. It ends what was begun there; a client that waits for an answer is told that none will come.
    async fn leave_server(&mut self) {
        self.backend.link.discard_backlog();
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.backend.link.shutdown_write()).await;
        let waits = PacketHeader::parse(&self.client_in).is_some_and(|header| {
            let whole = HEADER_BYTES + header.len;
            header.seq == 0 && self.client_in.len() >= whole
        });
        let owed = self
            .machine
            .commands()
            .and_then(|it| it.pending_error_sequence(waits));
        if let Some(seq) = owed {
            let error = ErrPacket {
                code: SERVER_SHUTDOWN,
                sqlstate: Some(*b"08S01"),
                message: b"Server shutdown in progress".to_vec(),
            };
            let (mut payload, mut packet) = (Vec::new(), Vec::new());
            error.write(&mut payload);
            packet::encode(seq, &payload, &mut packet);
            let _ = self.send_to_client(&packet);
        }
    }

    /// The server is gone. A client gets its last words though it reads slowly, as it would from the server's own system. What
    /// it still sends is dropped, not left unread: closing then would reset the connection, and the reset could overtake those
    /// words.
    async fn finish_client(mut self, reset: bool) {
        let limit = Duration::from_millis(self.shared.limits.last_words_ms);
        let at_once = limit.min(CLOSE_TIMEOUT);
        let mut had = tokio::time::timeout(at_once, self.flush_client()).await;
        if had.is_err() {
            self.admission.release();
            had = tokio::time::timeout(limit.saturating_sub(at_once), self.flush_client()).await;
        }
        match had {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => return self.shared.counters.add(SessionEvent::ClientStalled),
        }
        let closing = async {
            // Its server has ended so, and its next command would fail with it.
            if reset {
                return self.client.reset().await;
            }
            let _ = self.client.shutdown_write().await;
            while self.client.readable().await.is_ok()
                && matches!(discard_input(&mut self.client), Ok(InputRemainder::More))
            {}
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    }

    /// Waits until the client has taken what waits for it, or has left.
    async fn flush_client(&mut self) -> io::Result<()> {
        while !self.client.is_flushed() {
            tokio::select! {
                biased;
                ready = self.client.writable() => ready.and_then(|()| self.client.flush())?,
                ready = self.client.readable() => match ready.and_then(|()| discard_input(&mut self.client))? {
                    InputRemainder::End => return Ok(()),
                    InputRemainder::More => {}
                },
            }
        }
        Ok(())
    }
}

/// What is left to read.
enum InputRemainder {
    More,
    End,
}

/// Reads once and forgets.
fn discard_input(link: &mut NetworkLink) -> io::Result<InputRemainder> {
    match link.read(&mut [0; 4096]) {
        Ok(0) => Ok(InputRemainder::End),
        Ok(_) => Ok(InputRemainder::More),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(InputRemainder::More),
        Err(error) => Err(error),
    }
}
