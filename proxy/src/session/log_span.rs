//! The span that identifies a log line's session: its client, the server's thread id, its account.
//!
//! The span is made only for a line that is logged ([`log_in`]). A span around the session's future would be entered and left at each poll,
//! several times for each statement, though most sessions never log a line.

use std::net::SocketAddr;

use tracing::Span;

/// Bytes of an account's name that are logged; servers have names of up to 128 characters.
const NAME_BYTES: usize = 512;

/// Logs a line in a span, which is not made if the level is not logged.
#[macro_export]
macro_rules! log_in {
    ($span:expr, $level:ident, $($line:tt)+) => {
        if tracing::enabled!(tracing::Level::$level) {
            $span.in_scope(|| tracing::event!(tracing::Level::$level, $($line)+));
        }
    };
}
pub use log_in;

/// The span of a client's lines. Its level is above every line's, so that it exists whatever is logged.
pub fn session_span(
    client: Option<SocketAddr>,
    thread: Option<u32>,
    account: Option<&[u8]>,
) -> Span {
    let client = client.map_or_else(|| "socket".to_owned(), |client| client.to_string());
    let account = account
        .map(|name| String::from_utf8_lossy(name.get(..NAME_BYTES).unwrap_or(name)).into_owned());
    // As text and not as Display: control characters in a name are escaped.
    let account = account.as_deref();
    tracing::error_span!("session", %client, thread, account)
}
