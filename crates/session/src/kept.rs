//! Rows that are kept, for whatever statement: a page made of them, and what a reply of the server's tells of messages.

use std::ops::Range;
use std::sync::Arc;

use headwater_rows::template::{Frame, KeptRows};
use headwater_rows::{Kept, Message, Variant};
use headwater_wire::frame;
use headwater_wire::reply::Outcome;
use headwater_wire::reply::layout::{Parts, flags};
use headwater_wire::response::OkPacket;
use headwater_wire::resultset::column;
use headwater_wire::status;

use crate::lists::ListOf;

/// Rows of a page, behind what stands in front of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paged {
    /// The packets.
    pub packets: Vec<u8>,
    /// How many rows there are.
    pub rows: u64,
    /// How many rows a `FOUND_ROWS()` behind it tells: those that OFFSET passes over count.
    pub found: u64,
}

/// What an answer tells of messages: a row that is in it, or that there is none.
#[derive(Clone, Debug)]
pub struct Fill {
    /// Of which template.
    pub kept: Arc<KeptRows>,
    /// Under which literals and settings.
    pub key: Vec<u8>,
    /// In what kind of frame.
    pub kind: usize,
    /// What stands around its rows.
    pub frame: Frame,
    /// What is told of each message.
    pub rows: Vec<OfMessage>,
    /// Lists of authors beside those whom a reader follows: it tells of no messages of whom they have not pass.
    pub lists: Vec<AskedList>,
}

/// A list of authors.
#[derive(Clone, Debug)]
pub struct AskedList {
    /// Under what that is kept.
    pub list: ListOf,
    /// What the server said of it; `None`: it was not asked.
    pub told: Option<Told>,
}

/// What the server said of a list: these authors, or what cannot be kept, such as too many.
pub type Told = Option<Vec<u64>>;

/// What an answer tells of a message, and what that is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfMessage {
    /// Its id.
    pub id: u64,
    /// What is told.
    pub says: Says,
    /// The other rows that it is made of, one of each table that messages refer to; `None`: no row of it, whatever becomes of the table.
    pub made_of: Vec<Option<Message>>,
}

impl OfMessage {
    /// Made of its own row alone.
    pub(crate) fn alone((id, says): (u64, Says)) -> OfMessage {
        OfMessage {
            id,
            says,
            made_of: Vec::new(),
        }
    }
}

/// What an answer tells of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// Its row stands there.
    Row(Range<usize>),
    /// It passes the conditions, and OFFSET passed over it.
    Passes,
    /// It does not.
    FilteredOut,
}

impl Fill {
    /// Under which number to keep it. From here on its frame is that of such replies: so there is a proof behind the answer.
    #[must_use]
    pub fn variant(&self) -> Variant {
        let frame = self.frame.clone();
        self.kept.answered_so(&self.key, self.kind, frame)
    }

    /// Each message with what is told of it, of the answer that was read.
    pub fn told<'a>(&'a self, answer: &'a [u8]) -> impl Iterator<Item = (&'a OfMessage, Kept<'a>)> {
        self.rows.iter().filter_map(|one| {
            let kept = match &one.says {
                Says::Row(range) => Kept::Row(answer.get(range.clone())?),
                Says::Passes => Kept::Passes,
                Says::FilteredOut => Kept::FilteredOut,
            };
            Some((one, kept))
        })
    }
}

/// A column of a message's, such as its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnColumn<'a> {
    /// The database of the table.
    pub(crate) database: &'a str,
    /// The table, and how the statement calls it.
    pub(crate) table: &'a str,
    pub(crate) called: &'a [u8],
    /// The column.
    pub(crate) name: &'a str,
}

/// Rows are told from an answer with no other status flags than these: autocommit, how strings are read, and what follows the plan.
const PLAIN_STATUS: u16 = status::AUTOCOMMIT
    | status::NO_BACKSLASH_ESCAPES
    | status::ANSI_QUOTES
    | status::NO_GOOD_INDEX
    | status::NO_INDEX;

/// Rows behind longer descriptions of columns are not kept.
const HEAD_BYTES: usize = 32 * 1024;

impl Paged {
    /// The whole reply, and how it ends.
    #[must_use]
    pub fn reply(self, frame: &Frame) -> (Vec<u8>, Outcome) {
        let Paged {
            mut packets, rows, ..
        } = self;
        let sequence = rows.to_le_bytes()[0].wrapping_add(frame.sequence);
        frame::encode(sequence, &frame.last, &mut packets);
        let outcome = Outcome::Ok(OkPacket {
            status: frame.status,
            ..OkPacket::default()
        });
        (packets, outcome)
    }
}

/// Messages among which the server looked for a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Among<'a> {
    /// Their ids, in the page's order.
    pub(crate) ids: &'a [u64],
    /// There are no others.
    pub(crate) all: bool,
    /// OFFSET.
    pub(crate) offset: u64,
    /// LIMIT.
    pub(crate) limit: u64,
}

/// What a reply, taken apart, tells of these messages, and what stands around its rows. `binary`: it is that to an execution. `None`: it is not as
/// others are, or does not tell which messages it shows.
pub(crate) fn read(
    bytes: &[u8],
    parts: &Parts,
    binary: bool,
    id: OwnColumn<'_>,
    among: Among<'_>,
) -> Option<(Frame, Vec<(u64, Says)>)> {
    let frame = frame_of(bytes, parts)?;
    let mut ids = Vec::with_capacity(parts.rows.len());
    match id.place(bytes, parts) {
        Some(place) => {
            let types = column::kinds(bytes, &parts.definitions)?;
            for row in &parts.rows {
                ids.push(column::id(bytes.get(row.clone())?, place, &types, binary)?);
            }
        }
        // All of them passed.
        None if parts.rows.len() == among.ids.len() && among.offset == 0 => {
            ids.extend_from_slice(among.ids);
        }
        None => return None,
    }
    let full = u64::try_from(parts.rows.len()).is_ok_and(|rows| rows >= among.limit);
    let told: Vec<_> = ids.into_iter().zip(parts.rows.iter().cloned()).collect();
    let rows = told_of(among.ids, &told, among.offset, among.all && !full)?;
    Some((frame, rows))
}

