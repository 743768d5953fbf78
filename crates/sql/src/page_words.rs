//! The words of a page of newest rows: a text without them is no SELECT of a feed, and is not looked at further.

use crate::contains_ignoring_case;
use crate::lexer::{Lexer, TokenKind};

/// Every page has these words.
pub const PAGE_WORDS: [&str; 2] = ["LIMIT", "ORDER"];

/// The word by which a page is recognised where its tables are not known.
pub const DESCENDING: &str = "DESC";

/// Functions over a feed's messages.
pub const AGGREGATES: [&str; 3] = ["COUNT", "MAX", "EXISTS"];

/// False: the text is no page.
#[must_use]
pub fn has_page_words(text: &[u8]) -> bool {
    PAGE_WORDS
        .iter()
        .all(|word| contains_ignoring_case(text, word))
}

/// True for a text that may have a row for each group, or select the newest row of each: `COUNT(...) ... GROUP BY`, `MAX(...) ... GROUP BY`,
/// `ROW_NUMBER()`, or rows without a newer one.
#[must_use]
pub fn has_group_words(text: &[u8]) -> bool {
    let has = |word| contains_ignoring_case(text, word);
    let excludes = || has("ORDER") && (has("EXISTS") || has("LEFT") && has("NULL"));
    has("GROUP") && (has("COUNT") || has("MAX")) || has("ROW_NUMBER") || excludes()
}

/// True for a text that may select rows by a list of values: `SELECT ... IN (1, ...`.
#[must_use]
pub fn has_value_list(text: &[u8]) -> bool {
    let mut tokens = Lexer::new(text);
    if !tokens.next().is_some_and(|token| token.is_word("SELECT")) {
        return false;
    }
    let mut opens = false;
    let mut follows_in = false;
    for token in tokens {
        let is_value = matches!(token.kind, TokenKind::Number | TokenKind::QuotedText);
        if opens && (is_value || token.is_punct(b'?')) {
            return true;
        }
        opens = follows_in && token.is_punct(b'(');
        follows_in = token.is_word("IN");
    }
    false
}

/// True for a text that begins as an aggregate of messages: `SELECT COUNT`, `SELECT MAX`, `SELECT EXISTS`, `SELECT 1 ... LIMIT`.
#[must_use]
pub fn begins_count(text: &[u8]) -> bool {
    let mut words = Lexer::new(text);
    let is_select = words.next().is_some_and(|token| token.is_word("SELECT"));
    let Some(second) = words.next().filter(|_| is_select) else {
        return false;
    };
    AGGREGATES.iter().any(|word| second.is_word(word))
        || second.text == b"1" && contains_ignoring_case(text, "LIMIT")
}
