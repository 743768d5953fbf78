//! Looks into answers that are not the procedure's: has the data moved on, or is the answer wrong?

use std::fmt;

use serde::Serialize;

use super::client::{BenchClient, BenchClientError};
use super::prepared_task::{PreparedTask, parse_messages};
use super::query_path::{PageTask, QueryForm, QueryPath};

/// How often an unexpected answer is asked for again, with the procedure before and behind it.
const ATTEMPTS: usize = 3;
/// Differences that are kept whole.
const MAX_REPORTED: usize = 100;

/// An unexpected answer, as a slice found it.
#[derive(Debug)]
pub struct UnexpectedAnswer {
    index: usize,
    rows: Vec<u8>,
    times: u64,
}

impl UnexpectedAnswer {
    /// Notes an answer to the work of this index; of several to the same, the first is kept.
    pub fn record(noted: &mut Vec<UnexpectedAnswer>, index: usize, rows: &[u8]) {
        match noted.iter_mut().find(|wrong| wrong.index == index) {
            Some(wrong) => wrong.times += 1,
            None => noted.push(UnexpectedAnswer {
                index,
                rows: rows.to_vec(),
                times: 1,
            }),
        }
    }
}

/// All answers that differ from the procedure's.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BenchDifferences {
    /// How many there were.
    pub answers: u64,
    /// The first of them.
    pub kept: Vec<BenchDifference>,
}

impl BenchDifferences {
    /// Counts those that were found elsewhere too.
    pub fn merge(&mut self, others: BenchDifferences) {
        self.answers += others.answers;
        self.kept.extend(others.kept);
        self.kept.truncate(MAX_REPORTED);
    }

    /// Counts a difference, and keeps it while there are few.
    pub fn add(&mut self, difference: BenchDifference) {
        self.answers += difference.times;
        if self.kept.len() < MAX_REPORTED {
            self.kept.push(difference);
        }
    }
}

/// An answer that differs from the procedure's.
#[derive(Clone, Debug, Serialize)]
pub struct BenchDifference {
    /// Who gave it.
    pub way: QueryPath,
    /// What was asked for.
    pub task: PageTask,
    /// How often it was given in the slice that found it.
    pub times: u64,
    /// The answer: id and body of each message, or its bytes where it holds no messages.
    pub answer: Vec<String>,
    /// The procedure's.
    pub procedure: Vec<String>,
}

impl fmt::Display for BenchDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PageTask { reader, bound } = self.task;
        write!(f, "reader {reader}")?;
        if let Some(bound) = bound {
            write!(f, ", ids up to {bound}")?;
        }
        for (who, lines) in [
            ("the procedure", &self.procedure),
            (self.way.label(), &self.answer),
        ] {
            write!(f, "\n  {who}, {} messages:", lines.len())?;
            for line in lines {
                write!(f, "\n    {line}")?;
            }
        }
        Ok(())
    }
}

/// Judges what a slice noted. `client` is one that gave such answers, `direct` asks the procedure.
///
/// Where the data has changed since the expected answer was taken, the new one is expected from now on. A message that
/// came and went between two looks can still show up as a difference: the bench is meant for data that rests.
///
/// # Errors
/// When a connection fails.
pub fn verify_answers(
    way: QueryPath,
    noted: Vec<UnexpectedAnswer>,
    works: &mut [PreparedTask],
    client: &mut BenchClient,
    direct: &mut BenchClient,
) -> Result<Vec<BenchDifference>, BenchClientError> {
    let mut differences = Vec::new();
    let mut moved_on = Vec::new();
    for wrong in noted {
        let Some(work) = works.get_mut(wrong.index) else {
            continue;
        };
        let (mut before, mut answer) = (Vec::new(), Vec::new());
        work.query(way.form.expected_form(), direct, &mut before)?;
        // Where the procedure still answers as of old, nobody has written: the answer was wrong.
        let moved = before != work.expected(way.form) || moved_on.contains(&wrong.index);
        let mut right = before == wrong.rows;
        for _ in 0..ATTEMPTS {
            if right || !moved {
                break;
            }
            let form = if way.form == QueryForm::Call {
                QueryForm::CallAndTail
            } else {
                way.form
            };
            let mut after = Vec::new();
            work.query(form, client, &mut answer)?;
            work.query(way.form.expected_form(), direct, &mut after)?;
            right = answer == before || answer == after || way.form == QueryForm::Bodies;
            before = after;
        }
        if right {
            moved_on.push(wrong.index);
            work.set_expected(way.form, before)?;
        } else {
            differences.push(BenchDifference {
                way,
                task: work.task,
                times: wrong.times,
                answer: lines(&wrong.rows),
                procedure: lines(&before),
            });
        }
    }
    Ok(differences)
}

fn lines(rows: &[u8]) -> Vec<String> {
    match parse_messages(rows) {
        Ok(messages) => messages
            .into_iter()
            .map(|message| format!("{} {}", message.id, message.body))
            .collect(),
        Err(_) => vec![format!("not a page: {:?}", String::from_utf8_lossy(rows))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench::query_path::ConnectionRoute;

    #[test]
    fn the_same_answer_again_is_counted_and_not_kept() {
        let mut noted = Vec::new();
        for index in [3, 5, 3] {
            UnexpectedAnswer::record(&mut noted, index, b"x");
        }
        let times: Vec<_> = noted
            .iter()
            .map(|wrong| (wrong.index, wrong.times))
            .collect();
        assert_eq!(times, [(3, 2), (5, 1)]);
    }

    #[test]
    fn a_difference_shows_both_answers() {
        let difference = BenchDifference {
            way: QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail),
            task: PageTask {
                reader: 7,
                bound: Some(9),
            },
            times: 1,
            answer: lines(b"\x018\x011\x02hi"),
            procedure: lines(b"\x019\x011\x02ho"),
        };
        let shown = difference.to_string();
        assert!(shown.contains("reader 7, ids up to 9"), "{shown}");
        assert!(
            shown.contains("procedure, 1 messages:\n    9 ho"),
            "{shown}"
        );
        assert!(
            shown.contains("CALL + tail, 1 messages:\n    8 hi"),
            "{shown}"
        );
    }
}
