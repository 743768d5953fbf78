//! MariaDB's compression in its log (`log_bin_compress`): the text of a statement, the rows of a row event.
//!
//! A byte of flags: 0x80, three bits for the algorithm (0 is zlib), in the lowest three the length of the length field. Then the
//! uncompressed length, big-endian, and a zlib stream. (`binlog_buf_compress` in MariaDB's `log_event.cc`.)

use flate2::{Decompress, FlushDecompress, Status};

use super::{LogStreamError, malformed};
use crate::event_reader::SLICE;
use headwater_wire::cursor::PacketCursor;

const COMPRESSED: u8 = 0x80;
const ALGORITHM: u8 = 0x78;
const LENGTH_BYTES: u8 = 0x07;

/// Decompresses at most `most` bytes, and returns whether there are more. `is_truncated`: so is the input.
pub(crate) fn decompress_prefix(
    bytes: &[u8],
    most: usize,
    is_truncated: bool,
) -> Result<(Vec<u8>, bool), LogStreamError> {
    let mut unpacking = BodyDecompressor::begin(bytes, usize::MAX)?;
    while unpacking.bytes().len() < most {
        let before = unpacking.consumed;
        let length_before = unpacking.unpacked.len();
        match unpacking.step(bytes) {
            Ok(true) if !is_truncated => break,
            Ok(_) if before < unpacking.consumed || length_before < unpacking.unpacked.len() => {}
            // The truncated input has ended.
            _ if is_truncated => break,
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    let mut text = unpacking.unpacked;
    let more = is_truncated || text.len() > most || text.len() < unpacking.length;
    text.truncate(most);
    Ok((text, more))
}

/// Decompresses a body, at most [`SLICE`] bytes per step.
pub(crate) struct BodyDecompressor {
    stream: Decompress,
    /// Where the stream begins, and how much of it was consumed.
    stream_start: usize,
    consumed: usize,
    length: usize,
    unpacked: Vec<u8>,
    ended: bool,
}

impl std::fmt::Debug for BodyDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unpacking({} of {})", self.unpacked.len(), self.length)
    }
}

impl BodyDecompressor {
    /// # Errors
    /// When the compression is unknown, or the length exceeds `most`.
    pub(crate) fn begin(bytes: &[u8], most: usize) -> Result<BodyDecompressor, LogStreamError> {
        let mut body = PacketCursor::new(bytes);
        let flags = body.u8()?;
        if flags & COMPRESSED == 0 || flags & ALGORITHM != 0 {
            return Err(malformed("compressed in a way that is not known"));
        }
        let length = body.take(usize::from(flags & LENGTH_BYTES))?;
        if !(1..=4).contains(&length.len()) {
            return Err(malformed("compressed, of no length"));
        }
        let length = length
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        if length > most {
            return Err(LogStreamError::UnpackedTooLarge(most));
        }
        Ok(BodyDecompressor {
            stream: Decompress::new(true),
            stream_start: bytes.len() - body.rest().len(),
            consumed: 0,
            length,
            unpacked: Vec::new(),
            ended: false,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.unpacked
    }

    /// Decompresses more of the same bytes. True if that was all.
    ///
    /// # Errors
    /// When the stream is invalid or of another length.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<bool, LogStreamError> {
        if self.ended {
            return Ok(true);
        }
        let packed = bytes
            .get(self.stream_start + self.consumed..)
            .unwrap_or_default();
        // Room for one byte more than expected detects streams that are too long.
        let room = (self.length + 1 - self.unpacked.len().min(self.length)).min(SLICE);
        let length_before = self.unpacked.len();
        self.unpacked.resize(length_before + room, 0);
        let into = self.unpacked.get_mut(length_before..).unwrap_or_default();
        let (taken, total_out) = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.decompress(packed, into, FlushDecompress::None);
        let taken = usize::try_from(self.stream.total_in() - taken).unwrap_or_default();
        let produced = usize::try_from(self.stream.total_out() - total_out).unwrap_or_default();
        self.unpacked.truncate(length_before + produced);
        self.consumed += taken;
        match status.map_err(|error| malformed(&error.to_string()))? {
            Status::StreamEnd => {
                self.ended = true;
                let all = self.stream_start + self.consumed == bytes.len();
                if all && self.unpacked.len() == self.length {
                    return Ok(true);
                }
                Err(malformed("compressed, of another length"))
            }
            _ if self.unpacked.len() > self.length || taken == 0 && produced == 0 => {
                Err(malformed("compressed, of another length"))
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn unpacked_within(bytes: &[u8], most: usize) -> Result<Vec<u8>, LogStreamError> {
        let mut unpacking = BodyDecompressor::begin(bytes, most)?;
        loop {
            let length_before = unpacking.bytes().len();
            let ended = unpacking.step(bytes)?;
            assert!(unpacking.bytes().len() - length_before <= SLICE);
            if ended {
                return Ok(unpacking.unpacked);
            }
        }
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, LogStreamError> {
        unpacked_within(bytes, 1 << 30)
    }

    fn packed(bytes: &[u8], length: &[u8]) -> Vec<u8> {
        let head = 0x80 | u8::try_from(length.len()).unwrap();
        let mut stream = ZlibEncoder::new(Vec::new(), Compression::default());
        stream.write_all(bytes).unwrap();
        [&[head], length, &stream.finish().unwrap()].concat()
    }

    #[test]
    fn lengths_have_one_to_four_bytes() {
        for length in [&[3][..], &[0, 3], &[0, 0, 3], &[0, 0, 0, 3]] {
            assert_eq!(unpacked(&packed(b"abc", length)).unwrap(), b"abc");
        }
        for length in [&[][..], &[0, 0, 0, 0, 3]] {
            assert!(unpacked(&packed(b"abc", length)).is_err());
        }
    }

    #[test]
    fn what_is_not_of_its_length_is_refused() {
        for length in [0, 2, 4, 255] {
            assert!(unpacked(&packed(b"abc", &[length])).is_err(), "{length}");
        }
        let mut longer = packed(b"abc", &[3]);
        longer.push(0);
        assert!(unpacked(&longer).is_err());
        let shorter = packed(b"abc", &[3]);
        assert!(unpacked(shorter.get(..shorter.len() - 1).unwrap()).is_err());
    }

    #[test]
    fn what_is_too_large_is_refused_unread() {
        let bomb = packed(&vec![0; 100_000], &[1, 0x86, 0xa0]);
        assert_eq!(unpacked_within(&bomb, 100_000).unwrap().len(), 100_000);
        assert!(unpacked_within(&bomb, 99_999).is_err());
        // More bytes than the length field says: stops where it should have ended.
        assert!(unpacked_within(&packed(&vec![0; 100_000], &[9]), 10).is_err());
    }

    #[test]
    fn another_algorithm_is_refused() {
        for flags in 0..=u8::MAX {
            let mut bytes = packed(b"abc", &[3]);
            *bytes.first_mut().unwrap() = flags;
            assert_eq!(unpacked(&bytes).is_ok(), flags == 0x81, "{flags:02x}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes: Vec<u8>) {
            let _ = unpacked(&bytes);
            let _ = unpacked(&[&[0x81, 9][..], &bytes].concat());
            let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
            prop_assert_eq!(unpacked(&packed(&bytes, &length)).unwrap(), bytes);
        }
    }
}
