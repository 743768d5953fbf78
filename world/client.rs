//! A client's side of the protocol: as much as the app of the world speaks.

use std::io;

use crate::network::{Weather, between};
use crate::run::Random;
use headwater::link::memory::MemoryStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// PROTOCOL_41, SECURE_CONNECTION, CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC_DATA, TRANSACTIONS.
const CAPABILITIES: u32 = 0x200 | 0x8000 | 8 | 0x8_0000 | 0x20_0000 | 0x2000 | 4 | 2;

#[derive(Debug)]
pub(crate) struct Client {
    stream: MemoryStream,
    seq: u8,
}

/// What a statement came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    Rows(Vec<Vec<Option<String>>>),
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
        let mut client = Client { stream, seq: 0 };
        client.read().await?;
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend((16u32 << 20).to_le_bytes());
        login.push(45);
        login.extend([0; 23]);
        login.extend(b"app\0\0world\0mysql_native_password\0");
        client.write(&login).await?;
        match client.read().await?.first() {
            Some(0) => Ok(client),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    pub(crate) async fn query(&mut self, text: &str) -> io::Result<Answer> {
        self.seq = 0;
        self.write(&[b"\x03", text.as_bytes()].concat()).await?;
        let first = self.read().await?;
        match first.first() {
            Some(0) => return Ok(Answer::Ok),
            Some(0xff) => {
                let code = u16::from_le_bytes([first[1], first[2]]);
                let message = String::from_utf8_lossy(&first[9..]).into_owned();
                return Ok(Answer::Error(code, message));
            }
            _ => {}
        }
        while !is_end(&self.read().await?) {}
        let mut rows = Vec::new();
        loop {
            let packet = self.read().await?;
            if is_end(&packet) {
                return Ok(Answer::Rows(rows));
            }
            if packet.first() == Some(&0xff) {
                let message = String::from_utf8_lossy(&packet[9..]).into_owned();
                return Ok(Answer::Error(
                    u16::from_le_bytes([packet[1], packet[2]]),
                    message,
                ));
            }
            rows.push(cells(&packet));
        }
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).await?;
        let [a, b, c, seq] = header;
        let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.stream.read_exact(&mut payload).await?;
        self.seq = seq.wrapping_add(1);
        Ok(payload)
    }

    async fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        let packet = [&[a, b, c, self.seq][..], payload].concat();
        self.stream.write_all(&packet).await
    }
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
