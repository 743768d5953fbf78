//! Body of the fuzz target `body`: takes any bytes and fails by an assertion.

use super::{BodyMismatch, SqlSecurity, TimelineRoutine, compare};
use crate::TimelineDefinition;
use headwater_sql::contains_ignoring_case;

/// A text matches, or differs at a line that it has; a line put before it moves that line down by one. A matching text is one
/// procedure, of one definition, once.
///
/// The first byte selects: the remaining bytes are the text, or a matching procedure is changed by pieces: position (2 bytes),
/// bytes to replace, length, bytes.
pub fn shown(data: &[u8]) {
    let definition = TimelineDefinition::classic();
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    let [heads, newest, bounded] = definition.procedures_sql();
    let text = match kind % 4 {
        0 => rest.to_vec(),
        1 => splice_pieces(heads.as_bytes(), rest),
        2 => splice_pieces(newest.as_bytes(), rest),
        _ => splice_pieces(bounded.as_bytes(), rest),
    };
    let results = TimelineRoutine::ALL.map(|routine| compare(&definition, routine, &text));
    let fits = results.iter().filter(|one| one.is_ok()).count();
    assert!(fits <= 1, "one text is {fits} procedures");
    for (routine, result) in TimelineRoutine::ALL.into_iter().zip(results) {
        let shifted = compare(&definition, routine, &[b"\n", &text[..]].concat());
        match result {
            Ok(body) => {
                assert_eq!(shifted, Ok(body.clone()));
                assert!(
                    body.security == SqlSecurity::Definer
                        || contains_ignoring_case(&text, "INVOKER")
                );
                let twice = [&text[..], b"\n", &text].concat();
                assert!(compare(&definition, routine, &twice).is_err());
                let other = TimelineDefinition {
                    n: definition.n + 1,
                    ..TimelineDefinition::classic()
                };
                let differs = compare(&other, routine, &text).is_err();
                assert!(differs || routine == TimelineRoutine::Heads);
            }
            Err(mismatch) => {
                let lines = 1 + text.iter().filter(|&&byte| byte == b'\n').count();
                assert!((1..=lines).contains(&mismatch.line));
                assert_eq!(mismatch.procedure, routine.name(&definition));
                assert!(!mismatch.expected.is_empty() && !mismatch.found.is_empty());
                let line = mismatch.line + 1;
                assert_eq!(shifted, Err(BodyMismatch { line, ..mismatch }));
            }
        }
    }
}

/// Puts pieces into a text; a position beyond its end is its end.
fn splice_pieces(text: &[u8], mut pieces: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    while let [low, high, removed, len, rest @ ..] = pieces {
        let at = usize::from(u16::from_le_bytes([*low, *high])).min(text.len());
        let end = (at + usize::from(*removed)).min(text.len());
        let (piece, others) = rest.split_at(rest.len().min((*len).into()));
        text.splice(at..end, piece.iter().copied());
        pieces = others;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_holds_for_the_procedures_of_the_fixtures() {
        let definition = TimelineDefinition::classic();
        let script = include_str!("../../../../fixtures/sql/procedures.sql");
        let texts: Vec<&str> = script
            .split("//")
            .filter(|text| text.contains("CREATE PROCEDURE"))
            .collect();
        assert_eq!(texts.len(), 3);
        for text in texts {
            let known = |routine| compare(&definition, routine, text.as_bytes()).is_ok();
            assert!(TimelineRoutine::ALL.into_iter().any(known), "{text}");
            shown(&[b"\0", text.as_bytes()].concat());
        }
        for kind in 1..=3 {
            shown(&[kind]);
            // One more word, at the end of the first line.
            shown(&[&[kind, 90, 0, 0, 13][..], b" INVOKER x -- "].concat());
        }
    }

    /// Words of procedures, and what ends or hides some.
    const WORDS: &[&str] = &[
        ";",
        ",",
        "(",
        ")",
        "`",
        "'",
        "--",
        "-- ",
        "/*",
        "*/",
        "/*!",
        "\n",
        " ",
        "1",
        "0",
        "20",
        "NOT",
        "NULL",
        "DECLARE",
        "DEFAULT",
        "BEGIN",
        "END",
        "SQL SECURITY INVOKER",
        "SQL SECURITY DEFINER",
        "COMMENT 'x'",
        "user_id",
        "id",
        "message",
        "follower",
        "v_author",
        "v_end",
        "int unsigned",
        "bigint",
        "AS",
        "LIMIT",
        "DESC",
        "ENGINE=MEMORY",
        "CHARSET=utf8",
        "\u{e9}",
        "@a",
        ".",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn it_holds_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..200)) {
            shown(&data);
        }

        #[test]
        fn it_holds_for_procedures_that_are_nearly_right(
            kind in 1..=3_u8,
            pieces in prop::collection::vec((0..1200_u16, 0..12_u8, prop::sample::select(WORDS)), 0..4),
        ) {
            let mut data = vec![kind];
            for (at, gone, word) in pieces {
                data.extend(at.to_le_bytes());
                data.extend([gone, u8::try_from(word.len()).unwrap_or_default()]);
                data.extend(word.as_bytes());
            }
            shown(&data);
        }
    }
}
