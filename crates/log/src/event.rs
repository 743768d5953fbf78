//! Events of a log, made of its bytes as they stream by. How much of an event is kept is decided by its first bytes: the rest is counted,
//! goes into the checksum, and is gone.
//!
//! Each step handles at most [`SLICE`] bytes, so that whoever drives it can let others have their turn in between.

use flate2::Crc;

use super::error::EventError;
use super::packed::Packed;
pub use super::packed::SLICE;

/// The longest event that is read, where nothing else is set: MySQL takes rows of 64 MiB by default, MariaDB of 16
/// (`max_allowed_packet`).
pub const EVENT_BYTES: usize = 65 * 1024 * 1024;
/// Bytes of a body by which it is decided how much of it is kept: the names of a table stand among them.
pub const FIRST_BYTES: usize = 600;
/// An event's own header: its time stands at 0, its type at 4, its server at 5, its length at 9, its end in the log at 13, its flags at 17.
pub const HEADER: usize = 19;
/// Behind an event, where the log has checksums.
const CHECKSUM: usize = 4;
/// Version, server's version, time and length of headers; behind the lengths of other events the algorithm of checksums.
const LEAST_FORMAT: usize = 2 + 50 + 4 + 1 + 1;
/// A description of the format is some hundred bytes long.
const MOST_FORMAT: usize = 4 * 1024;
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
pub struct Event {
    /// Its type.
    pub kind: u8,
    /// Flags of the header.
    pub flags: u16,
    /// When it was written, in seconds, on the server that it is from.
    pub written: u32,
    /// The number of the server that it is from.
    pub server: u32,
    /// The lower half of where it ends in the log; 0: not told.
    pub log_pos: u32,
    /// What stands behind the header, without a checksum.
    pub body: Vec<u8>,
    /// The body went on, and that was not kept.
    pub cut: bool,
}

impl Event {
    /// True where the server made it for this stream: it does not stand in the file.
    #[must_use]
    pub fn is_artificial(&self) -> bool {
        self.flags & ARTIFICIAL != 0
    }
}

/// How much of a body is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of it, if it is not longer than the limit.
    All,
    /// So many bytes at most.
    First(usize),
}

/// Tells how much is wanted of an event of this type, whose body begins so.
pub trait Wants: Fn(u8, &[u8]) -> Keep + Send + Sync {}

impl<F: Fn(u8, &[u8]) -> Keep + Send + Sync> Wants for F {}

/// What a step did.
#[derive(Debug, Default)]
pub struct Step {
    /// So many of the bytes were taken.
    pub taken: usize,
    /// So many were handled: taken, or unpacked.
    pub handled: usize,
    /// An event that is complete.
    pub event: Option<Event>,
}

/// Makes events of bytes.
#[derive(Debug)]
pub struct Reader {
    most: usize,
    checksums: bool,
    /// The events of a compressed transaction hold none.
    within: bool,
    at: At,
}

#[derive(Debug)]
enum At {
    Header(Vec<u8>),
    Body(Box<Body>),
    Payload(Box<Payload>),
}

/// An event whose header is there.
#[derive(Debug)]
struct Body {
    event: Event,
    tail: Tail,
    /// Bytes of the body, and how many of them are still to come.
    length: usize,
    left: usize,
    keep: Option<usize>,
}

/// A compressed transaction.
#[derive(Debug)]
struct Payload {
    tail: Tail,
    left: usize,
    packed: Packed,
    /// What it unpacks to.
    events: Box<Reader>,
    /// An event that may commit: handed on when there is another, or the checksum was right.
    held: Option<Event>,
    /// An event that is handed on before any other is looked at.
    ready: Option<Event>,
}

impl Payload {
    fn is_busy(&self) -> bool {
        // Without a checksum no further byte comes that would end it.
        let all_there = self.left == 0 && self.tail.is_whole();
        self.ready.is_some() || self.is_unpacking() || all_there
    }

    /// There is more in the bytes that have come.
    fn is_unpacking(&self) -> bool {
        self.packed.is_busy() || self.events.is_busy()
    }

    /// Reads what was unpacked, or unpacks some more. Returns how many bytes were taken, how many were handled, and an event.
    fn step(
        &mut self,
        bytes: &[u8],
        wants: &impl Wants,
    ) -> Result<(usize, usize, Option<Event>), EventError> {
        let unread = self.packed.unread();
        if !unread.is_empty() {
            let step = self.events.step(unread, wants)?;
            self.packed.advance(step.taken);
            return Ok((0, step.handled, step.event));
        }
        let (taken, handled) = self.packed.step(bytes)?;
        Ok((taken, handled, None))
    }

