//! `--request FILE`: plays an app's request, statement by statement, directly and through Headwater.

pub mod file;
pub mod play;
pub mod resolution;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use serde::Serialize;

use super::client_pool::{ClientPool, ProxyReport};
use super::depth::PageDepth;
use super::figures::LatencyFigures;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::measure::{ConnectionTally, SLICE_TIME, new_histogram};
use super::round_runner::round_count;
use super::{BenchError, StopSignal};
use crate::query_path::{ConnectionRoute, PAGE_ROWS};
use file::{RequestFile, RequestStep};
use headwater_sql::quoted;
use play::{ExpectedRequest, RequestTally, play_slice, wrong_answers};
use resolution::{ReaderRequest, resolve};

const ROUTES: [ConnectionRoute; 2] = [ConnectionRoute::Direct, ConnectionRoute::Headwater];
/// Time limit for warming up.
const WARMUP_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for the check of a feed.
const SERVED_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between two looks at the log.
const SERVED_INTERVAL: Duration = Duration::from_millis(200);
/// How often each request is played before it is measured.
const WARMUP_ROUNDS: usize = 6;
/// Differences that are printed.
const MAX_PRINTED: usize = 5;
/// A statement's length in the table.
const SHOWN_CHARS: usize = 60;

/// The figures of a request.
#[derive(Debug, Serialize)]
struct RequestFigures {
    file: String,
    database: String,
    readers: usize,
    /// By page and number of connections.
    runs: Vec<RequestRun>,
    differences: u64,
    counts: Option<String>,
}

#[derive(Debug, Serialize)]
struct RequestRun {
    page: PageDepth,
    connections: usize,
    direct: RouteFigures,
    headwater: RouteFigures,
}

/// What one route took.
#[derive(Debug, Default, Serialize)]
struct RouteFigures {
    /// Whole requests.
    requests: LatencyFigures,
    lines: Vec<LineFigures>,
}

/// What one line of the request took.
#[derive(Debug, Serialize)]
struct LineFigures {
    line: String,
    /// Its mean time, in microseconds.
    mean_us: f64,
    p50_us: u64,
    p99_us: u64,
    /// Its part of the whole request's time.
    share: f64,
}

/// Measures the request, and prints the figures.
///
/// # Errors
/// Fails if the file cannot be read or a step fails; after everything is printed also if an answer differs from the server's.
pub async fn run(flags: BenchFlags, path: &Path) -> Result<(), BenchError> {
    let text = std::fs::read_to_string(path).map_err(|source| BenchError::Read {
        path: path.to_owned(),
        source,
    })?;
    let file = RequestFile::parse(&text).map_err(|source| BenchError::RequestFile {
        path: path.to_owned(),
        source,
    })?;
    let mut flags = flags;
    let settings = super::load_settings(&mut flags)?;
    let followed = settings.feeds.iter().find_map(|feed| {
        let follow = feed.follow.as_ref()?;
        let (table, reader) = (quoted(&follow.table), quoted(&follow.reader));
        Some(format!(
            "SELECT DISTINCT {reader} FROM {table} WHERE {reader} IS NOT NULL"
        ))
    });
    let readers = file.readers.clone().or(followed);
    let readers = readers.ok_or_else(|| BenchError::NoRequestReaders {
        select: String::new(),
    })?;
    // Without a feed's section, Headwater finds feeds itself.
    let sections = match settings.feeds.is_empty() {
        true => "[feeds]\nauto = true\n".to_owned(),
        false => settings.feeds.iter().map(|feed| feed.section()).collect(),
    };
    let mut pages = Vec::new();
    for page in &flags.pages {
        let PageDepth::Page(number) = page else {
            return Err(BenchError::RandomRequest);
        };
        let rows = u64::from(number.saturating_sub(1)) * u64::from(PAGE_ROWS);
        pages.push((*page, resolve(&flags, &file, &readers, rows).await?));
    }
    let (json, count) = (
        flags.json.clone(),
        pages.first().map_or(0, |(_, all)| all.len()),
    );
    let (runs, differences, counts) = super::run_interruptible({
        let (flags, file) = (flags.clone(), file.clone());
        move |stop| measure(&flags, &file, pages, &sections, stop)
    })
    .await?;
    let figures = RequestFigures {
        file: path.display().to_string(),
        database: flags.database.clone(),
        readers: count,
        runs,
        differences,
        counts,
    };
    print!("{}", render(&figures));
    if let Some(path) = &json {
        super::write_json(path, &figures)?;
    }
    match figures.differences {
        0 => Ok(()),
        count => Err(BenchError::Differences { count }),
    }
}

type Measured = (Vec<RequestRun>, u64, Option<String>);

