//! The figures as text.

use std::fmt::{self, Write};

use super::report::Report;
use super::targets::{Bound, CONNECTIONS, Target};

/// A load from which on others disturb the figures.
const BUSY: f64 = 0.5;

/// Everything that is worth reading at a terminal.
#[must_use]
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write(report, &mut text);
    text
}

fn write(report: &Report, out: &mut String) -> fmt::Result {
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
    if let Some(load) = report.machine.load_before.filter(|load| *load > BUSY) {
        writeln!(
            out,
            "The machine was busy before (load {load}): rates are too low, ratios less sure."
        )?;
    }
    if !report.server.lateral {
        writeln!(out, "This server has no LATERAL.")?;
    }
    cells(report, out)?;
    targets(&report.targets, out)?;
    if let Some(idle) = &report.idle {
        writeln!(out, "(memory: mean of {} sessions)", idle.sessions)?;
    }
    writeln!(out)?;
    for line in &report.log {
        writeln!(out, "Headwater's log: {line}")?;
    }
    if let Some(counts) = &report.counts {
        writeln!(out, "Headwater's {counts}")?;
    }
    let answers: u64 = report.cells.iter().map(|cell| cell.answers).sum();
    writeln!(
        out,
        "{} of {} measured timelines differ from the procedure's.",
        thousands(report.differences.answers as f64),
        thousands(answers as f64)
    )
}

fn cells(report: &Report, out: &mut String) -> fmt::Result {
    let mut block = None;
    for cell in &report.cells {
        if block != Some((cell.page, cell.connections)) {
            block = Some((cell.page, cell.connections));
            let heading = format!("page {}, connections: {}", cell.page, cell.connections);
            writeln!(
                out,
                "\n{heading:<33}{:>9}{:>10}{:>10}{:>8}",
                "rate/s", "p50 us", "p99 us", "ratio"
            )?;
        }
        let ratio = cell
            .ratio
            .map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        writeln!(
            out,
            "{:<33}{:>9}{:>10}{:>10}{ratio:>8}",
            cell.way.label(),
            thousands(cell.rate),
            thousands(cell.p50_us as f64),
            thousands(cell.p99_us as f64),
        )?;
    }
    Ok(())
}

fn targets(targets: &[Target], out: &mut String) -> fmt::Result {
    let heading = format!("targets (ratios at {CONNECTIONS} connections)");
    writeln!(out, "\n{heading:<52}{:>10}{:>14}", "measured", "target")?;
    for target in targets {
        let Target { figure, unit, .. } = target;
        let measured = target
            .measured
            .map_or("-".to_owned(), |measured| format!("{measured:.2}"));
        let side = match target.bound {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        };
        let mark = match target.reached() {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "not measured",
        };
        let aim = format!("{side} {} {unit}", target.target);
        writeln!(
            out,
            "{figure:<52}{measured:>10}{:>14}  {mark}",
            aim.trim_end()
        )?;
    }
    Ok(())
}

/// A whole number with commas.
#[must_use]
pub fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number);
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
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
