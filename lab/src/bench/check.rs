//! Checks answers that differ from the procedure's: did the data change, or is the answer wrong?

use std::fmt;

use serde::Serialize;

use super::client::{BenchClient, BenchClientError};
use super::prepared_task::{PreparedTask, parse_messages};
use crate::query_path::{PageTask, QueryForm, QueryPath};

/// How often an unexpected answer is requested again, with the procedure's answer before and after it.
const ATTEMPTS: usize = 3;
/// Differences that are reported in full; later ones are only counted.
const MAX_REPORTED: usize = 100;

/// An answer that differs from the expected one, recorded during a slice.
#[derive(Debug)]
pub struct UnexpectedAnswer {
    index: usize,
    rows: Vec<u8>,
    times: u64,
}

impl UnexpectedAnswer {
    /// Records an answer to the task of this index; of several to the same task, the first is kept.
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
    /// The number of differences.
    pub answers: u64,
    /// The first differences.
    pub kept: Vec<BenchDifference>,
}

impl BenchDifferences {
    /// Adds the differences of another measurement.
    pub fn merge(&mut self, others: BenchDifferences) {
        self.answers += others.answers;
        self.kept.extend(others.kept);
        self.kept.truncate(MAX_REPORTED);
    }

    /// Counts a difference, and stores it while there are few.
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
    /// The query path that returned it.
    pub way: QueryPath,
    /// The requested page.
    pub task: PageTask,
    /// How often it was returned in that slice.
    pub times: u64,
    /// The answer: id and body of each message, or the raw bytes if it contains no messages.
    pub answer: Vec<String>,
    /// The procedure's answer.
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

/// Verifies what a slice recorded. `client` is a connection that returned such answers; `direct` calls the procedure.
///
/// If the data changed after the expected answer was taken, the new answer becomes the expected one. A message that appears and disappears
/// between two queries can still be reported as a difference: the bench is meant for data at rest.
///
/// # Errors
/// Fails if a connection fails.
pub fn verify_answers(
    path: QueryPath,
    noted: Vec<UnexpectedAnswer>,
    prepared_tasks: &mut [PreparedTask],
    client: &mut BenchClient,
    direct: &mut BenchClient,
) -> Result<Vec<BenchDifference>, BenchClientError> {
    let mut differences = Vec::new();
    let mut moved_on = Vec::new();
    for wrong in noted {
        let Some(prepared) = prepared_tasks.get_mut(wrong.index) else {
            continue;
        };
        let (mut before, mut answer) = (Vec::new(), Vec::new());
        prepared.query(path.form.expected_form(), direct, &mut before)?;
        // If the procedure's answer is unchanged, no data was written: the answer was wrong.
        let moved = before != prepared.expected(path.form) || moved_on.contains(&wrong.index);
        let mut right = before == wrong.rows;
        for _ in 0..ATTEMPTS {
            if right || !moved {
                break;
            }
            let form = if path.form == QueryForm::Call {
                QueryForm::CallAndTail
            } else {
                path.form
            };
            let mut after = Vec::new();
            prepared.query(form, client, &mut answer)?;
            prepared.query(path.form.expected_form(), direct, &mut after)?;
            right = answer == before || answer == after || path.form == QueryForm::Bodies;
            before = after;
        }
        if right {
            moved_on.push(wrong.index);
            prepared.set_expected(path.form, before)?;
        } else {
            differences.push(BenchDifference {
                way: path,
                task: prepared.task,
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
    use crate::query_path::ConnectionRoute;

    #[test]
    fn a_repeated_answer_is_counted_once_stored() {
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
