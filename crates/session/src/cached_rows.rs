//! Cached rows of any statement: pages made of them, and what a server reply shows about messages.

use std::ops::Range;
use std::sync::Arc;

use headwater_rows::template::{CacheKeyTable, ResultEnvelope};
use headwater_rows::{CacheKey, CachedRow};
use headwater_timeline::index::RowKey;
use headwater_wire::packet;
use headwater_wire::reply::ReplyOutcome;
use headwater_wire::reply::layout::{ResultSetParts, status_flags_at};
use headwater_wire::response::OkPacket;
use headwater_wire::resultset::column;
use headwater_wire::status;

use crate::author_lists::AuthorListKey;

/// The rows of a page, without the result-set envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPage {
    /// The row packets.
    pub packets: Vec<u8>,
    /// How many rows there are.
    pub rows: u64,
    /// What a following `FOUND_ROWS()` returns: rows that OFFSET skips count.
    pub found_rows: u64,
}

/// What a reply shows about messages: the row of each, or that it has none.
#[derive(Clone, Debug)]
pub struct CacheFill {
    /// The template's cache.
    pub cache: Arc<CacheKeyTable>,
    /// The cache key: literals and settings.
    pub key: Vec<u8>,
    /// The kind of envelope.
    pub envelope_kind: usize,
    /// The result-set envelope.
    pub envelope: ResultEnvelope,
    /// The outcome for each message.
    pub rows: Vec<MessageObservation>,
    /// Author lists besides the reader's follows: messages of authors who do not pass them have no outcome here.
    pub lists: Vec<QueriedAuthorList>,
}

/// An author list, and the server's reply to a query for it.
#[derive(Clone, Debug)]
pub struct QueriedAuthorList {
    /// Its key.
    pub list: AuthorListKey,
    /// The server's reply; `None`: no query was sent.
    pub reply: Option<AuthorListReply>,
}

/// The authors of a list; `None`: it cannot be cached, because it has too many authors, for example.
pub type AuthorListReply = Option<Vec<u64>>;

/// What a reply shows about a message, and the rows that this depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageObservation {
    /// The message's id.
    pub id: u64,
    /// What the reply shows.
    pub outcome: RowOutcome,
    /// The joined row of each joined table; `None`: it does not depend on that table.
    pub joined_rows: Vec<Option<RowKey>>,
}

impl MessageObservation {
    /// An observation that depends on the message's own row alone.
    pub(crate) fn without_joined_rows((id, says): (u64, RowOutcome)) -> MessageObservation {
        MessageObservation {
            id,
            outcome: says,
            joined_rows: Vec::new(),
        }
    }
}

/// What a reply shows about one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// Its row is in the reply.
    Row(Range<usize>),
    /// It passes the conditions, but OFFSET skipped it.
    Passes,
    /// It does not pass the conditions.
    FilteredOut,
}

impl CacheFill {
    /// The cache key. From here on the template keeps this envelope, so call it only after freshness is proved.
    #[must_use]
    pub fn cache_key(&self) -> CacheKey {
        let frame = self.envelope.clone();
        self.cache
            .record_envelope(&self.key, self.envelope_kind, frame)
    }

    /// Each message with its outcome, from the reply that was read.
    pub fn observed_rows<'a>(
        &'a self,
        answer: &'a [u8],
    ) -> impl Iterator<Item = (&'a MessageObservation, CachedRow<'a>)> {
        self.rows.iter().filter_map(|one| {
            let row = match &one.outcome {
                RowOutcome::Row(range) => CachedRow::Row(answer.get(range.clone())?),
                RowOutcome::Passes => CachedRow::Passes,
                RowOutcome::FilteredOut => CachedRow::FilteredOut,
            };
            Some((one, row))
        })
    }
}

/// A column of the message table, such as the id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageColumn<'a> {
    pub(crate) database: &'a str,
    /// The table, and its alias in the statement.
    pub(crate) table: &'a str,
    pub(crate) alias: &'a [u8],
    pub(crate) name: &'a str,
}

/// Rows are read only from replies with no other status flags than these: autocommit, how strings are read, and plan flags.
const PLAIN_STATUS: u16 = status::AUTOCOMMIT
    | status::NO_BACKSLASH_ESCAPES
    | status::ANSI_QUOTES
    | status::NO_GOOD_INDEX
    | status::NO_INDEX;

/// What status flags say of transactions.
pub(crate) const TRANSACTION_STATUS: u16 =
    status::AUTOCOMMIT | status::IN_TRANS | status::IN_TRANS_READONLY;

/// Rows with longer column definitions are not cached.
const MAX_ENVELOPE_BYTES: usize = 32 * 1024;

impl CachedPage {
    /// The complete reply, and its outcome.
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

/// The candidates among which the server selected a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageCandidates<'a> {
    /// Their ids, in the page's order.
    pub(crate) ids: &'a [u64],
    /// There are no other candidates.
    pub(crate) exhaustive: bool,
    pub(crate) offset: u64,
    pub(crate) limit: u64,
}

