//! Lists what there is to compare: definitions and feeds of the settings, feeds that Headwater has discovered, and the apps' statements
//! that it remembers.

use serde::Deserialize;

use super::answer::{AnswerRow, ComparableAnswer};
use super::compared_side::{ComparedSide, SideError};
use super::flags::VerifyOptions;
use super::pattern::{canonical_patterns, pattern_of_shown};
use super::reader_scan::{ReaderColumn, ReaderScan};
use super::verify_unit::{
    AuthorListSource, ReaderQuery, SkippedComparison, VerifiedTimeline, VerifyUnit,
};
use headwater_feed::FeedDefinition;
use headwater_proxy::account::AccountError;
use headwater_proxy::feeds;
use headwater_server::config::ServeSettings;
use headwater_sql::hex_literal;
use headwater_timeline::check;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};

/// The most statements compared of one feed in one database; those on which the server spends most come first.
const MOST_STATEMENTS: usize = 20;
/// ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR.
const DENIED: [u16; 3] = [1044, 1142, 1143];

#[derive(Debug, Default)]
pub(super) struct VerifyPlan {
    pub(super) units: Vec<VerifyUnit>,
    /// What cannot be compared at all.
    pub(super) skipped: Vec<SkippedComparison>,
    /// Why Headwater reports nothing about itself; `None`: it does.
    pub(super) explanation_refusal: Option<String>,
}

pub(super) async fn make_plan(
    settings: &ServeSettings,
    options: &VerifyOptions,
    server: &mut ComparedSide,
    headwater: &mut ComparedSide,
) -> Result<VerifyPlan, super::VerifyError> {
    let mut plan = VerifyPlan::default();
    for definition in &settings.definitions {
        if !options.includes(&definition.name) {
            continue;
        }
        let query = check::databases_query(definition, settings.limits.databases);
        for database in databases(server, definition.database.as_ref(), &query).await? {
            let unit = timeline(definition, &database, options, server).await;
            let title = format!("definition {}, database {database}", definition.name);
            plan.add(title, unit)?;
        }
    }
    let statements = match query_rows(headwater, "SHOW HEADWATER STATEMENTS").await? {
        Ok(rows) => rows,
        Err(why) => {
            plan.explanation_refusal = Some(why);
            Vec::new()
        }
    };
    let feeds_shown = match plan.explanation_refusal {
        None => query_rows(headwater, "SHOW HEADWATER FEEDS").await?,
        Some(_) => Ok(Vec::new()),
    };
    let feeds_shown = feeds_shown.unwrap_or_default();
    let found_ones = feeds_shown.iter().filter_map(discovered_definition);
    let feeds: Vec<FeedDefinition> = settings.feeds.iter().cloned().chain(found_ones).collect();
    for definition in &feeds {
        if !options.includes(&definition.name) {
            continue;
        }
        let query = feeds::databases_query(definition, settings.limits.databases);
        for database in databases(server, definition.database.as_ref(), &query).await? {
            let of_apps = statements.iter().filter_map(|row| {
                let is = |at: usize, name: &str| text(row, at).is_some_and(|cell| cell == name);
                (is(1, &definition.name) && is(2, &database)).then(|| text(row, 0))?
            });
            let of_apps: Vec<String> = of_apps.collect();
            let unit = feed(definition, &database, of_apps, options, server).await;
            let title = format!("feed {}, database {database}", definition.name);
            plan.add(title, unit)?;
        }
    }
    Ok(plan)
}

impl VerifyPlan {
    /// Adds a unit. A server error skips only this one.
    fn add(
        &mut self,
        title: String,
        unit: Result<VerifyUnit, AccountError>,
    ) -> Result<(), super::VerifyError> {
        match unit {
            Ok(unit) => self.units.push(unit),
            Err(AccountError::Server(error)) => self.skipped.push(SkippedComparison {
                what: title,
                fails: DENIED.contains(&error.code),
                why: format!("the server refuses the service account: {error}"),
            }),
            Err(source) => return Err(super::VerifyError::Asking { source }),
        }
        Ok(())
    }
}

/// The named database, or those that the query lists.
async fn databases(
    server: &mut ComparedSide,
    named: Option<&String>,
    query: &str,
) -> Result<Vec<String>, super::VerifyError> {
    if let Some(database) = named {
        return Ok(vec![database.clone()]);
    }
    let rows = server.rows(query).await;
    let rows = rows.map_err(|source| super::VerifyError::Asking { source })?;
    let names = rows
        .iter()
        .filter_map(|row| row.cell(0).map(<[u8]>::to_vec));
    Ok(names
        .filter_map(|name| String::from_utf8(name).ok())
        .collect())
}

