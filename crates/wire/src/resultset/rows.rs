//! Rows of the text protocol in one buffer, with the offset of each cell.

use super::{CollectError, CollectLimits, MAX_COLUMNS};
use crate::cursor::PacketCursor;
use crate::packet::HEADER_BYTES;
use crate::response::OkPacket;

/// First byte of a cell that is NULL.
const NULL: u8 = 0xFB;

/// A result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSet {
    columns: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    cell_starts: Vec<u32>,
    column_count: usize,
    count: usize,
    end: OkPacket,
}

/// A row of [`ResultSet`].
#[derive(Debug, Clone, Copy)]
pub struct ResultRow<'a> {
    bytes: &'a [u8],
    /// Where each cell starts in `bytes`.
    cell_starts: &'a [u32],
}

impl ResultSet {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True when there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Every cell of every row, copied; `None` for NULL.
    #[must_use]
    pub fn cells(&self) -> Vec<Vec<Option<Vec<u8>>>> {
        let width = self.columns().len();
        let cells = |row: ResultRow<'_>| {
            let cells = (0..width).map(|at| row.cell(at).map(<[u8]>::to_vec));
            cells.collect()
        };
        self.iter().map(cells).collect()
    }

    /// The rows, in the order received.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ResultRow<'_>> {
        (0..self.count).map(|index| {
            self.row(index).unwrap_or(ResultRow {
                bytes: &[],
                cell_starts: &[],
            })
        })
    }

    /// Row `index`, counted from 0.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<ResultRow<'_>> {
        let start = index.checked_mul(self.column_count)?;
        let cells = self
            .cell_starts
            .get(start..start.checked_add(self.column_count)?)?;
        (index < self.count).then_some(ResultRow {
            bytes: &self.bytes,
            cell_starts: cells,
        })
    }

    /// The payload of each column definition; empty where the server omitted them.
    #[must_use]
    pub fn columns(&self) -> &[Vec<u8>] {
        &self.columns
    }

    /// The packet after the last row, with the session's status flags.
    #[must_use]
    pub fn end(&self) -> &OkPacket {
        &self.end
    }
}

impl<'a> ResultRow<'a> {
    /// The text of cell `index`, counted from 0; `None` for NULL and beyond the last column.
    #[must_use]
    pub fn cell(&self, index: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(*self.cell_starts.get(index)?).ok()?;
        match self.bytes.get(start..)? {
            [NULL, ..] => None,
            cell => PacketCursor::new(cell).lenenc_bytes().ok(),
        }
    }

    /// Cell `index` as a number; `None` if it is no unsigned decimal number of 64 bits.
    #[must_use]
    pub fn u64(&self, index: usize) -> Option<u64> {
        let digits = self.cell(index).filter(|digits| !digits.is_empty())?;
        digits.iter().try_fold(0_u64, |number, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        })
    }
}

/// Collects column definitions and rows piece by piece, within limits.
#[derive(Debug)]
pub(super) struct ResultSetBuilder {
    limits: CollectLimits,
    columns: Vec<Vec<u8>>,
    column: Vec<u8>,
    /// Bytes counted against the limit.
    used: usize,
    bytes: Vec<u8>,
    row_start: usize,
    cell_starts: Vec<u32>,
    count: usize,
    discarding: bool,
}

impl ResultSetBuilder {
    pub(super) fn new(limits: CollectLimits) -> Self {
        let max_bytes = limits
            .max_bytes
            .min(usize::try_from(u32::MAX).unwrap_or(usize::MAX));
        Self {
            limits: CollectLimits {
                max_bytes,
                ..limits
            },
            columns: Vec::new(),
            column: Vec::new(),
            used: 0,
            bytes: Vec::new(),
            row_start: 0,
            cell_starts: Vec::new(),
            count: 0,
            discarding: false,
        }
    }

    pub(super) fn column(&mut self, body: &[u8], end: bool) -> Result<(), CollectError> {
        if self.discarding {
            return Ok(());
        }
        self.charge_bytes(body.len() + if end { HEADER_BYTES } else { 0 })?;
        self.column.extend_from_slice(body);
        if end {
            if self.columns.len() == MAX_COLUMNS {
                return Err(CollectError::TooManyColumns);
            }
            self.columns.push(std::mem::take(&mut self.column));
        }
        Ok(())
    }

    pub(super) fn row(&mut self, body: &[u8], end: bool, width: u64) -> Result<(), CollectError> {
        if self.discarding {
            return Ok(());
        }
        if self.count >= self.limits.max_rows {
            return Err(CollectError::TooManyRows {
                max: self.limits.max_rows,
            });
        }
        self.charge_bytes(body.len() + if end { HEADER_BYTES } else { 0 })?;
        self.bytes.extend_from_slice(body);
        if end {
            self.finish_row(width)
                .ok_or(CollectError::BadRow { row: self.count })?;
            self.count += 1;
        }
        Ok(())
    }

    /// Drops everything collected, and discards further input.
    pub(super) fn clear(&mut self) {
        *self = Self {
            discarding: true,
            ..Self::new(self.limits)
        };
    }

    pub(super) fn finish(self, end: OkPacket, width: u64) -> ResultSet {
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        ResultSet {
            columns: self.columns,
            bytes: self.bytes,
            cell_starts: self.cell_starts,
            column_count: width,
            count: self.count,
            end,
        }
    }

    fn charge_bytes(&mut self, bytes: usize) -> Result<(), CollectError> {
        let max = self.limits.max_bytes;
        self.used = self.used.saturating_add(bytes);
        if self.used <= max {
            Ok(())
        } else {
            Err(CollectError::TooManyBytes { max })
        }
    }

    /// Records the offset of each cell of the row at the end of the buffer; `None` when its cells do not match the columns.
    fn finish_row(&mut self, width: u64) -> Option<()> {
        let mut cursor = PacketCursor::new(self.bytes.get(self.row_start..)?);
        for _ in 0..width {
            self.cell_starts
                .push(u32::try_from(self.row_start + cursor.position()).ok()?);
            let mut null = cursor;
            if null.u8() == Ok(NULL) {
                cursor = null;
            } else {
                cursor.lenenc_bytes().ok()?;
            }
        }
        self.row_start = self.bytes.len();
        cursor.is_empty().then_some(())
    }
}
