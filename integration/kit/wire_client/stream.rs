//! The client's connection, with or without TLS and compression.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::frames::Frames;

#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    frames: Option<Frames>,
}

#[derive(Debug)]
enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    pub(super) fn new(socket: TcpStream) -> Stream {
        Stream {
            socket: Socket::Plain(socket),
            frames: None,
        }
    }

    /// The underlying socket.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match &self.socket {
            Socket::Plain(tcp) => tcp,
            Socket::Tls(tls) => &tls.sock,
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.socket, Socket::Tls(_))
    }

    /// The certificate that the server presented.
    pub(crate) fn certificate(&self) -> Option<CertificateDer<'static>> {
        match &self.socket {
            Socket::Plain(_) => None,
            Socket::Tls(tls) => tls.conn.peer_certificates()?.first().cloned(),
        }
    }

    /// Bytes received and sent in frames; `None` without compression.
    pub(crate) fn framed(&self) -> Option<(usize, usize)> {
        self.frames.as_ref().map(Frames::counts)
    }

    /// Starts TLS with a server named `localhost`.
    pub(super) fn encipher(&mut self, config: &Arc<ClientConfig>) -> io::Result<()> {
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(tls, self.tcp().try_clone()?);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        self.socket = Socket::Tls(Box::new(stream));
        Ok(())
    }

    /// Uses compressed frames from now on.
    pub(super) fn compress(&mut self, zstd: bool) {
        self.frames = Some(Frames::new(zstd));
    }

    /// Limits frames to `most` bytes.
    pub(crate) fn cut_frames(&mut self, most: usize) {
        if let Some(frames) = &mut self.frames {
            frames.most = most;
        }
    }

    /// Restarts the frame sequence at 0.
    pub(crate) fn begin_command(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.begin();
        }
    }

    pub(super) fn write_packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.frames {
            None => self.socket.write_all(bytes),
            Some(frames) => frames.write(&mut self.socket, bytes),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.frames {
            None => self.socket.read(into),
            Some(frames) => frames.read(&mut self.socket, into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(self.frames.is_none(), "frames are made of packets");
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(tcp) => tcp.read(into),
            Socket::Tls(tls) => match tls.read(into) {
                // A close without a TLS alert, as servers do.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(tcp) => tcp.write(bytes),
            Socket::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(tcp) => tcp.flush(),
            Socket::Tls(tls) => tls.flush(),
        }
    }
}
