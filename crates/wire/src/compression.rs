//! The compressed protocol: frames around the byte stream of packets.
//!
//! A frame has a header of seven bytes (length in three, sequence number, length before compression in three; 0: the body is
//! not compressed) and may hold any part of the stream, but each command has to begin a frame with number 0: servers drop
//! the bytes after a command in its frame (MySQL manual, "Compressed Packet"; both servers' `net_serv.cc`).

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, Operation};
use zstd::zstd_safe::DParameter;

use super::capability::Capabilities;
use super::packet::PacketSplitter;

/// Bytes of a frame's header.
pub const COMPRESSED_HEADER_BYTES: usize = 7;
/// Shorter bodies are not compressed, as in both servers (`MIN_COMPRESS_LENGTH`).
const MIN_COMPRESS_LENGTH: usize = 50;
/// Maximum body of a frame, in bytes.
const MAX_FRAME_BODY: usize = 0xFF_FFFF;
/// A frame holds 16 MiB at most, so no window need be larger.
const WINDOW_LOG: u32 = 24;
/// The zstd level where the client requests none, as in MySQL's clients.
pub const DEFAULT_ZSTD_LEVEL: u8 = 3;

/// The compression algorithm of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionAlgorithm {
    /// Supported by both servers.
    Zlib,
    /// MySQL's, with the level that the client requests.
    Zstd(i32),
}

impl CompressionAlgorithm {
    /// The flags that negotiate an algorithm.
    pub const FLAGS: Capabilities = Capabilities::COMPRESS.union(Capabilities::ZSTD_COMPRESSION);

    /// The algorithm of these negotiated capabilities; `level` is the login's. zlib is preferred, as in MySQL.
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

/// Why a frame cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The body is not of the negotiated algorithm.
    #[error("a compressed frame is malformed")]
    Body,
    /// The body's length differs from the one in its header.
    #[error("a compressed frame is not as long as its header says")]
    Length,
}

/// Reads frames from pieces of any size. Holds the input not read yet, and a decoder's window.
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

/// One algorithm's decoder: consumes some input, and produces some output.
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

    /// The sequence number of the last frame whose header was read.
    #[must_use]
    pub fn seq(&self) -> u8 {
        self.seq
    }

    /// Takes the next bytes from the other side.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.drain(..self.consumed);
        self.consumed = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Decompresses into `into`; returns 0 when more bytes have to be fed.
    ///
    /// # Errors
    /// When a frame cannot be read. No later frame can be.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, CompressionError> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let unread = self.input.get(self.consumed..).unwrap_or_default();
            let mut stuck = false;
            let (consumed, produced) = match &mut self.state {
                FrameReaderState::Header => match parse_frame_header(unread) {
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
                FrameReaderState::Uncompressed { remaining } => {
                    let len = (*remaining).min(unread.len()).min(into.len());
                    stuck = len == 0;
                    let from = unread.get(..len).unwrap_or_default();
                    into.get_mut(..len)
                        .unwrap_or_default()
                        .copy_from_slice(from);
                    *remaining -= len;
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
                    input_remaining,
                    output_remaining,
                    ended,
                } => {
                    let input = unread
                        .get(..(*input_remaining).min(unread.len()))
                        .unwrap_or_default();
                    // After the last output byte only the end of the compressed stream follows.
                    let mut none = [0];
                    let len = (*output_remaining).min(into.len());
                    let room = match len {
                        0 => &mut none[..],
                        _ => into.get_mut(..len).unwrap_or_default(),
                    };
                    let decoded = decoder.decode(input, room)?;
                    let no_progress = decoded.consumed + decoded.produced == 0;
                    if decoded.produced > *output_remaining
                        || no_progress && !decoded.ended && *input_remaining == 0
                    {
                        return Err(CompressionError::Length);
                    }
                    if no_progress && !input.is_empty() {
                        return Err(CompressionError::Body);
                    }
                    *input_remaining -= decoded.consumed;
                    *output_remaining -= decoded.produced;
                    *ended |= decoded.ended;
                    stuck = decoded.consumed == 0 && !*ended;
                    if *ended && *output_remaining > 0 {
                        return Err(CompressionError::Length);
                    }
                    (decoded.consumed, decoded.produced)
                }
            };
            self.consumed += consumed;
            if produced > 0 {
                return Ok(produced);
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

/// Writes frames.
#[derive(Debug)]
pub struct CompressionFrameWriter {
    algorithm: CompressionAlgorithm,
    /// Splits a stream of commands into packets; each command begins a frame. `None` for a stream of replies.
    command_packets: Option<PacketSplitter>,
    /// The last packet's sequence number, if the other side has not sent since.
    last_packet_seq: Option<u8>,
    seq: u8,
    origins: FrameOrigins,
}

/// The frames of the other connection from which the last frames were made.
#[derive(Clone, Debug)]
struct FrameOrigins {
    by_seq: [u8; 256],
    current: u8,
}

/// Compressors, reused from frame to frame.
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
    /// Starts between two packets; `commands`: the stream goes to a server.
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

    /// Sets the sequence number of the frame that the following bytes came in.
    pub fn set_origin_seq(&mut self, seq: u8) {
        self.origins.current = seq;
    }

    /// A replying side continues from the number of the last frame it has read. Translates its number `seq` to the one that it would have
    /// used towards the sender of the bytes packed here.
    #[must_use]
    pub fn origin_reply_seq(&self, seq: u8) -> u8 {
        let read = usize::from(seq.wrapping_sub(1));
        let origin = self.origins.by_seq.get(read).copied().unwrap_or_default();
        origin.wrapping_add(1)
    }

    /// Sets the sequence number of the next frame.
    pub fn set_next_seq(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// The other side has sent, last in a frame with this number. In the middle of a command that is no reply to it, so the command's
    /// frames keep counting.
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

    /// Appends the frames of these bytes to `out`.
    pub fn pack(&mut self, bytes: &[u8], compressor: &mut FrameCompressor, out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = self.bytes_before_command(rest);
            let (current, following) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            for body in current.chunks(MAX_FRAME_BODY) {
                self.write_frame(body, compressor, out);
            }
            rest = following;
        }
    }

    /// The number of bytes before the next command. If one begins here, sequence numbers start at 0.
    fn bytes_before_command(&mut self, bytes: &[u8]) -> usize {
        let Some(splitter) = &mut self.command_packets else {
            return bytes.len();
        };
        let mut len = 0;
        while let Some(rest) = bytes.get(len..).filter(|rest| !rest.is_empty()) {
            // A header that is split: its first bytes stay in their own frame.
            let mut ahead = splitter.clone();
            let part = ahead.next(rest);
            if let Some(header) = part.start {
                // Sequence numbers wrap in a long LOCAL INFILE, while the server sends nothing.
                let wrapped = self.last_packet_seq == Some(u8::MAX);
                if header.seq == 0 && !wrapped {
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
                // A result that needs more room is not worth it.
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