/// True where all columns of a reply are such, by their own names.
pub(crate) fn shows_only(bytes: &[u8], parts: &Parts, is_such: impl Fn(&[u8]) -> bool) -> bool {
    parts.definitions.iter().all(|range| {
        let definition = bytes.get(range.clone()).and_then(column::names);
        definition.is_some_and(|names| is_such(names.original_name))
    })
}

impl OwnColumn<'_> {
    /// Which column of a reply it is.
    pub(crate) fn place(&self, bytes: &[u8], parts: &Parts) -> Option<usize> {
        let called = unquoted(self.called)?;
        parts.definitions.iter().position(|range| {
            let definition = bytes.get(range.clone()).and_then(column::names);
            definition.is_some_and(|names| {
                let same = |own: &[u8], other: &str| own.eq_ignore_ascii_case(other.as_bytes());
                same(names.schema, self.database)
                    && names.table.eq_ignore_ascii_case(called)
                    && same(names.original_table, self.table)
                    && same(names.original_name, self.name)
            })
        })
    }
}

/// What stands around the rows. `None`: the answer is not as others are.
fn frame_of(bytes: &[u8], parts: &Parts) -> Option<Frame> {
    let head = bytes.get(..parts.rows_from)?;
    let status = flags(bytes, parts.status)?;
    let sequence = *bytes.get(parts.rows_from + frame::HEADER_BYTES - 1)?;
    let plain = status & !PLAIN_STATUS == 0 && status & status::AUTOCOMMIT != 0;
    (plain && head.len() <= HEAD_BYTES).then(|| Frame {
        columns: parts.definitions.len(),
        head: head.to_vec(),
        sequence,
        last: bytes.get(parts.last.clone()).unwrap_or_default().to_vec(),
        status,
    })
}

/// A name as it stands in a text, in back quotes or not. `None`: it has some in it.
fn unquoted(name: &[u8]) -> Option<&[u8]> {
    let inner = name.strip_prefix(b"`").and_then(|it| it.strip_suffix(b"`"));
    let inner = inner.unwrap_or(name);
    (!inner.contains(&b'`')).then_some(inner)
}

/// What an answer tells of candidates, whose rows come in their order, behind as many as OFFSET says. `whole`: the answer ends with the
/// candidates, and not with the page. `None`: a row is no candidate's.
fn told_of(
    candidates: &[u64],
    rows: &[(u64, Range<usize>)],
    offset: u64,
    whole: bool,
) -> Option<Vec<(u64, Says)>> {
    let Some((first, _)) = rows.first() else {
        // OFFSET may have passed over some.
        let all = candidates.iter().filter(|_| whole && offset == 0);
        return Some(all.map(|id| (*id, Says::FilteredOut)).collect());
    };
    let front = candidates.iter().position(|id| id == first)?;
    let (front, page) = candidates.split_at(front);
    let passed_over = usize::try_from(offset).is_ok_and(|offset| offset == front.len());
    let mut told = Vec::with_capacity(candidates.len());
    for id in front {
        if offset == 0 {
            told.push((*id, Says::FilteredOut));
        } else if passed_over {
            // They are as many as it has to pass over.
            told.push((*id, Says::Passes));
        }
    }
    let mut rows = rows.iter().peekable();
    for id in page {
        match rows.next_if(|(row, _)| row == id) {
            Some((_, range)) => told.push((*id, Says::Row(range.clone()))),
            None if rows.peek().is_some() || whole => told.push((*id, Says::FilteredOut)),
            None => break,
        }
    }
    rows.next().is_none().then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_of_candidates_up_to_its_last_row() {
        let of = |ids: &[u64], offset, whole| {
            let rows: Vec<_> = ids.iter().map(|id| (*id, 0..1)).collect();
            let told = told_of(&[9, 8, 7, 6], &rows, offset, whole)?;
            let shown = told.into_iter().map(|(id, says)| match says {
                Says::Row(_) => format!("{id}"),
                Says::Passes => format!("({id})"),
                Says::FilteredOut => format!("-{id}"),
            });
            Some(shown.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(of(&[9, 7], 0, false).as_deref(), Some("9 -8 7"));
        assert_eq!(of(&[9, 7], 0, true).as_deref(), Some("9 -8 7 -6"));
        assert_eq!(of(&[8], 0, false).as_deref(), Some("-9 8"));
        // Behind an OFFSET: of one of two that stand in front it is not known which passed.
        assert_eq!(of(&[8, 6], 1, false).as_deref(), Some("(9) 8 -7 6"));
        assert_eq!(of(&[7, 6], 1, false).as_deref(), Some("7 6"));
        assert_eq!(of(&[], 0, true).as_deref(), Some("-9 -8 -7 -6"));
        assert_eq!(of(&[], 0, false).as_deref(), Some(""));
        assert_eq!(of(&[], 2, true).as_deref(), Some(""));
        // Not one of them, or in another order.
        assert_eq!(of(&[5], 0, true), None);
        assert_eq!(of(&[7, 9], 0, true), None);
    }
}
