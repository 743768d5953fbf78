//! Gives the packets of a stream other sequence numbers: of a reply that continues another one.

use super::frame::{HEADER_BYTES, Header};

/// Adds to the sequence number of each packet, in whatever pieces they come.
#[derive(Debug, Clone)]
pub struct Renumber {
    by: u8,
    header: [u8; HEADER_BYTES],
    /// Bytes of `header` that have come.
    have: usize,
    /// Bytes of the body still to come.
    left: usize,
}

impl Renumber {
    /// Starts between two packets.
    #[must_use]
    pub fn new(by: u8) -> Self {
        Renumber {
            by,
            header: [0; HEADER_BYTES],
            have: 0,
            left: 0,
        }
    }

    /// Changes the numbers in the stream's next bytes.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        loop {
            let body = self.left.min(rest.len());
            self.left -= body;
            rest = rest.get_mut(body..).unwrap_or_default();
            let Some((byte, behind)) = rest.split_first_mut() else {
                return;
            };
            if let Some(place) = self.header.get_mut(self.have) {
                *place = *byte;
            }
            self.have += 1;
            if self.have == HEADER_BYTES {
                *byte = byte.wrapping_add(self.by);
                self.have = 0;
                self.left = Header::parse(&self.header).map_or(0, |header| header.len);
            }
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_packets_encoded_so_in_the_first_place(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6),
            first in any::<u8>(),
            by in any::<u8>(),
            piece in 1usize..20,
        ) {
            let encoded = |first: u8| {
                let mut bytes = Vec::new();
                let mut seq = first;
                for payload in &payloads {
                    seq = frame::encode(seq, payload, &mut bytes);
                }
                bytes
            };
            let mut bytes = encoded(first);
            let mut renumber = Renumber::new(by);
            for piece in bytes.chunks_mut(piece) {
                renumber.apply(piece);
            }
            prop_assert_eq!(bytes, encoded(first.wrapping_add(by)));
        }
    }
}
