//! Table map events: a table's name and columns, before its row events.

use super::{LogStreamError, malformed};
use crate::routes::{TableRoute, TableRoutes};
use headwater_wire::cursor::PacketCursor;

/// A table, as a transaction maps it.
#[derive(Clone, Debug)]
pub(crate) enum MappedTable {
    Ignored,
    Routed {
        database: Vec<u8>,
        name: Vec<u8>,
        columns: Vec<ColumnWidth>,
    },
}

/// How many bytes a column's value takes in a row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnWidth {
    /// An integer of so many bytes.
    Number(usize),
    Bytes(usize),
    /// A TIMESTAMP in the format with fractions, big-endian.
    Timestamp(usize),
    /// A DATETIME likewise.
    Datetime(usize),
    /// Preceded by its length, a number of so many bytes.
    LengthPrefixed(usize),
    /// A JSON document, or changes of one: a length of four bytes.
    Json,
}

impl MappedTable {
    /// Parses a table map: the number by which row events refer to the table, and its columns.
    pub(crate) fn read(
        body: &[u8],
        routes: &TableRoutes,
    ) -> Result<(u64, MappedTable), LogStreamError> {
        let mut body = PacketCursor::new(body);
        let number = table_number(&mut body)?;
        let _flags = body.u16()?;
        let database = read_name(&mut body)?;
        let name = read_name(&mut body)?;
        if routes.matching(database, name).next().is_none() {
            return Ok((number, MappedTable::Ignored));
        }
        let count = usize::try_from(body.lenenc_int()?).unwrap_or(usize::MAX);
        let types = body.take(count)?;
        let mut details = PacketCursor::new(body.lenenc_bytes()?);
        let columns = types
            .iter()
            .map(|kind| ColumnWidth::read(*kind, &mut details))
            .collect::<Result<_, _>>()?;
        let table = MappedTable::Routed {
            database: database.to_owned(),
            name: name.to_owned(),
            columns,
        };
        Ok((number, table))
    }

    /// True if the table at the beginning of a table map is watched.
    pub(crate) fn is_routed(first: &[u8], routes: &TableRoutes) -> bool {
        let mut first = PacketCursor::new(first);
        let mut names = || {
            table_number(&mut first)?;
            first.u16()?;
            Ok::<_, LogStreamError>((read_name(&mut first)?, read_name(&mut first)?))
        };
        names().is_ok_and(|(database, name)| routes.matching(database, name).next().is_some())
    }

    pub(crate) fn routes<'a>(
        &'a self,
        routes: &'a TableRoutes,
    ) -> impl Iterator<Item = (&'a TableRoute, &'a [ColumnWidth])> {
        let (database, name, columns) = match self {
            MappedTable::Ignored => (&[][..], &[][..], &[][..]),
            MappedTable::Routed {
                database,
                name,
                columns,
            } => (&database[..], &name[..], &columns[..]),
        };
        let routes = routes.matching(database, name);
        routes.map(move |route| (route, columns))
    }
}

/// The number of a table in the log: six bytes.
pub(crate) fn table_number(body: &mut PacketCursor<'_>) -> Result<u64, LogStreamError> {
    let low = u64::from(body.u32()?);
    Ok(low | u64::from(body.u16()?) << 32)
}

fn read_name<'a>(body: &mut PacketCursor<'a>) -> Result<&'a [u8], LogStreamError> {
    let length = usize::from(body.u8()?);
    let name = body.take(length)?;
    let _nul = body.u8()?;
    Ok(name)
}

