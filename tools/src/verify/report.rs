//! The report: results by definition and feed, then each difference with both answers.

use std::time::Duration;

use super::answer::{AnswerRow, ComparableAnswer, first_difference};
use super::comparison_rounds::AnswerPair;
use super::progress::span;
use super::verify_unit::{ReaderQuery, SkippedComparison, VerdictTally, VerifyUnit};
use headwater_server::report::ReportWriter;
use headwater_sql::quoted;

/// The most differences shown; more are only counted.
pub(super) const MAX_DIFFERENCES_SHOWN: usize = 20;
/// The most rows shown of each.
const ROWS_SHOWN: usize = 8;
/// The most characters of a row, and of a statement.
const ROW: usize = 60;
const STATEMENT_CHARS: usize = 2_000;

#[derive(Debug)]
pub(super) struct AnswerDifference {
    pub(super) unit_title: String,
    pub(super) database: String,
    pub(super) reader: i128,
    pub(super) statements: Vec<String>,
    pub(super) pair: AnswerPair,
    /// It was gone when both sides were queried again.
    pub(super) late: bool,
}

#[derive(Debug)]
pub(super) struct VerifyReport<'a> {
    text: &'a mut String,
}

impl ReportWriter for VerifyReport<'_> {
    fn text(&mut self) -> &mut String {
        self.text
    }
}

#[derive(Debug)]
pub(super) struct VerifySummary<'a> {
    pub(super) units: &'a [VerifyUnit],
    pub(super) skipped: &'a [SkippedComparison],
    pub(super) differences: &'a [AnswerDifference],
    /// Why Headwater reports nothing about itself.
    pub(super) explanation_refusal: Option<&'a str>,
    pub(super) stopped: Option<String>,
    pub(super) took: Duration,
}

impl<'a> VerifyReport<'a> {
    pub(super) fn new(text: &'a mut String) -> Self {
        VerifyReport { text }
    }

    pub(super) fn sides(
        &mut self,
        product: &str,
        upstream: &str,
        service: &str,
        headwater: &str,
        user: &str,
    ) {
        self.server(product, upstream);
        self.item(&format!("asked by the service account {service}"));
        self.line("Headwater");
        self.item(&format!("at {headwater}, asked by {user}"));
    }

    pub(super) fn write(&mut self, sum: &VerifySummary<'_>) {
        if let Some(silent) = sum.explanation_refusal {
            self.item(&format!(
                "it does not say what answers (SHOW HEADWATER: {silent}); statements of feeds are made from their definitions. \
                 {EXPLANATION_HINT}"
            ));
        }
        for unit in sum.units {
            self.unit(unit);
        }
        if !sum.skipped.is_empty() {
            self.part("Not compared");
            for skipped in sum.skipped {
                self.item(&format!("{}: {}", skipped.what, skipped.why));
            }
        }
        for (number, difference) in (1_usize..).zip(sum.differences) {
            self.difference(number, difference);
        }
        self.summary(sum);
    }

    fn unit(&mut self, unit: &VerifyUnit) {
        self.part(&format!(
            "{}: {} of {} readers",
            unit.title, unit.readers, unit.scan.total
        ));
        for query in &unit.queries {
            self.question(query);
        }
        for skipped in &unit.skipped {
            self.item(&format!("not compared: {}", skipped.what));
            self.item(&format!("    {}", skipped.why));
        }
    }

    fn question(&mut self, question: &ReaderQuery) {
        let ReaderQuery {
            title,
            tally,
            drop_reason: dropped,
            ..
        } = question;
        self.item(&shorten(title, STATEMENT_CHARS));
        if tally.compared > 0 || dropped.is_none() {
            self.item(&format!("    {}", counts(tally)));
        }
        if !tally.answered_from.is_empty() {
            let from = tally
                .answered_from
                .iter()
                .map(|(name, times)| format!("{name} {times}"));
            let from: Vec<String> = from.collect();
            let asked: u64 = tally.answered_from.values().sum();
            self.item(&format!(
                "    answered from, of {asked} that Headwater was asked about: {}",
                from.join(", ")
            ));
        }
        if let Some(dropped) = dropped {
            self.item(&format!("    not compared further: {}", dropped.why));
        }
    }

