//! Reads the complete reply to any command.

use std::io;

use super::WireClient;
use super::answer::{OkPacket, ends_rows, terminator};
use super::capability;
use super::packet::{Packet, Values};

const MORE_RESULTS: u16 = 0x0008;
const CURSOR_EXISTS: u16 = 0x0040;

/// A reply as bytes and as packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Every byte, headers included.
    pub(crate) raw: Vec<u8>,
    pub(crate) packets: Vec<Packet>,
}

/// The packet size in which a local file is sent.
pub(crate) const INFILE_PACKET: usize = 1 << 12;

impl WireClient {
    /// Reads the complete reply to `command` (its first byte). `self.infile` is the data of a LOCAL INFILE.
    pub(crate) fn reply(&mut self, command: u8) -> io::Result<Reply> {
        let mut reply = Reply::default();
        self.reply_into(command, &mut reply)?;
        Ok(reply)
    }

    /// [`WireClient::reply`] that preserves in `reply` what arrived before an error.
    pub(crate) fn reply_into(&mut self, command: u8, reply: &mut Reply) -> io::Result<()> {
        match command {
            // QUIT, STMT_SEND_LONG_DATA, STMT_CLOSE
            0x01 | 0x18 | 0x19 => {}
            // QUERY, PROCESS_INFO, STMT_EXECUTE, STMT_BULK_EXECUTE
            0x03 | 0x0a | 0x17 | 0xfa => self.read_results(reply)?,
            // FIELD_LIST, STMT_FETCH
            0x04 | 0x1c => while !self.next_ends_rows(reply)? {},
            0x16 => self.read_prepared(reply)?,
            _ => {
                self.next(reply)?;
            }
        }
        Ok(())
    }

    fn read_results(&mut self, reply: &mut Reply) -> io::Result<()> {
        loop {
            let first = self.next(reply)?.clone();
            let status = match first.first_byte() {
                Some(0x00) => OkPacket::parse(&first.payload).status,
                // MariaDB's progress report is not an error.
                Some(0xff) if first.payload.starts_with(&[0xff, 0xff, 0xff]) => MORE_RESULTS,
                Some(0xff) => return Ok(()),
                Some(0xfb) => {
                    self.send_infile(first.seq)?;
                    MORE_RESULTS
                }
                _ => match self.read_rows(&first, reply)? {
                    Some(status) => status,
                    None => return Ok(()),
                },
            };
            if status & MORE_RESULTS == 0 {
                return Ok(());
            }
        }
    }

    /// The status flags at the end of a result set; `None` if an error ended it.
    fn read_rows(&mut self, first: &Packet, reply: &mut Reply) -> io::Result<Option<u16>> {
        let mut values = Values(&first.payload);
        let columns = values.lenenc();
        if values.0.first() != Some(&0) {
            for _ in 0..columns {
                self.next(reply)?;
            }
        }
        let capabilities = self.capabilities;
        if capabilities & capability::DEPRECATE_EOF == 0 {
            let (status, _) = terminator(self.next(reply)?, capabilities);
            if status & CURSOR_EXISTS != 0 {
                return Ok(Some(status));
            }
        }
        while !self.next_ends_rows(reply)? {}
        let last = &reply.packets[reply.packets.len() - 1];
        let failed = last.first_byte() == Some(0xff);
        Ok((!failed).then(|| terminator(last, capabilities).0))
    }

    fn read_prepared(&mut self, reply: &mut Reply) -> io::Result<()> {
        let first = self.next(reply)?.clone();
        if first.first_byte() == Some(0xff) {
            return Ok(());
        }
        let mut values = Values(&first.payload[5..]);
        let (columns, params) = (values.int(2), values.int(2));
        let metadata_follows = self.capabilities & capability::OPTIONAL_RESULTSET_METADATA == 0
            || first.payload.get(12) != Some(&0);
        let eof = u64::from(self.capabilities & capability::DEPRECATE_EOF == 0);
        for count in [params, columns] {
            let definitions = if metadata_follows { count } else { 0 };
            for _ in 0..if count > 0 { definitions + eof } else { 0 } {
                self.next(reply)?;
            }
        }
        Ok(())
    }

    fn next_ends_rows(&mut self, reply: &mut Reply) -> io::Result<bool> {
        let capabilities = self.capabilities;
        let packet = self.next(reply)?;
        Ok(packet.first_byte() == Some(0xff) || ends_rows(packet, capabilities))
    }

    fn next<'a>(&mut self, reply: &'a mut Reply) -> io::Result<&'a Packet> {
        let packet = Packet::read(&mut self.stream, &mut reply.raw)?;
        reply.packets.push(packet);
        Ok(&reply.packets[reply.packets.len() - 1])
    }

    fn send_infile(&mut self, seq: u8) -> io::Result<()> {
        let data = std::mem::take(&mut self.infile);
        let mut seq = seq;
        for part in data.chunks(INFILE_PACKET).chain([&[][..]]) {
            seq = seq.wrapping_add(1);
            self.send_packet(seq, part)?;
        }
        Ok(())
    }
}
