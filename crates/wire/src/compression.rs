//! The compressed protocol: frames around the byte stream of packets.
//!
//! A frame has a header of seven bytes (length in three, sequence number, length before compression in three; 0: the body is
//! not compressed) and may hold any part of the stream, but each command has to begin a frame with number 0: servers drop
//! what stands behind a command in its frame (MySQL manual, "Compressed Packet"; both servers' `net_serv.cc`).

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, Operation};
use zstd::zstd_safe::DParameter;

use super::capability::Capabilities;
use super::packet::PacketSplitter;

/// Bytes of a frame's header.
pub const COMPRESSED_HEADER_BYTES: usize = 7;
/// Shorter bodies are left as they are, as both servers do (`MIN_COMPRESS_LENGTH`).
const MIN_COMPRESS_LENGTH: usize = 50;
/// Most bytes in a frame.
const MAX_FRAME_BODY: usize = 0xFF_FFFF;
/// A frame holds 16 MiB at most, so no window need be larger.
const WINDOW_LOG: u32 = 24;
/// zstd's level where none is asked for, as MySQL's clients have it.
pub const DEFAULT_ZSTD_LEVEL: u8 = 3;

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionAlgorithm {
    /// Both servers have it.
    Zlib,
    /// MySQL's; with the level that the client asks for.
    Zstd(i32),
}

impl CompressionAlgorithm {
    /// The flags by which two sides agree on one.
    pub const FLAGS: Capabilities = Capabilities::COMPRESS.union(Capabilities::ZSTD_COMPRESSION);

    /// What two sides use that agreed on these capabilities; `level` is the login's. zlib goes first, as in MySQL.
    #[must_use]
    pub fn negotiated(
        capabilities: Capabilities,
        level: Option<u8>,
    ) -> Option<CompressionAlgorithm> {
        if capabilities.contains(Capabilities::COMPRESS) {
            Some(CompressionAlgorithm::Zlib)
        } else if capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            let level = level.filter(|level| (1..=22).contains(level));
            Some(CompressionAlgorithm::Zstd(i32::from(
                level.unwrap_or(DEFAULT_ZSTD_LEVEL),
            )))
        } else {
            None
        }
    }
}

/// A frame that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The body is no stream of the algorithm that was agreed on.
    #[error("a compressed frame is malformed")]
    Body,
    /// The body is longer or shorter than its header says.
    #[error("a compressed frame is not as long as its header says")]
    Length,
}

/// Reads frames, in whatever pieces they arrive; holds what was given and not asked for yet, and a window.
#[derive(Debug)]
pub struct CompressionFrameReader {
    algorithm: CompressionAlgorithm,
    input: Vec<u8>,
    consumed: usize,
    state: FrameReaderState,
    seq: u8,
}

enum FrameReaderState {
    Header,
    Uncompressed {
        remaining: usize,
    },
    Compressed {
        decoder: Box<dyn BlockDecoder>,
        input_remaining: usize,
        output_remaining: usize,
        /// The algorithm's own stream has ended.
        ended: bool,
    },
}

impl std::fmt::Debug for FrameReaderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FrameReaderState::Header => "Header",
            FrameReaderState::Uncompressed { .. } => "Stored",
            FrameReaderState::Compressed { .. } => "Packed",
        })
    }
}

/// One algorithm's decoder: takes some input, gives some output.
trait BlockDecoder: Send + Sync {
    fn decode(&mut self, input: &[u8], into: &mut [u8]) -> Result<DecodedBlock, CompressionError>;
}

struct DecodedBlock {
    consumed: usize,
    produced: usize,
    ended: bool,
}

struct ZlibDecoder(Decompress);

impl BlockDecoder for ZlibDecoder {
    fn decode(&mut self, input: &[u8], into: &mut [u8]) -> Result<DecodedBlock, CompressionError> {
        let (read, written) = (self.0.total_in(), self.0.total_out());
        let status = self
            .0
            .decompress(input, into, FlushDecompress::None)
            .map_err(|_| CompressionError::Body)?;
        Ok(DecodedBlock {
            consumed: usize::try_from(self.0.total_in() - read).unwrap_or(0),
            produced: usize::try_from(self.0.total_out() - written).unwrap_or(0),
            ended: status == Status::StreamEnd,
        })
    }
}

