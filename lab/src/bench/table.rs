//! The figures as text.

use std::fmt::{self, Write};

use super::push::{ModelFigures, PushFigures};
use super::report::BenchReport;
use super::scrape_bench::{CONNECTIONS, ScrapeFigures};
use super::shapes::ShapesReport;
use super::target_ratios::ProxyAnswerSource;
use super::targets::{BoundSide, TargetBound};
use super::writes::{INSERTS_PER_SECOND, WriteFigures};

/// The load average from which other processes disturb the figures.
const BUSY_LOAD: f64 = 0.5;

/// The figures for the terminal.
#[must_use]
pub fn table(report: &BenchReport) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write(report, &mut text);
    text
}

fn write(report: &BenchReport, out: &mut String) -> fmt::Result {
    let product = if report.server.mariadb {
        "MariaDB"
    } else {
        "MySQL"
    };
    writeln!(
        out,
        "{product} {} ({}), {} cores, {}; {} s a figure; Headwater {}",
        report.server.version,
        report.server.comment.trim(),
        report.machine.cores,
        report
            .machine
            .processor
            .as_deref()
            .unwrap_or("unknown processor"),
        report.settings.seconds,
        report.headwater,
    )?;
    if let Some(load) = report.machine.load_before.filter(|load| *load > BUSY_LOAD) {
        writeln!(
            out,
            "The machine was busy before (load {load}): rates are too low, ratios less sure."
        )?;
    }
    if !report.server.lateral {
        writeln!(out, "This server has no LATERAL.")?;
    }
    path_table(report, out)?;
    if let Some(writes) = &report.extras.writes {
        write_table(writes, out)?;
    }
    if let Some(scrape) = &report.extras.scraped {
        scrape_table(scrape, out)?;
    }
    if let Some(shapes) = &report.extras.shapes {
        shape_table(shapes, out)?;
    }
    if let Some(push) = &report.extras.push {
        push_table(report, push, out)?;
    }
    target_table(report, out)?;
    if let Some(idle) = &report.extras.idle {
        writeln!(out, "(memory: mean of {} sessions)", idle.sessions)?;
    }
    if let Some(full) = &report.extras.full {
        writeln!(
            out,
            "(everything: {} ids, {} follows, {:.1} MiB)",
            full.ids,
            full.follows,
            full.bytes as f64 / 1_048_576.0
        )?;
    }
    writeln!(out)?;
    for line in &report.log {
        writeln!(out, "Headwater's log: {line}")?;
    }
    if let Some(counts) = &report.counts {
        writeln!(out, "Headwater's {counts}")?;
    }
    let answers: u64 = report.cells.iter().map(|cell| cell.figures.answers).sum();
    writeln!(
        out,
        "{} of {} measured timelines differ from the procedure's.",
        thousands(report.differences.answers as f64),
        thousands(answers as f64)
    )
}

fn path_table(report: &BenchReport, out: &mut String) -> fmt::Result {
    let mut block = None;
    let looks = report
        .cells
        .iter()
        .any(|cell| cell.figures.server_us.is_some());
    for cell in &report.cells {
        if block != Some((cell.page, cell.connections)) {
            block = Some((cell.page, cell.connections));
            let heading = format!("{}, connections: {}", cell.page, cell.connections);
            let server = if looks { "server us" } else { "" };
            writeln!(
                out,
                "\n{heading:<33}{:>9}{:>10}{:>10}{:>8}{server:>11}",
                "rate/s", "p50 us", "p99 us", "ratio"
            )?;
        }
        let server = cell.figures.server_us;
        let server = server.map_or(String::new(), |us| format!("{us:.1}"));
        let ratio = cell
            .ratio
            .map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        writeln!(
            out,
            "{:<33}{:>9}{:>10}{:>10}{ratio:>8}{server:>11}",
            cell.way.label(),
            thousands(cell.figures.rate),
            thousands(cell.figures.p50_us as f64),
            thousands(cell.figures.p99_us as f64),
        )?;
    }
    Ok(())
}

