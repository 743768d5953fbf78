//! A socket of either family that clients and servers meet on.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::unconstrained;

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    /// Over the network.
    Tcp(TcpStream),
    /// Within the machine.
    Unix(UnixStream),
}

impl Socket {
    /// Connects to an address (`HOST:PORT`, or the path of a socket), within `limit`.
    ///
    /// # Errors
    /// As the operating system says; a timeout is `TimedOut`.
    pub async fn dial(address: &str, limit: Duration) -> io::Result<Socket> {
        let connecting = async {
            match address.starts_with('/') {
                true => UnixStream::connect(address).await.map(Socket::Unix),
                false => TcpStream::connect(address).await.map(Socket::Tcp),
            }
        };
        let socket = tokio::time::timeout(limit, connecting)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        socket.prepare()?;
        Ok(socket)
    }

    /// Small packets go out at once, and a side that vanished without a word is noticed in the end: as servers do.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn prepare(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => {
                stream.set_nodelay(true)?;
                SockRef::from(stream).set_keepalive(true)
            }
            Socket::Unix(_) => Ok(()),
        }
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.readable().await,
            Socket::Unix(stream) => stream.readable().await,
        }
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.writable().await,
            Socket::Unix(stream) => stream.writable().await,
        }
    }

    /// Says that nothing more will be written.
    pub(super) fn shut(&self) -> io::Result<()> {
        let how = std::net::Shutdown::Write;
        match self {
            Socket::Tcp(stream) => SockRef::from(stream).shutdown(how),
            Socket::Unix(stream) => SockRef::from(stream).shutdown(how),
        }
    }
}

/// Reads what is there; `WouldBlock` when nothing is.
impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Not by `try_read`: this way the runtime knows that a read which left room has left nothing behind, and does not ask the
        // system again before something has come. Who wants to be woken awaits `readable`.
        // Unconstrained: a task that has read much would be told that nothing is there, and `readable` that there is, without end.
        let mut into = ReadBuf::new(into);
        let mut read = unconstrained(poll_fn(|context| match self {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, &mut into),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, &mut into),
        }));
        let mut nobody = Context::from_waker(Waker::noop());
        match Pin::new(&mut read).poll(&mut nobody) {
            Poll::Ready(read) => read.map(|()| into.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Writes what the system takes; `WouldBlock` when it takes nothing.
impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write(bytes),
            Socket::Unix(stream) => stream.try_write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write_vectored(parts),
            Socket::Unix(stream) => stream.try_write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
