//! Decompresses MySQL's compressed transactions (TRANSACTION_PAYLOAD) as they arrive. Memory is bounded by one buffer and zstd's
//! window, however long a transaction is.

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::error::EventError;
use headwater_wire::cursor::PacketCursor;

/// At most this many bytes are handled per step, compressed or decompressed.
pub const SLICE: usize = 64 * 1024;
/// Fields before the compressed bytes: end marker, algorithm, and the algorithms' values.
const END_OF_FIELDS: u64 = 0;
const COMPRESSION: u64 = 2;
const ZSTD: u64 = 0;
const UNCOMPRESSED: u64 = 255;
/// Limit of the fields: they hold three numbers.
const MAX_FIELD_BYTES: usize = 256;
/// Limits of zstd's window, as powers of two: what levels up to 19 need, and zstd's maximum. In between the event size limit decides.
const WINDOW_LOG_RANGE: std::ops::RangeInclusive<u32> = 23..=27;

pub(crate) struct PayloadDecompressor {
    max_event_bytes: usize,
    fields: Vec<u8>,
    stream: Option<PayloadCodec>,
    /// Decompressed bytes, and how many of them have been read.
    unpacked: Vec<u8>,
    consumed: usize,
    /// The buffer was filled: there may be more output without further input.
    buffer_filled: bool,
}

enum PayloadCodec {
    /// The flag is set when a frame has just ended.
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

    /// True if there may be output without further input.
    pub(crate) fn is_busy(&self) -> bool {
        self.consumed < self.unpacked.len() || self.buffer_filled
    }

    /// Decompressed bytes that must be read before the next step.
    pub(crate) fn unread(&self) -> &[u8] {
        self.unpacked.get(self.consumed..).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    /// Decompresses more. Returns how many bytes were consumed, and how many were processed.
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

    /// Consumes fields, each a type, a length and a value, up to type 0 (MySQL, `libs/mysql/binlog/event/codecs/binary.cpp`).
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
                let (taken, produced) = (input.pos(), output.pos());
                self.unpacked.truncate(produced);
                let hint = hint.map_err(EventError::Decompression)?;
                if taken > 0 || produced > 0 {
                    *ended = hint == 0;
                }
                self.buffer_filled = produced == SLICE;
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

    /// Checks that the input is complete.
    ///
    /// # Errors
    /// When it ends in the middle of a frame.
    pub(crate) fn finish(&self) -> Result<(), EventError> {
        let ended = match &self.stream {
            Some(PayloadCodec::Zstd(_, ended)) => *ended,
            Some(PayloadCodec::Plain) => true,
            None => false,
        };
        ended.then_some(()).ok_or(EventError::Unexpected)
    }
}

/// The algorithm, once all fields are complete.
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
