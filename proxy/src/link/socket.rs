//! A TCP or Unix socket of a client or a server.

use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

#[cfg(feature = "simulation")]
use super::memory::MemoryStream;

/// True for the path of a socket, as opposed to `HOST:PORT`.
#[must_use]
pub fn is_path(address: &str) -> bool {
    address.starts_with('/')
}

/// TCP keepalive: a silent side is probed after 30 s and lost within a minute. The system's defaults are two hours and more.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// Sets TCP_NODELAY and keepalive, so that a vanished side is noticed within a minute. Accepted sockets inherit it from their listener.
///
/// # Errors
/// I/O errors.
pub fn configure_socket(socket: &impl AsFd) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new();
    let keepalive = keepalive
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive.with_retries(KEEPALIVE_RETRIES))
}

/// A connected socket.
#[derive(Debug)]
pub enum StreamSocket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// A simulated connection within the thread.
    #[cfg(feature = "simulation")]
    Memory(MemoryStream),
}

/// A socket that belongs to no runtime yet.
#[derive(Debug)]
pub enum DetachedSocket {
    /// TCP.
    Tcp(std::net::TcpStream),
    /// A Unix socket.
    Unix(std::os::unix::net::UnixStream),
    /// A simulated connection within the thread.
    #[cfg(feature = "simulation")]
    Memory(MemoryStream),
}

impl DetachedSocket {
    /// Registers the socket with the current runtime.
    ///
    /// # Errors
    /// I/O errors.
    pub fn attach(self) -> io::Result<StreamSocket> {
        match self {
            DetachedSocket::Tcp(stream) => TcpStream::from_std(stream).map(StreamSocket::Tcp),
            DetachedSocket::Unix(stream) => UnixStream::from_std(stream).map(StreamSocket::Unix),
            #[cfg(feature = "simulation")]
            DetachedSocket::Memory(stream) => Ok(StreamSocket::Memory(stream)),
        }
    }
}

impl StreamSocket {
    /// Connects to an address (`HOST:PORT`, or the path of a socket), within `limit`.
    ///
    /// # Errors
    /// I/O errors; a timeout is `TimedOut`.
    pub async fn dial(address: &str, limit: Duration) -> io::Result<StreamSocket> {
        #[cfg(feature = "simulation")]
        if let Some(dialed) = MemoryStream::dial(address) {
            return dialed.map(StreamSocket::Memory);
        }
        let connecting = async {
            match is_path(address) {
                true => UnixStream::connect(address).await.map(StreamSocket::Unix),
                false => {
                    let stream = TcpStream::connect(address).await?;
                    configure_socket(&stream)?;
                    Ok(StreamSocket::Tcp(stream))
                }
            }
        };
        tokio::time::timeout(limit, connecting)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// The local address; `None`: not TCP.
    ///
    /// # Errors
    /// I/O errors.
    pub fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            StreamSocket::Tcp(stream) => stream.local_addr().map(Some),
            StreamSocket::Unix(_) => Ok(None),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(_) => Ok(None),
        }
    }

    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            StreamSocket::Tcp(stream) => stream.poll_read_ready(context),
            StreamSocket::Unix(stream) => stream.poll_read_ready(context),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(stream) => stream.poll_readable(context),
        }
    }

    pub(super) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            StreamSocket::Tcp(stream) => stream.poll_write_ready(context),
            StreamSocket::Unix(stream) => stream.poll_write_ready(context),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(stream) => stream.poll_writable(context),
        }
    }

    /// Shuts down the write side.
    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        let how = std::net::Shutdown::Write;
        match self {
            StreamSocket::Tcp(stream) => SockRef::from(stream).shutdown(how),
            StreamSocket::Unix(stream) => SockRef::from(stream).shutdown(how),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(stream) => {
                stream.shutdown_write();
                Ok(())
            }
        }
    }
}