/// The outcomes for these messages and the envelope, from a parsed reply; `binary`: in the binary row format. `None`: the reply has an
/// unusual form, or does not show which messages it holds.
pub(crate) fn read_observations(
    bytes: &[u8],
    parts: &ResultSetParts,
    binary: bool,
    id: MessageColumn<'_>,
    candidates: PageCandidates<'_>,
) -> Option<(ResultEnvelope, Vec<(u64, RowOutcome)>)> {
    let frame = envelope_of(bytes, parts)?;
    let mut ids = Vec::with_capacity(parts.rows.len());
    match id.position(bytes, parts) {
        Some(column_index) => {
            let types = column::column_types(bytes, &parts.definitions)?;
            for row in &parts.rows {
                ids.push(column::id_cell(
                    bytes.get(row.clone())?,
                    column_index,
                    &types,
                    binary,
                )?);
            }
        }
        // All candidates passed.
        None if parts.rows.len() == candidates.ids.len() && candidates.offset == 0 => {
            ids.extend_from_slice(candidates.ids);
        }
        None => return None,
    }
    let full = u64::try_from(parts.rows.len()).is_ok_and(|rows| rows >= candidates.limit);
    let rows_by_id: Vec<_> = ids.into_iter().zip(parts.rows.iter().cloned()).collect();
    let rows = observations_of(
        candidates.ids,
        &rows_by_id,
        candidates.offset,
        candidates.exhaustive && !full,
    )?;
    Some((frame, rows))
}

/// True where all columns of a reply are among these, by their original names.
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
    pub(crate) fn position(&self, bytes: &[u8], parts: &ResultSetParts) -> Option<usize> {
        let alias = unquoted(self.alias)?;
        parts.definitions.iter().position(|range| {
            let definition = bytes.get(range.clone()).and_then(column::definition_names);
            definition.is_some_and(|names| {
                let same =
                    |original: &[u8], other: &str| original.eq_ignore_ascii_case(other.as_bytes());
                same(names.schema, self.database)
                    && names.table.eq_ignore_ascii_case(alias)
                    && same(names.original_table, self.table)
                    && same(names.original_name, self.name)
            })
        })
    }
}

/// The reply's envelope; `None`: the reply has an unusual form, or one within a transaction.
pub(crate) fn envelope_of(bytes: &[u8], parts: &ResultSetParts) -> Option<ResultEnvelope> {
    let envelope = envelope_in_transaction(bytes, parts)?;
    (envelope.status & TRANSACTION_STATUS == status::AUTOCOMMIT).then_some(envelope)
}

/// The same, within a transaction or not.
pub(crate) fn envelope_in_transaction(
    bytes: &[u8],
    parts: &ResultSetParts,
) -> Option<ResultEnvelope> {
    let head = bytes.get(..parts.rows_start)?;
    let status = status_flags_at(bytes, parts.status_at)?;
    let sequence = *bytes.get(parts.rows_start + packet::HEADER_BYTES - 1)?;
    let plain = status & !(PLAIN_STATUS | TRANSACTION_STATUS) == 0;
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

/// A name in a text without its back quotes; `None`: it contains back quotes.
fn unquoted(name: &[u8]) -> Option<&[u8]> {
    let inner = name.strip_prefix(b"`").and_then(|it| it.strip_suffix(b"`"));
    let inner = inner.unwrap_or(name);
    (!inner.contains(&b'`')).then_some(inner)
}

/// The outcomes for candidates whose rows come in candidate order, after `offset` skipped ones. `whole`: the reply ends with the
/// candidates, not with the page. `None`: a row belongs to no candidate.
fn observations_of(
    candidates: &[u64],
    rows: &[(u64, Range<usize>)],
    offset: u64,
    exhaustive: bool,
) -> Option<Vec<(u64, RowOutcome)>> {
    let Some((first, _)) = rows.first() else {
        // OFFSET may have skipped some.
        let all = candidates.iter().filter(|_| exhaustive && offset == 0);
        return Some(all.map(|id| (*id, RowOutcome::FilteredOut)).collect());
    };
    let earlier = candidates.iter().position(|id| id == first)?;
    let (earlier, page) = candidates.split_at(earlier);
    let passed_over = usize::try_from(offset).is_ok_and(|offset| offset == earlier.len());
    let mut outcomes = Vec::with_capacity(candidates.len());
    for id in earlier {
        if offset == 0 {
            outcomes.push((*id, RowOutcome::FilteredOut));
        } else if passed_over {
            // Exactly as many as OFFSET skips.
            outcomes.push((*id, RowOutcome::Passes));
        }
    }
    let mut rows = rows.iter().peekable();
    for id in page {
        match rows.next_if(|(row, _)| row == id) {
            Some((_, range)) => outcomes.push((*id, RowOutcome::Row(range.clone()))),
            None if rows.peek().is_some() || exhaustive => {
                outcomes.push((*id, RowOutcome::FilteredOut))
            }
            None => break,
        }
    }
    rows.next().is_none().then_some(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_shows_candidates_up_to_its_last_row() {
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
        // With an OFFSET of 1 and two earlier candidates it is unknown which one passed.
        assert_eq!(of(&[8, 6], 1, false).as_deref(), Some("(9) 8 -7 6"));
        assert_eq!(of(&[7, 6], 1, false).as_deref(), Some("7 6"));
        assert_eq!(of(&[], 0, true).as_deref(), Some("-9 -8 -7 -6"));
        assert_eq!(of(&[], 0, false).as_deref(), Some(""));
        assert_eq!(of(&[], 2, true).as_deref(), Some(""));
        // Not a candidate, or in another order.
        assert_eq!(of(&[5], 0, true), None);
        assert_eq!(of(&[7, 9], 0, true), None);
    }
}
