//! Rows of the text protocol in one buffer, with the place of each cell.

use super::{CollectError, Limits, MAX_COLUMNS};
use crate::cursor::Cursor;
use crate::frame::HEADER_BYTES;
use crate::response::OkPacket;

/// First byte of a cell that is NULL.
const NULL: u8 = 0xFB;

/// A result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    columns: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    cells: Vec<u32>,
    width: usize,
    count: usize,
    end: OkPacket,
}

/// A row of [`Rows`].
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    bytes: &'a [u8],
    /// Where each cell starts in `bytes`.
    cells: &'a [u32],
}

impl Rows {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Every cell of every row, copied; `None` for NULL.
    #[must_use]
    pub fn cells(&self) -> Vec<Vec<Option<Vec<u8>>>> {
        let width = self.columns().len();
        let cells = |row: Row<'_>| {
            let cells = (0..width).map(|at| row.cell(at).map(<[u8]>::to_vec));
            cells.collect()
        };
        self.iter().map(cells).collect()
    }

    /// The rows, in the order they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.count).map(|index| {
            self.row(index).unwrap_or(Row {
                bytes: &[],
                cells: &[],
            })
        })
    }

    /// Row `index`, counted from 0.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<Row<'_>> {
        let start = index.checked_mul(self.width)?;
        let cells = self.cells.get(start..start.checked_add(self.width)?)?;
        (index < self.count).then_some(Row {
            bytes: &self.bytes,
            cells,
        })
    }

    /// The payload of each column definition as it was on the wire; none where the server left them out.
    #[must_use]
    pub fn columns(&self) -> &[Vec<u8>] {
        &self.columns
    }

    /// The packet behind the last row, with the session's status flags.
    #[must_use]
    pub fn end(&self) -> &OkPacket {
        &self.end
    }
}

impl<'a> Row<'a> {
    /// The text of cell `index`, counted from 0; `None` for NULL and beyond the last column.
    #[must_use]
    pub fn cell(&self, index: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(*self.cells.get(index)?).ok()?;
        match self.bytes.get(start..)? {
            [NULL, ..] => None,
            cell => Cursor::new(cell).lenenc_bytes().ok(),
        }
    }

    /// Cell `index` as a number; `None` as well where it is no decimal number of 64 bits without sign.
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
pub(super) struct Builder {
    limits: Limits,
    columns: Vec<Vec<u8>>,
    column: Vec<u8>,
    /// Bytes counted against the limit.
    used: usize,
    bytes: Vec<u8>,
    row_start: usize,
    cells: Vec<u32>,
    count: usize,
    spoilt: bool,
}

impl Builder {
    pub(super) fn new(limits: Limits) -> Self {
        let max_bytes = limits
            .max_bytes
            .min(usize::try_from(u32::MAX).unwrap_or(usize::MAX));
        Self {
            limits: Limits {
                max_bytes,
                ..limits
            },
            columns: Vec::new(),
            column: Vec::new(),
            used: 0,
            bytes: Vec::new(),
            row_start: 0,
            cells: Vec::new(),
            count: 0,
            spoilt: false,
        }
    }

    pub(super) fn column(&mut self, body: &[u8], end: bool) -> Result<(), CollectError> {
        if self.spoilt {
            return Ok(());
        }
        self.spend(body.len() + if end { HEADER_BYTES } else { 0 })?;
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
        if self.spoilt {
            return Ok(());
        }
        if self.count >= self.limits.max_rows {
            return Err(CollectError::TooManyRows {
                max: self.limits.max_rows,
            });
        }
        self.spend(body.len() + if end { HEADER_BYTES } else { 0 })?;
        self.bytes.extend_from_slice(body);
        if end {
            self.row_ended(width)
                .ok_or(CollectError::BadRow { row: self.count })?;
            self.count += 1;
        }
        Ok(())
    }

    /// Lets go of everything; what still comes is not kept.
    pub(super) fn clear(&mut self) {
        *self = Self {
            spoilt: true,
            ..Self::new(self.limits)
        };
    }

    pub(super) fn finish(self, end: OkPacket, width: u64) -> Rows {
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        Rows {
            columns: self.columns,
            bytes: self.bytes,
            cells: self.cells,
            width,
            count: self.count,
            end,
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), CollectError> {
        let max = self.limits.max_bytes;
        self.used = self.used.saturating_add(bytes);
        if self.used <= max {
            Ok(())
        } else {
            Err(CollectError::TooManyBytes { max })
        }
    }

    /// Notes the place of each cell of the row that ends at the end of the buffer; `None` when it holds other cells
    /// than the columns say.
    fn row_ended(&mut self, width: u64) -> Option<()> {
        let mut cursor = Cursor::new(self.bytes.get(self.row_start..)?);
        for _ in 0..width {
            self.cells
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
