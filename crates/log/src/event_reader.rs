//! Events of a log, made of its bytes as they stream by. How much of an event is kept is decided by its first bytes: the rest is counted,
//! goes into the checksum, and is gone.
//!
//! Each step handles at most [`SLICE`] bytes, so that whoever drives it can let others have their turn in between.

use flate2::Crc;

use super::error::EventError;
use super::payload_decompressor::PayloadDecompressor;
pub use super::payload_decompressor::SLICE;

/// The longest event that is read, where nothing else is set: MySQL takes rows of 64 MiB by default, MariaDB of 16
/// (`max_allowed_packet`).
pub const EVENT_BYTES: usize = 65 * 1024 * 1024;
/// Bytes of a body by which it is decided how much of it is kept: the names of a table stand among them.
pub const FIRST_BYTES: usize = 600;
/// An event's own header: its time stands at 0, its type at 4, its server at 5, its length at 9, its end in the log at 13, its flags at 17.
pub const HEADER_BYTES: usize = 19;
/// Behind an event, where the log has checksums.
const CHECKSUM_BYTES: usize = 4;
/// Version, server's version, time and length of headers; behind the lengths of other events the algorithm of checksums.
const MIN_FORMAT_BYTES: usize = 2 + 50 + 4 + 1 + 1;
/// A description of the format is some hundred bytes long.
const MAX_FORMAT_BYTES: usize = 4 * 1024;
/// Types that the reader has to know.
const FORMAT_DESCRIPTION: u8 = 15;
/// A compressed transaction of MySQL's, whose events follow it.
pub const TRANSACTION_PAYLOAD: u8 = 40;
const TABLE_MAP: u8 = 19;
/// Of the flags: the server writes to the file. It is left out of the checksum.
const IN_USE: u16 = 1;
/// Of the flags: the server made the event for this stream.
const ARTIFICIAL: u16 = 0x20;

/// An event, as far as it was wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEvent {
    /// Its type.
    pub event_type: u8,
    /// Flags of the header.
    pub flags: u16,
    /// When it was written, in seconds, on the server that it is from.
    pub timestamp: u32,
    /// The number of the server that it is from.
    pub server_id: u32,
    /// The lower half of where it ends in the log; 0: not told.
    pub log_pos: u32,
    /// What stands behind the header, without a checksum.
    pub body: Vec<u8>,
    /// The body went on, and that was not kept.
    pub truncated: bool,
}

impl LogEvent {
    /// True where the server made it for this stream: it does not stand in the file.
    #[must_use]
    pub fn is_artificial(&self) -> bool {
        self.flags & ARTIFICIAL != 0
    }
}

/// How much of a body is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRetention {
    /// All of it, if it is not longer than the limit.
    All,
    /// So many bytes at most.
    First(usize),
}

/// Tells how much is wanted of an event of this type, whose body begins so.
pub trait RetentionPolicy: Fn(u8, &[u8]) -> BodyRetention + Send + Sync {}

impl<F: Fn(u8, &[u8]) -> BodyRetention + Send + Sync> RetentionPolicy for F {}

/// What a step did.
#[derive(Debug, Default)]
pub struct ReaderStep {
    /// So many of the bytes were taken.
    pub taken: usize,
    /// So many were handled: taken, or unpacked.
    pub handled: usize,
    /// An event that is complete.
    pub event: Option<LogEvent>,
}

/// Makes events of bytes.
#[derive(Debug)]
pub struct EventReader {
    max_event_bytes: usize,
    checksums: bool,
    /// The events of a compressed transaction hold none.
    in_payload: bool,
    state: ReaderState,
}

#[derive(Debug)]
enum ReaderState {
    Header(Vec<u8>),
    Body(Box<EventBody>),
    Payload(Box<CompressedPayload>),
}

/// An event whose header is there.
#[derive(Debug)]
struct EventBody {
    event: LogEvent,
    checksum: EventChecksum,
    /// Bytes of the body, and how many of them are still to come.
    length: usize,
    remaining: usize,
    retained: Option<usize>,
}

