//! Malformed compression frames from clients and servers end their own session and cost other sessions no memory.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use super::algorithms;
use crate::kit::peer::{OK, Peer, Stage, greeting};
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::capability::{COMPRESS, ZSTD_COMPRESSION};
use crate::kit::wire_client::frames::{self, packed};
use crate::kit::wire_client::packet::encode;
use crate::kit::wire_client::{Login, WireClient};

/// The largest length that a frame header can declare.
const MOST: usize = 0xff_ffff;
/// Half of the largest frame: no frame is buffered whole.
const MEMORY_KIB: u64 = 8 << 10;

fn frame(plain: usize, body: &[u8]) -> Vec<u8> {
    frames::frame(0, plain, body)
}

/// Not yet faulty, or not detectably so (zstd frames have no checksum here): Headwater waits for more bytes.
const WANT_MORE: [&str; 5] = [
    "a_bit_flipped",
    "half_a_header",
    "half_a_frame",
    "nothing_again_and_again",
    "ones_again_and_again",
];

/// Malformed zlib or zstd frames by their fault, those of [`WANT_MORE`] last.
fn lies(zstd: bool) -> Vec<(&'static str, Vec<u8>)> {
    let ping = packed(&encode(0, &[0x0e; 200]), zstd);
    // Decompressed, this is the start of a packet that never ends.
    let ones = packed(&vec![0xff; MOST], zstd);
    let mut flipped = packed(b"many words, and many more, and many words again", zstd);
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    let mut lies = vec![
        ("no_compressed_data", frame(MOST, b"hello")),
        ("nothing_that_is_something", frame(MOST, b"")),
        ("longer_than_told", frame(4, &ping)),
        ("much_longer_than_told", frame(100, &ones)),
        ("shorter_than_told", frame(MOST, &ping)),
        ("cut_inside", frame(MOST, &ones[..ones.len() / 2])),
    ];
    // These are equally invalid as zlib.
    for (what, header) in [
        // No content size, and the largest window that a header can declare.
        ("a_window_of_terabytes", &b"\x00\xff\x01\x00\x00"[..]),
        (
            "a_content_of_exabytes",
            b"\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x00\x00",
        ),
        ("a_dictionary", b"\x03\x00\x01\x02\x03\x04\x01\x00\x00"),
    ] {
        lies.push((what, frame(MOST, &[b"\x28\xb5\x2f\xfd", header].concat())));
    }
    let skipped = b"\x50\x2a\x4d\x18\xff\xff\xff\xff";
    lies.push(("something_to_be_skipped", frame(MOST, skipped)));
    lies.extend([
        ("a_bit_flipped", frame(47, &flipped)),
        ("half_a_header", frame(MOST, b"")[..5].to_vec()),
        ("half_a_frame", frame(MOST, &ping)[..20].to_vec()),
        ("nothing_again_and_again", frame(0, b"").repeat(10_000)),
        ("ones_again_and_again", frame(MOST, &ones).repeat(2)),
    ]);
    lies
}

#[test]
fn a_client_whose_frames_lie_ends_alone() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        for &algorithm in algorithms(server) {
            let login = Login::default().with(algorithm);
            let mut other = proxy.login(&login);
            let before = proxy.resident_kib();
            for (what, frames) in lies(algorithm & COMPRESS == 0) {
                let client = proxy.login(&login);
                let mut socket: TcpStream = client.stream.tcp().try_clone().unwrap();
                let _ = socket.write_all(&frames);
                other.ok("DO 1");
                thread::sleep(Duration::from_millis(50));
                let _ = socket.shutdown(Shutdown::Write);
                ends(&mut socket, what);
                other.ok("DO 1");
                let grown = proxy.peak_kib().saturating_sub(before);
                assert!(grown < MEMORY_KIB, "{what}: grew by {grown} KiB");
            }
        }
        let (status, log) = proxy.terminate();
        assert!(status.success(), "{log}");
    });
}

/// Sends the malformed frame that the client's user names; `good` is a correct server.
fn play(stage: &mut Stage) -> io::Result<()> {
    let mut offer = greeting("8.0.99-scripted");
    // Offers zstd too, in the upper capability flags.
    offer[36] |= (ZSTD_COMPRESSION >> 24) as u8;
    stage.packet(0, &offer)?;
    let login = stage.read()?.payload;
    let flags = u64::from(u32::from_le_bytes([login[0], login[1], login[2], login[3]]));
    stage.packet(2, OK)?;
    let zlib = flags & COMPRESS != 0;
    let framed = zlib || flags & ZSTD_COMPRESSION != 0;
    let name = login[32..].split(|&byte| byte == 0).next().unwrap();
    let lies = lies(!zlib);
    let lie = lies.iter().find(|(what, _)| what.as_bytes() == name);
    loop {
        if !framed {
            stage.read()?;
            stage.packet(1, OK)?;
            continue;
        }
        let mut header = [0; 7];
        stage.stream.read_exact(&mut header)?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        stage.stream.read_exact(&mut vec![0; len as usize])?;
        let Some((what, frames)) = lie else {
            let mut answer = frame(0, &encode(1, OK));
            answer[3] = 1;
            stage.write(&answer)?;
            continue;
        };
        stage.write(frames)?;
        if WANT_MORE.contains(what) {
            return Ok(());
        }
        return stage.wait_for_end();
    }
}

#[test]
fn a_server_whose_frames_lie_ends_its_session_alone() {
    let peer = Peer::start(play);
    for (settings, algorithm) in [
        ("", COMPRESS),
        ("", ZSTD_COMPRESSION),
        ("[compression]\nserver = 'where-offered'\n", 0),
    ] {
        let proxy = Proxy::configured(peer.addr(), settings, &[]);
        let good = Login::default().user("good");
        let mut others = [proxy.login(&good), proxy.login(&good.with(algorithm))];
        others.iter_mut().for_each(|other| drop(other.ok("DO 1")));
        let before = proxy.resident_kib();
        for (what, _) in lies(true) {
            let login = Login::default().user(what).with(algorithm);
            let mut client: WireClient = proxy.login(&login);
            client.send(b"\x03DO 1").unwrap();
            ends(&mut client.stream.tcp().try_clone().unwrap(), what);
            others.iter_mut().for_each(|other| drop(other.ok("DO 1")));
            let grown = proxy.peak_kib().saturating_sub(before);
            assert!(grown < MEMORY_KIB, "{what}: grew by {grown} KiB");
        }
        let (status, log) = proxy.terminate();
        assert!(status.success(), "{log}");
    }
}

/// Ignores earlier bytes, and accepts either EOF or a reset.
#[track_caller]
fn ends(socket: &mut TcpStream, what: &str) {
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    if let Err(error) = io::copy(socket, &mut io::sink()) {
        assert_eq!(
            error.kind(),
            io::ErrorKind::ConnectionReset,
            "{what}: {error}"
        );
    }
}
