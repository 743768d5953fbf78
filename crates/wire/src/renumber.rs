//! Gives the packets of a stream other sequence numbers: of a reply that continues another one, or that was numbered for another
//! kind of connection.

use super::frame::{HEADER_BYTES, Header};

/// Changes the sequence number of each packet, in whatever pieces they come.
#[derive(Debug, Clone)]
pub struct Renumber {
    numbers: Numbers,
    header: [u8; HEADER_BYTES],
    /// Bytes of `header` that have come.
    have: usize,
    /// Bytes of the body still to come.
    left: usize,
}

#[derive(Debug, Clone)]
enum Numbers {
    /// The packet's own, and so much.
    Plus(u8),
    /// One behind the other; the next is this.
    From(u8),
}

impl Renumber {
    /// Adds to each number. Starts between two packets.
    #[must_use]
    pub fn plus(by: u8) -> Self {
        Renumber::new(Numbers::Plus(by))
    }

    /// Counts upwards, whatever the numbers were. Starts between two packets.
    #[must_use]
    pub fn from(first: u8) -> Self {
        Renumber::new(Numbers::From(first))
    }

    fn new(numbers: Numbers) -> Self {
        Renumber {
            numbers,
            header: [0; HEADER_BYTES],
            have: 0,
            left: 0,
        }
    }

    /// Adds to each number that is not counted here.
    pub fn shift(&mut self, more: u8) {
        if let Numbers::Plus(by) = &mut self.numbers {
            *by = by.wrapping_add(more);
        }
    }

    /// Leaves out a number: a packet has it that goes the other way.
    pub fn skip(&mut self) {
        let _ = self.next(0);
    }

    /// What a packet with this number gets.
    pub fn next(&mut self, own: u8) -> u8 {
        match &mut self.numbers {
            Numbers::Plus(by) => own.wrapping_add(*by),
            Numbers::From(next) => {
                let number = *next;
                *next = number.wrapping_add(1);
                number
            }
        }
    }

    /// The stream's next bytes with other numbers.
    #[must_use]
    pub fn renumbered(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        self.apply(&mut bytes);
        bytes
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
                *byte = self.next(*byte);
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
            let mut renumber = Renumber::plus(by);
            for piece in bytes.chunks_mut(piece) {
                renumber.apply(piece);
            }
            prop_assert_eq!(&bytes, &encoded(first.wrapping_add(by)));

            // Whatever they were: here of one that has lost count behind each piece.
            let mut counting = Renumber::from(first);
            let mut lost = Vec::new();
            for (payload, own) in payloads.iter().zip([9, 9, 0, 255, 1, 0]) {
                frame::encode(own, payload, &mut lost);
            }
            let counted: Vec<u8> = lost
                .chunks(piece)
                .flat_map(|piece| counting.renumbered(piece))
                .collect();
            prop_assert_eq!(counted, encoded(first));
            prop_assert_eq!(counting.next(0), first.wrapping_add(u8::try_from(payloads.len()).unwrap_or(0)));
        }
    }
}
