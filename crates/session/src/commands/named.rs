//! PREPARE, EXECUTE and DEALLOCATE PREPARE: statements that have a name.

use super::*;
use crate::prepared::{ExecutedByName, PreparedFeed};

impl Commands {
    /// A statement of dynamic SQL.
    pub(super) fn dynamic(
        &mut self,
        length: usize,
        dynamic: Dynamic,
        classify: &mut dyn FnMut(&[u8]) -> Class,
    ) -> ClientStep {
        let (name, call, text) = match dynamic {
            Dynamic::Execute { name, variables } => {
                return self.execute_named(length, &name, variables);
            }
            Dynamic::Prepare { name, call, text } => {
                self.standing.leaves_own();
                (name, call, text)
            }
            Dynamic::Deallocate { name } => (name, None, None),
        };
        if let Some(step) = self.settle_first(Effects::NONE, None) {
            return step;
        }
        self.prepared.forget(&name);
        let current = self.standing.current();
        let after = match (call, text) {
            (Some(call), _) => After::Named(name, Box::new(PreparedCall::open(call, current))),
            (None, Some(text)) => match classify(&text) {
                Class::Feed(effects) => {
                    let feed = PreparedFeed::new(&text, current);
                    After::NamedFeed(name, Box::new((feed, effects)))
                }
                _ => After::Nothing,
            },
            (None, None) => After::Nothing,
        };
        self.begin(Command::Query, after);
        ClientStep::pass(length)
    }

    fn execute_named(&mut self, length: usize, name: &str, variables: Vec<String>) -> ClientStep {
        if let Some((feed, effects)) = self.prepared.named_feed(name) {
            if !self.is_idle() {
                return ClientStep::Hold;
            }
            let executed = ExecutedByName { feed, variables };
            let effects = self.known(effects);
            let step = self.settle_first(effects, None);
            return step.unwrap_or(ClientStep::Named(length, effects, executed));
        }
        let changes = self.standing.database_changes();
        match self.prepared.named(name, variables, changes) {
            Some(wanted) => self.ask(length, wanted, Dress::Indirect),
            None => self.text(length, Effects::ALL, None),
        }
    }
}
