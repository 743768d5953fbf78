//! Whether two answers differ though both are given by a server on which others write meanwhile.
//!
//! Headwater's answer counts as another one only where the server's own is the same before and after it, several times, with
//! ever longer pauses between: a change that fell between two questions is then no difference. One that comes and goes, as memory
//! answers and then does not, is found as well.

use std::time::Duration;

use super::answer::Answer;
use super::side::{Lost, Side};
use super::ties::{Groups, Question};

/// Rounds until nothing more is expected of it.
const MOST_ROUNDS: usize = 12;
/// Rounds that have to show a difference, or that it is gone.
const STEADY: usize = 3;
/// Before the first round; doubled with each.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What came of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Equal,
    /// They are, but for the order of rows that tie.
    Tied,
    /// They stay different.
    Differ(Box<Pair>),
    /// They differed while the server's answer was the same before and after, and were equal later.
    Late(Box<Pair>),
    /// The server's answer changed between any two questions.
    Restless,
}

/// Both answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) headwater: Vec<Answer>,
    pub(super) server: Vec<Answer>,
}

/// What the server said, with what it says of ties.
#[derive(Clone, Debug, Default)]
struct Said {
    answers: Vec<Answer>,
    ties: Option<Groups>,
}

impl Said {
    /// What becomes of another answer that is compared with it; `None`: it is another one.
    fn likens(&self, other: &[Answer]) -> Option<Verdict> {
        if self.answers == other {
            return Some(Verdict::Equal);
        }
        match (&self.ties, other, &self.answers[..]) {
            (Some(ties), [page], [own]) if ties.allow(page, own) => Some(Verdict::Tied),
            _ => None,
        }
    }
}

/// Takes in rounds until it is sure.
#[derive(Debug, Default)]
struct Rounds {
    /// The server's answer that came last.
    before: Said,
    /// The last pair of which the server's answer was the same before and after Headwater's.
    apart: Option<Pair>,
    /// How often there was one.
    times_apart: usize,
    /// Rounds since then in which they were equal.
    equal: usize,
    rounds: usize,
}

impl Rounds {
    /// Takes in what Headwater said, and the server behind it.
    fn take(&mut self, headwater: Vec<Answer>, after: Said) -> Option<Verdict> {
        self.rounds += 1;
        let alike = self.before.likens(&headwater);
        if let Some(alike) = alike.or_else(|| after.likens(&headwater)) {
            if self.apart.is_none() {
                return Some(alike);
            }
            self.equal += 1;
        } else if after.likens(&self.before.answers).is_some() {
            self.apart(Pair {
                headwater,
                server: after.answers.clone(),
            });
        }
        self.before = after;
        let ended = self.rounds >= MOST_ROUNDS;
        match self.apart.take() {
            Some(pair) if self.times_apart >= STEADY => Some(Verdict::Differ(Box::new(pair))),
            Some(pair) if self.equal >= STEADY || ended => Some(Verdict::Late(Box::new(pair))),
            apart => {
                self.apart = apart;
                ended.then_some(Verdict::Restless)
            }
        }
    }

    fn apart(&mut self, pair: Pair) {
        self.apart = Some(pair);
        self.times_apart += 1;
        self.equal = 0;
    }
}

/// What the server says now.
async fn said(
    server: &mut Side,
    statements: &[String],
    ties: Option<&Question>,
) -> Result<Said, Lost> {
    let answers = server.talk(statements).await?.0;
    let ties = match ties {
        Some(question) => question.answered(server.ask_one(&question.text).await?),
        None => None,
    };
    Ok(Said { answers, ties })
}

/// Asks both again, until it is clear what becomes of two answers that differ. `ties`: what the server is asked as well, where rows may
/// tie. `settle`: so stale answers may be at most, by the settings.
pub(super) async fn again(
    statements: &[String],
    ties: Option<&Question>,
    first: Pair,
    (headwater, server): (&mut Side, &mut Side),
    settle: Duration,
) -> Result<Verdict, Lost> {
    let mut rounds = Rounds {
        before: said(server, statements, ties).await?,
        ..Rounds::default()
    };
    // The first answer of the server was given before Headwater's.
    if let Some(alike) = rounds.before.likens(&first.headwater) {
        return Ok(alike);
    }
    if rounds.before.likens(&first.server).is_some() {
        rounds.apart(first);
    }
    let mut pause = PAUSE;
    loop {
        tokio::time::sleep(pause + settle).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        rounds.before = said(server, statements, ties).await?;
        let own = headwater.talk(statements).await?.0;
        let after = said(server, statements, ties).await?;
        if let Some(verdict) = rounds.take(own, after) {
            return Ok(verdict);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(number: u64) -> Vec<Answer> {
        vec![Answer::Done {
            last_insert_id: number,
            warnings: 0,
        }]
    }

    fn said(number: u64) -> Said {
        Said {
            answers: say(number),
            ties: None,
        }
    }

    /// Each round: the server, Headwater, the server.
    fn judged(rounds: &[[u64; 3]]) -> (Option<Verdict>, usize) {
        let mut state = Rounds::default();
        for (at, [before, own, after]) in rounds.iter().enumerate() {
            state.before = said(*before);
            if let Some(verdict) = state.take(say(*own), said(*after)) {
                return (Some(verdict), at + 1);
            }
        }
        (None, rounds.len())
    }

    fn pair(headwater: u64, server: u64) -> Box<Pair> {
        Box::new(Pair {
            headwater: say(headwater),
            server: say(server),
        })
    }

    #[test]
    fn a_change_between_two_questions_is_no_difference() {
        assert_eq!(judged(&[[1, 1, 2]]), (Some(Verdict::Equal), 1));
        assert_eq!(judged(&[[1, 2, 2]]), (Some(Verdict::Equal), 1));
        assert_eq!(judged(&[[1, 2, 3], [4, 4, 4]]), (Some(Verdict::Equal), 2));
    }

    #[test]
    fn what_stays_different_is_one() {
        let verdict = Verdict::Differ(pair(9, 2));
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
        let verdict = Verdict::Differ(pair(9, 2));
        assert_eq!(judged(&comes_and_goes), (Some(verdict), 6));
    }

    #[test]
    fn a_difference_that_passes_is_told_of() {
        let verdict = Verdict::Late(pair(9, 1));
        let rounds = [[1, 9, 1], [1, 1, 1], [1, 1, 2], [2, 2, 2]];
        assert_eq!(judged(&rounds), (Some(verdict), 4));
    }

    #[test]
    fn what_changes_all_the_time_is_undecided() {
        let rounds: Vec<[u64; 3]> = (0..20).map(|at| [at * 3, at * 3 + 1, at * 3 + 2]).collect();
        assert_eq!(judged(&rounds), (Some(Verdict::Restless), MOST_ROUNDS));
    }
}
