//! Packets in a byte stream: a header of four bytes, a body, and bodies of 16 MiB split in parts.
//!
//! A *physical* packet is one header and its body. A *logical* packet is one or more of them: a body of exactly
//! [`MAX_BODY`] bytes means that the next physical packet continues it, so a logical packet whose length is a multiple
//! of [`MAX_BODY`] ends with an empty physical one.

/// Bytes of a header: the length in three, little-endian, and the sequence number.
pub const HEADER_BYTES: usize = 4;

/// The longest body of a physical packet.
pub const MAX_BODY: usize = 0xFF_FFFF;

/// The header of a physical packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketHeader {
    /// Bytes of the body, at most [`MAX_BODY`].
    pub len: usize,
    /// Sequence number, counted from 0 by each command and wrapping at 256.
    pub seq: u8,
}

impl PacketHeader {
    /// Reads a header from the first four bytes; `None` when there are fewer.
    #[must_use]
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, seq] = *bytes.first_chunk()?;
        let len = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        Some(Self { len, seq })
    }

    /// The four bytes of this header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [a, b, c, ..] = self.len.min(MAX_BODY).to_le_bytes();
        [a, b, c, self.seq]
    }
}

/// The payload of the physical packet at the start of `bytes`; `None` while it is incomplete.
#[must_use]
pub fn complete_payload(bytes: &[u8]) -> Option<&[u8]> {
    let header = PacketHeader::parse(bytes)?;
    bytes.get(HEADER_BYTES..)?.get(..header.len)
}

/// Encodes `payload` as the first logical packet of a command, with sequence number 0.
#[must_use]
pub fn encode_first(payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(payload.len() + HEADER_BYTES);
    encode(0, payload, &mut packet);
    packet
}

/// Appends `payload` to `out` as one logical packet that starts with sequence number `seq`; returns the next number.
pub fn encode(seq: u8, payload: &[u8], out: &mut Vec<u8>) -> u8 {
    let mut seq = seq;
    let mut remaining = payload;
    loop {
        let (body, following) = remaining
            .split_at_checked(MAX_BODY)
            .unwrap_or((remaining, &[]));
        out.extend(
            PacketHeader {
                len: body.len(),
                seq,
            }
            .to_bytes(),
        );
        out.extend_from_slice(body);
        seq = seq.wrapping_add(1);
        if body.len() < MAX_BODY {
            return seq;
        }
        remaining = following;
    }
}

/// Splits a byte stream, in pieces of any size, into the parts of logical packets. Holds at most four bytes.
#[derive(Debug, Clone, Default)]
pub struct PacketSplitter {
    header: [u8; HEADER_BYTES],
    /// Bytes of `header` that have arrived; all four while a body is being read.
    header_filled: usize,
    /// Bytes of the body still to come.
    body_remaining: usize,
    /// The next physical packet continues the logical one.
    continues: bool,
}

/// The part of a packet that [`PacketSplitter::next`] finds at the front of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketPart<'a> {
    /// Bytes used, header bytes included; all of them, or up to the end of a physical packet.
    pub consumed: usize,
    /// Set once per logical packet, when its first header is complete.
    pub start: Option<PacketHeader>,
    /// Bytes of the packet's body, may be empty.
    pub body: &'a [u8],
    /// True when the logical packet ends after `body`.
    pub end: bool,
}

impl PacketSplitter {
    /// Starts between two packets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True between two logical packets.
    #[must_use]
    #[inline]
    pub fn at_boundary(&self) -> bool {
        self.header_filled == 0 && !self.continues
    }

    /// Sequence number of the last physical packet whose header is complete.
    #[must_use]
    pub fn seq(&self) -> u8 {
        let [.., seq] = self.header;
        seq
    }

    /// How many bytes of the current physical packet's body are outstanding, without the last one.
    #[must_use]
    pub fn skippable(&self) -> usize {
        match self.header_filled {
            HEADER_BYTES => self.body_remaining.saturating_sub(1),
            _ => 0,
        }
    }

