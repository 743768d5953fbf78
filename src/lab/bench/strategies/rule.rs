//! At which ratio of reads to writes which strategy wins, and where an edge of the graph is better pushed than pulled.
//!
//! The rule of Feeding Frenzy (Silberstein and others, SIGMOD 2010): an edge from an author to a reader is pushed where that costs less than
//! pulling it, that is, where the reader reads so much more often than the author writes as a push costs more than a pull.

use super::figures::{Engine, Measured};
use super::strategy::Claim;

/// Pages read for each message written.
pub const RATIOS: [f64; 7] = [0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0];

/// Pages and messages a second where so many pages are read for each message.
#[must_use]
pub fn at(ratio: f64, it: &Measured) -> f64 {
    let time = ratio / it.pages_per_s + 1.0 / it.messages_per_s;
    (ratio + 1.0) / time
}

/// The fastest of these at this ratio, and of those whose pages are always fresh and whole.
#[must_use]
pub fn best<'a>(ratio: f64, all: &[&'a Measured]) -> (Option<&'a Measured>, Option<&'a Measured>) {
    let fastest = |fresh: bool| {
        all.iter()
            .filter(|it| !fresh || it.claims == Claim::Fresh)
            .max_by(|one, other| at(ratio, one).total_cmp(&at(ratio, other)))
            .copied()
    };
    (fastest(false), fastest(true))
}

/// What the rule says of pushing into a mailbox instead of pulling by this strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Push where a reader reads this many times as often as the author writes.
    Above(f64),
    /// A page costs no more by pull: nothing is to be pushed.
    Never,
}

/// The rule for this data, with what one push and one pull of an edge cost, in microseconds of one processor's share.
#[must_use]
pub fn rule(pull: &Measured, push: &Measured, engine: &Engine) -> (Rule, f64, f64) {
    let push_us =
        (1e6 / push.messages_per_s - 1e6 / pull.messages_per_s) / engine.followers_per_message;
    let pull_us = (1e6 / pull.pages_per_s - 1e6 / push.pages_per_s) / engine.follows_per_reader;
    if pull_us <= 0.0 {
        return (Rule::Never, push_us, pull_us);
    }
    (Rule::Above(push_us.max(0.0) / pull_us), push_us, pull_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &'static str, claims: Claim, pages: f64, messages: f64) -> Measured {
        Measured {
            name,
            claims,
            pages_per_s: pages,
            messages_per_s: messages,
            ..Measured::empty()
        }
    }

    #[test]
    fn who_writes_cheaply_wins_among_writes_and_who_reads_cheaply_among_reads() {
        let (pull, push) = (
            measured("pull", Claim::Fresh, 100.0, 1_000.0),
            measured("push", Claim::Fresh, 1_000.0, 100.0),
        );
        let stale = measured("stale", Claim::Stale, 5_000.0, 90.0);
        let all = [&pull, &push, &stale];
        let names = |ratio| {
            let (any, fresh) = best(ratio, &all);
            (any.map(|it| it.name), fresh.map(|it| it.name))
        };
        assert_eq!(names(0.01), (Some("pull"), Some("pull")));
        assert_eq!(names(100.0), (Some("stale"), Some("push")));
        let even = at(1.0, &pull) - at(1.0, &push);
        assert!(even.abs() < 1e-6, "{even}");
    }

    #[test]
    fn an_edge_is_pushed_where_reads_outnumber_writes_by_what_it_costs() {
        let engine = Engine {
            followers_per_message: 10.0,
            follows_per_reader: 10.0,
            ..Engine::empty()
        };
        let push = measured("push", Claim::Fresh, 1_000.0, 100.0);
        let pull = measured("pull", Claim::Fresh, 100.0, 1_000.0);
        let (Rule::Above(ratio), push_us, pull_us) = rule(&pull, &push, &engine) else {
            unreachable!("a page costs more by pull");
        };
        assert!((push_us - 900.0).abs() < 1e-6 && (pull_us - 900.0).abs() < 1e-6);
        assert!((ratio - 1.0).abs() < 1e-6);
        let fast = measured("headwater", Claim::Fresh, 2_000.0, 1_000.0);
        assert_eq!(rule(&fast, &push, &engine).0, Rule::Never);
    }
}
