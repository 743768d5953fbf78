//! A connection that is sent the server's log, event by event, as a replica is.

use std::io::{self, BufReader, Read};

use mysql_common::binlog::consts::BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_OFF;
use mysql_common::binlog::consts::BinlogVersion::Version4;
use mysql_common::binlog::consts::EventType;
use mysql_common::binlog::events::{BinlogEventFooter, Event, FormatDescriptionEvent};

use super::conn::Conn;
use super::error::AccountError;
use crate::wire::command::Command;
use crate::wire::cursor::{Cursor, Malformed};
use crate::wire::frame::{HEADER_BYTES, Header, MAX_BODY};
use crate::wire::response::{EOF, ERR, ErrPacket, OK};

/// An event's own header: its type stands at 4, its length at 9.
const EVENT_HEADER: usize = 19;
const EVENT_TYPE: usize = 4;
const EVENT_SIZE: std::ops::Range<usize> = 9..13;
const CHECKSUM: usize = 4;
/// Up to the list of lengths by type: version, server's version, time, length of headers.
const FORMAT_BYTES: usize = 2 + 50 + 4 + 1;
/// The algorithm of checksums, and a checksum.
const FORMAT_TAIL: usize = 1 + CHECKSUM;
/// The dump ends where the log does.
const NON_BLOCKING: u16 = 1;
/// Behind the row data: an EOF packet has no more.
const EOF_BYTES: usize = 9;
/// What a long event leaves allocated.
const KEPT_BYTES: usize = 1024 * 1024;
/// Fields in front of a compressed transaction, and the algorithms that it may be compressed by.
const END_OF_FIELDS: u64 = 0;
const COMPRESSION: u64 = 2;
const ZSTD: u64 = 0;
const UNCOMPRESSED: u64 = 255;
/// COM_REGISTER_SLAVE.
const REGISTER: u8 = 0x15;

/// From where on, and to whom.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The replica's number, which no other one may have.
    pub replica: u32,
    /// The log's file.
    pub file: &'a str,
    /// Where in the file.
    pub offset: u64,
    /// True: until the log ends, and not for good.
    pub to_the_end: bool,
    /// The longest event, in bytes; and as much of one that was compressed.
    pub most: usize,
}

/// The events of a log, as they come.
#[derive(Debug)]
pub struct Log {
    conn: Conn,
    format: FormatDescriptionEvent<'static>,
    /// What is left of a compressed transaction.
    inner: Option<Inner>,
    /// The parts of an event that came so far.
    event: Vec<u8>,
    most: usize,
}

struct Inner {
    bytes: Box<dyn Read + Send>,
    format: FormatDescriptionEvent<'static>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inner")
    }
}

impl Conn {
    /// Asks to be sent the log.
    ///
    /// # Errors
    /// When the server refuses at once; as a rule it does with the first event.
    pub async fn follow(mut self, request: &Request<'_>) -> Result<Log, AccountError> {
        self.run("SET @master_binlog_checksum = 'ALL', @source_binlog_checksum = 'ALL'")
            .await?;
        self.send(&register(request.replica)).await?;
        match self.packet(request.most).await? {
            packet if packet.first() == Some(&ERR) => {
                return Err(AccountError::Server(ErrPacket::parse(&packet)?));
            }
            packet if packet.first() == Some(&OK) => {}
            _ => return Err(AccountError::Unexpected),
        }
        // The command has 32 bits for it.
        let offset = u32::try_from(request.offset).map_err(|_| AccountError::TooFar)?;
        self.send(&dump(request, offset)).await?;
        Ok(Log {
            conn: self,
            format: FormatDescriptionEvent::new(Version4),
            inner: None,
            event: Vec::new(),
            most: request.most,
        })
    }

    async fn packet(&mut self, most: usize) -> Result<Vec<u8>, AccountError> {
        let mut whole = Vec::new();
        while !self.part(&mut whole, most).await? {}
        Ok(whole)
    }

    /// Adds what has come of a packet; true when that is all of it. May be given up between any two bytes.
    async fn part(&mut self, whole: &mut Vec<u8>, most: usize) -> Result<bool, AccountError> {
        loop {
            let header = Header::parse(&self.backend.inbox);
            let long = header.map_or(0, |header| header.len);
            if whole.len() + long > most {
                return Err(AccountError::EventTooLong(most));
            }
            let body = self.backend.inbox.get(HEADER_BYTES..HEADER_BYTES + long);
            if let (Some(_), Some(body)) = (header, body) {
                whole.extend_from_slice(body);
                self.backend.inbox.drain(..HEADER_BYTES + long);
                if self.backend.inbox.is_empty() && self.backend.inbox.capacity() > KEPT_BYTES {
                    self.backend.inbox = Vec::new();
                }
                return Ok(long < MAX_BODY);
            }
            self.backend.fill().await?;
        }
    }
}