/// A compressed transaction.
#[derive(Debug)]
struct CompressedPayload {
    checksum: EventChecksum,
    remaining: usize,
    decompressor: PayloadDecompressor,
    /// What it unpacks to.
    reader: Box<EventReader>,
    /// An event that may commit: handed on when there is another, or the checksum was right.
    last_event: Option<LogEvent>,
    /// An event that is handed on before any other is looked at.
    ready_event: Option<LogEvent>,
}

impl CompressedPayload {
    fn is_busy(&self) -> bool {
        // Without a checksum no further byte comes that would end it.
        let all_there = self.remaining == 0 && self.checksum.is_complete();
        self.ready_event.is_some() || self.is_unpacking() || all_there
    }

    /// There is more in the bytes that have come.
    fn is_unpacking(&self) -> bool {
        self.decompressor.is_busy() || self.reader.is_busy()
    }

    /// Reads what was unpacked, or unpacks some more. Returns how many bytes were taken, how many were handled, and an event.
    fn step(
        &mut self,
        bytes: &[u8],
        wants: &impl RetentionPolicy,
    ) -> Result<(usize, usize, Option<LogEvent>), EventError> {
        let unread = self.decompressor.unread();
        if !unread.is_empty() {
            let step = self.reader.step(unread, wants)?;
            self.decompressor.consume(step.taken);
            return Ok((0, step.handled, step.event));
        }
        let (taken, handled) = self.decompressor.step(bytes)?;
        Ok((taken, handled, None))
    }

    /// All has come.
    fn end(&self) -> Result<(), EventError> {
        self.decompressor.finish()?;
        match self.reader.is_at_boundary() {
            true => Ok(()),
            false => Err(EventError::Unexpected),
        }
    }

    /// What is handed on when this one has come: tables and rows at once, since what is wanted of rows hangs on the tables.
    fn release(&mut self, event: LogEvent) -> Option<LogEvent> {
        if !matches!(event.event_type, TABLE_MAP | 23..=25 | 30..=32 | 39) {
            return self.last_event.replace(event);
        }
        match self.last_event.take() {
            None => Some(event),
            held => {
                self.ready_event = Some(event);
                held
            }
        }
    }
}

/// The checksum: what it should be, and what there is of it.
#[derive(Debug)]
struct EventChecksum {
    crc: Crc,
    received: Vec<u8>,
    length: usize,
    verified: bool,
}

impl EventChecksum {
    fn new(header: &[u8], flags: u16, length: usize) -> EventChecksum {
        let mut crc = Crc::new();
        crc.update(header.get(..HEADER_BYTES - 2).unwrap_or_default());
        crc.update(&(flags & !IN_USE).to_le_bytes());
        EventChecksum {
            crc,
            received: Vec::new(),
            length,
            verified: length > 0,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        if self.verified {
            self.crc.update(bytes);
        }
    }

    /// Takes what is lacking of the checksum; true when it is all there.
    fn receive(&mut self, bytes: &[u8], taken: &mut usize) -> bool {
        let lacking = self.length - self.received.len();
        let here = bytes.get(..lacking.min(bytes.len())).unwrap_or_default();
        self.received.extend_from_slice(here);
        *taken += here.len();
        self.is_complete()
    }

    fn is_complete(&self) -> bool {
        self.received.len() == self.length
    }

    fn verify(&self) -> Result<(), EventError> {
        if self.verified && self.received != self.crc.sum().to_le_bytes() {
            return Err(EventError::Checksum);
        }
        Ok(())
    }
}

impl EventReader {
    /// Events behind the beginning of a log: what checksums they have it says itself. None that is wanted whole may have more
    /// than `max_event_bytes` bytes.
    #[must_use]
    pub fn new(most: usize) -> EventReader {
        EventReader::with_options(most, false, false)
    }

    /// Events of which it is known whether they have checksums.
    #[must_use]
    pub fn with_checksums(most: usize, checksums: bool) -> EventReader {
        EventReader::with_options(most, checksums, false)
    }

