//! Whether two answers differ though both are given by a server on which others write meanwhile.
//!
//! Headwater's answer counts as another one only where the server's own is the same before and after it, several times, with
//! ever longer pauses between: a change that fell between two questions is then no difference. One that comes and goes, as memory
//! answers and then does not, is found as well.

use std::time::Duration;

use super::answer::ComparableAnswer;
use super::compared_side::{ComparedSide, SideError};
use super::ties::{TieGroups, TieQuery};

/// Rounds until nothing more is expected of it.
const MAX_ROUNDS: usize = 12;
/// Rounds that have to show a difference, or that it is gone.
const CONFIRMING_ROUNDS: usize = 3;
/// Before the first round; doubled with each.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What came of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerVerdict {
    Equal,
    /// They are, but for the order of rows that tie.
    Tied,
    /// They stay different.
    Different(Box<AnswerPair>),
    /// They differed while the server's answer was the same before and after, and were equal later.
    Late(Box<AnswerPair>),
    /// The server's answer changed between any two questions.
    Undecided,
}

/// Both answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerPair {
    pub(super) headwater: Vec<ComparableAnswer>,
    pub(super) server: Vec<ComparableAnswer>,
}

/// What the server said, with what it says of ties.
#[derive(Clone, Debug, Default)]
struct ServerReply {
    answers: Vec<ComparableAnswer>,
    ties: Option<TieGroups>,
}

impl ServerReply {
    /// What becomes of another answer that is compared with it; `None`: it is another one.
    fn match_answers(&self, other: &[ComparableAnswer]) -> Option<AnswerVerdict> {
        if self.answers == other {
            return Some(AnswerVerdict::Equal);
        }
        match (&self.ties, other, &self.answers[..]) {
            (Some(ties), [page], [own]) if ties.allows(page, own) => Some(AnswerVerdict::Tied),
            _ => None,
        }
    }
}

/// Takes in rounds until it is sure.
#[derive(Debug, Default)]
struct ComparisonRounds {
    /// The server's answer that came last.
    previous: ServerReply,
    /// The last pair of which the server's answer was the same before and after Headwater's.
    difference: Option<AnswerPair>,
    /// How often there was one.
    differing_rounds: usize,
    /// Rounds since then in which they were equal.
    equal_rounds: usize,
    rounds: usize,
}

impl ComparisonRounds {
    /// Takes in what Headwater said, and the server behind it.
    fn record_round(
        &mut self,
        headwater: Vec<ComparableAnswer>,
        after: ServerReply,
    ) -> Option<AnswerVerdict> {
        self.rounds += 1;
        let alike = self.previous.match_answers(&headwater);
        if let Some(alike) = alike.or_else(|| after.match_answers(&headwater)) {
            if self.difference.is_none() {
                return Some(alike);
            }
            self.equal_rounds += 1;
        } else if after.match_answers(&self.previous.answers).is_some() {
            self.record_difference(AnswerPair {
                headwater,
                server: after.answers.clone(),
            });
        }
        self.previous = after;
        let ended = self.rounds >= MAX_ROUNDS;
        match self.difference.take() {
            Some(pair) if self.differing_rounds >= CONFIRMING_ROUNDS => {
                Some(AnswerVerdict::Different(Box::new(pair)))
            }
            Some(pair) if self.equal_rounds >= CONFIRMING_ROUNDS || ended => {
                Some(AnswerVerdict::Late(Box::new(pair)))
            }
            apart => {
                self.difference = apart;
                ended.then_some(AnswerVerdict::Undecided)
            }
        }
    }

    fn record_difference(&mut self, pair: AnswerPair) {
        self.difference = Some(pair);
        self.differing_rounds += 1;
        self.equal_rounds = 0;
    }
}

/// What the server says now.
async fn query_server(
    server: &mut ComparedSide,
    statements: &[String],
    ties: Option<&TieQuery>,
) -> Result<ServerReply, SideError> {
    let answers = server.query_each(statements).await?.0;
    let ties = match ties {
        Some(question) => question.groups(server.query_one(&question.text).await?),
        None => None,
    };
    Ok(ServerReply { answers, ties })
}

