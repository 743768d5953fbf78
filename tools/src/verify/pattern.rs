//! SELECTs of feeds with a reader's values filled in: by the feed's definition, or as observed from an app.

use std::fmt::Write as _;

use headwater_feed::FeedDefinition;
use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};
use headwater_sql::{push_list, quoted};

/// Rows of a page if a statement leaves that open.
const PAGE: u32 = 20;
/// At or above every id.
const EVERY_ID: u64 = 9_223_372_036_854_775_807;

/// A statement with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatementPattern(Vec<PatternPiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    Text(String),
    Reader,
    /// The ids of the reader's authors, separated by commas.
    Authors,
}

impl StatementPattern {
    /// The statement for a reader with these authors. `None`: it needs a list of authors, and there are none.
    pub(super) fn statement_for(&self, reader: i128, authors: &[i128]) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                PatternPiece::Text(piece_text) => text.push_str(piece_text),
                PatternPiece::Reader => {
                    let _ = write!(text, "{reader}");
                }
                PatternPiece::Authors if authors.is_empty() => return None,
                PatternPiece::Authors => push_list(&mut text, authors),
            }
        }
        Some(text)
    }

    pub(super) fn lists_authors(&self) -> bool {
        self.0.contains(&PatternPiece::Authors)
    }

    pub(super) fn shown(&self) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            PatternPiece::Text(text) => text.as_str(),
            PatternPiece::Reader => "READER",
            PatternPiece::Authors => "AUTHORS",
        });
        pieces.collect()
    }
}

/// The statements that read a feed by its definition: with a list of authors, and, if it has a follow table, with a join; and those that count
/// its messages.
pub(super) fn canonical_patterns(feed: &FeedDefinition) -> Vec<StatementPattern> {
    let message = &feed.message;
    let column = |name: &str| format!("m.{}", quoted(name));
    let order: Vec<String> = (feed.key().into_iter())
        .chain([message.id.as_str()])
        .map(|name| format!("{} DESC", column(name)))
        .collect();
    let end = format!(" ORDER BY {} LIMIT {PAGE}", order.join(", "));
    let author = column(&message.author);
    let from = format!("FROM {} AS m", quoted(&message.table));
    let join = feed.follow.as_ref().map(|follow| {
        let (table, followed) = (quoted(&follow.table), quoted(&follow.author));
        let reader = quoted(&follow.reader);
        format!("{from} JOIN {table} AS f ON f.{followed} = {author} WHERE f.{reader} = ")
    });
    let mut patterns = Vec::new();
    for (shown, end) in [("m.*", &*end), ("COUNT(*)", "")] {
        patterns.push(StatementPattern(vec![
            PatternPiece::Text(format!("SELECT {shown} {from} WHERE {author} IN (")),
            PatternPiece::Authors,
            PatternPiece::Text(format!("){end}")),
        ]));
        if let Some(join) = &join {
            patterns.push(StatementPattern(vec![
                PatternPiece::Text(format!("SELECT {shown} {join}")),
                PatternPiece::Reader,
                PatternPiece::Text(end.to_owned()),
            ]));
        }
    }
    patterns
}

/// The pattern of a statement that was displayed without its values (`?`, and `(...)` for a list).
///
/// # Errors
/// Why only the app knows its values.
pub(super) fn pattern_of_shown(
    shown: &str,
    feed: &FeedDefinition,
) -> Result<StatementPattern, &'static str> {
    let tokens: Vec<SqlToken<'_>> = Lexer::new(shown.as_bytes()).collect();
    let mut writer = PatternWriter {
        shown,
        feed,
        tokens: &tokens,
        pieces: Vec::new(),
        end: 0,
    };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.kind == TokenKind::Opaque {
            return Err("it holds what is not read alike by all servers");
        }
        if token.is_punct(b'?') {
            let piece = writer.value(at).ok_or("its values are the app's own")?;
            writer.put(token.at, piece, token.at + 1);
        } else if writer.is_gap(at) {
            let in_list = at > 0 && tokens.get(at - 1).is_some_and(|own| own.is_punct(b'('));
            if !in_list {
                return Err("it is too long to be shown whole");
            }
            let piece = writer.list(at).ok_or("its values are the app's own")?;
            writer.put(token.at, piece, token.at + 3);
            at += 2;
        }
        at += 1;
    }
    let rest = shown.get(writer.end..).unwrap_or_default();
    writer.pieces.push(PatternPiece::Text(rest.to_owned()));
    Ok(StatementPattern(writer.pieces))
}

