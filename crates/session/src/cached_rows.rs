//! Rows that are kept, for whatever statement: a page made of them, and what a reply of the server's tells of messages.

use std::ops::Range;
use std::sync::Arc;

use headwater_rows::template::{ResultEnvelope, TemplateCache};
use headwater_rows::{CacheKey, CachedRow, MessageKey};
use headwater_wire::packet;
use headwater_wire::reply::ReplyOutcome;
use headwater_wire::reply::layout::{ResultSetParts, status_flags_at};
use headwater_wire::response::OkPacket;
use headwater_wire::resultset::column;
use headwater_wire::status;

use crate::author_lists::AuthorListKey;

/// Rows of a page, behind what stands in front of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPage {
    /// The packets.
    pub packets: Vec<u8>,
    /// How many rows there are.
    pub rows: u64,
    /// How many rows a `FOUND_ROWS()` behind it tells: those that OFFSET passes over count.
    pub found_rows: u64,
}

/// What an answer tells of messages: a row that is in it, or that there is none.
#[derive(Clone, Debug)]
pub struct CacheFill {
    /// Of which template.
    pub cache: Arc<TemplateCache>,
    /// Under which literals and settings.
    pub key: Vec<u8>,
    /// In what kind of frame.
    pub envelope_kind: usize,
    /// What stands around its rows.
    pub envelope: ResultEnvelope,
    /// What is told of each message.
    pub rows: Vec<MessageObservation>,
    /// Lists of authors beside those whom a reader follows: it tells of no messages of whom they have not pass.
    pub lists: Vec<QueriedAuthorList>,
}

/// A list of authors.
#[derive(Clone, Debug)]
pub struct QueriedAuthorList {
    /// Under what that is kept.
    pub list: AuthorListKey,
    /// What the server said of it; `None`: it was not asked.
    pub reply: Option<AuthorListReply>,
}

/// What the server said of a list: these authors, or what cannot be kept, such as too many.
pub type AuthorListReply = Option<Vec<u64>>;

/// What an answer tells of a message, and what that is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageObservation {
    /// Its id.
    pub id: u64,
    /// What is told.
    pub outcome: RowOutcome,
    /// The other rows that it is made of, one of each table that messages refer to; `None`: no row of it, whatever becomes of the table.
    pub joined_rows: Vec<Option<MessageKey>>,
}

impl MessageObservation {
    /// Made of its own row alone.
    pub(crate) fn without_joined_rows((id, says): (u64, RowOutcome)) -> MessageObservation {
        MessageObservation {
            id,
            outcome: says,
            joined_rows: Vec::new(),
        }
    }
}

/// What an answer tells of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// Its row stands there.
    Row(Range<usize>),
    /// It passes the conditions, and OFFSET passed over it.
    Passes,
    /// It does not.
    FilteredOut,
}

impl CacheFill {
    /// Under which number to keep it. From here on its frame is that of such replies: so there is a proof behind the answer.
    #[must_use]
    pub fn cache_key(&self) -> CacheKey {
        let frame = self.envelope.clone();
        self.cache
            .record_envelope(&self.key, self.envelope_kind, frame)
    }

    /// Each message with what is told of it, of the answer that was read.
    pub fn observed_rows<'a>(
        &'a self,
        answer: &'a [u8],
    ) -> impl Iterator<Item = (&'a MessageObservation, CachedRow<'a>)> {
        self.rows.iter().filter_map(|one| {
            let kept = match &one.outcome {
                RowOutcome::Row(range) => CachedRow::Row(answer.get(range.clone())?),
                RowOutcome::Passes => CachedRow::Passes,
                RowOutcome::FilteredOut => CachedRow::FilteredOut,
            };
            Some((one, kept))
        })
    }
}

/// A column of a message's, such as its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageColumn<'a> {
    /// The database of the table.
    pub(crate) database: &'a str,
    /// The table, and how the statement calls it.
    pub(crate) table: &'a str,
    pub(crate) alias: &'a [u8],
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
const MAX_ENVELOPE_BYTES: usize = 32 * 1024;

impl CachedPage {
    /// The whole reply, and how it ends.
    #[must_use]
    pub fn reply(self, frame: &ResultEnvelope) -> (Vec<u8>, ReplyOutcome) {
        let CachedPage {
            mut packets, rows, ..
        } = self;
        let sequence = rows.to_le_bytes()[0].wrapping_add(frame.sequence);
        packet::encode(sequence, &frame.last_payload, &mut packets);
        let outcome = ReplyOutcome::Ok(OkPacket {
            status: frame.status,
            ..OkPacket::default()
        });
        (packets, outcome)
    }
}

