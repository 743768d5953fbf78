//! What MariaDB compresses in its log (`log_bin_compress`): the text of a statement, the rows of a row event.
//!
//! A byte of flags: 0x80, three bits for the algorithm (0 is zlib), in the lowest three the length of a length. Then the length
//! of what was compressed, its highest byte first, and a zlib stream. (`binlog_buf_compress` in MariaDB's `log_event.cc`.)

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::{Lost, malformed};
use crate::wire::cursor::Cursor;

/// What an event may grow to: as large as one may come that is not compressed (see [`crate::feed::Feed::new`]).
const MOST_UNPACKED: u64 = 1 << 30;
/// Room made before anything is unpacked: a length that is not true costs no more.
const FIRST_ROOM: u64 = 64 << 10;
const COMPRESSED: u8 = 0x80;
const ALGORITHM: u8 = 0x78;
const LENGTH_BYTES: u8 = 0x07;

/// The bytes that were compressed.
pub(super) fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, Lost> {
    unpacked_within(bytes, MOST_UNPACKED)
}

fn unpacked_within(bytes: &[u8], most: u64) -> Result<Vec<u8>, Lost> {
    let mut body = Cursor::new(bytes);
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
        .fold(0, |length, byte| length << 8 | u64::from(*byte));
    if length > most {
        return Err(malformed("compressed, and too large"));
    }
    let packed = body.rest();
    let room = usize::try_from(length.min(FIRST_ROOM)).unwrap_or_default();
    let mut unpacked = Vec::with_capacity(room);
    // One byte more than there should be tells that there are too many.
    let mut stream = ZlibDecoder::new(packed).take(length + 1);
    stream
        .read_to_end(&mut unpacked)
        .map_err(|error| malformed(&error.to_string()))?;
    let read = stream.into_inner().total_in();
    if unpacked.len() as u64 == length && read == packed.len() as u64 {
        Ok(unpacked)
    } else {
        Err(malformed("compressed, of another length"))
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
        // More than it says: cut off where it should have ended.
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
