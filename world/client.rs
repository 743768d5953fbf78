//! A client's side of the protocol: as much as the app of the world speaks.

use std::io;

use headwater::link::memory::MemoryStream;

use crate::network::{Weather, between};
use crate::packets::Packets;
use crate::pages::Rows;
use crate::random::Random;

/// PROTOCOL_41, SECURE_CONNECTION, CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC_DATA, TRANSACTIONS.
const CAPABILITIES: u32 = 0x200 | 0x8000 | 8 | 0x8_0000 | 0x20_0000 | 0x2000 | 4 | 2;

#[derive(Debug)]
pub(crate) struct Client {
    packets: Packets,
}

/// What a statement came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    Rows(Rows),
    Error(u16, String),
}

impl Client {
    pub(crate) async fn connect(
        address: &str,
        weather: &Weather,
        random: &mut Random,
    ) -> io::Result<Client> {
        let stream = MemoryStream::dial(address).expect("a world")?;
        let stream = between(stream, weather, random);
        let mut packets = Packets::new(stream);
        packets.read().await?;
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend((16u32 << 20).to_le_bytes());
        login.push(45);
        login.extend([0; 23]);
        login.extend(b"app\0\0world\0mysql_native_password\0");
        packets.write(&login);
        packets.flush().await?;
        match packets.read().await?.first() {
            Some(0) => Ok(Client { packets }),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    pub(crate) async fn query(&mut self, text: &str) -> io::Result<Answer> {
        self.packets.restart();
        self.packets.write(&[b"\x03", text.as_bytes()].concat());
        self.packets.flush().await?;
        let first = self.packets.read().await?;
        match first.first() {
            Some(0) => return Ok(Answer::Ok),
            Some(0xff) => return Ok(error(&first)),
            _ => {}
        }
        while !is_end(&self.packets.read().await?) {}
        let mut rows = Vec::new();
        loop {
            let packet = self.packets.read().await?;
            if is_end(&packet) {
                return Ok(Answer::Rows(rows));
            }
            if packet.first() == Some(&0xff) {
                return Ok(error(&packet));
            }
            rows.push(cells(&packet));
        }
    }
}

fn error(packet: &[u8]) -> Answer {
    let code = u16::from_le_bytes([packet[1], packet[2]]);
    Answer::Error(code, String::from_utf8_lossy(&packet[9..]).into_owned())
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

fn cells(mut row: &[u8]) -> Vec<Option<String>> {
    let mut cells = Vec::new();
    while let Some((length, rest)) = row.split_first() {
        let (length, rest) = match length {
            0xfb => {
                cells.push(None);
                row = rest;
                continue;
            }
            0xfc => (
                usize::from(u16::from_le_bytes([rest[0], rest[1]])),
                &rest[2..],
            ),
            length => (usize::from(*length), rest),
        };
        cells.push(Some(String::from_utf8_lossy(&rest[..length]).into_owned()));
        row = &rest[length..];
    }
    cells
}