/// Messages among which the server looked for a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageCandidates<'a> {
    /// Their ids, in the page's order.
    pub(crate) ids: &'a [u64],
    /// There are no others.
    pub(crate) exhaustive: bool,
    /// OFFSET.
    pub(crate) offset: u64,
    /// LIMIT.
    pub(crate) limit: u64,
}

/// What a reply, taken apart, tells of these messages, and what stands around its rows. `binary`: it is that to an execution. `None`: it is not as
/// others are, or does not tell which messages it shows.
pub(crate) fn read_observations(
    bytes: &[u8],
    parts: &ResultSetParts,
    binary: bool,
    id: MessageColumn<'_>,
    among: PageCandidates<'_>,
) -> Option<(ResultEnvelope, Vec<(u64, RowOutcome)>)> {
    let frame = envelope_of(bytes, parts)?;
    let mut ids = Vec::with_capacity(parts.rows.len());
    match id.position(bytes, parts) {
        Some(place) => {
            let types = column::column_types(bytes, &parts.definitions)?;
            for row in &parts.rows {
                ids.push(column::id_cell(
                    bytes.get(row.clone())?,
                    place,
                    &types,
                    binary,
                )?);
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
    let rows = observations_of(among.ids, &told, among.offset, among.exhaustive && !full)?;
    Some((frame, rows))
}

/// True where all columns of a reply are such, by their own names.
pub(crate) fn shows_only(
    bytes: &[u8],
    parts: &ResultSetParts,
    is_such: impl Fn(&[u8]) -> bool,
) -> bool {
    parts.definitions.iter().all(|range| {
        let definition = bytes.get(range.clone()).and_then(column::definition_names);
        definition.is_some_and(|names| is_such(names.original_name))
    })
}

impl MessageColumn<'_> {
    /// Which column of a reply it is.
    pub(crate) fn position(&self, bytes: &[u8], parts: &ResultSetParts) -> Option<usize> {
        let called = unquoted(self.alias)?;
        parts.definitions.iter().position(|range| {
            let definition = bytes.get(range.clone()).and_then(column::definition_names);
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
fn envelope_of(bytes: &[u8], parts: &ResultSetParts) -> Option<ResultEnvelope> {
    let head = bytes.get(..parts.rows_start)?;
    let status = status_flags_at(bytes, parts.status_at)?;
    let sequence = *bytes.get(parts.rows_start + packet::HEADER_BYTES - 1)?;
    let plain = status & !PLAIN_STATUS == 0 && status & status::AUTOCOMMIT != 0;
    (plain && head.len() <= MAX_ENVELOPE_BYTES).then(|| ResultEnvelope {
        columns: parts.definitions.len(),
        head_packets: head.to_vec(),
        sequence,
        last_payload: bytes
            .get(parts.end_packet.clone())
            .unwrap_or_default()
            .to_vec(),
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
fn observations_of(
    candidates: &[u64],
    rows: &[(u64, Range<usize>)],
    offset: u64,
    whole: bool,
) -> Option<Vec<(u64, RowOutcome)>> {
    let Some((first, _)) = rows.first() else {
        // OFFSET may have passed over some.
        let all = candidates.iter().filter(|_| whole && offset == 0);
        return Some(all.map(|id| (*id, RowOutcome::FilteredOut)).collect());
    };
    let front = candidates.iter().position(|id| id == first)?;
    let (front, page) = candidates.split_at(front);
    let passed_over = usize::try_from(offset).is_ok_and(|offset| offset == front.len());
    let mut told = Vec::with_capacity(candidates.len());
    for id in front {
        if offset == 0 {
            told.push((*id, RowOutcome::FilteredOut));
        } else if passed_over {
            // They are as many as it has to pass over.
            told.push((*id, RowOutcome::Passes));
        }
    }
    let mut rows = rows.iter().peekable();
    for id in page {
        match rows.next_if(|(row, _)| row == id) {
            Some((_, range)) => told.push((*id, RowOutcome::Row(range.clone()))),
            None if rows.peek().is_some() || whole => told.push((*id, RowOutcome::FilteredOut)),
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
            let told = observations_of(&[9, 8, 7, 6], &rows, offset, whole)?;
            let shown = told.into_iter().map(|(id, says)| match says {
                RowOutcome::Row(_) => format!("{id}"),
                RowOutcome::Passes => format!("({id})"),
                RowOutcome::FilteredOut => format!("-{id}"),
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
