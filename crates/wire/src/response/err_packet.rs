//! The ERR packet.

use std::fmt;

use super::ERR;
use crate::cursor::{MalformedPacket, PacketCursor};

/// An error from a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrPacket {
    /// Error code, e.g. 1305.
    pub code: u16,
    /// SQLSTATE; `None` before the greeting, where ERR packets have none.
    pub sqlstate: Option<[u8; 5]>,
    /// Text in the session's character set.
    pub message: Vec<u8>,
}

impl ErrPacket {
    /// An error with a SQLSTATE.
    #[must_use]
    pub fn new(code: u16, sqlstate: [u8; 5], message: impl Into<Vec<u8>>) -> Self {
        Self {
            code,
            sqlstate: Some(sqlstate),
            message: message.into(),
        }
    }

    /// Reads the payload of an ERR packet. A message without the `#` of a SQLSTATE has none.
    ///
    /// # Errors
    /// [`MalformedPacket`] when the first byte is not 0xFF or the code is cut short.
    pub fn parse(payload: &[u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = PacketCursor::new(payload);
        let header = cursor.u8()?;
        if header != ERR {
            return Err(MalformedPacket::Unexpected {
                at: 0,
                value: header.into(),
            });
        }
        let code = cursor.u16()?;
        let rest = cursor.rest();
        let (sqlstate, message) = match rest {
            [b'#', a, b, c, d, e, message @ ..] => (Some([*a, *b, *c, *d, *e]), message),
            message => (None, message),
        };
        Ok(Self {
            code,
            sqlstate,
            message: message.to_vec(),
        })
    }

    /// Appends the payload of this packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(ERR);
        out.extend(self.code.to_le_bytes());
        if let Some(sqlstate) = self.sqlstate {
            out.push(b'#');
            out.extend(sqlstate);
        }
        out.extend_from_slice(&self.message);
    }
}

impl fmt::Display for ErrPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(sqlstate) = self.sqlstate {
            write!(f, " ({})", String::from_utf8_lossy(&sqlstate))?;
        }
        write!(f, ": {}", String::from_utf8_lossy(&self.message))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_with_and_without_a_sqlstate() {
        for (payload, text) in [
            (
                &b"\xff\x10\x04Too many connections"[..],
                "1040: Too many connections",
            ),
            (
                b"\xff\x19\x05#42000PROCEDURE tl.x does not exist",
                "1305 (42000): PROCEDURE tl.x does not exist",
            ),
        ] {
            let packet = ErrPacket::parse(payload).unwrap();
            assert_eq!(packet.to_string(), text);
            let mut written = Vec::new();
            packet.write(&mut written);
            assert_eq!(written, payload);
        }
        assert!(ErrPacket::parse(b"\xff\x10").is_err());
        assert!(ErrPacket::parse(b"\0\0\0\x02\0\0\0").is_err());
    }
}
