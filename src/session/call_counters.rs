//! What became of calls, by definition and by who answered: for those who watch.

use std::sync::atomic::{AtomicU64, Ordering};

use super::call_decision::ServedCallSource;
use super::call_relay_reason::CallRelayReason;
use crate::catalogue::MOST_DEFINITIONS;
use crate::timeline::definition::{DefinitionId, TimelineDefinition};

/// Who answered a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum CallAnswer {
    /// Memory.
    Memory,
    /// Lookups on the client's connection.
    Lookups,
    /// The server's procedure, on Headwater's behalf.
    Procedure,
    /// An error that interrupted the lookups.
    Interrupted,
}

impl CallAnswer {
    /// Each with its name, in the order of their numbers.
    pub const ALL: [(CallAnswer, &'static str); 4] = [
        (CallAnswer::Memory, "memory"),
        (CallAnswer::Lookups, "lookups"),
        (CallAnswer::Procedure, "procedure"),
        (CallAnswer::Interrupted, "interrupted"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut all = CallAnswer::ALL.into_iter();
        all.find(|(answer, _)| *answer == self)
            .map_or("", |(_, name)| name)
    }
}

impl From<ServedCallSource> for CallAnswer {
    fn from(source: ServedCallSource) -> CallAnswer {
        match source {
            ServedCallSource::Memory => CallAnswer::Memory,
            ServedCallSource::Lookups => CallAnswer::Lookups,
            ServedCallSource::Procedure => CallAnswer::Procedure,
        }
    }
}

/// Calls since the start.
#[derive(Debug)]
pub struct CallCounters {
    /// One for each definition, and the last for calls of which it is not known whose they are.
    by_definition: Box<[DefinitionCounters]>,
}

#[derive(Debug, Default)]
struct DefinitionCounters {
    answered: [AtomicU64; CallAnswer::ALL.len()],
    relayed: [AtomicU64; CallRelayReason::ALL.len()],
}

/// Calls of a definition that became the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOutcomeCount {
    /// `None`: it is not known.
    pub definition: Option<DefinitionId>,
    /// Who answered; `relayed` stands for the server.
    pub answer: &'static str,
    /// Why the server did; empty where it did not.
    pub reason: &'static str,
    /// How many.
    pub calls: u64,
}

/// The server answered a call as it came.
pub const RELAYED: &str = "relayed";

impl Default for CallCounters {
    fn default() -> CallCounters {
        CallCounters {
            by_definition: (0..=MOST_DEFINITIONS)
                .map(|_| DefinitionCounters::default())
                .collect(),
        }
    }
}

impl CallCounters {
    /// A call was answered by Headwater.
    pub fn answered(&self, definition: Option<DefinitionId>, answer: CallAnswer) {
        let counter = self
            .counters_of(definition)
            .and_then(|own| own.answered.get(answer as usize));
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A call was answered by the server, for this reason.
    pub fn relayed(&self, definition: Option<DefinitionId>, reason: CallRelayReason) {
        let counter = self
            .counters_of(definition)
            .and_then(|own| own.relayed.get(reason as usize));
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many calls of all definitions the server answered for this reason.
    #[must_use]
    pub fn relayed_for(&self, reason: CallRelayReason) -> u64 {
        let counters = self
            .by_definition
            .iter()
            .filter_map(|own| own.relayed.get(reason as usize));
        counters
            .map(|counter| counter.load(Ordering::Relaxed))
            .sum()
    }

    fn counters_of(&self, definition: Option<DefinitionId>) -> Option<&DefinitionCounters> {
        match definition {
            Some(definition) => self.by_definition.get(definition.0),
            None => self.by_definition.last(),
        }
    }

    /// What became of calls: every answer of every definition in use, and each reason for which one was relayed. Definitions that are
    /// retired count with the one of their name that is in use.
    #[must_use]
    pub fn outcome_counts(&self, definitions: &[TimelineDefinition]) -> Vec<CallOutcomeCount> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last = self.by_definition.len().saturating_sub(1);
        let in_use = |number: usize| definitions.get(number).is_some_and(|own| !own.retired);
        let each = self
            .by_definition
            .iter()
            .enumerate()
            .flat_map(|(number, own)| {
                let definition = (number < last).then(|| current_by_name(number, definitions));
                let answered = CallAnswer::ALL.iter().zip(&own.answered);
                let answered =
                    answered.map(move |((_, answer), counter)| (*answer, "", count(counter)));
                let relayed = CallRelayReason::ALL.iter().zip(&own.relayed);
                let relayed =
                    relayed.map(move |(why, counter)| (RELAYED, why.label(), count(counter)));
                let always = in_use(number);
                answered
                    .chain(relayed)
                    // What cannot be told of a definition that is not known would be zero for ever.
                    .filter(move |(_, reason, calls)| *calls > 0 || always && reason.is_empty())
                    .map(move |(answer, reason, calls)| CallOutcomeCount {
                        definition: definition.map(DefinitionId),
                        answer,
                        reason,
                        calls,
                    })
            });
        let mut all: Vec<CallOutcomeCount> = Vec::new();
        for became in each {
            let same = |own: &&mut CallOutcomeCount| {
                (own.definition, own.answer, own.reason)
                    == (became.definition, became.answer, became.reason)
            };
            match all.iter_mut().find(same) {
                Some(own) => own.calls += became.calls,
                None => all.push(became),
            }
        }
        all
    }
}

/// The definition of the same name that is in use, or the first one that was.
fn current_by_name(number: usize, definitions: &[TimelineDefinition]) -> usize {
    let Some(own) = definitions.get(number) else {
        return number;
    };
    let named = || definitions.iter().enumerate();
    let mut named = named().filter(|(_, other)| other.name == own.name);
    let first = named.clone().next();
    let used = named.find(|(_, other)| !other.retired);
    used.or(first).map_or(number, |(at, _)| at)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_definition_answer_and_reason() {
        for (place, (answer, _)) in CallAnswer::ALL.iter().enumerate() {
            assert_eq!(*answer as usize, place);
        }
        let calls = CallCounters::default();
        calls.answered(Some(DefinitionId(1)), CallAnswer::Memory);
        calls.relayed(Some(DefinitionId(0)), CallRelayReason::InTransaction);
        calls.relayed(None, CallRelayReason::Arguments);
        let named = |name: &str, retired| TimelineDefinition {
            name: name.to_owned(),
            retired,
            ..TimelineDefinition::classic()
        };
        let mut definitions = vec![named("a", false), named("b", false)];
        let became = calls.outcome_counts(&definitions);
        let told: Vec<_> = became
            .iter()
            .filter(|it| it.calls > 0)
            .map(|it| (it.definition.map(|it| it.0), it.answer, it.reason))
            .collect();
        let expected = [
            (Some(0), "relayed", "in_transaction"),
            (Some(1), "memory", ""),
            (None, "relayed", "arguments"),
        ];
        assert_eq!(told, expected);
        // Each answer of each definition is there from the start.
        assert_eq!(became.len(), 2 * CallAnswer::ALL.len() + 2);
        // One that was changed goes on counting under its name.
        definitions = vec![named("a", true), named("b", false), named("a", false)];
        calls.relayed(Some(DefinitionId(2)), CallRelayReason::InTransaction);
        let became = calls.outcome_counts(&definitions);
        let changed = |it: &&CallOutcomeCount| it.reason == "in_transaction";
        let changed: Vec<_> = became.iter().filter(changed).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].calls, 2);
        assert_eq!(changed[0].definition, Some(DefinitionId(2)));
    }
}
