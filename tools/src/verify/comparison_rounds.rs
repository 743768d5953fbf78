//! Decides whether two answers differ while others write to the server.
//!
//! Headwater's answer counts as different only if the server's own is the same before and after it, several times, with growing pauses
//! between: so a change between two queries is no difference. A difference that comes and goes, as when memory serves only some calls, is
//! found too.

use std::time::Duration;

use super::answer::ComparableAnswer;
use super::compared_side::{ComparedSide, SideError};
use super::ties::{TieGroups, TieQuery};

const MAX_ROUNDS: usize = 12;
/// Rounds that must show a difference, or that it is gone.
const CONFIRMING_ROUNDS: usize = 3;
/// Pause before the first round; doubled with each.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerVerdict {
    Equal,
    /// Equal, except for the order of tied rows.
    Tied,
    Different(Box<AnswerPair>),
    /// They differed while the server's answer was the same before and after, and were equal later.
    Late(Box<AnswerPair>),
    /// The server's answer changed between any two queries.
    Undecided,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerPair {
    pub(super) headwater: Vec<ComparableAnswer>,
    pub(super) server: Vec<ComparableAnswer>,
}

/// The server's answers, with its tie groups.
#[derive(Clone, Debug, Default)]
struct ServerReply {
    answers: Vec<ComparableAnswer>,
    ties: Option<TieGroups>,
}

impl ServerReply {
    /// The verdict if another answer matches these; `None` if it does not.
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

/// Evaluates rounds until the verdict is certain.
#[derive(Debug, Default)]
struct ComparisonRounds {
    previous: ServerReply,
    /// The last pair for which the server's answer was the same before and after Headwater's.
    difference: Option<AnswerPair>,
    /// Rounds that showed a difference.
    differing_rounds: usize,
    /// Equal rounds since then.
    equal_rounds: usize,
    rounds: usize,
}

impl ComparisonRounds {
    /// Records Headwater's answers, and the server's after them.
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

async fn query_server(
    server: &mut ComparedSide,
    statements: &[String],
    ties: Option<&TieQuery>,
) -> Result<ServerReply, SideError> {
    let answers = server.query_each(statements).await?.0;
    let ties = match ties {
        Some(tie_query) => tie_query.groups(server.query_one(&tie_query.text).await?),
        None => None,
    };
    Ok(ServerReply { answers, ties })
}

/// Queries both sides again until the verdict on two different answers is certain. `ties`: the extra query where rows may tie. `settle`:
/// how stale answers may be, by the settings.
pub(super) async fn compare_again(
    statements: &[String],
    ties: Option<&TieQuery>,
    first: AnswerPair,
    (headwater, server): (&mut ComparedSide, &mut ComparedSide),
    staleness: Duration,
) -> Result<AnswerVerdict, SideError> {
    let mut rounds = ComparisonRounds {
        previous: query_server(server, statements, ties).await?,
        ..ComparisonRounds::default()
    };
    // The server's first answer came before Headwater's.
    if let Some(alike) = rounds.previous.match_answers(&first.headwater) {
        return Ok(alike);
    }
    if rounds.previous.match_answers(&first.server).is_some() {
        rounds.record_difference(first);
    }
    let mut pause = PAUSE;
    loop {
        tokio::time::sleep(pause + staleness).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        rounds.previous = query_server(server, statements, ties).await?;
        let served = headwater.query_each(statements).await?.0;
        let after = query_server(server, statements, ties).await?;
        if let Some(verdict) = rounds.record_round(served, after) {
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
