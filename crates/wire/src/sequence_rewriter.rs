//! Renumbers the packets of a stream: of a reply that continues another one, or that was numbered for another kind of
//! connection.

use super::packet::{HEADER_BYTES, PacketHeader};

/// Rewrites the sequence number of each packet, in pieces of any size.
#[derive(Debug, Clone)]
pub struct SequenceRewriter {
    rule: SequenceRule,
    header: [u8; HEADER_BYTES],
    /// Bytes of `header` that have arrived.
    header_filled: usize,
    /// Bytes of the body still to come.
    body_remaining: usize,
}

#[derive(Debug, Clone)]
enum SequenceRule {
    /// The packet's number plus this.
    Offset(u8),
    /// Consecutive numbers; this is the next one.
    Counter(u8),
}

impl SequenceRewriter {
    /// Adds an offset to each number. Starts between two packets.
    #[must_use]
    pub fn with_offset(by: u8) -> Self {
        SequenceRewriter::new(SequenceRule::Offset(by))
    }

    /// Numbers packets consecutively, whatever their numbers were. Starts between two packets.
    #[must_use]
    pub fn counting_from(first: u8) -> Self {
        SequenceRewriter::new(SequenceRule::Counter(first))
    }

    fn new(numbers: SequenceRule) -> Self {
        SequenceRewriter {
            rule: numbers,
            header: [0; HEADER_BYTES],
            header_filled: 0,
            body_remaining: 0,
        }
    }

    /// Increases the offset. Has no effect on consecutive numbers.
    pub fn add_offset(&mut self, more: u8) {
        if let SequenceRule::Offset(by) = &mut self.rule {
            *by = by.wrapping_add(more);
        }
    }

    /// Skips a number, which a packet in the other direction uses.
    pub fn skip_number(&mut self) {
        let _ = self.next_number(0);
    }

    /// The new number of a packet numbered `seq`.
    pub fn next_number(&mut self, seq: u8) -> u8 {
        match &mut self.rule {
            SequenceRule::Offset(by) => seq.wrapping_add(*by),
            SequenceRule::Counter(next) => {
                let number = *next;
                *next = number.wrapping_add(1);
                number
            }
        }
    }

    /// The stream's next bytes, renumbered.
    #[must_use]
    pub fn rewritten(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        self.rewrite(&mut bytes);
        bytes
    }

    /// Renumbers the packets in the stream's next bytes, in place.
    pub fn rewrite(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        loop {
            let body = self.body_remaining.min(rest.len());
            self.body_remaining -= body;
            rest = rest.get_mut(body..).unwrap_or_default();
            let Some((byte, following)) = rest.split_first_mut() else {
                return;
            };
            if let Some(slot) = self.header.get_mut(self.header_filled) {
                *slot = *byte;
            }
            self.header_filled += 1;
            if self.header_filled == HEADER_BYTES {
                *byte = self.next_number(*byte);
                self.header_filled = 0;
                self.body_remaining =
                    PacketHeader::parse(&self.header).map_or(0, |header| header.len);
            }
            rest = following;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet;
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
                    seq = packet::encode(seq, payload, &mut bytes);
                }
                bytes
            };
            let mut bytes = encoded(first);
            let mut renumber = SequenceRewriter::with_offset(by);
            for piece in bytes.chunks_mut(piece) {
                renumber.rewrite(piece);
            }
            prop_assert_eq!(&bytes, &encoded(first.wrapping_add(by)));

            // Whatever the numbers were: here they are wrong after each piece.
            let mut counting = SequenceRewriter::counting_from(first);
            let mut lost = Vec::new();
            for (payload, own) in payloads.iter().zip([9, 9, 0, 255, 1, 0]) {
                packet::encode(own, payload, &mut lost);
            }
            let counted: Vec<u8> = lost
                .chunks(piece)
                .flat_map(|piece| counting.rewritten(piece))
                .collect();
            prop_assert_eq!(counted, encoded(first));
            prop_assert_eq!(counting.next_number(0), first.wrapping_add(u8::try_from(payloads.len()).unwrap_or(0)));
        }
    }
}
