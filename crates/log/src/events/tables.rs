//! What the log says of a table before it tells of its rows.

use super::{Lost, malformed};
use crate::routes::{Route, Routes};
use headwater_wire::cursor::Cursor;

/// A table, as a transaction describes it.
#[derive(Clone, Debug)]
pub(crate) enum Described {
    /// Nobody listens to it.
    Other,
    Own {
        database: Vec<u8>,
        name: Vec<u8>,
        columns: Vec<Width>,
    },
}

/// How many bytes a column's value takes in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// A whole number of so many bytes.
    Number(usize),
    /// Always so many.
    Bytes(usize),
    /// A TIMESTAMP of the format that has a fraction, its highest byte first.
    Timestamp(usize),
    /// A DATETIME likewise.
    Datetime(usize),
    /// As many as a number of so many bytes before them says.
    Told(usize),
    /// A JSON document, or what changed in one: the same with four bytes.
    Json,
}

impl Described {
    /// The number by which row events name the table, and what they need to know of it.
    pub(crate) fn read(body: &[u8], routes: &Routes) -> Result<(u64, Described), Lost> {
        let mut body = Cursor::new(body);
        let number = table_number(&mut body)?;
        let _flags = body.u16()?;
        let database = name(&mut body)?;
        let name = name(&mut body)?;
        if routes.of(database, name).next().is_none() {
            return Ok((number, Described::Other));
        }
        let count = usize::try_from(body.lenenc_int()?).unwrap_or(usize::MAX);
        let types = body.take(count)?;
        let mut details = Cursor::new(body.lenenc_bytes()?);
        let columns = types
            .iter()
            .map(|kind| Width::read(*kind, &mut details))
            .collect::<Result<_, _>>()?;
        let table = Described::Own {
            database: database.to_owned(),
            name: name.to_owned(),
            columns,
        };
        Ok((number, table))
    }

    /// True if somebody listens to the table that a description begins with.
    pub(crate) fn is_own(first: &[u8], routes: &Routes) -> bool {
        let mut first = Cursor::new(first);
        let mut names = || {
            table_number(&mut first)?;
            first.u16()?;
            Ok::<_, Lost>((name(&mut first)?, name(&mut first)?))
        };
        names().is_ok_and(|(database, name)| routes.of(database, name).next().is_some())
    }

    /// The table's routes, with its columns.
    pub(crate) fn listened_to<'a>(
        &'a self,
        routes: &'a Routes,
    ) -> impl Iterator<Item = (&'a Route, &'a [Width])> {
        let (database, name, columns) = match self {
            Described::Other => (&[][..], &[][..], &[][..]),
            Described::Own {
                database,
                name,
                columns,
            } => (&database[..], &name[..], &columns[..]),
        };
        let routes = routes.of(database, name);
        routes.map(move |route| (route, columns))
    }
}

/// The number of a table in the log: six bytes.
pub(crate) fn table_number(body: &mut Cursor<'_>) -> Result<u64, Lost> {
    let low = u64::from(body.u32()?);
    Ok(low | u64::from(body.u16()?) << 32)
}

fn name<'a>(body: &mut Cursor<'a>) -> Result<&'a [u8], Lost> {
    let length = usize::from(body.u8()?);
    let name = body.take(length)?;
    let _nul = body.u8()?;
    Ok(name)
}

/// Types of columns in the log (`enum_field_types` of both servers), and what is said of each.
impl Width {
    fn read(kind: u8, details: &mut Cursor<'_>) -> Result<Width, Lost> {
        let width = match kind {
            // TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT.
            1 => Width::Number(1),
            2 => Width::Number(2),
            9 => Width::Number(3),
            3 => Width::Number(4),
            8 => Width::Number(8),
            // FLOAT and DOUBLE say how long they are.
            4 | 5 => Width::Bytes(usize::from(details.u8()?)),
            6 => Width::Bytes(0),
            // YEAR; DATE, and TIME as it was before it had fractions; so TIMESTAMP and DATETIME.
            13 => Width::Bytes(1),
            10 | 11 | 14 => Width::Bytes(3),
            7 => Width::Bytes(4),
            12 => Width::Bytes(8),
            // The same with digits of a fraction, two in a byte: TIMESTAMP, DATETIME, TIME.
            17 => Width::Timestamp(4 + usize::from(details.u8()?).div_ceil(2)),
            18 => Width::Datetime(5 + usize::from(details.u8()?).div_ceil(2)),
            19 => Width::Bytes(3 + usize::from(details.u8()?).div_ceil(2)),
            // VARCHAR, and MariaDB's compressed one.
            15 | 141 => told(usize::from(details.u16()?)),
            // BIT: bits left over, and bytes.
            16 => {
                let more = usize::from(details.u8()? > 0);
                Width::Bytes(usize::from(details.u8()?) + more)
            }
            246 => {
                let (digits, behind) = (details.u8()?, details.u8()?);
                let before = digits
                    .checked_sub(behind)
                    .ok_or_else(|| malformed("a DECIMAL with too few digits"))?;
                Width::Bytes(decimal(before) + decimal(behind))
            }
            // ENUM, SET, and what says of itself whether it is one of them or CHAR.
            247 | 248 | 254 => {
                let (real, length) = (details.u8()?, usize::from(details.u8()?));
                match real {
                    247 | 248 => Width::Bytes(length),
                    // Two bits of the length stand in the type, turned round.
                    real => told(length | usize::from(real & 0x30 ^ 0x30) << 4),
                }
            }
            245 => {
                let _four = details.u8()?;
                Width::Json
            }
            // VECTOR, BLOB and TEXT, GEOMETRY, and MariaDB's compressed BLOB and TEXT.
            242 | 249..=252 | 255 | 140 => match details.u8()? {
                length @ 1..=4 => Width::Told(usize::from(length)),
                _ => return Err(malformed("a BLOB of no length")),
            },
            kind => return Err(Lost::Malformed(format!("a column of unknown type {kind}"))),
        };
        Ok(width)
    }

    /// Reads a value over.
    pub(crate) fn value<'a>(self, row: &mut Cursor<'a>) -> Result<&'a [u8], Lost> {
        let length = match self {
            Width::Number(length)
            | Width::Bytes(length)
            | Width::Timestamp(length)
            | Width::Datetime(length) => length,
            Width::Told(bytes) => usize::try_from(number(row.take(bytes)?)).unwrap_or(usize::MAX),
            Width::Json => usize::try_from(row.u32()?).unwrap_or(usize::MAX),
        };
        Ok(row.take(length)?)
    }
}

/// A text of at most so many bytes.
fn told(most: usize) -> Width {
    Width::Told(if most > usize::from(u8::MAX) { 2 } else { 1 })
}

/// Bytes of so many decimal digits: nine in four bytes.
fn decimal(digits: u8) -> usize {
    let rest = match digits % 9 {
        0 => 0,
        1 | 2 => 1,
        3 | 4 => 2,
        5 | 6 => 3,
        _ => 4,
    };
    usize::from(digits / 9) * 4 + rest
}

/// A number without a sign, its lowest byte first.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
