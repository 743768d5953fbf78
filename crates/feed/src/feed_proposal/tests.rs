//! Statements of an app, and the feed that each would be one of.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use super::{AuthorClause, FeedProposal, ProposalEvidence, ProposalOutcome, propose};
use crate::catalogue::{CatalogueRows, DatabaseCatalogue};
use crate::definition::TieOrder;
use crate::refusal::NarrowingRefusal;
use crate::words::StatementWords;
use headwater_sql::NameCase;

fn catalogue_rows(rows: &[&[&str]]) -> CatalogueRows {
    let cell = |cell: &&str| (*cell != "NULL").then(|| cell.as_bytes().to_vec());
    rows.iter()
        .map(|row| row.iter().map(cell).collect())
        .collect()
}

/// Statuses, who follows whom, profiles; messages of UUIDs and who follows whom there, without indexes.
fn app() -> DatabaseCatalogue {
    let tables = ["statuses", "followers", "profiles", "posts", "fans"];
    let tables: Vec<[&str; 3]> = tables.map(|name| [name, "BASE TABLE", "InnoDB"]).to_vec();
    let view = ["newest", "VIEW", "NULL"];
    let columns: [[&str; 5]; 20] = [
        ["statuses", "id", "bigint unsigned", "NO", "auto_increment"],
        ["statuses", "profile_id", "bigint unsigned", "YES", ""],
        ["statuses", "kind", "varchar(10)", "NO", ""],
        ["statuses", "state", "tinyint", "NO", ""],
        ["statuses", "likes", "int", "NO", ""],
        ["statuses", "created_at", "datetime", "NO", ""],
        ["followers", "id", "bigint", "NO", "auto_increment"],
        ["followers", "profile_id", "bigint unsigned", "NO", ""],
        ["followers", "following_id", "bigint unsigned", "NO", ""],
        ["followers", "accepted", "int", "NO", ""],
        ["profiles", "id", "bigint unsigned", "NO", ""],
        ["profiles", "private", "int", "NO", ""],
        ["posts", "id", "char(36)", "NO", ""],
        ["posts", "owner", "char(36)", "NO", ""],
        ["posts", "seq", "bigint", "NO", ""],
        ["fans", "who", "int", "NO", ""],
        ["fans", "whom", "int", "NO", ""],
        ["fans", "likes_uuid", "char(36)", "NO", ""],
        ["newest", "id", "int", "NO", ""],
        ["newest", "profile_id", "int", "NO", ""],
    ];
    let indexes: [[&str; 5]; 8] = [
        ["statuses", "PRIMARY", "0", "id", "NULL"],
        ["statuses", "by_profile", "1", "profile_id", "NULL"],
        ["followers", "PRIMARY", "0", "id", "NULL"],
        ["followers", "pair", "0", "profile_id", "NULL"],
        ["followers", "pair", "0", "following_id", "NULL"],
        ["profiles", "PRIMARY", "0", "id", "NULL"],
        ["posts", "PRIMARY", "0", "id", "NULL"],
        ["fans", "by_who", "1", "who", "NULL"],
    ];
    let tables = tables.iter().chain([&view]).map(|row| &row[..]);
    DatabaseCatalogue::read(
        "app",
        &[
            catalogue_rows(&tables.collect::<Vec<_>>()),
            catalogue_rows(&columns.iter().map(|row| &row[..]).collect::<Vec<_>>()),
            catalogue_rows(&indexes.iter().map(|row| &row[..]).collect::<Vec<_>>()),
        ],
    )
}

fn outcome_of(text: &str) -> ProposalOutcome {
    propose(text.as_bytes(), &app(), &ProposalEvidence::default())
}

#[track_caller]
fn feed(text: &str) -> FeedProposal {
    match outcome_of(text) {
        ProposalOutcome::Feeds(proposals) if proposals.len() == 1 => proposals[0].clone(),
        other => panic!("{text}: {other:?}"),
    }
}

/// Who follows whom, as the section has it.
fn follow(proposal: &FeedProposal) -> Option<(&str, &str, &str)> {
    let follow = proposal.definition.follow.as_ref()?;
    Some((&follow.table, &follow.reader, &follow.author))
}

