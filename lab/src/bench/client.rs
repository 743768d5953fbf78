//! The measuring client: one blocking socket, one statement at a time, as little work as possible.
//!
//! It shares the cores with the server and the proxy, so each cycle it spends is missing there: it copies rows into one buffer and never
//! parses them.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::login::BenchAccount;
use crate::query_path::query_packet;
use headwater_proxy::account::login;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::Command;
use headwater_wire::cursor::{MalformedPacket, PacketCursor};
use headwater_wire::handshake::ServerGreeting;
use headwater_wire::packet::{self, HEADER_BYTES, PacketHeader};
use headwater_wire::reply::{ReplyEvent, ReplyOutcome, ReplyScanner, ScannedPiece};
use headwater_wire::response::{EOF, ERR, ErrPacket, OK};

const BUFFER_BYTES: usize = 16 * 1024;
/// Longer than the slowest statement of the bench takes.
pub const TIMEOUT: Duration = Duration::from_secs(600);
/// The server knows the account, and the password is right.
const FAST_AUTH_OK: &[u8] = &[1, 3];
/// The server requests the password itself.
const FULL_AUTH: &[u8] = &[1, 4];

/// A logged-in connection.
#[derive(Debug)]
pub struct BenchClient {
    address: String,
    account: BenchAccount,
    stream: TcpStream,
    capabilities: Capabilities,
    buffer: Box<[u8]>,
    /// The scan position in the current or last reply.
    reply_walk: ReplyScanner,
}

/// Why a statement has no reply.
#[derive(Debug, thiserror::Error)]
pub enum BenchClientError {
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// No reply arrived in time.
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// The server (or Headwater) replied with an error.
    #[error("refused with error {0}")]
    Refused(ErrPacket),
    /// The reply does not follow the protocol.
    #[error("the reply is malformed")]
    UnexpectedReply,
    /// A packet does not follow the protocol.
    #[error("the reply is malformed")]
    Malformed(#[from] MalformedPacket),
    /// The client does not implement the account's authentication plugin.
    #[error("this client logs in by mysql_native_password and caching_sha2_password only")]
    UnsupportedPlugin,
    /// The server has not cached the account's password since it started.
    #[error("the server has forgotten this account's password: log in once with another client")]
    PasswordNotCached,
    /// A thread of the bench ended early.
    #[error("a measuring thread ended early")]
    ThreadEnded,
}

impl From<io::Error> for BenchClientError {
    fn from(error: io::Error) -> BenchClientError {
        match error.kind() {
            // A socket reports its timeout with the first of them.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => BenchClientError::Timeout,
            _ => BenchClientError::Io(error),
        }
    }
}

impl BenchClient {
    /// Connects to `HOST:PORT` and logs in.
    ///
    /// # Errors
    /// Fails if the connection or the login fails.
    pub fn connect(address: &str, account: &BenchAccount) -> Result<BenchClient, BenchClientError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut client = BenchClient {
            address: address.to_owned(),
            account: account.clone(),
            stream,
            capabilities: Capabilities::NONE,
            buffer: vec![0; BUFFER_BYTES].into(),
            reply_walk: ReplyScanner::new(Command::Query, Capabilities::NONE),
        };
        client.log_in(account)?;
        client.enable_multi_statements()?;
        Ok(client)
    }

    /// Logs out, connects and logs in again.
    ///
    /// # Errors
    /// As for [`BenchClient::connect`].
    pub fn reconnect(&mut self) -> Result<(), BenchClientError> {
        let anew = BenchClient::connect(&self.address, &self.account)?;
        *self = anew;
        Ok(())
    }

    /// Sends a statement and reads its reply to the end. The payloads of its rows are appended to `rows`: equal bytes mean equal rows, as
    /// long as the number of columns is the same.
    ///
    /// # Errors
    /// Fails if the connection fails, the reply is an ERR packet, or it cannot be parsed.
    pub fn query(&mut self, packet: &[u8], rows: &mut Vec<u8>) -> Result<(), BenchClientError> {
        self.send_query(packet, rows)?;
        while !self.read_more(rows)? {}
        Ok(())
    }

