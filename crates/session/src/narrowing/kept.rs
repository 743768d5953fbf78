//! Rows that are kept: a page made of them, and what an answer of the server's tells of each message.
//!
//! A row that was kept is what the server would send now, as long as the log tells no change of its message. So such a page needs no
//! question to the server but the proof that memory is up to date. Outside transactions only: inside, the snapshot decides.

use std::ops::Range;
use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::bind::Statement;
use headwater_feed::cost::Crowd;
use headwater_feed::kept::Frame;
use headwater_wire::frame;
use headwater_wire::reply::Outcome;
use headwater_wire::reply::layout::{Parts, flags};
use headwater_wire::response::OkPacket;
use headwater_wire::resultset::column;
use headwater_wire::status;

use super::{Candidates, Feeds, Found, Need, Stage, Subject, Told, Turn, Want, Wishes, World};

/// A page that may be made of rows that are kept.
#[derive(Clone, Debug)]
pub struct PageWant {
    /// Whose messages.
    pub want: Want,
    /// As they were named without a proof: if nothing is kept of these, none is needed.
    pub named: Vec<u64>,
    /// There are no others.
    pub all: bool,
    /// Under which number rows are kept.
    pub variant: u64,
    /// What stands in front of the rows, and which number the first of them has.
    pub frame: Arc<Frame>,
    /// OFFSET.
    pub offset: u64,
    /// LIMIT.
    pub limit: u64,
}

/// Rows of a page, behind what stands in front of them.
#[derive(Debug)]
pub struct Paged {
    /// The packets.
    pub packets: Vec<u8>,
    /// How many rows there are.
    pub rows: u64,
}

/// What an answer tells of messages: a row that is in it, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Under which number to keep it.
    pub variant: u64,
    /// Messages, and what is told of each.
    pub rows: Vec<(u64, Says)>,
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

/// Under what rows of a statement are kept.
#[derive(Clone, Debug)]
pub(super) struct Keeping {
    /// All that rows depend on but the template and the messages.
    key: Vec<u8>,
}

/// Rows are told from an answer with no other status flags than these: autocommit, how strings are read, and what follows the plan.
const PLAIN_STATUS: u16 = status::AUTOCOMMIT
    | status::NO_BACKSLASH_ESCAPES
    | status::ANSI_QUOTES
    | status::NO_GOOD_INDEX
    | status::NO_INDEX;

/// Rows of statements with longer literals beside those that are apart are not kept; nor those behind longer descriptions of columns.
const LITERAL_BYTES: usize = 1024;
const HEAD_BYTES: usize = 32 * 1024;

