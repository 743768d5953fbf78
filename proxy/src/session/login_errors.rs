//! Counts logins that the server counts as errors of this host, and warns before it refuses the host.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tracing::Span;

use super::log_span::log_in;
use headwater_wire::packet::HEADER_BYTES;

/// ER_HANDSHAKE_ERROR, ER_NET_PACKETS_OUT_OF_ORDER: the server counts them.
const BAD_HANDSHAKE: u16 = 1043;
const OUT_OF_ORDER: u16 = 1156;
/// ER_HOST_IS_BLOCKED.
const HOST_IS_BLOCKED: u16 = 1129;

/// Errors in a row before the warning; servers refuse the host after 100 by default.
const WARN_AT: u32 = 10;
/// Login errors of this host, since the last successful login.
#[derive(Debug, Default)]
pub struct LoginErrorCounter {
    in_a_row: AtomicU32,
    blocked: AtomicBool,
}

impl LoginErrorCounter {
    /// A login succeeded: the server resets its count.
    pub(super) fn reset(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
        self.blocked.store(false, Ordering::Relaxed);
    }

    /// Counts an error; warns before there are too many.
    pub(super) fn add(&self, span: impl FnOnce() -> Span) {
        let errors = self
            .in_a_row
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        if errors.is_multiple_of(WARN_AT) && (errors / WARN_AT).is_power_of_two() {
            log_in!(
                span(),
                WARN,
                "{errors} logins in a row broke off in a way that the server counts as errors of this host: behind max_connect_errors \
                 of them (SHOW VARIABLES says how many) it refuses everyone behind Headwater with error 1129, until FLUSH HOSTS \
                 (MySQL: TRUNCATE TABLE performance_schema.host_cache; either: mysqladmin flush-hosts). Raise max_connect_errors, or set \
                 skip_name_resolve = ON, where it does not count"
            );
        }
    }

    /// Examines the server's packet in a login for errors that concern all clients.
    pub(super) fn observe(&self, packet: &[u8], span: impl FnOnce() -> Span) {
        const ERR: u8 = 0xff;
        let Some([ERR, low, high]) = packet.get(HEADER_BYTES..HEADER_BYTES + 3) else {
            return;
        };
        match u16::from_le_bytes([*low, *high]) {
            BAD_HANDSHAKE | OUT_OF_ORDER => self.add(span),
            HOST_IS_BLOCKED => self.warn_blocked(span),
            _ => {}
        }
    }

    /// Logs once that the server refuses this host.
    fn warn_blocked(&self, span: impl FnOnce() -> Span) {
        if !self.blocked.swap(true, Ordering::Relaxed) {
            log_in!(
                span(),
                ERROR,
                "the server refuses everyone behind Headwater (error 1129: max_connect_errors logins broke off). Let them in again with \
                 FLUSH HOSTS (MySQL: TRUNCATE TABLE performance_schema.host_cache; either: mysqladmin flush-hosts), and raise \
                 max_connect_errors, or set skip_name_resolve = ON, where it does not count"
            );
        }
    }
}
