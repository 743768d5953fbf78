//! Whether a procedure's definer may still do what its body does, as the server's own runs of it tell: pure.
//!
//! A procedure runs with its definer's rights, and those can be taken away at any time by statements that Headwater does not
//! see. So an answer of ours needs a run of the real procedure, not older than `privileges.ttl_s`, that was not denied. One run
//! serves all sessions: the rights are the definer's, whoever calls.

use std::time::Duration;

use headwater_timeline::ProcedureForm;

/// What is known of a definer's rights to what one form's procedure does. Times count from a beginning that all share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefinerRightProof {
    /// Nobody has seen the procedure run.
    #[default]
    Unknown,
    /// A run that was sent at this time read both tables.
    Proved {
        /// When it was sent.
        at: Duration,
        /// When a call was told to run the procedure so that the proof does not grow too old.
        renewing: Option<Duration>,
    },
    /// A run was denied.
    Lost {
        /// When that was heard, or when a call was last told to try again.
        at: Duration,
    },
}

/// What a call is to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStrategy {
    /// It may be answered from what is known.
    Answer,
    /// It has the server run the procedure, and is answered with what that leaves.
    Run,
    /// It is relayed: the server has just denied the same.
    Relay,
}

/// This part of a proof's life is left when it is renewed: one call a `ttl`, while the others are answered.
const RENEWAL_FRACTION: u32 = 8;

/// What a definer is told who lacks a right that the body needs: to the database, a table, a column; or who is gone.
const DENIAL_ERRORS: [u16; 5] = [1044, 1142, 1143, 1227, 1449];

impl DefinerRightProof {
    /// A call came: what it is to do.
    pub fn strategy(&mut self, now: Duration, ttl: Duration) -> CallStrategy {
        match self {
            Self::Unknown => CallStrategy::Run,
            Self::Proved { at, renewing } => {
                let age = now.saturating_sub(*at);
                let lead = ttl / RENEWAL_FRACTION;
                if age >= ttl {
                    return CallStrategy::Run;
                }
                let renews = |since: Duration| now.saturating_sub(since) < lead;
                if age < ttl - lead || renewing.is_some_and(renews) {
                    return CallStrategy::Answer;
                }
                *renewing = Some(now);
                CallStrategy::Run
            }
            Self::Lost { at } if now.saturating_sub(*at) < ttl => CallStrategy::Relay,
            Self::Lost { at } => {
                *at = now;
                CallStrategy::Run
            }
        }
    }

    /// A run that was sent then succeeded, and read both tables.
    pub fn run_succeeded(&mut self, sent: Duration) {
        let overtaken = match self {
            Self::Unknown => false,
            Self::Proved { at, .. } => *at >= sent,
            // What was asked before the denial was heard may have been answered before it was one.
            Self::Lost { at } => *at > sent,
        };
        if !overtaken {
            *self = Self::Proved {
                at: sent,
                renewing: None,
            };
        }
    }

    /// A run was denied; this was heard now.
    pub fn run_was_denied(&mut self, now: Duration) {
        *self = Self::Lost { at: now };
    }
}

/// True for an error by which the server says that the definer of a procedure lacks a right, or is gone.
#[must_use]
pub fn denies_definer(code: u16) -> bool {
    DENIAL_ERRORS.contains(&code)
}

/// Whether a run that left so many rows read both tables. Only then did the server look at the rights to them: the statements
/// within the loop of a cursor are not looked at where the cursor has no row.
#[must_use]
pub fn has_read_both(form: ProcedureForm, ids: usize, heads: usize) -> bool {
    match form {
        // Its cursor is over both tables.
        ProcedureForm::Newest => true,
        ProcedureForm::Bounded => ids > 0,
        ProcedureForm::Heads => heads > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::CallStrategy::{Answer, Relay, Run};
    use super::*;

    const TTL: Duration = Duration::from_millis(800);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn proved(at: u64) -> DefinerRightProof {
        let mut right = DefinerRightProof::Unknown;
        right.run_succeeded(ms(at));
        right
    }

    /// What calls at these times are told.
    fn told(right: &mut DefinerRightProof, calls: &[u64]) -> Vec<CallStrategy> {
        let course = |at: &u64| right.strategy(ms(*at), TTL);
        calls.iter().map(course).collect()
    }

    #[test]
    fn until_a_run_has_succeeded_each_call_runs_the_procedure() {
        assert_eq!(told(&mut DefinerRightProof::Unknown, &[0, 1, 2]), [Run; 3]);
    }

    #[test]
    fn a_proof_holds_for_its_time_and_no_longer() {
        let calls = [100, 101, 799, 900, 901];
        assert_eq!(
            told(&mut proved(100), &calls),
            [Answer, Answer, Answer, Run, Run]
        );
    }

    #[test]
    fn one_call_renews_a_proof_while_the_others_are_answered() {
        let mut right = proved(0);
        assert_eq!(
            told(&mut right, &[699, 700, 701, 750]),
            [Answer, Run, Answer, Answer]
        );
        right.run_succeeded(ms(700));
        assert_eq!(
            told(&mut right, &[800, 1_399, 1_400]),
            [Answer, Answer, Run]
        );
        // That one does not come back.
        assert_eq!(told(&mut right, &[1_499, 1_500, 1_501]), [Answer, Run, Run]);
    }

    #[test]
    fn who_renews_and_is_not_heard_of_is_followed_by_another() {
        let mut right = proved(0);
        let ttl = ms(8_000);
        let mut told = |at| right.strategy(ms(at), ttl);
        assert_eq!(
            [told(7_000), told(7_500), told(7_999)],
            [Run, Answer, Answer]
        );
        assert_eq!([told(8_000), told(8_001)], [Run, Run]);
    }

    #[test]
    fn a_denial_has_calls_relayed_and_one_try_again_after_a_while() {
        let mut right = proved(0);
        right.run_was_denied(ms(10));
        assert_eq!(
            told(&mut right, &[11, 809, 810, 811]),
            [Relay, Relay, Run, Relay]
        );
        right.run_succeeded(ms(810));
        assert_eq!(told(&mut right, &[812]), [Answer]);
    }

    #[test]
    fn a_run_from_before_a_denial_proves_nothing() {
        let mut right = proved(0);
        right.run_was_denied(ms(10));
        right.run_succeeded(ms(9));
        assert_eq!(told(&mut right, &[11]), [Relay]);
    }

    #[test]
    fn an_older_run_does_not_make_a_proof_older() {
        let mut right = proved(100);
        right.run_succeeded(ms(50));
        assert_eq!(right, proved(100));
    }

    #[test]
    fn without_a_time_to_live_every_call_runs_the_procedure() {
        let mut right = proved(5);
        assert_eq!(right.strategy(ms(5), Duration::ZERO), Run);
        right.run_was_denied(ms(6));
        assert_eq!(right.strategy(ms(6), Duration::ZERO), Run);
    }

    #[test]
    fn a_reader_who_follows_nobody_proves_the_newest_page_alone() {
        assert!(has_read_both(ProcedureForm::Newest, 0, 0));
        // Heads without ids: the helper read the messages, the page's own procedure did not.
        assert!(!has_read_both(ProcedureForm::Bounded, 0, 3));
        assert!(has_read_both(ProcedureForm::Bounded, 1, 1));
        assert!(!has_read_both(ProcedureForm::Heads, 0, 0));
        assert!(has_read_both(ProcedureForm::Heads, 0, 1));
    }
}