    /// Sends a statement and clears `rows` for its reply.
    ///
    /// # Errors
    /// Fails if the connection fails.
    pub fn send_query(
        &mut self,
        packet: &[u8],
        rows: &mut Vec<u8>,
    ) -> Result<(), BenchClientError> {
        rows.clear();
        self.reply_walk = ReplyScanner::new(Command::Query, self.capabilities);
        Ok(self.stream.write_all(packet)?)
    }

    /// Waits for more of the reply and reads once; true when the reply has ended. Rows are appended as in [`BenchClient::query`].
    ///
    /// # Errors
    /// As for [`BenchClient::query`].
    pub fn read_more(&mut self, rows: &mut Vec<u8>) -> Result<bool, BenchClientError> {
        let read = self.stream.read(&mut self.buffer)?;
        let bytes = self.buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        follow_reply(&mut self.reply_walk, bytes, |row| {
            rows.extend_from_slice(row)
        })
    }

    /// Sends a statement, reads its reply to the end through this buffer, and drops the rows; returns their size in bytes, without packet
    /// headers.
    ///
    /// # Errors
    /// As for [`BenchClient::query`].
    pub fn query_discarding(
        &mut self,
        packet: &[u8],
        buffer: &mut [u8],
    ) -> Result<u64, BenchClientError> {
        self.send_query(packet, &mut Vec::new())?;
        let mut bytes = 0;
        loop {
            let read = self.stream.read(buffer)?;
            let came = buffer.get(..read).unwrap_or_default();
            if came.is_empty() {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if follow_reply(&mut self.reply_walk, came, |row| bytes += row.len() as u64)? {
                return Ok(bytes);
            }
        }
    }

    /// Runs a statement and ignores its rows.
    ///
    /// # Errors
    /// As for [`BenchClient::query`].
    pub fn execute(&mut self, statement: &str) -> Result<(), BenchClientError> {
        self.query(&query_packet(statement), &mut Vec::new())
    }

    /// The values of a SELECT of integers, row by row.
    ///
    /// # Errors
    /// As for [`BenchClient::query`]; also fails if a value is no integer.
    pub fn query_numbers(&mut self, select: &str) -> Result<Vec<u64>, BenchClientError> {
        let mut rows = Vec::new();
        self.query(&query_packet(select), &mut rows)?;
        parse_numbers(&rows)
    }

    /// The same for a SELECT of two columns.
    ///
    /// # Errors
    /// As for [`BenchClient::query_numbers`].
    pub fn query_pairs(&mut self, select: &str) -> Result<Vec<(u64, u64)>, BenchClientError> {
        let numbers = self.query_numbers(select)?;
        let pairs = numbers.chunks_exact(2);
        Ok(pairs
            .filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)))
            .collect())
    }

    /// The cells of the first row of a statement's reply; empty if there is no row.
    ///
    /// # Errors
    /// As for [`BenchClient::query`].
    pub fn query_texts(&mut self, statement: &str) -> Result<Vec<String>, BenchClientError> {
        let mut rows = Vec::new();
        self.query(&query_packet(statement), &mut rows)?;
        parse_texts(&rows)
    }

    /// Lets the server accept several statements in one command.
    fn enable_multi_statements(&mut self) -> Result<(), BenchClientError> {
        const ON: [u8; 2] = [0, 0];
        self.write_packet(0, &[&[Command::SetOption.byte()], &ON[..]].concat())?;
        let (_, payload) = self.read_packet()?;
        match payload.first() {
            Some(&ERR) => Err(BenchClientError::Refused(ErrPacket::parse(&payload)?)),
            _ => Ok(()),
        }
    }

    fn log_in(&mut self, account: &BenchAccount) -> Result<(), BenchClientError> {
        let (_, payload) = self.read_packet()?;
        if payload.first() == Some(&ERR) {
            return Err(BenchClientError::Refused(ErrPacket::parse(&payload)?));
        }
        let greeting = ServerGreeting::parse(&payload)?;
        let (response, capabilities) = login::handshake_response(&greeting, &account.login());
        self.capabilities = capabilities;
        self.write_packet(1, &response)?;
        loop {
            let (seq, payload) = self.read_packet()?;
            match payload.first() {
                Some(&OK) => return Ok(()),
                Some(&ERR) => return Err(BenchClientError::Refused(ErrPacket::parse(&payload)?)),
                Some(&EOF) => {
                    let proof = login::auth_switch_response(&payload, &account.password)?;
                    self.write_packet(
                        seq.wrapping_add(1),
                        &proof.ok_or(BenchClientError::UnsupportedPlugin)?,
                    )?;
                }
                _ if payload == FAST_AUTH_OK => {}
                _ if payload == FULL_AUTH => return Err(BenchClientError::PasswordNotCached),
                _ => return Err(BenchClientError::UnsupportedPlugin),
            }
        }
    }

    /// Reads one short packet of the login: its sequence number and its payload.
    fn read_packet(&mut self) -> Result<(u8, Vec<u8>), BenchClientError> {
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header)?;
        let PacketHeader { len, seq } =
            PacketHeader::parse(&header).ok_or(BenchClientError::UnexpectedReply)?;
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload)?;
        Ok((seq, payload))
    }

    fn write_packet(&mut self, seq: u8, payload: &[u8]) -> Result<(), BenchClientError> {
        let mut packet = Vec::new();
        packet::encode(seq, payload, &mut packet);
        Ok(self.stream.write_all(&packet)?)
    }
}

