//! Free ports for private servers, which no other program takes soon.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports below the range of outgoing connections (32768 and up on Linux), so that a server's port is still free when it restarts.
const FIRST_PORT: u16 = 20_000;
/// The ports are divided into blocks; concurrent processes use different ones.
const BLOCK_COUNT: u16 = 60;
/// Ports of a block. The first one marks it: the block belongs to the process that listens there.
const BLOCK_PORTS: u16 = 200;

/// A port of this machine without a listener, that no other program takes soon, and that this process did not return before, or only
/// thousands of ports ago.
///
/// # Errors
/// Fails if none of the 12,000 ports from 20,000 on is free.
pub fn free_port() -> io::Result<u16> {
    static PORTS: Mutex<PortBlocks> = Mutex::new(PortBlocks::NONE);
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    ports.next(std::process::id())
}

struct PortBlocks {
    /// The listeners on the blocks' first ports: the system closes them when the process ends.
    marks: Vec<(u16, TcpListener)>,
    /// The index of the current block, and the last port of it that was returned.
    current: (usize, u16),
}

impl PortBlocks {
    const NONE: PortBlocks = PortBlocks {
        marks: Vec::new(),
        current: (0, BLOCK_PORTS - 1),
    };

    /// The next port. `process` decides where the search for blocks begins.
    fn next(&mut self, process: u32) -> io::Result<u16> {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        // At most each port once, including those of other processes.
        for _ in 0..u32::from(BLOCK_COUNT) * u32::from(BLOCK_PORTS) {
            let (block, port) = &mut self.current;
            *port += 1;
            if *port >= BLOCK_PORTS {
                *port = 1;
                *block = match claim_block(process) {
                    Ok(mark) => {
                        self.marks.push(mark);
                        self.marks.len() - 1
                    }
                    // All blocks are taken: reuse this process's blocks.
                    Err(_) if !self.marks.is_empty() => (*block + 1) % self.marks.len(),
                    Err(error) => return Err(error),
                };
            }
            let port = self.marks.get(*block).map_or(0, |mark| mark.0) + *port;
            match listen(port) {
                Ok(_) => return Ok(port),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Claims a free block: its first port, and its mark.
fn claim_block(process: u32) -> io::Result<(u16, TcpListener)> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    let start = u16::try_from(process % u32::from(BLOCK_COUNT)).unwrap_or_default();
    for step in 0..BLOCK_COUNT {
        let first = FIRST_PORT + (start + step) % BLOCK_COUNT * BLOCK_PORTS;
        match listen(first) {
            Ok(mark) => return Ok((first, mark)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn processes_side_by_side_have_different_ports_and_none_is_had_twice() {
        let mut both = [PortBlocks::NONE, PortBlocks::NONE];
        let mut had = HashSet::new();
        for _ in 0..u32::from(BLOCK_PORTS) * 2 {
            // Both begin their search at the same block.
            for ports in &mut both {
                let port = ports.next(7).unwrap();
                assert!(
                    (FIRST_PORT..FIRST_PORT + BLOCK_COUNT * BLOCK_PORTS).contains(&port),
                    "{port}"
                );
                assert!(had.insert(port), "{port} was given out before");
            }
        }
    }
}
