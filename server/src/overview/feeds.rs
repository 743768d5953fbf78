//! Definitions and feeds, whether each is answered from memory, and how their statements were answered.

use std::cmp::Reverse;
use std::sync::Arc;

use headwater_proxy::feeds::{RelayCause, TemplateOverview, hex_digest};
use headwater_proxy::session::call_counters::CallAnswer;
use headwater_proxy::session::measurements::STATEMENTS;
use headwater_proxy::session::overview_table::{OverviewCell, OverviewTable};
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::shadow::Shadow;
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_session::feed_decision::FeedRelayReason;
use headwater_timeline::check::{DefinitionFacts, DefinitionVerdict};
use headwater_timeline::definition::DefinitionId;

/// One row for each definition and each feed in each database.
pub(super) fn feeds(shared: &SharedState) -> OverviewTable {
    let mut table = OverviewTable::with_columns(&[
        "name",
        "kind",
        "database",
        "answered_from",
        "why_not",
        "statements",
        "from_memory",
        "section",
        "reason",
        "cure",
    ]);
    definitions(shared, &mut table);
    let Some(feeds) = &shared.feeds else {
        return table;
    };
    for feed in feeds.overview() {
        let kind = if feed.is_discovered {
            "feed (found)"
        } else {
            "feed"
        };
        let of = |names: &[&str]| {
            let counted = feed.counted.iter().filter(|(name, _)| names.contains(name));
            counted.map(|(_, times)| times).sum::<u64>()
        };
        let all: u64 = feed.counted.iter().map(|(_, times)| times).sum();
        let from_memory = of(&["kept", "narrowed"]);
        // Feeds that the settings name have their section there.
        let section = || match feed.is_discovered {
            true => OverviewCell::lines(&feed.section),
            false => OverviewCell::Null,
        };
        if feed.databases.is_empty() {
            table.add([
                feed.name.as_str().into(),
                kind.into(),
                OverviewCell::Null,
                "server".into(),
                "no database is known that has its tables: it is looked at once a session asks there".into(),
                all.into(),
                from_memory.into(),
                section(),
                FeedRelayReason::Unchecked.label().into(),
                "connect with the database; where none has the table, correct `message.table` of the feed".into(),
            ]);
        }
        for (database, cause) in feed.databases {
            let from = if cause.is_none() { "memory" } else { "server" };
            let (why_not, reason, cure) = cause_cells(cause);
            table.add([
                feed.name.as_str().into(),
                kind.into(),
                database.into(),
                from.into(),
                why_not,
                all.into(),
                from_memory.into(),
                section(),
                reason,
                cure,
            ]);
        }
    }
    for suggested in feeds.suggested_feeds() {
        let why_not = match suggested.obstacles.is_empty() {
            true => "nobody has named it: paste the section into the settings file".to_owned(),
            false => suggested.obstacles,
        };
        table.add([
            OverviewCell::Null,
            "feed (suggested)".into(),
            suggested.database.into(),
            "server".into(),
            why_not.into(),
            OverviewCell::Null,
            0_u64.into(),
            OverviewCell::lines(&suggested.section),
            OverviewCell::Null,
            OverviewCell::Null,
        ]);
    }
    table
}

fn definitions(shared: &SharedState, table: &mut OverviewTable) {
    let catalogue = &shared.catalogue;
    let became = shared
        .counters
        .calls()
        .outcome_counts(catalogue.definitions());
    for (number, definition) in catalogue.in_use() {
        let outcomes = || became.iter().filter(|it| it.definition == Some(number));
        let all: u64 = outcomes().map(|it| it.calls).sum();
        let memory = outcomes().filter(|it| it.answer == CallAnswer::Memory.name());
        let memory: u64 = memory.map(|it| it.calls).sum();
        let mut row = |database: OverviewCell, from: &str, cause: Option<RelayCause>| {
            let (why_not, reason, cure) = cause_cells(cause);
            table.add([
                definition.name.as_str().into(),
                "definition".into(),
                database,
                from.into(),
                why_not,
                all.into(),
                memory.into(),
                OverviewCell::Null,
                reason,
                cure,
            ]);
        };
        let databases = catalogue.checked_databases().into_iter();
        let checked = databases.filter(|(of, _)| *of == number);
        let mut known = false;
        for (_, database) in checked {
            let Some((verdict, _)) = catalogue.last_verdict(number, &database) else {
                continue;
            };
            known = true;
            let name = String::from_utf8_lossy(&database).into_owned().into();
            let (from, cause) = match &*verdict {
                DefinitionVerdict::Relay(relay_reason) => {
                    let cause = RelayCause::of_reason(CallRelayReason::Definition);
                    ("server", Some(cause.with_text(relay_reason.to_string())))
                }
                DefinitionVerdict::Accelerate(facts) => answer_source(shared, number, facts),
            };
            row(name, from, cause);
        }
        // A configuration with feeds only needs no timeline definition.
        let is_wanted = !shared.classic_by_default || shared.feeds.is_none();
        if !known && is_wanted {
            let cause = RelayCause::of_reason(CallRelayReason::Unchecked);
            let none = "no database is known that has its tables".to_owned();
            row(OverviewCell::Null, "server", Some(cause.with_text(none)));
        }
    }
}

