//! Packet lengths and numbers, for all states of a login.

use crate::compression_frames;
use headwater_wire::packet::{self, HEADER_BYTES, PacketHeader};

/// The largest packet that is read before the login has ended; real ones have some hundred bytes.
const LOGIN_PACKET_BYTES: usize = 64 * 1024;

/// False for the start of a packet that begins no greeting and no login: Headwater does not wait for its end.
pub(super) fn may_be_login_packet(input: &[u8]) -> bool {
    PacketHeader::parse(input).is_none_or(|header| header.len <= LOGIN_PACKET_BYTES)
}

/// True for a command: after a login only commands have sequence number 0.
pub(super) fn is_command(input: &[u8]) -> bool {
    PacketHeader::parse(input).is_some_and(|header| header.seq == 0)
}

pub(super) fn renumbered_packet(
    input: &[u8],
    payload: &[u8],
    seq: impl Fn(PacketHeader) -> u8,
) -> Vec<u8> {
    let header = PacketHeader::parse(input).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    packet::encode(seq(header), payload, &mut bytes);
    bytes
}

/// The number of an answer to the packet at the start of `input`; where its header is incomplete, that of the answer to a login.
pub(super) fn answer_sequence(input: &[u8]) -> u8 {
    PacketHeader::parse(input).map_or(2, |header| header.seq.wrapping_add(1))
}

/// The error for a client whose login cannot continue unread.
pub(super) fn unreadable_login(seq: u8) -> Vec<u8> {
    compression_frames::refusal(seq, "A login that cannot be read")
}
