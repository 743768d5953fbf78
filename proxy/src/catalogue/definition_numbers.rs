//! Numbers of definitions, valid while the process runs: sessions, counters and verdicts identify a definition by its number.

use headwater_timeline::definition::TimelineDefinition;

/// The most definitions numbered in the life of a process, retired ones included.
pub const MOST_DEFINITIONS: usize = 256;

/// Numbers the requested definitions; those of `before` keep their numbers. A definition that is there again is in use again, one no longer
/// requested is retired, and a new one gets a new number. `None`: there are too many to be numbered.
#[must_use]
pub fn assign_numbers(
    before: &[TimelineDefinition],
    requested: &[TimelineDefinition],
) -> Option<Vec<TimelineDefinition>> {
    let mut all = before.to_vec();
    for definition in &mut all {
        definition.retired = false;
        definition.retired = !requested.contains(definition);
    }
    for wished in requested {
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
        // One is removed, one is changed, one is new.
        let second = assign_numbers(&first, &[named("c", 20), named("b", 30)]).unwrap();
        let expected = [
            ("a", 20, true),
            ("b", 20, true),
            ("c", 20, false),
            ("b", 30, false),
        ];
        assert_eq!(shown(&second), expected);
        // Definitions that come back keep their old numbers.
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
