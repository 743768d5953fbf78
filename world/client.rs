//! The client's side of the protocol, as far as the app of the world uses it.

use std::collections::BTreeMap;
use std::io;

use headwater_proxy::link::memory::MemoryStream;

use crate::network::{NetworkWeather, between};
use crate::packets::PacketStream;
use crate::pages::TextRows;
use crate::random::Random;

/// PROTOCOL_41, SECURE_CONNECTION, CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC_DATA, TRANSACTIONS.
const CAPABILITIES: u32 = 0x200 | 0x8000 | 8 | 0x8_0000 | 0x20_0000 | 0x2000 | 4 | 2;

/// Types of columns and of values, and the flag of a number that has no sign.
const LONG: u8 = 3;
const LONGLONG: u8 = 8;
const UNSIGNED: u8 = 0x80;

#[derive(Debug)]
pub(crate) struct WorldClient {
    packets: PacketStream,
    /// The ids of its prepared statements.
    prepared: BTreeMap<String, u32>,
}

/// The reply to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientAnswer {
    Ok,
    Rows(TextRows),
    Error(u16, String),
}

impl WorldClient {
    pub(crate) async fn connect(
        address: &str,
        weather: &NetworkWeather,
        random: &mut Random,
    ) -> io::Result<WorldClient> {
        let stream = MemoryStream::dial(address).expect("a world")?;
        let stream = between(stream, weather, random);
        let mut packets = PacketStream::new(stream);
        packets.read().await?;
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend((16u32 << 20).to_le_bytes());
        login.push(45);
        login.extend([0; 23]);
        login.extend(b"app\0\0world\0mysql_native_password\0");
        packets.write(&login);
        packets.flush().await?;
        match packets.read().await?.first() {
            Some(0) => Ok(WorldClient {
                packets,
                prepared: BTreeMap::new(),
            }),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    pub(crate) async fn query(&mut self, text: &str) -> io::Result<ClientAnswer> {
        self.send(&[b"\x03", text.as_bytes()].concat()).await?;
        self.answer(|_, row| text_cells(row)).await
    }

    /// Executes a statement with these numbers for its question marks. Prepares it only once.
    pub(crate) async fn execute(&mut self, text: &str, values: &[u64]) -> io::Result<ClientAnswer> {
        let number = match self.prepared.get(text) {
            Some(number) => *number,
            None => match self.prepare(text).await? {
                Ok(number) => number,
                Err(error) => return Ok(error),
            },
        };
        // No cursor, one iteration; no value is NULL; the types follow.
        let mut command = [&[0x17][..], &number.to_le_bytes(), &[0, 1, 0, 0, 0]].concat();
        if !values.is_empty() {
            command.extend(vec![0; values.len().div_ceil(8)]);
            command.push(1);
            command.extend([LONGLONG, UNSIGNED].repeat(values.len()));
            command.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        self.send(&command).await?;
        self.answer(binary_cells).await
    }

    async fn prepare(&mut self, text: &str) -> io::Result<Result<u32, ClientAnswer>> {
        self.send(&[b"\x16", text.as_bytes()].concat()).await?;
        let first = self.packets.read().await?;
        let (0, Some(head)) = (first[0], first.get(1..9)) else {
            return Ok(Err(error(&first)));
        };
        let number = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        // Columns, and parameters.
        for defined in [&head[4..6], &head[6..8]] {
            while defined != [0, 0] && !is_end(&self.packets.read().await?) {}
        }
        self.prepared.insert(text.to_owned(), number);
        Ok(Ok(number))
    }

    async fn send(&mut self, command: &[u8]) -> io::Result<()> {
        self.packets.restart();
        self.packets.write(command);
        self.packets.flush().await
    }

    /// Reads the reply, its rows by the types of their columns.
    async fn answer(
        &mut self,
        cells: impl Fn(&[u8], &[u8]) -> Vec<Option<String>>,
    ) -> io::Result<ClientAnswer> {
        let first = self.packets.read().await?;
        match first.first() {
            Some(0) => return Ok(ClientAnswer::Ok),
            Some(0xff) => return Ok(error(&first)),
            _ => {}
        }
        let mut types = Vec::new();
        loop {
            let packet = self.packets.read().await?;
            if is_end(&packet) {
                break;
            }
            // Flags, decimals and two zeros follow the type.
            types.push(packet[packet.len() - 6]);
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.packets.read().await?;
            if is_end(&packet) {
                return Ok(ClientAnswer::Rows(rows));
            }
            if packet.first() == Some(&0xff) {
                return Ok(error(&packet));
            }
            rows.push(cells(&types, &packet));
        }
    }
}

fn error(packet: &[u8]) -> ClientAnswer {
    let code = u16::from_le_bytes([packet[1], packet[2]]);
    ClientAnswer::Error(code, String::from_utf8_lossy(&packet[9..]).into_owned())
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

fn text_cells(mut row: &[u8]) -> Vec<Option<String>> {
    let mut cells = Vec::new();
    while let Some((length, rest)) = row.split_first() {
        cells.push(match length {
            0xfb => {
                row = rest;
                None
            }
            _ => Some(text_cell(&mut row)),
        });
    }
    cells
}

/// The cells of an execution's row.
fn binary_cells(types: &[u8], row: &[u8]) -> Vec<Option<String>> {
    // The NULL bitmap follows the first byte and begins at its third bit.
    let (nulls, mut rest) = row[1..].split_at((types.len() + 9) / 8);
    let cells = types.iter().enumerate().map(|(index, kind)| {
        let bit = index + 2;
        if nulls[bit / 8] >> (bit % 8) & 1 == 1 {
            return None;
        }
        let bytes = match *kind {
            LONGLONG => 8,
            LONG => 4,
            _ => return Some(text_cell(&mut rest)),
        };
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&rest[..bytes]);
        rest = &rest[bytes..];
        Some(u64::from_le_bytes(number).to_string())
    });
    cells.collect()
}

/// Takes a length-prefixed text off the front.
fn text_cell(row: &mut &[u8]) -> String {
    let (length, rest) = match **row {
        [0xfc, low, high, ref rest @ ..] => (usize::from(u16::from_le_bytes([low, high])), rest),
        [length, ref rest @ ..] => (usize::from(length), rest),
        [] => (0, &[][..]),
    };
    let (text, remaining) = rest.split_at(length);
    *row = remaining;
    String::from_utf8_lossy(text).into_owned()
}
