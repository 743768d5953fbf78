//! What each statement is: looks at the tables that statements name, has feeds be proposed, and checks these.

use std::collections::{BTreeMap, BTreeSet};

use super::feed_groups::{DiscoveredFeed, check_feeds, group_statements};
use super::{DiscoverError, DiscoveredStatement};
use crate::check::ProposedFeedCheck;
use crate::config::ServeSettings;
use crate::feed::catalogue::{self, CatalogueRows, DatabaseCatalogue};
use crate::feed::feed_proposal::{self, FeedProposal, ProposalOutcome};
use crate::feed::normalization::normalized_text;
use crate::feed::tally::StatementStats;
use crate::feed::template::TableName;
use crate::sql::{NameCase, hex_literal};

/// More tables are not looked at in one database.
const MOST_TABLES: usize = 1_000;
/// More names of tables are not read of one database.
const MOST_NAMES: usize = 10_000;

/// All that was found out.
#[derive(Debug, Default)]
pub(super) struct DiscoverySummary {
    /// Feeds, those first whose statements took the most time.
    pub(super) feeds: Vec<DiscoveredFeed>,
    /// Statements that resemble those of feeds, and why they are relayed.
    pub(super) refused: Vec<(StatementStats, String)>,
    /// There were more than `limits.databases`.
    pub(super) databases_left_out: usize,
}

/// Judges all of them.
pub(super) async fn classify_statements(
    server: &mut ProposedFeedCheck,
    settings: &ServeSettings,
    statements: Vec<DiscoveredStatement>,
) -> Result<DiscoverySummary, DiscoverError> {
    let mut by_database: BTreeMap<String, Vec<LocatedStatement>> = BTreeMap::new();
    let case = server.case();
    for statement in statements {
        let (database, astray) = statement_database(&statement, case);
        let sent = LocatedStatement {
            statement,
            relay_reason: astray,
        };
        by_database.entry(database).or_default().push(sent);
    }
    let mut judged = DiscoverySummary::default();
    let most = settings.limits.databases;
    judged.databases_left_out = by_database.len().saturating_sub(most);
    let mut feeds: Vec<(FeedProposal, StatementStats)> = Vec::new();
    for (database, statements) in by_database.into_iter().take(most) {
        for (found, seen, astray) in classify_in_database(server, &database, statements).await? {
            match (found, astray) {
                (ProposalOutcome::Nothing, _) => {}
                (ProposalOutcome::Feed(_), Some(astray)) => {
                    judged.refused.push((seen, astray.to_owned()))
                }
                (ProposalOutcome::Feed(proposal), None) => feeds.push((*proposal, seen)),
                (ProposalOutcome::Refused(why), _) => judged.refused.push((seen, why.to_string())),
                (ProposalOutcome::UnknownTables(tables), _) => {
                    let why = unseen_reason(server, &database, &tables);
                    judged.refused.push((seen, why));
                }
            }
        }
    }
    judged.feeds = check_feeds(server, settings, group_statements(feeds)).await;
    judged
        .refused
        .sort_by_key(|(seen, _)| std::cmp::Reverse(seen.total));
    Ok(judged)
}

/// A statement, judged in the database of its tables.
struct LocatedStatement {
    statement: DiscoveredStatement,
    /// Why it would be relayed, though its tables make a feed: its sessions are elsewhere.
    relay_reason: Option<&'static str>,
}

/// The database of a statement's tables, and whether its sessions have another one.
fn statement_database(
    statement: &DiscoveredStatement,
    case: NameCase,
) -> (String, Option<&'static str>) {
    let text = statement.text(&[]).unwrap_or_default();
    let mut current = statement.seen.database.clone();
    if let Some(current) = &mut current {
        case.fold_text(current);
    }
    let current = current.as_deref();
    let named = feed_proposal::required_tables(text.as_bytes(), case);
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
fn unseen_reason(server: &ProposedFeedCheck, database: &str, tables: &[TableName]) -> String {
    let other = |named: &TableName| named.database.as_ref().is_some_and(|own| own != database);
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
async fn classify_in_database(
    server: &mut ProposedFeedCheck,
    database: &str,
    statements: Vec<LocatedStatement>,
) -> Result<Vec<(ProposalOutcome, StatementStats, Option<&'static str>)>, DiscoverError> {
    let names = match statements.iter().any(|sent| sent.statement.is_digest) {
        true => table_names(server, database).await?,
        false => Vec::new(),
    };
    let mut read_ones = Vec::new();
    let mut wanted = BTreeSet::new();
    for mut sent in statements {
        let Some(text) = sent.statement.text(&names) else {
            continue;
        };
        sent.statement.seen.normalized_text = normalized_text(text.as_bytes());
        let own = feed_proposal::required_tables(text.as_bytes(), server.case()).into_iter();
        let own = own.filter(|named| named.database.as_ref().is_none_or(|own| own == database));
        wanted.extend(own.map(|named| named.table));
        read_ones.push((text, sent));
    }
    let wanted: Vec<String> = wanted.into_iter().take(MOST_TABLES).collect();
    let known = match wanted.is_empty() {
        true => DatabaseCatalogue::default(),
        false => {
            let told = query_rows(server, &catalogue::catalogue_queries(database, &wanted)).await?;
            let told: [CatalogueRows; 3] = told.try_into().unwrap_or_default();
            DatabaseCatalogue::read(database, &told).with_case(server.case())
        }
    };
    let judged = read_ones.into_iter().map(|(text, sent)| {
        let found = feed_proposal::propose(text.as_bytes(), &known);
        (found, sent.statement.seen, sent.relay_reason)
    });
    Ok(judged.collect())
}

/// The tables of a database.
async fn table_names(
    server: &mut ProposedFeedCheck,
    database: &str,
) -> Result<Vec<String>, DiscoverError> {
    let query = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} LIMIT {MOST_NAMES}",
        hex_literal(database)
    );
    let rows = query_rows(server, &[query]).await?.into_iter().flatten();
    Ok(catalogue::first_column_names(rows).collect())
}

async fn query_rows(
    server: &mut ProposedFeedCheck,
    queries: &[String],
) -> Result<Vec<CatalogueRows>, DiscoverError> {
    let answers = server.query(queries).await?;
    let told: Result<Vec<CatalogueRows>, _> = answers.into_iter().collect();
    told.map_err(|error| DiscoverError::Refused(error.to_string()))
}