struct PatternWriter<'a> {
    shown: &'a str,
    feed: &'a FeedDefinition,
    tokens: &'a [SqlToken<'a>],
    pieces: Vec<PatternPiece>,
    /// Text up to here was written.
    end: usize,
}

impl PatternWriter<'_> {
    fn put(&mut self, from: usize, piece: PatternPiece, to: usize) {
        let before = self.shown.get(self.end..from).unwrap_or_default();
        self.pieces.push(PatternPiece::Text(before.to_owned()));
        self.pieces.push(piece);
        self.end = to;
    }

    fn token(&self, at: usize, before: usize) -> Option<&SqlToken<'_>> {
        self.tokens.get(at.checked_sub(before)?)
    }

    fn is(&self, at: usize, before: usize, byte: u8) -> bool {
        self.token(at, before)
            .is_some_and(|token| token.is_punct(byte))
    }

    fn is_word(&self, at: usize, before: usize, word: &str) -> bool {
        self.token(at, before)
            .is_some_and(|token| token.is_word(word))
    }

    /// True at three adjacent dots.
    fn is_gap(&self, at: usize) -> bool {
        let first = self.tokens.get(at).map(|token| token.at);
        (0..3).all(|offset| {
            let token = self.tokens.get(at + offset);
            token.is_some_and(|dot| {
                dot.is_punct(b'.') && Some(dot.at) == first.map(|first| first + offset)
            })
        })
    }

    /// The column whose name stands this many tokens earlier.
    fn column(&self, at: usize, before: usize) -> Option<String> {
        self.token(at, before)?.name()
    }

    /// The value for a literal's placeholder.
    fn value(&self, at: usize) -> Option<PatternPiece> {
        let text = |text: String| Some(PatternPiece::Text(text));
        if self.is_word(at, 1, "LIMIT") {
            // LIMIT offset, rows
            let next = self.tokens.get(at + 1);
            return match next.is_some_and(|token| token.is_punct(b',')) {
                true => text("0".to_owned()),
                false => text(PAGE.to_string()),
            };
        }
        if self.is_word(at, 1, "OFFSET") {
            return text("0".to_owned());
        }
        if self.is(at, 1, b',') && self.is(at, 2, b'?') && self.is_word(at, 3, "LIMIT") {
            return text(PAGE.to_string());
        }
        let message = &self.feed.message;
        let same = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
        // Unread messages: all.
        if self.is(at, 1, b'>') && same(&self.column(at, 2)?, &message.id) {
            return text("0".to_owned());
        }
        let below = match (self.is(at, 1, b'='), self.is(at, 2, b'<')) {
            (true, true) => self.column(at, 3),
            (true, false) => {
                let column = self.column(at, 2)?;
                let follow = self.feed.follow.as_ref();
                let reader = follow.is_some_and(|follow| same(&column, &follow.reader));
                return (reader || same(&column, &message.author)).then_some(PatternPiece::Reader);
            }
            (false, _) if self.is(at, 1, b'<') => self.column(at, 2),
            (false, _) => None,
        }?;
        match same(&below, &message.id) {
            true => text(EVERY_ID.to_string()),
            false => None,
        }
    }

    /// The value for a list's placeholder; its parenthesis stands right before.
    fn list(&self, at: usize) -> Option<PatternPiece> {
        let column = match (self.is_word(at, 2, "IN"), self.is_word(at, 3, "NOT")) {
            (true, false) => self.column(at, 3)?,
            _ => return None,
        };
        let author = &self.feed.message.author;
        column
            .eq_ignore_ascii_case(author)
            .then_some(PatternPiece::Authors)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use headwater_feed::normalization::normalized_text;

    const HOME: &str = r#"
        name = "home"
        [message]
        table = "statuses"
        author = "profile_id"
        [follow]
        table = "followers"
        reader = "profile_id"
        author = "following_id"
    "#;

    fn home() -> FeedDefinition {
        toml::from_str(HOME).unwrap()
    }

    fn of(text: &str) -> Result<String, &'static str> {
        let pattern = pattern_of_shown(&normalized_text(text.as_bytes()), &home())?;
        Ok(pattern.statement_for(7, &[2, 3]).unwrap())
    }

    #[test]
    fn a_feed_is_read_by_a_list_and_by_a_join() {
        let texts: Vec<String> = canonical_patterns(&home())
            .iter()
            .map(|pattern| pattern.statement_for(7, &[2, 3]).unwrap())
            .collect();
        assert_eq!(
            texts,
            [
                "SELECT m.* FROM `statuses` AS m WHERE m.`profile_id` IN (2,3) ORDER BY m.`id` DESC LIMIT 20",
                "SELECT m.* FROM `statuses` AS m JOIN `followers` AS f ON f.`following_id` = m.`profile_id` WHERE f.`profile_id` = 7 \
                 ORDER BY m.`id` DESC LIMIT 20",
                "SELECT COUNT(*) FROM `statuses` AS m WHERE m.`profile_id` IN (2,3)",
                "SELECT COUNT(*) FROM `statuses` AS m JOIN `followers` AS f ON f.`following_id` = m.`profile_id` WHERE f.`profile_id` = 7",
            ]
        );
        let mut by_time = home();
        by_time.message.order = vec!["created_at".into(), "id".into()];
        by_time.follow = None;
        let [list, _] = &canonical_patterns(&by_time)[..] else {
            unreachable!("no follows")
        };
        let end = "ORDER BY m.`created_at` DESC, m.`id` DESC LIMIT 20";
        assert!(list.statement_for(7, &[2]).unwrap().ends_with(end));
        assert_eq!(list.statement_for(7, &[]), None);
        assert!(list.lists_authors() && list.shown().contains("IN (AUTHORS)"));
    }

    #[test]
    fn an_apps_statement_gets_a_readers_values() {
        for (text, expected) in [
            (
                "SELECT s.id FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 ORDER BY s.id DESC LIMIT 5",
                "SELECT s.id FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 7 ORDER BY s.id DESC LIMIT 20",
            ),
            (
                "SELECT id FROM statuses WHERE (`profile_id` IN (4, 5, 6) OR profile_id = 1) AND deleted_at IS NULL ORDER BY id DESC LIMIT 0, 5",
                "SELECT id FROM statuses WHERE (`profile_id` IN (2,3) OR profile_id = 7) AND deleted_at IS NULL ORDER BY id DESC LIMIT 0, 20",
            ),
            (
                "SELECT id FROM statuses WHERE profile_id IN (4) AND id < 99 AND id <= 98 ORDER BY id DESC LIMIT 5 OFFSET 10",
                "SELECT id FROM statuses WHERE profile_id IN (2,3) AND id < 9223372036854775807 AND id <= 9223372036854775807 ORDER BY id DESC LIMIT 20 OFFSET 0",
            ),
            (
                "SELECT COUNT(*) AS n FROM statuses WHERE profile_id IN (4) AND id > 99",
                "SELECT COUNT(*) AS n FROM statuses WHERE profile_id IN (2,3) AND id > 0",
            ),
        ] {
            assert_eq!(of(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn values_that_only_the_app_knows_are_not_guessed() {
        for text in [
            "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND kind = 'photo' ORDER BY id DESC LIMIT 5",
            "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND kind IN ('photo', 'text') ORDER BY id DESC LIMIT 5",
            "SELECT id FROM statuses WHERE profile_id NOT IN (1, 2) ORDER BY id DESC LIMIT 5",
            "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND created_at < '2026-01-01' ORDER BY id DESC LIMIT 5",
            "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND likes > 5 ORDER BY id DESC LIMIT 5",
            "SELECT s.id FROM statuses s JOIN followers f ON f.following_id = 5 ORDER BY s.id DESC LIMIT 5",
        ] {
            assert_eq!(of(text), Err("its values are the app's own"), "{text}");
        }
        let long =
            "SELECT id, a ... FROM statuses WHERE profile_id IN (...) ORDER BY id DESC LIMIT ?";
        assert!(pattern_of_shown(long, &home()).is_err());
    }
}