fn write_table(writes: &WriteFigures, out: &mut String) -> fmt::Result {
    let WriteFigures {
        readers, writers, ..
    } = writes;
    let pace = format!("{} a second", thousands(INSERTS_PER_SECOND.into()));
    for (what, query_name, sides) in [
        ("as fast as it goes", "CALL + tail", &writes.unpaced),
        (&pace, "CALL alone", &writes.paced),
    ] {
        writeln!(
            out,
            "\n{readers} connections read, {writers} insert messages, {what}; {} s a figure\n{:<33}{:>9}{:>10}{:>10}",
            writes.seconds, "", "rate/s", "p50 us", "p99 us"
        )?;
        for (route, load) in [("directly", &sides.direct), ("Headwater", &sides.headwater)] {
            for (what, figures) in [(query_name, load.timelines), ("inserts", load.inserts)] {
                writeln!(
                    out,
                    "{:<33}{:>9}{:>10}{:>10}",
                    format!("{route}, {what}"),
                    thousands(figures.rate),
                    thousands(figures.p50_us as f64),
                    thousands(figures.p99_us as f64),
                )?;
            }
        }
    }
    if !writes.kept_pace() {
        writeln!(
            out,
            "Inserts through Headwater did not keep the pace: p99 is not held against p50."
        )?;
    }
    writeln!(
        out,
        "{} rows were inserted into {}.message and removed again (its AUTO_INCREMENT has moved on); \
         {} timelines were compared while the writers rested.",
        thousands(writes.removed as f64),
        writes.database,
        writes.compared
    )
}

fn scrape_table(scrape: &ScrapeFigures, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "\n{CONNECTIONS} connections ask for timelines from memory, and {} answers at the admin port meanwhile\n{:<33}{:>9}{:>10}{:>10}{:>14}",
        scrape.scrapes, "", "rate/s", "p50 us", "p99 us", "processor us"
    )?;
    for (what, figures, spent) in [
        ("nobody looks in", scrape.alone, scrape.alone_us),
        (
            "/metrics 10 times a second",
            scrape.scraped,
            scrape.scraped_us,
        ),
    ] {
        writeln!(
            out,
            "{what:<33}{:>9}{:>10}{:>10}{:>14}",
            thousands(figures.rate),
            thousands(figures.p50_us as f64),
            thousands(figures.p99_us as f64),
            spent.map_or("-".to_owned(), |us| format!("{us:.2}")),
        )?;
    }
    Ok(())
}

fn shape_table(shapes: &ShapesReport, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "\nSELECTs of feeds, in {}, made for this and dropped again: {} users, {} messages; {} s a figure\n\
         {:<41}{:>5}{:>12}{:>12}{:>9}{:>10}{:>10}{:>10}",
        shapes.database,
        thousands(shapes.users.into()),
        thousands(shapes.messages.into()),
        shapes.seconds,
        "",
        "conn.",
        "directly/s",
        "Headwater/s",
        "ratio",
        "target",
        "p50 us",
        "p99 us"
    )?;
    for shape in &shapes.shapes {
        let by = shape.without.unwrap_or(shape.direct);
        writeln!(
            out,
            "{:<41}{:>5}{:>12}{:>12}{:>9}{:>10}{:>10}{:>10}",
            shape.name,
            shape.connections,
            thousands(by.rate),
            thousands(shape.headwater.rate),
            shape
                .ratio()
                .map_or("-".into(), |ratio| format!("{ratio:.2}")),
            match shape.ratio().is_some_and(|ratio| ratio >= shape.target) {
                true => format!(">= {}", shape.target),
                false => format!("! >= {}", shape.target),
            },
            thousands(shape.headwater.p50_us as f64),
            thousands(shape.headwater.p99_us as f64),
        )?;
    }
    let mixed = &shapes.beside;
    writeln!(
        out,
        "(! misses its target. Those that gain nothing are compared with a Headwater without feeds; the last one is the median of seven)\n\
         join beside {} inserts a second: {} a second, p50 {} us, p99 {} us; directly without inserts p50 {} us",
        thousands(mixed.inserts.rate),
        thousands(mixed.feeds.rate),
        thousands(mixed.feeds.p50_us as f64),
        thousands(mixed.feeds.p99_us as f64),
        thousands(shapes.direct_p50_us as f64),
    )?;
    let mixed = &shapes.counts_beside;
    writeln!(
        out,
        "count beside {} inserts a second: {} a second, p50 {} us, p99 {} us",
        thousands(mixed.inserts.rate),
        thousands(mixed.feeds.rate),
        thousands(mixed.feeds.p50_us as f64),
        thousands(mixed.feeds.p99_us as f64),
    )?;
    if let Some(counts) = &shapes.counts {
        writeln!(out, "there, Headwater's {counts}")?;
    }
    Ok(())
}

