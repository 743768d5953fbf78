//! What holds for every text.

use proptest::prelude::*;

use crate::{StatementClass, StatementEffects, TimelineCall, classify};
use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};
use headwater_timeline::{DefinitionId, ProcedureForm, TimelineDefinition};

const BLANKS: &[&str] = &[
    " ",
    "\t",
    "\n",
    "\r\n",
    "\x0b",
    "\x0c",
    "/**/",
    "/* ; CALL x(1) */",
    "-- a\n",
    "#\n",
    "--\t\n",
];

fn blank() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(BLANKS), 0..4).prop_map(|parts| parts.concat())
}

/// A call as the parts between which there may be blanks, its meaning, and which parts have to be apart.
fn call() -> impl Strategy<Value = (Vec<String>, u64, Option<u64>, Option<String>)> {
    let database = prop::option::of("[a-c]{1,3}_x");
    (
        any::<u32>(),
        prop::option::of(any::<u32>()),
        database,
        0usize..8,
        any::<u64>(),
    )
        .prop_map(|(reader, bound, database, zeros, seed)| {
            let name = if bound.is_some() {
                "fetch_timeline_ids2"
            } else {
                "fetch_timeline_ids"
            };
            let mut parts = vec![cased("CALL", seed)];
            for (at, name) in database
                .iter()
                .map(String::as_str)
                .chain([name])
                .enumerate()
            {
                let last = at == usize::from(database.is_some());
                let name = if last {
                    cased(name, seed >> 8)
                } else {
                    name.to_string()
                };
                parts.push(if seed & (1 << at) == 0 {
                    name
                } else {
                    format!("`{name}`")
                });
                if !last {
                    parts.push(".".into());
                }
            }
            parts.push("(".into());
            parts.push(format!("{}{reader}", "0".repeat(zeros)));
            if let Some(bound) = bound {
                parts.push(",".into());
                parts.push(bound.to_string());
            }
            parts.push(")".into());
            (parts, reader.into(), bound.map(u64::from), database)
        })
}

