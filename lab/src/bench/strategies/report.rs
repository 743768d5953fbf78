//! The figures for people: a table for the terminal; Markdown and charts in a folder.

use std::fmt::Write as _;

use super::charts;
use super::figures::{EngineDataset, OmittedStrategy, StrategiesReport, StrategyFigures};
use super::measurement::STALENESS_TIMEOUT;
use super::push_rule::{self, PushRule};
use super::strategy::FreshnessClaim;
use crate::bench::table::thousands;

/// The meaning of the table's columns.
const COLUMNS: &str = "\
pages/s: newest pages read; deep/s: pages from the reader's 200th message on; messages/s: messages written, by authors as they have written \
before; MB: messages and follows, the strategy's own tables, and what it keeps in memory behind the reads; stale: share of the \
pages looked at right behind an acknowledged write that lacked it, and the median time until they had it (looked at for 5 s at most); equal: pages equal to the procedure's, of those compared.";

/// The pull strategies with a direct connection to the server.
const DIRECT: [&str; 4] = ["sql-join", "sql-list", "sql-lateral", "procedure"];

/// The table for the terminal.
#[must_use]
pub fn table(figures: &StrategiesReport) -> String {
    let mut text = String::new();
    for engine in &figures.engines {
        let _ = writeln!(text, "\n{}", engine.description());
        let _ = writeln!(
            text,
            "{:<20} {:>9} {:>9} {:>11} {:>8} {:>17} {:>13}",
            "strategy", "pages/s", "deep/s", "messages/s", "MB", "stale", "equal"
        );
        for it in engine_figures(figures, engine) {
            let _ = writeln!(
                text,
                "{:<20} {:>9} {:>9} {:>11} {:>8.1} {:>17} {:>13}",
                it.name,
                thousands(it.pages_per_s),
                deep_text(it),
                thousands(it.messages_per_s),
                it.bytes as f64 / 1e6,
                stale_text(it),
                format!("{}/{}", it.equal_pages, it.compared_pages),
            );
        }
        text.push_str(&omitted_text(engine));
    }
    let _ = writeln!(
        text,
        "\n{COLUMNS}\n{} connections; {} cores shared by servers, Headwater and clients.",
        figures.connections, figures.cores
    );
    text
}

/// The files of a report, by name.
///
/// # Errors
/// Fails if a chart cannot be drawn.
pub fn files(
    figures: &StrategiesReport,
) -> Result<Vec<(String, String)>, Box<dyn std::error::Error>> {
    let pages = charts::bar_chart(figures, "Newest pages read, a second", |it| it.pages_per_s)?;
    let messages = charts::bar_chart(figures, "Messages written, a second", |it| {
        it.messages_per_s
    })?;
    let room = charts::bar_chart(figures, "Room on disk and in memory, MB", |it| {
        it.bytes as f64 / 1e6
    })?;
    let mut files = vec![
        ("README.md".to_owned(), markdown(figures)),
        ("pages.svg".to_owned(), pages),
        ("messages.svg".to_owned(), messages),
        ("room.svg".to_owned(), room),
    ];
    for engine in &figures.engines {
        let name = format!("ratio-{}.svg", engine.engine);
        files.push((name, charts::ratio_chart(figures, engine)?));
    }
    Ok(files)
}

fn engine_figures<'a>(
    figures: &'a StrategiesReport,
    engine: &'a EngineDataset,
) -> impl Iterator<Item = &'a StrategyFigures> {
    let all = figures.strategies.iter();
    all.filter(move |it| it.engine == engine.engine)
}

/// The strategies that were left out, with the reason.
fn omitted_text(engine: &EngineDataset) -> String {
    let mut text = String::new();
    for OmittedStrategy { name, bytes } in &engine.left_out {
        let _ = writeln!(
            text,
            "\nLeft out for want of room: {name} would take about {:.1} GB on disk.",
            bytes / 1e9
        );
    }
    text
}

/// There is no rate for strategies whose timelines end early.
fn deep_text(it: &StrategyFigures) -> String {
    match it.claims {
        FreshnessClaim::Capped => "capped".to_owned(),
        _ => thousands(it.deep_pages_per_s),
    }
}

fn stale_text(it: &StrategyFigures) -> String {
    match it.stale_share > 0.0 {
        true => {
            let share = it.stale_share * 100.0;
            let time = match it.stale_p50_ms < STALENESS_TIMEOUT.as_secs_f64() * 1_000.0 {
                true => format!("{:.1} ms", it.stale_p50_ms),
                false => format!("over {} s", STALENESS_TIMEOUT.as_secs()),
            };
            format!("{share:.1}% of {}, {time}", it.stale_looked)
        }
        false => "0".to_owned(),
    }
}

