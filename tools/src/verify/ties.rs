//! Ties: rows of a page with equal order keys. SQL lets them come in any order, and if LIMIT ends among them, the server may choose which
//! of them are shown. So a page that differs only in that is the same answer.

use std::collections::HashMap;

use super::answer::{AnswerRow, ComparableAnswer};
use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};

/// Rows queried beyond a page, to get all that tie with its last one.
const EXTRA_ROWS: u64 = 10_000;

/// A query that returns the order keys of each row of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TieQuery {
    pub(super) text: String,
    /// The number of key columns, which follow those of the page.
    key_columns: usize,
}

/// The reply to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TieGroups {
    rows: Vec<AnswerRow>,
    key_columns: usize,
}

impl TieQuery {
    /// The tie query of a page. `None`: the id orders it as well and nothing is joined, so that no rows tie, or the page is not understood.
    pub(super) fn of_page(page: &str, id: &str) -> Option<TieQuery> {
        let tokens: Vec<SqlToken<'_>> = Lexer::new(page.as_bytes()).collect();
        let outer = outer_tokens(&tokens)?;
        let at = |word: &str| {
            let index = outer.iter().rposition(|token| token.is_word(word))?;
            Some((index, outer.get(index)?.at))
        };
        let from = outer.iter().find(|token| token.is_word("FROM"))?.at;
        let ((order, ordered), (limit, ends)) = (at("ORDER")?, at("LIMIT")?);
        let by = outer.get(order + 1).filter(|token| token.is_word("BY"))?;
        let keys = order_keys(page.get(by.at + 2..ends)?)?;
        // A message may have several rows in a join.
        let is_join = |token: &&SqlToken<'_>| token.is_word("JOIN") || token.is_punct(b',');
        let is_joined = outer
            .iter()
            .any(|token| from < token.at && token.at < ordered && is_join(&token));
        if !is_joined && keys.iter().any(|key| is_column(key, id)) {
            return None;
        }
        let rows = page_rows(outer.get(limit + 1..)?)?.checked_add(EXTRA_ROWS)?;
        let (head, middle) = (page.get(..from)?, page.get(from..ends)?);
        Some(TieQuery {
            text: format!("{head}, {} {middle}LIMIT {rows}", keys.join(", ")),
            key_columns: keys.len(),
        })
    }

    pub(super) fn groups(&self, answer: ComparableAnswer) -> Option<TieGroups> {
        match answer {
            ComparableAnswer::Rows { rows, .. } => Some(TieGroups {
                rows,
                key_columns: self.key_columns,
            }),
            ComparableAnswer::Done { .. } | ComparableAnswer::Refused { .. } => None,
        }
    }
}

impl TieGroups {
    /// True if a page equals the server's own, except for the order of ties.
    pub(super) fn allows(&self, page: &ComparableAnswer, server_page: &ComparableAnswer) -> bool {
        let (
            ComparableAnswer::Rows {
                columns,
                rows,
                warnings,
            },
            ComparableAnswer::Rows {
                columns: own_columns,
                rows: own_rows,
                warnings: own_warnings,
            },
        ) = (page, server_page)
        else {
            return false;
        };
        let alike = (columns, warnings, rows.len()) == (own_columns, own_warnings, own_rows.len());
        alike && self.matches_rows(rows)
    }

    /// True if the page has the groups in order, each of them whole, except for the last one.
    fn matches_rows(&self, page: &[AnswerRow]) -> bool {
        let mut remaining = page;
        for group in self
            .rows
            .chunk_by(|one, next| self.key_cells(one) == self.key_cells(next))
        {
            if remaining.is_empty() {
                break;
            }
            let Some((tied, rest)) = remaining.split_at_checked(group.len().min(remaining.len()))
            else {
                return false;
            };
            let mut times: HashMap<&[Option<Vec<u8>>], usize> = HashMap::new();
            for row in group {
                *times.entry(self.page_cells(row)).or_default() += 1;
            }
            for row in tied {
                match times.get_mut(row.as_slice()) {
                    Some(times) if *times > 0 => *times -= 1,
                    _ => return false,
                }
            }
            remaining = rest;
        }
        remaining.is_empty()
    }

    fn key_cells<'a>(&self, row: &'a AnswerRow) -> &'a [Option<Vec<u8>>] {
        row.get(row.len().saturating_sub(self.key_columns)..)
            .unwrap_or_default()
    }

    fn page_cells<'a>(&self, row: &'a AnswerRow) -> &'a [Option<Vec<u8>>] {
        row.get(..row.len().saturating_sub(self.key_columns))
            .unwrap_or_default()
    }
}

/// The tokens outside parentheses; `None`: servers may read some of it differently.
fn outer_tokens<'a>(tokens: &[SqlToken<'a>]) -> Option<Vec<SqlToken<'a>>> {
    let (mut depth, mut outer) = (0_u32, Vec::new());
    for token in tokens {
        match token.kind {
            TokenKind::Opaque => return None,
            TokenKind::Punct(b'(') => depth += 1,
            TokenKind::Punct(b')') => depth = depth.checked_sub(1)?,
            _ if depth == 0 => outer.push(*token),
            _ => {}
        }
    }
    let select = outer.first().is_some_and(|first| first.is_word("SELECT"));
    select.then_some(outer)
}

