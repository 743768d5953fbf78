//! One side of a session: a socket, with or without TLS, and the bytes it has not taken yet.
//!
//! Nothing here waits unless its name says so: reads and writes do what is possible at once; the remainder is reported as `WouldBlock` or
//! buffered. A link with buffered bytes gets no more ([`NetworkLink::is_flushed`]).

mod compression;
#[cfg(feature = "simulation")]
pub mod memory;
pub mod proxy_header;
mod socket;
mod splice;
mod tls;

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

use headwater_wire::compression::CompressionAlgorithm;

use compression::CompressionLayer;
pub use socket::{DetachedSocket, StreamSocket, configure_socket, is_path};
pub use splice::{SpliceStop, splice_bytes};
use tls::TlsLayer;

/// Size of a read into a buffer of its own.
const FILL_BYTES: usize = 16 * 1024;
/// Interval of polling whether sent bytes have arrived, where there is no event for it.
const DELIVERY_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Capacity that an idle link's buffer may keep.
const IDLE_BYTES: usize = 1024;

/// A connection to a client or to the server.
#[derive(Debug)]
pub struct NetworkLink {
    socket: StreamSocket,
    tls: Option<Box<TlsLayer>>,
    compression: Option<Box<CompressionLayer>>,
    backlog: Vec<u8>,
}

impl NetworkLink {
    /// Wraps a connection on which nothing was sent yet.
    #[must_use]
    pub fn new(socket: StreamSocket) -> NetworkLink {
        NetworkLink {
            socket,
            tls: None,
            compression: None,
            backlog: Vec::new(),
        }
    }

