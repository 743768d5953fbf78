//! The old process: hands its sockets out, and gives way once it is told to.

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
    ANSWERS, CONTROL, GO, HELLO, KEPT, LOCAL, PAUSE, SOCKETS, line, refuse, send,
};
use super::{TakeoverError, own_user};
use crate::listener::{SocketFile, open_socket};
use crate::session::shared::Shared;
use crate::sockets::{ADMIN, CLIENTS, DOOR, path_of};
use crate::systemd;

/// For the user that Headwater runs as alone.
const MODE: u32 = 0o600;
/// So many processes may wait to be told that another one takes over.
const WAITING: i32 = 8;

/// What the next process may take over.
#[derive(Debug)]
pub struct Offer {
    control: UnixListener,
    _file: SocketFile,
    port: TcpListener,
    doors: Vec<TcpListener>,
    local: Option<UnixListener>,
    admin: Option<TcpListener>,
    /// The file of `local` is somebody else's to remove.
    keeps_file: bool,
    shared: Arc<Shared>,
    /// True once files of sockets are the next process's.
    kept: Arc<AtomicBool>,
}

/// Copies of what this process listens on.
pub(crate) struct Copies {
    pub(crate) port: TcpListener,
    /// Further ports.
    pub(crate) doors: Vec<TcpListener>,
    pub(crate) local: Option<UnixListener>,
    pub(crate) admin: Option<TcpListener>,
    /// The file of `local` is somebody else's to remove.
    pub(crate) keeps_file: bool,
}

impl Offer {
    /// On this socket, or on one that is opened now.
    pub(crate) fn new(
        path: &Path,
        control: Option<UnixListener>,
        copies: Copies,
        shared: Arc<Shared>,
        kept: Arc<AtomicBool>,
    ) -> Result<Offer, TakeoverError> {
        let open = || {
            let control = control.map_or_else(|| open_socket(path, MODE), Ok)?;
            control.set_nonblocking(true)?;
            // Who connects sees the process that has listened last.
            rustix::net::listen(&control, WAITING)?;
            Ok::<_, io::Error>(control)
        };
        let control = open().map_err(|source| TakeoverError::Open {
            path: path.to_owned(),
            source,
        })?;
        let file = SocketFile {
            path: path_of(&control).unwrap_or_else(|| path.to_owned()),
            kept: Arc::clone(&kept),
        };
        let Copies {
            port,
            doors,
            local,
            admin,
            keeps_file,
        } = copies;
        Ok(Offer {
            control,
            _file: file,
            port,
            doors,
            local,
            admin,
            keeps_file,
            shared,
            kept,
        })
    }

    /// Waits until another process has taken over.
    pub async fn taken(self) {
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
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
            let who = pid.map_or_else(
                || "another process".to_owned(),
                |it| format!("process {it}"),
            );
            match self.hand_over(stream, &who, &control).await {
                Ok(Some(())) => {
                    self.kept.store(true, Ordering::Relaxed);
                    self.shared.handed_over.store(true, Ordering::Relaxed);
                    if let Some(pid) = pid.and_then(|pid| u32::try_from(pid).ok()) {
                        systemd::main_process_is(pid);
                    }
                    tracing::info!(
                        "{who} has taken over; sessions that go on here, for limits.drain_ms = {} at most: {}",
                        self.shared.limits.drain_ms,
                        self.shared.sessions.all().len()
                    );
                    return;
                }
                // Somebody who looks whether the socket is in use.
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("{who} has not taken over, this one goes on: {error}");
                }
            }
        }
    }

    /// `None`: it was not asked for.
    async fn hand_over(
        &self,
        mut stream: UnixStream,
        who: &str,
        control: &tokio::net::UnixListener,
    ) -> io::Result<Option<()>> {
        let peer = stream.peer_cred()?.uid();
        if peer != own_user() {
            let reason = format!(
                "it runs as user {}, the asking process as user {peer}",
                own_user()
            );
            refuse(&mut stream, &reason).await;
            return Err(io::Error::other(format!(
                "it runs as user {peer}, and only user {} may take over",
                own_user()
            )));
        }
        let hello = tokio::time::timeout(ANSWERS, line(&mut stream));
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
        let said = format!("{SOCKETS} {}\n", names.join(" "));
        stream.try_io(Interest::WRITABLE, || send(&stream, &said, &descriptors))?;
        tracing::info!("{who} has the sockets as well, and takes over once it is warm");
        let gone = || io::Error::other("it ended before its memory was warm");
        let said = line(&mut stream);
        tokio::pin!(said);
        loop {
            tokio::select! {
                said = &mut said => return match said {
                    Ok(Some(said)) if said == GO => Ok(Some(())),
                    Ok(Some(_)) => Err(io::Error::other("it says something that is not known here")),
                    Ok(None) | Err(_) => Err(gone()),
                },
                Ok((mut other, _)) = control.accept() => {
                    refuse(&mut other, "another process is taking over just now").await;
                }
            }
        }
    }

    fn descriptors(&self) -> (Vec<&'static str>, Vec<BorrowedFd<'_>>) {
        let mut all = vec![
            (CONTROL, self.control.as_fd()),
            (CLIENTS, self.port.as_fd()),
        ];
        all.extend(self.doors.iter().map(|it| (DOOR, it.as_fd())));
        let local = if self.keeps_file { KEPT } else { LOCAL };
        all.extend(self.local.as_ref().map(|it| (local, it.as_fd())));
        all.extend(self.admin.as_ref().map(|it| (ADMIN, it.as_fd())));
        all.into_iter().unzip()
    }
}
