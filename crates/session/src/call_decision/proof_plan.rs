//! Which proofs a call needs, and how they are asked for.

use headwater_lookup::lookup::CallLookup;

use crate::settings_probe;

/// ER_SP_WRONG_NO_OF_ARGS: the answer to a call that may be executed, but has no arguments.
pub(super) const WRONG_ARGUMENT_COUNT: u16 = 1318;
/// ER_SP_DOES_NOT_EXIST.
pub(super) const NO_PROCEDURE: u16 = 1305;

/// What has to be proved before a call is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProofPlan {
    pub(super) settings: bool,
    pub(super) tables: bool,
    pub(super) execute: bool,
    pub(super) count_result: bool,
    pub(super) count_heads: bool,
    /// The right to execute, behind all else.
    pub(super) execute_last: bool,
}

impl ProofPlan {
    /// Nothing is to be asked before the answer.
    pub(super) fn is_empty(self) -> bool {
        !(self.settings || self.tables || self.execute || self.count_result || self.count_heads)
    }

    /// The questions, in the order in which [`World::take_proofs`] takes their answers.
    pub(super) fn queries(
        self,
        lookup: &CallLookup<'_>,
        asked: settings_probe::ProbedServer,
    ) -> Vec<String> {
        let mut queries = Vec::new();
        if self.settings {
            queries.push(settings_probe::settings_query(asked));
        }
        if self.tables {
            queries.extend(lookup.temporary_table_queries());
        }
        if self.execute {
            queries.push(lookup.execute_probe(lookup.call.form));
        }
        if self.count_result {
            queries.push(lookup.count_query(&lookup.definition.result.table));
        }
        if self.count_heads {
            queries.push(lookup.count_query(&lookup.definition.heads.table));
        }
        queries
    }
}
