//! Bodies of the fuzz targets in `fuzz/`: each takes any bytes and fails by an assertion.
//!
//! They are in the crate so that tests run them too, with captured and with random bytes.

use crate::capability::Capabilities;
use crate::command::{Command, ExecutePacket, query_text_range};
use crate::compression::{
    CompressionAlgorithm, CompressionError, CompressionFrameReader, CompressionFrameWriter,
    FrameCompressor,
};
use crate::cursor::PacketCursor;
use crate::handshake::{
    ChangeUserRequest, LoginRequest, ServerGreeting, greeting_with_flags, login_with_flags,
    ssl_request,
};
use crate::packet::{PacketHeader, PacketSplitter};
use crate::reply::{AuthFollower, FollowerStep, LocalInfileFollower, ReplyEvent, ReplyFollower};
use crate::response::{ErrPacket, OkPacket, without_redirect};
use crate::resultset::{CollectLimits, QueryReply, ReplyCollector};

/// Packets are the same however their bytes are split.
pub fn frame(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else {
        return;
    };
    let pieces = usize::from(*size).max(1);
    assert_eq!(
        packets([stream]),
        packets(stream.chunks(pieces)),
        "cut at {pieces}"
    );

    let mut whole = LocalInfileFollower::new();
    let consumed = whole.feed(stream);
    assert!(consumed <= stream.len());
    let mut cut = LocalInfileFollower::new();
    let total: usize = stream.chunks(pieces).map(|piece| cut.feed(piece)).sum();
    assert_eq!((total, cut.is_done()), (consumed, whole.is_done()));
}

/// Frames give the same result however they are split, and frames written here are read back.
pub fn compression(data: &[u8]) {
    let [kind, size, stream @ ..] = data else {
        return;
    };
    let algorithm = match kind % 2 {
        0 => CompressionAlgorithm::Zlib,
        _ => CompressionAlgorithm::Zstd(1),
    };
    let pieces = usize::from(*size).max(1);
    let whole = unpacked(algorithm, stream, stream.len().max(1), 64);
    let cut = unpacked(algorithm, stream, pieces, pieces);
    // Where a frame is split decides at which byte its fault is found.
    if let (Ok(whole), Ok(cut)) = (whole, cut) {
        assert_eq!(whole, cut, "cut at {pieces}");
    }

    let (mut packer, mut framed) = (
        CompressionFrameWriter::new(algorithm, kind % 4 > 1),
        Vec::new(),
    );
    let mut compressor = FrameCompressor::default();
    for piece in stream.chunks(pieces * 16) {
        packer.pack(piece, &mut compressor, &mut framed);
    }
    assert_eq!(
        unpacked(algorithm, &framed, pieces, 1000),
        Ok(stream.to_vec())
    );
}

/// The contents of frames fed in pieces and read in portions, up to a limit.
fn unpacked(
    algorithm: CompressionAlgorithm,
    frames: &[u8],
    pieces: usize,
    portion: usize,
) -> Result<Vec<u8>, CompressionError> {
    const PATIENCE: usize = 1 << 16;
    let mut unpacker = CompressionFrameReader::new(algorithm);
    let (mut plain, mut into) = (Vec::new(), vec![0; portion]);
    for piece in frames.chunks(pieces) {
        unpacker.feed(piece);
        loop {
            let len = unpacker.read(&mut into)?;
            plain.extend_from_slice(into.get(..len).unwrap_or_default());
            if plain.len() > PATIENCE {
                plain.truncate(PATIENCE);
                return Ok(plain);
            }
            if len == 0 {
                break;
            }
        }
    }
    Ok(plain)
}

