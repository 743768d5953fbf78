//! Counters of calls, by definition and answer.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::catalogue::MOST_DEFINITIONS;
use headwater_session::call_decision::ServedCallSource;
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};

/// What answered a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum CallAnswer {
    /// Memory.
    Memory,
    /// Lookups on the client's connection.
    Lookups,
    /// The server's procedure, run by Headwater.
    Procedure,
    /// An error that interrupted the lookups.
    Interrupted,
}

impl CallAnswer {
    /// Every answer with its name, in the order of their numbers.
    pub const ALL: [(CallAnswer, &'static str); 4] = [
        (CallAnswer::Memory, "memory"),
        (CallAnswer::Lookups, "lookups"),
        (CallAnswer::Procedure, "procedure"),
        (CallAnswer::Interrupted, "interrupted"),
    ];

    /// The name in metrics.
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

/// Numbers of calls since the start.
#[derive(Debug)]
pub struct CallCounters {
    /// One for each definition, and the last for calls of unknown definitions.
    by_definition: Box<[DefinitionCounters]>,
}

#[derive(Debug, Default)]
struct DefinitionCounters {
    answered: [AtomicU64; CallAnswer::ALL.len()],
    relayed: [AtomicU64; CallRelayReason::ALL.len()],
}

/// A number of calls with one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOutcomeCount {
    /// `None`: unknown.
    pub definition: Option<DefinitionId>,
    /// What answered; `relayed` stands for the server.
    pub answer: &'static str,
    /// Why the call was relayed; empty if it was not.
    pub reason: &'static str,
    /// Number of calls.
    pub calls: u64,
}

/// The answer's name if the server answered the relayed call.
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
    /// Counts a served call.
    pub fn answered(&self, definition: Option<DefinitionId>, answer: CallAnswer) {
        let counter = self
            .counters_of(definition)
            .and_then(|counters| counters.answered.get(answer as usize));
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a relayed call, by its reason.
    pub fn relayed(&self, definition: Option<DefinitionId>, reason: CallRelayReason) {
        let counter = self
            .counters_of(definition)
            .and_then(|counters| counters.relayed.get(reason as usize));
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of calls relayed for this reason, over all definitions.
    #[must_use]
    pub fn relayed_for(&self, reason: CallRelayReason) -> u64 {
        let counters = self
            .by_definition
            .iter()
            .filter_map(|of_definition| of_definition.relayed.get(reason as usize));
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

    /// The numbers of calls: every answer of every definition in use, and each relay reason that occurred. Retired definitions count with
    /// the one of their name that is in use.
    #[must_use]
    pub fn outcome_counts(&self, definitions: &[TimelineDefinition]) -> Vec<CallOutcomeCount> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last = self.by_definition.len().saturating_sub(1);
        let in_use = |number: usize| definitions.get(number).is_some_and(|own| !own.retired);
        let each = self
            .by_definition
            .iter()
            .enumerate()
            .flat_map(|(number, counters)| {
                let definition = (number < last).then(|| current_by_name(number, definitions));
                let answered = CallAnswer::ALL.iter().zip(&counters.answered);
                let answered =
                    answered.map(move |((_, answer), counter)| (*answer, "", count(counter)));
                let relayed = CallRelayReason::ALL.iter().zip(&counters.relayed);
                let relayed =
                    relayed.map(move |(why, counter)| (RELAYED, why.label(), count(counter)));
                let always = in_use(number);
                answered
                    .chain(relayed)
                    // Zeros only for answers of definitions in use: others could stay zero for ever.
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
            let same = |existing: &&mut CallOutcomeCount| {
                (existing.definition, existing.answer, existing.reason)
                    == (became.definition, became.answer, became.reason)
            };
            match all.iter_mut().find(same) {
                Some(existing) => existing.calls += became.calls,
                None => all.push(became),
            }
        }
        all
    }
}

/// The definition of the same name that is in use, or else the first of that name.
fn current_by_name(number: usize, definitions: &[TimelineDefinition]) -> usize {
    let Some(definition) = definitions.get(number) else {
        return number;
    };
    let named = || definitions.iter().enumerate();
    let mut named = named().filter(|(_, other)| other.name == definition.name);
    let first = named.clone().next();
    let used = named.find(|(_, other)| !other.retired);
    used.or(first).map_or(number, |(at, _)| at)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_definition_answer_and_reason() {
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
        // A changed definition continues to count under its name.
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
