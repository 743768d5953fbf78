//! A statement in the log.

use super::Lost;
use headwater_wire::cursor::Cursor;

/// What a query event says. In a compressed one the text is compressed, and nothing else.
pub(crate) struct Query<'a> {
    pub(crate) schema: &'a [u8],
    pub(crate) text: &'a [u8],
}

impl<'a> Query<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Query<'a>, Lost> {
        let mut body = Cursor::new(body);
        // Session, and seconds.
        body.take(4 + 4)?;
        let schema = usize::from(body.u8()?);
        let _error = body.u16()?;
        let variables = usize::from(body.u16()?);
        body.take(variables)?;
        let schema = body.take(schema)?;
        let _nul = body.u8()?;
        Ok(Query {
            schema,
            text: body.rest(),
        })
    }
}