fn markdown(figures: &StrategiesReport) -> String {
    let mut text = "# Strategies for timelines, side by side".to_owned();
    if let Some(data) = figures.engines.first() {
        let [users, messages] = [f64::from(data.users), data.messages as f64].map(thousands);
        let _ = write!(text, ": {users} users, {messages} messages");
    }
    text.push('\n');
    let _ = writeln!(
        text,
        "\nWritten by `headwater bench strategies --report FOLDER`; every figure is in `figures.json`. Each strategy has its real engine, all \
         have the same follows and messages, and take turns several times a second. {} connections; {} cores, shared by servers, \
         Headwater and clients, which are on one machine: apps reach servers and Headwater by TCP, Headwater the server by its socket. \
         Servers write their binary log, and leave it to the system when commits reach the disk (`innodb_flush_log_at_trx_commit = 2`, \
         `sync_binlog = 0`). Tables that are greater than a server's memory for their pages are read from the system's cache or the disk. \
         Caches that reads fill are read while they are full: a page that they lack takes as long as without them. \
         Your own follows and messages are measured with `--follows-from FILE --messages-from FILE` (`headwater bench strategies --help`).",
        figures.connections, figures.cores
    );
    for (file, what) in [
        ("pages", "newest pages read a second"),
        ("messages", "messages written a second"),
        ("room", "room on disk and in memory"),
    ] {
        let _ = writeln!(
            text,
            "\n![Bars: {what}, by strategy and server]({file}.svg)"
        );
    }
    for engine in &figures.engines {
        let _ = writeln!(text, "\n## {}\n", engine.description());
        rate_table(figures, engine, &mut text);
        text.push_str(&omitted_text(engine));
        cost_table(figures, engine, &mut text);
        ratio_table(figures, engine, &mut text);
    }
    let _ = writeln!(text, "\n## What is what\n\n{COLUMNS}\n");
    for name in figures.strategy_names() {
        let about = figures.strategies.iter().find(|it| it.name == name);
        let _ = writeln!(text, "- `{name}`: {}.", about.map_or("", |it| it.about));
    }
    text
}

fn rate_table(figures: &StrategiesReport, engine: &EngineDataset, text: &mut String) {
    let _ = writeln!(
        text,
        "| strategy | pages/s | p50, us | p99, us | deep/s | messages/s | MB | stale | equal |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for it in engine_figures(figures, engine) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {:.1} | {} | {} of {} |",
            it.name,
            thousands(it.pages_per_s),
            thousands(it.page_p50_us),
            thousands(it.page_p99_us),
            deep_text(it),
            thousands(it.messages_per_s),
            it.bytes as f64 / 1e6,
            stale_text(it),
            it.equal_pages,
            it.compared_pages,
        );
    }
}

fn cost_table(figures: &StrategiesReport, engine: &EngineDataset, text: &mut String) {
    let _ = writeln!(
        text,
        "\nMedian times in milliseconds; a message by how many followers its author has; *page then* is the reader's first page behind an \
         unfollow; built from messages and follows, in seconds.\n\n\
         | strategy | message | follow | unfollow | page then | delete | built, s |\n|---|---|--:|--:|--:|--:|--:|"
    );
    for it in engine_figures(figures, engine) {
        let posts: Vec<String> = it
            .posts
            .iter()
            .map(|post| format!("{:.2} at {}", post.ms, post.followers))
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} |",
            it.name,
            posts.join(", "),
            it.follow_ms,
            it.unfollow_ms,
            it.refill_ms,
            it.delete_ms,
            it.build_s,
        );
    }
}

/// The fastest strategy at each ratio, and the push rule.
fn ratio_table(figures: &StrategiesReport, engine: &EngineDataset, text: &mut String) {
    let all: Vec<&StrategyFigures> = engine_figures(figures, engine).collect();
    let _ = writeln!(
        text,
        "\n![Lines: pages and messages a second by how many pages are read for each message](ratio-{}.svg)\n\n\
         Pages and messages a second, reckoned from the two rates above; *fresh and whole* are those that are never stale and end nowhere.{}\n\n\
         | pages read for each message | fastest | fastest whose pages are fresh and whole |\n|--:|---|---|",
        engine.engine,
        noise_text(&all)
    );
    for ratio in push_rule::RATIOS {
        let (any, fresh) = push_rule::fastest(ratio, &all);
        let named = |it: Option<&StrategyFigures>| {
            it.map_or(String::new(), |it| {
                format!(
                    "{}, {} a second",
                    it.name,
                    thousands(push_rule::combined_rate(ratio, it))
                )
            })
        };
        let _ = writeln!(text, "| {ratio} | {} | {} |", named(any), named(fresh));
    }
    let _ = writeln!(text, "\n{}", push_rule_text(&all, engine));
}

/// The measurement noise: how much the rates differ of strategies that write a message by the same statement to the same server.
fn noise_text(all: &[&StrategyFigures]) -> String {
    let alike = all.iter().filter(|it| DIRECT.contains(&it.name));
    let rates: Vec<f64> = alike.map(|it| it.messages_per_s).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    if rates.len() < 2 || least <= 0.0 {
        return String::new();
    }
    format!(
        " Pull without Headwater writes messages by one statement whatever the strategy, at rates that differ by {:.0} %: so much is noise.",
        (most / least - 1.0) * 100.0
    )
}

/// The rule of Feeding Frenzy for this data.
fn push_rule_text(all: &[&StrategyFigures], engine: &EngineDataset) -> String {
    let named = |name: &str| all.iter().find(|it| it.name == name).copied();
    let Some(push) = named("push-mailbox") else {
        return String::new();
    };
    let mut text = format!(
        "Push or pull, for each edge of the graph, which is a reader who follows an author (Feeding Frenzy, SIGMOD 2010). A push costs what a \
         mailbox adds to the time of a message, by its followers; a pull what it adds to the time of a page, by the authors followed. On this \
         data a message has {:.1} followers (the mean of messages, not of authors), a reader follows {:.1} authors.\n",
        engine.followers_per_message, engine.follows_per_reader
    );
    for name in ["procedure", "sql-list", "headwater-call", "headwater-kept"] {
        let Some(pull) = named(name) else { continue };
        let (rule, push_us, pull_us) = push_rule::push_rule(pull, push, engine);
        let says = match rule {
            PushRule::Never => format!(
                "a page costs no more than one from the mailbox: push nothing (a push costs {push_us:.1} us an edge)"
            ),
            PushRule::Above(ratio) => format!(
                "push an edge whose reader reads {ratio:.2} times as often as its author writes, or more (a push costs {push_us:.1} us, a pull {pull_us:.2} us)"
            ),
        };
        let _ = write!(text, "\n- against `{name}`: {says}.");
    }
    text
}