fn measure(
    flags: &BenchFlags,
    file: &RequestFile,
    pages: Vec<(PageDepth, Vec<ReaderRequest>)>,
    sections: &str,
    stop: &StopSignal,
) -> Result<Measured, BenchError> {
    let account = BenchAccount::of(flags);
    let most = flags.most_connections();
    let mut pool = ClientPool::connect(
        flags,
        &account,
        most,
        &[ConnectionRoute::Headwater],
        Some(sections),
    )?;
    let at = BenchError::for_address(&flags.upstream);
    let progress = ProgressBar::new_spinner();
    let (mut runs, mut differences) = (Vec::new(), 0);
    for (page, requests) in pages {
        let mut expected = Vec::with_capacity(requests.len());
        for request in requests {
            expected.push(ExpectedRequest::new(request, &mut pool.direct).map_err(&at)?);
        }
        progress.set_message(format!("{page}: warming"));
        if runs.is_empty() && !becomes_served(&mut pool, &expected, stop)? {
            let why = "Headwater serves no feed of this request. Ask it why: SHOW HEADWATER WHY FOR SELECT ... (docs/feeds.md)";
            progress.suspend(|| eprintln!("{why}"));
        }
        warm_up(&mut pool, &expected, stop)?;
        for connections in &flags.connections {
            let connections = usize::from(*connections);
            progress.set_message(format!("{page}, {connections} connections"));
            let (run, wrong) = measure_run(
                (page, connections, round_count(flags)),
                file,
                &mut expected,
                &mut pool,
                stop,
            )?;
            for answer in wrong.iter().take(MAX_PRINTED) {
                progress.suspend(|| eprintln!("DIFFERENT: {answer}"));
            }
            differences += wrong.len() as u64;
            runs.push(run);
        }
    }
    progress.finish_and_clear();
    let ProxyReport { counts, .. } = pool.close();
    Ok((runs, differences, counts))
}