/// What answers an accelerated definition, and what prevents a better answer.
fn answer_source(
    shared: &SharedState,
    number: DefinitionId,
    facts: &DefinitionFacts,
) -> (&'static str, Option<RelayCause>) {
    let distrusts = |shadow: &Arc<Shadow>| shadow.distrusts(number);
    if shared.shadow.as_ref().is_some_and(distrusts) {
        let why = "an answer differed from the procedure's: both are in the log. SIGHUP has it answered again";
        let cause = RelayCause::of_reason(CallRelayReason::Distrusted);
        return ("server", Some(cause.with_text(why.to_owned())));
    }
    let of_log = match &shared.binlog {
        None => Some(RelayCause::no_memory()),
        Some(binlog) => binlog.suspension().map(RelayCause::log_suspended),
    };
    if of_log.is_some() {
        return ("lookups", of_log);
    }
    let in_part = (!facts.serves_all_forms()).then(|| {
        let cause = RelayCause::of_reason(CallRelayReason::Definition);
        cause.with_text(format!("in part: {facts}"))
    });
    ("memory", in_part)
}

/// The reason in words, its label in counters, and the remedy.
fn cause_cells(cause: Option<RelayCause>) -> (OverviewCell, OverviewCell, OverviewCell) {
    match cause {
        None => ("".into(), OverviewCell::Null, OverviewCell::Null),
        Some(RelayCause { reason, text, cure }) => (text.into(), reason.into(), cure.into()),
    }
}

/// One row for each cached template; those on which the server spends most time come first.
pub(super) fn statements(shared: &SharedState) -> OverviewTable {
    let mut table = OverviewTable::with_columns(&[
        "statement",
        "feed",
        "database",
        "came",
        "kept",
        "narrowed",
        "relayed",
        "why_not",
        "cure",
        "ms_directly",
        "ms_narrowed",
        "server_seconds",
        "digest",
    ]);
    let Some(feeds) = &shared.feeds else {
        return table;
    };
    let mut templates = feeds.templates();
    // If the time is unknown, the templates sent to the server most often come first.
    let sent = |it: &TemplateOverview| it.total().saturating_sub(it.times("kept"));
    templates.sort_by_key(|it| Reverse((it.spent.unwrap_or_default(), sent(it))));
    for template in templates {
        let relayed = template
            .counted
            .iter()
            .filter(|(name, _)| !STATEMENTS.contains(name));
        let all: u64 = relayed.clone().map(|(_, times)| times).sum();
        let why_not = relayed
            .max_by_key(|(_, times)| *times)
            .map(|(name, _)| *name);
        let cure = why_not.and_then(|name| FeedRelayReason::all().find(|why| why.label() == name));
        let cure = cure.map(|why| headwater_session::plain_text::plain_text(why.explanation().2));
        table.add([
            template.shown.as_str().into(),
            template.feed.clone().into(),
            template.database.as_str().into(),
            template.total().into(),
            template.times("kept").into(),
            template.times("narrowed").into(),
            all.into(),
            why_not.into(),
            cure.into(),
            template
                .times
                .map(|(directly, _)| directly / 1_000.0)
                .into(),
            template
                .times
                .map(|(_, narrowed)| narrowed / 1_000.0)
                .into(),
            template
                .spent
                .map(|spent| spent as f64 / 1_000_000.0)
                .into(),
            hex_digest(template.digest).into(),
        ]);
    }
    table
}
