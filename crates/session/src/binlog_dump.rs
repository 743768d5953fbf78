//! Relays a binary log from a server with compressed frames to a replica without.
//!
//! The stream ends with the connection. Only one thing in it matters: under semi-synchronous replication a source restarts its numbers at
//! 1 after each event that the replica must acknowledge, as if the replica had sent a packet (`flush_net` and `readSlaveReply` in both
//! servers' plugins).

use headwater_wire::packet::PacketSplitter;
use headwater_wire::sequence_rewriter::SequenceRewriter;

/// Second byte of every packet of a semi-synchronous stream, after the OK byte. In other streams an event begins there; the first one has
/// a time of 0.
const SEMI_SYNC_MAGIC: u8 = 0xef;
/// Third byte where the replica must acknowledge the event.
const ACK_REQUESTED: u8 = 1;

#[derive(Debug)]
pub(super) struct BinlogDump {
    renumber: SequenceRewriter,
    splitter: PacketSplitter,
    head: Vec<u8>,
    /// Known after the first packet.
    semi_synchronous: Option<bool>,
}

impl BinlogDump {
    /// Begins between two packets; `renumber` has the next packet's number.
    pub(super) fn new(renumber: SequenceRewriter) -> BinlogDump {
        BinlogDump {
            renumber,
            splitter: PacketSplitter::new(),
            head: Vec::new(),
            semi_synchronous: None,
        }
    }

    /// The stream's next bytes, renumbered for the replica.
    pub(super) fn renumbered(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        while let Some(rest) = bytes.get(out.len()..).filter(|rest| !rest.is_empty()) {
            let part = self.splitter.next(rest);
            let part_bytes = rest.get(..part.consumed).unwrap_or_default();
            out.extend(self.renumber.rewritten(part_bytes));
            let missing = 3_usize.saturating_sub(self.head.len());
            self.head
                .extend_from_slice(part.body.get(..missing).unwrap_or(part.body));
            if part.end {
                self.packet_ended();
            }
        }
        out
    }

    fn packet_ended(&mut self) {
        let head = std::mem::take(&mut self.head);
        let semi_synchronous = *self
            .semi_synchronous
            .get_or_insert(head.starts_with(&[0, SEMI_SYNC_MAGIC]));
        if semi_synchronous && head == [0, SEMI_SYNC_MAGIC, ACK_REQUESTED] {
            self.renumber = SequenceRewriter::counting_from(1);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use headwater_wire::packet::{MAX_BODY, encode};

    /// The numbers of the physical packets of a stream, in frames and after renumbering.
    fn numbers(payloads: &[Vec<u8>], piece: usize) -> Vec<u8> {
        let mut said = Vec::new();
        for payload in payloads {
            encode(77, payload, &mut said);
        }
        let mut dump = BinlogDump::new(SequenceRewriter::counting_from(1));
        let heard: Vec<u8> = said
            .chunks(piece)
            .flat_map(|piece| dump.renumbered(piece))
            .collect();
        assert_eq!(heard.len(), said.len());
        let mut numbers = Vec::new();
        let mut at = 0;
        while let Some(header) =
            headwater_wire::packet::PacketHeader::parse(heard.get(at..).unwrap())
        {
            numbers.push(header.seq);
            at += 4 + header.len;
        }
        numbers
    }

    #[test]
    fn packets_are_counted_and_wrap_around() {
        let events = vec![b"\0\0\0\0\0an event".to_vec(); 258];
        let counted: Vec<u8> = (1..=255).chain(0..=2).collect();
        for piece in [1, 2, 5, 1 << 20] {
            assert_eq!(numbers(&events, piece), counted);
        }
        let long = [vec![0; MAX_BODY + 5], vec![0; 3]];
        assert_eq!(numbers(&long, 1 << 16), [1, 2, 3]);
    }

    #[test]
    fn a_source_that_waits_to_be_confirmed_counts_anew() {
        let (quiet, asking) = (b"\0\xef\0event".to_vec(), b"\0\xef\x01event".to_vec());
        let events = [&quiet, &quiet, &asking, &quiet, &asking, &asking].map(Clone::clone);
        for piece in [1, 3, 1 << 20] {
            assert_eq!(numbers(&events, piece), [1, 2, 3, 1, 2, 1]);
        }
        // Not where the first packet is an event: then those bytes are a time.
        let events = [&b"\0\0\0\0\0"[..], &asking, &asking].map(<[u8]>::to_vec);
        assert_eq!(numbers(&events, 7), [1, 2, 3]);
    }
}
