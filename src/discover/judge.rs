//! What each statement is: looks at the tables that statements name, has feeds be proposed, and checks these.

use std::collections::{BTreeMap, BTreeSet};

use super::grouped::{Feed, checked, grouped};
use super::{DiscoverError, Statement};
use crate::check::Proposed;
use crate::config::Settings;
use crate::feed::facts::{self, Tables, Told};
use crate::feed::propose::{self, Found, Proposal};
use crate::feed::shown::shown;
use crate::feed::tally::Seen;
use crate::feed::template::Named;
use crate::sql::{NameCase, hex};

/// More tables are not looked at in one database.
const MOST_TABLES: usize = 1_000;
/// More names of tables are not read of one database.
const MOST_NAMES: usize = 10_000;

/// All that was found out.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Feeds, those first whose statements took the most time.
    pub(super) feeds: Vec<Feed>,
    /// Statements that resemble those of feeds, and why they are relayed.
    pub(super) refused: Vec<(Seen, String)>,
    /// There were more than `limits.databases`.
    pub(super) databases_left_out: usize,
}

/// Judges all of them.
pub(super) async fn judge(
    server: &mut Proposed,
    settings: &Settings,
    statements: Vec<Statement>,
) -> Result<Judged, DiscoverError> {
    let mut by_database: BTreeMap<String, Vec<Sent>> = BTreeMap::new();
    let case = server.case();
    for statement in statements {
        let (database, astray) = home(&statement, case);
        let sent = Sent { statement, astray };
        by_database.entry(database).or_default().push(sent);
    }
    let mut judged = Judged::default();
    let most = settings.limits.databases;
    judged.databases_left_out = by_database.len().saturating_sub(most);
    let mut feeds: Vec<(Proposal, Seen)> = Vec::new();
    for (database, statements) in by_database.into_iter().take(most) {
        for (found, seen, astray) in in_database(server, &database, statements).await? {
            match (found, astray) {
                (Found::Nothing, _) => {}
                (Found::Feed(_), Some(astray)) => judged.refused.push((seen, astray.to_owned())),
                (Found::Feed(proposal), None) => feeds.push((*proposal, seen)),
                (Found::Refused(why), _) => judged.refused.push((seen, why.to_string())),
                (Found::Unseen(tables), _) => {
                    let why = unseen(server, &database, &tables);
                    judged.refused.push((seen, why));
                }
            }
        }
    }
    judged.feeds = checked(server, settings, grouped(feeds)).await;
    judged
        .refused
        .sort_by_key(|(seen, _)| std::cmp::Reverse(seen.total));
    Ok(judged)
}

/// A statement, judged in the database of its tables.
struct Sent {
    statement: Statement,
    /// Why it would be relayed, though its tables make a feed: its sessions are elsewhere.
    astray: Option<&'static str>,
}

/// The database of a statement's tables, and whether its sessions have another one.
fn home(statement: &Statement, case: NameCase) -> (String, Option<&'static str>) {
    let text = statement.text(&[]).unwrap_or_default();
    let mut current = statement.seen.database.clone();
    if let Some(current) = &mut current {
        case.fold_text(current);
    }
    let current = current.as_deref();
    let named = propose::tables(text.as_bytes(), case);
    let mut databases = named.iter().map(|named| named.database.as_deref());
    let first = databases.next().flatten();
    let theirs = first.filter(|_| databases.all(|other| other == first));
    match (theirs, current) {
        (Some(theirs), None) => {
            let why = "its sessions have no current database: connect with that of its tables";
            (theirs.to_owned(), Some(why))
        }
        (Some(theirs), Some(current)) if theirs != current => {
            let why = "its sessions have another current database than that of its tables: connect with theirs";
            (theirs.to_owned(), Some(why))
        }
        _ => (current.unwrap_or_default().to_owned(), None),
    }
}

/// Why nothing can be said of a statement that names these tables.
fn unseen(server: &Proposed, database: &str, tables: &[Named]) -> String {
    let other = |named: &Named| named.database.as_ref().is_some_and(|own| own != database);
    if tables.iter().any(other) {
        return "its tables stand in several databases".to_owned();
    }
    let grants = tables
        .iter()
        .map(|named| server.grant_read(database, &named.table));
    let grants: Vec<String> = grants.collect();
    let names: Vec<&str> = tables.iter().map(|named| named.table.as_str()).collect();
    format!(
        "the service account sees no table {}: {}",
        names.join(", "),
        grants.join(" ")
    )
}

/// What the statements of one database are.
async fn in_database(
    server: &mut Proposed,
    database: &str,
    statements: Vec<Sent>,
) -> Result<Vec<(Found, Seen, Option<&'static str>)>, DiscoverError> {
    let names = match statements.iter().any(|sent| sent.statement.digest) {
        true => names(server, database).await?,
        false => Vec::new(),
    };
    let mut read_ones = Vec::new();
    let mut wanted = BTreeSet::new();
    for mut sent in statements {
        let Some(text) = sent.statement.text(&names) else {
            continue;
        };
        sent.statement.seen.shown = shown(text.as_bytes());
        let own = propose::tables(text.as_bytes(), server.case()).into_iter();
        let own = own.filter(|named| named.database.as_ref().is_none_or(|own| own == database));
        wanted.extend(own.map(|named| named.table));
        read_ones.push((text, sent));
    }
    let wanted: Vec<String> = wanted.into_iter().take(MOST_TABLES).collect();
    let known = match wanted.is_empty() {
        true => Tables::default(),
        false => {
            let told = told(server, &facts::queries(database, &wanted)).await?;
            let told: [Told; 3] = told.try_into().unwrap_or_default();
            Tables::read(database, &told).with_case(server.case())
        }
    };
    let judged = read_ones.into_iter().map(|(text, sent)| {
        let found = propose::propose(text.as_bytes(), &known);
        (found, sent.statement.seen, sent.astray)
    });
    Ok(judged.collect())
}

/// The tables of a database.
async fn names(server: &mut Proposed, database: &str) -> Result<Vec<String>, DiscoverError> {
    let query = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} LIMIT {MOST_NAMES}",
        hex(database)
    );
    let rows = told(server, &[query]).await?.into_iter().flatten();
    Ok(facts::names(rows).collect())
}

async fn told(server: &mut Proposed, queries: &[String]) -> Result<Vec<Told>, DiscoverError> {
    let answers = server.ask(queries).await?;
    let told: Result<Vec<Told>, _> = answers.into_iter().collect();
    told.map_err(|error| DiscoverError::Refused(error.to_string()))
}
