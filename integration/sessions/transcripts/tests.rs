//! Files with errors are refused, with the line.

use super::deed::{Deed, Exchange, Expected};
use super::story::{Place, parse};

/// The fault of a file: `line: what`.
#[track_caller]
fn refused(text: &str, expected: &str) {
    match parse(text) {
        Err(fault) => assert!(fault.to_string().starts_with(expected), "{fault}"),
        Ok(stories) => panic!("{stories:?}"),
    }
}

/// The statements, each with its cases.
#[track_caller]
fn unrolled(text: &str) -> Vec<String> {
    let stories = parse(text).unwrap_or_else(|fault| panic!("{fault}"));
    let steps = stories.into_iter().flat_map(|story| story.steps);
    steps
        .map(|step| match step.deed {
            Deed::Exchange(Exchange::Statement(sql)) => {
                format!("{sql} [{}]", step.cases.join(", "))
            }
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn what_is_no_story_is_refused() {
    refused("", "1: no story");
    refused("# nothing\n\n", "1: no story");
    refused("SELECT 1", "1: neither story nor part nor list");
    refused(":story", "1: \"\" is no name");
    refused(":story One", "1: \"One\" is no name");
    refused(":stories one\n  SELECT 1", "1: neither");
    refused(":story a\n  DO 1\n:story a\n  DO 1", "3: a second story a");
    refused("  :story a\n", "1: stands between");
}

#[test]
fn a_story_that_plays_nothing_is_refused() {
    refused("\n:story a", "2: nothing is below this");
    refused(":story a\n  # SELECT 1", "1: nothing is below this");
    refused(
        ":story a\n  :aside SELECT 1\n  :ping\n  :session\n  :owned 0",
        "1: this story plays no statement",
    );
}

#[test]
fn unknown_words_and_names_are_refused() {
    refused(":story a\n  :nothing", "2: nothing is known of :nothing");
    refused(":story a\n  DO 1\n  :Ping", "3: nothing is known of :Ping");
    refused(":story a\n  DO 1\n  :", "3: nothing is known of :");
    refused(":story a\n  SELECT {x}", "2: nothing is named {x} here");
    refused(":story a\n  {Tail}", "2: nothing is named {Tail} here");
    refused(
        ":story a\n  DO 1\n  :aside GRANT {user}",
        "3: nothing is named {user}",
    );
    refused(":story a\n  :each x in y\n    DO {x}", "2: no list y");
    refused(":story a\n  :play x", "2: no part x");
    refused(
        ":story a\n  :where sqlite\n    DO 1",
        "2: no stage is known",
    );
}

#[test]
fn names_that_nobody_uses_are_refused() {
    refused(":list x\n  DO 1\n:story a\n  DO 1", "1: nobody uses x");
    refused(":part x\n  DO 1\n:story a\n  DO 1", "1: nobody uses x");
    refused(":story a\n  :list x\n    DO 1\n  DO 1", "2: nobody uses x");
    refused(":story a\n  :each x of 1 | 2\n    DO 1", "2: nobody uses x");
    refused(
        ":list l\n  1 | 2\n:story a\n  :each x | y in l\n    DO {y}",
        "4: nobody uses x",
    );
}

#[test]
fn a_name_means_one_thing() {
    refused(":list x\n  1\n:part x\n  2", "3: a second x");
    refused(
        ":story a\n  :each x of 1 | 2\n    :each x of 1 | 2\n      DO {x}",
        "3: a second x",
    );
    refused(
        ":story a\n  :each tail of 1 | 2\n    DO {tail}",
        "2: a second tail",
    );
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    refused(":list x\n:story a\n  DO 1", "1: nothing is in x");
    refused(":story a\n  :times 3\n  DO 1", "2: nothing is below");
    refused(":story a\n  :times 1\n    DO 1", "2: 2 to 1000 times");
    refused(":story a\n  :each x\n    DO 1", "2: each NAME in LIST");
    refused(
        ":story a\n  :each x | y of 1 | 2\n    DO 1",
        "2: each NAME in LIST",
    );
    refused(
        ":list l\n  1 | 2\n  3\n:story a\n  :each x | y in l\n    DO {x}{y}",
        "3: 1 values for",
    );
    refused(":story a\n    DO 1\n  DO 2", "3: stands between");
    refused(
        ":part p\n  :play p\n:story a\n  :play p",
        "2: parts within parts",
    );
}

#[test]
fn directives_that_are_not_whole_are_refused() {
    for wrong in [
        ":ping pong",
        ":error 1146",
        ":error x SELECT 1",
        ":error 65536 SELECT 1",
        ":value 1",
        ":unordered",
        ":aside",
        ":account",
        ":init_db",
        ":set_option off",
        ":owned",
        ":owned many",
        ":owned at most 3",
        ":count tables_written",
        ":count tables_wriften 0",
        ":wait_ms long",
        ":prepare p",
        ":execute p",
        ":execute p (1",
        ":execute p (one)",
        ":execute p (1) with luck",
        ":session SESSION_TRACK",
        ":session with SESSION_TRICK",
        ":session with",
        "SELECT '\\d'",
        "SELECT '\\x80'",
        "SELECT \\",
    ] {
        refused(&format!(":story a\n  DO 1\n  {wrong}"), "3: ");
    }
}

#[test]
fn each_case_is_played_each_time() {
    let text = ":list pairs\n  A | Z\n  B | Y\n\
                :story a\n  :each x | y in pairs\n    :times 2\n      DO {x}\n    :each z of 1 | 2\n      DO {y}{z}\n";
    let expected = [
        "DO A [x = A, y = Z, time 1 of 2]",
        "DO A [x = A, y = Z, time 2 of 2]",
        "DO Z1 [x = A, y = Z, z = 1]",
        "DO Z2 [x = A, y = Z, z = 2]",
        "DO B [x = B, y = Y, time 1 of 2]",
        "DO B [x = B, y = Y, time 2 of 2]",
        "DO Y1 [x = B, y = Y, z = 1]",
        "DO Y2 [x = B, y = Y, z = 2]",
    ];
    assert_eq!(unrolled(text), expected);
}

#[test]
fn cases_in_place_may_hold_the_words_of_other_forms() {
    let text = ":story a\n  :each x of 1 in (1) | 2 of 2\n    DO {x}\n";
    let expected = ["DO 1 in (1) [x = 1 in (1)]", "DO 2 of 2 [x = 2 of 2]"];
    assert_eq!(unrolled(text), expected);
}

#[test]
fn a_line_that_ends_in_a_backslash_goes_on_in_the_next() {
    let text = ":story a\n  SELECT 1, \\\n      2, \\\n # 3\n  # three\n  DO 1\n";
    assert_eq!(unrolled(text), ["SELECT 1, 2, # 3 []", "DO 1 []"]);
}

#[test]
fn nothing_is_below_a_statement_or_a_case() {
    refused(":story a\n  DO 1\n    DO 2", "3: this is below");
    refused(":story a\n  DO 1\n    :ping", "3: this is below");
    refused(":story a\n  :session\n    DO 1", "3: this is below");
    refused(
        ":part p\n  DO 1\n:story a\n  :play p\n    DO 1",
        "5: this is below",
    );
    refused(":story a\n  DO 1 \\\n\n  DO 2", "3: the line before");
    refused(
        ":list l\n  1\n    2\n:story a\n  :each x in l\n    DO {x}",
        "3: this is below",
    );
}

#[test]
fn escapes_and_braces_stand_for_what_sql_may_begin_with() {
    let text = ":part p\n  {x}\n:story a\n  :each x of \\x23 a\\nb | { CALL } | {db}{empty}\n    :play p\n  \\x3aping\n  '\\\\'\n";
    let expected = [
        "# a\nb [x = \\x23 a\\nb]",
        "{ CALL } [x = { CALL }]",
        "{db} [x = {db}]",
        ":ping []",
        "'\\' []",
    ];
    assert_eq!(unrolled(text), expected);
}

#[test]
fn steps_know_their_line_and_their_stages() {
    let text = ":story a\n  :where mysql\n    :where no service\n      DO 1\n  :owned at least 3\n";
    let stories = parse(text).unwrap_or_else(|fault| panic!("{fault}"));
    let [first, second] = &stories[0].steps[..] else {
        panic!("{stories:?}");
    };
    assert_eq!((first.line, second.line), (4, 5));
    assert_eq!(first.places, [Place::Mysql, Place::NoService]);
    assert_eq!(second.places, []);
    let Deed::Count(names, expected) = &second.deed else {
        panic!("{second:?}");
    };
    assert_eq!(
        (&names[..], expected),
        (&["calls_owned".to_owned()][..], &Expected::AtLeast(3))
    );
}