    /// All has come.
    fn end(&self) -> Result<(), EventError> {
        self.packed.end()?;
        match self.events.is_between() {
            true => Ok(()),
            false => Err(EventError::Unexpected),
        }
    }

    /// What is handed on when this one has come: tables and rows at once, since what is wanted of rows hangs on the tables.
    fn next(&mut self, event: Event) -> Option<Event> {
        if !matches!(event.kind, TABLE_MAP | 23..=25 | 30..=32 | 39) {
            return self.held.replace(event);
        }
        match self.held.take() {
            None => Some(event),
            held => {
                self.ready = Some(event);
                held
            }
        }
    }
}

/// The checksum: what it should be, and what there is of it.
#[derive(Debug)]
struct Tail {
    crc: Crc,
    written: Vec<u8>,
    length: usize,
    checked: bool,
}

impl Tail {
    fn new(header: &[u8], flags: u16, length: usize) -> Tail {
        let mut crc = Crc::new();
        crc.update(header.get(..HEADER - 2).unwrap_or_default());
        crc.update(&(flags & !IN_USE).to_le_bytes());
        Tail {
            crc,
            written: Vec::new(),
            length,
            checked: length > 0,
        }
    }

    fn pass(&mut self, bytes: &[u8]) {
        if self.checked {
            self.crc.update(bytes);
        }
    }

    /// Takes what is lacking of the checksum; true when it is all there.
    fn take(&mut self, bytes: &[u8], taken: &mut usize) -> bool {
        let lacking = self.length - self.written.len();
        let here = bytes.get(..lacking.min(bytes.len())).unwrap_or_default();
        self.written.extend_from_slice(here);
        *taken += here.len();
        self.is_whole()
    }

    fn is_whole(&self) -> bool {
        self.written.len() == self.length
    }

    fn verify(&self) -> Result<(), EventError> {
        if self.checked && self.written != self.crc.sum().to_le_bytes() {
            return Err(EventError::Checksum);
        }
        Ok(())
    }
}

impl Reader {
    /// Events behind the beginning of a log: what checksums they have it says itself. None that is wanted whole may have more
    /// than `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Reader {
        Reader::of(most, false, false)
    }

    /// Events of which it is known whether they have checksums.
    #[must_use]
    pub fn checked(most: usize, checksums: bool) -> Reader {
        Reader::of(most, checksums, false)
    }

    /// The events of a compressed transaction have no checksums (MySQL worklog 3549).
    fn within(most: usize) -> Reader {
        Reader::of(most, false, true)
    }

    fn of(most: usize, checksums: bool, within: bool) -> Reader {
        Reader {
            most,
            checksums,
            within,
            at: At::Header(Vec::new()),
        }
    }

    /// No event is begun.
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(&self.at, At::Header(bytes) if bytes.is_empty())
    }

    /// There is something to do even without further bytes.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(&self.at, At::Payload(payload) if payload.is_busy())
    }

    /// Goes on with these bytes, at most [`SLICE`] of them.
    ///
    /// # Errors
    /// When they are no events, or one is too long.
    pub fn step(&mut self, bytes: &[u8], wants: &impl Wants) -> Result<Step, EventError> {
        let bytes = bytes.get(..SLICE).unwrap_or(bytes);
        let mut step = Step::default();
        match &mut self.at {
            At::Header(header) => {
                let lacking = (HEADER - header.len()).min(bytes.len());
                header.extend_from_slice(bytes.get(..lacking).unwrap_or_default());
                step.taken = lacking;
                if header.len() == HEADER {
                    let header = std::mem::take(header);
                    self.at = self.begin(&header)?;
                    // An event may consist of its header.
                    self.finish(&[], wants, &mut step)?;
                }
            }
            At::Body(body) => {
                step.taken = body.take(bytes, self.most, wants)?;
                let rest = bytes.get(step.taken..).unwrap_or_default();
                self.finish(rest, wants, &mut step)?;
            }
            At::Payload(payload) if payload.ready.is_some() => {
                step.event = payload.ready.take();
            }
            At::Payload(payload) => {
                let here = payload.left.min(bytes.len());
                let here = bytes.get(..here).unwrap_or_default();
                let (taken, handled, event) = payload.step(here, wants)?;
                payload.tail.pass(here.get(..taken).unwrap_or_default());
                payload.left -= taken;
                (step.taken, step.handled) = (taken, handled);
                if let Some(event) = event {
                    step.event = payload.next(event);
                } else {
                    let rest = bytes.get(taken..).unwrap_or_default();
                    self.finish(rest, wants, &mut step)?;
                }
            }
        }
        step.handled = step.handled.max(step.taken);
        Ok(step)
    }

    fn begin(&self, header: &[u8]) -> Result<At, EventError> {
        let number = |at: usize| {
            let bytes = header.get(at..).and_then(|bytes| bytes.first_chunk());
            u32::from_le_bytes(*bytes.unwrap_or(&[0; 4]))
        };
        let kind = header.get(4).copied().unwrap_or_default();
        let [_, _, low, high] = number(15).to_le_bytes();
        let flags = u16::from_le_bytes([low, high]);
        let described = kind == FORMAT_DESCRIPTION;
        if self.within && matches!(kind, FORMAT_DESCRIPTION | TRANSACTION_PAYLOAD) {
            return Err(EventError::Unexpected);
        }
        let checksum = if self.checksums || described {
            CHECKSUM
        } else {
            0
        };
        let length = (number(9) as usize).checked_sub(HEADER + checksum);
        let length = length.ok_or(EventError::Unexpected)?;
        let fits = (LEAST_FORMAT..MOST_FORMAT).contains(&length);
        if described && !fits {
            return Err(EventError::Unexpected);
        }
        let tail = Tail::new(header, flags, checksum);
        let event = Event {
            kind,
            flags,
            written: number(0),
            server: number(5),
            log_pos: number(13),
            ..Event::default()
        };
        if kind == TRANSACTION_PAYLOAD {
            return Ok(At::Payload(Box::new(Payload {
                tail,
                left: length,
                packed: Packed::new(self.most),
                events: Box::new(Reader::within(self.most)),
                held: Some(event),
                ready: None,
            })));
        }
        Ok(At::Body(Box::new(Body {
            event,
            tail,
            length,
            left: length,
            keep: None,
        })))
    }

    /// Ends an event whose body is there, once its checksum is.
    fn finish(
        &mut self,
        rest: &[u8],
        wants: &impl Wants,
        step: &mut Step,
    ) -> Result<(), EventError> {
        match &mut self.at {
            At::Body(body) if body.left == 0 => {
                body.decide(self.most, wants)?;
                let ended = body.tail.take(rest, &mut step.taken);
                if body.event.kind == FORMAT_DESCRIPTION {
                    self.checksums = describes_checksums(&body.event.body)?;
                    body.tail.checked = self.checksums;
                }
                if ended {
                    body.tail.verify()?;
                    step.event = Some(std::mem::take(&mut body.event));
                    self.at = At::Header(Vec::new());
                }
            }
            At::Payload(payload) if payload.left == 0 && !payload.is_unpacking() => {
                if !payload.tail.take(rest, &mut step.taken) {
                    return Ok(());
                }
                payload.tail.verify()?;
                payload.end()?;
                step.event = payload.held.take();
                self.at = At::Header(Vec::new());
            }
            _ => {}
        }
        Ok(())
    }
}

