//! Packets in wire format, and a reader of their values. This code is separate from Headwater's own, so that the two cannot share a
//! mistake.

use std::io::{self, Read};

/// The next packet continues a packet of this length.
pub(crate) const MAX_PART: usize = 0xff_ffff;

/// One logical packet: its parts of 16 MiB joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Sequence number of the first part.
    pub(crate) seq: u8,
    /// Length of the first part: it and the first byte decide the packet's kind.
    pub(crate) first_part: usize,
    pub(crate) payload: Vec<u8>,
}

impl Packet {
    /// Reads one packet; `raw` gets the same bytes with their headers.
    pub(crate) fn read(stream: &mut impl Read, raw: &mut Vec<u8>) -> io::Result<Packet> {
        let mut packet: Option<Packet> = None;
        loop {
            let mut header = [0; 4];
            stream.read_exact(&mut header)?;
            raw.extend(header);
            let [a, b, c, seq] = header;
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let packet = packet.get_or_insert_with(|| Packet {
                seq,
                first_part: len,
                payload: Vec::new(),
            });
            let start = packet.payload.len();
            packet.payload.resize(start + len, 0);
            stream.read_exact(&mut packet.payload[start..])?;
            raw.extend(&packet.payload[start..]);
            if len < MAX_PART {
                return Ok(std::mem::replace(
                    packet,
                    Packet {
                        seq: 0,
                        first_part: 0,
                        payload: Vec::new(),
                    },
                ));
            }
        }
    }

    pub(crate) fn first_byte(&self) -> Option<u8> {
        self.payload.first().copied()
    }
}

/// `payload` with its header, in several parts where it is too long for one.
pub(crate) fn encode(mut seq: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 8);
    let mut parts = payload.chunks(MAX_PART).peekable();
    loop {
        let part = parts.next().unwrap_or_default();
        bytes.extend(&(part.len() as u32).to_le_bytes()[..3]);
        bytes.push(seq);
        bytes.extend(part);
        seq = seq.wrapping_add(1);
        if part.len() < MAX_PART {
            return bytes;
        }
    }
}

/// Length-encoded integer.
pub(crate) fn put_lenenc(out: &mut Vec<u8>, value: usize) {
    match value {
        0..=250 => out.push(value as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend((value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend((value as u64).to_le_bytes());
        }
    }
}

/// Length-encoded string.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len());
    out.extend(bytes);
}

/// Reads values from the start of a payload. Panics on a short one, since a test server sent it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a>(pub(crate) &'a [u8]);

impl<'a> Values<'a> {
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len);
        self.0 = rest;
        front
    }

    /// A little-endian integer of `len` bytes.
    pub(crate) fn int(&mut self, len: usize) -> u64 {
        self.take(len)
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    pub(crate) fn lenenc(&mut self) -> u64 {
        match self.int(1) {
            0xfc => self.int(2),
            0xfd => self.int(3),
            0xfe => self.int(8),
            value => value,
        }
    }

    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = self.lenenc() as usize;
        self.take(len)
    }

    /// A cell of a text row: `None` is NULL.
    pub(crate) fn cell(&mut self) -> Option<&'a [u8]> {
        if self.0.first() == Some(&0xfb) {
            self.take(1);
            return None;
        }
        Some(self.bytes())
    }

    pub(crate) fn until_nul(&mut self) -> &'a [u8] {
        let len = self
            .0
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(self.0.len());
        let value = self.take(len);
        self.0 = self.0.get(1..).unwrap_or_default();
        value
    }
}
