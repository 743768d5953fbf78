//! Row events: which columns each row image holds, and the numbers in it that matter.

use super::compressed::Unpacking;
use super::tables::{Width, number, table_number};
use super::{Lost, malformed};
use crate::evidence::Table;
use crate::routes::{Column, KeyColumn, Route};
use headwater_timeline::{KeyType, key};
use headwater_wire::cursor::Cursor;

/// Rows that are read at a time.
const AT_A_TIME: usize = 4_096;

/// Which kind of row event, and how it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    before: bool,
    after: bool,
    /// The rows behind may hold parts of JSON documents (MySQL).
    partial: bool,
    /// There is a header of variable length.
    extra: bool,
    compressed: bool,
}

impl Form {
    /// That of this type of event; `None` for others.
    pub(crate) fn of(raw: u8) -> Option<Form> {
        // WRITE, UPDATE, DELETE: version 1, version 2, MariaDB's compressed ones of both; MySQL's PARTIAL_UPDATE.
        let (before, after) = match raw {
            23 | 30 | 166 | 169 => (false, true),
            24 | 31 | 167 | 170 | 39 => (true, true),
            25 | 32 | 168 | 171 => (true, false),
            _ => return None,
        };
        Some(Form {
            before,
            after,
            partial: raw == 39,
            extra: matches!(raw, 30..=32 | 39 | 169..=171),
            compressed: raw >= 166,
        })
    }
}

/// A row event.
pub(crate) struct Rows<'a> {
    /// How many columns the table has.
    pub(crate) columns: usize,
    form: Form,
    before: Image<'a>,
    after: Image<'a>,
    /// As they stand in the event.
    rows: &'a [u8],
}

/// A column's value in a row of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// The log leaves it out.
    Untold,
    Null,
    Number(u64),
    /// A key that has no number.
    Unfit,
}

/// A row's id (or reader), author and key. Where there is no key, that is never told.
pub(crate) type Row = [Cell; 3];

const UNTOLD: Row = [Cell::Untold; 3];

impl<'a> Rows<'a> {
    pub(crate) fn read(form: Form, body: &'a [u8]) -> Result<Rows<'a>, Lost> {
        let mut body = Cursor::new(body);
        let _table = table_number(&mut body)?;
        let _flags = body.u16()?;
        if form.extra {
            // The length counts itself.
            let length = usize::from(body.u16()?);
            body.take(length.saturating_sub(2))?;
        }
        let columns = usize::try_from(body.lenenc_int()?).unwrap_or(usize::MAX);
        let mut image = |there: bool| {
            let bits = if there { columns.div_ceil(8) } else { 0 };
            Ok::<_, Lost>(Image {
                bits: body.take(bits)?,
            })
        };
        let (before, after) = (image(form.before)?, image(form.after)?);
        Ok(Rows {
            columns,
            form,
            before,
            after,
            rows: body.rest(),
        })
    }

    /// Hands over some more rows as they were (of an update, or deleted) and as they are. True when that was all of them.
    pub(crate) fn some(
        &self,
        columns: &[Width],
        route: &Route,
        number: usize,
        work: &mut Work,
        mut each: impl FnMut(Option<Row>, Option<Row>) -> Result<(), Lost>,
    ) -> Result<bool, Lost> {
        if columns.len() != self.columns {
            return Err(malformed("rows of other columns than described"));
        }
        if self.before.is_empty(self.columns) && self.after.is_empty(self.columns) {
            // However many rows: nothing is told of them.
            each(
                self.form.before.then_some(UNTOLD),
                (self.form.after && !self.form.before).then_some(UNTOLD),
            )?;
            return Ok(true);
        }
        if work.route != number {
            (work.route, work.at) = (number, 0);
        }
        let bytes = work.unpacked.as_ref().map_or(self.rows, Unpacking::bytes);
        let mut rows = Cursor::new(bytes.get(work.at..).unwrap_or_default());
        let mut count = 0;
        while !rows.is_empty() && count < AT_A_TIME {
            count += 1;
            let mut old = None;
            if self.form.before {
                old = Some(self.before.read(columns, route, &mut rows)?);
            }
            if self.form.partial {
                skip_partial_columns(columns, &mut rows)?;
            }
            let mut new = None;
            if self.form.after {
                new = Some(self.after.read(columns, route, &mut rows)?);
            }
            each(old, new)?;
        }
        work.at = bytes.len() - rows.rest().len();
        Ok(work.at == bytes.len())
    }
}

/// How far the rows of an event have been read: for which of its routes, and from where on; and what they were unpacked to.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) route: usize,
    at: usize,
    unpacked: Option<Unpacking>,
}

