//! Packets on a connection in memory: both sides of the protocol use them.

use std::io;

use headwater_proxy::link::memory::MemoryStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// One end of a connection. Written bytes are buffered until the flush.
#[derive(Debug)]
pub(crate) struct PacketStream {
    stream: MemoryStream,
    seq: u8,
    out: Vec<u8>,
}

impl PacketStream {
    pub(crate) fn new(stream: MemoryStream) -> PacketStream {
        PacketStream {
            stream,
            seq: 0,
            out: Vec::new(),
        }
    }

    /// Resets the sequence number for a new command.
    pub(crate) fn restart(&mut self) {
        self.seq = 0;
    }

    pub(crate) async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).await?;
        let [a, b, c, seq] = header;
        let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.stream.read_exact(&mut payload).await?;
        self.seq = seq.wrapping_add(1);
        Ok(payload)
    }

    pub(crate) fn write(&mut self, payload: &[u8]) {
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        self.out.extend([a, b, c, self.seq]);
        self.out.extend(payload);
        self.seq = self.seq.wrapping_add(1);
    }

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        self.stream.write_all(&out).await
    }
}