/// The packets that open a connection are read or refused, and masking a greeting changes only flags.
pub fn handshake(data: &[u8]) {
    let (capabilities, payload) = with_capabilities(data);
    let greeting = ServerGreeting::parse(payload);
    let ssl = payload.len() % 2 == 0;
    let changed = Capabilities::SSL.union(CompressionAlgorithm::FLAGS);
    let flags = if ssl { changed } else { Capabilities::NONE };
    let masked = greeting_with_flags(payload, changed, flags);
    assert_eq!(greeting.is_ok(), masked.is_ok());
    if let (Ok(greeting), Ok(masked)) = (greeting, masked) {
        let _ = (greeting.version(), greeting.is_mariadb());
        // A greeting from before 4.1 has no room for the upper flags.
        let upper = greeting.capabilities.without(changed).union(flags);
        let lower = Capabilities(upper.0 & 0xffff);
        let again = ServerGreeting::parse(&masked).map(|greeting| greeting.capabilities);
        assert!(again == Ok(upper) || again == Ok(lower));
        let carried = again.unwrap_or_default();
        let expected = ServerGreeting {
            capabilities: carried,
            ..greeting
        };
        assert_eq!(ServerGreeting::parse(&masked), Ok(expected));
    }
    let _ = LoginRequest::parse(payload);
    let _ = LoginRequest::parse(&ssl_request(payload, changed, flags));
    let _ = LoginRequest::parse(&login_with_flags(payload, changed, flags));
    let _ = without_redirect(payload, capabilities);
    let _ = ChangeUserRequest::parse(payload, capabilities);
    if let Some(range) = query_text_range(payload, capabilities) {
        assert!(payload.get(range).is_some());
    }
    if let Ok(packet) = ErrPacket::parse(payload) {
        let mut written = Vec::new();
        packet.write(&mut written);
        assert_eq!(written, payload);
    }
    let _ = OkPacket::parse_end(payload, capabilities);
    if let Ok(packet) = OkPacket::parse(payload, capabilities) {
        let mut written = Vec::new();
        packet.write(capabilities, &mut written);
        let again = OkPacket::parse(&written, capabilities).map(|again| (again.info, again.schema));
        let schema = packet
            .schema
            .filter(|_| capabilities.contains(Capabilities::SESSION_TRACK));
        assert_eq!(again, Ok((packet.info, schema)));
    }
}

/// The values of an execution are the same where its types come from an earlier one.
pub fn execute(data: &[u8]) {
    let (capabilities, rest) = with_capabilities(data);
    let Some((count, payload)) = rest.split_first() else {
        return;
    };
    let count = usize::from(count % 20);
    let Ok(execute) = ExecutePacket::parse(payload, count, capabilities) else {
        return;
    };
    let Some(types) = execute.types() else {
        return;
    };
    let numbers = execute.integer_values(types);
    if let Ok(numbers) = &numbers {
        assert_eq!(numbers.len(), count);
    }
    let whole = execute.with_types(payload, types).unwrap_or_default();
    // If the packet has types already, they are there twice, and the values after them are different.
    assert_eq!(whole.len(), payload.len() + types.len());
    let mut bare = payload.to_vec();
    let values = payload.len() - execute.values().len();
    let flag = values - types.len() - 1;
    bare.drain(flag + 1..values);
    if let Some(bound) = bare.get_mut(flag) {
        *bound = 0;
    }
    let again = ExecutePacket::parse(&bare, count, capabilities);
    assert_eq!(again.and_then(|again| again.integer_values(types)), numbers);
    let filled = again.ok().and_then(|again| again.with_types(&bare, types));
    assert_eq!(filled.as_deref(), Some(payload));
}

/// A reply has the same events at the same offsets however it is split, and no byte is consumed twice.
pub fn reply(data: &[u8]) {
    let (capabilities, rest) = with_capabilities(data);
    let Some(([command, size], stream)) = rest.split_first_chunk() else {
        return;
    };
    let pieces = usize::from(*size).max(1);
    let reply = ReplyFollower::new(Command::from_byte(*command), capabilities);
    let (mut whole, mut cut, mut blind) = (reply.clone(), reply.clone(), reply);
    let whole = events(|bytes| whole.feed(bytes), [stream]);
    // Some replies are done before their first byte.
    let cuts = || stream.chunks(pieces).chain([&[][..]]);
    let cut = events(|bytes| cut.feed(bytes), cuts());
    // Skipping rows does not change the events.
    let unseen = events(|bytes| feed_blind(&mut blind, bytes), cuts());
    // Only so much of a split packet is held, so the texts of long packets may differ.
    if stream.len() <= crate::reply::MAX_HELD_BYTES {
        assert_eq!(whole, cut, "cut at {pieces}");
        assert_eq!(whole, unseen, "cut at {pieces}, rows unseen");
    }
    let mut auth = AuthFollower::new(capabilities);
    let mut from = 0;
    while let Some(piece) = stream.get(from..).filter(|piece| !piece.is_empty()) {
        let step = auth.feed(piece);
        from += step.consumed;
        if step.consumed == 0 {
            break;
        }
    }
}

/// The collector stops where the reply ends, keeps its limits, and every cell can be read.
pub fn collector(data: &[u8]) {
    let (capabilities, rest) = with_capabilities(data);
    let Some(([rows, bytes, size], stream)) = rest.split_first_chunk() else {
        return;
    };
    let limits = CollectLimits {
        max_rows: (*rows).into(),
        max_bytes: usize::from(*bytes) * 16,
    };
    let mut collector = ReplyCollector::new(capabilities, limits);
    let mut consumed = 0;
    for piece in stream.chunks(usize::from(*size).max(1)) {
        match collector.feed(piece) {
            Ok(fed) => consumed += fed.consumed,
            Err(_) => return,
        }
    }
    let mut reply = ReplyFollower::new(Command::Query, capabilities);
    let (events, end) = events(|bytes| reply.feed(bytes), [stream]);
    assert_eq!(consumed, end);
    let answer = collector.finish();
    let done = matches!(events.first(), Some((_, ReplyEvent::Done(_))));
    assert!(done || answer.is_err());
    if let Ok(QueryReply::Rows(rows)) = answer {
        assert!(rows.len() <= limits.max_rows);
        for row in rows.iter() {
            let _ = (row.cell(0), row.u64(0));
        }
    }
}