impl Log {
    /// The next event; `None` at the end of a dump that has one. May be given up and asked for again.
    ///
    /// # Errors
    /// When the connection fails, the server refuses or an event cannot be read: nothing behind it is.
    pub async fn next(&mut self) -> Result<Option<Event>, AccountError> {
        if let Some(inner) = &mut self.inner {
            if let Some(event) = inner.next(self.most)? {
                return Ok(Some(event));
            }
            self.inner = None;
        }
        while !self.conn.part(&mut self.event, self.most).await? {}
        let event = std::mem::take(&mut self.event);
        match event.split_first() {
            Some((&OK, bytes)) => self.read(bytes).map(Some),
            Some((&ERR, _)) => Err(AccountError::Server(ErrPacket::parse(&event)?)),
            Some((&EOF, _)) if event.len() < EOF_BYTES => Ok(None),
            _ => Err(AccountError::Unexpected),
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Event, AccountError> {
        let event = read(bytes, &self.format)?;
        let kind = event.header().event_type_raw();
        if kind == EventType::FORMAT_DESCRIPTION_EVENT as u8 {
            let format = event.read_event::<FormatDescriptionEvent<'_>>()?;
            self.format = format.into_owned().with_footer(event.footer());
        } else if kind == EventType::TRANSACTION_PAYLOAD_EVENT as u8 {
            self.inner = Some(Inner::new(&event, &self.format)?);
        }
        Ok(event)
    }
}

impl Inner {
    fn new(event: &Event, format: &FormatDescriptionEvent<'static>) -> Result<Inner, AccountError> {
        let (algorithm, payload) = payload(event.data())?;
        let bytes = io::Cursor::new(payload.to_vec());
        let bytes: Box<dyn Read + Send> = match algorithm {
            ZSTD => Box::new(BufReader::new(zstd::Decoder::new(bytes)?)),
            UNCOMPRESSED => Box::new(bytes),
            _ => return Err(AccountError::Unexpected),
        };
        // The events within have no checksums (MySQL worklog 3549).
        let footer = BinlogEventFooter::new(BINLOG_CHECKSUM_ALG_OFF);
        Ok(Inner {
            bytes,
            format: format.clone().with_footer(footer),
        })
    }

    fn next(&mut self, most: usize) -> Result<Option<Event>, AccountError> {
        let mut bytes = vec![0; EVENT_HEADER];
        let (first, rest) = bytes.split_at_mut(1);
        if self.bytes.read(first)? == 0 {
            return Ok(None);
        }
        self.bytes.read_exact(rest)?;
        let size = size(&bytes);
        if size > most {
            return Err(AccountError::EventTooLong(most));
        }
        bytes.resize(size.max(EVENT_HEADER), 0);
        let body = bytes.get_mut(EVENT_HEADER..).unwrap_or_default();
        self.bytes.read_exact(body)?;
        if bytes.get(EVENT_TYPE) == Some(&(EventType::TRANSACTION_PAYLOAD_EVENT as u8)) {
            return Err(AccountError::Unexpected);
        }
        read(&bytes, &self.format).map(Some)
    }
}

/// The algorithm and the bytes of a compressed transaction: behind fields of a type, a length and a value, up to type 0 (MySQL,
/// `libs/mysql/binlog/event/codecs/binary.cpp`).
fn payload(body: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut cursor = Cursor::new(body);
    let mut algorithm = u64::MAX;
    loop {
        let field = cursor.lenenc_int()?;
        if field == END_OF_FIELDS {
            return Ok((algorithm, cursor.rest()));
        }
        let value = cursor.lenenc_bytes()?;
        if field == COMPRESSION {
            algorithm = Cursor::new(value).lenenc_int()?;
        }
    }
}

fn size(event: &[u8]) -> usize {
    let size = event.get(EVENT_SIZE).and_then(|size| size.first_chunk());
    size.map_or(0, |size| u32::from_le_bytes(*size) as usize)
}

/// Reads an event. `mysql_common` counts on as many bytes as the header says, and on those that every event of a kind has.
fn read(bytes: &[u8], format: &FormatDescriptionEvent<'static>) -> Result<Event, AccountError> {
    let format_event = bytes.get(EVENT_TYPE) == Some(&(EventType::FORMAT_DESCRIPTION_EVENT as u8));
    let least = match format_event {
        true => EVENT_HEADER + FORMAT_BYTES + FORMAT_TAIL,
        false => EVENT_HEADER + checksum_bytes(format),
    };
    if bytes.len() < least || size(bytes) != bytes.len() {
        return Err(AccountError::Unexpected);
    }
    Ok(Event::read(format, bytes)?)
}

fn checksum_bytes(format: &FormatDescriptionEvent<'_>) -> usize {
    match format.footer().get_checksum_alg() {
        Ok(None | Some(BINLOG_CHECKSUM_ALG_OFF)) => 0,
        _ => CHECKSUM,
    }
}

/// COM_REGISTER_SLAVE, with nothing to reach the replica by.
fn register(replica: u32) -> Vec<u8> {
    let mut payload = vec![REGISTER];
    payload.extend(replica.to_le_bytes());
    // Host, user and password, none of which has a byte; a port, a rank, and the source's number.
    payload.extend([0; 3 + 2 + 4 + 4]);
    payload
}

fn dump(request: &Request<'_>, offset: u32) -> Vec<u8> {
    let mut payload = vec![Command::BinlogDump.byte()];
    payload.extend(offset.to_le_bytes());
    let flags = if request.to_the_end { NON_BLOCKING } else { 0 };
    payload.extend(flags.to_le_bytes());
    payload.extend(request.replica.to_le_bytes());
    payload.extend(request.file.as_bytes());
    payload
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An event with a header that fits, of any type.
    fn event(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; EVENT_HEADER];
        bytes.extend(body);
        let size = u32::try_from(bytes.len()).unwrap_or_default();
        bytes.splice(EVENT_TYPE..=EVENT_TYPE, [kind]);
        bytes.splice(EVENT_SIZE, size.to_le_bytes());
        bytes
    }

    /// All that is in a compressed transaction, or that it cannot be read.
    fn unpacked(payload: Vec<u8>, most: usize) -> Result<usize, AccountError> {
        let mut inner = Inner {
            bytes: Box::new(io::Cursor::new(payload)),
            format: FormatDescriptionEvent::new(Version4),
        };
        let mut count = 0;
        while inner.next(most)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event_or_refused(bytes: Vec<u8>) {
            let _ = read(&bytes, &FormatDescriptionEvent::new(Version4));
            let _ = unpacked(bytes, 1_000);
        }

        #[test]
        fn any_body_behind_a_fitting_header_is_read_or_refused(
            kind: u8,
            body in proptest::collection::vec(any::<u8>(), 0..200),
            cut in 0usize..30,
        ) {
            let bytes = event(kind, &body);
            for format in [
                FormatDescriptionEvent::new(Version4),
                FormatDescriptionEvent::new(Version4).with_footer(BinlogEventFooter::default()),
            ] {
                if let Ok(event) = read(&bytes, &format) {
                    let _ = Inner::new(&event, &format);
                }
                let told = [&body[..], &[0; FORMAT_BYTES + FORMAT_TAIL]].concat();
                for told in [&told[..], &body] {
                    let bytes = self::event(EventType::FORMAT_DESCRIPTION_EVENT as u8, told);
                    if let Ok(event) = read(&bytes, &format) {
                        let _ = event.read_event::<FormatDescriptionEvent<'_>>();
                    }
                }
            }
            let payload = bytes.repeat(3);
            let cut = payload.len().saturating_sub(cut);
            let _ = unpacked(payload.get(..cut).unwrap_or_default().to_vec(), 1_000);
        }
    }

    #[test]
    fn an_event_that_is_said_to_be_long_is_not_waited_for() {
        let mut bytes = event(2, b"");
        bytes.splice(EVENT_SIZE, u32::MAX.to_le_bytes());
        let refused = unpacked(bytes.clone(), 1_000);
        assert!(matches!(refused, Err(AccountError::EventTooLong(1_000))));
        assert!(read(&bytes, &FormatDescriptionEvent::new(Version4)).is_err());
        assert!(matches!(unpacked(event(2, b"12345"), 1_000), Ok(1)));
    }
}
