//! The new process: requests the sockets, and takes over.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::channel::{ANSWERS, GO, REFUSED, request, sort_descriptors};
use super::{TakeoverError, process_uid};
use crate::sockets::InheritedSockets;

/// The process before this one, with which this one shares its sockets.
#[derive(Debug)]
pub struct PredecessorProcess {
    stream: UnixStream,
    control: UnixListener,
    /// Its process id, if the system reports it.
    pid: Option<i32>,
}

impl PredecessorProcess {
    /// Requests the sockets of the process at this path. `None`: there is no such process.
    ///
    /// # Errors
    /// There is one, and it does not hand its sockets over.
    pub async fn request_sockets(
        path: &Path,
    ) -> Result<Option<(PredecessorProcess, InheritedSockets)>, TakeoverError> {
        let stream = match UnixStream::connect(path).await {
            Ok(stream) => stream,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => return Ok(None),
                _ => return Err(connect_error(path, error)),
            },
        };
        let theirs = stream.peer_cred().map_err(|it| connect_error(path, it))?;
        let ours = process_uid();
        if theirs.uid() != ours {
            return Err(TakeoverError::OtherUser {
                path: path.to_owned(),
                theirs: theirs.uid(),
                ours,
            });
        }
        let reply = tokio::time::timeout(ANSWERS, request(stream));
        let (line, sockets, stream) = match reply.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(source)) => return Err(connect_error(path, source)),
            Err(_) => return Err(TakeoverError::TimedOut { path: path.into() }),
        };
        if let Some(reason) = line.strip_prefix(REFUSED) {
            return Err(TakeoverError::Refused {
                path: path.to_owned(),
                reason: reason.to_owned(),
            });
        }
        let Some((sockets, control)) = sort_descriptors(&line, sockets) else {
            return Err(TakeoverError::UnknownReply { path: path.into() });
        };
        let pid = theirs.pid();
        let predecessor = PredecessorProcess {
            stream,
            control,
            pid,
        };
        Ok(Some((predecessor, sockets)))
    }

    /// Has the other process drain; this one accepts clients from here on. Returns the control socket for the next process.
    pub(crate) async fn take_over(mut self) -> UnixListener {
        let pid = self.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
        match self.stream.write_all(format!("{GO}\n").as_bytes()).await {
            Ok(()) => {
                tracing::info!("taken over from process{pid}, which takes no more clients");
            }
            Err(error) => tracing::warn!(
                "process{pid} had gone before its sockets were taken over ({error}); they are open"
            ),
        }
        self.control
    }
}

fn connect_error(path: &Path, source: io::Error) -> TakeoverError {
    TakeoverError::Connect {
        path: path.to_owned(),
        source,
    }
}
