//! The simulation's figures as text.

use std::fmt::{self, Write};

use super::SimulationReport;
use crate::bench::table::thousands;

const GIB: f64 = 1_073_741_824.0;
const MILLION: f64 = 1e6;

/// The figures for the terminal.
#[must_use]
pub fn table(simulated: &SimulationReport) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write(simulated, &mut text);
    text
}

fn write(simulated: &SimulationReport, out: &mut String) -> fmt::Result {
    let (scale, users) = (simulated.scale(), simulated.users as f64);
    writeln!(
        out,
        "{} users, of whom a sample of {} was drawn (seed {}) and put into a real index; {:.0}% are active. Sizes are the sample's, \
         times {scale:.0}.",
        thousands(users),
        thousands(f64::from(simulated.sample)),
        simulated.seed,
        simulated.active * 100.0,
    )?;
    writeln!(
        out,
        "\n{:<26}{:>14}{:>16}{:>14}{:>14}{:>12}{:>16}",
        "index", "follow lists", "follows", "authors", "ids", "GiB", "GiB a million"
    )?;
    for (name, filled) in [
        ("every user's timeline", &simulated.all),
        ("active readers' alone", &simulated.of_active),
    ] {
        let scaled = |count: u64| thousands(count as f64 * scale);
        let bytes = filled.bytes() as f64 * scale;
        writeln!(
            out,
            "{name:<26}{:>14}{:>16}{:>14}{:>14}{:>12.1}{:>16.3}",
            scaled(filled.readers),
            scaled(filled.follows),
            scaled(filled.authors),
            scaled(filled.ids),
            bytes / GIB,
            bytes / GIB / (users / MILLION),
        )?;
    }
    let all = &simulated.all;
    let each = |bytes: u64, count: u64| bytes as f64 / count.max(1) as f64;
    writeln!(
        out,
        "measured: {:.1} bytes a follow with its list, {:.1} bytes an id with its author, {:.1} bytes each on average",
        each(all.reader_bytes, all.follows),
        each(all.author_bytes, all.ids),
        all.bytes_each(),
    )?;
    hits(simulated, out)?;
    writeln!(
        out,
        "\n{:<26}{:>14}{:>14}{:>16}",
        "readers dealt out to", "GiB each", "GiB in all", "pages/s each"
    )?;
    for shared in &simulated.shared {
        writeln!(
            out,
            "{:<26}{:>14.1}{:>14.1}{:>16}",
            format!("{} Headwaters", shared.headwaters),
            shared.bytes_each / GIB,
            shared.bytes_each * shared.headwaters as f64 / GIB,
            thousands(shared.pages_per_s),
        )?;
    }
    log(simulated, out)
}

fn hits(simulated: &SimulationReport, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "\n{:<26}{:>10}{:>22}{:>26}",
        "memory for active readers", "GiB", "hit share, all alike", "hit share, few ask most"
    )?;
    for budget in &simulated.budgets {
        writeln!(
            out,
            "{:<26}{:>10.1}{:>22.3}{:>26.3}",
            format!("{:.1}%", budget.share * 100.0),
            budget.bytes / GIB,
            budget.alike.share(),
            budget.unevenly.share(),
        )?;
    }
    Ok(())
}

fn log(simulated: &SimulationReport, out: &mut String) -> fmt::Result {
    let rates = &simulated.rates;
    writeln!(
        out,
        "\nlog: {} messages and {} follows a second, {} pages a second, on average over a day",
        thousands(rates.posts),
        thousands(rates.follows),
        thousands(rates.pages),
    )?;
    let Some(parsed) = &simulated.parsed else {
        return writeln!(out, "the log's reader did not understand what was laid out");
    };
    let bytes = rates.bytes(parsed);
    writeln!(
        out,
        "written: {} transactions/s, {:.1} MB/s ({} bytes a message, {} bytes a follow); each Headwater reads all of it",
        thousands(rates.transactions()),
        bytes / MILLION,
        parsed.message_bytes,
        parsed.follow_bytes,
    )?;
    writeln!(
        out,
        "read by one thread: {} transactions/s, {} events/s, {:.1} MB/s: {:.1} times what is written",
        thousands(parsed.transactions_per_s),
        thousands(parsed.events_per_s),
        parsed.bytes_per_s / MILLION,
        parsed.bytes_per_s / bytes.max(1.0),
    )
}