/// The expressions after ORDER BY, without their directions.
fn order_keys(text: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    for one in text.split(',') {
        let tokens: Vec<SqlToken<'_>> = Lexer::new(one.as_bytes()).collect();
        let last = tokens.last()?;
        let ends = match last.is_word("DESC") || last.is_word("ASC") {
            true => last.at,
            false => one.len(),
        };
        keys.push(one.get(..ends)?.trim().to_owned());
    }
    Some(keys)
}

/// True if this is a column of that name, in any table.
fn is_column(key: &str, column: &str) -> bool {
    let last = Lexer::new(key.as_bytes()).last();
    let name = last.and_then(|last| last.name());
    name.is_some_and(|name| name.eq_ignore_ascii_case(column))
}

/// The rows of a page: `20`, `0, 20`, `20 OFFSET 0`. `None` for a page with an offset.
fn page_rows(limit: &[SqlToken<'_>]) -> Option<u64> {
    let number =
        |at: usize| -> Option<u64> { std::str::from_utf8(limit.get(at)?.text).ok()?.parse().ok() };
    let (rows, offset) = match limit.get(1) {
        None => (number(0)?, 0),
        Some(comma) if comma.is_punct(b',') => (number(2)?, number(0)?),
        Some(word) if word.is_word("OFFSET") => (number(0)?, number(2)?),
        Some(_) => return None,
    };
    (offset == 0).then_some(rows)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(page: &str) -> Option<String> {
        TieQuery::of_page(page, "id").map(|question| question.text)
    }

    #[test]
    fn a_tie_query_adds_the_order_keys_and_more_rows() {
        assert_eq!(
            text(
                "SELECT s.id, (SELECT MAX(x) FROM y) FROM statuses s WHERE s.a IN (1,2) ORDER BY s.created_at DESC LIMIT 20"
            )
            .unwrap(),
            "SELECT s.id, (SELECT MAX(x) FROM y) , s.created_at FROM statuses s WHERE s.a IN (1,2) ORDER BY s.created_at DESC LIMIT 10020"
        );
        let of_join = text("SELECT * FROM t JOIN u ON u.t = t.id ORDER BY t.id DESC LIMIT 5");
        assert_eq!(
            of_join.unwrap(),
            "SELECT * , t.id FROM t JOIN u ON u.t = t.id ORDER BY t.id DESC LIMIT 10005"
        );
        let two = text("SELECT * FROM t ORDER BY `a` DESC, b LIMIT 0, 5").unwrap();
        assert_eq!(
            two,
            "SELECT * , `a`, b FROM t ORDER BY `a` DESC, b LIMIT 10005"
        );
    }

    #[test]
    fn where_the_id_orders_as_well_nothing_ties() {
        for page in [
            "SELECT id FROM t ORDER BY a DESC, t.`ID` DESC LIMIT 5",
            "SELECT id FROM t ORDER BY id DESC LIMIT 5 OFFSET 0",
            // Not understood.
            "SELECT id FROM t ORDER BY a DESC LIMIT 5 OFFSET 5",
            "SELECT id FROM t ORDER BY a DESC",
            "SELECT id FROM t WHERE b = 'a\\' ORDER BY a DESC LIMIT 5",
            "CALL page(1)",
        ] {
            assert_eq!(text(page), None, "{page}");
        }
    }

    fn rows(cells: &[&str]) -> ComparableAnswer {
        let row = |text: &&str| {
            let cells = text.split(' ');
            cells.map(|cell| Some(cell.as_bytes().to_vec())).collect()
        };
        ComparableAnswer::Rows {
            columns: Vec::new(),
            rows: cells.iter().map(row).collect(),
            warnings: 0,
        }
    }

    #[test]
    fn rows_that_tie_may_come_in_any_order_and_no_others() {
        let question = TieQuery {
            text: String::new(),
            key_columns: 1,
        };
        // d, e, and f tie with the last row of a page of four.
        let groups = question.groups(rows(&["a 9", "b 8", "c 8", "d 7", "e 7", "f 7", "g 6"]));
        let groups = groups.unwrap();
        let own = rows(&["a", "b", "c", "d"]);
        for (page, expected) in [
            (["a", "b", "c", "d"], true),
            (["a", "c", "b", "f"], true),
            (["b", "a", "c", "d"], false),
            (["a", "b", "b", "d"], false),
            (["a", "b", "d", "c"], false),
            (["a", "b", "c", "g"], false),
            (["a", "b", "c", "x"], false),
        ] {
            assert_eq!(groups.allows(&rows(&page), &own), expected, "{page:?}");
        }
        assert!(!groups.allows(&rows(&["a", "b", "c"]), &own));
        let warned = ComparableAnswer::Rows {
            columns: Vec::new(),
            rows: own.rows().to_vec(),
            warnings: 1,
        };
        assert!(!groups.allows(&warned, &own));
        // A page shorter than its limit must contain all rows.
        let few = rows(&["a", "b", "c", "d", "e", "f", "g"]);
        let shuffled = rows(&["a", "c", "b", "f", "e", "d", "g"]);
        assert!(groups.allows(&shuffled, &few));
        let more = rows(&["a", "c", "b", "f", "e", "d", "g", "h"]);
        assert!(!groups.allows(&more, &more));
    }
}
