//! One side of a conversation: sends what the scenario sends, and records every byte it receives.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use super::mask::{self, Mask};
use super::tape::Tape;
use crate::kit::certificates::trust_anyone;
use crate::kit::wire_client::packet::{Packet, put_bytes};
use crate::kit::wire_client::{
    COM_CHANGE_USER, COM_STMT_PREPARE, Login, Reply, WireClient, capability,
};

/// A reply that takes longer counts as missing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The length of a command's text in a report.
const SAID: usize = 120;

/// A logged-in client. After its connection has ended, it records that for each further command.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) client: WireClient,
    tape: Tape,
    ended: bool,
}

impl Side {
    /// The login is the first step. If the server refuses it, it is the only one.
    #[track_caller]
    pub(super) fn login(addr: SocketAddr, login: &Login) -> Result<Side, Tape> {
        let mut heard = Vec::new();
        let mut tape = Tape::default();
        let mut login = login.clone();
        // A TLS session belongs to one server, and would be offered to the other for resumption.
        login.tls = login.tls.map(|_| trust_anyone());
        let logged_in = WireClient::heard_login(addr, &login, &mut heard);
        mask::login(&mut heard);
        let client = match logged_in {
            Ok(client) => {
                tape.heard("the login", heard, false);
                client.ok()
            }
            Err(error) => {
                ended("the login", &error);
                tape.heard("the login", heard, true);
                None
            }
        };
        let Some(client) = client else {
            return Err(tape);
        };
        let _ = client.stream.tcp().set_read_timeout(Some(ANSWER_TIMEOUT));
        Ok(Side {
            client,
            tape,
            ended: false,
        })
    }

    pub(super) fn into_tape(mut self) -> Tape {
        std::mem::take(&mut self.tape)
    }

    pub(super) fn query(&mut self, sql: impl AsRef<[u8]>) {
        let payload = self.client.query_payload(sql.as_ref(), &[]);
        self.command(&payload);
    }

    pub(super) fn queries(&mut self, texts: &[&str]) {
        for sql in texts {
            self.query(sql);
        }
    }

    /// Sends any command whose reply has a known end.
    pub(super) fn command(&mut self, payload: &[u8]) -> Reply {
        self.masked(payload, mask::none)
    }

    /// As [`Side::command`], with a part of the reply masked.
    pub(super) fn masked(&mut self, payload: &[u8], mask: Mask) -> Reply {
        let command = payload.first().copied().unwrap_or_default();
        let mut reply = Reply::default();
        let heard = match self.client.send(payload) {
            Ok(()) => self.client.reply_into(command, &mut reply),
            Err(error) => Err(error),
        };
        let mut raw = std::mem::take(&mut reply.raw);
        mask(&mut raw);
        self.take_down(&said(payload), raw, heard);
        reply
    }

    /// Sends a command, closes the client's half of the connection, and records everything that the server still sends.
    pub(super) fn last_words(&mut self, payload: &[u8]) {
        let sent = self.client.send(payload);
        let _ = self.client.stream.tcp().shutdown(Shutdown::Write);
        self.until_it_closes(&said(payload), sent);
    }

    /// Sends a statement whose text differs between the sides.
    pub(super) fn silent(&mut self, sql: &str) {
        let payload = self.client.query_payload(sql.as_bytes(), &[]);
        self.unsaid(&payload);
    }

    /// Sends a command that differs between the sides.
    pub(super) fn unsaid(&mut self, payload: &[u8]) {
        let mut reply = Reply::default();
        let sent = self.client.send(payload);
        let heard = sent.and_then(|()| self.client.reply_into(payload[0], &mut reply));
        self.take_down("what only this side says", reply.raw, heard);
    }

    /// Reads so many packets of a reply, then abandons the connection.
    pub(super) fn first_packets(&mut self, payload: &[u8], count: usize) {
        let mut raw = Vec::new();
        let mut heard = self.client.send(payload);
        for _ in 0..count {
            heard = heard.and_then(|()| Packet::read(&mut self.client.stream, &mut raw).map(drop));
        }
        self.take_down(&said(payload), raw, heard);
        let _ = self.client.stream.tcp().shutdown(Shutdown::Both);
    }

    /// Records everything until the server closes.
    pub(super) fn until_it_closes(&mut self, said: &str, sent: io::Result<()>) {
        let mut raw = Vec::new();
        let heard = sent.and_then(|()| self.client.stream.read_to_end(&mut raw));
        self.take_down(said, raw, heard.and(Err(ErrorKind::UnexpectedEof.into())));
    }

    /// Returns the statement's id, which is part of the reply, or an unused id if the server refuses the statement.
    pub(super) fn prepare(&mut self, sql: &str) -> u32 {
        let reply = self.command(&[&[COM_STMT_PREPARE], sql.as_bytes()].concat());
        match reply.packets.first().map(|packet| &packet.payload[..]) {
            Some([0, a, b, c, d, ..]) => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => 0x00ff_fff0,
        }
    }

    pub(super) fn execute(&mut self, statement: u32, params: &[Option<&str>], flags: u8) {
        let payload = self.client.execute_payload(statement, params, flags);
        self.command(&payload);
    }

    /// Sends COM_CHANGE_USER, with an empty answer to each request of the server.
    pub(super) fn change_user(&mut self, user: &str, database: &str, collation: u16) {
        let payload = self.change_of_user(user, database, collation);
        self.change(&payload);
    }

    pub(super) fn change_of_user(&self, user: &str, database: &str, collation: u16) -> Vec<u8> {
        let mut payload = vec![COM_CHANGE_USER];
        payload.extend([user.as_bytes(), b"\0\0", database.as_bytes(), b"\0"].concat());
        payload.extend(collation.to_le_bytes());
        payload.extend([self.client.greeting.plugin.as_bytes(), b"\0"].concat());
        if self.client.capabilities & capability::CONNECT_ATTRS != 0 {
            put_bytes(&mut payload, b"");
        }
        payload
    }

    /// As [`Side::change_user`], with a given payload.
    pub(super) fn change(&mut self, payload: &[u8]) {
        let mut raw = Vec::new();
        let sent = self.client.send(payload);
        let heard = sent.and_then(|()| self.asked(&mut raw));
        mask::login(&mut raw);
        self.take_down(&said(payload), raw, heard);
    }

    fn asked(&mut self, raw: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let packet = Packet::read(&mut self.client.stream, raw)?;
            match packet.payload[..] {
                [0x01, 3] => {}
                [0x01 | 0xfe, ..] => self.client.send_packet(packet.seq.wrapping_add(1), &[])?,
                _ => return Ok(()),
            }
        }
    }

    fn take_down(&mut self, said: &str, raw: Vec<u8>, heard: io::Result<()>) {
        if let Err(error) = heard {
            ended(said, &error);
            self.ended = true;
        }
        self.tape.heard(said, raw, self.ended);
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the conversation, behind {}", self.tape.last());
        }
    }
}

/// EOF and reset are equal, because timing decides between them; a timeout is neither.
#[track_caller]
fn ended(said: &str, error: &io::Error) {
    let ended = matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    );
    assert!(ended, "no answer to {said}: {error}");
}

fn said(payload: &[u8]) -> String {
    let shown = &payload[..payload.len().min(SAID)];
    format!("\"{}\", {} bytes", shown.escape_ascii(), payload.len())
}