const FOLLOWERS: Option<(&str, &str, &str)> = Some(("followers", "profile_id", "following_id"));

#[test]
fn each_shape_leads_to_the_section_that_serves_it() {
    for (text, by, or_one, expected) in [
        (
            "SELECT * FROM statuses WHERE profile_id IN (1,2) AND kind IN ('a') AND state IN (1,2) ORDER BY id DESC LIMIT 20",
            AuthorClause::List,
            false,
            None,
        ),
        (
            "SELECT * FROM statuses WHERE profile_id IN (?, ?) AND kind IN (?, ?) AND likes = ? ORDER BY ID DESC LIMIT ?, ?",
            AuthorClause::List,
            false,
            None,
        ),
        (
            "SELECT s.* FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 7 AND f.accepted = 1 ORDER BY s.id DESC LIMIT 20",
            AuthorClause::Join,
            false,
            FOLLOWERS,
        ),
        (
            "SELECT s.id FROM followers f, statuses s, profiles p WHERE p.id = s.profile_id AND p.private = 0 AND f.following_id = p.id AND f.profile_id = ? ORDER BY s.id DESC LIMIT ?",
            AuthorClause::Join,
            false,
            FOLLOWERS,
        ),
        (
            "SELECT DISTINCT s.id FROM statuses s LEFT JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = 3 WHERE f.profile_id IS NOT NULL OR s.profile_id = 3 ORDER BY s.id DESC LIMIT 20",
            AuthorClause::OuterJoin,
            true,
            FOLLOWERS,
        ),
        (
            "SELECT id FROM statuses WHERE (profile_id IN (SELECT following_id FROM followers WHERE profile_id = 7) OR profile_id = 7) AND likes > 5 ORDER BY id DESC LIMIT 20",
            AuthorClause::Subquery,
            true,
            FOLLOWERS,
        ),
        (
            "SELECT s.id FROM app.statuses s WHERE EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.accepted = 1 AND f.profile_id = 7) ORDER BY s.id DESC LIMIT 20",
            AuthorClause::Exists,
            false,
            FOLLOWERS,
        ),
    ] {
        let proposal = feed(text);
        assert_eq!(
            (
                proposal.author_clause,
                proposal.or_single_author,
                follow(&proposal)
            ),
            (by, or_one, expected),
            "{text}"
        );
        assert_eq!(proposal.obstacles, [], "{text}");
        let message = &proposal.definition.message;
        assert_eq!(
            (&*message.table, &*message.id, &*message.author),
            ("statuses", "id", "profile_id")
        );
        assert_eq!(message.order, ["id"]);
        assert_eq!(proposal.definition.database.as_deref(), Some("app"));
    }
}

#[test]
fn another_order_is_named_and_what_the_check_says_of_it() {
    for order in ["created_at DESC", "created_at DESC, id DESC"] {
        let proposal = feed(&format!(
            "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY {order} LIMIT 20"
        ));
        assert_eq!(proposal.definition.message.order, ["created_at", "id"]);
        let obstacles: Vec<String> = proposal.obstacles.iter().map(ToString::to_string).collect();
        assert!(
            obstacles
                .iter()
                .any(|one| one.contains("ADD INDEX (`profile_id`, `created_at`)")),
            "{obstacles:?}"
        );
    }
}

#[test]
fn obstacles_are_reported_with_the_section() {
    let obstacles_of = |text: &str| -> Vec<String> {
        let proposal = feed(text);
        proposal.obstacles.iter().map(ToString::to_string).collect()
    };
    let indexes = obstacles_of(
        "SELECT s.id FROM statuses s JOIN fans f ON f.whom = s.likes WHERE f.who = 7 ORDER BY s.id DESC LIMIT 20",
    );
    assert!(
        indexes
            .iter()
            .any(|one| one.contains("ALTER TABLE `statuses` ADD INDEX (`likes`)")),
        "{indexes:?}"
    );
    let uuids = obstacles_of(
        "SELECT id FROM posts WHERE owner IN (SELECT likes_uuid FROM fans WHERE who = 7) ORDER BY seq DESC LIMIT 20",
    );
    assert!(
        uuids
            .iter()
            .any(|one| one.contains("posts.owner is char(36), and has to be an integer")),
        "{uuids:?}"
    );
    let view =
        obstacles_of("SELECT id FROM newest WHERE profile_id IN (1, 2) ORDER BY id DESC LIMIT 20");
    assert!(
        view.iter().any(|one| one.contains("newest is a view")),
        "{view:?}"
    );
}

