//! A scripted server: sends raw bytes to each client, for what a real server would not do.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::wire_client::packet::{Packet, encode};

/// Listens until the process ends, with a thread for each client.
#[derive(Debug)]
pub(crate) struct Peer {
    addr: SocketAddr,
}

impl Peer {
    /// `play` serves one client; the connection closes when it returns.
    pub(crate) fn start(
        play: impl Fn(&mut Stage) -> io::Result<()> + Send + Sync + 'static,
    ) -> Peer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let play = Arc::new(play);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let play = Arc::clone(&play);
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
                    // A client that disconnects ends the script.
                    let _ = play(&mut Stage { stream });
                });
            }
        });
        Peer { addr }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// The server's side of one client's connection.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) stream: TcpStream,
}

impl Stage {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn packet(&mut self, seq: u8, payload: &[u8]) -> io::Result<()> {
        self.write(&encode(seq, payload))
    }

    pub(crate) fn read(&mut self) -> io::Result<Packet> {
        Packet::read(&mut self.stream, &mut Vec::new())
    }

    /// Greets, reads the login and accepts the client; returns its user name.
    pub(crate) fn let_in(&mut self) -> io::Result<String> {
        self.packet(0, &greeting("8.0.99-scripted"))?;
        let login = self.read()?;
        let name = login.payload.get(32..).unwrap_or_default();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        self.packet(2, OK)?;
        Ok(name)
    }

    /// Answers every command with an OK, until the client disconnects.
    pub(crate) fn answer_ok(&mut self) -> io::Result<()> {
        loop {
            self.read()?;
            self.packet(1, OK)?;
        }
    }

    /// Waits until the client closes its side; discards what it sends.
    pub(crate) fn wait_for_end(&mut self) -> io::Result<()> {
        io::copy(&mut self.stream, &mut io::sink()).map(|_| ())
    }

    /// Reads and discards what has arrived, at least a byte.
    pub(crate) fn read_some(&mut self) -> io::Result<usize> {
        self.stream.read(&mut [0; 64 * 1024])
    }
}

/// An OK packet: no rows affected, AUTOCOMMIT.
pub(crate) const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// A greeting of protocol version 10, with the capabilities that the test client requests.
pub(crate) fn greeting(version: &str) -> Vec<u8> {
    let mut payload = vec![10];
    payload.extend(version.as_bytes());
    payload.push(0);
    payload.extend(77_u32.to_le_bytes());
    payload.extend(b"scramble\0");
    payload.extend([0xff, 0xf7, 45, 2, 0, 0xff, 0x01, 21]);
    payload.extend([0; 10]);
    payload.extend(b"scramblescra\0mysql_native_password\0");
    payload
}
