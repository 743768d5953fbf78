//! The content of a reply: OK, ERR and text rows as values.

use super::capability;
use super::packet::{Packet, Values};

/// One of the answers in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok(OkPacket),
    Err(ServerError),
    Rows(ResultSet),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OkPacket {
    pub(crate) affected_rows: u64,
    pub(crate) last_insert_id: u64,
    pub(crate) status: u16,
    pub(crate) warnings: u16,
    /// The info text and session state, in wire format.
    pub(crate) rest: Vec<u8>,
}

impl OkPacket {
    pub(crate) fn parse(payload: &[u8]) -> OkPacket {
        let mut values = Values(&payload[1..]);
        OkPacket {
            affected_rows: values.lenenc(),
            last_insert_id: values.lenenc(),
            status: values.int(2) as u16,
            warnings: values.int(2) as u16,
            rest: values.0.to_vec(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) code: u16,
    /// Empty before login, where servers leave it out.
    pub(crate) sqlstate: String,
    pub(crate) message: String,
}

impl ServerError {
    pub(crate) fn parse(payload: &[u8]) -> ServerError {
        let mut values = Values(&payload[1..]);
        let code = values.int(2) as u16;
        let mut sqlstate = &[][..];
        if values.0.first() == Some(&b'#') {
            values.take(1);
            sqlstate = values.take(5);
        }
        ServerError {
            code,
            sqlstate: text(sqlstate),
            message: text(values.0),
        }
    }
}

/// The rows of a text result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultSet {
    /// Column definition packets in wire format; none where metadata is omitted.
    pub(crate) columns: Vec<Vec<u8>>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
    pub(crate) status: u16,
    pub(crate) warnings: u16,
}

/// The answers in the packets of a reply to a text query.
pub(crate) fn answers(packets: &[Packet], capabilities: u64) -> Vec<Answer> {
    let mut packets = packets.iter();
    let mut answers = Vec::new();
    while let Some(packet) = packets.next() {
        answers.push(match packet.first_byte() {
            Some(0x00) => Answer::Ok(OkPacket::parse(&packet.payload)),
            Some(0xff) => Answer::Err(ServerError::parse(&packet.payload)),
            // LOCAL INFILE: the answer follows the client's data.
            Some(0xfb) => continue,
            _ => result_set(packet, &mut packets, capabilities),
        });
    }
    answers
}

fn result_set<'a>(
    first: &Packet,
    packets: &mut impl Iterator<Item = &'a Packet>,
    capabilities: u64,
) -> Answer {
    let deprecate_eof = capabilities & capability::DEPRECATE_EOF != 0;
    let mut values = Values(&first.payload);
    let count = values.lenenc() as usize;
    let with_metadata = values.0.first() != Some(&0);
    let mut columns = Vec::new();
    if with_metadata {
        columns.extend(
            packets
                .by_ref()
                .take(count)
                .map(|column| column.payload.clone()),
        );
    }
    if !deprecate_eof {
        packets.next();
    }
    let mut rows = Vec::new();
    for packet in packets {
        if packet.first_byte() == Some(0xff) {
            return Answer::Err(ServerError::parse(&packet.payload));
        }
        if ends_rows(packet, capabilities) {
            let (status, warnings) = terminator(packet, capabilities);
            return Answer::Rows(ResultSet {
                columns,
                rows,
                status,
                warnings,
            });
        }
        let mut cells = Values(&packet.payload);
        rows.push((0..count).map(|_| cells.cell().map(text)).collect());
    }
    panic!("a result set without an end")
}

/// True for the packet that ends the rows. A row may start with 0xFE too, but is then long.
pub(crate) fn ends_rows(packet: &Packet, capabilities: u64) -> bool {
    let deprecate_eof = capabilities & capability::DEPRECATE_EOF != 0;
    let limit = if deprecate_eof {
        super::packet::MAX_PART
    } else {
        9
    };
    packet.first_byte() == Some(0xfe) && packet.first_part < limit
}

/// Status flags and warning count of the packet that ends definitions or rows.
pub(crate) fn terminator(packet: &Packet, capabilities: u64) -> (u16, u16) {
    if capabilities & capability::DEPRECATE_EOF != 0 && packet.payload.len() >= 7 {
        let ok = OkPacket::parse(&packet.payload);
        return (ok.status, ok.warnings);
    }
    let mut values = Values(&packet.payload[1..]);
    let warnings = values.int(2) as u16;
    (values.int(2) as u16, warnings)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
