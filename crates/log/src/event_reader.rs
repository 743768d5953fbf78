//! Parses the byte stream of a log into events. An event's first bytes decide how much of it is retained. The rest is only counted
//! and checksummed.
//!
//! Each step handles at most [`SLICE`] bytes, so that the caller can yield in between.

use flate2::Crc;

use super::error::EventError;
use super::payload_decompressor::PayloadDecompressor;
pub use super::payload_decompressor::SLICE;

/// Default limit of an event's size. MySQL accepts rows of 64 MiB by default, MariaDB of 16 (`max_allowed_packet`).
pub const EVENT_BYTES: usize = 65 * 1024 * 1024;
/// How many bytes of a body decide how much of it is retained. They include the table's name.
pub const FIRST_BYTES: usize = 600;
/// Size of an event's header. Offsets: timestamp 0, type 4, server id 5, length 9, log position 13, flags 17.
pub const HEADER_BYTES: usize = 19;
/// Follows an event if the log has checksums.
const CHECKSUM_BYTES: usize = 4;
/// Version, server version, timestamp and header length; after the lengths of other events, the checksum algorithm.
const MIN_FORMAT_BYTES: usize = 2 + 50 + 4 + 1 + 1;
/// A format description has some hundred bytes.
const MAX_FORMAT_BYTES: usize = 4 * 1024;
const FORMAT_DESCRIPTION: u8 = 15;
/// A compressed transaction of MySQL; it contains further events.
pub const TRANSACTION_PAYLOAD: u8 = 40;
const TABLE_MAP: u8 = 19;
/// Header flag: the server is writing to the file. The checksum excludes it.
const IN_USE: u16 = 1;
/// Header flag: the server generated the event for this stream.
const ARTIFICIAL: u16 = 0x20;

/// An event, as far as it is retained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEvent {
    /// The event type.
    pub event_type: u8,
    /// The header's flags.
    pub flags: u16,
    /// When the originating server wrote it, in seconds since 1970.
    pub timestamp: u32,
    /// The originating server's id.
    pub server_id: u32,
    /// The lower 32 bits of the event's end in the log; 0 if not given.
    pub log_pos: u32,
    /// The bytes after the header, without a checksum.
    pub body: Vec<u8>,
    /// True if the body is longer than what is retained.
    pub truncated: bool,
}

impl LogEvent {
    /// True if the server generated the event for this stream: the file does not contain it.
    #[must_use]
    pub fn is_artificial(&self) -> bool {
        self.flags & ARTIFICIAL != 0
    }
}

/// How much of a body to retain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRetention {
    /// All of it; longer than the limit is an error.
    All,
    /// At most this many bytes.
    First(usize),
}

/// Decides how much of an event to retain, from its type and the first bytes of its body.
pub trait RetentionPolicy: Fn(u8, &[u8]) -> BodyRetention + Send + Sync {}

impl<F: Fn(u8, &[u8]) -> BodyRetention + Send + Sync> RetentionPolicy for F {}

/// The result of a step.
#[derive(Debug, Default)]
pub struct ReaderStep {
    /// Input bytes consumed.
    pub taken: usize,
    /// Bytes processed: consumed or decompressed.
    pub handled: usize,
    /// A complete event.
    pub event: Option<LogEvent>,
}

/// Parses bytes into events.
#[derive(Debug)]
pub struct EventReader {
    max_event_bytes: usize,
    checksums: bool,
    /// Inside a compressed transaction events have no checksums.
    in_payload: bool,
    state: ReaderState,
}

#[derive(Debug)]
enum ReaderState {
    Header(Vec<u8>),
    Body(Box<EventBody>),
    Payload(Box<CompressedPayload>),
}

#[derive(Debug)]
struct EventBody {
    event: LogEvent,
    checksum: EventChecksum,
    /// Size of the body, and how many of its bytes are still to come.
    length: usize,
    remaining: usize,
    retained: Option<usize>,
}

