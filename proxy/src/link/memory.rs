//! Connections within one thread: each end reads what the other writes. No other IO.
//!
//! The laboratory uses them where time and network are simulated: a listener on this thread takes the connections to its address.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Mutex as Turns, mpsc};

/// Bytes that may wait for the reader, as in a socket's buffers.
const BUFFER_BYTES: usize = 64 * 1024;

thread_local! {
    static LISTENERS: RefCell<BTreeMap<String, mpsc::UnboundedSender<MemoryStream>>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// One end of a connection.
#[derive(Debug)]
pub struct MemoryStream {
    incoming: Arc<Mutex<MemoryFlow>>,
    outgoing: Arc<Mutex<MemoryFlow>>,
}

/// Bytes in transit from one end to the other.
#[derive(Debug, Default)]
struct MemoryFlow {
    bytes: VecDeque<u8>,
    /// The writer has shut down its side.
    is_finished: bool,
    /// The connection was broken, or the reader is gone.
    is_broken: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl MemoryFlow {
    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }

    fn is_readable(&self) -> bool {
        !self.bytes.is_empty() || self.is_finished || self.is_broken
    }

    fn is_writable(&self) -> bool {
        self.bytes.len() < BUFFER_BYTES || self.is_broken
    }
}

fn lock(flow: &Mutex<MemoryFlow>) -> MutexGuard<'_, MemoryFlow> {
    flow.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryStream {
    /// Creates both ends of a connection.
    #[must_use]
    pub fn pair() -> (MemoryStream, MemoryStream) {
        let [there, back] = [(); 2].map(|()| Arc::<Mutex<MemoryFlow>>::default());
        let near = MemoryStream {
            incoming: Arc::clone(&back),
            outgoing: Arc::clone(&there),
        };
        let far = MemoryStream {
            incoming: there,
            outgoing: back,
        };
        (near, far)
    }

    /// Connects to the listener at this address on this thread. `None`: no listener was ever bound on this thread.
    ///
    /// # Errors
    /// If listeners were bound, but none is at this address.
    #[must_use]
    pub fn dial(address: &str) -> Option<io::Result<MemoryStream>> {
        LISTENERS.with_borrow(|listeners| {
            if listeners.is_empty() {
                return None;
            }
            let (near, far) = MemoryStream::pair();
            let taken = listeners.get(address).map(|listener| listener.send(far));
            Some(match taken {
                Some(Ok(())) => Ok(near),
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            })
        })
    }

    /// Breaks the connection: bytes in transit are lost, and both ends fail.
    pub fn reset(&self) {
        for flow in [&self.incoming, &self.outgoing] {
            let mut flow = lock(flow);
            flow.bytes.clear();
            flow.is_broken = true;
            flow.wake();
        }
    }

    /// Shuts down the write side.
    pub(super) fn shutdown_write(&self) {
        let mut flow = lock(&self.outgoing);
        flow.is_finished = true;
        flow.wake();
    }

    /// True if the other end has ended, whatever is still to be read.
    pub(super) fn has_ended(&self) -> bool {
        let flow = lock(&self.incoming);
        flow.is_finished || flow.is_broken
    }

    /// True if there is room to write.
    pub(super) fn has_room(&self) -> bool {
        lock(&self.outgoing).is_writable()
    }

    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut flow = lock(&self.incoming);
        if flow.is_readable() {
            return Poll::Ready(Ok(()));
        }
        flow.reader = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut flow = lock(&self.outgoing);
        if flow.is_writable() {
            return Poll::Ready(Ok(()));
        }
        flow.writer = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut flow = lock(&self.incoming);
        if flow.is_broken {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if flow.bytes.is_empty() {
            return match flow.is_finished || into.is_empty() {
                true => Ok(0),
                false => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        let read = io::Read::read(&mut flow.bytes, into)?;
        if let Some(writer) = flow.writer.take() {
            writer.wake();
        }
        Ok(read)
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut flow = lock(&self.outgoing);
        if flow.is_broken || flow.is_finished {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = BUFFER_BYTES.saturating_sub(flow.bytes.len());
        let written = bytes.get(..room).unwrap_or(bytes);
        if written.is_empty() && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        flow.bytes.extend(written);
        if let Some(reader) = flow.reader.take() {
            reader.wake();
        }
        Ok(written.len())
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        self.shutdown_write();
        let mut flow = lock(&self.incoming);
        flow.is_broken = true;
        flow.wake();
    }
}

impl AsyncRead for MemoryStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_readable(context))?;
        let read = self.try_read(into.initialize_unfilled())?;
        into.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MemoryStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_writable(context))?;
        Poll::Ready(self.try_write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shutdown_write();
        Poll::Ready(Ok(()))
    }
}

/// Listens at an address on this thread until dropped.
#[derive(Debug)]
pub struct MemoryListener {
    connections: Turns<mpsc::UnboundedReceiver<MemoryStream>>,
}

impl MemoryListener {
    /// Binds to an address.
    ///
    /// # Errors
    /// If the address is in use.
    pub fn bind(address: &str) -> io::Result<MemoryListener> {
        let (connect, connections) = mpsc::unbounded_channel();
        LISTENERS.with_borrow_mut(|listeners| match listeners.get(address) {
            Some(other) if !other.is_closed() => Err(io::Error::from(io::ErrorKind::AddrInUse)),
            _ => {
                listeners.insert(address.to_owned(), connect);
                Ok(())
            }
        })?;
        let connections = Turns::new(connections);
        Ok(MemoryListener { connections })
    }

    /// True if a listener is or was bound on this thread.
    #[must_use]
    pub fn is_simulated() -> bool {
        LISTENERS.with_borrow(|listeners| !listeners.is_empty())
    }

    /// Accepts the next connection.
    pub async fn accept(&self) -> MemoryStream {
        match self.connections.lock().await.recv().await {
            Some(stream) => stream,
            // Another listener has the address.
            None => poll_fn(|_| Poll::Pending).await,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::link::{NetworkLink, StreamSocket};

    #[tokio::test]
    async fn what_one_end_writes_the_other_reads_and_then_the_end() {
        let (near, mut far) = MemoryStream::pair();
        let mut near = NetworkLink::new(StreamSocket::Memory(near));
        let mut into = [0; 9];
        assert_eq!(
            near.read(&mut into).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        far.write_all(b"there").await.unwrap();
        near.readable().await.unwrap();
        assert_eq!(near.read(&mut into).unwrap(), 5);
        near.send_all(b"back").await.unwrap();
        near.shutdown_write().await.unwrap();
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"back");
        assert!(!near.has_ended());
        drop(far);
        assert!(near.has_ended());
        assert_eq!(near.read(&mut into).unwrap(), 0);
    }

    #[tokio::test]
    async fn who_is_not_read_is_not_written_to_without_bound() {
        let (near, mut far) = MemoryStream::pair();
        let mut near = NetworkLink::new(StreamSocket::Memory(near));
        let sent = vec![7; 3 * BUFFER_BYTES];
        near.send(&sent).unwrap();
        assert!(!near.is_flushed());
        let mut read = vec![0; sent.len()];
        let (cleared, whole) = tokio::join!(near.flush_all(), far.read_exact(&mut read));
        cleared.unwrap();
        assert_eq!((whole.unwrap(), read == sent), (sent.len(), true));
    }

    #[tokio::test]
    async fn a_connection_that_breaks_fails_at_both_ends() {
        let (near, mut far) = MemoryStream::pair();
        far.write_all(b"lost").await.unwrap();
        far.reset();
        let mut near = NetworkLink::new(StreamSocket::Memory(near));
        let read = near.read(&mut [0; 9]);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(near.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(far.read(&mut [0; 9]).await.is_err());
    }

    #[tokio::test]
    async fn a_listener_on_the_thread_gets_the_connections_and_no_other() {
        let limit = Duration::from_secs(5);
        let listener = MemoryListener::bind("primary:3306").unwrap();
        assert!(MemoryListener::bind("primary:3306").is_err());
        let _near = StreamSocket::dial("primary:3306", limit).await.unwrap();
        listener.accept().await;
        drop(listener);
        for nobody in ["primary:3306", "replica:3306"] {
            let dialed = StreamSocket::dial(nobody, limit).await;
            assert_eq!(dialed.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        }
        let _again = MemoryListener::bind("primary:3306").unwrap();
    }
}
