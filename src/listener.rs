//! Where clients connect: a port, and a socket of the machine beside it.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener};

use crate::link::{self, Socket};

/// As servers have theirs: who may connect is the login's affair.
const MODE: u32 = 0o777;

/// The open port, and the open socket if there is one.
#[derive(Debug)]
pub(crate) struct Listener {
    port: TcpListener,
    local: Option<Local>,
}

#[derive(Debug)]
struct Local {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A client that has connected.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) socket: Socket,
    /// Its address, over the network.
    pub(crate) source: Option<SocketAddr>,
}

impl Listener {
    pub(crate) async fn port(address: &str) -> io::Result<Listener> {
        let port = TcpListener::bind(address).await?;
        // Whoever is accepted has what the port has.
        link::prepare(&port)?;
        Ok(Listener { port, local: None })
    }

    /// Opens the socket too. A file that a process left behind that is gone is in nobody's way.
    pub(crate) fn and_socket(mut self, path: &Path) -> io::Result<Listener> {
        if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE))?;
        let path = path.to_owned();
        self.local = Some(Local { listener, path });
        Ok(self)
    }

    /// The path of the socket.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.local.as_ref().map(|local| local.path.as_path())
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        let local = async {
            match &self.local {
                Some(local) => local.listener.accept().await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            accepted = self.port.accept() => {
                let (stream, source) = accepted?;
                Accepted { socket: Socket::Tcp(stream), source: Some(source) }
            }
            accepted = local => Accepted { socket: Socket::Unix(accepted?.0), source: None },
        };
        Ok(accepted)
    }
}
