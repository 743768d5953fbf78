//! A proof of freshness beside the question about a session's settings. An app that connects for each request waits for the longer of
//! the two, and not for both.

use super::state::{Session, SessionEnd};
use crate::binlog::Binlog;
use headwater_session::call_decision::InternalQueries;
use headwater_wire::resultset::QueryReply;

/// What an answer from memory needs of proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProofNeed {
    /// Memory must be proved fresh after the statement arrived.
    pub(super) is_needed: bool,
    /// No proof has succeeded yet since it arrived.
    pub(super) is_open: bool,
}

impl Session {
    /// Runs the question about settings and, beside it, the proof that an answer from memory will need.
    pub(super) async fn query_settings_beside_proof(
        &mut self,
        question: &InternalQueries,
    ) -> Result<Vec<QueryReply>, SessionEnd> {
        let needed = self
            .shared
            .binlog
            .clone()
            .filter(|binlog| !binlog.is_suspended() && self.must_prove(binlog));
        let Some(binlog) = needed else {
            return self.run_internal_queries(question).await;
        };
        let generation = binlog.mark().map(|mark| mark.generation());
        let (answers, proved) = tokio::join!(self.run_internal_queries(question), binlog.prove());
        self.early_proof = generation.filter(|_| proved);
        answers
    }

    /// A proof of before now says nothing of what follows: another statement, or another question in the session.
    pub(super) fn forget_early_proof(&mut self) {
        self.early_proof = None;
    }

    /// What the next answer from memory needs. An early proof counts for one answer, and for the stream that it was made with.
    pub(super) fn take_proof_need(&mut self, binlog: &Binlog) -> ProofNeed {
        let is_needed = self.must_prove(binlog);
        let early = self.early_proof.take();
        let is_proved = early.is_some() && early == binlog.mark().map(|mark| mark.generation());
        ProofNeed {
            is_needed,
            is_open: is_needed && !is_proved,
        }
    }

    pub(super) fn must_prove(&mut self, binlog: &Binlog) -> bool {
        binlog.must_prove(self.server_was_queried) || self.assumes_no_functions()
    }
}
