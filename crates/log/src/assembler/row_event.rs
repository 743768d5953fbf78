//! Row events: which columns each row image holds, and the numbers in it that matter.

use super::mariadb_compression::BodyDecompressor;
use super::table_map::{ColumnWidth, little_endian, table_number};
use super::{LogStreamError, malformed};
use crate::evidence::TableRole;
use crate::routes::{ColumnPosition, KeyColumnPosition, TableRoute};
use headwater_timeline::{KeyType, key};
use headwater_wire::cursor::PacketCursor;

/// Rows that are read at a time.
const ROWS_PER_STEP: usize = 4_096;

/// Which kind of row event, and how it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowEventFormat {
    has_before_image: bool,
    has_after_image: bool,
    /// The rows behind may hold parts of JSON documents (MySQL).
    partial: bool,
    /// There is a header of variable length.
    has_extra_header: bool,
    compressed: bool,
}

impl RowEventFormat {
    /// That of this type of event; `None` for others.
    pub(crate) fn of(raw: u8) -> Option<RowEventFormat> {
        // WRITE, UPDATE, DELETE: version 1, version 2, MariaDB's compressed ones of both; MySQL's PARTIAL_UPDATE.
        let (before, after) = match raw {
            23 | 30 | 166 | 169 => (false, true),
            24 | 31 | 167 | 170 | 39 => (true, true),
            25 | 32 | 168 | 171 => (true, false),
            _ => return None,
        };
        Some(RowEventFormat {
            has_before_image: before,
            has_after_image: after,
            partial: raw == 39,
            has_extra_header: matches!(raw, 30..=32 | 39 | 169..=171),
            compressed: raw >= 166,
        })
    }
}

/// A row event.
pub(crate) struct RowEvent<'a> {
    /// How many columns the table has.
    pub(crate) columns: usize,
    format: RowEventFormat,
    before_columns: ColumnBitmap<'a>,
    after_columns: ColumnBitmap<'a>,
    /// As they stand in the event.
    rows: &'a [u8],
}

/// A column's value in a row of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageCell {
    /// The log leaves it out.
    Omitted,
    Null,
    Number(u64),
    /// A key that has no number.
    Unrepresentable,
}

/// A row's id (or reader), author and key. Where there is no key, that is never told.
pub(crate) type RowImage = [ImageCell; 3];

const OMITTED_ROW: RowImage = [ImageCell::Omitted; 3];

impl<'a> RowEvent<'a> {
    pub(crate) fn read(
        form: RowEventFormat,
        body: &'a [u8],
    ) -> Result<RowEvent<'a>, LogStreamError> {
        let mut body = PacketCursor::new(body);
        let _table = table_number(&mut body)?;
        let _flags = body.u16()?;
        if form.has_extra_header {
            // The length counts itself.
            let length = usize::from(body.u16()?);
            body.take(length.saturating_sub(2))?;
        }
        let columns = usize::try_from(body.lenenc_int()?).unwrap_or(usize::MAX);
        let mut image = |there: bool| {
            let bits = if there { columns.div_ceil(8) } else { 0 };
            Ok::<_, LogStreamError>(ColumnBitmap {
                bits: body.take(bits)?,
            })
        };
        let (before, after) = (image(form.has_before_image)?, image(form.has_after_image)?);
        Ok(RowEvent {
            columns,
            format: form,
            before_columns: before,
            after_columns: after,
            rows: body.rest(),
        })
    }

    /// Hands over some more rows as they were (of an update, or deleted) and as they are. True when that was all of them.
    pub(crate) fn read_some(
        &self,
        columns: &[ColumnWidth],
        route: &TableRoute,
        number: usize,
        work: &mut RowEventProgress,
        mut each: impl FnMut(Option<RowImage>, Option<RowImage>) -> Result<(), LogStreamError>,
    ) -> Result<bool, LogStreamError> {
        if columns.len() != self.columns {
            return Err(malformed("rows of other columns than described"));
        }
        if self.before_columns.is_empty(self.columns) && self.after_columns.is_empty(self.columns) {
            // However many rows: nothing is told of them.
            each(
                self.format.has_before_image.then_some(OMITTED_ROW),
                (self.format.has_after_image && !self.format.has_before_image)
                    .then_some(OMITTED_ROW),
            )?;
            return Ok(true);
        }
        if work.route_number != number {
            (work.route_number, work.offset) = (number, 0);
        }
        let bytes = work
            .unpacked
            .as_ref()
            .map_or(self.rows, BodyDecompressor::bytes);
        let mut rows = PacketCursor::new(bytes.get(work.offset..).unwrap_or_default());
        let mut count = 0;
        while !rows.is_empty() && count < ROWS_PER_STEP {
            count += 1;
            let mut old = None;
            if self.format.has_before_image {
                old = Some(self.before_columns.read(columns, route, &mut rows)?);
            }
            if self.format.partial {
                skip_partial_columns(columns, &mut rows)?;
            }
            let mut new = None;
            if self.format.has_after_image {
                new = Some(self.after_columns.read(columns, route, &mut rows)?);
            }
            each(old, new)?;
        }
        work.offset = bytes.len() - rows.rest().len();
        Ok(work.offset == bytes.len())
    }
}

