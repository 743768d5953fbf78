//! Whose session a log line is of: its client, the number that the server gave it, its account.
//!
//! The span is made where a line is logged, and only if the line is wanted ([`log_in`]). A span around the session's future would
//! be entered and left at each poll, several times for each statement, for lines of which most sessions never log one.

use std::net::SocketAddr;

use tracing::Span;

/// So much of an account's name is said, in bytes; servers have names of up to 128 characters.
const NAME_BYTES: usize = 512;

/// Logs a line in a span, which is not made where the level is not logged.
macro_rules! log_in {
    ($span:expr, $level:ident, $($line:tt)+) => {
        if tracing::enabled!(tracing::Level::$level) {
            $span.in_scope(|| tracing::event!(tracing::Level::$level, $($line)+));
        }
    };
}
pub(crate) use log_in;

/// The span of a client's lines. Its level is that of no line, so that it is there whatever is logged.
pub(crate) fn session_span(
    client: Option<SocketAddr>,
    thread: Option<u32>,
    account: Option<&[u8]>,
) -> Span {
    let client = client.map_or_else(|| "socket".to_owned(), |client| client.to_string());
    let account = account
        .map(|name| String::from_utf8_lossy(name.get(..NAME_BYTES).unwrap_or(name)).into_owned());
    // As text and not as Display: what a name has of control characters is escaped.
    let account = account.as_deref();
    tracing::error_span!("session", %client, thread, account)
}