#[test]
fn what_resembles_a_feed_and_is_none_is_refused_by_its_reason() {
    for (text, why) in [
        (
            "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 20 FOR UPDATE",
            NarrowingRefusal::Locks,
        ),
        (
            "SELECT id FROM statuses WHERE profile_id IN (1,2) AND likes + 1 > 0 ORDER BY id DESC LIMIT 20",
            NarrowingRefusal::NotPlain,
        ),
        (
            "SELECT id FROM statuses USE INDEX (by_profile) WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 20",
            NarrowingRefusal::Hints,
        ),
        (
            "SELECT id FROM statuses WHERE profile_id IN (1,2) AND kind = 5 ORDER BY id DESC LIMIT 20",
            NarrowingRefusal::Types,
        ),
        (
            "SELECT s.id FROM statuses s WHERE s.profile_id IN (SELECT p.id FROM profiles p, followers f WHERE f.following_id = p.id AND f.accepted = p.private AND f.profile_id > 7) ORDER BY s.id DESC LIMIT 20",
            NarrowingRefusal::Authors,
        ),
    ] {
        assert_eq!(outcome_of(text), ProposalOutcome::Refused(why), "{text}");
    }
}

#[test]
fn what_does_not_resemble_a_feed_is_nothing() {
    for text in [
        "SELECT id FROM statuses WHERE id IN (1,2) ORDER BY id DESC LIMIT 20",
        "SELECT id FROM statuses WHERE kind IN ('a','b') ORDER BY id DESC LIMIT 20",
        "SELECT id FROM statuses WHERE state IN (1,2) ORDER BY id DESC LIMIT 20",
        "SELECT id FROM statuses WHERE likes IN (1,2) ORDER BY id DESC LIMIT 20",
        "SELECT id FROM statuses WHERE profile_id = 7 ORDER BY id DESC LIMIT 20",
        "SELECT s.id FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id = 7 ORDER BY s.id DESC LIMIT 20",
        "SELECT s.id FROM statuses s JOIN profiles p ON p.id = s.profile_id ORDER BY s.id DESC LIMIT 20",
        "SELECT s.id FROM statuses s JOIN profiles p ON p.private = s.likes WHERE p.id = 5 ORDER BY s.id DESC LIMIT 20",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id LIMIT 20",
        "SELECT id FROM statuses WHERE profile_id IN (1,2)",
        "UPDATE statuses SET likes = 1",
    ] {
        assert_eq!(outcome_of(text), ProposalOutcome::Nothing, "{text}");
    }
}

