//! Gives the packets of a stream other sequence numbers: of a reply that continues another one, or that was numbered for another
//! kind of connection.

use super::packet::{HEADER_BYTES, PacketHeader};

/// Changes the sequence number of each packet, in whatever pieces they come.
#[derive(Debug, Clone)]
pub struct SequenceRewriter {
    rule: SequenceRule,
    header: [u8; HEADER_BYTES],
    /// Bytes of `header` that have come.
    header_filled: usize,
    /// Bytes of the body still to come.
    body_remaining: usize,
}

#[derive(Debug, Clone)]
enum SequenceRule {
    /// The packet's own, and so much.
    Offset(u8),
    /// One behind the other; the next is this.
    Counter(u8),
}

impl SequenceRewriter {
    /// Adds to each number. Starts between two packets.
    #[must_use]
    pub fn with_offset(by: u8) -> Self {
        SequenceRewriter::new(SequenceRule::Offset(by))
    }

    /// Counts upwards, whatever the numbers were. Starts between two packets.
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

    /// Adds to each number that is not counted here.
    pub fn add_offset(&mut self, more: u8) {
        if let SequenceRule::Offset(by) = &mut self.rule {
            *by = by.wrapping_add(more);
        }
    }

    /// Leaves out a number: a packet has it that goes the other way.
    pub fn skip_number(&mut self) {
        let _ = self.next_number(0);
    }

    /// What a packet with this number gets.
    pub fn next_number(&mut self, own: u8) -> u8 {
        match &mut self.rule {
            SequenceRule::Offset(by) => own.wrapping_add(*by),
            SequenceRule::Counter(next) => {
                let number = *next;
                *next = number.wrapping_add(1);
                number
            }
        }
    }

    /// The stream's next bytes with other numbers.
    #[must_use]
    pub fn rewritten(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        self.rewrite(&mut bytes);
        bytes
    }

    /// Changes the numbers in the stream's next bytes.
    pub fn rewrite(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        loop {
            let body = self.body_remaining.min(rest.len());
            self.body_remaining -= body;
            rest = rest.get_mut(body..).unwrap_or_default();
            let Some((byte, behind)) = rest.split_first_mut() else {
                return;
            };
            if let Some(place) = self.header.get_mut(self.header_filled) {
                *place = *byte;
            }
            self.header_filled += 1;
            if self.header_filled == HEADER_BYTES {
                *byte = self.next_number(*byte);
                self.header_filled = 0;
                self.body_remaining =
                    PacketHeader::parse(&self.header).map_or(0, |header| header.len);
            }
            rest = behind;
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

            // Whatever they were: here of one that has lost count behind each piece.
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