/// Scans the bytes of one read, and passes on the row payloads, the last one possibly in part; true when the reply has ended.
fn follow_reply(
    scanner: &mut ReplyScanner,
    bytes: &[u8],
    mut row: impl FnMut(&[u8]),
) -> Result<bool, BenchClientError> {
    let mut remaining = bytes;
    loop {
        let step = scanner.next(remaining);
        remaining = remaining.get(step.consumed..).unwrap_or_default();
        match step.piece {
            ScannedPiece::Event(ReplyEvent::Done(ReplyOutcome::Err(packet))) => {
                return Err(BenchClientError::Refused(packet));
            }
            ScannedPiece::Event(ReplyEvent::Done(_)) => return Ok(true),
            ScannedPiece::Event(_) => return Err(BenchClientError::UnexpectedReply),
            // The row continues in the next read, and has no bytes in this one.
            _ if step.consumed == 0 => return Ok(false),
            ScannedPiece::Row { body, .. } => row(body),
            _ => {}
        }
    }
}

fn parse_numbers(rows: &[u8]) -> Result<Vec<u64>, BenchClientError> {
    let mut cursor = PacketCursor::new(rows);
    let mut numbers = Vec::new();
    while !cursor.is_empty() {
        let text = std::str::from_utf8(cursor.lenenc_bytes()?).ok();
        let number = text.and_then(|text| text.parse().ok());
        numbers.push(number.ok_or(BenchClientError::UnexpectedReply)?);
    }
    Ok(numbers)
}

/// The cells in order; NULL becomes an empty text.
fn parse_texts(rows: &[u8]) -> Result<Vec<String>, BenchClientError> {
    const NULL: u8 = 0xfb;
    let mut cursor = PacketCursor::new(rows);
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

impl AsFd for BenchClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Drop for BenchClient {
    fn drop(&mut self) {
        let _ = self.write_packet(0, &[Command::Quit.byte()]);
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
            packet::encode(seq, payload, &mut reply);
        }
        for at in 1..reply.len() {
            let (mut scanner, mut rows) = (
                ReplyScanner::new(Command::Query, Capabilities::DEPRECATE_EOF),
                Vec::new(),
            );
            let (first, rest) = reply.split_at(at);
            for (part, ends) in [(first, false), (rest, true)] {
                let ended =
                    follow_reply(&mut scanner, part, |row| rows.extend_from_slice(row)).unwrap();
                assert_eq!(ended, ends, "at {at}");
            }
            assert_eq!(parse_numbers(&rows).unwrap(), [12, 345], "at {at}");
        }
    }

    #[test]
    fn texts_are_read_and_null_is_empty() {
        assert_eq!(
            parse_texts(b"\x02ab\xfb\x00\x01c").unwrap(),
            ["ab", "", "", "c"]
        );
        parse_texts(b"\x02a").unwrap_err();
    }

    #[test]
    fn numbers_are_read_and_null_and_text_are_refused() {
        assert_eq!(parse_numbers(b"\x0212\x010").unwrap(), [12, 0]);
        assert_eq!(parse_numbers(b"").unwrap(), [0; 0]);
        for rows in [&b"\xfb"[..], b"\x01x", b"\x0212\x02"] {
            parse_numbers(rows).unwrap_err();
        }
    }
}
