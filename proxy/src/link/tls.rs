//! TLS on a socket that never waits.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use super::StreamSocket;

/// Ciphertext buffered for a socket that takes no more.
const BUFFER_BYTES: usize = 64 * 1024;

/// One TLS connection.
#[derive(Debug)]
pub(super) struct TlsLayer {
    connection: Connection,
    /// Deciphered bytes that are not read yet.
    readable: usize,
}

impl TlsLayer {
    /// The server side of a connection. `begun`: bytes that the client has sent already.
    pub(super) fn server(config: Arc<ServerConfig>, begun: &[u8]) -> io::Result<TlsLayer> {
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut tls = TlsLayer::new(connection.into());
        let mut rest = begun;
        while !rest.is_empty() {
            tls.connection.read_tls(&mut rest)?;
            tls.process()?;
        }
        Ok(tls)
    }

    /// The client side of a connection.
    pub(super) fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<TlsLayer> {
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(TlsLayer::new(connection.into()))
    }

    fn new(mut connection: Connection) -> TlsLayer {
        connection.set_buffer_limit(Some(BUFFER_BYTES));
        TlsLayer {
            connection,
            readable: 0,
        }
    }

    /// True until the handshake is complete.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// True if deciphered bytes are available.
    pub(super) fn is_readable(&self) -> bool {
        self.readable > 0
    }

    /// True if the socket has taken everything that was written.
    pub(super) fn is_flushed(&self) -> bool {
        !self.connection.wants_write()
    }

    /// Reads once from the socket.
    pub(super) fn read_records(&mut self, socket: &mut StreamSocket) -> io::Result<()> {
        let taken = self.connection.read_tls(socket)?;
        let processed = self.process();
        // Sends an alert, or the next handshake message.
        self.flush(socket)?;
        processed?;
        if taken == 0 && self.is_handshaking() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn process(&mut self) -> io::Result<()> {
        let state = self
            .connection
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.readable = state.plaintext_bytes_to_read();
        Ok(())
    }

    pub(super) fn read(&mut self, socket: &mut StreamSocket, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(into) {
                Ok(read) => {
                    self.readable = self.readable.saturating_sub(read);
                    return Ok(read);
                }
                // Many clients close without close_notify; what arrived before is authentic.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.read_records(socket)?
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn write(&mut self, socket: &mut StreamSocket, bytes: &[u8]) -> io::Result<usize> {
        self.flush(socket)?;
        if !self.is_flushed() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let written = self.connection.writer().write(bytes)?;
        self.flush(socket)?;
        Ok(written)
    }

    /// Writes to the socket what it takes.
    pub(super) fn flush(&mut self, socket: &mut StreamSocket) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Announces the end of writing.
    pub(super) fn send_close_notify(&mut self) {
        self.connection.send_close_notify();
    }
}
