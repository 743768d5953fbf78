//! COM_CHANGE_USER: a login in the middle of a connection.

use crate::capability::Capabilities;
use crate::cursor::{MalformedPacket, PacketCursor};

/// The contents of COM_CHANGE_USER, without authentication data and attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUserRequest<'a> {
    /// Account name.
    pub user: &'a [u8],
    /// Database to start in; `None` leaves the session without one.
    pub database: Option<&'a [u8]>,
}

impl<'a> ChangeUserRequest<'a> {
    /// Reads the payload of the command, its first byte (0x11) included.
    ///
    /// # Errors
    /// [`MalformedPacket`] when it is another command or a field is cut short.
    pub fn parse(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, MalformedPacket> {
        let mut cursor = PacketCursor::new(payload);
        let command = cursor.u8()?;
        if command != 0x11 {
            return Err(MalformedPacket::Unexpected {
                at: 0,
                value: command.into(),
            });
        }
        let user = cursor.nul_bytes()?;
        // One byte of length here, regardless of PLUGIN_AUTH_LENENC_DATA (manual, COM_CHANGE_USER).
        if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = cursor.u8()?;
            cursor.take(length.into())?;
        } else {
            cursor.nul_bytes()?;
        }
        let database = cursor.nul_bytes()?;
        Ok(Self {
            user,
            database: (!database.is_empty()).then_some(database),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_user_and_database() {
        let payload = b"\x11bob\0\x02xytl\0\x21\0mysql_native_password\0";
        let read = ChangeUserRequest::parse(payload, Capabilities::SECURE_CONNECTION);
        assert_eq!(
            read,
            Ok(ChangeUserRequest {
                user: b"bob",
                database: Some(b"tl")
            })
        );
    }

    #[test]
    fn no_database_is_none() {
        let read = ChangeUserRequest::parse(b"\x11bob\0\0\0", Capabilities::NONE);
        assert_eq!(
            read,
            Ok(ChangeUserRequest {
                user: b"bob",
                database: None
            })
        );
    }
}
