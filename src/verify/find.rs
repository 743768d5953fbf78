//! Finds what there is to compare: definitions and feeds of the settings, feeds that Headwater has found by itself, and the statements
//! of apps that it remembers.

use serde::Deserialize;

use super::answer::{Answer, Cells};
use super::flags::Options;
use super::pattern::{canonical, filled};
use super::readers::{Column, Walk};
use super::side::{Lost, Side};
use super::unit::{Authors, LeftOut, Question, Timeline, Unit};
use crate::account::AccountError;
use crate::config::Settings;
use crate::feed::FeedDefinition;
use crate::feeds;
use crate::sql::hex;
use crate::timeline::check;
use crate::timeline::definition::{Definition, Form};

/// Statements of one feed in one database that are compared, those first on which the server spends most.
const MOST_STATEMENTS: usize = 20;
/// ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR.
const DENIED: [u16; 3] = [1044, 1142, 1143];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) units: Vec<Unit>,
    /// What cannot be compared at all.
    pub(super) left_out: Vec<LeftOut>,
    /// Why Headwater tells nothing of itself; `None`: it does.
    pub(super) silent: Option<String>,
}

/// Finds all of it.
pub(super) async fn find(
    settings: &Settings,
    options: &Options,
    server: &mut Side,
    headwater: &mut Side,
) -> Result<Found, super::VerifyError> {
    let mut found = Found::default();
    for definition in &settings.definitions {
        if !options.wants(&definition.name) {
            continue;
        }
        let query = check::databases_query(definition, settings.limits.databases);
        for database in databases(server, definition.database.as_ref(), &query).await? {
            let unit = timeline(definition, &database, options, server).await;
            let title = format!("definition {}, database {database}", definition.name);
            found.add(title, unit)?;
        }
    }
    let met = match told(headwater, "SHOW HEADWATER STATEMENTS").await? {
        Ok(rows) => rows,
        Err(why) => {
            found.silent = Some(why);
            Vec::new()
        }
    };
    let own = match found.silent {
        None => told(headwater, "SHOW HEADWATER FEEDS").await?,
        Some(_) => Ok(Vec::new()),
    };
    let own = own.unwrap_or_default();
    let found_ones = own.iter().filter_map(found_by_itself);
    let feeds: Vec<FeedDefinition> = settings.feeds.iter().cloned().chain(found_ones).collect();
    for definition in &feeds {
        if !options.wants(&definition.name) {
            continue;
        }
        let query = feeds::databases_query(definition, settings.limits.databases);
        for database in databases(server, definition.database.as_ref(), &query).await? {
            let of_apps = met.iter().filter_map(|row| {
                let is = |at: usize, name: &str| text(row, at).is_some_and(|own| own == name);
                (is(1, &definition.name) && is(2, &database)).then(|| text(row, 0))?
            });
            let of_apps: Vec<String> = of_apps.collect();
            let unit = feed(definition, &database, of_apps, options, server).await;
            let title = format!("feed {}, database {database}", definition.name);
            found.add(title, unit)?;
        }
    }
    Ok(found)
}

impl Found {
    /// What the server refuses to tell of one is no reason to leave the others.
    fn add(
        &mut self,
        title: String,
        unit: Result<Unit, AccountError>,
    ) -> Result<(), super::VerifyError> {
        match unit {
            Ok(unit) => self.units.push(unit),
            Err(AccountError::Server(error)) => self.left_out.push(LeftOut {
                what: title,
                fails: DENIED.contains(&error.code),
                why: format!("the server refuses the service account: {error}"),
            }),
            Err(source) => return Err(super::VerifyError::Asking { source }),
        }
        Ok(())
    }
}

