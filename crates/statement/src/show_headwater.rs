//! Requests to Headwater itself, which no server knows: `SHOW HEADWATER ...`.

use std::ops::Range;

use headwater_sql::lexer::{Lexer, end_of_statement};

/// What is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowHeadwater {
    /// A table of Headwater's state, and a `LIKE` pattern for its first column.
    Table(HeadwaterTable, Option<String>),
    /// How this statement would be handled; its range in the text.
    Explanation(Range<usize>),
    /// Something that does not exist.
    Unknown,
}

/// The tables of Headwater's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadwaterTable {
    /// All counters.
    Status,
    /// Definitions and feeds, and whether each is served from memory.
    Feeds,
    /// Templates of statements, and how they were handled.
    Statements,
    /// Client sessions.
    Sessions,
    /// What memory holds, and its limits.
    Memory,
    /// Settings.
    Settings,
    /// The servers.
    Upstreams,
}

impl HeadwaterTable {
    /// All of them.
    pub const ALL: [HeadwaterTable; 7] = [
        HeadwaterTable::Status,
        HeadwaterTable::Feeds,
        HeadwaterTable::Statements,
        HeadwaterTable::Sessions,
        HeadwaterTable::Memory,
        HeadwaterTable::Settings,
        HeadwaterTable::Upstreams,
    ];

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HeadwaterTable::Status => "status",
            HeadwaterTable::Feeds => "feeds",
            HeadwaterTable::Statements => "statements",
            HeadwaterTable::Sessions => "sessions",
            HeadwaterTable::Memory => "memory",
            HeadwaterTable::Settings => "settings",
            HeadwaterTable::Upstreams => "upstreams",
        }
    }
}

impl ShowHeadwater {
    /// Parses a text. `None`: it is no request to Headwater.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<ShowHeadwater> {
        let mut lexer = Lexer::new(text);
        let mut word = |expected: &str| lexer.next().filter(|token| token.is_word(expected));
        word("SHOW")?;
        word("HEADWATER")?;
        Some(parse_request(text, lexer).unwrap_or(ShowHeadwater::Unknown))
    }
}

fn parse_request(text: &[u8], mut lexer: Lexer<'_>) -> Option<ShowHeadwater> {
    let request = lexer.next()?;
    if request.is_word("WHY") {
        lexer.next().filter(|token| token.is_word("FOR"))?;
        let statement = lexer.clone().next()?.at..text.len();
        return Some(ShowHeadwater::Explanation(statement));
    }
    let mut tables = HeadwaterTable::ALL.into_iter();
    let table = tables.find(|table| request.is_word(table.name()))?;
    let mut lookahead = lexer.clone();
    let like = match lookahead.next() {
        Some(token) if token.is_word("LIKE") => {
            let pattern = lookahead.next()?;
            let pattern = std::str::from_utf8(pattern.unquoted()?).ok()?.to_owned();
            lexer = lookahead;
            Some(pattern)
        }
        _ => None,
    };
    end_of_statement(lexer)?;
    Some(ShowHeadwater::Table(table, like))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parsed_as_requests() {
        let table =
            |table, like: Option<&str>| Some(ShowHeadwater::Table(table, like.map(str::to_owned)));
        for (text, expected) in [
            ("SHOW HEADWATER STATUS", table(HeadwaterTable::Status, None)),
            (
                " show\n headwater /* x */ feeds ; ",
                table(HeadwaterTable::Feeds, None),
            ),
            (
                "SHOW HEADWATER SETTINGS LIKE 'limits.%'",
                table(HeadwaterTable::Settings, Some("limits.%")),
            ),
            (
                "SHOW HEADWATER WHY FOR SELECT 1",
                Some(ShowHeadwater::Explanation(23..31)),
            ),
            ("SHOW HEADWATER WHY FOR", Some(ShowHeadwater::Unknown)),
            ("SHOW HEADWATER WHY SELECT 1", Some(ShowHeadwater::Unknown)),
            ("SHOW HEADWATER", Some(ShowHeadwater::Unknown)),
            ("SHOW HEADWATER TEA", Some(ShowHeadwater::Unknown)),
            (
                "SHOW HEADWATER STATUS; DROP TABLE t",
                Some(ShowHeadwater::Unknown),
            ),
            ("SHOW HEADWATER STATUS LIKE", Some(ShowHeadwater::Unknown)),
            ("SHOW STATUS", None),
            ("SHOW `HEADWATER` STATUS", None),
            ("SELECT 'SHOW HEADWATER STATUS'", None),
            ("", None),
        ] {
            assert_eq!(ShowHeadwater::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
