//! The same conversation twice, directly to the server and through Headwater, compared byte by byte.

use std::io::Read;
use std::net::SocketAddr;

use crate::kit::proxy::Proxy;
use crate::kit::servers::Server;
use crate::kit::wire_client::{Login, WireClient};

/// One side of a conversation, and every byte that it received.
pub(super) struct Talk {
    pub(super) client: WireClient,
    heard: Vec<(String, Vec<u8>)>,
}

impl Talk {
    /// Sends any command and records its reply.
    pub(super) fn command(&mut self, payload: &[u8]) {
        let said = format!(
            "{:#04x} {}",
            payload.first().unwrap_or(&0),
            shown(payload.get(1..))
        );
        match self.client.command(payload) {
            Ok(reply) => self.heard.push((said, reply.raw)),
            // EOF or reset, depending on timing.
            Err(_) => self
                .heard
                .push((format!("{said}: the connection ended"), Vec::new())),
        }
    }

    pub(super) fn query(&mut self, sql: &str) {
        let payload = self.client.query_payload(sql.as_bytes(), &[]);
        self.command(&payload);
    }

    /// Records bytes that the test received by other means.
    pub(super) fn heard(&mut self, said: &str, bytes: &[u8]) {
        self.heard.push((said.to_owned(), bytes.to_vec()));
    }

    /// Records everything up to the end of the connection.
    pub(super) fn read_to_its_end(&mut self) {
        let bytes = read_to_end(&mut self.client.stream);
        self.heard
            .push(("until the connection ended".to_owned(), bytes));
    }
}

/// Holds the conversation without and with Headwater, and compares the bytes.
#[track_caller]
pub(super) fn same_with_and_without(server: &Server, login: &Login, script: impl Fn(&mut Talk)) {
    let proxy = Proxy::start(server.addr(), &[]);
    same_through(&proxy, server.addr(), login, script);
}

#[track_caller]
pub(super) fn same_through(
    proxy: &Proxy,
    server: SocketAddr,
    login: &Login,
    script: impl Fn(&mut Talk),
) {
    let [direct, relayed] = [server, proxy.addr()].map(|addr| {
        let mut talk = Talk {
            client: WireClient::login(addr, login),
            heard: Vec::new(),
        };
        let raw = talk.client.login_raw.clone();
        talk.heard("login", &without_scramble(raw));
        script(&mut talk);
        talk.heard
    });
    assert!(direct.len() > 1, "nothing was said");
    for ((said, without), (and_with, with)) in direct.iter().zip(&relayed) {
        assert_eq!(said, and_with);
        assert!(
            without == with,
            "the reply to {said} differs\nwithout: {}\nwith:    {}",
            shown(Some(without)),
            shown(Some(with))
        );
    }
    assert_eq!(direct.len(), relayed.len());
}

/// Writes bytes on a bare connection after the greeting, and returns what arrives until it ends.
pub(super) fn bare(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(addr).unwrap();
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    crate::kit::wire_client::packet::Packet::read(&mut stream, &mut Vec::new()).unwrap();
    stream.write_all(bytes).unwrap();
    // A server that consumed all bytes would wait for more; another may have closed by now.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    read_to_end(&mut stream)
}

/// Reads to the end of the stream. A reset counts as an end too.
pub(super) fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    bytes
}

/// An AuthSwitchRequest has a new scramble of 20 bytes and a NUL at its end.
fn without_scramble(mut raw: Vec<u8>) -> Vec<u8> {
    if raw.get(4) == Some(&0xfe) {
        let end = 4 + usize::from(raw[0]) + (usize::from(raw[1]) << 8);
        raw[end - 21..end - 1].fill(0);
    }
    raw
}

fn shown(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let text: String = bytes
        .iter()
        .take(300)
        .map(|byte| byte.escape_ascii().to_string())
        .collect();
    format!("{text} ({} bytes)", bytes.len())
}