    /// The events of a compressed transaction have no checksums (MySQL worklog 3549).
    fn for_payload(most: usize) -> EventReader {
        EventReader::with_options(most, false, true)
    }

    fn with_options(most: usize, checksums: bool, within: bool) -> EventReader {
        EventReader {
            max_event_bytes: most,
            checksums,
            in_payload: within,
            state: ReaderState::Header(Vec::new()),
        }
    }

    /// No event is begun.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        matches!(&self.state, ReaderState::Header(bytes) if bytes.is_empty())
    }

    /// There is something to do even without further bytes.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(&self.state, ReaderState::Payload(payload) if payload.is_busy())
    }

    /// Goes on with these bytes, at most [`SLICE`] of them.
    ///
    /// # Errors
    /// When they are no events, or one is too long.
    pub fn step(
        &mut self,
        bytes: &[u8],
        wants: &impl RetentionPolicy,
    ) -> Result<ReaderStep, EventError> {
        let bytes = bytes.get(..SLICE).unwrap_or(bytes);
        let mut step = ReaderStep::default();
        match &mut self.state {
            ReaderState::Header(header) => {
                let lacking = (HEADER_BYTES - header.len()).min(bytes.len());
                header.extend_from_slice(bytes.get(..lacking).unwrap_or_default());
                step.taken = lacking;
                if header.len() == HEADER_BYTES {
                    let header = std::mem::take(header);
                    self.state = self.begin_body(&header)?;
                    // An event may consist of its header.
                    self.finish_event(&[], wants, &mut step)?;
                }
            }
            ReaderState::Body(body) => {
                step.taken = body.take(bytes, self.max_event_bytes, wants)?;
                let rest = bytes.get(step.taken..).unwrap_or_default();
                self.finish_event(rest, wants, &mut step)?;
            }
            ReaderState::Payload(payload) if payload.ready_event.is_some() => {
                step.event = payload.ready_event.take();
            }
            ReaderState::Payload(payload) => {
                let here = payload.remaining.min(bytes.len());
                let here = bytes.get(..here).unwrap_or_default();
                let (taken, handled, event) = payload.step(here, wants)?;
                payload
                    .checksum
                    .update(here.get(..taken).unwrap_or_default());
                payload.remaining -= taken;
                (step.taken, step.handled) = (taken, handled);
                if let Some(event) = event {
                    step.event = payload.release(event);
                } else {
                    let rest = bytes.get(taken..).unwrap_or_default();
                    self.finish_event(rest, wants, &mut step)?;
                }
            }
        }
        step.handled = step.handled.max(step.taken);
        Ok(step)
    }

    fn begin_body(&self, header: &[u8]) -> Result<ReaderState, EventError> {
        let number = |at: usize| {
            let bytes = header.get(at..).and_then(|bytes| bytes.first_chunk());
            u32::from_le_bytes(*bytes.unwrap_or(&[0; 4]))
        };
        let kind = header.get(4).copied().unwrap_or_default();
        let [_, _, low, high] = number(15).to_le_bytes();
        let flags = u16::from_le_bytes([low, high]);
        let described = kind == FORMAT_DESCRIPTION;
        if self.in_payload && matches!(kind, FORMAT_DESCRIPTION | TRANSACTION_PAYLOAD) {
            return Err(EventError::Unexpected);
        }
        let checksum = if self.checksums || described {
            CHECKSUM_BYTES
        } else {
            0
        };
        let length = (number(9) as usize).checked_sub(HEADER_BYTES + checksum);
        let length = length.ok_or(EventError::Unexpected)?;
        let fits = (MIN_FORMAT_BYTES..MAX_FORMAT_BYTES).contains(&length);
        if described && !fits {
            return Err(EventError::Unexpected);
        }
        let tail = EventChecksum::new(header, flags, checksum);
        let event = LogEvent {
            event_type: kind,
            flags,
            timestamp: number(0),
            server_id: number(5),
            log_pos: number(13),
            ..LogEvent::default()
        };
        if kind == TRANSACTION_PAYLOAD {
            return Ok(ReaderState::Payload(Box::new(CompressedPayload {
                checksum: tail,
                remaining: length,
                decompressor: PayloadDecompressor::new(self.max_event_bytes),
                reader: Box::new(EventReader::for_payload(self.max_event_bytes)),
                last_event: Some(event),
                ready_event: None,
            })));
        }
        Ok(ReaderState::Body(Box::new(EventBody {
            event,
            checksum: tail,
            length,
            remaining: length,
            retained: None,
        })))
    }

    /// Ends an event whose body is there, once its checksum is.
    fn finish_event(
        &mut self,
        rest: &[u8],
        wants: &impl RetentionPolicy,
        step: &mut ReaderStep,
    ) -> Result<(), EventError> {
        match &mut self.state {
            ReaderState::Body(body) if body.remaining == 0 => {
                body.decide_retention(self.max_event_bytes, wants)?;
                let ended = body.checksum.receive(rest, &mut step.taken);
                if body.event.event_type == FORMAT_DESCRIPTION {
                    self.checksums = has_checksums(&body.event.body)?;
                    body.checksum.verified = self.checksums;
                }
                if ended {
                    body.checksum.verify()?;
                    step.event = Some(std::mem::take(&mut body.event));
                    self.state = ReaderState::Header(Vec::new());
                }
            }
            ReaderState::Payload(payload) if payload.remaining == 0 && !payload.is_unpacking() => {
                if !payload.checksum.receive(rest, &mut step.taken) {
                    return Ok(());
                }
                payload.checksum.verify()?;
                payload.end()?;
                step.event = payload.last_event.take();
                self.state = ReaderState::Header(Vec::new());
            }
            _ => {}
        }
        Ok(())
    }
}

