//! A statement in the log.

use super::LogStreamError;
use headwater_wire::cursor::{MalformedPacket, PacketCursor};

/// Of the variables in front of a statement: the number of the transaction in which a definition was changed (`Q_XID`).
const MARIADB_XID: u8 = 129;

/// What a query event says. In a compressed one the text is compressed, and nothing else.
pub(crate) struct QueryEvent<'a> {
    pub(crate) schema: &'a [u8],
    pub(crate) text: &'a [u8],
    /// It changed how something is defined, and nothing else: MariaDB since 10.6 tells it.
    pub(crate) only_defines: bool,
}

impl<'a> QueryEvent<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<QueryEvent<'a>, LogStreamError> {
        let mut body = PacketCursor::new(body);
        // Session, and seconds.
        body.take(4 + 4)?;
        let schema = usize::from(body.u8()?);
        let _error = body.u16()?;
        let variables = usize::from(body.u16()?);
        let variables = body.take(variables)?;
        let schema = body.take(schema)?;
        let _nul = body.u8()?;
        Ok(QueryEvent {
            schema,
            text: body.rest(),
            only_defines: has_ddl_xid(variables).unwrap_or(false),
        })
    }
}

/// Whether these variables hold the number, as far as those before it are known (`log_event.h`).
fn has_ddl_xid(variables: &[u8]) -> Result<bool, MalformedPacket> {
    let mut variables = PacketCursor::new(variables);
    loop {
        let length = match variables.u8()? {
            MARIADB_XID => return Ok(variables.take(8).is_ok()),
            // Flags, and when a row number was drawn.
            0 | 3 | 10 => 4,
            // Modes, and tables that are changed.
            1 | 9 => 8,
            // Character sets; names of months.
            4 => 6,
            7 | 8 => 2,
            // A time zone, the catalogue.
            5 | 6 => usize::from(variables.u8()?),
            // Who defines: an account's two parts.
            11 => {
                let user = usize::from(variables.u8()?);
                variables.take(user)?;
                usize::from(variables.u8()?)
            }
            // Parts of a second.
            13 | 128 => 3,
            _ => return Ok(false),
        };
        variables.take(length)?;
    }
}
