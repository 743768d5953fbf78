//! Reads the contents of a packet: every read is checked, none can panic.

use thiserror::Error;

/// Why the bytes of a packet violate the protocol.
///
/// `at` is the offset from the first byte of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MalformedPacket {
    /// Fewer bytes remain than the field needs.
    #[error("{wanted} bytes wanted at offset {at}, {left} left")]
    Short {
        /// Where the field starts.
        at: usize,
        /// Bytes the field needs.
        wanted: u64,
        /// Remaining bytes.
        left: usize,
    },
    /// A length-encoded integer starts with 0xFB (NULL) or 0xFF, which are no lengths.
    #[error("0x{byte:02x} at offset {at} is no length")]
    NoLength {
        /// Where the integer starts.
        at: usize,
        /// The byte found there.
        byte: u8,
    },
    /// A NUL-terminated field has no NUL.
    #[error("no NUL after offset {at}")]
    NoNul {
        /// Where the field starts.
        at: usize,
    },
    /// A tag (packet header, protocol version, count) has a value this reader does not know.
    #[error("unexpected value {value} at offset {at}")]
    Unexpected {
        /// Offset of the tag.
        at: usize,
        /// The value found there.
        value: u64,
    },
}

/// A position in a packet. Each read advances it; a failed one does not.
#[derive(Debug, Clone, Copy)]
pub struct PacketCursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> PacketCursor<'a> {
    /// Starts at the first of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Offset of the next byte to read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.offset
    }

    /// True when no bytes remain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining().is_empty()
    }

    /// One byte.
    ///
    /// # Errors
    /// [`MalformedPacket::Short`] at the end of the bytes.
    pub fn u8(&mut self) -> Result<u8, MalformedPacket> {
        self.array::<1>().map(|[a]| a)
    }

    /// Two bytes, little-endian.
    ///
    /// # Errors
    /// [`MalformedPacket::Short`] when fewer remain.
    pub fn u16(&mut self) -> Result<u16, MalformedPacket> {
        self.array().map(u16::from_le_bytes)
    }

    /// Three bytes, little-endian.
    ///
    /// # Errors
    /// [`MalformedPacket::Short`] when fewer remain.
    pub fn u24(&mut self) -> Result<u32, MalformedPacket> {
        self.array()
            .map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// [`MalformedPacket::Short`] when fewer remain.
    pub fn u32(&mut self) -> Result<u32, MalformedPacket> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    ///
    /// # Errors
    /// [`MalformedPacket::Short`] when fewer remain.
    pub fn u64(&mut self) -> Result<u64, MalformedPacket> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer: one byte up to 0xFA, or 0xFC, 0xFD, 0xFE and two, three, eight bytes.
    ///
    /// # Errors
    /// [`MalformedPacket::NoLength`] for 0xFB and 0xFF, [`MalformedPacket::Short`] when bytes are missing.
    pub fn lenenc_int(&mut self) -> Result<u64, MalformedPacket> {
        let mut ahead = *self;
        let value = match ahead.u8()? {
            0xFC => u64::from(ahead.u16()?),
            0xFD => u64::from(ahead.u24()?),
            0xFE => ahead.u64()?,
            byte @ (0xFB | 0xFF) => {
                return Err(MalformedPacket::NoLength {
                    at: self.offset,
                    byte,
                });
            }
            small => u64::from(small),
        };
        *self = ahead;
        Ok(value)
    }

    /// A length-encoded integer and as many bytes.
    ///
    /// # Errors
    /// As [`PacketCursor::lenenc_int`], and [`MalformedPacket::Short`] when the length exceeds the remaining bytes.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], MalformedPacket> {
        let mut ahead = *self;
        let length = ahead.lenenc_int()?;
        let bytes = match usize::try_from(length) {
            Ok(length) => ahead.take(length)?,
            Err(_) => return Err(ahead.short_error(length)),
        };
        *self = ahead;
        Ok(bytes)
    }

    /// The bytes up to a NUL, which is read too but not returned.
    ///
    /// # Errors
    /// [`MalformedPacket::NoNul`] when there is none.
    pub fn nul_bytes(&mut self) -> Result<&'a [u8], MalformedPacket> {
        let remaining = self.remaining();
        let Some(length) = remaining.iter().position(|byte| *byte == 0) else {
            return Err(MalformedPacket::NoNul { at: self.offset });
        };
        let bytes = self.take(length)?;
        self.offset += 1;
        Ok(bytes)
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// [`MalformedPacket::Short`] when fewer remain.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], MalformedPacket> {
        match self.remaining().get(..length) {
            Some(bytes) => {
                self.offset += length;
                Ok(bytes)
            }
            None => Err(self.short_error(u64::try_from(length).unwrap_or(u64::MAX))),
        }
    }

    /// All remaining bytes; may be empty.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.remaining();
        self.offset = self.bytes.len();
        rest
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedPacket> {
        match self.remaining().first_chunk() {
            Some(array) => {
                self.offset += N;
                Ok(*array)
            }
            None => Err(self.short_error(u64::try_from(N).unwrap_or(u64::MAX))),
        }
    }

    fn remaining(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    fn short_error(&self, wanted: u64) -> MalformedPacket {
        MalformedPacket::Short {
            at: self.offset,
            wanted,
            left: self.remaining().len(),
        }
    }
}

