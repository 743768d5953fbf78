//! A session's trust that the server has no stored functions. A SELECT can do anything by one, such as hide a table by a temporary one.
//! That none existed when a SELECT ran is certain only once the log has been received up to a later moment.

use super::state::Session;

impl Session {
    /// Updates the knowledge for the next commands. True if the server is known to have no functions.
    pub(super) fn update_function_knowledge(&mut self) -> bool {
        // Count before the lookup: a function created in between then counts as created since.
        let created = self.created_functions();
        let binlog = self.shared.binlog.as_ref();
        // In this order: once functions become visible, the epoch changes.
        let are_seen = binlog.is_none_or(|binlog| binlog.are_functions_visible());
        let none = are_seen && self.shared.catalogue.no_functions() == Some(true);
        if let Some(commands) = self.machine.commands() {
            if !commands.state.assumes_no_functions() {
                self.trusted_function_count = created;
            }
            commands.set_no_functions(none);
            commands.state.set_name_case(self.shared.name_case);
        }
        none
    }

    fn created_functions(&self) -> u64 {
        let binlog = self.shared.binlog.as_ref();
        binlog.map_or(0, |binlog| binlog.function_changes())
    }

    /// True if a statement of the session may have run a function created just before it: only a proof can exclude it.
    pub(super) fn assumes_no_functions(&mut self) -> bool {
        let commands = self.machine.commands();
        commands.is_some_and(|commands| commands.state.assumes_no_functions())
    }

    /// True if none has. `proved`: the log has been received up to a moment after them all. Otherwise their effects are in doubt.
    pub(super) fn confirm_no_functions(&mut self, proved: bool) -> bool {
        let created = self.created_functions();
        let unchanged = created == self.trusted_function_count;
        let Some(commands) = self.machine.commands() else {
            return false;
        };
        match (commands.state.assumes_no_functions(), unchanged) {
            (true, true) if proved => commands.state.confirm_no_functions(),
            (true, false) => {
                // The waiting statement may run one as well.
                commands.set_no_functions(false);
                commands.doubt_functions();
                self.trusted_function_count = created;
                return false;
            }
            _ => {}
        }
        true
    }

    /// As [`Self::confirm_no_functions`], with a new proof.
    pub(super) async fn prove_no_functions(&mut self) -> bool {
        if !self.assumes_no_functions() {
            return true;
        }
        let proved = match self.shared.binlog.clone() {
            Some(binlog) => binlog.prove().await,
            None => false,
        };
        proved && self.confirm_no_functions(true)
    }
}
