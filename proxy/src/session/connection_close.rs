//! Closes a session's connections: delivers everything that was sent, with a time limit.

use std::io;
use std::time::Duration;

use super::session_counters::SessionEvent;
use super::state::{InboundState, Session, SessionEnd};
use crate::link::NetworkLink;
use headwater_wire::packet::{self, HEADER_BYTES, PacketHeader};
use headwater_wire::response::ErrPacket;

/// ER_SERVER_SHUTDOWN: a stopping server sends it to clients that wait for an answer.
const SERVER_SHUTDOWN: u16 = 1053;
/// How long to wait at the end for a side that neither reads nor closes.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl Session {
    /// Passes on that the client has closed its side: the server answers what it was sent, and closes.
    pub(super) async fn close_inbound(&mut self) {
        // The server judges the incomplete packet.
        let rest = std::mem::take(&mut self.client_in);
        self.inbound = InboundState::Closed;
        // If this fails, the server has closed already, which the next read reports.
        let closing = async {
            let _ = self.backend.link.send_all(&rest).await;
            let _ = self.backend.link.shutdown_write().await;
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    }

    /// Delivers to each side what was sent to it, then closes.
    pub(super) async fn close_connections(mut self, ended: &SessionEnd) {
        self.end_login(ended).await;
        match ended {
            SessionEnd::ServerClosed(error) => {
                let reset = error.kind() == io::ErrorKind::ConnectionReset;
                return self.finish_client(reset).await;
            }
            SessionEnd::Refused => return self.finish_client(false).await,
            // Its time has passed already.
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

    /// The server is not followed any more. It ends what was begun there; a client that waits for an answer gets an error.
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

    /// The server is gone. A slow client still gets the last bytes, as from the server's own system. Its further input is read and dropped:
    /// unread bytes would make close send a reset, which could overtake the last bytes.
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
            // The server ended by a reset, and the client's next command would fail with it.
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

    /// Waits until the client has taken the buffered bytes, or has closed.
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

/// Whether more input follows.
enum InputRemainder {
    More,
    End,
}

/// Reads once and drops the bytes.
fn discard_input(link: &mut NetworkLink) -> io::Result<InputRemainder> {
    match link.read(&mut [0; 4096]) {
        Ok(0) => Ok(InputRemainder::End),
        Ok(_) => Ok(InputRemainder::More),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(InputRemainder::More),
        Err(error) => Err(error),
    }
}
