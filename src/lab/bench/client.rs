//! The measuring client: one blocking socket, one statement at a time, and as little work as possible.
//!
//! It shares two or more cores with the server and the proxy, so what it spends is missing there: rows are copied into
//! one buffer and never taken apart.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::login::Account;
use super::way::packet;
use crate::account::login;
use crate::wire::capability::Capabilities;
use crate::wire::command::Command;
use crate::wire::cursor::{Cursor, Malformed};
use crate::wire::frame::{self, HEADER_BYTES, Header};
use crate::wire::handshake::Greeting;
use crate::wire::reply::{Event, Outcome, Walk, What};
use crate::wire::response::{EOF, ERR, ErrPacket, OK};

const BUFFER_BYTES: usize = 16 * 1024;
/// Longer than the slowest statement of the bench should ever take.
pub const TIMEOUT: Duration = Duration::from_secs(600);
/// The server knows the account and the password was right.
const FAST_AUTH_OK: &[u8] = &[1, 3];
/// The server wants the password itself.
const FULL_AUTH: &[u8] = &[1, 4];

/// A logged-in connection.
#[derive(Debug)]
pub struct Client {
    address: String,
    account: Account,
    stream: TcpStream,
    capabilities: Capabilities,
    buffer: Box<[u8]>,
    /// Where the reply is that comes in, or came last.
    walk: Walk,
}

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// Nothing came.
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Silent,
    /// The server (or Headwater) refused.
    #[error("refused with error {0}")]
    Refused(ErrPacket),
    /// What came is not the protocol.
    #[error("the reply is malformed")]
    Reply,
    /// What came is not the protocol.
    #[error("the reply is malformed")]
    Malformed(#[from] Malformed),
    /// The account's way of logging in is not known to this client.
    #[error("this client logs in by mysql_native_password and caching_sha2_password only")]
    Plugin,
    /// The server has not seen the account's password since it started.
    #[error("the server has forgotten this account's password: log in once with another client")]
    Forgotten,
    /// A thread of the bench ended early.
    #[error("a measuring thread ended early")]
    Thread,
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        match error.kind() {
            // The first of them is how a socket says that its time is over.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Silent,
            _ => ClientError::Io(error),
        }
    }
}

