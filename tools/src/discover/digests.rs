//! The server's statement digests: `performance_schema.events_statements_summary_by_digest`.

use std::time::Duration;

use super::{DiscoverError, DiscoveredStatement, StatementSurvey};
use crate::check::ProposedFeedCheck;
use headwater_feed::catalogue::CatalogueRows;
use headwater_feed::digest;
use headwater_feed::tally::StatementStats;
use headwater_sql::contains_ignoring_case;

/// The most digests read: those that took the most time.
const MOST: usize = 1_000;
/// Longer texts are truncated, in characters.
const LONGEST: usize = 16_384;
const SYSTEM: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];
/// ER_TABLEACCESS_DENIED_ERROR, ER_DBACCESS_DENIED_ERROR.
const DENIED: [u16; 2] = [1142, 1044];
const TABLE: &str = "performance_schema.events_statements_summary_by_digest";

pub(super) async fn read(server: &mut ProposedFeedCheck) -> Result<StatementSurvey, DiscoverError> {
    let state = query_rows(
        server,
        "SELECT @@performance_schema, @@performance_schema_max_digest_length",
    )
    .await?;
    if number(&state, 0, 0) == 0 {
        return Err(DiscoverError::Off);
    }
    let longest = number(&state, 0, 1);
    // MySQL stores a sample text for each; MariaDB does not.
    let sample = query_rows(
        server,
        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'performance_schema' \
         AND TABLE_NAME = 'events_statements_summary_by_digest' AND COLUMN_NAME = 'QUERY_SAMPLE_TEXT'",
    )
    .await?;
    let sample = match number(&sample, 0, 0) {
        0 => "NULL".to_owned(),
        _ => format!("LEFT(QUERY_SAMPLE_TEXT, {LONGEST})"),
    };
    let rows = query_rows(
        server,
        &format!(
            "SELECT SCHEMA_NAME, LEFT(DIGEST_TEXT, {LONGEST}), {sample}, COUNT_STAR, SUM_TIMER_WAIT, SUM_ROWS_EXAMINED, SUM_ROWS_SENT \
             FROM {TABLE} WHERE COUNT_STAR > 0 AND (DIGEST_TEXT LIKE 'SELECT %' OR DIGEST_TEXT LIKE 'EXECUTE SELECT %') \
             ORDER BY SUM_TIMER_WAIT DESC LIMIT {MOST}"
        ),
    )
    .await?;
    let all = query_rows(
        server,
        &format!(
            "SELECT LEFT(MIN(FIRST_SEEN), 19), SUM(IF(DIGEST IS NULL, COUNT_STAR, 0)) FROM {TABLE}"
        ),
    )
    .await?;
    let mut cut = 0;
    let mut seen = Vec::new();
    for row in 0..rows.len() {
        match classify_row(&rows, row, longest) {
            DigestClass::Seen(statement) => seen.push(statement),
            DigestClass::Truncated => cut += 1,
            DigestClass::System => {}
        }
    }
    let mut about = vec![match text(&all, 0, 0) {
        Some(since) => format!("{} SELECTs that differ in more than their values, counted by performance_schema since {since}", rows.len()),
        None => "performance_schema has counted no statement yet: let your app run for a while. If that changes nothing: \
                 UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'statements_digest'"
            .to_owned(),
    }];
    if rows.len() == MOST {
        about.push(format!(
            "those {MOST} were looked at that took the most time"
        ));
    }
    if cut > 0 {
        about.push(format!(
            "{cut} could not be judged: the server keeps {longest} bytes of a statement (performance_schema_max_digest_length and \
             performance_schema_max_sql_text_length, in its settings file). --listen sees whole statements"
        ));
    }
    let lost = number(&all, 0, 1);
    if lost > 0 {
        about.push(format!(
            "{lost} statements were not counted, as there was no room (performance_schema_digests_size)"
        ));
    }
    if server.is_mariadb() {
        about.push(
            "MariaDB does not count statements that are prepared by the protocol, as many drivers do: --listen sees them".to_owned(),
        );
    }
    Ok(StatementSurvey {
        notes: about,
        statements: seen,
    })
}

enum DigestClass {
    Seen(DiscoveredStatement),
    /// Its end is missing.
    Truncated,
    System,
}

fn classify_row(rows: &CatalogueRows, row: usize, longest: u64) -> DigestClass {
    let database = text(rows, row, 0);
    if database
        .as_deref()
        .is_some_and(|name| SYSTEM.contains(&name))
    {
        return DigestClass::System;
    }
    let digest = text(rows, row, 1).unwrap_or_default();
    let fits = |text: &String| text.chars().count() < LONGEST;
    let sample = text(rows, row, 2);
    let sample = sample.filter(|sample_text| {
        !sample_text.is_empty() && !sample_text.ends_with("...") && fits(sample_text)
    });
    // The limit applies to another form of the text, which has about this length.
    let is_cut = !fits(&digest)
        || digest.len() as u64 * 4 >= longest * 3
            && !contains_ignoring_case(digest.as_bytes(), "LIMIT");
    let prepared = digest::is_prepared(&digest);
    let (text, digest) = match sample {
        Some(sample) => (sample, false),
        None if is_cut => return DigestClass::Truncated,
        None => (digest, true),
    };
    DigestClass::Seen(DiscoveredStatement {
        seen: StatementStats {
            database,
            text,
            prepared,
            times: number(rows, row, 3),
            // Picoseconds.
            total: Duration::from_nanos(number(rows, row, 4) / 1_000),
            rows_read: Some(number(rows, row, 5)),
            rows_sent: number(rows, row, 6),
            ..StatementStats::default()
        },
        is_digest: digest,
    })
}

async fn query_rows(
    server: &mut ProposedFeedCheck,
    query: &str,
) -> Result<CatalogueRows, DiscoverError> {
    let answers = server.query(&[query.to_owned()]).await?;
    match answers.into_iter().next() {
        Some(Ok(rows)) => Ok(rows),
        Some(Err(error)) if DENIED.contains(&error.code) => Err(DiscoverError::Denied {
            account: server.account().to_owned(),
        }),
        Some(Err(error)) => Err(DiscoverError::Refused(error.to_string())),
        None => Ok(CatalogueRows::new()),
    }
}

fn text(rows: &CatalogueRows, row: usize, column: usize) -> Option<String> {
    let cell = rows.get(row)?.get(column)?.as_ref()?;
    Some(String::from_utf8_lossy(cell).into_owned())
}

fn number(rows: &CatalogueRows, row: usize, column: usize) -> u64 {
    let text = text(rows, row, column);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