    /// True if the socket has taken everything that was sent.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.backlog.is_empty() && self.tls.as_ref().is_none_or(|tls| tls.is_flushed())
    }

    /// True if the connection has neither TLS nor compression.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.tls.is_none() && self.compression.is_none()
    }

    /// True for a Unix socket: the other side is on this machine, and the network cannot listen.
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(self.socket, StreamSocket::Unix(_))
    }

    /// True if the other side is on this machine and runs as the same user as this process.
    #[must_use]
    pub fn is_same_user(&self) -> bool {
        let StreamSocket::Unix(stream) = &self.socket else {
            return false;
        };
        let uid = stream.peer_cred().map(|peer| peer.uid());
        uid.is_ok_and(|uid| uid == nix::unistd::geteuid().as_raw())
    }

    /// True if both sides use compressed frames.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// Starts compressed frames on both sides. `begun`: bytes of frames that have arrived already. `commands`: the other side is a server.
    pub fn compress(&mut self, algorithm: CompressionAlgorithm, commands: bool, begun: &[u8]) {
        let compressed = CompressionLayer::new(algorithm, commands, begun);
        self.compression = Some(Box::new(compressed));
    }

    /// What is sent to the server from here on came in the client's last frame. Servers number a reply from the frame count of its command,
    /// which differs here.
    pub fn follow_client_sequence(&mut self, client: &NetworkLink) {
        if let (Some(server), Some(client)) = (&mut self.compression, &client.compression) {
            server.packer.set_origin_seq(client.seq());
        }
    }

    /// The number of the client's last frame, if both sides use compression; else 0.
    #[must_use]
    pub fn client_frame_sequence(&self, client: &NetworkLink) -> u8 {
        match (&self.compression, &client.compression) {
            (Some(_), Some(client)) => client.seq(),
            _ => 0,
        }
    }

    /// The sequence number that the server's reply would have started with, had the server received the client's frames directly.
    #[must_use]
    pub fn direct_sequence(&self, seq: u8) -> u8 {
        let compressed = self.compression.as_ref();
        compressed.map_or(seq, |it| it.packer.origin_reply_seq(seq))
    }

    /// Sets the number of the next frame.
    pub fn set_next_sequence(&mut self, seq: u8) {
        if let Some(compressed) = &mut self.compression {
            compressed.packer.set_next_seq(seq);
        }
    }

    /// Accepts TLS from a client; `begun`: bytes of its first message that have arrived already.
    ///
    /// # Errors
    /// If the connection fails, or the handshake does.
    pub async fn accept_tls(&mut self, config: Arc<ServerConfig>, begun: &[u8]) -> io::Result<()> {
        self.tls = Some(Box::new(TlsLayer::server(config, begun)?));
        self.handshake().await
    }

    /// Starts TLS with a server that has agreed to it.
    ///
    /// # Errors
    /// If the connection fails, or the handshake does.
    pub async fn connect_tls(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<()> {
        self.tls = Some(Box::new(TlsLayer::client(config, name)?));
        self.handshake().await
    }

    /// True once the TLS handshake is complete.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.is_handshaking())
    }

    async fn handshake(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        loop {
            tls.flush(&mut self.socket)?;
            if !tls.is_flushed() {
                poll_fn(|context| self.socket.poll_writable(context)).await?;
            } else if tls.is_handshaking() {
                poll_fn(|context| self.socket.poll_readable(context)).await?;
                match tls.read_records(&mut self.socket) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    taken => taken?,
                }
            } else {
                return Ok(());
            }
        }
    }

    /// Ready if there may be something to read.
    ///
    /// # Errors
    /// I/O errors.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let unpacked = self.compression.as_deref();
        match &self.tls {
            _ if unpacked.is_some_and(CompressionLayer::is_readable) => Poll::Ready(Ok(())),
            Some(tls) if tls.is_readable() => Poll::Ready(Ok(())),
            _ => self.socket.poll_readable(context),
        }
    }

    /// Ready if there may be room to write.
    ///
    /// # Errors
    /// I/O errors.
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_writable(context)
    }

    /// Waits until there may be something to read.
    ///
    /// # Errors
    /// I/O errors.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_readable(context)).await
    }

    /// Waits until there may be room to write.
    ///
    /// # Errors
    /// I/O errors.
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_writable(context)).await
    }

    /// Reads what is available; 0 bytes: the other side has shut down writing.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is available; other I/O errors.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (socket, tls) = (&mut self.socket, &mut self.tls);
        match &mut self.compression {
            None => read(socket, tls, into),
            Some(compressed) => compressed.read(into, |raw| read(socket, tls, raw)),
        }
    }

    /// Writes what the socket takes, and buffers the remainder.
    ///
    /// # Errors
    /// If the connection failed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let frames;
        let mut rest = match &mut self.compression {
            None => bytes,
            Some(compressed) => {
                frames = compressed.pack(bytes);
                &frames
            }
        };
        while self.backlog.is_empty() && !rest.is_empty() {
            match write(&mut self.socket, &mut self.tls, rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.backlog.extend_from_slice(rest);
        Ok(())
    }

    /// Writes as much of the buffered bytes as the socket takes.
    ///
    /// # Errors
    /// If the connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.backlog.is_empty() {
            return match &mut self.tls {
                Some(tls) => tls.flush(&mut self.socket),
                None => Ok(()),
            };
        }
        match write(&mut self.socket, &mut self.tls, &self.backlog) {
            Ok(written) => {
                self.backlog.drain(..written);
                release_if_empty(&mut self.backlog);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// True if the other side has ended, whatever is still to be read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.socket.has_ended()
    }

    /// Resets the connection once the other side has everything that was sent. A Unix socket has no reset and is closed.
    pub async fn reset(self) {
        if self.socket.shrink_send_buffer().is_ok() {
            while !self.socket.has_room() {
                tokio::time::sleep(DELIVERY_POLL_INTERVAL).await;
            }
        }
        let _ = self.socket.reset_on_close();
    }

    /// Drops the buffered bytes.
    pub fn discard_backlog(&mut self) {
        self.backlog = Vec::new();
    }

    /// Waits until the socket has taken everything.
    ///
    /// # Errors
    /// If the connection failed.
    pub async fn flush_all(&mut self) -> io::Result<()> {
        while !self.is_flushed() {
            self.writable().await?;
            self.flush()?;
        }
        Ok(())
    }

    /// Sends, and waits until the socket has taken everything.
    ///
    /// # Errors
    /// If the connection failed.
    pub async fn send_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes)?;
        self.flush_all().await
    }

    /// Waits for bytes and appends them; 0 bytes: the other side has shut down writing.
    ///
    /// # Errors
    /// If the connection failed.
    pub async fn read_more(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            let held = into.len();
            into.resize(held + FILL_BYTES, 0);
            let read = self.read(into.get_mut(held..).unwrap_or_default());
            into.truncate(held + read.as_ref().map_or(0, |read| *read));
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable().await?,
                read => return read,
            }
        }
    }

    /// Sends everything, then shuts down writing.
    ///
    /// # Errors
    /// If the connection failed.
    pub async fn shutdown_write(&mut self) -> io::Result<()> {
        self.flush_all().await?;
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            self.flush_all().await?;
        }
        self.socket.shutdown_write()
    }
}

/// Reads what is available, through TLS if any.
fn read(
    socket: &mut StreamSocket,
    tls: &mut Option<Box<TlsLayer>>,
    into: &mut [u8],
) -> io::Result<usize> {
    match tls {
        None => socket.read(into),
        Some(tls) => tls.read(socket, into),
    }
}

/// Writes what is taken at once, through TLS if any.
fn write(
    socket: &mut StreamSocket,
    tls: &mut Option<Box<TlsLayer>>,
    bytes: &[u8],
) -> io::Result<usize> {
    match tls {
        None => socket.write(bytes),
        Some(tls) => tls.write(socket, bytes),
    }
}

/// Frees a buffer that is empty, so that an idle session holds none.
pub(crate) fn release_if_empty(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > IDLE_BYTES {
        *buffer = Vec::new();
    }
}