/// The database that is named, or else those that the query lists.
async fn databases(
    server: &mut Side,
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
    definition: &Definition,
    database: &str,
    options: &Options,
    server: &mut Side,
) -> Result<Unit, AccountError> {
    let columns = format!(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        hex(database),
        hex(&definition.message.table)
    );
    let rows = server.rows(&columns).await?;
    let columns = rows.iter().filter_map(|row| row.cell(0));
    let columns = columns.map(|name| String::from_utf8_lossy(name).into_owned());
    let timeline = Timeline {
        definition: definition.clone(),
        columns: columns.collect(),
    };
    let column = Column {
        database: database.to_owned(),
        table: definition.follower.table.clone(),
        name: definition.follower.reader.clone(),
    };
    let walk = Walk::begin(column.clone(), &options.readers, server).await?;
    let questions = Form::ALL.map(|form| Question::call(&timeline, form));
    let title = format!("definition {}, database {database}", definition.name);
    let authors = Authors::None;
    Ok(Unit::of(title, walk, &column, authors, questions.into()))
}

/// The statements of apps that a reader's values can be put into; where there are none, those that the definition makes.
async fn feed(
    definition: &FeedDefinition,
    database: &str,
    of_apps: Vec<String>,
    options: &Options,
    server: &mut Side,
) -> Result<Unit, AccountError> {
    let (mut patterns, mut left_out) = (Vec::new(), Vec::new());
    for shown in of_apps {
        match filled(&shown, definition) {
            Ok(pattern) if patterns.len() < MOST_STATEMENTS => patterns.push(pattern),
            Ok(_) => left_out.push(LeftOut {
                what: shown,
                why: format!("{MOST_STATEMENTS} others are compared"),
                fails: false,
            }),
            Err(why) => left_out.push(LeftOut {
                what: shown,
                why: why.to_owned(),
                fails: false,
            }),
        }
    }
    if patterns.is_empty() {
        patterns = canonical(definition);
    }
    let (table, name) = match &definition.follow {
        Some(follow) => (&follow.table, &follow.reader),
        None => (&definition.message.table, &definition.message.author),
    };
    let column = Column {
        database: database.to_owned(),
        table: table.clone(),
        name: name.clone(),
    };
    let walk = Walk::begin(column.clone(), &options.readers, server).await?;
    let lists = patterns.iter().any(|pattern| pattern.lists_authors());
    let authors = match (&definition.follow, lists) {
        (_, false) => Authors::None,
        (Some(follow), true) => Authors::Followed {
            by: column.clone(),
            author: follow.author.clone(),
        },
        (None, true) => Authors::From(column.clone()),
    };
    let title = format!("feed {}, database {database}", definition.name);
    let questions = patterns.into_iter();
    let id = &definition.message.id;
    let questions = questions
        .map(|pattern| Question::select(pattern, id))
        .collect();
    let mut unit = Unit::of(title, walk, &column, authors, questions);
    unit.left_out = left_out;
    Ok(unit)
}

/// The rows of a table that Headwater tells of itself, or why it does not.
async fn told(headwater: &mut Side, question: &str) -> Result<Result<Vec<Cells>, String>, Lost> {
    Ok(match headwater.ask_one(question).await? {
        Answer::Rows { rows, .. } => Ok(rows),
        other => Err(other.summary()),
    })
}

fn text(row: &Cells, at: usize) -> Option<String> {
    let cell = row.get(at)?.clone()?;
    String::from_utf8(cell).ok()
}

/// The definition of a feed that nobody named and that is served, of its row in SHOW HEADWATER FEEDS.
fn found_by_itself(row: &Cells) -> Option<FeedDefinition> {
    #[derive(Deserialize)]
    struct Sections {
        feed: Vec<FeedDefinition>,
    }
    if text(row, 1)? != "feed (found)" {
        return None;
    }
    let sections: Sections = toml::from_str(&text(row, 7)?).ok()?;
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
        let row = |kind: &str| -> Cells {
            let cells = ["posts", kind, "app", "memory", "", "1", "1", section];
            cells
                .iter()
                .map(|cell| Some(cell.as_bytes().to_vec()))
                .collect()
        };
        let found = found_by_itself(&row("feed (found)")).unwrap();
        assert_eq!(found.message.table, "posts");
        assert_eq!(found.database.as_deref(), Some("app"));
        assert_eq!(found_by_itself(&row("feed")), None);
    }
}
