//! The old process: hands out its sockets, and drains once the new one takes over.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::Interest;
use tokio::net::UnixStream;

use super::channel::{
    ANSWERS, CONTROL_SOCKET, EXTERNAL_LOCAL_SOCKET, GO, HELLO, LOCAL_SOCKET, RETRY_DELAY, SOCKETS,
    read_line, refuse, send,
};
use super::{TakeoverError, process_uid};
use crate::listener::{SocketFile, open_socket};
use crate::sockets::{ADDITIONAL_PORT, ADMIN, CLIENTS, path_of};
use crate::systemd;
use headwater_proxy::session::shared_state::SharedState;

/// Only the user that Headwater runs as may connect.
const CONTROL_SOCKET_MODE: u32 = 0o600;
/// Backlog of the control socket.
const MAX_WAITING: i32 = 8;

/// What the next process may take over.
#[derive(Debug)]
pub struct TakeoverOffer {
    control: UnixListener,
    _file: SocketFile,
    port: TcpListener,
    additional_ports: Vec<TcpListener>,
    local: Option<UnixListener>,
    admin: Option<TcpListener>,
    /// Another owner removes the file of `local`.
    file_is_external: bool,
    shared: Arc<SharedState>,
    /// True once the next process owns the sockets' files.
    files_handed_over: Arc<AtomicBool>,
}

/// Duplicates of the sockets that this process listens on.
pub(crate) struct SocketCopies {
    pub(crate) port: TcpListener,
    /// Further ports.
    pub(crate) additional_ports: Vec<TcpListener>,
    pub(crate) local: Option<UnixListener>,
    pub(crate) admin: Option<TcpListener>,
    /// Another owner removes the file of `local`.
    pub(crate) file_is_external: bool,
}

impl TakeoverOffer {
    /// Uses the inherited control socket, or opens it.
    pub(crate) fn new(
        path: &Path,
        control: Option<UnixListener>,
        copies: SocketCopies,
        shared: Arc<SharedState>,
        files_handed_over: Arc<AtomicBool>,
    ) -> Result<TakeoverOffer, TakeoverError> {
        let open = || {
            let control = control.map_or_else(|| open_socket(path, CONTROL_SOCKET_MODE), Ok)?;
            control.set_nonblocking(true)?;
            // The credentials that a peer sees are of the process that called listen last.
            rustix::net::listen(&control, MAX_WAITING)?;
            Ok::<_, io::Error>(control)
        };
        let control = open().map_err(|source| TakeoverError::Open {
            path: path.to_owned(),
            source,
        })?;
        let file = SocketFile {
            path: path_of(&control).unwrap_or_else(|| path.to_owned()),
            handed_over: Arc::clone(&files_handed_over),
        };
        let SocketCopies {
            port,
            additional_ports,
            local,
            admin,
            file_is_external: keeps_file,
        } = copies;
        Ok(TakeoverOffer {
            control,
            _file: file,
            port,
            additional_ports,
            local,
            admin,
            file_is_external: keeps_file,
            shared,
            files_handed_over,
        })
    }

    /// Waits until another process has taken over.
    pub async fn wait_until_taken(self) {
        let control = self.control.try_clone();
        let control = control.and_then(tokio::net::UnixListener::from_std);
        let control = match control {
            Ok(control) => control,
            Err(error) => {
                tracing::error!("nobody can take over (takeover.socket): {error}");
                return std::future::pending().await;
            }
        };
        loop {
            let Ok((stream, _)) = control.accept().await else {
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            };
            let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
            let who = pid.map_or_else(
                || "another process".to_owned(),
                |it| format!("process {it}"),
            );
            match self.hand_over(stream, &who, &control).await {
                Ok(Some(())) => {
                    self.files_handed_over.store(true, Ordering::Relaxed);
                    self.shared.handed_over.store(true, Ordering::Relaxed);
                    if let Some(pid) = pid.and_then(|pid| u32::try_from(pid).ok()) {
                        systemd::notify_main_pid(pid);
                    }
                    tracing::info!(
                        "{who} has taken over; sessions that go on here, for limits.drain_ms = {} at most: {}",
                        self.shared.limits.drain_ms,
                        self.shared.sessions.all().len()
                    );
                    return;
                }
                // A peer that only checks whether the socket is in use.
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("{who} has not taken over, this one goes on: {error}");
                }
            }
        }
    }

    /// Hands the sockets over. `None`: the peer did not request them.
    async fn hand_over(
        &self,
        mut stream: UnixStream,
        who: &str,
        control: &tokio::net::UnixListener,
    ) -> io::Result<Option<()>> {
        let peer = stream.peer_cred()?.uid();
        if peer != process_uid() {
            let reason = format!(
                "it runs as user {}, the asking process as user {peer}",
                process_uid()
            );
            refuse(&mut stream, &reason).await;
            return Err(io::Error::other(format!(
                "it runs as user {peer}, and only user {} may take over",
                process_uid()
            )));
        }
        let hello = tokio::time::timeout(ANSWERS, read_line(&mut stream));
        match hello.await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))? {
            None => return Ok(None),
            Some(hello) if hello == HELLO => {}
            Some(_) => {
                refuse(&mut stream, "it does not know how it is asked").await;
                return Err(io::Error::other("it asks in a way that is not known here"));
            }
        }
        let (names, descriptors) = self.descriptors();
        stream.writable().await?;
        let names_line = format!("{SOCKETS} {}\n", names.join(" "));
        stream.try_io(Interest::WRITABLE, || {
            send(&stream, &names_line, &descriptors)
        })?;
        tracing::info!("{who} has the sockets as well, and takes over once it is warm");
        let ended_early = || io::Error::other("it ended before its memory was warm");
        let said = read_line(&mut stream);
        tokio::pin!(said);
        loop {
            tokio::select! {
                said = &mut said => return match said {
                    Ok(Some(said)) if said == GO => Ok(Some(())),
                    Ok(Some(_)) => Err(io::Error::other("it says something that is not known here")),
                    Ok(None) | Err(_) => Err(ended_early()),
                },
                Ok((mut other, _)) = control.accept() => {
                    refuse(&mut other, "another process is taking over just now").await;
                }
            }
        }
    }

    fn descriptors(&self) -> (Vec<&'static str>, Vec<BorrowedFd<'_>>) {
        let mut all = vec![
            (CONTROL_SOCKET, self.control.as_fd()),
            (CLIENTS, self.port.as_fd()),
        ];
        all.extend(
            self.additional_ports
                .iter()
                .map(|it| (ADDITIONAL_PORT, it.as_fd())),
        );
        let local = if self.file_is_external {
            EXTERNAL_LOCAL_SOCKET
        } else {
            LOCAL_SOCKET
        };
        all.extend(self.local.as_ref().map(|it| (local, it.as_fd())));
        all.extend(self.admin.as_ref().map(|it| (ADMIN, it.as_fd())));
        all.into_iter().unzip()
    }
}
