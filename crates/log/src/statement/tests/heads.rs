//! What the beginning of a statement proves, if the remainder is missing or unreadable.

use proptest::prelude::*;

use super::*;

fn judged(
    text: &[u8],
    whole: bool,
    schema: &str,
    selects: CreateSelectEffect,
) -> LoggedStatementClass {
    let text = StatementText {
        bytes: text,
        is_complete: whole,
        create_select: selects,
    };
    LoggedStatementClass::classify(text, schema.as_bytes(), &routes())
}

fn is_harmless(judged: LoggedStatementClass) -> bool {
    matches!(
        judged,
        LoggedStatementClass::Harmless | LoggedStatementClass::Redefines
    )
}

/// Beginnings that name all that the statement can be about, whatever follows; `elsewhere` is the default database.
const PROVED: &[&str] = &[
    "CREATE TABLE other.t (a int) COMMENT 'long",
    "CREATE TABLE t (a int) COMMENT 'long",
    "CREATE TABLE t /* long",
    "CREATE TABLE other.t /* long",
    "CREATE TABLE other. ",
    "CREATE TABLE IF NOT EXISTS `other` . `t` (a",
    "CREATE OR REPLACE TABLE other.message (a int, ",
    "CREATE TEMPORARY TABLE tl.message (a int, ",
    "CREATE TABLE message (a int, ",
    "CREATE OR REPLACE SEQUENCE other.s /* long",
    "SET STATEMENT max_statement_time=1 FOR CREATE TABLE other.t (a",
    "TRUNCATE TABLE other.t /* long",
    "TRUNCATE t /* long",
    "ALTER TABLE other.t COMMENT 'long",
    "ALTER TABLE t ADD a int COMMENT 'long",
    "ALTER TABLE t DROP PARTITION p1, p2",
    "ALTER SEQUENCE other.s /* long",
    "CREATE INDEX i ON other.t (a) COMMENT 'long",
    "CREATE INDEX i ON t (a) COMMENT 'long",
    "DROP INDEX i ON other.t /* long",
    "DROP DATABASE other /* long",
    "CREATE OR REPLACE DATABASE other COMMENT 'long",
];

/// Beginnings after which a table of the timeline may be named, or that name one.
const OPEN: &[&str] = &[
    "CREATE TABLE ",
    "CREATE TABLE t",
    "CREATE TABLE tl /* long",
    "CREATE TABLE tl. /* long",
    "CREATE TABLE tl.message (a",
    "CREATE TABLE `tl",
    "CREATE TABLE `tl`",
    "TRUNCATE TABLE tl /* long",
    "TRUNCATE TABLE tl.message /* long",
    "ALTER TABLE t /* long",
    "ALTER TABLE other.t ALGORITHM=INPLACE, ",
    "ALTER TABLE other.t EXCHANGE PARTITION p WITH ",
    "ALTER TABLE other.t CONVERT TABLE ",
    "ALTER TABLE tl.message COMMENT 'long",
    "CREATE INDEX i ",
    "CREATE INDEX i ON tl /* long",
    "CREATE INDEX i ON tl.message (a) COMMENT 'long",
    "DROP TABLE other.a, ",
    "RENAME TABLE other.a TO other.b, ",
    "REPAIR TABLE other.a, ",
    "DROP DATABASE tl /* long",
    "SET STATEMENT a=1, ",
    "INSERT INTO other.t VALUES (",
    "CREATE /* long",
    "CREATE -",
    "CREATE /",
];

#[test]
fn a_statement_in_another_database_is_harmless_as_far_as_its_head_proves_it() {
    for text in PROVED {
        let judged = judged(
            text.as_bytes(),
            false,
            "elsewhere",
            CreateSelectEffect::Never,
        );
        assert!(is_harmless(judged), "{text}: {judged:?}");
    }
    for text in OPEN {
        let judged = judged(
            text.as_bytes(),
            false,
            "elsewhere",
            CreateSelectEffect::Never,
        );
        assert!(!is_harmless(judged), "{text}: {judged:?}");
    }
}

#[test]
fn what_is_made_without_a_database_is_the_timelines_own_where_it_ran() {
    for text in [
        "CREATE TABLE message (a",
        "TRUNCATE message /* ",
        "ALTER TABLE message ADD a",
    ] {
        assert!(is_harmless(judged(
            text.as_bytes(),
            false,
            "elsewhere",
            CreateSelectEffect::Never
        )));
        assert!(
            !is_harmless(judged(
                text.as_bytes(),
                false,
                "tl",
                CreateSelectEffect::Never
            )),
            "{text}"
        );
    }
}