#[derive(Debug)]
struct CompressedPayload {
    checksum: EventChecksum,
    remaining: usize,
    decompressor: PayloadDecompressor,
    reader: Box<EventReader>,
    /// An event that may commit: returned once there is another, or the checksum was right.
    last_event: Option<LogEvent>,
    /// An event that is returned before any further input is read.
    ready_event: Option<LogEvent>,
}

impl CompressedPayload {
    fn is_busy(&self) -> bool {
        // Without a checksum no further byte arrives that would end it.
        let all_there = self.remaining == 0 && self.checksum.is_complete();
        self.ready_event.is_some() || self.is_unpacking() || all_there
    }

    /// True if the received bytes contain more.
    fn is_unpacking(&self) -> bool {
        self.decompressor.is_busy() || self.reader.is_busy()
    }

    /// Reads decompressed bytes, or decompresses more. Returns how many bytes were consumed, how many processed, and an event.
    fn step(
        &mut self,
        bytes: &[u8],
        policy: &impl RetentionPolicy,
    ) -> Result<(usize, usize, Option<LogEvent>), EventError> {
        let unread = self.decompressor.unread();
        if !unread.is_empty() {
            let step = self.reader.step(unread, policy)?;
            self.decompressor.consume(step.taken);
            return Ok((0, step.handled, step.event));
        }
        let (taken, handled) = self.decompressor.step(bytes)?;
        Ok((taken, handled, None))
    }

    fn end(&self) -> Result<(), EventError> {
        self.decompressor.finish()?;
        match self.reader.is_at_boundary() {
            true => Ok(()),
            false => Err(EventError::Unexpected),
        }
    }

    /// Returns the next due event. Table maps and row events are due at once, since tables decide how much of row events is retained.
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

/// An event's checksum: the expected, the received and the computed one.
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

    /// Consumes the missing bytes of the checksum; true if it is complete.
    fn receive(&mut self, bytes: &[u8], taken: &mut usize) -> bool {
        let missing = self.length - self.received.len();
        let here = bytes.get(..missing.min(bytes.len())).unwrap_or_default();
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
    /// Reads a log from its beginning; its format description says whether events have checksums. Events retained whole may have at most
    /// `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> EventReader {
        EventReader::with_options(most, false, false)
    }

    /// Reads events that are known to have checksums, or not.
    #[must_use]
    pub fn with_checksums(most: usize, checksums: bool) -> EventReader {
        EventReader::with_options(most, checksums, false)
    }

    /// The events of a compressed transaction have no checksums (MySQL worklog 3549).
    fn for_payload(most: usize) -> EventReader {
        EventReader::with_options(most, false, true)
    }

    fn with_options(most: usize, checksums: bool, in_payload: bool) -> EventReader {
        EventReader {
            max_event_bytes: most,
            checksums,
            in_payload,
            state: ReaderState::Header(Vec::new()),
        }
    }