    fn difference(&mut self, number: usize, difference: &AnswerDifference) {
        let AnswerDifference {
            unit_title: of,
            database,
            reader,
            statements,
            pair,
            late,
        } = difference;
        let kind = match late {
            true => "A difference that was gone when both were asked again",
            false => "Difference",
        };
        self.part(&format!("{kind} ({number}): {of}, reader {reader}"));
        self.item(&format!("USE {};", quoted(database)));
        for statement in statements {
            self.item(&format!("{};", shorten(statement, STATEMENT_CHARS)));
        }
        let AnswerPair { headwater, server } = pair;
        for at in 0..statements.len() {
            let (own, real) = (headwater.get(at), server.get(at));
            if own == real {
                continue;
            }
            if statements.len() > 1 {
                self.item(&format!("statement {}:", at + 1));
            }
            self.side_by_side(own, real);
        }
    }

    fn side_by_side(
        &mut self,
        headwater: Option<&ComparableAnswer>,
        server: Option<&ComparableAnswer>,
    ) {
        let summary = |answer: Option<&ComparableAnswer>| match answer {
            Some(answer) => shorten(&answer.summary(), STATEMENT_CHARS),
            None => "not asked, as the statement before was refused".to_owned(),
        };
        self.item(&format!("Headwater:  {}", summary(headwater)));
        self.item(&format!("the server: {}", summary(server)));
        let row = first_difference(headwater, server);
        let rows = |answer: Option<&ComparableAnswer>| -> Vec<String> {
            let rows = answer.map(ComparableAnswer::rows).unwrap_or_default();
            rows.iter().skip(row).take(ROWS_SHOWN).map(shown).collect()
        };
        let (own, real) = (rows(headwater), rows(server));
        let most = own.len().max(real.len());
        if most == 0 {
            return;
        }
        let empty = String::new();
        self.item(&format!("row  {:ROW$} | the server", "Headwater"));
        for line in 0..most {
            let own = own.get(line).unwrap_or(&empty);
            let real = real.get(line).unwrap_or(&empty);
            let mark = if own == real { ' ' } else { '*' };
            self.item(&format!("{:3}{mark} {own:ROW$} | {real}", row + line + 1));
        }
    }

    fn summary(&mut self, sum: &VerifySummary<'_>) {
        let all = total(sum.units);
        let shown = sum
            .differences
            .iter()
            .filter(|difference| !difference.late)
            .count();
        let hidden = all
            .different
            .saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
        let verdict = match (all.different, all.compared) {
            (0, 0) => "Nothing was compared".to_owned(),
            (0, _) if all.late > 0 => "Equal, in the end".to_owned(),
            (0, _) => "All equal".to_owned(),
            (differ, _) => format!("DIFFERENCES: {differ}"),
        };
        self.part(&format!(
            "{verdict}. {}, in {}.",
            counts(&all),
            span(sum.took)
        ));
        if hidden > 0 {
            self.line(&format!(
                "{hidden} more differences are not shown: --readers LIST shows those of some readers."
            ));
        }
        if all.late > 0 {
            self.line(
                "Answers that were late differed while the server's own was the same before and after, and were equal when both were asked \
                 again: as freshness.mode bounded and session allow. In mode strict a change that was taken back between the questions can look \
                 like this; if nobody made one, please report it.",
            );
        }
        if all.tied > 0 {
            self.line(&format!(
                "{} pages had ties: rows with the same values of all that orders the page, which SQL lets come in any order. With the id behind \
                 it (ORDER BY created_at DESC, id DESC) the order is one, and Headwater can answer more of them.",
                all.tied
            ));
        }
        if all.undecided > 0 {
            self.line(
                "Answers that are undecided changed on the server between any two questions: ask again when fewer write.",
            );
        }
        let unread = sum
            .skipped
            .iter()
            .chain(sum.units.iter().flat_map(|it| &it.skipped));
        let dropped = sum.units.iter().flat_map(|unit| &unit.queries);
        let fails = unread.filter(|skipped| skipped.fails).count()
            + dropped
                .filter(|reason| reason.drop_reason.as_ref().is_some_and(|own| own.fails))
                .count();
        if fails > 0 {
            self.line(&format!(
                "Something could not be compared, for a right that is missing: see \"not compared\" above ({fails})."
            ));
        }
        if let Some(stopped) = &sum.stopped {
            self.line(&format!("Stopped early: {stopped}"));
        }
    }
}

