//! Compression on a link.

use std::cell::RefCell;
use std::io;

use headwater_wire::compression::{
    CompressionAlgorithm, CompressionFrameReader, CompressionFrameWriter, FrameCompressor,
};

/// Size of a read from the socket.
const RAW_BYTES: usize = 16 * 1024;

thread_local! {
    static COMPRESSOR: RefCell<FrameCompressor> = RefCell::default();
}

/// Both directions of a compressed connection.
#[derive(Debug)]
pub(super) struct CompressionLayer {
    unpacker: CompressionFrameReader,
    /// Encodes outgoing frames.
    pub(super) packer: CompressionFrameWriter,
    /// More may be readable without the socket; cleared when a read finds nothing.
    readable: bool,
}

impl CompressionLayer {
    pub(super) fn new(
        algorithm: CompressionAlgorithm,
        commands: bool,
        begun: &[u8],
    ) -> CompressionLayer {
        let mut unpacker = CompressionFrameReader::new(algorithm);
        unpacker.feed(begun);
        CompressionLayer {
            unpacker,
            packer: CompressionFrameWriter::new(algorithm, commands),
            readable: !begun.is_empty(),
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Unpacks buffered bytes, and what `read` returns.
    pub(super) fn read(
        &mut self,
        into: &mut [u8],
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let unpacked = self.unpacker.read(into);
            let unpacked =
                unpacked.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.readable = unpacked > 0;
            if unpacked > 0 {
                self.packer.received(self.unpacker.seq());
                return Ok(unpacked);
            }
            let mut raw = [0; RAW_BYTES];
            match read(&mut raw)? {
                0 => return Ok(0),
                len => self.unpacker.feed(raw.get(..len).unwrap_or_default()),
            }
        }
    }

    /// The number of the last frame read.
    pub(super) fn seq(&self) -> u8 {
        self.unpacker.seq()
    }

    pub(super) fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut frames = Vec::new();
        COMPRESSOR.with_borrow_mut(|compressor| self.packer.pack(bytes, compressor, &mut frames));
        frames
    }
}