/// Copies are made between events, where nothing is begun.
impl Clone for Work {
    fn clone(&self) -> Work {
        Work::default()
    }
}

impl Work {
    /// Unpacks some more of the rows, if they are compressed. True when all is there.
    pub(crate) fn unpacks(&mut self, rows: &Rows<'_>, most: usize) -> Result<bool, Lost> {
        if !rows.form.compressed {
            return Ok(true);
        }
        if self.unpacked.is_none() {
            self.unpacked = Some(Unpacking::begin(rows.rows, most)?);
        }
        match &mut self.unpacked {
            Some(unpacking) => unpacking.step(rows.rows),
            None => Ok(false),
        }
    }
}

/// Which columns the rows hold.
struct Image<'a> {
    bits: &'a [u8],
}

impl Image<'_> {
    fn holds(&self, column: usize) -> bool {
        bit(self.bits, column)
    }

    fn is_empty(&self, columns: usize) -> bool {
        !(0..columns).any(|column| self.holds(column))
    }

    fn read(&self, columns: &[Width], route: &Route, rows: &mut Cursor<'_>) -> Result<Row, Lost> {
        let held = (0..columns.len()).filter(|column| self.holds(*column));
        let nulls = rows.take(held.clone().count().div_ceil(8))?;
        let mut row = UNTOLD;
        for (place, column) in held.enumerate() {
            let Some(width) = columns.get(column) else {
                break;
            };
            let value = match bit(nulls, place) {
                true => None,
                false => Some(width.value(rows)?),
            };
            for (own, cell) in [route.first, route.second].iter().zip(&mut row) {
                if own.at == column {
                    *cell = match (read_cell(*own, *width, value), route.table) {
                        // Then any of them may have been edited: nobody's page hangs on where it was.
                        (Err(_), Table::Referred) => Cell::Unfit,
                        (read, _) => read?,
                    };
                }
            }
            if let (Some(own), [.., cell]) = (route.key, &mut row)
                && own.at == column
            {
                *cell = read_key(own, *width, value);
            }
        }
        Ok(row)
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

fn read_cell(column: Column, width: Width, value: Option<&[u8]>) -> Result<Cell, Lost> {
    let Some(value) = value else {
        return Ok(Cell::Null);
    };
    let signed = column.kind.is_signed();
    let negative = value.last().is_some_and(|highest| highest & 0x80 != 0);
    match width {
        Width::Number(_) if !(signed && negative) => Ok(Cell::Number(number(value))),
        _ => Err(Lost::Malformed(format!(
            "{value:02x?} is no {} from 0 on",
            column.kind.sql()
        ))),
    }
}

/// NULL is a key like others. What cannot be read is told as such: nothing is known of messages then, and the log is followed on.
fn read_key(column: KeyColumn, width: Width, value: Option<&[u8]>) -> Cell {
    let Some(value) = value else {
        return Cell::Number(key::NULL);
    };
    let fits = matches!(
        (column.kind, width),
        (KeyType::Integer(_), Width::Number(_))
            | (KeyType::Datetime(_), Width::Datetime(_))
            | (KeyType::Timestamp(_), Width::Timestamp(_))
    );
    let number = column.kind.of_image(value).filter(|_| fits);
    number.map_or(Cell::Unfit, Cell::Number)
}

/// Before a row as it is may stand which JSON columns are told in parts: a bit for each that the table has.
fn skip_partial_columns(columns: &[Width], rows: &mut Cursor<'_>) -> Result<(), Lost> {
    const PARTIAL_JSON: u64 = 1;
    if rows.lenenc_int()? & PARTIAL_JSON != 0 {
        let documents = columns.iter().filter(|width| **width == Width::Json);
        rows.take(documents.count().div_ceil(8))?;
    }
    Ok(())
}
