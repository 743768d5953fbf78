//! Follows the client's packets of a LOAD DATA LOCAL, up to the empty one.

use crate::packet::PacketSplitter;

/// The file a client sends: packets of any length, the last of them empty.
#[derive(Debug, Clone, Default)]
pub struct LocalInfileFollower {
    splitter: PacketSplitter,
    empty: bool,
    done: bool,
}

impl LocalInfileFollower {
    /// Waits for the first packet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the client's next bytes; returns how many of them belong to the file, its empty packet included.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut consumed = 0;
        while !self.done {
            let part = self
                .splitter
                .next(bytes.get(consumed..).unwrap_or_default());
            if part.consumed == 0 {
                break;
            }
            consumed += part.consumed;
            if let Some(header) = part.start {
                self.empty = header.len == 0;
            }
            self.done = part.end && self.empty;
        }
        consumed
    }

    /// True after the empty packet: the server sends next.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{MAX_BODY, encode};

    #[test]
    fn ends_after_the_empty_packet_and_not_before() {
        let mut bytes = Vec::new();
        let seq = encode(2, b"1\tone\n", &mut bytes);
        encode(seq, b"", &mut bytes);
        let length = bytes.len();
        encode(0, b"\x0e", &mut bytes);
        let mut data = LocalInfileFollower::new();
        assert_eq!(data.feed(&bytes), length);
        assert!(data.is_done());
        let mut data = LocalInfileFollower::new();
        let fed: usize = bytes.chunks(1).map(|byte| data.feed(byte)).sum();
        assert_eq!(fed, length);
    }

    #[test]
    fn the_empty_part_of_a_16_mib_packet_is_no_end() {
        let mut bytes = Vec::new();
        let seq = encode(2, &vec![b'x'; MAX_BODY], &mut bytes);
        let mut data = LocalInfileFollower::new();
        assert_eq!(data.feed(&bytes), bytes.len());
        assert!(!data.is_done());
        bytes.clear();
        encode(seq, b"", &mut bytes);
        assert_eq!(data.feed(&bytes), 4);
        assert!(data.is_done());
    }
}