    /// True between events.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        matches!(&self.state, ReaderState::Header(bytes) if bytes.is_empty())
    }

    /// True if there is work to do without further input.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(&self.state, ReaderState::Payload(payload) if payload.is_busy())
    }

    /// Processes at most [`SLICE`] of these bytes.
    ///
    /// # Errors
    /// When they are not valid events, or one is too long.
    pub fn step(
        &mut self,
        bytes: &[u8],
        policy: &impl RetentionPolicy,
    ) -> Result<ReaderStep, EventError> {
        let bytes = bytes.get(..SLICE).unwrap_or(bytes);
        let mut step = ReaderStep::default();
        match &mut self.state {
            ReaderState::Header(header) => {
                let missing = (HEADER_BYTES - header.len()).min(bytes.len());
                header.extend_from_slice(bytes.get(..missing).unwrap_or_default());
                step.taken = missing;
                if header.len() == HEADER_BYTES {
                    let header = std::mem::take(header);
                    self.state = self.begin_body(&header)?;
                    // An event may consist of a header only.
                    self.finish_event(&[], policy, &mut step)?;
                }
            }
            ReaderState::Body(body) => {
                step.taken = body.take(bytes, self.max_event_bytes, policy)?;
                let rest = bytes.get(step.taken..).unwrap_or_default();
                self.finish_event(rest, policy, &mut step)?;
            }
            ReaderState::Payload(payload) if payload.ready_event.is_some() => {
                step.event = payload.ready_event.take();
            }
            ReaderState::Payload(payload) => {
                let here = payload.remaining.min(bytes.len());
                let here = bytes.get(..here).unwrap_or_default();
                let (taken, handled, event) = payload.step(here, policy)?;
                payload
                    .checksum
                    .update(here.get(..taken).unwrap_or_default());
                payload.remaining -= taken;
                (step.taken, step.handled) = (taken, handled);
                if let Some(event) = event {
                    step.event = payload.release(event);
                } else {
                    let rest = bytes.get(taken..).unwrap_or_default();
                    self.finish_event(rest, policy, &mut step)?;
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
        let is_description = kind == FORMAT_DESCRIPTION;
        if self.in_payload && matches!(kind, FORMAT_DESCRIPTION | TRANSACTION_PAYLOAD) {
            return Err(EventError::Unexpected);
        }
        let checksum = if self.checksums || is_description {
            CHECKSUM_BYTES
        } else {
            0
        };
        let length = (number(9) as usize).checked_sub(HEADER_BYTES + checksum);
        let length = length.ok_or(EventError::Unexpected)?;
        let fits = (MIN_FORMAT_BYTES..MAX_FORMAT_BYTES).contains(&length);
        if is_description && !fits {
            return Err(EventError::Unexpected);
        }
        let event_checksum = EventChecksum::new(header, flags, checksum);
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
                checksum: event_checksum,
                remaining: length,
                decompressor: PayloadDecompressor::new(self.max_event_bytes),
                reader: Box::new(EventReader::for_payload(self.max_event_bytes)),
                last_event: Some(event),
                ready_event: None,
            })));
        }
        Ok(ReaderState::Body(Box::new(EventBody {
            event,
            checksum: event_checksum,
            length,
            remaining: length,
            retained: None,
        })))
    }

    /// Ends an event whose body is complete, once its checksum is.
    fn finish_event(
        &mut self,
        rest: &[u8],
        policy: &impl RetentionPolicy,
        step: &mut ReaderStep,
    ) -> Result<(), EventError> {
        match &mut self.state {
            ReaderState::Body(body) if body.remaining == 0 => {
                body.decide_retention(self.max_event_bytes, policy)?;
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
    /// Consumes bytes of the body and retains what is needed; returns how many were consumed.
    fn take(
        &mut self,
        bytes: &[u8],
        most: usize,
        policy: &impl RetentionPolicy,
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
            let missing = (first - self.event.body.len()).min(rest.len());
            let (head, remainder) = rest.split_at(missing);
            self.event.body.extend_from_slice(head);
            if self.event.body.len() < first {
                return Ok(here.len());
            }
            self.decide_retention(most, policy)?;
            rest = remainder;
        }
        let room = self
            .retained
            .unwrap_or(0)
            .saturating_sub(self.event.body.len());
        let retained_bytes = rest.get(..room.min(rest.len())).unwrap_or_default();
        self.event.body.extend_from_slice(retained_bytes);
        Ok(here.len())
    }

    fn decide_retention(
        &mut self,
        most: usize,
        policy: &impl RetentionPolicy,
    ) -> Result<(), EventError> {
        if self.retained.is_some() {
            return Ok(());
        }
        let retained_length = match policy(self.event.event_type, &self.event.body) {
            _ if self.event.event_type == FORMAT_DESCRIPTION => self.length,
            BodyRetention::All if self.length > most => return Err(EventError::TooLong(most)),
            BodyRetention::All => self.length,
            BodyRetention::First(bytes) => bytes.min(self.length),
        };
        self.event.body.truncate(retained_length);
        self.event.truncated = retained_length < self.length;
        self.retained = Some(retained_length);
        Ok(())
    }
}

/// Whether events of the log have checksums: the description's last byte. CRC32 is the only algorithm.
fn has_checksums(body: &[u8]) -> Result<bool, EventError> {
    match body.last() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(EventError::Unexpected),
    }
}

#[cfg(test)]
mod tests;