fn with_capabilities(data: &[u8]) -> (Capabilities, &[u8]) {
    let mut cursor = PacketCursor::new(data);
    let capabilities = Capabilities(cursor.u64().unwrap_or_default());
    (capabilities, cursor.rest())
}

/// Header and payload of each packet that starts in the pieces; the last one may be incomplete.
fn packets<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(PacketHeader, Vec<u8>, bool)> {
    let mut splitter = PacketSplitter::new();
    let mut packets: Vec<(PacketHeader, Vec<u8>, bool)> = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let part = splitter.next(piece);
            assert!(part.consumed > 0);
            packets.extend(part.start.map(|header| (header, Vec::new(), false)));
            if let Some((_, payload, end)) = packets.last_mut() {
                payload.extend_from_slice(part.body);
                *end |= part.end;
            }
            piece = piece.get(part.consumed..).unwrap_or_default();
        }
    }
    packets
}

/// Like [`ReplyFollower::feed`], but skips every row byte that may be skipped.
fn feed_blind(reply: &mut ReplyFollower, bytes: &[u8]) -> FollowerStep {
    let mut consumed = 0;
    loop {
        let ahead = reply.skippable_row_bytes().min(bytes.len() - consumed);
        reply.skip_row_bytes(ahead);
        consumed += ahead;
        // One byte at a time, so that the rest of each row can be skipped.
        let end = (consumed + 1).min(bytes.len());
        let step = reply.feed(bytes.get(consumed..end).unwrap_or_default());
        consumed += step.consumed;
        if step.event.is_some() || step.consumed == 0 {
            return FollowerStep {
                consumed,
                event: step.event,
            };
        }
    }
}

/// Each event with the offset after it, and the total of bytes consumed.
fn events<'a>(
    mut feed: impl FnMut(&[u8]) -> FollowerStep,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<(usize, ReplyEvent)>, usize) {
    let mut events = Vec::new();
    let mut total = 0;
    for piece in pieces {
        let mut from = 0;
        loop {
            let step = feed(piece.get(from..).unwrap_or_default());
            from += step.consumed;
            assert!(from <= piece.len());
            match step.event {
                Some(event) => events.push((total + from, event)),
                None => break,
            }
        }
        total += from;
    }
    (events, total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// Bytes as they are on the wire: packets with small payloads that start like something.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let first = prop::sample::select(vec![0x00, 0x01, 0x02, 0x03, 0xFB, 0xFC, 0xFE, 0xFF]);
        let rest = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20),
            prop::collection::vec(prop::sample::select(vec![0, 1, 2, 8, 0xFF]), 0..12),
        ];
        let packet = (first, rest, any::<bool>()).prop_map(|(first, rest, empty)| {
            let payload = if empty && rest.is_empty() {
                rest
            } else {
                [vec![first], rest].concat()
            };
            let mut bytes = Vec::new();
            crate::packet::encode(1, &payload, &mut bytes);
            bytes
        });
        prop::collection::vec(packet, 0..12).prop_map(|packets| packets.concat())
    }

    fn heads() -> impl Strategy<Value = Vec<u8>> {
        let capabilities = prop::sample::select(vec![
            0_u64,
            1 << 24,
            1 << 25,
            3 << 24,
            1 << 23,
            3 << 23,
            17 << 32,
        ]);
        let command =
            prop::sample::select(vec![0x03, 0x04, 0x0E, 0x11, 0x16, 0x17, 0x1C, 0x12, 0x09]);
        (capabilities, command, any::<u8>(), any::<u8>()).prop_map(
            |(capabilities, command, a, b)| {
                let mut head = capabilities.to_le_bytes().to_vec();
                head.extend([command, a, b]);
                head
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_target_fails_on_random_bytes(data in prop::collection::vec(any::<u8>(), 0..200)) {
            super::frame(&data);
            super::handshake(&data);
            super::reply(&data);
            super::collector(&data);
            super::compression(&data);
        }

        #[test]
        fn no_target_fails_on_packets(head in heads(), stream in streams()) {
            let data = [head, stream].concat();
            super::frame(&data);
            super::reply(&data);
            super::collector(&data);
        }
    }
}
