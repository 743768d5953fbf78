//! The compressed protocol, with the strict checks of the C clients.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};

const MOST: usize = 0xff_ffff;
const LEAST: usize = 50;

#[derive(Debug)]
pub(crate) struct Frames {
    zstd: bool,
    /// The maximum of bytes in a frame.
    pub(super) most: usize,
    seq: u8,
    plain: Vec<u8>,
    at: usize,
    came: usize,
    went: usize,
}

impl Frames {
    pub(super) fn new(zstd: bool) -> Frames {
        Frames {
            zstd,
            most: MOST,
            seq: 0,
            plain: Vec::new(),
            at: 0,
            came: 0,
            went: 0,
        }
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (self.came, self.went)
    }

    pub(super) fn begin(&mut self) {
        self.seq = 0;
    }

    pub(super) fn write(&mut self, socket: &mut impl Write, packet: &[u8]) -> io::Result<()> {
        for plain in packet.chunks(self.most) {
            let frame = framed(self.seq, plain, self.zstd);
            socket.write_all(&frame)?;
            self.went += frame.len();
            self.seq = self.seq.wrapping_add(1);
        }
        Ok(())
    }

    pub(super) fn read(&mut self, socket: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.plain.len() {
            let Some(frame) = Frame::read(socket, self.zstd)? else {
                return Ok(0);
            };
            assert_eq!(frame.seq, self.seq, "frames are out of order");
            self.seq = frame.seq.wrapping_add(1);
            self.came += frame.length;
            (self.at, self.plain) = (0, frame.plain);
        }
        let len = into.len().min(self.plain.len() - self.at);
        into[..len].copy_from_slice(&self.plain[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// A received frame.
pub(crate) struct Frame {
    pub(crate) seq: u8,
    pub(crate) plain: Vec<u8>,
    length: usize,
}

impl Frame {
    /// The next frame; `None` where the peer closed the connection between two frames.
    pub(crate) fn read(socket: &mut impl Read, zstd: bool) -> io::Result<Option<Frame>> {
        let mut header = [0; 7];
        let mut have = 0;
        while have < header.len() {
            match socket.read(&mut header[have..])? {
                0 if have == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => have += len,
            }
        }
        let int = |at: usize| {
            usize::from(header[at])
                | usize::from(header[at + 1]) << 8
                | usize::from(header[at + 2]) << 16
        };
        let mut body = vec![0; int(0)];
        socket.read_exact(&mut body)?;
        let length = header.len() + body.len();
        let plain = match int(4) {
            0 => body,
            plain => {
                let mut unpacked = Vec::new();
                if zstd {
                    unpacked = zstd::bulk::decompress(&body, plain)?;
                } else {
                    ZlibDecoder::new(&body[..]).read_to_end(&mut unpacked)?;
                }
                assert_eq!(unpacked.len(), plain, "a frame's length");
                unpacked
            }
        };
        Ok(Some(Frame {
            seq: header[3],
            plain,
            length,
        }))
    }
}

/// Compresses bytes, whether that is shorter or not.
pub(crate) fn packed(plain: &[u8], zstd: bool) -> Vec<u8> {
    if zstd {
        return zstd::bulk::compress(plain, 3).unwrap();
    }
    let mut packed = Vec::new();
    let mut encoder = ZlibEncoder::new(plain, Compression::default());
    encoder.read_to_end(&mut packed).unwrap();
    packed
}

/// A frame with this body and this uncompressed length; 0: the body is not compressed.
pub(crate) fn frame(seq: u8, plain: usize, body: &[u8]) -> Vec<u8> {
    let mut frame = body.len().to_le_bytes()[..3].to_vec();
    frame.push(seq);
    frame.extend(&plain.to_le_bytes()[..3]);
    frame.extend(body);
    frame
}

/// A frame of these bytes, compressed where that is worth it.
pub(crate) fn framed(seq: u8, plain: &[u8], zstd: bool) -> Vec<u8> {
    let packed = (plain.len() >= LEAST).then(|| packed(plain, zstd));
    match packed.filter(|packed| packed.len() < plain.len()) {
        Some(packed) => frame(seq, plain.len(), &packed),
        None => frame(seq, 0, plain),
    }
}
