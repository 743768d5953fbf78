//! Which proofs a call needs, and the queries for them.

use headwater_lookup::lookup::CallLookup;

use crate::settings_probe;

/// ER_SP_WRONG_NO_OF_ARGS: the reply to an argument-less call of a procedure that the account may execute.
pub(super) const WRONG_ARGUMENT_COUNT: u16 = 1318;
/// ER_SP_DOES_NOT_EXIST.
pub(super) const NO_PROCEDURE: u16 = 1305;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProofPlan {
    pub(super) settings: bool,
    pub(super) tables: bool,
    pub(super) execute: bool,
    pub(super) count_result: bool,
    pub(super) count_heads: bool,
    /// The right to execute, as the last step.
    pub(super) execute_last: bool,
}

impl ProofPlan {
    pub(super) fn is_empty(self) -> bool {
        !(self.settings || self.tables || self.execute || self.count_result || self.count_heads)
    }

    /// The queries, in the order in which `CallContext::take_proofs` takes their replies.
    pub(super) fn queries(
        self,
        lookup: &CallLookup<'_>,
        server: settings_probe::ProbedServer,
    ) -> Vec<String> {
        let mut queries = Vec::new();
        if self.settings {
            queries.push(settings_probe::settings_query(server));
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
