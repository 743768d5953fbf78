//! MySQL's compressed transactions (TRANSACTION_PAYLOAD): unpacked as they come, a buffer at a time. However long one is, no more than a
//! buffer of it is held, and what zstd looks back at.

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::error::EventError;
use headwater_wire::cursor::PacketCursor;

/// Bytes that one step handles at most, of those that come or of those that they unpack to.
pub const SLICE: usize = 64 * 1024;
/// Fields in front of what is compressed: their end, the algorithm, and the algorithms.
const END_OF_FIELDS: u64 = 0;
const COMPRESSION: u64 = 2;
const ZSTD: u64 = 0;
const UNCOMPRESSED: u64 = 255;
/// The fields are three numbers.
const MAX_FIELD_BYTES: usize = 256;
/// What zstd may look back at, as a power of two: what levels up to 19 need, and what it can be told at most. In between the limit
/// of events decides.
const WINDOW_LOG_RANGE: std::ops::RangeInclusive<u32> = 23..=27;

/// What is in a compressed transaction.
pub(crate) struct PayloadDecompressor {
    max_event_bytes: usize,
    /// The fields so far, until they have all come.
    fields: Vec<u8>,
    stream: Option<PayloadCodec>,
    /// Unpacked bytes, and how many of them have been read.
    unpacked: Vec<u8>,
    consumed: usize,
    /// The buffer was filled: there may be more without further bytes.
    buffer_filled: bool,
}

enum PayloadCodec {
    /// And whether a frame has just ended.
    Zstd(Box<Decoder<'static>>, bool),
    Plain,
}

impl std::fmt::Debug for PayloadDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} of {})", self.consumed, self.unpacked.len())
    }
}

impl PayloadDecompressor {
    pub(crate) fn new(most: usize) -> PayloadDecompressor {
        PayloadDecompressor {
            max_event_bytes: most,
            fields: Vec::new(),
            stream: None,
            unpacked: Vec::new(),
            consumed: 0,
            buffer_filled: false,
        }
    }

    /// There is something to do even without further bytes.
    pub(crate) fn is_busy(&self) -> bool {
        self.consumed < self.unpacked.len() || self.buffer_filled
    }

    /// What was unpacked and is to be read before there is more.
    pub(crate) fn unread(&self) -> &[u8] {
        self.unpacked.get(self.consumed..).unwrap_or_default()
    }

    /// So much of it was read.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    /// Unpacks some more. Returns how many bytes were taken, and how many were handled.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<(usize, usize), EventError> {
        if self.stream.is_none() {
            let taken = self.read_fields(bytes)?;
            return Ok((taken, taken));
        }
        if bytes.is_empty() && !self.buffer_filled {
            return Ok((0, 0));
        }
        let taken = self.unpack(bytes)?;
        Ok((taken, taken.max(self.unpacked.len())))
    }

    /// Takes fields, each a type, a length and a value, up to type 0 (MySQL, `libs/mysql/binlog/event/codecs/binary.cpp`).
    fn read_fields(&mut self, bytes: &[u8]) -> Result<usize, EventError> {
        for (at, byte) in bytes.iter().enumerate() {
            self.fields.push(*byte);
            if self.fields.len() > MAX_FIELD_BYTES {
                return Err(EventError::Unexpected);
            }
            if let Some(algorithm) = algorithm(&self.fields) {
                self.stream = Some(self.codec_of(algorithm)?);
                return Ok(at + 1);
            }
        }
        Ok(bytes.len())
    }

    fn codec_of(&self, algorithm: u64) -> Result<PayloadCodec, EventError> {
        match algorithm {
            ZSTD => {
                let mut decoder = Decoder::new().map_err(EventError::Decompression)?;
                let window = self.max_event_bytes.max(1).ilog2();
                let window = window.clamp(*WINDOW_LOG_RANGE.start(), *WINDOW_LOG_RANGE.end());
                decoder
                    .set_parameter(DParameter::WindowLogMax(window))
                    .map_err(EventError::Decompression)?;
                Ok(PayloadCodec::Zstd(Box::new(decoder), true))
            }
            UNCOMPRESSED => Ok(PayloadCodec::Plain),
            _ => Err(EventError::Unexpected),
        }
    }

    fn unpack(&mut self, bytes: &[u8]) -> Result<usize, EventError> {
        self.consumed = 0;
        match &mut self.stream {
            Some(PayloadCodec::Zstd(decoder, ended)) => {
                self.unpacked.resize(SLICE, 0);
                let mut input = InBuffer::around(bytes);
                let mut output = OutBuffer::around(self.unpacked.as_mut_slice());
                let hint = decoder.run(&mut input, &mut output);
                let (taken, made) = (input.pos(), output.pos());
                self.unpacked.truncate(made);
                let hint = hint.map_err(EventError::Decompression)?;
                if taken > 0 || made > 0 {
                    *ended = hint == 0;
                }
                self.buffer_filled = made == SLICE;
                Ok(taken)
            }
            Some(PayloadCodec::Plain) => {
                self.unpacked.clear();
                self.unpacked.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            None => Err(EventError::Unexpected),
        }
    }

    /// All bytes have come.
    ///
    /// # Errors
    /// When they end in the middle of something.
    pub(crate) fn finish(&self) -> Result<(), EventError> {
        let ended = match &self.stream {
            Some(PayloadCodec::Zstd(_, ended)) => *ended,
            Some(PayloadCodec::Plain) => true,
            None => false,
        };
        ended.then_some(()).ok_or(EventError::Unexpected)
    }
}

/// The algorithm, once all fields are there.
fn algorithm(fields: &[u8]) -> Option<u64> {
    let mut cursor = PacketCursor::new(fields);
    let mut algorithm = u64::MAX;
    loop {
        let field = cursor.lenenc_int().ok()?;
        if field == END_OF_FIELDS {
            return Some(algorithm);
        }
        let value = cursor.lenenc_bytes().ok()?;
        if field == COMPRESSION {
            algorithm = PacketCursor::new(value).lenenc_int().ok()?;
        }
    }
}
