//! A binary log on its way to a replica that speaks without frames, from a server that speaks in them.
//!
//! The stream has no end but the connection's, and is looked into for one thing alone: under semi-synchronous replication a source
//! counts from 1 again behind each event that it wants to have confirmed, as if the replica had spoken in between (`flush_net`
//! and `readSlaveReply` in both servers' plugins).

use headwater_wire::packet::PacketSplitter;
use headwater_wire::sequence_rewriter::SequenceRewriter;

/// Second byte of every packet of a semi-synchronous stream, behind that of an OK. Elsewhere an event begins there, the first with
/// a time of 0.
const SEMI_SYNC_MAGIC: u8 = 0xef;
/// Third byte where the event is to be confirmed.
const ACK_REQUESTED: u8 = 1;

/// Gives the packets of the stream the numbers that the replica expects.
#[derive(Debug)]
pub(super) struct BinlogDump {
    renumber: SequenceRewriter,
    splitter: PacketSplitter,
    /// The packet's first bytes.
    head: Vec<u8>,
    /// Known behind the first packet.
    semi_synchronous: Option<bool>,
}

impl BinlogDump {
    /// Begins between two packets; `sequence_rewriter` knows the next one's number.
    pub(super) fn new(renumber: SequenceRewriter) -> BinlogDump {
        BinlogDump {
            renumber,
            splitter: PacketSplitter::new(),
            head: Vec::new(),
            semi_synchronous: None,
        }
    }

    /// The stream's next bytes, as the replica expects them.
    pub(super) fn renumbered(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        while let Some(rest) = bytes.get(out.len()..).filter(|rest| !rest.is_empty()) {
            let part = self.splitter.next(rest);
            let own = rest.get(..part.consumed).unwrap_or_default();
            out.extend(self.renumber.rewritten(own));
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

    /// The numbers of the physical packets of a stream, as they are said in frames and behind it.
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
        // Not where the first packet was an event at once: those bytes are then a time.
        let events = [&b"\0\0\0\0\0"[..], &asking, &asking].map(<[u8]>::to_vec);
        assert_eq!(numbers(&events, 7), [1, 2, 3]);
    }
}