    /// Counts `bytes` of the [skippable](Self::skippable) bytes as passed; they were relayed elsewhere.
    pub fn skip(&mut self, bytes: usize) {
        self.body_remaining -= bytes.min(self.skippable());
    }

    /// Takes the next part from the front of `bytes`. With no bytes, nothing is consumed.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> PacketPart<'a> {
        let mut part = PacketPart {
            consumed: 0,
            start: None,
            body: &[],
            end: false,
        };
        if self.header_filled < HEADER_BYTES {
            part.consumed = self.fill_header(bytes);
            if self.header_filled < HEADER_BYTES {
                return part;
            }
            let header = PacketHeader::parse(&self.header).unwrap_or_default();
            self.body_remaining = header.len;
            if !self.continues {
                part.start = Some(header);
            }
            self.continues = header.len == MAX_BODY;
        }
        let ahead = bytes.get(part.consumed..).unwrap_or_default();
        part.body = ahead.get(..self.body_remaining).unwrap_or(ahead);
        part.consumed += part.body.len();
        self.body_remaining -= part.body.len();
        if self.body_remaining == 0 {
            self.header_filled = 0;
            part.end = !self.continues;
        }
        part
    }

    fn fill_header(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        for (slot, byte) in self.header.iter_mut().skip(self.header_filled).zip(bytes) {
            *slot = *byte;
            taken += 1;
        }
        self.header_filled += taken;
        taken
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packets(stream: &[u8], cuts: &[usize]) -> Vec<(u8, Vec<u8>)> {
        let mut splitter = PacketSplitter::new();
        let mut packets: Vec<(u8, Vec<u8>)> = Vec::new();
        let mut ends = 0;
        let mut from = 0;
        for to in cuts.iter().copied().chain([stream.len()]) {
            let mut piece = &stream[from..to.max(from)];
            from = to.max(from);
            while !piece.is_empty() {
                let part = splitter.next(piece);
                if let Some(header) = part.start {
                    packets.push((header.seq, Vec::new()));
                }
                if !part.body.is_empty() {
                    packets.last_mut().unwrap().1.extend(part.body);
                }
                ends += usize::from(part.end);
                assert!(part.consumed > 0);
                piece = &piece[part.consumed..];
            }
        }
        assert!(splitter.at_boundary());
        assert_eq!(ends, packets.len());
        packets
    }

    #[test]
    fn a_16_mib_packet_is_split_in_two_and_joined_again() {
        for (extra, next_seq) in [(0, 2), (15, 2)] {
            let payload = vec![0xFE; MAX_BODY + extra];
            let mut stream = Vec::new();
            assert_eq!(encode(0, &payload, &mut stream), next_seq);
            assert_eq!(stream[..4], [0xFF, 0xFF, 0xFF, 0]);
            assert_eq!(
                stream[MAX_BODY + 4..MAX_BODY + 8],
                [u8::try_from(extra).unwrap(), 0, 0, 1]
            );
            assert_eq!(
                packets(&stream, &[MAX_BODY + 3, MAX_BODY + 6]),
                [(0, payload)]
            );
        }
    }

    #[test]
    fn an_empty_packet_starts_and_ends_at_once() {
        let part = PacketSplitter::new().next(&[0, 0, 0, 9]);
        assert_eq!(
            part,
            PacketPart {
                consumed: 4,
                start: Some(PacketHeader { len: 0, seq: 9 }),
                body: &[],
                end: true
            }
        );
    }

    proptest! {
        #[test]
        fn cut_anywhere_gives_the_same_packets(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6),
            mut cuts in prop::collection::vec(0usize..200, 0..20),
        ) {
            let mut stream = Vec::new();
            let mut seq = 250;
            let mut expected = Vec::new();
            for payload in payloads {
                let first_seq = seq;
                seq = encode(seq, &payload, &mut stream);
                expected.push((first_seq, payload));
            }
            cuts.iter_mut().for_each(|cut| *cut %= stream.len() + 1);
            cuts.sort_unstable();
            prop_assert_eq!(packets(&stream, &cuts), expected);
        }
    }
}
