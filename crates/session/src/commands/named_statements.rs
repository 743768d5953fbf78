//! PREPARE, EXECUTE and DEALLOCATE PREPARE: statements with a name.

use super::*;
use crate::prepared_statements::{NamedExecution, PreparedFeed};

impl CommandPhase {
    pub(super) fn dynamic_statement(
        &mut self,
        length: usize,
        dynamic: DynamicStatement,
        classify: &mut dyn FnMut(&[u8]) -> StatementClass,
    ) -> ClientStep {
        let (name, call, text) = match dynamic {
            DynamicStatement::Execute { name, variables } => {
                return self.execute_named(length, &name, variables);
            }
            DynamicStatement::Prepare { name, call, text } => {
                self.state.mark_own_state();
                (name, call, text)
            }
            DynamicStatement::Deallocate { name } => (name, None, None),
        };
        if let Some(step) = self.flush_first(StatementEffects::NONE, None) {
            return step;
        }
        self.prepared.forget(&name);
        let current = self.state.current();
        let after = match (call, text) {
            (Some(call), _) => {
                ReplyCompletion::NamedCall(name, Box::new(PreparedCall::statement(call, current)))
            }
            (None, Some(text)) => match classify(&text) {
                StatementClass::Feed(effects) => {
                    let feed = PreparedFeed::new(&text, current);
                    ReplyCompletion::NamedFeed(name, Box::new((feed, effects)))
                }
                _ => ReplyCompletion::Nothing,
            },
            (None, None) => ReplyCompletion::Nothing,
        };
        self.begin(Command::Query, after);
        ClientStep::pass(length)
    }

    fn execute_named(&mut self, length: usize, name: &str, variables: Vec<String>) -> ClientStep {
        if let Some((feed, effects)) = self.prepared.named_feed(name) {
            if !self.is_idle() {
                return ClientStep::Hold;
            }
            let executed = NamedExecution { feed, variables };
            let effects = self.trusted_effects(effects);
            let step = self.flush_first(effects, None);
            return step.unwrap_or(ClientStep::Named(length, effects, executed));
        }
        let changes = self.state.database_changes();
        match self.prepared.named_call(name, variables, changes) {
            Some(wanted) => self.request_call(length, wanted, CallPacketForm::Indirect),
            None => self.relay_text(length, StatementEffects::ALL, None),
        }
    }
}
