//! Parses query events: statements in the log.

use super::LogStreamError;
use headwater_wire::cursor::{MalformedPacket, PacketCursor};

/// Status variable `Q_XID`: the number of the transaction that changed a definition.
const MARIADB_XID: u8 = 129;

/// The parts of a query event. In a compressed one only the text is compressed.
pub(crate) struct QueryEvent<'a> {
    pub(crate) schema: &'a [u8],
    pub(crate) text: &'a [u8],
    /// It changed a definition and nothing else: MariaDB since 10.6 reports that.
    pub(crate) only_defines: bool,
}

impl<'a> QueryEvent<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<QueryEvent<'a>, LogStreamError> {
        let mut body = PacketCursor::new(body);
        // Thread id and execution time.
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

/// Whether these variables contain `Q_XID`, as far as those before it are known (`log_event.h`).
fn has_ddl_xid(variables: &[u8]) -> Result<bool, MalformedPacket> {
    let mut variables = PacketCursor::new(variables);
    loop {
        let length = match variables.u8()? {
            MARIADB_XID => return Ok(variables.take(8).is_ok()),
            // Flags; auto-increment settings; length of master data.
            0 | 3 | 10 => 4,
            // SQL modes; bitmap of updated tables.
            1 | 9 => 8,
            // Character sets; locale of month names.
            4 => 6,
            7 | 8 => 2,
            // Time zone; catalogue.
            5 | 6 => usize::from(variables.u8()?),
            // Definer: the account's user and host.
            11 => {
                let user = usize::from(variables.u8()?);
                variables.take(user)?;
                usize::from(variables.u8()?)
            }
            // Microseconds.
            13 | 128 => 3,
            _ => return Ok(false),
        };
        variables.take(length)?;
    }
}
