//! The server's side of the protocol.

use std::io;

use headwater_proxy::link::memory::MemoryStream;

use crate::answers::ModelReply;
use crate::packets::PacketStream;

const DEPRECATE_EOF: u32 = 1 << 24;
/// The capabilities of a MariaDB server without TLS, compression and session tracking.
const CAPABILITIES: u32 = 0x013f_f7df & !0x20 & !1;

/// One connection.
#[derive(Debug)]
pub(crate) struct ServerPeer {
    packets: PacketStream,
    capabilities: u32,
}

/// A column of a reply: its name, type, character set, length, flags and decimals.
#[derive(Clone, Debug)]
pub(crate) struct ReplyColumn {
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) kind: u8,
    pub(crate) charset: u16,
    pub(crate) length: u32,
    pub(crate) flags: u16,
    pub(crate) decimals: u8,
}

type CellTexts = Vec<Option<String>>;
type RowEncoding = fn(&[ReplyColumn], &[Option<String>]) -> Vec<u8>;

impl ReplyColumn {
    /// The definition of a parameter.
    fn parameter() -> ReplyColumn {
        ReplyColumn {
            table: String::new(),
            name: "?".to_owned(),
            kind: 6,
            charset: 63,
            length: 0,
            flags: 0x80,
            decimals: 0,
        }
    }
}

impl ServerPeer {
    pub(crate) fn new(stream: MemoryStream) -> ServerPeer {
        ServerPeer {
            packets: PacketStream::new(stream),
            capabilities: 0,
        }
    }

    /// Sends the greeting and accepts every login. Returns the account's name.
    pub(crate) async fn log_in(&mut self, version: &str, thread: u64) -> io::Result<String> {
        let mut greeting = vec![10];
        greeting.extend(format!("5.5.5-{version}\0").bytes());
        greeting.extend((thread as u32).to_le_bytes());
        greeting.extend(b"abcdefgh\0");
        let [a, b, c, d] = CAPABILITIES.to_le_bytes();
        greeting.extend([a, b, 45, 2, 0, c, d, 21]);
        greeting.extend([0; 10]);
        greeting.extend(b"ijklmnopqrst\0mysql_native_password\0");
        self.packet(&greeting);
        self.flush().await?;
        let response = self.command().await?;
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let head = response.first_chunk::<4>().ok_or_else(malformed)?;
        self.capabilities = u32::from_le_bytes(*head);
        self.ok(0, 2);
        self.flush().await?;
        // After the capabilities, the maximum packet size and the character set.
        let name = response.get(32..).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next();
        Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
    }

    /// The next command.
    pub(crate) async fn command(&mut self) -> io::Result<Vec<u8>> {
        self.packets.read().await
    }

    pub(crate) fn packet(&mut self, payload: &[u8]) {
        self.packets.write(payload);
    }

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.packets.flush().await
    }

    fn ok(&mut self, affected: u8, status: u16) {
        let [a, b] = status.to_le_bytes();
        self.packet(&[0, affected, 0, a, b, 0, 0]);
    }

    fn error(&mut self, code: u16, state: &str, message: &str) {
        let head = [&[0xff][..], &code.to_le_bytes(), b"#", state.as_bytes()].concat();
        self.packet(&[&head, message.as_bytes()].concat());
    }

    fn end(&mut self, status: u16) {
        let [a, b] = status.to_le_bytes();
        match self.capabilities & DEPRECATE_EOF != 0 {
            true => self.packet(&[0xfe, 0, 0, a, b, 0, 0]),
            false => self.packet(&[0xfe, 0, 0, a, b]),
        }
    }

    /// Sends a reply, its rows in the text or the binary encoding.
    pub(crate) fn send_reply(&mut self, reply: ModelReply, encode: RowEncoding, status: u16) {
        match reply {
            ModelReply::Ok(affected) => self.ok(affected, status),
            ModelReply::Rows(columns, rows) => self.rows(&columns, &rows, encode, status),
            ModelReply::Prepared(number, columns, parameters) => {
                self.prepared(number, &columns, parameters, status);
            }
            ModelReply::Error(code, state, message) => self.error(code, state, &message),
            ModelReply::Unknown(what) => {
                self.error(1105, "HY000", &format!("the model does not know: {what}"));
            }
        }
    }

    /// The end of a binlog dump.
    pub(crate) fn end_of_log(&mut self) {
        self.packet(&[0xfe, 0, 0, 2, 0]);
    }

    fn prepared(&mut self, number: u32, columns: &[ReplyColumn], parameters: u16, status: u16) {
        let [a, b] = (columns.len() as u16).to_le_bytes();
        let [c, d] = parameters.to_le_bytes();
        self.packet(&[&[0][..], &number.to_le_bytes(), &[a, b, c, d, 0, 0, 0]].concat());
        let parameter = ReplyColumn::parameter();
        let parameters = vec![parameter; parameters.into()];
        for defined in [&parameters[..], columns] {
            if !defined.is_empty() {
                self.columns(defined, status);
            }
        }
    }

    fn columns(&mut self, columns: &[ReplyColumn], status: u16) {
        for column in columns {
            let mut bytes = Vec::new();
            let schema = if column.table.is_empty() { "" } else { "world" };
            for text in [
                "def",
                schema,
                &column.table,
                &column.table,
                &column.name,
                &column.name,
            ] {
                text_cell(text.as_bytes(), &mut bytes);
            }
            bytes.push(0x0c);
            bytes.extend(column.charset.to_le_bytes());
            bytes.extend(column.length.to_le_bytes());
            bytes.push(column.kind);
            bytes.extend(column.flags.to_le_bytes());
            bytes.extend([column.decimals, 0, 0]);
            self.packet(&bytes);
        }
        if self.capabilities & DEPRECATE_EOF == 0 {
            self.end(status);
        }
    }

    fn rows(
        &mut self,
        columns: &[ReplyColumn],
        rows: &[CellTexts],
        encode: RowEncoding,
        status: u16,
    ) {
        self.packet(&[columns.len() as u8]);
        self.columns(columns, status);
        for row in rows {
            self.packet(&encode(columns, row));
        }
        self.end(status);
    }
}

/// A row in the text encoding.
pub(crate) fn text_row(_: &[ReplyColumn], row: &[Option<String>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for cell in row {
        match cell {
            None => bytes.push(0xfb),
            Some(text) => text_cell(text.as_bytes(), &mut bytes),
        }
    }
    bytes
}

/// A row in the binary encoding.
pub(crate) fn binary_row(columns: &[ReplyColumn], row: &[Option<String>]) -> Vec<u8> {
    // The NULL bitmap begins at its third bit.
    let mut bytes = vec![0; 1 + (row.len() + 9) / 8];
    for (index, (column, cell)) in columns.iter().zip(row).enumerate() {
        let Some(text) = cell else {
            bytes[1 + (index + 2) / 8] |= 1 << ((index + 2) % 8);
            continue;
        };
        let number = || text.parse::<u64>().expect("a number").to_le_bytes();
        match column.kind {
            8 => bytes.extend(number()),
            3 => bytes.extend(&number()[..4]),
            _ => text_cell(text.as_bytes(), &mut bytes),
        }
    }
    bytes
}

fn text_cell(text: &[u8], out: &mut Vec<u8>) {
    match text.len() {
        length @ 0..=250 => out.push(length as u8),
        length => {
            out.push(0xfc);
            out.extend((length as u16).to_le_bytes());
        }
    }
    out.extend(text);
}
