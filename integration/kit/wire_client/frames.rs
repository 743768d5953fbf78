//! The compressed protocol, as strict as the C clients are about it.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};

const MOST: usize = 0xff_ffff;
const LEAST: usize = 50;

#[derive(Debug)]
pub(crate) struct Frames {
    zstd: bool,
    /// Most bytes in one.
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
        for body in packet.chunks(self.most) {
            let packed = if body.len() < LEAST {
                body.to_vec()
            } else if self.zstd {
                zstd::bulk::compress(body, 3)?
            } else {
                let mut packed = Vec::new();
                ZlibEncoder::new(body, Compression::default()).read_to_end(&mut packed)?;
                packed
            };
            let (packed, plain) = match packed.len() < body.len() {
                true => (&packed[..], body.len()),
                false => (body, 0),
            };
            let mut frame = packed.len().to_le_bytes()[..3].to_vec();
            frame.push(self.seq);
            frame.extend(&plain.to_le_bytes()[..3]);
            frame.extend(packed);
            socket.write_all(&frame)?;
            self.went += frame.len();
            self.seq = self.seq.wrapping_add(1);
        }
        Ok(())
    }

    pub(super) fn read(&mut self, socket: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.plain.len() {
            let mut header = [0; 7];
            let mut have = 0;
            while have < header.len() {
                match socket.read(&mut header[have..])? {
                    0 if have == 0 => return Ok(0),
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    len => have += len,
                }
            }
            let int = |at: usize| {
                usize::from(header[at])
                    | usize::from(header[at + 1]) << 8
                    | usize::from(header[at + 2]) << 16
            };
            assert_eq!(header[3], self.seq, "frames are out of order");
            self.seq = header[3].wrapping_add(1);
            let mut body = vec![0; int(0)];
            socket.read_exact(&mut body)?;
            self.came += 7 + body.len();
            self.at = 0;
            self.plain = match int(4) {
                0 => body,
                plain => {
                    let mut unpacked = Vec::new();
                    if self.zstd {
                        unpacked = zstd::bulk::decompress(&body, plain)?;
                    } else {
                        ZlibDecoder::new(&body[..]).read_to_end(&mut unpacked)?;
                    }
                    assert_eq!(unpacked.len(), plain, "a frame's length");
                    unpacked
                }
            };
        }
        let len = into.len().min(self.plain.len() - self.at);
        into[..len].copy_from_slice(&self.plain[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}
