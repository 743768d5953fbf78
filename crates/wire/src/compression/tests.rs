use proptest::prelude::*;

use super::*;
use crate::packet::encode;

const ALGORITHMS: [CompressionAlgorithm; 2] =
    [CompressionAlgorithm::Zlib, CompressionAlgorithm::Zstd(3)];

/// What is unpacked of frames in these pieces, into room of this size.
fn unpacked(
    algorithm: CompressionAlgorithm,
    frames: &[u8],
    piece: usize,
    room: usize,
) -> Result<Vec<u8>, CompressionError> {
    let mut unpacker = CompressionFrameReader::new(algorithm);
    let (mut plain, mut into) = (Vec::new(), vec![0; room]);
    for piece in frames.chunks(piece) {
        unpacker.feed(piece);
        loop {
            let len = unpacker.read(&mut into)?;
            plain.extend_from_slice(into.get(..len).unwrap());
            if len == 0 {
                break;
            }
        }
    }
    Ok(plain)
}

fn packed(packer: &mut CompressionFrameWriter, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    packer.pack(bytes, &mut FrameCompressor::default(), &mut out);
    out
}

/// Number and plain body of each frame.
fn frames(algorithm: CompressionAlgorithm, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some((len, seq, _)) = parse_frame_header(rest) {
        let (frame, behind) = rest.split_at(COMPRESSED_HEADER_BYTES + len);
        found.push((
            seq,
            unpacked(algorithm, frame, usize::MAX, 1 << 20).unwrap(),
        ));
        rest = behind;
    }
    assert!(rest.is_empty());
    found
}

#[test]
fn short_bodies_are_left_alone_and_long_ones_shrink() {
    for algorithm in ALGORITHMS {
        let mut packer = CompressionFrameWriter::new(algorithm, false);
        assert_eq!(packed(&mut packer, b"short"), b"\x05\0\0\0\0\0\0short");
        let long = [b'x'; 10_000];
        let frame = packed(&mut packer, &long);
        assert!(frame.len() < 200, "{}", frame.len());
        assert_eq!(frames(algorithm, &frame), [(1, long.to_vec())]);
    }
}

#[test]
fn each_command_begins_a_frame_with_number_0() {
    let commands: Vec<Vec<u8>> = [&b"\x0e"[..], &[b'q'; 300], b"\x01"]
        .iter()
        .map(|payload| {
            let mut packet = Vec::new();
            encode(0, payload, &mut packet);
            packet
        })
        .collect();
    let mut packer = CompressionFrameWriter::new(CompressionAlgorithm::Zlib, true);
    let all = packed(&mut packer, &commands.concat());
    let expected: Vec<(u8, Vec<u8>)> = commands.iter().map(|one| (0, one.clone())).collect();
    assert_eq!(frames(CompressionAlgorithm::Zlib, &all), expected);
}

#[test]
fn parts_of_a_command_and_answers_within_one_go_on_counting() {
    let mut packer = CompressionFrameWriter::new(CompressionAlgorithm::Zlib, true);
    let mut command = Vec::new();
    encode(0, &[b'q'; 100], &mut command);
    let (head, tail) = command.split_at(60);
    let mut all = packed(&mut packer, head);
    all.extend(packed(&mut packer, tail));
    // The server requests data in its frame 7; the client sends a packet that is no command.
    packer.received(7);
    let mut answer = Vec::new();
    encode(2, b"data", &mut answer);
    all.extend(packed(&mut packer, &answer));
    let numbers: Vec<u8> = frames(CompressionAlgorithm::Zlib, &all)
        .iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(numbers, [0, 1, 8]);
}

