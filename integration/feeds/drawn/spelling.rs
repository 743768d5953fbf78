//! Spells one statement in many ways: white space and comments anywhere, the case of words, quotes around names.

use crate::kit::random::Random;

/// Marks around an expression without an alias in a statement's text: servers name its column by its spelling.
pub(super) const UNNAMED: [char; 2] = ['\u{ab}', '\u{bb}'];

/// A token of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Word(String),
    /// A quoted string, or a number.
    Value(String),
    Mark(String),
}

/// The text without the marks of unnamed expressions.
pub(super) fn plain(text: &str) -> String {
    text.replace(UNNAMED, "")
}

/// The text in a random spelling.
pub(super) fn spelled(text: &str, random: &mut Random) -> String {
    let pieces = pieces(&plain(text));
    let is_dense = random.one_in(4);
    let (low, quotes) = (random.one_in(2), random.below(3) * 3);
    let mut spelled = String::new();
    let mut before: Option<&Piece> = None;
    for (at, (gap, piece)) in pieces.iter().enumerate() {
        let next = pieces.get(at + 1).map(|(_, piece)| piece);
        let is_called = next == Some(&Piece::Mark("(".to_owned()));
        if let Some(before) = before {
            spelled.push_str(&separator(before, piece, *gap, is_dense, random));
        }
        match piece {
            Piece::Word(word) => spelled.push_str(&cased(word, is_called, low, quotes, random)),
            Piece::Value(text) => spelled.push_str(&quoted(text, random)),
            Piece::Mark(text) => spelled.push_str(text),
        }
        before = Some(piece);
    }
    spelled
}

/// The separator between two tokens.
fn separator(
    before: &Piece,
    piece: &Piece,
    gap: bool,
    is_dense: bool,
    random: &mut Random,
) -> String {
    const BLANKS: [&str; 10] = [
        "  ",
        "\n",
        "\t",
        " /* c */ ",
        "/**/",
        " -- it\n",
        " # that\n",
        "\r\n",
        "\n\n\t",
        "/*, ) ' */",
    ];
    let is_call = matches!((before, piece), (Piece::Word(_), Piece::Mark(mark)) if mark == "(");
    let is_dot = [before, piece]
        .iter()
        .any(|it| matches!(it, Piece::Mark(mark) if mark == "."));
    let are_strings = matches!((before, piece), (Piece::Value(_), Piece::Value(_)));
    if is_call && !gap || is_dot || are_strings {
        // A gap between a name and its parenthesis may change the meaning.
        let drawn = random.one_in(60).then(|| *random.pick(&BLANKS));
        return drawn.unwrap_or(if gap { " " } else { "" }).to_owned();
    }
    let is_needed = match (before, piece) {
        (Piece::Mark(first), Piece::Mark(second)) => touching(first, second),
        (Piece::Mark(_), _) | (_, Piece::Mark(_)) => false,
        _ => true,
    };
    if random.one_in(5) {
        return (*random.pick(&BLANKS)).to_owned();
    }
    if is_needed || gap && !is_dense {
        " "
    } else {
        ""
    }
    .to_owned()
}

/// True for operators that would have another meaning without a gap.
fn touching(first: &str, second: &str) -> bool {
    let is_operator = |mark: &str| mark.starts_with(|letter| "<>=!-+*/|&:".contains(letter));
    is_operator(first) && is_operator(second)
}

/// A word in a random case, in quotes if it is a name.
fn cased(word: &str, is_called: bool, low: bool, quotes: u64, random: &mut Random) -> String {
    if word.starts_with(['@', '`', '?']) {
        return word.to_owned();
    }
    if is_called || KEYWORDS.contains(&word) {
        return match (random.below(12), low) {
            (0, _) => mixed(word),
            (_, true) => word.to_lowercase(),
            (_, false) => word.to_uppercase(),
        };
    }
    match quotes > 0 && random.one_in(quotes) {
        true => format!("`{word}`"),
        false => word.to_owned(),
    }
}

/// A plain string, now and then in double quotes; any other value as it is.
fn quoted(value: &str, random: &mut Random) -> String {
    let inner = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    match inner.filter(|inner| !inner.contains(['\'', '"', '\\'])) {
        Some(inner) if random.one_in(6) => format!("\"{inner}\""),
        _ => value.to_owned(),
    }
}