/// How far the rows of an event have been read: for which of its routes, and from where on; and what they were unpacked to.
#[derive(Debug, Default)]
pub(crate) struct RowEventProgress {
    pub(crate) route_number: usize,
    offset: usize,
    unpacked: Option<BodyDecompressor>,
}

/// Copies are made between events, where nothing is begun.
impl Clone for RowEventProgress {
    fn clone(&self) -> RowEventProgress {
        RowEventProgress::default()
    }
}

impl RowEventProgress {
    /// Unpacks some more of the rows, if they are compressed. True when all is there.
    pub(crate) fn decompress(
        &mut self,
        rows: &RowEvent<'_>,
        most: usize,
    ) -> Result<bool, LogStreamError> {
        if !rows.format.compressed {
            return Ok(true);
        }
        if self.unpacked.is_none() {
            self.unpacked = Some(BodyDecompressor::begin(rows.rows, most)?);
        }
        match &mut self.unpacked {
            Some(unpacking) => unpacking.step(rows.rows),
            None => Ok(false),
        }
    }
}

/// Which columns the rows hold.
struct ColumnBitmap<'a> {
    bits: &'a [u8],
}

impl ColumnBitmap<'_> {
    fn contains(&self, column: usize) -> bool {
        bit(self.bits, column)
    }

    fn is_empty(&self, columns: usize) -> bool {
        !(0..columns).any(|column| self.contains(column))
    }

    fn read(
        &self,
        columns: &[ColumnWidth],
        route: &TableRoute,
        rows: &mut PacketCursor<'_>,
    ) -> Result<RowImage, LogStreamError> {
        let held = (0..columns.len()).filter(|column| self.contains(*column));
        let nulls = rows.take(held.clone().count().div_ceil(8))?;
        let mut row = OMITTED_ROW;
        for (place, column) in held.enumerate() {
            let Some(width) = columns.get(column) else {
                break;
            };
            let value = match bit(nulls, place) {
                true => None,
                false => Some(width.read_value(rows)?),
            };
            for (own, cell) in [route.first, route.second].iter().zip(&mut row) {
                if own.at == column {
                    *cell = match (read_cell(*own, *width, value), route.table) {
                        // Then any of them may have been edited: nobody's page hangs on where it was.
                        (Err(_), TableRole::Referred) => ImageCell::Unrepresentable,
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

fn read_cell(
    column: ColumnPosition,
    width: ColumnWidth,
    value: Option<&[u8]>,
) -> Result<ImageCell, LogStreamError> {
    let Some(value) = value else {
        return Ok(ImageCell::Null);
    };
    let signed = column.kind.is_signed();
    let negative = value.last().is_some_and(|highest| highest & 0x80 != 0);
    match width {
        ColumnWidth::Number(_) if !(signed && negative) => {
            Ok(ImageCell::Number(little_endian(value)))
        }
        _ => Err(LogStreamError::Malformed(format!(
            "{value:02x?} is no {} from 0 on",
            column.kind.sql()
        ))),
    }
}

/// NULL is a key like others. What cannot be read is told as such: nothing is known of messages then, and the log is followed on.
fn read_key(column: KeyColumnPosition, width: ColumnWidth, value: Option<&[u8]>) -> ImageCell {
    let Some(value) = value else {
        return ImageCell::Number(key::NULL);
    };
    let fits = matches!(
        (column.kind, width),
        (KeyType::Integer(_), ColumnWidth::Number(_))
            | (KeyType::Datetime(_), ColumnWidth::Datetime(_))
            | (KeyType::Timestamp(_), ColumnWidth::Timestamp(_))
    );
    let number = column.kind.encode_row_image(value).filter(|_| fits);
    number.map_or(ImageCell::Unrepresentable, ImageCell::Number)
}

/// Before a row as it is may stand which JSON columns are told in parts: a bit for each that the table has.
fn skip_partial_columns(
    columns: &[ColumnWidth],
    rows: &mut PacketCursor<'_>,
) -> Result<(), LogStreamError> {
    const PARTIAL_JSON: u64 = 1;
    if rows.lenenc_int()? & PARTIAL_JSON != 0 {
        let documents = columns.iter().filter(|width| **width == ColumnWidth::Json);
        rows.take(documents.count().div_ceil(8))?;
    }
    Ok(())
}
