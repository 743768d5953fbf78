//! Numbers of definitions that hold for as long as the process runs: sessions, counters and verdicts name a definition by its number.

use crate::timeline::definition::Definition;

/// More definitions than this are not numbered in the life of a process, those that are gone included.
pub const MOST_DEFINITIONS: usize = 256;

/// The definitions that are wished for, where those of `before` keep their numbers: one that is the same is in use again, one that is not
/// wished for any more is retired, and one that is new has a number of its own. `None`: there are more than can be numbered.
#[must_use]
pub fn numbered(before: &[Definition], wished: &[Definition]) -> Option<Vec<Definition>> {
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

    fn named(name: &str, n: u32) -> Definition {
        let name = name.to_owned();
        Definition {
            name,
            n,
            ..Definition::classic()
        }
    }

    fn shown(all: &[Definition]) -> Vec<(&str, u32, bool)> {
        let shown = all.iter();
        shown
            .map(|own| (own.name.as_str(), own.n, own.retired))
            .collect()
    }

    #[test]
    fn a_number_never_means_another_definition() {
        let first = numbered(&[], &[named("a", 20), named("b", 20)]).unwrap();
        // One is gone, one is changed, one is new.
        let second = numbered(&first, &[named("c", 20), named("b", 30)]).unwrap();
        let expected = [
            ("a", 20, true),
            ("b", 20, true),
            ("c", 20, false),
            ("b", 30, false),
        ];
        assert_eq!(shown(&second), expected);
        // Those that come back have the numbers that they had.
        let third = numbered(&second, &[named("b", 20), named("a", 20)]).unwrap();
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
            all = numbered(&all, &[named("a", n)]).unwrap();
        }
        assert_eq!(numbered(&all, &[named("a", 257)]), None);
        assert!(numbered(&all, &[named("a", 7)]).is_some());
    }
}