/// Plays the first request until the log says that a feed is served; false if none is in time.
fn becomes_served(
    pool: &mut ClientPool,
    requests: &[ExpectedRequest],
    stop: &StopSignal,
) -> Result<bool, BenchError> {
    let until = Instant::now() + SERVED_TIMEOUT;
    while Instant::now() < until {
        // A feed that Headwater finds itself is checked because of its statements.
        warm_up(pool, requests.get(..1).unwrap_or_default(), stop)?;
        if pool.wait_for_log(": served", SERVED_INTERVAL) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Plays each request through Headwater, so that memory is filled and the cost of each statement is known.
fn warm_up(
    pool: &mut ClientPool,
    requests: &[ExpectedRequest],
    stop: &StopSignal,
) -> Result<(), BenchError> {
    let begun = Instant::now();
    let at = BenchError::for_address(pool.address(ConnectionRoute::Headwater));
    let (clients, _) = pool.clients(ConnectionRoute::Headwater, 1);
    for request in (0..WARMUP_ROUNDS).flat_map(|_| requests) {
        let Some(client) = clients
            .first_mut()
            .filter(|_| begun.elapsed() < WARMUP_TIMEOUT)
        else {
            break;
        };
        if stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        request.play(client, |_, _, _| ()).map_err(&at)?;
    }
    Ok(())
}

/// Both routes in turn, with so many connections; returns the answers that are not the server's, too.
fn measure_run(
    (page, connections, rounds): (PageDepth, usize, u32),
    file: &RequestFile,
    requests: &mut [ExpectedRequest],
    pool: &mut ClientPool,
    stop: &StopSignal,
) -> Result<(RequestRun, Vec<String>), BenchError> {
    let lines = file.steps.len();
    let mut tallies = [(); 2].map(|()| Vec::new());
    for tally in &mut tallies {
        *tally = RequestTally::for_connections(connections, requests.len(), lines)?;
    }
    let mut wrong = Vec::new();
    // Round 0 warms up and does not count.
    for round in 0..=rounds {
        for (route, tallies) in ROUTES.iter().zip(&mut tallies) {
            if stop.is_requested() {
                return Err(BenchError::Stopped);
            }
            let at = BenchError::for_address(pool.address(*route));
            let (clients, direct) = pool.clients(*route, connections);
            let noted = play_slice(SLICE_TIME, clients, tallies, requests, stop).map_err(&at)?;
            wrong.extend(wrong_answers(noted, requests, direct).map_err(&at)?);
            if round == 0 {
                tallies.iter_mut().for_each(RequestTally::reset);
            }
        }
    }
    let [direct, headwater] = tallies;
    let run = RequestRun {
        page,
        connections,
        direct: route_figures(file, direct)?,
        headwater: route_figures(file, headwater)?,
    };
    Ok((run, wrong))
}

#[allow(clippy::cast_precision_loss, reason = "means of times")]
fn route_figures(
    file: &RequestFile,
    tallies: Vec<RequestTally>,
) -> Result<RouteFigures, BenchError> {
    let mut lines: Vec<Histogram<u64>> = Vec::new();
    for _ in &file.steps {
        lines.push(new_histogram()?);
    }
    let mut whole: Vec<ConnectionTally> = Vec::new();
    for tally in tallies {
        for (all, own) in lines.iter_mut().zip(&tally.lines) {
            all.add(own)?;
        }
        whole.push(tally.requests);
    }
    let total: f64 = lines
        .iter()
        .map(|times| times.mean() * times.len() as f64)
        .sum();
    let figures = file.steps.iter().zip(&lines).map(|(step, times)| {
        let line = match step {
            RequestStep::Connect => "connect".to_owned(),
            RequestStep::Statement(template) => template.to_string(),
        };
        LineFigures {
            line,
            mean_us: times.mean(),
            p50_us: times.value_at_quantile(0.5),
            p99_us: times.value_at_quantile(0.99),
            share: times.mean() * times.len() as f64 / total.max(1.0),
        }
    });
    Ok(RouteFigures {
        lines: figures.collect(),
        requests: LatencyFigures::from_lanes(&whole)?,
    })
}

fn render(figures: &RequestFigures) -> String {
    let RequestFigures {
        file,
        database,
        readers,
        runs,
        differences,
        counts,
    } = figures;
    // Writing to a String does not fail.
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Request {file} in database {database}, of {readers} readers"
    );
    for run in runs {
        let RequestRun {
            page,
            connections,
            direct,
            headwater,
        } = run;
        let _ = writeln!(
            text,
            "\n{page}, {connections} connections; mean times in microseconds, and their share of the request"
        );
        let _ = writeln!(
            text,
            "{:<width$}{:>16}{:>17}{:>9}",
            "",
            "directly",
            "Headwater",
            "faster",
            width = SHOWN_CHARS + 1
        );
        for (one, other) in direct.lines.iter().zip(&headwater.lines) {
            let _ = writeln!(
                text,
                "{:<width$}{:>11.0}{:>4.0}%{:>12.0}{:>4.0}%{:>9}",
                shortened(&one.line),
                one.mean_us,
                one.share * 100.0,
                other.mean_us,
                other.share * 100.0,
                ratio(one.mean_us, other.mean_us),
                width = SHOWN_CHARS + 1
            );
        }
        let mean = |route: &RouteFigures| route.lines.iter().map(|line| line.mean_us).sum::<f64>();
        let (one, other) = (mean(direct), mean(headwater));
        let _ = writeln!(
            text,
            "{:<width$}{one:>11.0}     {other:>12.0}     {:>9}",
            "the whole request",
            ratio(one, other),
            width = SHOWN_CHARS + 1
        );
        let (one, other) = (&direct.requests, &headwater.requests);
        let _ = writeln!(
            text,
            "{:<width$}{:>11.0}     {:>12.0}     {:>9}",
            "requests a second",
            one.rate,
            other.rate,
            ratio(other.rate, one.rate),
            width = SHOWN_CHARS + 1
        );
        let _ = writeln!(
            text,
            "{:<width$}{:>11}     {:>12}",
            "99 of 100 requests take at most",
            one.p99_us,
            other.p99_us,
            width = SHOWN_CHARS + 1
        );
    }
    if let Some(counts) = counts {
        let _ = writeln!(text, "\nHeadwater's {counts}");
    }
    let _ = writeln!(text, "{differences} answers differ from the server's.");
    text
}

fn ratio(one: f64, other: f64) -> String {
    match other > 0.0 {
        true => format!("{:.2}", one / other),
        false => "-".to_owned(),
    }
}

/// The beginning and the end of a statement.
fn shortened(line: &str) -> String {
    let chars: Vec<char> = line
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .collect();
    if chars.len() <= SHOWN_CHARS {
        return chars.into_iter().collect();
    }
    let (front, back) = (SHOWN_CHARS * 2 / 3, SHOWN_CHARS - SHOWN_CHARS * 2 / 3 - 3);
    let start: String = chars.iter().take(front).collect();
    let end: String = chars.iter().skip(chars.len() - back).collect();
    format!("{start}...{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_statements_are_shortened_in_the_middle() {
        assert_eq!(shortened("SELECT  1"), "SELECT 1");
        let long = format!("SELECT {} FROM posts LIMIT 20", "a, ".repeat(40));
        let short = shortened(&long);
        assert_eq!(short.chars().count(), SHOWN_CHARS);
        assert!(
            short.starts_with("SELECT a, ") && short.ends_with("posts LIMIT 20"),
            "{short}"
        );
    }
}