fn cased(word: &str, seed: u64) -> String {
    let upper = |at: usize| seed.rotate_right(u32::try_from(at).unwrap() * 7) & 1 == 1;
    word.chars()
        .enumerate()
        .map(|(at, c)| {
            if upper(at) {
                c.to_ascii_uppercase()
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

/// The parts with blanks between them; a blank always follows CALL.
fn dressed(parts: &[String], blanks: &[String]) -> String {
    let mut text = blanks[0].clone();
    for (at, part) in parts.iter().enumerate() {
        text.push_str(part);
        text.push_str(&blanks[at + 1]);
        if at == 0 {
            text.push(' ');
        }
    }
    text
}

proptest! {
    #[test]
    fn any_bytes_have_a_class(text in prop::collection::vec(any::<u8>(), 0..200)) {
        classify(&text, &[TimelineDefinition::classic()], false);
    }

    #[test]
    fn any_mixture_of_words_has_a_class(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        classify(words.join(" ").as_bytes(), &[TimelineDefinition::classic()], false);
        classify(words.concat().as_bytes(), &[TimelineDefinition::classic()], false);
    }

    #[test]
    fn tokens_are_in_order_and_only_blanks_are_between(text in prop::collection::vec(prop::sample::select(b"a1$_ \n-#/*!'\"`\\;.@\x00\xe9".as_slice()), 0..60)) {
        let mut end = 0;
        for token in Lexer::new(&text) {
            prop_assert!(token.at >= end && !token.text.is_empty());
            prop_assert_eq!(&text[token.at..token.at + token.text.len()], token.text);
            // What is left out is blank by itself.
            prop_assert_eq!(Lexer::new(&text[end..token.at]).next(), None);
            end = token.at + token.text.len();
            if token.kind == TokenKind::Opaque {
                prop_assert_eq!(end, text.len());
            }
        }
    }

    #[test]
    fn dress_does_not_change_a_call((parts, reader, bound, database) in call(), blanks in prop::collection::vec(blank(), 12), end in prop::sample::select(&["", ";", "; \n", " ;\t"][..])) {
        let text = dressed(&parts, &blanks) + end;
        let form = if bound.is_some() { ProcedureForm::Bounded } else { ProcedureForm::Newest };
        let expected = TimelineCall { definition: DefinitionId(0), form, database, reader, bound };
        prop_assert_eq!(classify(text.as_bytes(), &[TimelineDefinition::classic()], false), StatementClass::Call(expected), "{}", text);
    }

    #[test]
    fn a_comment_that_the_server_reads_makes_it_no_call((parts, ..) in call(), blanks in prop::collection::vec(blank(), 12), sign in prop::sample::select(&["!", "+", "M!"][..])) {
        let text = dressed(&parts, &blanks);
        if text.contains("/*") {
            let text = text.replacen("/*", &format!("/*{sign}"), 1);
            // Within another comment it is none.
            let commented = text.find("/*").zip(text.find(['#', '-'])).is_some_and(|(comment, line)| line < comment);
            if !commented {
                prop_assert_eq!(classify(text.as_bytes(), &[TimelineDefinition::classic()], false), StatementClass::Other(StatementEffects::ALL), "{}", text);
            }
        }
    }

    #[test]
    fn one_more_byte_makes_it_no_other_call((parts, reader, bound, database) in call(), byte in any::<u8>(), at in any::<prop::sample::Index>()) {
        let blanks = vec![String::new(); 12];
        let mut text = dressed(&parts, &blanks).into_bytes();
        let place = at.index(text.len() + 1);
        text.insert(place, byte);
        if let StatementClass::Call(call) = classify(&text, &[TimelineDefinition::classic()], false) {
            prop_assert!(byte < 0x80 && byte != 0);
            // One more character in a quoted name of a database means another database, and nothing else.
            if call.database == database {
                let same = call.reader == reader && call.bound == bound;
                prop_assert!(same || byte.is_ascii_digit(), "{}", String::from_utf8_lossy(&text));
                prop_assert!(byte != b';' || place + 1 == text.len());
                prop_assert!(!b"+-*/'\"!=@(),".contains(&byte), "{}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn a_missing_byte_makes_it_no_call_beyond_digits_and_names((parts, reader, bound, _) in call(), at in any::<prop::sample::Index>()) {
        let mut text = dressed(&parts, &vec![String::new(); 12]).into_bytes();
        let byte = text.remove(at.index(text.len()));
        if let StatementClass::Call(call) = classify(&text, &[TimelineDefinition::classic()], false) {
            let named = byte.is_ascii_alphanumeric() || b" _".contains(&byte);
            prop_assert!(named, "{}", String::from_utf8_lossy(&text));
            if !byte.is_ascii_digit() {
                prop_assert_eq!((call.reader, call.bound), (reader, bound));
            }
        }
    }

    #[test]
    fn two_statements_may_do_what_either_may(first in prop::sample::select(WORDS), second in prop::sample::select(WORDS), verb in prop::sample::select(WORDS), name in prop::sample::select(WORDS)) {
        let (first, second) = (format!("{verb} {first}"), format!("{second} {name}"));
        let text = format!("{first};{second}");
        let both = StatementEffects::of(text.as_bytes(), &[], false);
        // A comment may swallow the second, or be it; or swallow what parts them.
        let apart = |token: &SqlToken<'_>| token.at > first.len() || token.kind == TokenKind::Opaque;
        let parted = |token: &SqlToken<'_>| token.at == first.len() || token.kind == TokenKind::Opaque;
        let tokens: Vec<_> = Lexer::new(text.as_bytes()).collect();
        let apart = tokens.iter().any(apart) && tokens.iter().any(parted);
        for one in [first, second].into_iter().filter(|_| apart) {
            let one = StatementEffects::of(one.as_bytes(), &[], false);
            // Statements that are not understood may do anything, and FOO; BAR is as little understood as FOO.
            if one != StatementEffects::ALL {
                prop_assert!(!one.next_transaction || both.next_transaction);
                prop_assert!(!one.temp_tables || both.temp_tables);
                prop_assert!(!one.stored_code || both.stored_code);
                prop_assert!(!one.settings || both.settings);
                prop_assert!(!one.diagnostics || both.diagnostics);
                prop_assert!(!one.definition || both.definition);
                prop_assert!(!one.result_table || both.result_table);
            }
        }
    }
}

const WORDS: &[&str] = &[
    "CALL",
    "SELECT",
    "SET",
    "FROM",
    "message",
    "fetch_timeline_tt",
    "fetch_timeline_ids",
    "JOIN",
    "USING",
    "ON",
    "ORDER",
    "BY",
    "DESC",
    "LIMIT",
    "WHERE",
    "UNION",
    "WITH",
    "AS",
    "(",
    ")",
    ",",
    ".",
    "=",
    ";",
    "*",
    "id",
    "message.id",
    "20",
    "0",
    "1e3",
    "'a'",
    "\"a\"",
    "`a`",
    "`",
    "'",
    "--",
    "-- ",
    "#",
    "\n",
    "/*",
    "*/",
    "/*!",
    "@a",
    "@@b",
    "TRANSACTION",
    "IN",
    "NOT",
    "NULL",
    "CASE",
    "END",
    "BETWEEN",
    "INTERVAL",
    "\\",
    "$$",
    "\u{e9}",
];

proptest! {
    #[test]
    fn the_fuzz_target_holds_for_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        crate::fuzzing::text(&bytes);
    }

    #[test]
    fn the_fuzz_target_holds_for_texts_that_are_nearly_right(
        line in prop::sample::select(include_str!("../../../../fixtures/statements/tails.txt").lines()
            .chain(include_str!("../../../../fixtures/statements/calls.txt").lines()).collect::<Vec<_>>()),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = line.split_once(" | ").map_or(line, |(_, text)| text).as_bytes().to_vec();
        crate::fuzzing::text(&text);
        if !text.is_empty() {
            let at = at.index(text.len());
            text[at] = byte;
            crate::fuzzing::text(&text);
        }
    }
}
