//! Row events: which columns each row image contains, and the relevant numbers in it.

use super::mariadb_compression::BodyDecompressor;
use super::table_map::{ColumnWidth, little_endian, table_number};
use super::{LogStreamError, malformed};
use crate::evidence::TableRole;
use crate::routes::{ColumnPosition, KeyColumnPosition, TableRoute};
use headwater_timeline::{KeyType, key};
use headwater_wire::cursor::PacketCursor;

const ROWS_PER_STEP: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowEventFormat {
    has_before_image: bool,
    has_after_image: bool,
    /// Rows may contain partial JSON documents (MySQL).
    partial: bool,
    has_extra_header: bool,
    compressed: bool,
}

impl RowEventFormat {
    /// The format of this event type; `None` if it is no row event.
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

pub(crate) struct RowEvent<'a> {
    /// The table's number of columns.
    pub(crate) columns: usize,
    format: RowEventFormat,
    before_columns: ColumnBitmap<'a>,
    after_columns: ColumnBitmap<'a>,
    /// The rows' bytes, possibly compressed.
    rows: &'a [u8],
}

/// A column's value in a row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageCell {
    /// The image does not contain the column.
    Omitted,
    Null,
    Number(u64),
    /// An id, reader or author below 0: memory holds none of these.
    Negative,
    /// A sort key without a number, or an author of whom it is not known whether the sign counts.
    Unrepresentable,
}

/// A row's id (or reader), author and sort key. Without a sort key the last is always omitted.
pub(crate) type RowImage = [ImageCell; 3];

const OMITTED_ROW: RowImage = [ImageCell::Omitted; 3];

impl<'a> RowEvent<'a> {
    pub(crate) fn read(
        format: RowEventFormat,
        body: &'a [u8],
    ) -> Result<RowEvent<'a>, LogStreamError> {
        let mut body = PacketCursor::new(body);
        let _table = table_number(&mut body)?;
        let _flags = body.u16()?;
        if format.has_extra_header {
            // The length includes itself.
            let length = usize::from(body.u16()?);
            body.take(length.saturating_sub(2))?;
        }
        let columns = usize::try_from(body.lenenc_int()?).unwrap_or(usize::MAX);
        let mut image = |is_present: bool| {
            let bits = if is_present { columns.div_ceil(8) } else { 0 };
            Ok::<_, LogStreamError>(ColumnBitmap {
                bits: body.take(bits)?,
            })
        };
        let (before, after) = (
            image(format.has_before_image)?,
            image(format.has_after_image)?,
        );
        Ok(RowEvent {
            columns,
            format,
            before_columns: before,
            after_columns: after,
            rows: body.rest(),
        })
    }

    /// Passes some more rows to `each`, old (updated or deleted) and new image. True if these were the last.
    pub(crate) fn read_some(
        &self,
        columns: &[ColumnWidth],
        route: &TableRoute,
        number: usize,
        progress: &mut RowEventProgress,
        mut each: impl FnMut(Option<RowImage>, Option<RowImage>) -> Result<(), LogStreamError>,
    ) -> Result<bool, LogStreamError> {
        if columns.len() != self.columns {
            return Err(malformed("rows of other columns than described"));
        }
        if self.before_columns.is_empty(self.columns) && self.after_columns.is_empty(self.columns) {
            // However many rows there are: the images contain no columns.
            each(
                self.format.has_before_image.then_some(OMITTED_ROW),
                (self.format.has_after_image && !self.format.has_before_image)
                    .then_some(OMITTED_ROW),
            )?;
            return Ok(true);
        }
        if progress.route_number != number {
            (progress.route_number, progress.offset) = (number, 0);
        }
        let bytes = progress
            .unpacked
            .as_ref()
            .map_or(self.rows, BodyDecompressor::bytes);
        let mut rows = PacketCursor::new(bytes.get(progress.offset..).unwrap_or_default());
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
        progress.offset = bytes.len() - rows.rest().len();
        Ok(progress.offset == bytes.len())
    }
}

/// How far the rows of an event have been read: the route, the offset, and the decompressed rows.
#[derive(Debug, Default)]
pub(crate) struct RowEventProgress {
    pub(crate) route_number: usize,
    offset: usize,
    unpacked: Option<BodyDecompressor>,
}

/// Clones are made between events, where the progress is empty.
impl Clone for RowEventProgress {
    fn clone(&self) -> RowEventProgress {
        RowEventProgress::default()
    }
}

impl RowEventProgress {
    /// Decompresses more of the rows, if they are compressed. True if all are available.
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
        for (index, column) in held.enumerate() {
            let Some(width) = columns.get(column) else {
                break;
            };
            let value = match bit(nulls, index) {
                true => None,
                false => Some(width.read_value(rows)?),
            };
            let parts = [route.first, route.second].into_iter().zip(&mut row);
            for (part, (position, cell)) in parts.enumerate() {
                if position.at == column {
                    let is_user = route.table != TableRole::Message || part > 0;
                    *cell = match (read_cell(position, *width, value), route.table) {
                        (Ok(ImageCell::Negative), _) if is_user && route.has_mixed_signs => {
                            ImageCell::Unrepresentable
                        }
                        // Then any row of the joined table counts as edited: no page depends on its former key.
                        (Err(_), TableRole::Referred) => ImageCell::Unrepresentable,
                        (read, _) => read?,
                    };
                }
            }
            if let (Some(key_position), [.., cell]) = (route.key, &mut row)
                && key_position.at == column
            {
                *cell = read_key(key_position, *width, value);
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
    let has_sign_bit = value.last().is_some_and(|highest| highest & 0x80 != 0);
    match width {
        ColumnWidth::Number(_) if signed && has_sign_bit => Ok(ImageCell::Negative),
        ColumnWidth::Number(_) => Ok(ImageCell::Number(little_endian(value))),
        _ => Err(LogStreamError::Malformed(format!(
            "{value:02x?} is no {}",
            column.kind.sql()
        ))),
    }
}

/// NULL is a key like others. An unreadable key loses the messages, and the log is followed further.
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

/// Skips the bitmap before an after-image that shows which JSON columns are partial: a bit for each that the table has.
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
