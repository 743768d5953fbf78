//! Moves bytes that need no reading from one socket to the other within the kernel (`splice`), without a copy.
//!
//! Each thread has one pipe. It is empty after every call: bytes that the second socket did not take are read out of it into the link's
//! backlog.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;

use super::NetworkLink;

/// Bytes moved at a time; as many may have to wait for the second socket. The system may allow a smaller pipe.
const PIPE_BYTES: usize = 256 * 1024;

thread_local! {
    static PIPE: RefCell<Option<SplicePipe>> = const { RefCell::new(None) };
}

struct SplicePipe {
    read_end: OwnedFd,
    write_end: OwnedFd,
}

/// Why nothing was moved.
#[derive(Debug)]
pub enum SpliceStop {
    /// Nothing is available now.
    Empty,
    /// These two sockets cannot be spliced: read and write instead.
    Unsupported,
    /// The source has ended or failed.
    Source(io::Error),
    /// The destination failed.
    Destination,
}

/// Moves at most `most` available bytes to a link that has nothing buffered. Returns how many.
///
/// # Errors
/// See [`SpliceStop`].
pub fn splice_bytes(
    from: &mut NetworkLink,
    to: &mut NetworkLink,
    most: usize,
) -> Result<usize, SpliceStop> {
    if !from.is_plain() || !to.is_plain() {
        return Err(SpliceStop::Unsupported);
    }
    PIPE.with_borrow_mut(|slot| {
        let pipe = match slot {
            Some(pipe) => pipe,
            None => slot.insert(SplicePipe::new().map_err(|_| SpliceStop::Unsupported)?),
        };
        let moved = pipe.fill_from(from, most)?;
        if pipe.drain_to(to, moved).is_err() {
            // Drop the pipe with its remaining bytes.
            *slot = None;
            to.discard_backlog();
            return Err(SpliceStop::Destination);
        }
        Ok(moved)
    })
}

impl SplicePipe {
    fn new() -> io::Result<SplicePipe> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
        Ok(SplicePipe {
            read_end: out,
            write_end: into,
        })
    }

    fn fill_from(&self, from: &NetworkLink, most: usize) -> Result<usize, SpliceStop> {
        let moved = from.socket.try_io(Interest::READABLE, |socket| {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            Ok(splice(
                socket,
                None,
                &self.write_end,
                None,
                most.min(PIPE_BYTES),
                flags,
            )?)
        });
        moved.map_or_else(
            |error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Err(SpliceStop::Empty),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
                    Err(SpliceStop::Unsupported)
                }
                _ => Err(SpliceStop::Source(error)),
            },
            |moved| match moved {
                0 => Err(SpliceStop::Source(io::ErrorKind::UnexpectedEof.into())),
                _ => Ok(moved),
            },
        )
    }

    fn drain_to(&self, to: &mut NetworkLink, bytes: usize) -> io::Result<()> {
        let mut remaining = bytes;
        while remaining > 0 {
            let given = to.socket.try_io(Interest::WRITABLE, |socket| {
                let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
                Ok(splice(
                    &self.read_end,
                    None,
                    socket,
                    None,
                    remaining,
                    flags,
                )?)
            });
            match given {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(given) => remaining -= given,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.buffer_remainder(to, remaining);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Buffers in the link what the socket did not take.
    fn buffer_remainder(&self, to: &mut NetworkLink, mut remaining: usize) -> io::Result<()> {
        let held = to.backlog.len();
        to.backlog.resize(held + remaining, 0);
        while remaining > 0 {
            let end = to.backlog.len();
            let room = to.backlog.get_mut(end - remaining..).unwrap_or_default();
            match rustix::io::read(&self.read_end, room)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => remaining -= read,
            }
        }
        Ok(())
    }
}