/// Which of these events, errors and hang-ups are pending; does not wait.
fn poll_events(socket: &impl AsFd, events: PollFlags) -> PollFlags {
    let mut sockets = [PollFd::new(socket, events)];
    // If the poll fails, no event is pending.
    let polled = poll(&mut sockets, Some(&Timespec::default()));
    match polled {
        Ok(_) => sockets.map(|socket| socket.revents())[0],
        Err(_) => PollFlags::empty(),
    }
}

impl StreamSocket {
    /// True if the other side has ended, whatever is still to be read.
    pub(super) fn has_ended(&self) -> bool {
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        match self {
            StreamSocket::Tcp(stream) => poll_events(stream, PollFlags::RDHUP).intersects(ended),
            StreamSocket::Unix(stream) => poll_events(stream, PollFlags::RDHUP).intersects(ended),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(stream) => stream.has_ended(),
        }
    }

    /// Shrinks the send buffer so far that room to write means: the other side has all but the last small packet.
    pub(super) fn shrink_send_buffer(&self) -> io::Result<()> {
        match self {
            StreamSocket::Tcp(stream) => SockRef::from(stream).set_send_buffer_size(1),
            StreamSocket::Unix(stream) => SockRef::from(stream).set_send_buffer_size(1),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(_) => Ok(()),
        }
    }

    /// True if there is room to write.
    pub(super) fn has_room(&self) -> bool {
        let room = PollFlags::OUT | PollFlags::HUP | PollFlags::ERR;
        match self {
            StreamSocket::Tcp(stream) => poll_events(stream, PollFlags::OUT).intersects(room),
            StreamSocket::Unix(stream) => poll_events(stream, PollFlags::OUT).intersects(room),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(stream) => stream.has_room(),
        }
    }

    /// Has closing the socket send a reset; no effect on a Unix socket.
    pub(super) fn reset_on_close(&self) -> io::Result<()> {
        match self {
            StreamSocket::Tcp(stream) => SockRef::from(stream).set_linger(Some(Duration::ZERO)),
            StreamSocket::Unix(_) => Ok(()),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(_) => Ok(()),
        }
    }

    /// Runs `what` if the runtime considers the socket ready.
    pub(super) fn try_io<T>(
        &self,
        interest: Interest,
        what: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match self {
            StreamSocket::Tcp(stream) => stream.try_io(interest, || what(stream.as_fd())),
            StreamSocket::Unix(stream) => stream.try_io(interest, || what(stream.as_fd())),
            // The runtime does not poll this kind.
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Reads what is available; `WouldBlock` if nothing is.
impl Read for StreamSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "simulation")]
        if let StreamSocket::Memory(stream) = self {
            return stream.try_read(into);
        }
        // A read that did not fill the buffer has drained the socket. It clears the runtime's readiness, which saves a second read that
        // would find nothing.
        let mut left_room = None;
        let room = into.len();
        let read = self.try_io(Interest::READABLE, |socket| {
            let (read, _) = recv(socket, into, RecvFlags::empty())?;
            if (1..room).contains(&read) {
                left_room = Some(read);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(read)
        });
        left_room.map_or(read, Ok)
    }
}

/// Writes what the system takes; `WouldBlock` if it takes nothing.
impl Write for StreamSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "simulation")]
        if let StreamSocket::Memory(stream) = self {
            return stream.try_write(bytes);
        }
        self.try_io(Interest::WRITABLE, |socket| {
            Ok(send(socket, bytes, SendFlags::NOSIGNAL)?)
        })
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            StreamSocket::Tcp(stream) => stream.try_write_vectored(parts),
            StreamSocket::Unix(stream) => stream.try_write_vectored(parts),
            #[cfg(feature = "simulation")]
            StreamSocket::Memory(stream) => {
                let first = parts.iter().find(|part| !part.is_empty());
                stream.try_write(first.map_or(&[], |part| part))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_side_that_vanished_is_noticed_within_a_minute() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        configure_socket(&stream).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        let (idle, between) = (
            socket.tcp_keepalive_time().unwrap(),
            socket.tcp_keepalive_interval().unwrap(),
        );
        let times = socket.tcp_keepalive_retries().unwrap();
        assert!(idle + between * times <= Duration::from_secs(60));
    }
}