#[test]
fn an_unknown_table_is_named() {
    let text = "SELECT id FROM statuses WHERE profile_id IN (SELECT whom FROM hidden WHERE who = 7) ORDER BY id DESC LIMIT 20";
    match outcome_of(text) {
        ProposalOutcome::UnknownTables(tables) => {
            assert_eq!(tables.first().unwrap().table, "hidden")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        super::required_tables(text.as_bytes(), NameCase::Sensitive).len(),
        2
    );
    assert!(super::required_tables(b"SELECT 1", NameCase::Sensitive).is_empty());
}

#[test]
fn names_have_no_case_where_the_server_gives_them_none() {
    let folded = app().with_case(NameCase::Folded);
    let text = "SELECT S.id FROM Statuses S JOIN App.Profiles ON profiles.ID = s.Profile_Id WHERE S.profile_id IN (1, 2) ORDER BY S.id DESC LIMIT 20";
    let found = propose(text.as_bytes(), &folded, &ProposalEvidence::default());
    let ProposalOutcome::Feeds(proposals) = found else {
        panic!("{found:?}");
    };
    let proposal = &proposals[0];
    assert_eq!(proposal.definition.message.table, "statuses");
    assert!(matches!(
        outcome_of(text),
        ProposalOutcome::UnknownTables(_)
    ));
    let tables = super::required_tables(text.as_bytes(), NameCase::Folded);
    let named: Vec<_> = tables
        .iter()
        .map(|named| (named.database.as_deref(), &*named.table))
        .collect();
    assert_eq!(named, [(None, "statuses"), (Some("app"), "profiles")]);
    // As the settings have it.
    let mut written = proposal.definition.clone();
    written.message.table = "Statuses".to_owned();
    written.database = Some("App".to_owned());
    assert!(!written.serves(&proposal.definition, "app"));
    assert!(
        written
            .folded(NameCase::Folded)
            .serves(&proposal.definition, "app")
    );
    assert_eq!(written.folded(NameCase::Sensitive), written);
}

/// The author columns of the feeds that a statement needs together, and who follows what in each.
fn together(text: &str) -> Vec<(String, Option<String>)> {
    let ProposalOutcome::Feeds(proposals) = outcome_of(text) else {
        return Vec::new();
    };
    let each = proposals.into_iter().map(|one| {
        let follow = one.definition.follow.map(|follow| follow.table);
        (one.definition.message.author, follow)
    });
    let mut each: Vec<_> = each.collect();
    each.sort();
    each
}

#[test]
fn a_statement_may_need_two_feeds() {
    let of = |author: &str, follow: Option<&str>| (author.to_owned(), follow.map(str::to_owned));
    let followed = "profile_id IN (SELECT following_id FROM followers WHERE profile_id = 7)";
    let fans = "likes IN (SELECT whom FROM fans WHERE who = 7)";
    for (condition, expected) in [
        (
            format!("({followed} OR {fans})"),
            vec![
                of("likes", Some("fans")),
                of("profile_id", Some("followers")),
            ],
        ),
        (
            format!("({fans} OR profile_id = 7)"),
            vec![of("likes", Some("fans")), of("profile_id", None)],
        ),
        (
            format!("{followed} AND {fans}"),
            vec![of("profile_id", Some("followers"))],
        ),
    ] {
        let text = format!("SELECT id FROM statuses WHERE {condition} ORDER BY id DESC LIMIT 20");
        assert_eq!(together(&text), expected, "{text}");
    }
}

#[test]
fn the_reader_may_be_named_by_another_table_or_a_list_of_one() {
    for condition in [
        "profile_id IN (SELECT f.following_id FROM profiles p JOIN followers f ON f.profile_id = p.id WHERE p.id = 7)",
        "profile_id IN (SELECT f.following_id FROM followers f WHERE f.profile_id IN (7))",
        "7 IN (SELECT f.profile_id FROM followers f WHERE f.following_id = statuses.profile_id)",
    ] {
        let proposal = feed(&format!(
            "SELECT id FROM statuses WHERE {condition} ORDER BY id DESC LIMIT 20"
        ));
        assert_eq!(follow(&proposal), FOLLOWERS, "{condition}");
    }
}

#[test]
fn messages_themselves_may_be_followed() {
    let text = "SELECT s.id FROM statuses s JOIN fans f ON f.whom = s.id WHERE f.who = 7 ORDER BY s.created_at DESC LIMIT 20";
    let proposal = feed(text);
    assert_eq!(proposal.definition.message.author, "id");
    assert_eq!(follow(&proposal), Some(("fans", "who", "whom")));
    let list = "SELECT id FROM statuses WHERE id IN (1, 2) ORDER BY created_at DESC LIMIT 20";
    assert_eq!(outcome_of(list), ProposalOutcome::Nothing);
}

#[test]
fn what_never_varies_or_has_few_values_is_no_reader() {
    let text = "SELECT s.id FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 7 AND f.accepted = 1 ORDER BY s.id DESC LIMIT 20";
    let by = |evidence: &ProposalEvidence| match propose(text.as_bytes(), &app(), evidence) {
        ProposalOutcome::Feeds(proposals) => {
            follow(&proposals[0]).map(|(_, reader, _)| reader.to_owned())
        }
        _ => None,
    };
    let literals = StatementWords::read(text.as_bytes()).unwrap().words;
    let literals = literals.iter().enumerate();
    let literals: Vec<usize> = literals
        .filter_map(|(at, word)| word.kind.is_literal().then_some(at))
        .collect();
    assert_eq!(
        by(&ProposalEvidence::default()).as_deref(),
        Some("profile_id")
    );
    let constant = |at: usize| ProposalEvidence {
        constants: [literals[at]].into(),
        ..ProposalEvidence::default()
    };
    assert_eq!(by(&constant(1)).as_deref(), Some("profile_id"));
    assert_eq!(by(&constant(0)).as_deref(), Some("accepted"));
    // Where neither varies, the one without an index is a mark.
    let both = ProposalEvidence {
        constants: literals.iter().copied().collect(),
        ..ProposalEvidence::default()
    };
    assert_eq!(by(&both).as_deref(), Some("profile_id"));
    let zeros = text.replace("= 7", "= 0").replace("= 1", "= 0");
    assert_eq!(
        propose(zeros.as_bytes(), &app(), &both),
        ProposalOutcome::Nothing
    );
    let mark = |column: &str| ProposalEvidence {
        marks: [("followers".to_owned(), column.to_owned())].into(),
        ..ProposalEvidence::default()
    };
    assert_eq!(by(&mark("accepted")).as_deref(), Some("profile_id"));
    assert_eq!(by(&mark("profile_id")).as_deref(), Some("accepted"));
}

#[test]
fn rows_of_one_message_need_an_order() {
    let text = "SELECT s.id, f.id FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id IN (7, 8) ORDER BY s.id DESC LIMIT 20";
    let proposal = feed(text);
    assert!(proposal.definition.ties == TieOrder::Id && proposal.has_several_rows);
    assert!(
        proposal
            .to_string()
            .contains("with several rows for a message")
    );
}

#[test]
fn a_flag_that_orders_first_is_refused() {
    let text = "SELECT id FROM statuses WHERE profile_id IN (1, 2) ORDER BY state DESC, created_at DESC LIMIT 20";
    assert_eq!(
        outcome_of(text),
        ProposalOutcome::Refused(NarrowingRefusal::Order)
    );
}

#[test]
fn of_hundreds_of_columns_a_bounded_number_is_tried() {
    let conditions: Vec<String> = (0..200).map(|at| format!("a.c{at} = b.d{at}")).collect();
    let text = format!(
        "SELECT a.id FROM a JOIN b WHERE {} ORDER BY a.id DESC LIMIT 9",
        conditions.join(" AND ")
    );
    let columns: Vec<Vec<String>> = ["a", "b"]
        .into_iter()
        .flat_map(|table| {
            let prefix = if table == "a" { "c" } else { "d" };
            let names = (0..200).map(move |at| format!("{prefix}{at}"));
            let names = std::iter::once("id".to_owned()).chain(names);
            names.map(move |name| {
                vec![
                    table.to_owned(),
                    name,
                    "int".into(),
                    "NO".into(),
                    String::new(),
                ]
            })
        })
        .collect();
    let columns: Vec<Vec<&str>> = columns
        .iter()
        .map(|row| row.iter().map(String::as_str).collect())
        .collect();
    let columns: Vec<&[&str]> = columns.iter().map(Vec::as_slice).collect();
    let known = DatabaseCatalogue::read(
        "app",
        &[
            catalogue_rows(&[
                &["a", "BASE TABLE", "InnoDB"],
                &["b", "BASE TABLE", "InnoDB"],
            ]),
            catalogue_rows(&columns),
            catalogue_rows(&[
                &["a", "PRIMARY", "0", "id", "NULL"],
                &["b", "PRIMARY", "0", "id", "NULL"],
            ]),
        ],
    );
    let outcome = propose(text.as_bytes(), &known, &ProposalEvidence::default());
    assert!(!matches!(outcome, ProposalOutcome::Feeds(_)), "{outcome:?}");
}