#[test]
fn numbers_that_wrap_around_begin_no_command_until_the_server_has_spoken() {
    let mut packer = CompressionFrameWriter::new(CompressionAlgorithm::Zlib, true);
    let packet = |seq| {
        let mut packet = Vec::new();
        encode(seq, b"line", &mut packet);
        packet
    };
    packer.received(9);
    let mut all = packed(
        &mut packer,
        &[packet(254), packet(255), packet(0), packet(1)].concat(),
    );
    all.extend(packed(&mut packer, &packet(255)));
    packer.received(20);
    all.extend(packed(&mut packer, &packet(0)));
    let numbers: Vec<u8> = frames(CompressionAlgorithm::Zlib, &all)
        .iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(numbers, [10, 11, 0]);
}

#[test]
fn a_frame_that_lies_about_its_length_is_refused() {
    for algorithm in ALGORITHMS {
        let mut packer = CompressionFrameWriter::new(algorithm, false);
        let frame = packed(&mut packer, &[b'x'; 1_000]);
        for (at, by) in [(4, 1_u8), (4, 255)] {
            let mut lying = frame.clone();
            let byte = lying.get_mut(at).unwrap();
            *byte = byte.wrapping_add(by);
            // What follows a frame that is too short is not read into it.
            lying.extend_from_slice(&frame);
            assert!(
                unpacked(algorithm, &lying, 100, 64).is_err(),
                "{algorithm:?} {by}"
            );
        }
    }
}

#[test]
fn zlib_goes_first_and_a_level_of_the_clients_own() {
    let both = Capabilities::COMPRESS.union(Capabilities::ZSTD_COMPRESSION);
    assert_eq!(
        CompressionAlgorithm::negotiated(both, Some(7)),
        Some(CompressionAlgorithm::Zlib)
    );
    let zstd = Capabilities::ZSTD_COMPRESSION;
    assert_eq!(
        CompressionAlgorithm::negotiated(zstd, Some(7)),
        Some(CompressionAlgorithm::Zstd(7))
    );
    assert_eq!(
        CompressionAlgorithm::negotiated(zstd, Some(99)),
        Some(CompressionAlgorithm::Zstd(3))
    );
    assert_eq!(
        CompressionAlgorithm::negotiated(Capabilities::NONE, None),
        None
    );
}

proptest! {
    #[test]
    fn what_is_packed_is_unpacked_however_it_is_cut(
        parts in prop::collection::vec((0_u8..4, 0_usize..40_000), 1..6),
        piece in 1_usize..5_000, room in 1_usize..5_000, commands: bool, zstd: bool,
    ) {
        let algorithm = if zstd { CompressionAlgorithm::Zstd(1) } else { CompressionAlgorithm::Zlib };
        let mut packer = CompressionFrameWriter::new(algorithm, commands);
        let (mut plain, mut wire) = (Vec::new(), Vec::new());
        for (kind, len) in parts {
            // From what shrinks well to what does not.
            let body: Vec<u8> = (0..len)
                .map(|at| (at.wrapping_mul(usize::from(kind) * 2_654_435_761) >> 13).to_le_bytes()[0])
                .collect();
            let mut packet = Vec::new();
            encode(0, &body, &mut packet);
            wire.extend(packed(&mut packer, &packet));
            plain.extend(packet);
        }
        prop_assert_eq!(unpacked(algorithm, &wire, piece, room).unwrap(), plain);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), zstd: bool) {
        let algorithm = if zstd { CompressionAlgorithm::Zstd(1) } else { CompressionAlgorithm::Zlib };
        let _ = unpacked(algorithm, &bytes, 7, 50);
    }
}

#[test]
fn a_reply_in_the_middle_of_a_command_leaves_its_frames_in_order() {
    let mut command = Vec::new();
    crate::packet::encode(0, &[3; 100], &mut command);
    let mut packer = CompressionFrameWriter::new(CompressionAlgorithm::Zlib, true);
    let (mut frames, mut compressor) = (Vec::new(), FrameCompressor::default());
    let (front, back) = command.split_at(40);
    packer.pack(front, &mut compressor, &mut frames);
    packer.received(7);
    let first = frames.len();
    packer.pack(back, &mut compressor, &mut frames);
    assert_eq!(frames.get(3), Some(&0));
    assert_eq!(frames.get(first + 3), Some(&1));
}