impl EventBody {
    /// Takes what belongs to the body, and keeps what is wanted; returns how much it took.
    fn take(
        &mut self,
        bytes: &[u8],
        most: usize,
        wants: &impl RetentionPolicy,
    ) -> Result<usize, EventError> {
        let here = bytes
            .get(..self.remaining.min(bytes.len()))
            .unwrap_or_default();
        self.checksum.update(here);
        self.remaining -= here.len();
        let mut rest = here;
        if self.retained.is_none() {
            let first = match self.event.event_type {
                FORMAT_DESCRIPTION => self.length,
                _ => self.length.min(FIRST_BYTES),
            };
            let lacking = (first - self.event.body.len()).min(rest.len());
            let (begins, behind) = rest.split_at(lacking);
            self.event.body.extend_from_slice(begins);
            if self.event.body.len() < first {
                return Ok(here.len());
            }
            self.decide_retention(most, wants)?;
            rest = behind;
        }
        let room = self
            .retained
            .unwrap_or(0)
            .saturating_sub(self.event.body.len());
        let kept = rest.get(..room.min(rest.len())).unwrap_or_default();
        self.event.body.extend_from_slice(kept);
        Ok(here.len())
    }

    fn decide_retention(
        &mut self,
        most: usize,
        wants: &impl RetentionPolicy,
    ) -> Result<(), EventError> {
        if self.retained.is_some() {
            return Ok(());
        }
        let keep = match wants(self.event.event_type, &self.event.body) {
            _ if self.event.event_type == FORMAT_DESCRIPTION => self.length,
            BodyRetention::All if self.length > most => return Err(EventError::TooLong(most)),
            BodyRetention::All => self.length,
            BodyRetention::First(bytes) => bytes.min(self.length),
        };
        self.event.body.truncate(keep);
        self.event.truncated = keep < self.length;
        self.retained = Some(keep);
        Ok(())
    }
}

/// Whether the events of the log have checksums: the description's last byte. There is no algorithm but CRC32.
fn has_checksums(body: &[u8]) -> Result<bool, EventError> {
    match body.last() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(EventError::Unexpected),
    }
}

#[cfg(test)]
mod tests;
