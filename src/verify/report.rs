//! What came of it, for people: by definition and feed, then each difference with both answers.

use std::time::Duration;

use super::answer::{Answer, Cells, first_difference};
use super::judge::Pair;
use super::progress::span;
use super::unit::{LeftOut, Question, Tally, Unit};
use crate::report::Report;
use crate::sql::quoted;

/// More differences are counted, and not shown.
pub(super) const MOST_SHOWN: usize = 20;
/// Rows of each.
const ROWS: usize = 8;
/// Characters of a row, and of a statement.
const ROW: usize = 60;
const STATEMENT: usize = 2_000;

/// Two answers that are to be shown.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) of: String,
    pub(super) database: String,
    pub(super) reader: i128,
    pub(super) statements: Vec<String>,
    pub(super) pair: Pair,
    /// It was gone when both were asked again.
    pub(super) late: bool,
}

/// Writes it part by part.
#[derive(Debug)]
pub(super) struct Findings<'a> {
    text: &'a mut String,
}

impl Report for Findings<'_> {
    fn text(&mut self) -> &mut String {
        self.text
    }
}

/// All that was found, put together.
#[derive(Debug)]
pub(super) struct Sum<'a> {
    pub(super) units: &'a [Unit],
    pub(super) left_out: &'a [LeftOut],
    pub(super) differences: &'a [Difference],
    /// Why Headwater tells nothing of itself.
    pub(super) silent: Option<&'a str>,
    /// Why it ended before its end.
    pub(super) stopped: Option<String>,
    pub(super) took: Duration,
}

impl<'a> Findings<'a> {
    pub(super) fn new(text: &'a mut String) -> Self {
        Findings { text }
    }

    /// Who is asked.
    pub(super) fn sides(
        &mut self,
        named: &str,
        upstream: &str,
        service: &str,
        headwater: &str,
        user: &str,
    ) {
        self.server(named, upstream);
        self.item(&format!("asked by the service account {service}"));
        self.line("Headwater");
        self.item(&format!("at {headwater}, asked by {user}"));
    }

    pub(super) fn write(&mut self, sum: &Sum<'_>) {
        if let Some(silent) = sum.silent {
            self.item(&format!(
                "it does not say what answers (SHOW HEADWATER: {silent}); statements of feeds are made from their definitions. \
                 {HOW_TO_HEAR}"
            ));
        }
        for unit in sum.units {
            self.unit(unit);
        }
        if !sum.left_out.is_empty() {
            self.part("Not compared");
            for own in sum.left_out {
                self.item(&format!("{}: {}", own.what, own.why));
            }
        }
        for (number, difference) in (1_usize..).zip(sum.differences) {
            self.difference(number, difference);
        }
        self.summary(sum);
    }

    fn unit(&mut self, unit: &Unit) {
        self.part(&format!(
            "{}: {} of {} readers",
            unit.title, unit.readers, unit.walk.total
        ));
        for question in &unit.questions {
            self.question(question);
        }
        for own in &unit.left_out {
            self.item(&format!("not compared: {}", own.what));
            self.item(&format!("    {}", own.why));
        }
    }

    fn question(&mut self, question: &Question) {
        let Question {
            title,
            tally,
            dropped,
            ..
        } = question;
        self.item(&cut(title, STATEMENT));
        if tally.compared > 0 || dropped.is_none() {
            self.item(&format!("    {}", counts(tally)));
        }
        if !tally.from.is_empty() {
            let from = tally
                .from
                .iter()
                .map(|(name, times)| format!("{name} {times}"));
            let from: Vec<String> = from.collect();
            let asked: u64 = tally.from.values().sum();
            self.item(&format!(
                "    answered from, of {asked} that Headwater was asked about: {}",
                from.join(", ")
            ));
        }
        if let Some(dropped) = dropped {
            self.item(&format!("    not compared further: {}", dropped.why));
        }
    }

    fn difference(&mut self, number: usize, difference: &Difference) {
        let Difference {
            of,
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
            self.item(&format!("{};", cut(statement, STATEMENT)));
        }
        let Pair { headwater, server } = pair;
        for at in 0..statements.len() {
            let (own, real) = (headwater.get(at), server.get(at));
            if own == real {
                continue;
            }
            if statements.len() > 1 {
                self.item(&format!("statement {}:", at + 1));
            }
            self.both(own, real);
        }
    }