/// Appends `value` in the shortest length-encoded form.
pub fn put_lenenc_int(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    let [a, b, c, ..] = bytes;
    match value {
        0..=0xFA => out.push(a),
        0xFB..=0xFFFF => out.extend([0xFC, a, b]),
        0x1_0000..=0xFF_FFFF => out.extend([0xFD, a, b, c]),
        _ => {
            out.push(0xFE);
            out.extend(bytes);
        }
    }
}

/// Appends the length of `bytes`, length-encoded, and `bytes`.
pub fn put_lenenc_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_lenenc_int(u64::try_from(bytes.len()).unwrap_or(u64::MAX), out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_width_of_a_lenenc_int_and_writes_the_same_bytes() {
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0xFA], 250),
            (&[0xFC, 0xFB, 0x00], 251),
            (&[0xFC, 0xFF, 0xFF], 0xFFFF),
            (&[0xFD, 0x00, 0x00, 0x01], 0x1_0000),
            (&[0xFD, 0xFF, 0xFF, 0xFF], 0xFF_FFFF),
            (&[0xFE, 0, 0, 0, 1, 0, 0, 0, 0], 0x100_0000),
            (
                &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
                u64::MAX,
            ),
        ] {
            let mut cursor = PacketCursor::new(bytes);
            assert_eq!(cursor.lenenc_int(), Ok(value));
            assert!(cursor.is_empty());
            let mut written = Vec::new();
            put_lenenc_int(value, &mut written);
            assert_eq!(written, bytes);
        }
    }

    #[test]
    fn a_failed_read_stays_where_it_was() {
        let mut cursor = PacketCursor::new(&[7, 0xFC, 1]);
        assert_eq!(cursor.u8(), Ok(7));
        assert_eq!(
            cursor.lenenc_int(),
            Err(MalformedPacket::Short {
                at: 2,
                wanted: 2,
                left: 1
            })
        );
        assert_eq!(
            cursor.u32(),
            Err(MalformedPacket::Short {
                at: 1,
                wanted: 4,
                left: 2
            })
        );
        assert_eq!(cursor.nul_bytes(), Err(MalformedPacket::NoNul { at: 1 }));
        assert_eq!(cursor.rest(), [0xFC, 1]);
        assert!(cursor.is_empty());
    }

    #[test]
    fn null_and_error_markers_are_no_lengths() {
        for byte in [0xFB, 0xFF] {
            assert_eq!(
                PacketCursor::new(&[byte, 0]).lenenc_bytes(),
                Err(MalformedPacket::NoLength { at: 0, byte })
            );
        }
    }

    #[test]
    fn a_length_beyond_the_packet_is_short_whatever_its_size() {
        let bytes = [
            0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3,
        ];
        let error = PacketCursor::new(&bytes).lenenc_bytes().unwrap_err();
        assert_eq!(
            error,
            MalformedPacket::Short {
                at: 9,
                wanted: u64::MAX,
                left: 3
            }
        );
    }
}