/// Asks both again, until it is clear what becomes of two answers that differ. `ties`: what the server is asked as well, where rows may
/// tie. `settle`: so stale answers may be at most, by the settings.
pub(super) async fn compare_again(
    statements: &[String],
    ties: Option<&TieQuery>,
    first: AnswerPair,
    (headwater, server): (&mut ComparedSide, &mut ComparedSide),
    settle: Duration,
) -> Result<AnswerVerdict, SideError> {
    let mut rounds = ComparisonRounds {
        previous: query_server(server, statements, ties).await?,
        ..ComparisonRounds::default()
    };
    // The first answer of the server was given before Headwater's.
    if let Some(alike) = rounds.previous.match_answers(&first.headwater) {
        return Ok(alike);
    }
    if rounds.previous.match_answers(&first.server).is_some() {
        rounds.record_difference(first);
    }
    let mut pause = PAUSE;
    loop {
        tokio::time::sleep(pause + settle).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        rounds.previous = query_server(server, statements, ties).await?;
        let own = headwater.query_each(statements).await?.0;
        let after = query_server(server, statements, ties).await?;
        if let Some(verdict) = rounds.record_round(own, after) {
            return Ok(verdict);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(number: u64) -> Vec<ComparableAnswer> {
        vec![ComparableAnswer::Done {
            last_insert_id: number,
            warnings: 0,
        }]
    }

    fn said(number: u64) -> ServerReply {
        ServerReply {
            answers: say(number),
            ties: None,
        }
    }

    /// Each round: the server, Headwater, the server.
    fn judged(rounds: &[[u64; 3]]) -> (Option<AnswerVerdict>, usize) {
        let mut state = ComparisonRounds::default();
        for (at, [before, own, after]) in rounds.iter().enumerate() {
            state.previous = said(*before);
            if let Some(verdict) = state.record_round(say(*own), said(*after)) {
                return (Some(verdict), at + 1);
            }
        }
        (None, rounds.len())
    }

    fn pair(headwater: u64, server: u64) -> Box<AnswerPair> {
        Box::new(AnswerPair {
            headwater: say(headwater),
            server: say(server),
        })
    }

    #[test]
    fn a_change_between_two_questions_is_no_difference() {
        assert_eq!(judged(&[[1, 1, 2]]), (Some(AnswerVerdict::Equal), 1));
        assert_eq!(judged(&[[1, 2, 2]]), (Some(AnswerVerdict::Equal), 1));
        assert_eq!(
            judged(&[[1, 2, 3], [4, 4, 4]]),
            (Some(AnswerVerdict::Equal), 2)
        );
    }

    #[test]
    fn what_stays_different_is_one() {
        let verdict = AnswerVerdict::Different(pair(9, 2));
        assert_eq!(
            judged(&[[1, 9, 1], [2, 9, 2], [2, 9, 2]]),
            (Some(verdict), 3)
        );
        let comes_and_goes = [
            [1, 9, 1],
            [1, 1, 1],
            [1, 9, 1],
            [1, 9, 2],
            [2, 2, 2],
            [2, 9, 2],
        ];
        let verdict = AnswerVerdict::Different(pair(9, 2));
        assert_eq!(judged(&comes_and_goes), (Some(verdict), 6));
    }

    #[test]
    fn a_difference_that_passes_is_told_of() {
        let verdict = AnswerVerdict::Late(pair(9, 1));
        let rounds = [[1, 9, 1], [1, 1, 1], [1, 1, 2], [2, 2, 2]];
        assert_eq!(judged(&rounds), (Some(verdict), 4));
    }

    #[test]
    fn what_changes_all_the_time_is_undecided() {
        let rounds: Vec<[u64; 3]> = (0..20).map(|at| [at * 3, at * 3 + 1, at * 3 + 2]).collect();
        assert_eq!(
            judged(&rounds),
            (Some(AnswerVerdict::Undecided), MAX_ROUNDS)
        );
    }
}