async fn timeline(
    definition: &TimelineDefinition,
    database: &str,
    options: &VerifyOptions,
    server: &mut ComparedSide,
) -> Result<VerifyUnit, AccountError> {
    let columns = format!(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        hex_literal(database),
        hex_literal(&definition.message.table)
    );
    let rows = server.rows(&columns).await?;
    let columns = rows.iter().filter_map(|row| row.cell(0));
    let columns = columns.map(|name| String::from_utf8_lossy(name).into_owned());
    let timeline = VerifiedTimeline {
        definition: definition.clone(),
        columns: columns.collect(),
    };
    let column = ReaderColumn {
        database: database.to_owned(),
        table: definition.follower.table.clone(),
        name: definition.follower.reader.clone(),
    };
    let scan = ReaderScan::begin(column.clone(), &options.readers, server).await?;
    let queries = ProcedureForm::ALL.map(|form| ReaderQuery::call(&timeline, form));
    let title = format!("definition {}, database {database}", definition.name);
    let authors = AuthorListSource::None;
    Ok(VerifyUnit::of(
        title,
        scan,
        &column,
        authors,
        queries.into(),
    ))
}

/// The apps' statements into which a reader's values can be filled; if there are none, those of the definition.
async fn feed(
    definition: &FeedDefinition,
    database: &str,
    of_apps: Vec<String>,
    options: &VerifyOptions,
    server: &mut ComparedSide,
) -> Result<VerifyUnit, AccountError> {
    let (mut patterns, mut left_out) = (Vec::new(), Vec::new());
    for shown in of_apps {
        match pattern_of_shown(&shown, definition) {
            Ok(pattern) if patterns.len() < MOST_STATEMENTS => patterns.push(pattern),
            Ok(_) => left_out.push(SkippedComparison {
                what: shown,
                why: format!("{MOST_STATEMENTS} others are compared"),
                fails: false,
            }),
            Err(why) => left_out.push(SkippedComparison {
                what: shown,
                why: why.to_owned(),
                fails: false,
            }),
        }
    }
    if patterns.is_empty() {
        patterns = canonical_patterns(definition);
    }
    let (table, name) = match &definition.follow {
        Some(follow) => (&follow.table, &follow.reader),
        None => (&definition.message.table, &definition.message.author),
    };
    let column = ReaderColumn {
        database: database.to_owned(),
        table: table.clone(),
        name: name.clone(),
    };
    let scan = ReaderScan::begin(column.clone(), &options.readers, server).await?;
    let lists = patterns.iter().any(|pattern| pattern.lists_authors());
    let authors = match (&definition.follow, lists) {
        (_, false) => AuthorListSource::None,
        (Some(follow), true) => AuthorListSource::Followed {
            by: column.clone(),
            author: follow.author.clone(),
        },
        (None, true) => AuthorListSource::From(column.clone()),
    };
    let title = format!("feed {}, database {database}", definition.name);
    let queries = patterns.into_iter();
    let id = &definition.message.id;
    let queries = queries
        .map(|pattern| ReaderQuery::select(pattern, id))
        .collect();
    let mut unit = VerifyUnit::of(title, scan, &column, authors, queries);
    unit.skipped = left_out;
    Ok(unit)
}

/// The rows of one of Headwater's SHOW statements, or why it refuses.
async fn query_rows(
    headwater: &mut ComparedSide,
    query: &str,
) -> Result<Result<Vec<AnswerRow>, String>, SideError> {
    Ok(match headwater.query_one(query).await? {
        ComparableAnswer::Rows { rows, .. } => Ok(rows),
        other => Err(other.summary()),
    })
}

fn text(row: &AnswerRow, at: usize) -> Option<String> {
    let cell = row.get(at)?.clone()?;
    String::from_utf8(cell).ok()
}

/// The definition of a discovered feed that is served, from its row of SHOW HEADWATER FEEDS.
fn discovered_definition(row: &AnswerRow) -> Option<FeedDefinition> {
    #[derive(Deserialize)]
    struct ShownFeedSections {
        feed: Vec<FeedDefinition>,
    }
    if text(row, 1)? != "feed (found)" {
        return None;
    }
    let sections: ShownFeedSections = toml::from_str(&text(row, 7)?).ok()?;
    let mut definition = sections.feed.into_iter().next()?;
    definition.database = Some(text(row, 2)?);
    Some(definition)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_that_was_found_is_read_from_its_section() {
        let section =
            "[[feed]]\nname = \"posts\"\n[feed.message]\ntable = \"posts\"\nauthor = \"user_id\"\n";
        let row = |kind: &str| -> AnswerRow {
            let cells = ["posts", kind, "app", "memory", "", "1", "1", section];
            cells
                .iter()
                .map(|cell| Some(cell.as_bytes().to_vec()))
                .collect()
        };
        let found = discovered_definition(&row("feed (found)")).unwrap();
        assert_eq!(found.message.table, "posts");
        assert_eq!(found.database.as_deref(), Some("app"));
        assert_eq!(discovered_definition(&row("feed")), None);
    }
}