impl<K: Feeds> World<'_, K> {
    /// Under what rows of the statement may be kept, if they may.
    pub(super) fn keeping(&self, template: &Template, statement: Statement<'_>) -> Option<Keeping> {
        let standing = &self.session.standing;
        let may = self.policy.rows
            && !self.policy.exact
            && !self.keeps_columns()
            && self.named.is_none()
            && self.session.tables.pending.is_none()
            && !standing.reads_a_snapshot();
        let keep = template.shape.keep.as_ref().filter(|_| may)?;
        let follow = standing.rows_follow()?;
        let literals = keep.literals(statement, template.types)?;
        let literals = (literals.len() <= LITERAL_BYTES).then_some(literals)?;
        let under = self.under().0.to_le_bytes();
        Some(Keeping {
            key: [&under[..], follow, &[0], &literals].concat(),
        })
    }

    /// The page that may be there already.
    pub(super) fn page_want(
        &self,
        subject: &Subject,
        wishes: &Wishes,
        found: &Found,
    ) -> Option<PageWant> {
        let keeping = wishes.keeping.as_ref()?;
        let template = &subject.template;
        let kept = &template.kept;
        let first = wishes.anew == 0 && !wishes.short;
        let ttl = self.policy.privileges_ttl;
        let standing = &self.session.standing;
        let may = first
            && !template.is_retired()
            && standing.was_heard(self.now)
            && standing.may_read_template(kept.number, ttl, self.now)
            && kept.is_tried();
        if !may {
            return None;
        }
        let key = keeping.under(found);
        let (variant, frame) = kept.variant(&key, Crowd::of(found.authors))?;
        // Of other columns than those that were told of the client's own statement, the server tells it with a flag.
        if let Some(executed) = self.executed
            && executed.columns != frame.columns
        {
            return None;
        }
        Some(PageWant {
            want: wishes.want(subject),
            named: found.ids.clone(),
            all: found.all,
            variant,
            frame,
            offset: wishes.asked.offset,
            limit: wishes.asked.limit,
        })
    }

    /// The page was made of kept rows, or could not be.
    pub(super) fn paged(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        found: Found,
        frame: &Frame,
        paged: Option<Paged>,
    ) -> Turn {
        subject.template.kept.tried(paged.is_some());
        let Some(Paged { mut packets, rows }) = paged else {
            return self.go_to_server(subject, wishes, found);
        };
        let sequence = rows.to_le_bytes()[0].wrapping_add(frame.sequence);
        frame::encode(sequence, &frame.last, &mut packets);
        if let Some(executed) = self.executed {
            self.session.statements().owned(executed.statement);
        }
        self.session.answered_aside(rows);
        let outcome = Outcome::Ok(OkPacket {
            status: frame.status,
            ..OkPacket::default()
        });
        let told = Told {
            kept: true,
            ..Told::narrowed(packets, outcome)
        };
        Ok((Stage::Ended, Need::Tell(told)))
    }

    /// What a narrowed answer tells of the messages among which the server looked.
    pub(super) fn fill(
        &mut self,
        subject: &Subject,
        wishes: &Wishes,
        candidates: &Candidates,
        bytes: &[u8],
    ) -> Option<Fill> {
        let template = &subject.template;
        let keeping = wishes.keeping.as_ref()?;
        let found = candidates.found.as_ref()?;
        if let Some(begun) = *self.begun {
            let standing = &mut self.session.standing;
            standing.template_answered(template.kept.number, begun);
        }
        let capabilities = self.session.capabilities;
        let parts = Parts::read(bytes, capabilities)?;
        let frame = frame_of(bytes, &parts)?;
        let place = self.place_of_id(subject, bytes, &parts);
        let binary = self.executed.is_some();
        let mut ids = Vec::with_capacity(parts.rows.len());
        match place {
            Some(place) => {
                let types = column::kinds(bytes, &parts.definitions)?;
                for row in &parts.rows {
                    ids.push(column::id(bytes.get(row.clone())?, place, &types, binary)?);
                }
            }
            // All of them passed.
            None if parts.rows.len() == found.ids.len() && wishes.asked.offset == 0 => {
                ids.clone_from(&found.ids);
            }
            None => return None,
        }
        let full = u64::try_from(parts.rows.len()).is_ok_and(|rows| rows >= wishes.asked.limit);
        let whole = found.all && !full;
        let told: Vec<_> = ids.into_iter().zip(parts.rows).collect();
        let rows = told_of(&found.ids, &told, wishes.asked.offset, whole)?;
        let kept = &template.kept;
        let variant = kept.answered_so(&keeping.under(found), candidates.crowd, frame);
        Some(Fill { variant, rows })
    }

    /// Which column of the answer is the message's id.
    fn place_of_id(&self, subject: &Subject, bytes: &[u8], parts: &Parts) -> Option<usize> {
        let template = &subject.template;
        let called = subject.words.text(template.shape.qualifier, self.text()?);
        let called = unquoted(called)?;
        parts.definitions.iter().position(|range| {
            let definition = bytes.get(range.clone()).and_then(column::names);
            definition.is_some_and(|names| {
                let same = |own: &[u8], other: &str| own.eq_ignore_ascii_case(other.as_bytes());
                same(names.schema, &template.database)
                    && names.table.eq_ignore_ascii_case(called)
                    && same(names.original_table, &template.names.message)
                    && same(names.original_name, &template.names.id)
            })
        })
    }
}

impl Keeping {
    /// In this stream of the log: what was told in another one is of other tables, perhaps.
    fn under(&self, found: &Found) -> Vec<u8> {
        [&found.generation.to_le_bytes()[..], &self.key].concat()
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