    /// Two answers side by side.
    fn both(&mut self, headwater: Option<&Answer>, server: Option<&Answer>) {
        let said = |answer: Option<&Answer>| match answer {
            Some(answer) => cut(&answer.summary(), STATEMENT),
            None => "not asked, as the statement before was refused".to_owned(),
        };
        self.item(&format!("Headwater:  {}", said(headwater)));
        self.item(&format!("the server: {}", said(server)));
        let row = first_difference(headwater, server);
        let rows = |answer: Option<&Answer>| -> Vec<String> {
            let rows = answer.map(Answer::rows).unwrap_or_default();
            rows.iter().skip(row).take(ROWS).map(shown).collect()
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

    fn summary(&mut self, sum: &Sum<'_>) {
        let all = total(sum.units);
        let shown = sum.differences.iter().filter(|own| !own.late).count();
        let hidden = all
            .differ
            .saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
        let verdict = match (all.differ, all.compared) {
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
                 again: as freshness.mode bounded and session allow; in mode strict please report it.",
            );
        }
        if all.tied > 0 {
            self.line(&format!(
                "{} pages had ties: rows with the same values of all that orders the page, which SQL lets come in any order. With the id behind \
                 it (ORDER BY created_at DESC, id DESC) the order is one, and Headwater can answer more of them.",
                all.tied
            ));
        }
        if all.restless > 0 {
            self.line(
                "Answers that are undecided changed on the server between any two questions: ask again when fewer write.",
            );
        }
        let unread = sum
            .left_out
            .iter()
            .chain(sum.units.iter().flat_map(|it| &it.left_out));
        let dropped = sum.units.iter().flat_map(|unit| &unit.questions);
        let fails = unread.filter(|own| own.fails).count()
            + dropped
                .filter(|own| own.dropped.as_ref().is_some_and(|own| own.fails))
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

/// What it takes to be told more.
const HOW_TO_HEAR: &str =
    "The account needs PROCESS, and Headwater admin.show = true and a service account";

/// The tallies of all questions in one.
pub(super) fn total(units: &[Unit]) -> Tally {
    let mut all = Tally::default();
    for tally in units.iter().flat_map(|unit| &unit.questions) {
        let Tally {
            compared,
            equal,
            tied,
            differ,
            late,
            restless,
            again,
            ..
        } = &tally.tally;
        all.compared += compared;
        all.equal += equal;
        all.tied += tied;
        all.differ += differ;
        all.late += late;
        all.restless += restless;
        all.again += again;
    }
    all
}

fn counts(tally: &Tally) -> String {
    let tied = match tally.tied {
        0 => String::new(),
        tied => format!(", {tied} equal but for ties"),
    };
    let mut text = format!(
        "{} answers compared: {} equal{tied}, {} different",
        tally.compared, tally.equal, tally.differ
    );
    for (count, what) in [(tally.late, "late"), (tally.restless, "undecided")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    if tally.again > 0 {
        text.push_str(&format!("; {} had to be asked again", tally.again));
    }
    text
}

/// A row in one line.
fn shown(row: &Cells) -> String {
    let cells = row.iter().map(|cell| match cell {
        None => "NULL".to_owned(),
        Some(bytes) => String::from_utf8_lossy(bytes)
            .chars()
            .map(|letter| if letter.is_control() { '.' } else { letter })
            .take(ROW + 1)
            .collect(),
    });
    let cells: Vec<String> = cells.collect();
    cut(&cells.join(", "), ROW)
}

/// At most so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let front = text.chars().take(most.saturating_sub(3));
    front.chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&str]) -> Answer {
        Answer::Rows {
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
        Findings::new(&mut text).difference(
            1,
            &Difference {
                of: "feed home, database app".into(),
                database: "app".into(),
                reader: 7,
                statements: vec!["SELECT 1".into()],
                pair: Pair {
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
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abc...");
        let row = vec![Some(vec![b'x'; 1_000]), None];
        assert_eq!(shown(&row).chars().count(), ROW);
    }
}
