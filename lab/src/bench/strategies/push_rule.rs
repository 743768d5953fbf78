//! The fastest strategy at each ratio of reads to writes, and the rule for when to push an edge of the graph.
//!
//! The rule of Feeding Frenzy (Silberstein and others, SIGMOD 2010): push an edge from an author to a reader if that costs less than
//! pulling it, that is, if the reader's reads for each message of the author exceed the cost of a push divided by that of a pull.

use super::figures::{EngineDataset, StrategyFigures};
use super::strategy::FreshnessClaim;

/// Pages read for each message written.
pub const RATIOS: [f64; 7] = [0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0];

/// Pages and messages a second with so many pages for each message.
#[must_use]
pub fn combined_rate(ratio: f64, it: &StrategyFigures) -> f64 {
    let time = ratio / it.pages_per_s + 1.0 / it.messages_per_s;
    (ratio + 1.0) / time
}

/// The fastest of these at this ratio; with `fresh`, only of those whose pages are always fresh and complete.
#[must_use]
pub fn fastest<'a>(
    ratio: f64,
    all: &[&'a StrategyFigures],
) -> (Option<&'a StrategyFigures>, Option<&'a StrategyFigures>) {
    let fastest = |fresh: bool| {
        all.iter()
            .filter(|it| !fresh || it.claims == FreshnessClaim::Fresh)
            .max_by(|one, other| combined_rate(ratio, one).total_cmp(&combined_rate(ratio, other)))
            .copied()
    };
    (fastest(false), fastest(true))
}

/// The rule for pushing into a mailbox in place of pulling with a given strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PushRule {
    /// Push where a reader reads this many times as often as the author writes.
    Above(f64),
    /// Pulling a page costs no more: never push.
    Never,
}

/// The rule for this data, and the costs of one push and of one pull of an edge, in microseconds of one processor's share.
#[must_use]
pub fn push_rule(
    pull: &StrategyFigures,
    push: &StrategyFigures,
    engine: &EngineDataset,
) -> (PushRule, f64, f64) {
    let push_us =
        (1e6 / push.messages_per_s - 1e6 / pull.messages_per_s) / engine.followers_per_message;
    let pull_us = (1e6 / pull.pages_per_s - 1e6 / push.pages_per_s) / engine.follows_per_reader;
    if pull_us <= 0.0 {
        return (PushRule::Never, push_us, pull_us);
    }
    (
        PushRule::Above(push_us.max(0.0) / pull_us),
        push_us,
        pull_us,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(
        name: &'static str,
        claims: FreshnessClaim,
        pages: f64,
        messages: f64,
    ) -> StrategyFigures {
        StrategyFigures {
            name,
            claims,
            pages_per_s: pages,
            messages_per_s: messages,
            ..StrategyFigures::empty()
        }
    }

    #[test]
    fn who_writes_cheaply_wins_among_writes_and_who_reads_cheaply_among_reads() {
        let (pull, push) = (
            measured("pull", FreshnessClaim::Fresh, 100.0, 1_000.0),
            measured("push", FreshnessClaim::Fresh, 1_000.0, 100.0),
        );
        let stale = measured("stale", FreshnessClaim::Stale, 5_000.0, 90.0);
        let all = [&pull, &push, &stale];
        let names = |ratio| {
            let (any, fresh) = fastest(ratio, &all);
            (any.map(|it| it.name), fresh.map(|it| it.name))
        };
        assert_eq!(names(0.01), (Some("pull"), Some("pull")));
        assert_eq!(names(100.0), (Some("stale"), Some("push")));
        let even = combined_rate(1.0, &pull) - combined_rate(1.0, &push);
        assert!(even.abs() < 1e-6, "{even}");
    }

    #[test]
    fn an_edge_is_pushed_where_reads_outnumber_writes_by_what_it_costs() {
        let engine = EngineDataset {
            followers_per_message: 10.0,
            follows_per_reader: 10.0,
            ..EngineDataset::empty()
        };
        let push = measured("push", FreshnessClaim::Fresh, 1_000.0, 100.0);
        let pull = measured("pull", FreshnessClaim::Fresh, 100.0, 1_000.0);
        let (PushRule::Above(ratio), push_us, pull_us) = push_rule(&pull, &push, &engine) else {
            unreachable!("a page costs more by pull");
        };
        assert!((push_us - 900.0).abs() < 1e-6 && (pull_us - 900.0).abs() < 1e-6);
        assert!((ratio - 1.0).abs() < 1e-6);
        let fast = measured("headwater", FreshnessClaim::Fresh, 2_000.0, 1_000.0);
        assert_eq!(push_rule(&fast, &push, &engine).0, PushRule::Never);
    }
}
