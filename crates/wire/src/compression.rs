//! The compressed protocol: frames around the byte stream of packets.
//!
//! A frame has a header of seven bytes (length in three, sequence number, length before compression in three; 0: the body is
//! not compressed) and may hold any part of the stream, but each command has to begin a frame with number 0: servers drop
//! what stands behind a command in its frame (MySQL manual, "Compressed Packet"; both servers' `net_serv.cc`).

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, Operation};
use zstd::zstd_safe::DParameter;

use super::capability::Capabilities;
use super::frame::Splitter;

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 7;
/// Shorter bodies are left as they are, as both servers do (`MIN_COMPRESS_LENGTH`).
const LEAST: usize = 50;
/// Most bytes in a frame.
const MOST: usize = 0xFF_FFFF;
/// A frame holds 16 MiB at most, so no window need be larger.
const WINDOW_LOG: u32 = 24;
/// zstd's level where none is asked for, as MySQL's clients have it.
pub const USUAL_LEVEL: u8 = 3;

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Both servers have it.
    Zlib,
    /// MySQL's; with the level that the client asks for.
    Zstd(i32),
}

impl Algorithm {
    /// The flags by which two sides agree on one.
    pub const FLAGS: Capabilities = Capabilities::COMPRESS.union(Capabilities::ZSTD_COMPRESSION);

    /// What two sides use that agreed on these capabilities; `level` is the login's. zlib goes first, as in MySQL.
    #[must_use]
    pub fn agreed(capabilities: Capabilities, level: Option<u8>) -> Option<Algorithm> {
        if capabilities.contains(Capabilities::COMPRESS) {
            Some(Algorithm::Zlib)
        } else if capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            let level = level.filter(|level| (1..=22).contains(level));
            Some(Algorithm::Zstd(i32::from(level.unwrap_or(USUAL_LEVEL))))
        } else {
            None
        }
    }
}

/// A frame that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The body is no stream of the algorithm that was agreed on.
    #[error("a compressed frame is malformed")]
    Body,
    /// The body is longer or shorter than its header says.
    #[error("a compressed frame is not as long as its header says")]
    Length,
}

/// Reads frames, in whatever pieces they arrive; holds what was given and not asked for yet, and a window.
#[derive(Debug)]
pub struct Unpacker {
    algorithm: Algorithm,
    input: Vec<u8>,
    at: usize,
    state: State,
    seq: u8,
}

enum State {
    Header,
    Stored {
        left: usize,
    },
    Packed {
        decoder: Box<dyn Decode>,
        left_in: usize,
        left_out: usize,
        /// The algorithm's own stream has ended.
        ended: bool,
    },
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            State::Header => "Header",
            State::Stored { .. } => "Stored",
            State::Packed { .. } => "Packed",
        })
    }
}

/// One algorithm's decoder: takes some input, gives some output.
trait Decode: Send + Sync {
    fn decode(&mut self, input: &[u8], into: &mut [u8]) -> Result<Decoded, Unreadable>;
}

struct Decoded {
    taken: usize,
    given: usize,
    ended: bool,
}

struct Zlib(Decompress);

impl Decode for Zlib {
    fn decode(&mut self, input: &[u8], into: &mut [u8]) -> Result<Decoded, Unreadable> {
        let (read, written) = (self.0.total_in(), self.0.total_out());
        let status = self
            .0
            .decompress(input, into, FlushDecompress::None)
            .map_err(|_| Unreadable::Body)?;
        Ok(Decoded {
            taken: usize::try_from(self.0.total_in() - read).unwrap_or(0),
            given: usize::try_from(self.0.total_out() - written).unwrap_or(0),
            ended: status == Status::StreamEnd,
        })
    }
}