impl Body {
    /// Takes what belongs to the body, and keeps what is wanted; returns how much it took.
    fn take(&mut self, bytes: &[u8], most: usize, wants: &impl Wants) -> Result<usize, EventError> {
        let here = bytes.get(..self.left.min(bytes.len())).unwrap_or_default();
        self.tail.pass(here);
        self.left -= here.len();
        let mut rest = here;
        if self.keep.is_none() {
            let first = match self.event.kind {
                FORMAT_DESCRIPTION => self.length,
                _ => self.length.min(FIRST_BYTES),
            };
            let lacking = (first - self.event.body.len()).min(rest.len());
            let (begins, behind) = rest.split_at(lacking);
            self.event.body.extend_from_slice(begins);
            if self.event.body.len() < first {
                return Ok(here.len());
            }
            self.decide(most, wants)?;
            rest = behind;
        }
        let room = self.keep.unwrap_or(0).saturating_sub(self.event.body.len());
        let kept = rest.get(..room.min(rest.len())).unwrap_or_default();
        self.event.body.extend_from_slice(kept);
        Ok(here.len())
    }

    fn decide(&mut self, most: usize, wants: &impl Wants) -> Result<(), EventError> {
        if self.keep.is_some() {
            return Ok(());
        }
        let keep = match wants(self.event.kind, &self.event.body) {
            _ if self.event.kind == FORMAT_DESCRIPTION => self.length,
            Keep::All if self.length > most => return Err(EventError::TooLong(most)),
            Keep::All => self.length,
            Keep::First(bytes) => bytes.min(self.length),
        };
        self.event.body.truncate(keep);
        self.event.cut = keep < self.length;
        self.keep = Some(keep);
        Ok(())
    }
}

/// Whether the events of the log have checksums: the description's last byte. There is no algorithm but CRC32.
fn describes_checksums(body: &[u8]) -> Result<bool, EventError> {
    match body.last() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(EventError::Unexpected),
    }
}

#[cfg(test)]
mod tests;
