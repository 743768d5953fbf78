//! Where clients connect: a port, and optionally a Unix socket.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};
use socket2::SockRef;
use tokio::io::unix::AsyncFd;

use crate::sockets::{InheritedSockets, path_of};
#[cfg(feature = "simulation")]
use headwater_proxy::link::memory::MemoryListener;
use headwater_proxy::link::{self, DetachedSocket};

/// As MySQL servers set it: access is decided by the login.
const CLIENT_SOCKET_MODE: u32 = 0o777;

/// The open port, and the open Unix socket if there is one.
#[derive(Debug)]
pub(crate) struct ClientListener {
    port: PortListener,
    local_listener: Option<LocalListener>,
}

#[derive(Debug)]
enum PortListener {
    Tcp(AsyncFd<TcpListener>),
    /// A simulated network.
    #[cfg(feature = "simulation")]
    Memory(MemoryListener),
}

/// Lets as many connections wait to be accepted as the system allows (Linux: net.core.somaxconn). The system drops further ones, and
/// their clients may never learn of it.
fn set_longest_backlog(listener: &impl AsFd) -> io::Result<()> {
    SockRef::from(listener).listen(i32::MAX)
}

#[derive(Debug)]
struct LocalListener {
    listener: AsyncFd<UnixListener>,
    path: Option<PathBuf>,
    _file: Option<SocketFile>,
}

/// A socket's file; removed when dropped, unless another process listens there by then.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    /// True: another process removes the file.
    pub(crate) handed_over: Arc<AtomicBool>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.handed_over.load(Ordering::Relaxed) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens a Unix socket. Replaces the file that a dead process left.
pub(crate) fn open_socket(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(listener)
}

/// A client that has connected.
#[derive(Debug)]
pub(crate) struct AcceptedClient {
    pub(crate) socket: DetachedSocket,
    /// Its address, if it came by TCP.
    pub(crate) source: Option<SocketAddr>,
}

impl ClientListener {
    /// Uses the inherited port, or binds a new one.
    pub(crate) async fn bind_port(
        given: Option<TcpListener>,
        address: &str,
    ) -> io::Result<ClientListener> {
        #[cfg(feature = "simulation")]
        if MemoryListener::is_simulated() {
            return Ok(ClientListener {
                port: PortListener::Memory(MemoryListener::bind(address)?),
                local_listener: None,
            });
        }
        let port = match given {
            Some(port) => port,
            None => tokio::net::TcpListener::bind(address).await?.into_std()?,
        };
        port.set_nonblocking(true)?;
        set_longest_backlog(&port)?;
        // Accepted sockets inherit the options.
        link::configure_socket(&port)?;
        let port = PortListener::Tcp(watch_readiness(port)?);
        Ok(ClientListener {
            port,
            local_listener: None,
        })
    }

    /// Adds the inherited Unix socket, or opens one. `handed_over`: true once the file belongs to another process.
    pub(crate) fn with_socket(
        mut self,
        given: &mut InheritedSockets,
        path: Option<&Path>,
        handed_over: &Arc<AtomicBool>,
    ) -> io::Result<ClientListener> {
        let (listener, owns_file) = match (given.local.take(), path) {
            (Some(listener), _) => (listener, !given.file_is_external),
            (None, Some(path)) => (open_socket(path, CLIENT_SOCKET_MODE)?, true),
            (None, None) => return Ok(self),
        };
        set_longest_backlog(&listener)?;
        listener.set_nonblocking(true)?;
        let path = path_of(&listener);
        let file = path.clone().filter(|_| owns_file).map(|path| SocketFile {
            path,
            handed_over: Arc::clone(handed_over),
        });
        self.local_listener = Some(LocalListener {
            listener: watch_readiness(listener)?,
            path,
            _file: file,
        });
        Ok(self)
    }

    /// The path of the Unix socket.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.local_listener.as_ref()?.path.as_deref()
    }

    /// Duplicates port and socket, for another process.
    pub(crate) fn duplicate_sockets(&self) -> io::Result<(TcpListener, Option<UnixListener>)> {
        let local = self.local_listener.as_ref();
        let local = local.map(|local| local.listener.get_ref().try_clone());
        let port = self.port.tcp()?.try_clone()?;
        Ok((port, local.transpose()?))
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.tcp()?.local_addr()
    }

    pub(crate) async fn accept(&self) -> io::Result<AcceptedClient> {
        let local = async {
            match &self.local_listener {
                Some(local) => accept(&local.listener).await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            accepted = self.port.accept() => accepted?,
            accepted = local => {
                let (socket, _) = accepted?;
                AcceptedClient { socket: DetachedSocket::Unix(socket.into()), source: None }
            }
        };
        Ok(accepted)
    }
}

impl PortListener {
    /// The operating system's listener.
    fn tcp(&self) -> io::Result<&TcpListener> {
        match self {
            PortListener::Tcp(listener) => Ok(listener.get_ref()),
            #[cfg(feature = "simulation")]
            PortListener::Memory(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    async fn accept(&self) -> io::Result<AcceptedClient> {
        match self {
            PortListener::Tcp(listener) => {
                let (socket, source) = accept(listener).await?;
                let source = source.and_then(|source| source.try_into().ok());
                let socket = DetachedSocket::Tcp(socket.into());
                Ok(AcceptedClient { socket, source })
            }
            #[cfg(feature = "simulation")]
            PortListener::Memory(listener) => Ok(AcceptedClient {
                socket: DetachedSocket::Memory(listener.accept().await),
                source: None,
            }),
        }
    }
}

/// Registers a listener for readiness. The runtime's own listener would bind accepted sockets to its own thread.
#[expect(
    deprecated,
    reason = "what took its place is unsafe, for descriptors that change; a listener keeps its own"
)]
fn watch_readiness<L: AsRawFd>(listener: L) -> io::Result<AsyncFd<L>> {
    AsyncFd::new(listener)
}

/// The next connection, which belongs to no runtime yet: its shard attaches it.
async fn accept(
    listener: &AsyncFd<impl AsFd + AsRawFd>,
) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    loop {
        let mut ready = listener.readable().await?;
        let accepted = ready.try_io(|listener| Ok(acceptfrom_with(listener, flags)?));
        if let Ok(accepted) = accepted {
            return accepted;
        }
    }
}