/// Column types in the log (`enum_field_types` of both servers), and their metadata.
impl ColumnWidth {
    fn read(kind: u8, details: &mut PacketCursor<'_>) -> Result<ColumnWidth, LogStreamError> {
        let width = match kind {
            // TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT.
            1 => ColumnWidth::Number(1),
            2 => ColumnWidth::Number(2),
            9 => ColumnWidth::Number(3),
            3 => ColumnWidth::Number(4),
            8 => ColumnWidth::Number(8),
            // FLOAT and DOUBLE give their length.
            4 | 5 => ColumnWidth::Bytes(usize::from(details.u8()?)),
            6 => ColumnWidth::Bytes(0),
            // YEAR; DATE, and TIME in the format without fractions; so TIMESTAMP and DATETIME.
            13 => ColumnWidth::Bytes(1),
            10 | 11 | 14 => ColumnWidth::Bytes(3),
            7 => ColumnWidth::Bytes(4),
            12 => ColumnWidth::Bytes(8),
            // In the format with fractions, two digits per byte: TIMESTAMP, DATETIME, TIME.
            17 => ColumnWidth::Timestamp(4 + usize::from(details.u8()?).div_ceil(2)),
            18 => ColumnWidth::Datetime(5 + usize::from(details.u8()?).div_ceil(2)),
            19 => ColumnWidth::Bytes(3 + usize::from(details.u8()?).div_ceil(2)),
            // VARCHAR, and MariaDB's compressed one.
            15 | 141 => length_prefixed(usize::from(details.u16()?)),
            // BIT: remaining bits, and bytes.
            16 => {
                let more = usize::from(details.u8()? > 0);
                ColumnWidth::Bytes(usize::from(details.u8()?) + more)
            }
            246 => {
                let (digits, fraction_digits) = (details.u8()?, details.u8()?);
                let before = digits
                    .checked_sub(fraction_digits)
                    .ok_or_else(|| malformed("a DECIMAL with too few digits"))?;
                ColumnWidth::Bytes(decimal_bytes(before) + decimal_bytes(fraction_digits))
            }
            // ENUM, SET, and CHAR, whose metadata contains the real type.
            247 | 248 | 254 => {
                let (real_type, length) = (details.u8()?, usize::from(details.u8()?));
                match real_type {
                    247 | 248 => ColumnWidth::Bytes(length),
                    // Two bits of the length are in the type, inverted.
                    real => length_prefixed(length | usize::from(real & 0x30 ^ 0x30) << 4),
                }
            }
            245 => {
                let _four = details.u8()?;
                ColumnWidth::Json
            }
            // VECTOR, BLOB and TEXT, GEOMETRY, and MariaDB's compressed BLOB and TEXT.
            242 | 249..=252 | 255 | 140 => match details.u8()? {
                length @ 1..=4 => ColumnWidth::LengthPrefixed(usize::from(length)),
                _ => return Err(malformed("a BLOB of no length")),
            },
            kind => {
                return Err(LogStreamError::Malformed(format!(
                    "a column of unknown type {kind}"
                )));
            }
        };
        Ok(width)
    }

    pub(crate) fn read_value<'a>(
        self,
        row: &mut PacketCursor<'a>,
    ) -> Result<&'a [u8], LogStreamError> {
        let length = match self {
            ColumnWidth::Number(length)
            | ColumnWidth::Bytes(length)
            | ColumnWidth::Timestamp(length)
            | ColumnWidth::Datetime(length) => length,
            ColumnWidth::LengthPrefixed(bytes) => {
                usize::try_from(little_endian(row.take(bytes)?)).unwrap_or(usize::MAX)
            }
            ColumnWidth::Json => usize::try_from(row.u32()?).unwrap_or(usize::MAX),
        };
        Ok(row.take(length)?)
    }
}

/// A string of at most `most` bytes.
fn length_prefixed(most: usize) -> ColumnWidth {
    ColumnWidth::LengthPrefixed(if most > usize::from(u8::MAX) { 2 } else { 1 })
}

/// Bytes of so many decimal digits: nine take four bytes.
fn decimal_bytes(digits: u8) -> usize {
    let rest = match digits % 9 {
        0 => 0,
        1 | 2 => 1,
        3 | 4 => 2,
        5 | 6 => 3,
        _ => 4,
    };
    usize::from(digits / 9) * 4 + rest
}

pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
