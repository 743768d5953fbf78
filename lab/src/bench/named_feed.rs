//! `--feed NAME`: measures a feed of the settings file directly and through Headwater.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::check::BenchDifferences;
use super::client::BenchClient;
use super::client_pool::{ClientPool, ProxyReport};
use super::data::shuffle;
use super::depth::PageDepth;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::prepared_task::PreparedTask;
use super::round_runner::{RoundRunner, round_count};
use super::shapes::ShapeFigures;
use super::warmup::warm_up;
use super::{BenchError, StopSignal};
use crate::query_path::{ConnectionRoute, QueryForm, QueryPath};
use headwater_feed::FeedDefinition;
use headwater_server::config::ServeSettings;
use headwater_session::feed_decision::FeedRelayReason;
use headwater_sql::{push_list, quoted};
use headwater_tools::check::{ABOVE, ProposedFeedCheck};

const QUERY_PATHS: [QueryPath; 2] = [
    QueryPath::new(ConnectionRoute::Direct, QueryForm::Own),
    QueryPath::new(ConnectionRoute::Headwater, QueryForm::Own),
];
/// Authors in a list, if the feed has no table of follows.
const LIST_AUTHORS: usize = 50;
/// Readers or authors that are read at most.
const MAX_READERS: usize = 100_000;
/// Time limit for warming up.
const WARMUP_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit for the check of a feed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between two checks whether it is served.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Serialize)]
struct FeedFigures {
    feed: String,
    database: String,
    /// The first of the statements.
    statement: String,
    /// The number of statements.
    statements: usize,
    reconnect: bool,
    /// Time until memory was filled and the cost of each strategy was known, in seconds.
    warmed_s: f64,
    /// By number of connections.
    shapes: Vec<ShapeFigures>,
    differences: u64,
    counts: Option<String>,
}

/// Measures the feed, and prints the figures.
///
/// # Errors
/// Fails if the settings have no such feed or a step fails; after everything is printed also if an answer differs from the server's.
pub async fn run(mut flags: BenchFlags) -> Result<(), BenchError> {
    let (feed, settings) = load_feed(&mut flags)?;
    if let Some(database) = &feed.database {
        flags.database.clone_from(database);
    }
    if flags.proxy.is_none() {
        check_feed(&settings, &feed, &flags.database).await?;
    }
    // Also makes the server cache the password.
    let ready = super::data::connect(&flags, &flags.database).await;
    let ready = match ready {
        Ok(conn) => conn.disconnect().await,
        Err(error) => Err(error),
    };
    ready.map_err(|source| super::prepare_error(&flags, source))?;
    let json = flags.json.clone();
    let figures = super::run_interruptible(move |stop| measure(&flags, &feed, stop)).await?;
    print!("{}", render(&figures));
    if let Some(path) = &json {
        super::write_json(path, &figures)?;
    }
    match figures.differences {
        0 => Ok(()),
        count => Err(BenchError::Differences { count }),
    }
}

/// Looks up the feed in the settings.
fn load_feed(flags: &mut BenchFlags) -> Result<(FeedDefinition, ServeSettings), BenchError> {
    let name = flags.named_feed().unwrap_or_default().to_owned();
    let settings = super::load_settings(flags)?;
    let configured = settings.feeds.iter().find(|feed| feed.name == name);
    if let Some(configured) = configured {
        return Ok((configured.clone(), settings));
    }
    let known: Vec<&str> = settings
        .feeds
        .iter()
        .map(|feed| feed.name.as_str())
        .collect();
    Err(BenchError::NoFeed {
        name,
        known: match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        },
    })
}

/// Checks the feed as `headwater check` does: a feed that is not served is not measured.
async fn check_feed(
    settings: &ServeSettings,
    feed: &FeedDefinition,
    database: &str,
) -> Result<(), BenchError> {
    let name = feed.name.clone();
    let Some(service) = &settings.service else {
        let why = NO_ACCOUNT.to_owned();
        return Err(BenchError::NotServed { name, why });
    };
    let check = match ProposedFeedCheck::connect(settings, service).await {
        Ok(check) => check,
        Err(source) => return Err(BenchError::Unchecked { name, source }),
    };
    let of_feed = check.feed_obstacles(feed, database).await;
    if of_feed.is_empty() {
        return Ok(());
    }
    let remaining = of_feed.into_iter().filter(|line| !line.ends_with(ABOVE));
    let why: Vec<String> = check
        .common_obstacles()
        .into_iter()
        .chain(remaining)
        .collect();
    let why = why.join("; ");
    Err(BenchError::NotServed { name, why })
}

/// Cached timelines need the service account of the settings.
const NO_ACCOUNT: &str = "there is no service account: name it (--service-user, HEADWATER_SERVICE_USER, or [service] in the file of --config), and \
                          its password (HEADWATER_SERVICE_PASSWORD)";

