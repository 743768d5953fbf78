//! Classifies statements: reads the tables that they name, proposes feeds, and checks these.

use std::collections::{BTreeMap, BTreeSet};

use super::feed_groups::{DiscoveredFeed, check_feeds, group_statements};
use super::{DiscoverError, DiscoveredStatement};
use crate::check::ProposedFeedCheck;
use headwater_feed::catalogue::{self, CatalogueRows, DatabaseCatalogue};
use headwater_feed::feed_proposal::{
    self, FeedProposal, ProposalEvidence, ProposalOutcome, TableStatistics,
};
use headwater_feed::normalization::normalized_text;
use headwater_feed::tally::StatementStats;
use headwater_feed::template::TableName;
use headwater_server::config::ServeSettings;
use headwater_sql::lexer::Lexer;
use headwater_sql::{NameCase, hex_literal};

/// The most tables read in one database.
const MOST_TABLES: usize = 1_000;
/// The most columns of a database whose values are counted.
const MOST_SUSPECTS: usize = 50;
/// The most table names read in one database.
const MOST_NAMES: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct DiscoverySummary {
    /// Feeds, by the total time of their statements, descending.
    pub(super) feeds: Vec<DiscoveredFeed>,
    /// Statements that resemble those of feeds, and why they are relayed.
    pub(super) refused: Vec<(StatementStats, String)>,
    /// Databases beyond `limits.databases`.
    pub(super) databases_left_out: usize,
}

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
    let mut summary = DiscoverySummary::default();
    let most = settings.limits.databases;
    summary.databases_left_out = by_database.len().saturating_sub(most);
    let mut feeds: Vec<(FeedProposal, StatementStats)> = Vec::new();
    for (database, statements) in by_database.into_iter().take(most) {
        for (outcome, stats, astray) in classify_in_database(server, &database, statements).await? {
            match (outcome, astray) {
                (ProposalOutcome::Nothing, _) => {}
                (ProposalOutcome::Feeds(_), Some(astray)) => {
                    summary.refused.push((stats, astray.to_owned()))
                }
                (ProposalOutcome::Feeds(proposals), None) => {
                    feeds.extend(proposals.into_iter().map(|one| (one, stats.clone())));
                }
                (ProposalOutcome::Refused(why), _) => {
                    summary.refused.push((stats, why.to_string()))
                }
                (ProposalOutcome::UnknownTables(tables), _) => {
                    let why = unseen_reason(server, &database, &tables);
                    summary.refused.push((stats, why));
                }
            }
        }
    }
    summary.feeds = check_feeds(server, settings, group_statements(feeds)).await;
    summary
        .refused
        .sort_by_key(|(stats, _)| std::cmp::Reverse(stats.total));
    Ok(summary)
}

/// A statement, assigned to the database of its tables.
struct LocatedStatement {
    statement: DiscoveredStatement,
    /// Why it would be relayed even if its tables make a feed: its sessions use another database.
    relay_reason: Option<&'static str>,
}

/// The database of a statement's tables, and whether its sessions use another one.
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
    let tables = feed_proposal::required_tables(text.as_bytes(), case);
    let mut databases = tables.iter().map(|named| named.database.as_deref());
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

/// Why a statement that names these tables cannot be classified.
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
        let tables = feed_proposal::required_tables(text.as_bytes(), server.case()).into_iter();
        let tables =
            tables.filter(|named| named.database.as_ref().is_none_or(|own| own == database));
        wanted.extend(tables.map(|named| named.table));
        read_ones.push((text, sent));
    }
    let wanted: Vec<String> = wanted.into_iter().take(MOST_TABLES).collect();
    let (known, marks) = match wanted.is_empty() {
        true => Default::default(),
        false => {
            let mut replies =
                query_rows(server, &catalogue::catalogue_queries(database, &wanted)).await?;
            let query = feed_proposal::statistics_query(database, &wanted);
            replies.extend(query_rows(server, &[query]).await?);
            let [tables, columns, indexes, statistics]: [CatalogueRows; 4] =
                replies.try_into().unwrap_or_default();
            let read = DatabaseCatalogue::read(database, &[tables, columns, indexes]);
            let mut suspects = TableStatistics::read(&statistics).suspects;
            let texts = read_ones.iter().map(|(text, _)| text.as_bytes());
            let names = texts.flat_map(|text| Lexer::new(text).filter_map(|word| word.name()));
            let names: BTreeSet<String> = names.map(|name| name.to_ascii_lowercase()).collect();
            suspects.retain(|(_, column)| names.contains(&column.to_ascii_lowercase()));
            (
                read.with_case(server.case()),
                marks_among(server, database, suspects).await?,
            )
        }
    };
    let classified = read_ones.into_iter().map(|(text, sent)| {
        let evidence = ProposalEvidence {
            constants: sent.statement.constants(),
            marks: marks.clone(),
        };
        let outcome = feed_proposal::propose(text.as_bytes(), &known, &evidence);
        (outcome, sent.statement.seen, sent.relay_reason)
    });
    Ok(classified.collect())
}

/// Those of these columns that hold few values. One that may not be read is none.
async fn marks_among(
    server: &mut ProposedFeedCheck,
    database: &str,
    suspects: BTreeSet<(String, String)>,
) -> Result<BTreeSet<(String, String)>, DiscoverError> {
    let mut marks = BTreeSet::new();
    for column in suspects.into_iter().take(MOST_SUSPECTS) {
        let query = feed_proposal::mark_query(database, &column);
        let reply = server.query(&[query]).await?.into_iter().next();
        if let Some(Ok(rows)) = reply
            && feed_proposal::is_mark(&rows)
        {
            marks.insert(column);
        }
    }
    Ok(marks)
}

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
    let replies: Result<Vec<CatalogueRows>, _> = answers.into_iter().collect();
    replies.map_err(|error| DiscoverError::Refused(error.to_string()))
}
