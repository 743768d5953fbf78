//! Connections to the admin port, limited in number, duration and request size.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

use super::{AdminState, routes};

/// Concurrent connections; further ones are closed at once.
const MAX_CONNECTIONS: usize = 64;
/// Time in which a request's header has to arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest life of a connection; Prometheus opens another one.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest header of a request.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Delay after `accept` fails for want of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts and serves connections until another process takes over the port.
pub(super) async fn serve(listener: TcpListener, state: Arc<AdminState>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("no admin port: {error}"),
    };
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = handed_over(&state) => break,
        };
        let Ok((socket, _)) = accepted else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            continue;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(routes::respond(&state, request).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .max_buf_size(MAX_HEADER_BYTES);
            let connection = http.serve_connection(TokioIo::new(socket), answer);
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
            drop(permit);
        });
    }
    // From here on the next process accepts. Requests in flight have time to finish.
    drop(listener);
    let _ = room
        .acquire_many(u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX))
        .await;
}

/// Waits until another process has the port.
async fn handed_over(state: &AdminState) {
    state.context.draining.wait().await;
    if !state.context.shared().handed_over.load(Ordering::Relaxed) {
        std::future::pending().await
    }
}