/// What an account needs to get explanations.
const EXPLANATION_HINT: &str =
    "The account needs PROCESS, and Headwater admin.show = true and a service account";

pub(super) fn total(units: &[VerifyUnit]) -> VerdictTally {
    let mut all = VerdictTally::default();
    for tally in units.iter().flat_map(|unit| &unit.queries) {
        let VerdictTally {
            compared,
            equal,
            tied,
            different: differ,
            late,
            undecided: restless,
            asked_again: again,
            ..
        } = &tally.tally;
        all.compared += compared;
        all.equal += equal;
        all.tied += tied;
        all.different += differ;
        all.late += late;
        all.undecided += restless;
        all.asked_again += again;
    }
    all
}

fn counts(tally: &VerdictTally) -> String {
    let tied = match tally.tied {
        0 => String::new(),
        tied => format!(", {tied} equal but for ties"),
    };
    let mut text = format!(
        "{} answers compared: {} equal{tied}, {} different",
        tally.compared, tally.equal, tally.different
    );
    for (count, what) in [(tally.late, "late"), (tally.undecided, "undecided")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    if tally.asked_again > 0 {
        text.push_str(&format!("; {} had to be asked again", tally.asked_again));
    }
    text
}

fn shown(row: &AnswerRow) -> String {
    let cells = row.iter().map(|cell| match cell {
        None => "NULL".to_owned(),
        Some(bytes) => String::from_utf8_lossy(bytes)
            .chars()
            .map(|letter| if letter.is_control() { '.' } else { letter })
            .take(ROW + 1)
            .collect(),
    });
    let cells: Vec<String> = cells.collect();
    shorten(&cells.join(", "), ROW)
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let front = text.chars().take(most.saturating_sub(3));
    front.chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&str]) -> ComparableAnswer {
        ComparableAnswer::Rows {
            columns: vec![Vec::new()],
            rows: cells
                .iter()
                .map(|cell| vec![Some(cell.as_bytes().to_vec())])
                .collect(),
            warnings: 0,
        }
    }

    #[test]
    fn both_answers_stand_side_by_side_with_what_it_takes_to_see_them_again() {
        let mut text = String::new();
        VerifyReport::new(&mut text).difference(
            1,
            &AnswerDifference {
                unit_title: "feed home, database app".into(),
                database: "app".into(),
                reader: 7,
                statements: vec!["SELECT 1".into()],
                pair: AnswerPair {
                    headwater: vec![rows(&["a", "old\n"])],
                    server: vec![rows(&["a", "new", "c"])],
                },
                late: false,
            },
        );
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let blank = " ".repeat(ROW - 4);
        assert_eq!(
            lines,
            [
                "".to_owned(),
                "Difference (1): feed home, database app, reader 7".to_owned(),
                "USE `app`;".to_owned(),
                "SELECT 1;".to_owned(),
                "Headwater:  2 rows of 1 column".to_owned(),
                "the server: 3 rows of 1 column".to_owned(),
                format!("row  Headwater{} | the server", " ".repeat(ROW - 9)),
                format!("2* old.{blank} | new"),
                format!("3*     {blank} | c"),
            ]
        );
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefg", 6), "abc...");
        let row = vec![Some(vec![b'x'; 1_000]), None];
        assert_eq!(shown(&row).chars().count(), ROW);
    }
}
