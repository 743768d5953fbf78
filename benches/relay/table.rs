//! The scores as text.

use std::fmt::Write as _;

use super::score::{Contender, FigureAim, FigureScore, RelayFigure, ValueSpread};

/// A line for each figure, a column for each contender, and what is aimed at.
pub(crate) fn table(scores: &[FigureScore], contenders: &[Contender]) -> String {
    let mut rows = vec![head(contenders)];
    rows.extend(scores.iter().map(|score| row(score, contenders)));
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(move |row| row.get(column)))
        .map(|cells| {
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a String does not fail.
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                // What stands behind the contenders is read from the left.
                _ if column > contenders.len() => write!(line, "   {cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn head(contenders: &[Contender]) -> Vec<String> {
    let mut cells = vec![String::new()];
    cells.extend(
        contenders
            .iter()
            .map(|contender| contender.name().to_owned()),
    );
    cells.extend(["Headwater/HAProxy", "target", ""].map(str::to_owned));
    cells
}

fn row(score: &FigureScore, contenders: &[Contender]) -> Vec<String> {
    let mut cells = vec![score.figure.title().to_owned()];
    let value = |contender: &Contender| match score.median_of(*contender) {
        Some(value) => number(value, score.figure),
        None => "-".to_owned(),
    };
    cells.extend(contenders.iter().map(value));
    cells.push(score.ratio().map_or("-".to_owned(), ratio));
    cells.push(match score.figure.aim() {
        FigureAim::RatioAtLeast(least) => format!("at least {least:.1}"),
        FigureAim::RatioAtMost(most) => format!("at most {most:.1}"),
        FigureAim::AtMost(most) => format!("Headwater at most {most:.0}"),
    });
    cells.push(match score.is_met() {
        Some(true) => "met".to_owned(),
        Some(false) => "MISS".to_owned(),
        None => "not measured".to_owned(),
    });
    cells
}

fn ratio(of: ValueSpread) -> String {
    if of.least == of.most {
        return format!("{:.2}", of.median);
    }
    format!("{:.2} ({:.2}..{:.2})", of.median, of.least, of.most)
}

fn number(value: f64, figure: RelayFigure) -> String {
    format!("{value:.*}", figure.decimals())
}