struct Zstd(Decoder<'static>);

impl Decode for Zstd {
    fn decode(&mut self, input: &[u8], into: &mut [u8]) -> Result<Decoded, Unreadable> {
        let status = self
            .0
            .run_on_buffers(input, into)
            .map_err(|_| Unreadable::Body)?;
        Ok(Decoded {
            taken: status.bytes_read,
            given: status.bytes_written,
            ended: status.remaining == 0,
        })
    }
}

impl Unpacker {
    /// Starts between two frames.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Unpacker {
        Unpacker {
            algorithm,
            input: Vec::new(),
            at: 0,
            state: State::Header,
            seq: 0,
        }
    }

    /// The sequence number of the last frame that was begun.
    #[must_use]
    pub fn seq(&self) -> u8 {
        self.seq
    }

    /// Takes bytes as they come from the other side.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.drain(..self.at);
        self.at = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Unpacks into `into`; 0 bytes: more has to be fed.
    ///
    /// # Errors
    /// When a frame cannot be read: nothing behind it can.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Unreadable> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let waiting = self.input.get(self.at..).unwrap_or_default();
            let mut stuck = false;
            let (taken, given) = match &mut self.state {
                State::Header => match header(waiting) {
                    Some((len, seq, plain)) => {
                        self.seq = seq;
                        self.state = match plain {
                            0 => State::Stored { left: len },
                            _ => State::Packed {
                                decoder: decoder(self.algorithm)?,
                                left_in: len,
                                left_out: plain,
                                ended: false,
                            },
                        };
                        (HEADER_BYTES, 0)
                    }
                    None => {
                        stuck = true;
                        (0, 0)
                    }
                },
                State::Stored { left: 0 } => {
                    self.state = State::Header;
                    continue;
                }
                State::Stored { left } => {
                    let len = (*left).min(waiting.len()).min(into.len());
                    stuck = len == 0;
                    let from = waiting.get(..len).unwrap_or_default();
                    into.get_mut(..len)
                        .unwrap_or_default()
                        .copy_from_slice(from);
                    *left -= len;
                    (len, len)
                }
                State::Packed {
                    left_in: 0,
                    left_out: 0,
                    ended: true,
                    ..
                } => {
                    self.state = State::Header;
                    continue;
                }
                State::Packed {
                    decoder,
                    left_in,
                    left_out,
                    ended,
                } => {
                    let input = waiting
                        .get(..(*left_in).min(waiting.len()))
                        .unwrap_or_default();
                    // Behind the last byte the stream has an end of its own, and nothing else.
                    let mut none = [0];
                    let len = (*left_out).min(into.len());
                    let room = match len {
                        0 => &mut none[..],
                        _ => into.get_mut(..len).unwrap_or_default(),
                    };
                    let decoded = decoder.decode(input, room)?;
                    let stands = decoded.taken + decoded.given == 0;
                    if decoded.given > *left_out || stands && !decoded.ended && *left_in == 0 {
                        return Err(Unreadable::Length);
                    }
                    if stands && !input.is_empty() {
                        return Err(Unreadable::Body);
                    }
                    *left_in -= decoded.taken;
                    *left_out -= decoded.given;
                    *ended |= decoded.ended;
                    stuck = decoded.taken == 0 && !*ended;
                    if *ended && *left_out > 0 {
                        return Err(Unreadable::Length);
                    }
                    (decoded.taken, decoded.given)
                }
            };
            self.at += taken;
            if given > 0 {
                return Ok(given);
            }
            if stuck {
                if self.at == self.input.len() {
                    self.input = Vec::new();
                    self.at = 0;
                }
                return Ok(0);
            }
        }
    }
}

fn header(bytes: &[u8]) -> Option<(usize, u8, usize)> {
    let [a, b, c, seq, x, y, z] = *bytes.first_chunk()?;
    let int = |low: u8, middle: u8, high: u8| {
        usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16
    };
    Some((int(a, b, c), seq, int(x, y, z)))
}

fn decoder(algorithm: Algorithm) -> Result<Box<dyn Decode>, Unreadable> {
    match algorithm {
        Algorithm::Zlib => Ok(Box::new(Zlib(Decompress::new(true)))),
        Algorithm::Zstd(_) => {
            let decoder = Decoder::new().and_then(|mut decoder| {
                decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
                Ok(decoder)
            });
            decoder
                .map(|decoder| Box::new(Zstd(decoder)) as Box<dyn Decode>)
                .map_err(|_| Unreadable::Body)
        }
    }
}

/// Makes frames.
#[derive(Debug)]
pub struct Packer {
    algorithm: Algorithm,
    /// Where the stream holds commands, the packets that each begin a frame.
    commands: Option<Splitter>,
    /// The last packet's sequence number, if the other side has not spoken since.
    last: Option<u8>,
    seq: u8,
    origins: Origins,
}

/// From which frames of another connection the last frames were made.
#[derive(Clone, Debug)]
struct Origins {
    of: [u8; 256],
    now: u8,
}

