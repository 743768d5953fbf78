//! Bytes that nobody looks at go from one socket to the other within the system (`splice`): they are not copied.
//!
//! Each thread has one pipe for it. It is empty again behind every call: what the second socket did not take is read out of it
//! and waits as what was sent in other ways does.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;

use super::Link;

/// Bytes that are moved at a time, and that may have to wait for the second socket. The system may allow a pipe less.
const PIPE_BYTES: usize = 256 * 1024;

thread_local! {
    static PIPE: RefCell<Option<Pipe>> = const { RefCell::new(None) };
}

struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

/// Why nothing was moved.
#[derive(Debug)]
pub enum Stopped {
    /// There is nothing at the moment.
    Empty,
    /// These two cannot be joined in this way: read and write.
    Unable,
    /// There will be nothing more.
    From(io::Error),
    /// The second one failed.
    To,
}

/// Moves what is there, and at most `most` bytes, from one link to another that has nothing waiting. Returns how many.
///
/// # Errors
/// See [`Stopped`].
pub fn carry(from: &mut Link, to: &mut Link, most: usize) -> Result<usize, Stopped> {
    if !from.is_plain() || !to.is_plain() {
        return Err(Stopped::Unable);
    }
    PIPE.with_borrow_mut(|slot| {
        let pipe = match slot {
            Some(pipe) => pipe,
            None => slot.insert(Pipe::new().map_err(|_| Stopped::Unable)?),
        };
        let moved = pipe.take(from, most)?;
        if pipe.give(to, moved).is_err() {
            // With what is left in it.
            *slot = None;
            to.forget();
            return Err(Stopped::To);
        }
        Ok(moved)
    })
}

impl Pipe {
    fn new() -> io::Result<Pipe> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
        Ok(Pipe { out, into })
    }

    fn take(&self, from: &Link, most: usize) -> Result<usize, Stopped> {
        let moved = from.socket.attempt(Interest::READABLE, |socket| {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            Ok(splice(
                socket,
                None,
                &self.into,
                None,
                most.min(PIPE_BYTES),
                flags,
            )?)
        });
        moved.map_or_else(
            |error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Err(Stopped::Empty),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Err(Stopped::Unable),
                _ => Err(Stopped::From(error)),
            },
            |moved| match moved {
                0 => Err(Stopped::From(io::ErrorKind::UnexpectedEof.into())),
                _ => Ok(moved),
            },
        )
    }

    fn give(&self, to: &mut Link, bytes: usize) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let given = to.socket.attempt(Interest::WRITABLE, |socket| {
                let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
                Ok(splice(&self.out, None, socket, None, left, flags)?)
            });
            match given {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(given) => left -= given,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.keep(to, left);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What the socket did not take waits in the link.
    fn keep(&self, to: &mut Link, mut left: usize) -> io::Result<()> {
        let held = to.backlog.len();
        to.backlog.resize(held + left, 0);
        while left > 0 {
            let end = to.backlog.len();
            let room = to.backlog.get_mut(end - left..).unwrap_or_default();
            match rustix::io::read(&self.out, room)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => left -= read,
            }
        }
        Ok(())
    }
}
