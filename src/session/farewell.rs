//! How a session's connections are closed: nothing that was said is lost, nobody is waited for in vain.

use std::io;
use std::time::Duration;

use super::counts::Event;
use super::state::{Ended, Inbound, Session};
use crate::link::Link;
use crate::wire::frame::{self, HEADER_BYTES, Header};
use crate::wire::response::ErrPacket;

/// ER_SERVER_SHUTDOWN: what a server tells whoever waits for an answer when it is stopped.
const SHUTDOWN: u16 = 1053;
/// How long a side that neither reads nor closes is waited for at the end.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);

impl Session {
    /// Passes on that the client has closed its side: the server answers what it was sent, and closes.
    pub(super) async fn close_inbound(&mut self) {
        // The start of a packet that will never be whole: the server has it judged, not us.
        let rest = std::mem::take(&mut self.client_in);
        self.inbound = Inbound::Closed;
        // When this fails the server has closed already, and reading will show it.
        let closing = async {
            let _ = self.backend.link.send_all(&rest).await;
            let _ = self.backend.link.finish().await;
        };
        let _ = tokio::time::timeout(FAREWELL, closing).await;
    }

    /// Lets either side have what was meant for it.
    pub(super) async fn farewell(mut self, ended: &Ended) {
        self.end_login(ended).await;
        match ended {
            Ended::Server(error) => {
                let reset = error.kind() == io::ErrorKind::ConnectionReset;
                return self.last_words(reset).await;
            }
            Ended::Refused => return self.last_words(false).await,
            // It had its time.
            Ended::Stalled { .. } => return,
            Ended::Moved => {
                self.leave_server().await;
                return self.last_words(false).await;
            }
            Ended::Client | Ended::Drained | Ended::Unknown { .. } => {}
        }
        let rest = async {
            let _ = self.client.cleared().await;
            let _ = self.backend.link.cleared().await;
        };
        let _ = tokio::time::timeout(FAREWELL, rest).await;
    }

    /// The server is followed no more. It ends what was begun there; a client that waits for an answer is told that none will come.
    async fn leave_server(&mut self) {
        self.backend.link.forget();
        let _ = tokio::time::timeout(FAREWELL, self.backend.link.finish()).await;
        let waits = Header::parse(&self.client_in).is_some_and(|header| {
            let whole = HEADER_BYTES + header.len;
            header.seq == 0 && self.client_in.len() >= whole
        });
        let owed = self.machine.commands().and_then(|it| it.owes(waits));
        if let Some(seq) = owed {
            let error = ErrPacket {
                code: SHUTDOWN,
                sqlstate: Some(*b"08S01"),
                message: b"Server shutdown in progress".to_vec(),
            };
            let (mut payload, mut packet) = (Vec::new(), Vec::new());
            error.write(&mut payload);
            frame::encode(seq, &payload, &mut packet);
            let _ = self.tell_client(&packet);
        }
    }

    /// The server is gone. A client gets its last words though it reads slowly, as it would from the server's own system. What
    /// it still sends is dropped, not left unread: closing then would reset the connection, and the reset could overtake those
    /// words.
    async fn last_words(mut self, reset: bool) {
        let limit = Duration::from_millis(self.shared.limits.last_words_ms);
        let at_once = limit.min(FAREWELL);
        let mut had = tokio::time::timeout(at_once, self.let_have()).await;
        if had.is_err() {
            self.admission.give_back();
            had = tokio::time::timeout(limit.saturating_sub(at_once), self.let_have()).await;
        }
        match had {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => return self.shared.counts.add(Event::ClientStalled),
        }
        let closing = async {
            // Its server has ended so, and its next command would fail with it.
            if reset {
                return self.client.reset().await;
            }
            let _ = self.client.finish().await;
            while self.client.readable().await.is_ok()
                && matches!(drop_input(&mut self.client), Ok(Input::More))
            {}
        };
        let _ = tokio::time::timeout(FAREWELL, closing).await;
    }

    /// Waits until the client has taken what waits for it, or has left.
    async fn let_have(&mut self) -> io::Result<()> {
        while !self.client.is_clear() {
            tokio::select! {
                biased;
                ready = self.client.writable() => ready.and_then(|()| self.client.flush())?,
                ready = self.client.readable() => match ready.and_then(|()| drop_input(&mut self.client))? {
                    Input::End => return Ok(()),
                    Input::More => {}
                },
            }
        }
        Ok(())
    }
}

/// What is left to read.
enum Input {
    More,
    End,
}

/// Reads once and forgets.
fn drop_input(link: &mut Link) -> io::Result<Input> {
    match link.read(&mut [0; 4096]) {
        Ok(0) => Ok(Input::End),
        Ok(_) => Ok(Input::More),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Input::More),
        Err(error) => Err(error),
    }
}