impl Client {
    /// Connects to `HOST:PORT` and logs in.
    ///
    /// # Errors
    /// When the connection or the login fails.
    pub fn connect(address: &str, account: &Account) -> Result<Client, ClientError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut client = Client {
            address: address.to_owned(),
            account: account.clone(),
            stream,
            capabilities: Capabilities::NONE,
            buffer: vec![0; BUFFER_BYTES].into(),
            walk: Walk::new(Command::Query, Capabilities::NONE),
        };
        client.log_in(account)?;
        client.take_several()?;
        Ok(client)
    }

    /// Logs out, connects and logs in again.
    ///
    /// # Errors
    /// As [`Client::connect`] has them.
    pub fn again(&mut self) -> Result<(), ClientError> {
        let anew = Client::connect(&self.address, &self.account)?;
        *self = anew;
        Ok(())
    }

    /// Sends a statement and reads its answer to the end. The payloads of its rows are left in `rows`, one behind the
    /// other: equal bytes are equal rows, as long as the columns are of one number.
    ///
    /// # Errors
    /// When the connection fails, the answer is an ERR packet, or it cannot be followed.
    pub fn ask(&mut self, packet: &[u8], rows: &mut Vec<u8>) -> Result<(), ClientError> {
        self.begin(packet, rows)?;
        while !self.go_on(rows)? {}
        Ok(())
    }

    /// Sends a statement and empties `rows` for its answer.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn begin(&mut self, packet: &[u8], rows: &mut Vec<u8>) -> Result<(), ClientError> {
        rows.clear();
        self.walk = Walk::new(Command::Query, self.capabilities);
        Ok(self.stream.write_all(packet)?)
    }

    /// Waits for more of the answer, reads once, and says whether it has ended. Rows are left as [`Client::ask`] leaves
    /// them.
    ///
    /// # Errors
    /// As [`Client::ask`] has them.
    pub fn go_on(&mut self, rows: &mut Vec<u8>) -> Result<bool, ClientError> {
        let read = self.stream.read(&mut self.buffer)?;
        let bytes = self.buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        follow(&mut self.walk, bytes, |row| rows.extend_from_slice(row))
    }

    /// Sends a statement, reads its answer to the end through this buffer, and drops its rows; returns how many bytes
    /// they had, without headers of packets.
    ///
    /// # Errors
    /// As [`Client::ask`] has them.
    pub fn drain(&mut self, packet: &[u8], buffer: &mut [u8]) -> Result<u64, ClientError> {
        self.begin(packet, &mut Vec::new())?;
        let mut bytes = 0;
        loop {
            let read = self.stream.read(buffer)?;
            let came = buffer.get(..read).unwrap_or_default();
            if came.is_empty() {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if follow(&mut self.walk, came, |row| bytes += row.len() as u64)? {
                return Ok(bytes);
            }
        }
    }

    /// Runs a statement whose answer does not matter.
    ///
    /// # Errors
    /// As [`Client::ask`] has them.
    pub fn run(&mut self, statement: &str) -> Result<(), ClientError> {
        self.ask(&packet(statement), &mut Vec::new())
    }

    /// The numbers that a SELECT of whole numbers answers, row by row.
    ///
    /// # Errors
    /// As [`Client::ask`] has them, and when it answers something else.
    pub fn numbers(&mut self, select: &str) -> Result<Vec<u64>, ClientError> {
        let mut rows = Vec::new();
        self.ask(&packet(select), &mut rows)?;
        numbers(&rows)
    }

    /// The same of a SELECT of two columns.
    ///
    /// # Errors
    /// As [`Client::numbers`] has them.
    pub fn pairs(&mut self, select: &str) -> Result<Vec<(u64, u64)>, ClientError> {
        let numbers = self.numbers(select)?;
        let pairs = numbers.chunks_exact(2);
        Ok(pairs
            .filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)))
            .collect())
    }

    /// The cells of the first row that a statement is answered; none, where it has no rows.
    ///
    /// # Errors
    /// As [`Client::ask`] has them.
    pub fn texts(&mut self, statement: &str) -> Result<Vec<String>, ClientError> {
        let mut rows = Vec::new();
        self.ask(&packet(statement), &mut rows)?;
        texts(&rows)
    }

    /// Has the server take several statements in one command.
    fn take_several(&mut self) -> Result<(), ClientError> {
        const ON: [u8; 2] = [0, 0];
        self.send(0, &[&[Command::SetOption.byte()], &ON[..]].concat())?;
        let (_, payload) = self.packet()?;
        match payload.first() {
            Some(&ERR) => Err(ClientError::Refused(ErrPacket::parse(&payload)?)),
            _ => Ok(()),
        }
    }

    fn log_in(&mut self, account: &Account) -> Result<(), ClientError> {
        let (_, payload) = self.packet()?;
        if payload.first() == Some(&ERR) {
            return Err(ClientError::Refused(ErrPacket::parse(&payload)?));
        }
        let greeting = Greeting::parse(&payload)?;
        let (response, capabilities) = login::response(&greeting, &account.login());
        self.capabilities = capabilities;
        self.send(1, &response)?;
        loop {
            let (seq, payload) = self.packet()?;
            match payload.first() {
                Some(&OK) => return Ok(()),
                Some(&ERR) => return Err(ClientError::Refused(ErrPacket::parse(&payload)?)),
                Some(&EOF) => {
                    let proof = login::switched(&payload, &account.password)?;
                    self.send(seq.wrapping_add(1), &proof.ok_or(ClientError::Plugin)?)?;
                }
                _ if payload == FAST_AUTH_OK => {}
                _ if payload == FULL_AUTH => return Err(ClientError::Forgotten),
                _ => return Err(ClientError::Plugin),
            }
        }
    }

    /// One short packet of the login: its sequence number and its payload.
    fn packet(&mut self) -> Result<(u8, Vec<u8>), ClientError> {
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header)?;
        let Header { len, seq } = Header::parse(&header).ok_or(ClientError::Reply)?;
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload)?;
        Ok((seq, payload))
    }

    fn send(&mut self, seq: u8, payload: &[u8]) -> Result<(), ClientError> {
        let mut packet = Vec::new();
        frame::encode(seq, payload, &mut packet);
        Ok(self.stream.write_all(&packet)?)
    }
}