/// The error if, after the time limit, the measured Headwater still answers none of the feed's statements from memory. `None` if the
/// account may not ask for the explanation.
fn not_served_error(
    name: &str,
    pool: &mut ClientPool,
    statement: &str,
    stop: &StopSignal,
) -> Option<BenchError> {
    let (clients, _) = pool.clients(ConnectionRoute::Headwater, 1);
    let client = clients.first_mut()?;
    let question = format!("SHOW HEADWATER WHY FOR {statement}");
    let until = Instant::now() + CHECK_TIMEOUT;
    loop {
        let explanation = match client.query_texts(&question) {
            Ok(explanation) => explanation,
            Err(error) => {
                eprintln!("whether the feed is served cannot be asked (SHOW HEADWATER: {error})");
                return None;
            }
        };
        let why = blocking_reason(&explanation)?;
        if Instant::now() > until || stop.is_requested() {
            let name = name.to_owned();
            return Some(BenchError::NotServed { name, why });
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// The reason, from the explanation's row, that excludes every statement of the feed; `None` if there is none.
fn blocking_reason(explanation: &[String]) -> Option<String> {
    let [_, reason, means, cure, ..] = explanation else {
        return None;
    };
    let of_feed = |why: &FeedRelayReason| why.is_of_feed() || *why == FeedRelayReason::Suggested;
    let mut bars = FeedRelayReason::all()
        .filter(of_feed)
        .map(FeedRelayReason::label);
    let bars = reason == "no_feed" || bars.any(|label| label == reason);
    bars.then(|| format!("{means} ({reason}): {cure}"))
}

fn measure(
    flags: &BenchFlags,
    feed: &FeedDefinition,
    stop: &StopSignal,
) -> Result<FeedFigures, BenchError> {
    let account = BenchAccount::of(flags);
    let at = BenchError::for_address(&flags.upstream);
    let most = flags.most_connections();
    let section = feed.section();
    let mut pool = ClientPool::connect(
        flags,
        &account,
        most,
        &[ConnectionRoute::Headwater],
        Some(&section),
    )?;
    if !pool.wait_for_log(
        &format!("feed {} in database {}: ", feed.name, flags.database),
        CHECK_TIMEOUT,
    ) {
        eprintln!(
            "the feed's check has not ended after {} s: it is measured as it is",
            CHECK_TIMEOUT.as_secs()
        );
    }
    let statements = statements(flags, feed, &mut pool.direct)?;
    let mut prepared_tasks = Vec::with_capacity(statements.len());
    for (reader, statement) in &statements {
        prepared_tasks
            .push(PreparedTask::for_statement(*reader, statement, &mut pool.direct).map_err(&at)?);
    }
    eprintln!("warming");
    let warmed = warm_up(&mut pool, &prepared_tasks, WARMUP_TIMEOUT, stop)?;
    if let Some((_, statement)) = statements.first()
        && let Some(why) = not_served_error(&feed.name, &mut pool, statement, stop)
    {
        return Err(why);
    }
    let turns = QUERY_PATHS.len() * flags.connections.len();
    let mut runner = RoundRunner::new(turns, round_count(flags), stop);
    for connections in &flags.connections {
        let connections = usize::from(*connections);
        runner.measure_cells(
            PageDepth::NEWEST,
            &QUERY_PATHS,
            connections,
            &mut pool,
            &mut prepared_tasks,
        )?;
    }
    let (cells, differences) = runner.finish();
    let BenchDifferences { answers, .. } = differences;
    let ProxyReport { counts, .. } = pool.close();
    let shapes = cells.chunks(QUERY_PATHS.len());
    let shapes = shapes.map(|pair| ShapeFigures::from_cells(feed.name.clone(), pair));
    Ok(FeedFigures {
        feed: feed.name.clone(),
        database: flags.database.clone(),
        statement: statements
            .first()
            .map(|(_, text)| text.clone())
            .unwrap_or_default(),
        statements: statements.len(),
        reconnect: flags.reconnect,
        warmed_s: warmed.as_secs_f64(),
        shapes: shapes.collect(),
        differences: answers,
        counts,
    })
}

/// The statements, and the reader of each.
fn statements(
    flags: &BenchFlags,
    feed: &FeedDefinition,
    direct: &mut BenchClient,
) -> Result<Vec<(u64, String)>, BenchError> {
    let at = BenchError::for_address(&flags.upstream);
    let text = flags
        .statement
        .clone()
        .unwrap_or_else(|| newest_page_select(feed));
    let (table, column) = match &feed.follow {
        Some(follow) => (&follow.table, &follow.reader),
        None => (&feed.message.table, &feed.message.author),
    };
    let (quoted_table, quoted_column) = (quoted(table), quoted(column));
    let mut all = direct
        .query_numbers(&format!(
            "SELECT DISTINCT {quoted_column} FROM {quoted_table} WHERE {quoted_column} IS NOT NULL LIMIT {MAX_READERS}"
        ))
        .map_err(&at)?;
    if all.is_empty() {
        return Err(BenchError::NoRows {
            name: feed.name.clone(),
            table: table.clone(),
            database: flags.database.clone(),
        });
    }
    shuffle(&mut all, flags.seed);
    let mut statements = Vec::new();
    for (index, reader) in all.iter().take(flags.readers).enumerate() {
        let mut list = String::new();
        if text.contains("{authors}") {
            let authors = match &feed.follow {
                Some(follow) => direct
                    .query_numbers(&format!(
                        "SELECT {} FROM {quoted_table} WHERE {quoted_column} = {reader}",
                        quoted(&follow.author)
                    ))
                    .map_err(&at)?,
                None => all
                    .iter()
                    .cycle()
                    .skip(index)
                    .take(LIST_AUTHORS.min(all.len()))
                    .copied()
                    .collect(),
            };
            push_list(&mut list, &authors);
        }
        let statement = text
            .replace("{reader}", &reader.to_string())
            .replace("{authors}", &list);
        statements.push((*reader, statement));
    }
    Ok(statements)
}

/// The newest page, if no statement is given.
fn newest_page_select(feed: &FeedDefinition) -> String {
    let message = &feed.message;
    let message_column = |column: &str| format!("m.{}", quoted(column));
    let id = message_column(&message.id);
    let order = match feed.key() {
        Some(key) => format!("{} DESC, {id} DESC", message_column(key)),
        None => format!("{id} DESC"),
    };
    let (table, author) = (quoted(&message.table), message_column(&message.author));
    let whose = match &feed.follow {
        Some(follow) => format!(
            "JOIN {} f ON f.{} = {author} WHERE f.{} = {{reader}}",
            quoted(&follow.table),
            quoted(&follow.author),
            quoted(&follow.reader)
        ),
        None => format!("WHERE {author} IN ({{authors}})"),
    };
    format!("SELECT m.* FROM {table} m {whose} ORDER BY {order} LIMIT 20")
}

fn render(figures: &FeedFigures) -> String {
    let mut text = String::new();
    let FeedFigures {
        feed,
        database,
        statement,
        statements,
        warmed_s,
        ..
    } = figures;
    let anew = match figures.reconnect {
        true => ", each on a connection of its own",
        false => "",
    };
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "Feed {feed} in database {database}: {statements} pages{anew}, such as\n    {statement}"
    );
    let _ = writeln!(text, "Warmed for {warmed_s:.1} s.\n");
    let _ = writeln!(
        text,
        "{:>5}{:>12}{:>12}{:>9}{:>14}{:>14}{:>14}{:>14}",
        "conn.",
        "directly/s",
        "Headwater/s",
        "ratio",
        "directly p50",
        "p99 us",
        "Headwater p50",
        "p99 us"
    );
    for shape in &figures.shapes {
        let (direct, headwater) = (&shape.direct, &shape.headwater);
        let _ = writeln!(
            text,
            "{:>5}{:>12.0}{:>12.0}{:>9}{:>14}{:>14}{:>14}{:>14}",
            shape.connections,
            direct.rate,
            headwater.rate,
            shape
                .ratio()
                .map_or("-".into(), |ratio| format!("{ratio:.2}")),
            direct.p50_us,
            direct.p99_us,
            headwater.p50_us,
            headwater.p99_us
        );
    }
    if let Some(counts) = &figures.counts {
        let _ = writeln!(text, "\nHeadwater's {counts}");
    }
    let _ = writeln!(
        text,
        "{} answers differ from the server's.",
        figures.differences
    );
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_without_a_statement_is_queried_by_its_columns() {
        let with = |order: &str, follow: &str| {
            let text = format!(
                "name = 'home'\n[message]\ntable = 'posts'\nauthor = 'user_id'\n{order}\n{follow}"
            );
            newest_page_select(&toml::from_str(&text).unwrap())
        };
        assert_eq!(
            with(
                "order = ['at', 'id']",
                "[follow]\ntable = 'f'\nreader = 'r'\nauthor = 'a'"
            ),
            "SELECT m.* FROM `posts` m JOIN `f` f ON f.`a` = m.`user_id` WHERE f.`r` = {reader} \
             ORDER BY m.`at` DESC, m.`id` DESC LIMIT 20"
        );
        assert_eq!(
            with("", ""),
            "SELECT m.* FROM `posts` m WHERE m.`user_id` IN ({authors}) ORDER BY m.`id` DESC LIMIT 20"
        );
    }
}
