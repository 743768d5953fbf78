//! Logins that are cut off: the server is told so in a way that it does not hold against everybody who comes from here.
//!
//! Servers count logins that break off by the host that they come from, and refuse that host altogether behind
//! `max_connect_errors` of them in a row (error 1129). Behind Headwater that host is everybody.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::counts::Event;
use super::driver::{Ended, Session};
use super::farewell::FAREWELL;
use super::login::Cut;
use super::nobody;
use crate::wire::command::Command;
use crate::wire::frame::{self, HEADER_BYTES};

/// ER_HANDSHAKE_ERROR, ER_NET_PACKETS_OUT_OF_ORDER: the server counts them.
const BAD_HANDSHAKE: u16 = 1043;
const OUT_OF_ORDER: u16 = 1156;
/// ER_HOST_IS_BLOCKED.
const HOST_IS_BLOCKED: u16 = 1129;

/// So many in a row are worth a word; servers refuse the host behind 100 unless told otherwise.
const WARN_AT: u32 = 10;
/// What a server says in a login is shorter.
const PACKET_BYTES: usize = 64 * 1024;

/// Logins that the server counts as errors of this host, since the last one that went well.
#[derive(Debug, Default)]
pub struct LoginErrors {
    in_a_row: AtomicU32,
    blocked: AtomicBool,
}

impl LoginErrors {
    /// A login went well: the server begins to count anew.
    pub(super) fn passed(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
        self.blocked.store(false, Ordering::Relaxed);
    }

    /// Counts another one, and warns before there are too many.
    fn add(&self) {
        let errors = self
            .in_a_row
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        if errors.is_multiple_of(WARN_AT) && (errors / WARN_AT).is_power_of_two() {
            tracing::warn!(
                "{errors} logins in a row broke off in a way that the server counts as errors of this host: behind max_connect_errors \
                 of them (SHOW VARIABLES says how many) it refuses everyone behind Headwater with error 1129, until FLUSH HOSTS \
                 (MySQL: TRUNCATE TABLE performance_schema.host_cache; either: mysqladmin flush-hosts). Raise max_connect_errors, or set \
                 skip_name_resolve = ON, where it does not count"
            );
        }
    }

    /// What the server says to somebody who logs in may be of interest to all.
    pub(super) fn hear(&self, packet: &[u8]) {
        const ERR: u8 = 0xff;
        let Some([ERR, low, high]) = packet.get(HEADER_BYTES..HEADER_BYTES + 3) else {
            return;
        };
        match u16::from_le_bytes([*low, *high]) {
            BAD_HANDSHAKE | OUT_OF_ORDER => self.add(),
            HOST_IS_BLOCKED => self.blocked(),
            _ => {}
        }
    }

    /// Says once that the server does not let anybody in.
    fn blocked(&self) {
        if !self.blocked.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the server refuses everyone behind Headwater (error 1129: max_connect_errors logins broke off). Let them in again with \
                 FLUSH HOSTS (MySQL: TRUNCATE TABLE performance_schema.host_cache; either: mysqladmin flush-hosts), and raise \
                 max_connect_errors, or set skip_name_resolve = ON, where it does not count"
            );
        }
    }
}

impl Session {
    /// Ends a login that the client has not brought to an end.
    pub(super) async fn end_login(&mut self, ended: &Ended) {
        let Some(cut) = self.machine.login_cut() else {
            return;
        };
        self.shared.counts.add(Event::LoginCut);
        // Who comes by a socket of the machine has no host.
        if self.backend.link.is_local() {
            return;
        }
        let excusable = cut != Cut::InDialogue && !matches!(ended, Ended::Server(_));
        let excused = excusable && {
            let excused = tokio::time::timeout(FAREWELL, self.log_nobody_in(cut)).await;
            matches!(excused, Ok(Ok(())))
        };
        if !excused {
            self.shared.counts.add(Event::LoginError);
            self.shared.login_errors.add();
        }
    }

    /// Has the server deny a login, which it does not count as an error.
    async fn log_nobody_in(&mut self, cut: Cut) -> io::Result<()> {
        const GREETING: u8 = 10;
        const IN: u8 = 0;
        if cut == Cut::BeforeGreeting {
            let greeting = self.next_packet().await?;
            if greeting.get(HEADER_BYTES) != Some(&GREETING) {
                return Ok(());
            }
        }
        let in_tls = !self.backend.link.is_plain();
        let mut said = nobody::login(in_tls);
        loop {
            self.backend.link.send_all(&said).await?;
            let packet = self.next_packet().await?;
            match nobody::answer(&packet) {
                Some(answer) => said = answer,
                None if packet.get(HEADER_BYTES) == Some(&IN) => {
                    // Where everybody may log in without a password.
                    let quit = frame::opening(&[Command::Quit.byte()]);
                    return self.backend.link.send_all(&quit).await;
                }
                None => return Ok(()),
            }
        }
    }

    /// The server's next packet, with its header.
    async fn next_packet(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = frame::whole(&self.backend.inbox).map(<[u8]>::len) {
                return Ok(self.backend.inbox.drain(..HEADER_BYTES + length).collect());
            }
            if self.backend.inbox.len() > PACKET_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.backend.fill().await?;
        }
    }
}