struct ZstdDecoder(Decoder<'static>);

impl BlockDecoder for ZstdDecoder {
    fn decode(&mut self, input: &[u8], into: &mut [u8]) -> Result<DecodedBlock, CompressionError> {
        let status = self
            .0
            .run_on_buffers(input, into)
            .map_err(|_| CompressionError::Body)?;
        Ok(DecodedBlock {
            consumed: status.bytes_read,
            produced: status.bytes_written,
            ended: status.remaining == 0,
        })
    }
}

impl CompressionFrameReader {
    /// Starts between two frames.
    #[must_use]
    pub fn new(algorithm: CompressionAlgorithm) -> CompressionFrameReader {
        CompressionFrameReader {
            algorithm,
            input: Vec::new(),
            consumed: 0,
            state: FrameReaderState::Header,
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
        self.input.drain(..self.consumed);
        self.consumed = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Unpacks into `into`; 0 bytes: more has to be fed.
    ///
    /// # Errors
    /// When a frame cannot be read: nothing behind it can.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, CompressionError> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let waiting = self.input.get(self.consumed..).unwrap_or_default();
            let mut stuck = false;
            let (taken, given) = match &mut self.state {
                FrameReaderState::Header => match parse_frame_header(waiting) {
                    Some((len, seq, plain)) => {
                        self.seq = seq;
                        self.state = match plain {
                            0 => FrameReaderState::Uncompressed { remaining: len },
                            _ => FrameReaderState::Compressed {
                                decoder: new_decoder(self.algorithm)?,
                                input_remaining: len,
                                output_remaining: plain,
                                ended: false,
                            },
                        };
                        (COMPRESSED_HEADER_BYTES, 0)
                    }
                    None => {
                        stuck = true;
                        (0, 0)
                    }
                },
                FrameReaderState::Uncompressed { remaining: 0 } => {
                    self.state = FrameReaderState::Header;
                    continue;
                }
                FrameReaderState::Uncompressed { remaining: left } => {
                    let len = (*left).min(waiting.len()).min(into.len());
                    stuck = len == 0;
                    let from = waiting.get(..len).unwrap_or_default();
                    into.get_mut(..len)
                        .unwrap_or_default()
                        .copy_from_slice(from);
                    *left -= len;
                    (len, len)
                }
                FrameReaderState::Compressed {
                    input_remaining: 0,
                    output_remaining: 0,
                    ended: true,
                    ..
                } => {
                    self.state = FrameReaderState::Header;
                    continue;
                }
                FrameReaderState::Compressed {
                    decoder,
                    input_remaining: left_in,
                    output_remaining: left_out,
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
                    let stands = decoded.consumed + decoded.produced == 0;
                    if decoded.produced > *left_out || stands && !decoded.ended && *left_in == 0 {
                        return Err(CompressionError::Length);
                    }
                    if stands && !input.is_empty() {
                        return Err(CompressionError::Body);
                    }
                    *left_in -= decoded.consumed;
                    *left_out -= decoded.produced;
                    *ended |= decoded.ended;
                    stuck = decoded.consumed == 0 && !*ended;
                    if *ended && *left_out > 0 {
                        return Err(CompressionError::Length);
                    }
                    (decoded.consumed, decoded.produced)
                }
            };
            self.consumed += taken;
            if given > 0 {
                return Ok(given);
            }
            if stuck {
                if self.consumed == self.input.len() {
                    self.input = Vec::new();
                    self.consumed = 0;
                }
                return Ok(0);
            }
        }
    }
}

fn parse_frame_header(bytes: &[u8]) -> Option<(usize, u8, usize)> {
    let [a, b, c, seq, x, y, z] = *bytes.first_chunk()?;
    let int = |low: u8, middle: u8, high: u8| {
        usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16
    };
    Some((int(a, b, c), seq, int(x, y, z)))
}

fn new_decoder(algorithm: CompressionAlgorithm) -> Result<Box<dyn BlockDecoder>, CompressionError> {
    match algorithm {
        CompressionAlgorithm::Zlib => Ok(Box::new(ZlibDecoder(Decompress::new(true)))),
        CompressionAlgorithm::Zstd(_) => {
            let decoder = Decoder::new().and_then(|mut decoder| {
                decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
                Ok(decoder)
            });
            decoder
                .map(|decoder| Box::new(ZstdDecoder(decoder)) as Box<dyn BlockDecoder>)
                .map_err(|_| CompressionError::Body)
        }
    }
}

/// Makes frames.
#[derive(Debug)]
pub struct CompressionFrameWriter {
    algorithm: CompressionAlgorithm,
    /// Where the stream holds commands, the packets that each begin a frame.
    command_packets: Option<PacketSplitter>,
    /// The last packet's sequence number, if the other side has not spoken since.
    last_packet_seq: Option<u8>,
    seq: u8,
    origins: FrameOrigins,
}

/// From which frames of another connection the last frames were made.
#[derive(Clone, Debug)]
struct FrameOrigins {
    by_seq: [u8; 256],
    current: u8,
}

/// What compresses, kept from frame to frame.
#[derive(Default)]
pub struct FrameCompressor {
    zlib: Option<Compress>,
}

impl std::fmt::Debug for FrameCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressor")
    }
}