/// MariaDB executes CREATE TABLE ... SELECT of a function that writes, and logs it as such.
#[test]
fn a_table_that_a_query_may_fill_is_not_proved_by_its_name() {
    for (text, selects, harmless) in [
        (
            "CREATE TABLE other.t COMMENT 'long",
            CreateSelectEffect::Possible,
            false,
        ),
        (
            "CREATE TABLE other.t COMMENT 'long",
            CreateSelectEffect::Temporary,
            true,
        ),
        (
            "CREATE TEMPORARY TABLE other.t COMMENT 'long",
            CreateSelectEffect::Temporary,
            false,
        ),
        (
            "CREATE TEMPORARY TABLE other.t COMMENT 'long",
            CreateSelectEffect::Never,
            true,
        ),
    ] {
        let judged = judged(text.as_bytes(), false, "elsewhere", selects);
        assert_eq!(is_harmless(judged), harmless, "{text} {selects:?}");
    }
}

#[test]
fn what_cannot_be_read_behind_the_head_counts_as_little_as_what_is_cut_off() {
    for (text, harmless) in [
        ("CREATE TABLE other.t (a int) \0 garbage", true),
        ("ALTER TABLE other.t COMMENT $a$ message $a$", true),
        ("ALTER TABLE other.t $a$ message $a$", false),
        ("TRUNCATE tl \0 .message", false),
    ] {
        let judged = judged(
            text.as_bytes(),
            true,
            "elsewhere",
            CreateSelectEffect::Never,
        );
        assert_eq!(is_harmless(judged), harmless, "{text}");
    }
}

#[test]
fn padding_does_not_make_a_statement_unreadable() {
    let long = "x' \" ` \\ [ \u{e9} ".repeat(MAX_STATEMENT_BYTES / 8);
    for text in [
        format!(
            "CREATE TABLE other.t (a int) COMMENT '{}'",
            "x".repeat(2 * MAX_STATEMENT_BYTES)
        ),
        format!("CREATE TABLE /* {long} */ other.t (a int)"),
        format!(
            "/* {long} */ ALTER /* {long} */ TABLE `other`/**/./*{long}*/`t` /*{long}*/ ADD a int /* {long}"
        ),
        format!("# {long}\nTRUNCATE -- {long}\n other.t"),
        format!(
            "DROP {} DATABASE other",
            " \t\n".repeat(MAX_STATEMENT_BYTES)
        ),
        format!("RENAME TABLE other.a TO /* {long} */ other.b"),
    ] {
        let judged = judged(
            text.as_bytes(),
            true,
            "elsewhere",
            CreateSelectEffect::Never,
        );
        assert!(
            is_harmless(judged),
            "{judged:?}: {}",
            text.get(..40).unwrap()
        );
    }
    for text in [
        format!("TRUNCATE /* {long} */ tl /* {long} */ . /**/ message"),
        format!("RENAME TABLE other.a TO /* {long} */ other.b, tl.message TO other.c"),
    ] {
        let judged = judged(
            text.as_bytes(),
            true,
            "elsewhere",
            CreateSelectEffect::Never,
        );
        assert_eq!(judged, LoggedStatementClass::Schema);
    }
}

/// A part of a statement, spelled in some way.
fn words() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let name = prop::sample::select(vec![
        "tl",
        "message",
        "`message`",
        "tl.message",
        "`tl` . `message`",
        "other.t",
        "`other`.message",
        "t",
        ".message",
        "tl/**/.message",
        "\"message\"",
        "[message]",
        "`a``b`",
        "message.t",
        "tl.t",
        "\u{e9}",
        "`tl\u{e9}`.message",
    ]);
    let begin = prop::sample::select(vec![
        "CREATE TABLE",
        "CREATE OR REPLACE TABLE",
        "CREATE TEMPORARY TABLE",
        "CREATE TABLE IF NOT EXISTS",
        "TRUNCATE TABLE",
        "TRUNCATE",
        "ALTER TABLE",
        "ALTER ONLINE TABLE IF EXISTS",
        "DROP TABLE",
        "DROP DATABASE",
        "DROP SCHEMA IF EXISTS",
        "CREATE OR REPLACE DATABASE",
        "RENAME TABLE",
        "REPAIR TABLE",
        "CREATE INDEX i ON",
        "DROP INDEX i ON",
        "CREATE SEQUENCE",
        "DROP SEQUENCE",
        "ALTER SEQUENCE IF EXISTS",
        "SET STATEMENT max_statement_time=1 FOR ALTER TABLE",
        "/*!40000 ALTER TABLE",
        "/* x */ CREATE /*M! OR REPLACE */ TABLE",
        "CREATE VIEW",
        "GRANT SELECT ON",
        "FLUSH",
        "SAVEPOINT",
        "CREATE DEFINER = a@b PROCEDURE",
    ]);
    let behind = prop::sample::select(vec![
        "",
        ",",
        "TO",
        "(a int)",
        "COMMENT 'x'",
        "COMMENT '\\', '",
        "ADD a int",
        "/* x */",
        "-- x\n",
        "*/",
        "RENAME TO",
        "LIKE",
        "SELECT 1",
        "AS VALUES (1)",
        "EXCHANGE PARTITION p WITH TABLE",
        "CONVERT TABLE",
        "ALGORITHM=COPY,",
        "WAIT 1",
        ";",
        "COMMENT \"",
        "\0",
        "[",
        "$a$",
        "COMMENT '\u{95}\\' , ",
        "# y\n",
        "DROP a,",
        "/*!99999",
        "--\u{1}",
    ]);
    let pair = (behind, name.clone());
    (begin, name, prop::collection::vec(pair, 0..5)).prop_map(|(begin, name, pairs)| {
        let mut words = vec![begin.as_bytes().to_vec(), name.as_bytes().to_vec()];
        for (behind, name) in pairs {
            words.extend([behind.as_bytes().to_vec(), name.as_bytes().to_vec()]);
        }
        words
    })
}