/// What compresses, kept from frame to frame.
#[derive(Default)]
pub struct Compressor {
    zlib: Option<Compress>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressor")
    }
}

impl Packer {
    /// Starts between two packets; `commands`: the stream goes to a server.
    #[must_use]
    pub fn new(algorithm: Algorithm, commands: bool) -> Packer {
        Packer {
            algorithm,
            commands: commands.then(Splitter::new),
            last: None,
            seq: 0,
            origins: Origins {
                of: [0; 256],
                now: 0,
            },
        }
    }

    /// What is packed from here on came in the frame with this number.
    pub fn came_in(&mut self, seq: u8) {
        self.origins.now = seq;
    }

    /// A side that answers goes on from the number of the last frame that it has read. With which number it would have answered
    /// whoever sent what was packed here, where it answers with this one.
    #[must_use]
    pub fn answered(&self, seq: u8) -> u8 {
        let read = usize::from(seq.wrapping_sub(1));
        let origin = self.origins.of.get(read).copied().unwrap_or_default();
        origin.wrapping_add(1)
    }

    /// The next frame gets this number.
    pub fn go_on_from(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// The other side has spoken, last in a frame with this number. In the middle of a command that is no answer to it, and its
    /// frames go on from each other.
    pub fn heard(&mut self, seq: u8) {
        if self.commands.as_ref().is_some_and(|it| !it.at_boundary()) {
            return;
        }
        self.seq = seq.wrapping_add(1);
        self.last = None;
    }

    /// Appends to `out` the frames of these bytes.
    pub fn pack(&mut self, bytes: &[u8], compressor: &mut Compressor, out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = self.until_command(rest);
            let (own, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            for body in own.chunks(MOST) {
                self.frame(body, compressor, out);
            }
            rest = behind;
        }
    }

    /// How many bytes stand in front of the next command; if one begins here, numbers begin anew.
    fn until_command(&mut self, bytes: &[u8]) -> usize {
        let Some(splitter) = &mut self.commands else {
            return bytes.len();
        };
        let mut len = 0;
        while let Some(rest) = bytes.get(len..).filter(|rest| !rest.is_empty()) {
            // A header that is cut in two: what has come of it waits for the rest in its own frame.
            let mut ahead = splitter.clone();
            let part = ahead.next(rest);
            if let Some(header) = part.start {
                // Numbers wrap around in a long LOCAL INFILE, while the server is silent.
                let goes_on = self.last == Some(u8::MAX);
                if header.seq == 0 && !goes_on {
                    if len > 0 {
                        return len;
                    }
                    self.seq = 0;
                }
            }
            *splitter = ahead;
            if let Some(header) = part.start {
                self.last = Some(header.seq);
            }
            len += part.consumed;
        }
        len
    }

    fn frame(&mut self, body: &[u8], compressor: &mut Compressor, out: &mut Vec<u8>) {
        let packed = match body.len() {
            0..LEAST => None,
            _ => compressor
                .compress(self.algorithm, body)
                .filter(|packed| packed.len() < body.len()),
        };
        let (body, plain) = match &packed {
            Some(packed) => (&packed[..], body.len()),
            None => (body, 0),
        };
        let [a, b, c, ..] = body.len().to_le_bytes();
        let [x, y, z, ..] = plain.to_le_bytes();
        out.extend([a, b, c, self.seq, x, y, z]);
        out.extend_from_slice(body);
        if let Some(origin) = self.origins.of.get_mut(usize::from(self.seq)) {
            *origin = self.origins.now;
        }
        self.seq = self.seq.wrapping_add(1);
    }
}

impl Compressor {
    fn compress(&mut self, algorithm: Algorithm, body: &[u8]) -> Option<Vec<u8>> {
        match algorithm {
            Algorithm::Zlib => {
                let zlib = self
                    .zlib
                    .get_or_insert_with(|| Compress::new(Compression::default(), true));
                zlib.reset();
                // What needs more room than this is not worth it.
                let mut packed = Vec::with_capacity(body.len());
                let status = zlib.compress_vec(body, &mut packed, FlushCompress::Finish);
                matches!(status, Ok(Status::StreamEnd)).then_some(packed)
            }
            Algorithm::Zstd(level) => zstd::bulk::compress(body, level).ok(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