/// Follows a reply through the bytes of one read, to the end of which they may reach, and hands on its rows, of which one
/// may come in parts; true when the reply ended.
fn follow(walk: &mut Walk, bytes: &[u8], mut row: impl FnMut(&[u8])) -> Result<bool, ClientError> {
    let mut left = bytes;
    loop {
        let walked = walk.next(left);
        left = left.get(walked.consumed..).unwrap_or_default();
        match walked.what {
            What::Event(Event::Done(Outcome::Err(packet))) => {
                return Err(ClientError::Refused(packet));
            }
            What::Event(Event::Done(_)) => return Ok(true),
            What::Event(_) => return Err(ClientError::Reply),
            // A row goes on in the next read: there is an empty part of it here.
            _ if walked.consumed == 0 => return Ok(false),
            What::Row { body, .. } => row(body),
            _ => {}
        }
    }
}

fn numbers(rows: &[u8]) -> Result<Vec<u64>, ClientError> {
    let mut cursor = Cursor::new(rows);
    let mut numbers = Vec::new();
    while !cursor.is_empty() {
        let text = std::str::from_utf8(cursor.lenenc_bytes()?).ok();
        let number = text.and_then(|text| text.parse().ok());
        numbers.push(number.ok_or(ClientError::Reply)?);
    }
    Ok(numbers)
}

/// Each cell, one behind the other; NULL is empty.
fn texts(rows: &[u8]) -> Result<Vec<String>, ClientError> {
    const NULL: u8 = 0xfb;
    let mut cursor = Cursor::new(rows);
    let mut texts = Vec::new();
    while !cursor.is_empty() {
        let mut ahead = cursor;
        let text = match ahead.u8()? {
            NULL => {
                cursor = ahead;
                Default::default()
            }
            _ => cursor.lenenc_bytes()?,
        };
        texts.push(String::from_utf8_lossy(text).into_owned());
    }
    Ok(texts)
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.send(0, &[Command::Quit.byte()]);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_be_torn_apart_anywhere() {
        let definition = b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x0b\0\0\0\x03\0\0\0\0\0";
        let mut reply = Vec::new();
        for (seq, payload) in (1..).zip([
            &b"\x01"[..],
            definition,
            b"\x0212",
            b"\x03345",
            b"\xfe\0\0\x02\0\0\0",
        ]) {
            frame::encode(seq, payload, &mut reply);
        }
        for at in 1..reply.len() {
            let (mut walk, mut rows) = (
                Walk::new(Command::Query, Capabilities::DEPRECATE_EOF),
                Vec::new(),
            );
            let (first, rest) = reply.split_at(at);
            for (part, ends) in [(first, false), (rest, true)] {
                let ended = follow(&mut walk, part, |row| rows.extend_from_slice(row)).unwrap();
                assert_eq!(ended, ends, "at {at}");
            }
            assert_eq!(numbers(&rows).unwrap(), [12, 345], "at {at}");
        }
    }

    #[test]
    fn texts_are_read_and_null_is_empty() {
        assert_eq!(texts(b"\x02ab\xfb\x00\x01c").unwrap(), ["ab", "", "", "c"]);
        texts(b"\x02a").unwrap_err();
    }

    #[test]
    fn numbers_are_read_and_null_and_text_are_refused() {
        assert_eq!(numbers(b"\x0212\x010").unwrap(), [12, 0]);
        assert_eq!(numbers(b"").unwrap(), [0; 0]);
        for rows in [&b"\xfb"[..], b"\x01x", b"\x0212\x02"] {
            numbers(rows).unwrap_err();
        }
    }
}
