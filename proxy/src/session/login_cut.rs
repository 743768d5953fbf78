//! Ends unfinished logins in a way that the server does not count as an error of this host.
//!
//! Servers count unfinished logins by host, and refuse a host after `max_connect_errors` of them in a row (error 1129). All clients of
//! Headwater share its host.

use std::io;

use super::connection_close::CLOSE_TIMEOUT;
use super::session_counters::SessionEvent;
use super::state::{Session, SessionEnd};
use headwater_session::login::LoginProgress;
use headwater_session::placeholder_login;
use headwater_wire::command::Command;
use headwater_wire::packet::{self, HEADER_BYTES};

/// A server's packet in a login is shorter.
const PACKET_BYTES: usize = 64 * 1024;

impl Session {
    /// Ends a login that the client has not finished.
    pub(super) async fn end_login(&mut self, ended: &SessionEnd) {
        let Some(progress) = self.machine.login_progress() else {
            return;
        };
        self.shared.counters.add(SessionEvent::LoginCut);
        let client_left =
            progress == LoginProgress::BeforeLogin && matches!(ended, SessionEnd::ClientLeft);
        if client_left && self.client.is_encrypted() && self.client_in.is_empty() {
            self.remember_refusal("it left behind the agreement on keys");
        }
        // A Unix socket has no host that the server could block.
        if self.backend.link.is_local() {
            return;
        }
        let excusable =
            progress != LoginProgress::InDialogue && !matches!(ended, SessionEnd::ServerClosed(_));
        let excused = excusable && {
            let excused =
                tokio::time::timeout(CLOSE_TIMEOUT, self.send_refused_login(progress)).await;
            matches!(excused, Ok(Ok(())))
        };
        if !excused {
            self.shared.counters.add(SessionEvent::LoginError);
            self.shared.login_errors.add(|| self.span());
        }
    }

    /// Has the server deny a login, which it does not count as an error.
    async fn send_refused_login(&mut self, progress: LoginProgress) -> io::Result<()> {
        const GREETING: u8 = 10;
        const IN: u8 = 0;
        if progress == LoginProgress::BeforeGreeting {
            let greeting = self.next_packet().await?;
            if greeting.get(HEADER_BYTES) != Some(&GREETING) {
                return Ok(());
            }
        }
        let in_tls = !self.backend.link.is_plain();
        let mut message = placeholder_login::login(in_tls);
        loop {
            self.backend.link.send_all(&message).await?;
            let packet = self.next_packet().await?;
            match placeholder_login::auth_response(&packet) {
                Some(answer) => message = answer,
                None if packet.get(HEADER_BYTES) == Some(&IN) => {
                    // The server accepts logins without a password.
                    let quit = packet::encode_first(&[Command::Quit.byte()]);
                    return self.backend.link.send_all(&quit).await;
                }
                None => return Ok(()),
            }
        }
    }

    /// The server's next packet, with its header.
    async fn next_packet(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = packet::complete_payload(&self.backend.inbox).map(<[u8]>::len) {
                return Ok(self.backend.inbox.drain(..HEADER_BYTES + length).collect());
            }
            if self.backend.inbox.len() > PACKET_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.backend.fill().await?;
        }
    }
}