fn mixed(word: &str) -> String {
    let letters = word.chars().enumerate().map(|(at, letter)| match at % 2 {
        0 => letter.to_ascii_lowercase(),
        _ => letter.to_ascii_uppercase(),
    });
    letters.collect()
}

/// Each token, and whether a gap precedes it.
fn pieces(text: &str) -> Vec<(bool, Piece)> {
    let letters: Vec<char> = text.chars().collect();
    let is_word = |letter: char| letter.is_alphanumeric() || "_$@".contains(letter);
    let mut pieces = Vec::new();
    let (mut at, mut gap) = (0, false);
    while at < letters.len() {
        let start = at;
        let letter = letters[at];
        if letter.is_whitespace() {
            (at, gap) = (at + 1, true);
            continue;
        }
        if "'\"`".contains(letter) {
            at = quoted_end(&letters, at);
        } else if is_word(letter) {
            while at < letters.len() && is_word(letters[at]) {
                at += 1;
            }
            let is_number = letter.is_ascii_digit();
            if is_number && letters.get(at) == Some(&'.') {
                at += 1;
                while at < letters.len() && is_word(letters[at]) {
                    at += 1;
                }
            }
            // For example x'41' or _latin1'a'.
            if letters.get(at) == Some(&'\'') {
                at = quoted_end(&letters, at);
            }
        } else {
            at += match letters.get(at + 1) {
                Some('=') if letter == '<' && letters.get(at + 2) == Some(&'>') => 3,
                Some(second) if "<>=!:|&".contains(letter) && "=>|&<".contains(*second) => 2,
                _ => 1,
            };
        }
        let piece: String = letters[start..at].iter().collect();
        let piece = if piece.contains(['\'', '"', '`']) || letter.is_ascii_digit() {
            Piece::Value(piece)
        } else if is_word(letter) || letter == '?' {
            Piece::Word(piece)
        } else {
            Piece::Mark(piece)
        };
        pieces.push((gap, piece));
        gap = false;
    }
    pieces
}

fn quoted_end(letters: &[char], start: usize) -> usize {
    let quote = letters[start];
    let mut at = start + 1;
    while at < letters.len() {
        match letters[at] {
            '\\' if quote != '`' => at += 1,
            letter if letter == quote && letters.get(at + 1) == Some(&quote) => at += 1,
            letter if letter == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    letters.len()
}

/// Words that are not names.
const KEYWORDS: [&str; 52] = [
    "SELECT",
    "FROM",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "LIKE",
    "BETWEEN",
    "EXISTS",
    "JOIN",
    "INNER",
    "LEFT",
    "OUTER",
    "ON",
    "AS",
    "ORDER",
    "BY",
    "DESC",
    "ASC",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "TRUE",
    "FALSE",
    "SQL_NO_CACHE",
    "HIGH_PRIORITY",
    "SQL_CALC_FOUND_ROWS",
    "STRAIGHT_JOIN",
    "FOR",
    "UPDATE",
    "LOCK",
    "SHARE",
    "MODE",
    "USING",
    "DIV",
    "MOD",
    "COLLATE",
    "BINARY",
    "CHAR",
    "ALL",
    "FETCH",
    "FIRST",
    "ROWS",
    "ONLY",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spelling_has_the_same_pieces() {
        let text = "SELECT m.id, \u{ab}IFNULL(m.a, 'x ''y')\u{bb}, -5, 1.50 AS n FROM t m WHERE m.a <= 3 AND b IN (1,2) LIMIT 3";
        let bare = "SELECT m.id, IFNULL(m.a, 'x ''y'), -5, 1.50 AS n FROM t m WHERE m.a <= 3 AND b IN (1,2) LIMIT 3";
        let words = |text: &str| {
            let pieces = pieces(text).into_iter().map(|(_, piece)| piece);
            pieces
                .map(|piece| format!("{piece:?}").to_lowercase())
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&plain(text)), words(bare));
        let mut random = Random(7);
        assert_ne!(spelled(text, &mut random), spelled(text, &mut random));
    }
}
