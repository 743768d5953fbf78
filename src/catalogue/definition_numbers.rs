//! Numbers of definitions that hold for as long as the process runs: sessions, counters and verdicts name a definition by its number.

use crate::timeline::definition::TimelineDefinition;

/// More definitions than this are not numbered in the life of a process, those that are gone included.
pub const MOST_DEFINITIONS: usize = 256;

/// The definitions that are wished for, where those of `before` keep their numbers: one that is the same is in use again, one that is not
/// wished for any more is retired, and one that is new has a number of its own. `None`: there are more than can be numbered.
#[must_use]
pub fn assign_numbers(
    before: &[TimelineDefinition],
    wished: &[TimelineDefinition],
) -> Option<Vec<TimelineDefinition>> {
    let mut all = before.to_vec();
    for own in &mut all {
        own.retired = false;
        own.retired = !wished.contains(own);
    }
    for wished in wished {
        if !all.contains(wished) {
            all.push(wished.clone());
        }
    }
    (all.len() <= MOST_DEFINITIONS).then_some(all)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn named(name: &str, n: u32) -> TimelineDefinition {
        let name = name.to_owned();
        TimelineDefinition {
            name,
            n,
            ..TimelineDefinition::classic()
        }
    }

    fn shown(all: &[TimelineDefinition]) -> Vec<(&str, u32, bool)> {
        let shown = all.iter();
        shown
            .map(|own| (own.name.as_str(), own.n, own.retired))
            .collect()
    }

    #[test]
    fn a_number_never_means_another_definition() {
        let first = assign_numbers(&[], &[named("a", 20), named("b", 20)]).unwrap();
        // One is gone, one is changed, one is new.
        let second = assign_numbers(&first, &[named("c", 20), named("b", 30)]).unwrap();
        let expected = [
            ("a", 20, true),
            ("b", 20, true),
            ("c", 20, false),
            ("b", 30, false),
        ];
        assert_eq!(shown(&second), expected);
        // Those that come back have the numbers that they had.
        let third = assign_numbers(&second, &[named("b", 20), named("a", 20)]).unwrap();
        let expected = [
            ("a", 20, false),
            ("b", 20, false),
            ("c", 20, true),
            ("b", 30, true),
        ];
        assert_eq!(shown(&third), expected);
    }

    #[test]
    fn numbers_end() {
        let mut all = Vec::new();
        for n in 1..=256 {
            all = assign_numbers(&all, &[named("a", n)]).unwrap();
        }
        assert_eq!(assign_numbers(&all, &[named("a", 257)]), None);
        assert!(assign_numbers(&all, &[named("a", 7)]).is_some());
    }
}