/// How much a classification invalidates.
fn strictness(judged: LoggedStatementClass) -> u8 {
    match judged {
        LoggedStatementClass::Harmless => 0,
        LoggedStatementClass::Redefines => 1,
        _ => 2,
    }
}

/// The same for what is certain of a whole text, in any reading mode of a server.
fn known(text: &[u8], schema: &str, selects: CreateSelectEffect) -> u8 {
    let routes = routes();
    let names = RoutedTableNames {
        routes: &routes,
        schema: schema.as_bytes(),
    };
    let worst = ReadingMode::applicable_to(text).filter_map(|reading| {
        let read = meaning(
            LoggedStatementLexer::new(text, true, reading),
            &names,
            selects,
        )?;
        Some(match read {
            StatementMeaning::Tables | StatementMeaning::Rows => 2,
            StatementMeaning::Redefines
            | StatementMeaning::Unreadable(UncertaintyScope::NewNames) => 1,
            StatementMeaning::Harmless | StatementMeaning::Unreadable(_) => 0,
        })
    });
    worst.max().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// The missing part can only make it worse, except for new names in ALTER TABLE, if a table of that name was gone before.
    #[test]
    fn a_text_that_is_cut_is_judged_no_less_strictly_than_the_whole(
        words in words(),
        blank in prop::sample::select(vec![&b" "[..], b"\n", b"\xa0", b"/**/"]),
        from in 0.0_f64..1.0,
        in_timeline: bool,
        selects in prop::sample::select(vec![CreateSelectEffect::Never, CreateSelectEffect::Temporary, CreateSelectEffect::Possible]),
    ) {
        let text = words.join(blank);
        let schema = if in_timeline { "tl" } else { "elsewhere" };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
        let at = (from * text.len() as f64) as usize;
        let cut = judged(&text[..at], false, schema, selects);
        let known = known(&text, schema, selects);
        let alters = text.windows(5).any(|part| part == b"ALTER");
        let least = if alters { known.min(1) } else { known };
        prop_assert!(
            strictness(cut) >= least,
            "{} is {cut:?}, and {} comes to {known}", text[..at].escape_ascii(), text.escape_ascii(),
        );
    }
}

proptest! {
    /// Padding does not change the classification, unless it is after the first quote and makes the text too long.
    #[test]
    fn padding_changes_nothing(words in words(), which: u8, in_timeline: bool) {
        let schema = if in_timeline { "tl" } else { "elsewhere" };
        // Padding with a comment would end one that a word begins, as a line's end does one that begins with dashes.
        let begins = words.iter().any(|word| word.starts_with(b"/*!"));
        let gap = match which % 4 {
            0 if begins => b" \t".repeat(12_000),
            0 => [b"/* ", &b"padding ".repeat(3_000)[..], b"*/ "].concat(),
            1 => [b" -- ", &b"padding ".repeat(3_000)[..], b"\n"].concat(),
            2 => [b" # ", &b"padding ".repeat(3_000)[..], b"\n"].concat(),
            _ => b" \n\t".repeat(8_000),
        };
        let blank: &[u8] = if gap.contains(&b'\n') { b"\n" } else { b" " };
        let short = judged(&words.join(blank), true, schema, CreateSelectEffect::Possible);
        let long = judged(&words.join(&gap[..]), true, schema, CreateSelectEffect::Possible);
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" .,()=@".contains(byte);
        if words.iter().flatten().all(plain) {
            prop_assert_eq!(short, long);
        } else {
            prop_assert!(strictness(long) >= strictness(short).min(1), "{short:?}, {long:?}");
        }
    }
}
