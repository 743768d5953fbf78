//! Whether a procedure's definer may still do what its body does, from the server's own runs of it: pure.
//!
//! A procedure runs with its definer's rights, and statements that Headwater does not see can revoke these at any time. So a served call
//! needs a run of the real procedure that was not denied and is not older than `privileges.ttl_s`. One run serves all sessions: the rights
//! are the definer's, whichever session calls.

use std::time::Duration;

use headwater_timeline::ProcedureForm;

/// What is known of the definer's rights for one form's procedure. Times count from a common start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefinerRightProof {
    /// No run of the procedure was seen.
    #[default]
    Unknown,
    /// A run that was sent at this time read both tables.
    Proved {
        /// When it was sent.
        at: Duration,
        /// When a call was chosen to renew the proof.
        renewing: Option<Duration>,
    },
    /// A run was denied.
    Lost {
        /// When the denial was received, or when a call was last chosen to try again.
        at: Duration,
    },
}

/// What a call does about the definer's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStrategy {
    /// Serve it from what is known.
    Answer,
    /// Have the server run the procedure, and serve what that leaves.
    Run,
    /// Relay it: the server has just denied the same.
    Relay,
}

/// A proof is renewed when this fraction of its life remains: one call per `ttl` runs the procedure, while the others are served.
const RENEWAL_FRACTION: u32 = 8;

/// The errors where a definer lacks a right that the body needs (to the database, a table, a column) or does not exist.
const DENIAL_ERRORS: [u16; 5] = [1044, 1142, 1143, 1227, 1449];

impl DefinerRightProof {
    /// Decides the strategy of a call.
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

    /// A run that was sent at this time succeeded, and read both tables.
    pub fn run_succeeded(&mut self, sent: Duration) {
        let overtaken = match self {
            Self::Unknown => false,
            Self::Proved { at, .. } => *at >= sent,
            // A run sent before the denial was received may have been answered before the denial.
            Self::Lost { at } => *at > sent,
        };
        if !overtaken {
            *self = Self::Proved {
                at: sent,
                renewing: None,
            };
        }
    }

    /// A run was denied; the error was received now.
    pub fn run_was_denied(&mut self, now: Duration) {
        *self = Self::Lost { at: now };
    }
}

/// True for an error that reports that a procedure's definer lacks a right, or does not exist.
#[must_use]
pub fn denies_definer(code: u16) -> bool {
    DENIAL_ERRORS.contains(&code)
}

/// True where a run with these row counts read both tables. Only then did the server check the rights to them: it does not check the
/// statements in a cursor's loop where the cursor has no row.
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

    /// The strategies of calls at these times.
    fn strategies(right: &mut DefinerRightProof, calls: &[u64]) -> Vec<CallStrategy> {
        let course = |at: &u64| right.strategy(ms(*at), TTL);
        calls.iter().map(course).collect()
    }

    #[test]
    fn until_a_run_has_succeeded_each_call_runs_the_procedure() {
        assert_eq!(
            strategies(&mut DefinerRightProof::Unknown, &[0, 1, 2]),
            [Run; 3]
        );
    }

    #[test]
    fn a_proof_holds_for_its_time_and_no_longer() {
        let calls = [100, 101, 799, 900, 901];
        assert_eq!(
            strategies(&mut proved(100), &calls),
            [Answer, Answer, Answer, Run, Run]
        );
    }

    #[test]
    fn one_call_renews_a_proof_while_the_others_are_answered() {
        let mut right = proved(0);
        assert_eq!(
            strategies(&mut right, &[699, 700, 701, 750]),
            [Answer, Run, Answer, Answer]
        );
        right.run_succeeded(ms(700));
        assert_eq!(
            strategies(&mut right, &[800, 1_399, 1_400]),
            [Answer, Answer, Run]
        );
        // That call does not come back.
        assert_eq!(
            strategies(&mut right, &[1_499, 1_500, 1_501]),
            [Answer, Run, Run]
        );
    }

    #[test]
    fn a_renewal_without_a_result_is_followed_by_another() {
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
            strategies(&mut right, &[11, 809, 810, 811]),
            [Relay, Relay, Run, Relay]
        );
        right.run_succeeded(ms(810));
        assert_eq!(strategies(&mut right, &[812]), [Answer]);
    }

    #[test]
    fn a_run_from_before_a_denial_proves_nothing() {
        let mut right = proved(0);
        right.run_was_denied(ms(10));
        right.run_succeeded(ms(9));
        assert_eq!(strategies(&mut right, &[11]), [Relay]);
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
    fn a_reader_without_follows_proves_the_newest_page_alone() {
        assert!(has_read_both(ProcedureForm::Newest, 0, 0));
        // Heads without ids: the helper read the messages, the page's own procedure did not.
        assert!(!has_read_both(ProcedureForm::Bounded, 0, 3));
        assert!(has_read_both(ProcedureForm::Bounded, 1, 1));
        assert!(!has_read_both(ProcedureForm::Heads, 0, 0));
        assert!(has_read_both(ProcedureForm::Heads, 0, 1));
    }
}