fn push_table(report: &BenchReport, push: &PushFigures, out: &mut String) -> fmt::Result {
    let many = |number: u64| thousands(number as f64);
    writeln!(
        out,
        "\npush and pull, on one data set made for this in {} and dropped again:\n\
         {} users, {} follows, {} messages, {} mailbox rows ({} would have {});\n\
         read: the newest 20 messages; submitted: one message, for push a row for each follower too;\n\
         size: data and indexes, before anything was submitted; {} connections, {} s a figure\n\
         {:<24}{:>12}{:>9}{:>9}{:>12}{:>9}{:>9}{:>10}",
        push.database,
        many(push.users.into()),
        many(push.follows),
        many(push.messages),
        many(push.mailbox_rows),
        report.settings.database,
        many(report.mailbox_rows),
        push.connections,
        push.seconds,
        "",
        "timelines/s",
        "p50 us",
        "p99 us",
        "messages/s",
        "p50 us",
        "p99 us",
        "MB"
    )?;
    for (model, figures) in [
        ("push, mailbox table", &push.push),
        ("pull, the procedure", &push.procedure),
        ("pull, Headwater", &push.headwater),
    ] {
        let ModelFigures {
            timelines,
            submissions,
            bytes,
        } = figures;
        writeln!(
            out,
            "{model:<24}{:>12}{:>9}{:>9}{:>12}{:>9}{:>9}{:>10.1}",
            thousands(timelines.rate),
            many(timelines.p50_us),
            many(timelines.p99_us),
            thousands(submissions.rate),
            many(submissions.p50_us),
            many(submissions.p99_us),
            *bytes as f64 / 1e6,
        )?;
    }
    writeln!(
        out,
        "{:<24}{:>12}{:>9}{:>9}",
        "pull, a join, Headwater",
        thousands(push.join.rate),
        many(push.join.p50_us),
        many(push.join.p99_us),
    )?;
    if let Some(counts) = &push.counts {
        writeln!(out, "there, Headwater's {counts}")?;
    }
    Ok(())
}

fn target_table(report: &BenchReport, out: &mut String) -> fmt::Result {
    let heading = match report.settings.source {
        ProxyAnswerSource::Pull => "targets (no service account: answers by lookups)",
        ProxyAnswerSource::Index => "targets (with a service account: answers from memory)",
    };
    let figures = report.targets.iter().map(|target| target.figure.len());
    let width = figures.chain([heading.len()]).max().unwrap_or_default();
    writeln!(out, "\n{heading:<width$}{:>10}{:>14}", "measured", "target")?;
    for target in &report.targets {
        let number = |number: f64| match target.unit {
            "us" => thousands(number),
            _ => format!("{number:.2}"),
        };
        let measured = target.measured.map_or("-".to_owned(), number);
        let mark = match (target.is_reached(), target.aim) {
            (Some(true), _) => "  pass",
            (Some(false), _) => "  MISS",
            (None, Some(_)) => "  not measured",
            (None, None) => "",
        };
        let line = format!(
            "{:<width$}{measured:>10}{:>14}{mark}",
            target.figure,
            target
                .aim
                .map_or("-".to_owned(), |aim| aim_text(aim, target.unit)),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn aim_text(aim: TargetBound, unit: &str) -> String {
    let side = match aim.bound {
        BoundSide::AtLeast => ">=",
        BoundSide::AtMost => "<=",
        BoundSide::Below => "<",
    };
    let number = match unit {
        "us" => thousands(aim.target),
        _ => aim.target.to_string(),
    };
    format!("{side} {number} {unit}").trim_end().to_owned()
}

/// An integer with commas.
#[must_use]
pub fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number);
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn numbers_have_commas() {
        for (number, text) in [
            (0.0, "0"),
            (999.5, "1,000"),
            (12_345.4, "12,345"),
            (1e6, "1,000,000"),
            (123.0, "123"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }
}