impl CompressionFrameWriter {
    /// Starts between two packets; `command_packets`: the stream goes to a server.
    #[must_use]
    pub fn new(algorithm: CompressionAlgorithm, commands: bool) -> CompressionFrameWriter {
        CompressionFrameWriter {
            algorithm,
            command_packets: commands.then(PacketSplitter::new),
            last_packet_seq: None,
            seq: 0,
            origins: FrameOrigins {
                by_seq: [0; 256],
                current: 0,
            },
        }
    }

    /// What is packed from here on came in the frame with this number.
    pub fn set_origin_seq(&mut self, seq: u8) {
        self.origins.current = seq;
    }

    /// A side that answers goes on from the number of the last frame that it has read. With which number it would have answered
    /// whoever sent what was packed here, where it answers with this one.
    #[must_use]
    pub fn origin_reply_seq(&self, seq: u8) -> u8 {
        let read = usize::from(seq.wrapping_sub(1));
        let origin = self.origins.by_seq.get(read).copied().unwrap_or_default();
        origin.wrapping_add(1)
    }

    /// The next frame gets this number.
    pub fn set_next_seq(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// The other side has spoken, last in a frame with this number. In the middle of a command that is no answer to it, and its
    /// frames go on from each other.
    pub fn received(&mut self, seq: u8) {
        if self
            .command_packets
            .as_ref()
            .is_some_and(|it| !it.at_boundary())
        {
            return;
        }
        self.seq = seq.wrapping_add(1);
        self.last_packet_seq = None;
    }

    /// Appends to `out` the frames of these bytes.
    pub fn pack(&mut self, bytes: &[u8], compressor: &mut FrameCompressor, out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = self.bytes_before_command(rest);
            let (own, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            for body in own.chunks(MAX_FRAME_BODY) {
                self.write_frame(body, compressor, out);
            }
            rest = behind;
        }
    }

    /// How many bytes stand in front of the next command; if one begins here, numbers begin anew.
    fn bytes_before_command(&mut self, bytes: &[u8]) -> usize {
        let Some(splitter) = &mut self.command_packets else {
            return bytes.len();
        };
        let mut len = 0;
        while let Some(rest) = bytes.get(len..).filter(|rest| !rest.is_empty()) {
            // A header that is cut in two: what has come of it waits for the rest in its own frame.
            let mut ahead = splitter.clone();
            let part = ahead.next(rest);
            if let Some(header) = part.start {
                // Numbers wrap around in a long LOCAL INFILE, while the server is silent.
                let goes_on = self.last_packet_seq == Some(u8::MAX);
                if header.seq == 0 && !goes_on {
                    if len > 0 {
                        return len;
                    }
                    self.seq = 0;
                }
            }
            *splitter = ahead;
            if let Some(header) = part.start {
                self.last_packet_seq = Some(header.seq);
            }
            len += part.consumed;
        }
        len
    }

    fn write_frame(&mut self, body: &[u8], compressor: &mut FrameCompressor, out: &mut Vec<u8>) {
        let packed = match body.len() {
            0..MIN_COMPRESS_LENGTH => None,
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
        if let Some(origin) = self.origins.by_seq.get_mut(usize::from(self.seq)) {
            *origin = self.origins.current;
        }
        self.seq = self.seq.wrapping_add(1);
    }
}

impl FrameCompressor {
    fn compress(&mut self, algorithm: CompressionAlgorithm, body: &[u8]) -> Option<Vec<u8>> {
        match algorithm {
            CompressionAlgorithm::Zlib => {
                let zlib = self
                    .zlib
                    .get_or_insert_with(|| Compress::new(Compression::default(), true));
                zlib.reset();
                // What needs more room than this is not worth it.
                let mut packed = Vec::with_capacity(body.len());
                let status = zlib.compress_vec(body, &mut packed, FlushCompress::Finish);
                matches!(status, Ok(Status::StreamEnd)).then_some(packed)
            }
            CompressionAlgorithm::Zstd(level) => zstd::bulk::compress(body, level).ok(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
