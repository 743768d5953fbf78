//! Definitions and feeds, whether each is answered from memory, and what became of their statements.

use crate::feeds::in_letters;
use crate::session::calls::Answer;
use crate::session::narrowing::Why;
use crate::session::shared::Shared;
use crate::session::table::{Cell, Table};
use crate::session::watched::STATEMENTS;
use crate::timeline::check::Verdict;
use crate::timeline::definition::DefinitionId;

/// One row for each definition and each feed in each database.
pub(super) fn feeds(shared: &Shared) -> Table {
    let mut table = Table::of(&[
        "name",
        "kind",
        "database",
        "answered_from",
        "why_not",
        "statements",
        "from_memory",
        "section",
    ]);
    definitions(shared, &mut table);
    let Some(feeds) = &shared.feeds else {
        return table;
    };
    for feed in feeds.overview() {
        let kind = if feed.found { "feed (found)" } else { "feed" };
        let of = |names: &[&str]| {
            let counted = feed.counted.iter().filter(|(name, _)| names.contains(name));
            counted.map(|(_, times)| times).sum::<u64>()
        };
        let all: u64 = feed.counted.iter().map(|(_, times)| times).sum();
        let from_memory = of(&["kept", "narrowed"]);
        // What the settings name they have.
        let section = || match feed.found {
            true => Cell::lines(&feed.section),
            false => Cell::Null,
        };
        if feed.databases.is_empty() {
            table.add([
                feed.name.as_str().into(),
                kind.into(),
                Cell::Null,
                "server".into(),
                "no database is known that has its tables: it is looked at once a session asks there".into(),
                all.into(),
                from_memory.into(),
                section(),
            ]);
        }
        for (database, why_not) in feed.databases {
            let from = if why_not.is_empty() {
                "memory"
            } else {
                "server"
            };
            table.add([
                feed.name.as_str().into(),
                kind.into(),
                database.into(),
                from.into(),
                why_not.into(),
                all.into(),
                from_memory.into(),
                section(),
            ]);
        }
    }
    for suggested in feeds.suggested() {
        let why_not = match suggested.obstacles.is_empty() {
            true => "nobody has named it: paste the section into the settings file".to_owned(),
            false => suggested.obstacles,
        };
        table.add([
            Cell::Null,
            "feed (suggested)".into(),
            suggested.database.into(),
            "server".into(),
            why_not.into(),
            Cell::Null,
            0_u64.into(),
            Cell::lines(&suggested.section),
        ]);
    }
    table
}

fn definitions(shared: &Shared, table: &mut Table) {
    let catalogue = &shared.catalogue;
    let became = shared.counts.calls().became(catalogue.definitions());
    for (number, definition) in catalogue.in_use() {
        let own = || became.iter().filter(|it| it.definition == Some(number));
        let all: u64 = own().map(|it| it.calls).sum();
        let memory = own().filter(|it| it.answer == Answer::Memory.name());
        let memory: u64 = memory.map(|it| it.calls).sum();
        let mut row = |database: Cell, from: &str, why_not: String| {
            table.add([
                definition.name.as_str().into(),
                "definition".into(),
                database,
                from.into(),
                why_not.into(),
                all.into(),
                memory.into(),
                Cell::Null,
            ]);
        };
        let databases = catalogue.known().into_iter();
        let own = databases.filter(|(of, _)| *of == number);
        let mut known = false;
        for (_, database) in own {
            let Some((verdict, _)) = catalogue.last_verdict(number, &database) else {
                continue;
            };
            known = true;
            let name = String::from_utf8_lossy(&database).into_owned().into();
            let (from, why_not) = match &*verdict {
                Verdict::Relay(reason) => ("server", reason.to_string()),
                Verdict::Accelerate(facts) => accelerated(shared, number, facts),
            };
            row(name, from, why_not);
        }
        if !known {
            row(
                Cell::Null,
                "server",
                "no database is known that has its tables".to_owned(),
            );
        }
    }
}

/// Where an accelerated definition is answered from, and what is in the way of more.
fn accelerated(
    shared: &Shared,
    number: DefinitionId,
    facts: &crate::timeline::check::Facts,
) -> (&'static str, String) {
    let distrusts = |shadow: &std::sync::Arc<crate::shadow::Shadow>| shadow.distrusts(number);
    if shared.shadow.as_ref().is_some_and(distrusts) {
        let why = "an answer differed from the procedure's: both are in the log. SIGHUP has it answered again";
        return ("server", why.to_owned());
    }
    let part = match facts.are_whole() {
        true => String::new(),
        false => format!("in part: {facts}"),
    };
    match &shared.binlog {
        None => (
            "lookups",
            "there is no memory: set service.user, and index.memory_bytes above 0".to_owned(),
        ),
        Some(binlog) => match binlog.aside() {
            Some(aside) => ("lookups", aside.text),
            None => ("memory", part),
        },
    }
}

/// One row for each template that is remembered, those first on which the server spends most.
pub(super) fn statements(shared: &Shared) -> Table {
    let mut table = Table::of(&[
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
    // What the server does for it, as far as that is known: statements that went to it, by their time.
    let weight = |it: &crate::feeds::TemplateSeen| {
        let (kept, narrowed) = (it.times("kept"), it.times("narrowed"));
        let whole = it.total().saturating_sub(kept.saturating_add(narrowed));
        let (directly, less) = it.times.unwrap_or((1.0, 1.0));
        whole as f64 * directly + narrowed as f64 * less
    };
    templates.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    for seen in templates {
        let relayed = seen
            .counted
            .iter()
            .filter(|(name, _)| !STATEMENTS.contains(name));
        let all: u64 = relayed.clone().map(|(_, times)| times).sum();
        let why_not = relayed
            .max_by_key(|(_, times)| *times)
            .map(|(name, _)| *name);
        let cure = why_not.and_then(|name| Why::all().find(|why| why.label() == name));
        let cure = cure.map(|why| crate::session::why::plain(why.explained().2));
        table.add([
            seen.shown.as_str().into(),
            seen.feed.clone().into(),
            seen.database.as_str().into(),
            seen.total().into(),
            seen.times("kept").into(),
            seen.times("narrowed").into(),
            all.into(),
            why_not.into(),
            cure.into(),
            seen.times.map(|(directly, _)| directly / 1_000.0).into(),
            seen.times.map(|(_, narrowed)| narrowed / 1_000.0).into(),
            seen.times.map(|_| weight(&seen) / 1_000_000.0).into(),
            in_letters(seen.digest).into(),
        ]);
    }
    table
}
