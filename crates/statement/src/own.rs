//! Questions to Headwater itself, which no server knows: `SHOW HEADWATER ...`.

use std::ops::Range;

use headwater_sql::lexer::{Lexer, end_of_statement};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// One of the tables that say how Headwater is, and a `LIKE` pattern for its first column.
    Table(OwnTable, Option<String>),
    /// What would become of this statement, which stands there in the text.
    WhyFor(Range<usize>),
    /// Something that there is not.
    Unknown,
}

/// Tables that say how Headwater is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTable {
    /// Everything that is counted.
    Status,
    /// Definitions and feeds, and whether each is answered from memory.
    Feeds,
    /// Templates of statements, and what became of them.
    Statements,
    /// Client sessions.
    Sessions,
    /// What memory holds, and its bounds.
    Memory,
    /// Settings.
    Settings,
    /// The servers.
    Upstreams,
}

impl OwnTable {
    /// Every one.
    pub const ALL: [OwnTable; 7] = [
        OwnTable::Status,
        OwnTable::Feeds,
        OwnTable::Statements,
        OwnTable::Sessions,
        OwnTable::Memory,
        OwnTable::Settings,
        OwnTable::Upstreams,
    ];

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OwnTable::Status => "status",
            OwnTable::Feeds => "feeds",
            OwnTable::Statements => "statements",
            OwnTable::Sessions => "sessions",
            OwnTable::Memory => "memory",
            OwnTable::Settings => "settings",
            OwnTable::Upstreams => "upstreams",
        }
    }
}

impl Own {
    /// Reads a text; `None`: it is no question to Headwater.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Own> {
        let mut lexer = Lexer::new(text);
        let mut word = |wanted: &str| lexer.next().filter(|token| token.is_word(wanted));
        word("SHOW")?;
        word("HEADWATER")?;
        Some(asked(text, lexer).unwrap_or(Own::Unknown))
    }
}

fn asked(text: &[u8], mut lexer: Lexer<'_>) -> Option<Own> {
    let what = lexer.next()?;
    if what.is_word("WHY") {
        lexer.next().filter(|token| token.is_word("FOR"))?;
        let statement = lexer.clone().next()?.at..text.len();
        return Some(Own::WhyFor(statement));
    }
    let mut tables = OwnTable::ALL.into_iter();
    let table = tables.find(|table| what.is_word(table.name()))?;
    let mut behind = lexer.clone();
    let like = match behind.next() {
        Some(token) if token.is_word("LIKE") => {
            let pattern = behind.next()?;
            let pattern = std::str::from_utf8(pattern.unquoted()?).ok()?.to_owned();
            lexer = behind;
            Some(pattern)
        }
        _ => None,
    };
    end_of_statement(lexer)?;
    Some(Own::Table(table, like))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_mean_what_they_say() {
        let table = |table, like: Option<&str>| Some(Own::Table(table, like.map(str::to_owned)));
        for (text, expected) in [
            ("SHOW HEADWATER STATUS", table(OwnTable::Status, None)),
            (
                " show\n headwater /* x */ feeds ; ",
                table(OwnTable::Feeds, None),
            ),
            (
                "SHOW HEADWATER SETTINGS LIKE 'limits.%'",
                table(OwnTable::Settings, Some("limits.%")),
            ),
            ("SHOW HEADWATER WHY FOR SELECT 1", Some(Own::WhyFor(23..31))),
            ("SHOW HEADWATER WHY FOR", Some(Own::Unknown)),
            ("SHOW HEADWATER WHY SELECT 1", Some(Own::Unknown)),
            ("SHOW HEADWATER", Some(Own::Unknown)),
            ("SHOW HEADWATER TEA", Some(Own::Unknown)),
            ("SHOW HEADWATER STATUS; DROP TABLE t", Some(Own::Unknown)),
            ("SHOW HEADWATER STATUS LIKE", Some(Own::Unknown)),
            ("SHOW STATUS", None),
            ("SHOW `HEADWATER` STATUS", None),
            ("SELECT 'SHOW HEADWATER STATUS'", None),
            ("", None),
        ] {
            assert_eq!(Own::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
