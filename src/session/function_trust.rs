//! What a session takes for granted of the server's stored functions: a SELECT can do anything by one, such as hide a table by a temporary
//! one. That there was none when a SELECT ran is certain only once the log has been heard up to a moment behind it.

use super::state::Session;

impl Session {
    /// What is known of the server, for the commands that come now. True where it is known to have no functions.
    pub(super) fn update_function_knowledge(&mut self) -> bool {
        // Before it is looked whether there are any: what is made in between counts as made since.
        let made = self.created_functions();
        let binlog = self.shared.binlog.as_ref();
        // In this order: once they can be seen, the epoch is another one.
        let are_seen = binlog.is_none_or(|binlog| binlog.are_functions_visible());
        let none = are_seen && self.shared.catalogue.no_functions() == Some(true);
        if let Some(commands) = self.machine.commands() {
            if !commands.state.assumes_no_functions() {
                self.trusted_function_count = made;
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

    /// True where a statement of the session may have run a function that was made just before it: a proof has to tell.
    pub(super) fn relies_on_trust(&mut self) -> bool {
        let commands = self.machine.commands();
        commands.is_some_and(|commands| commands.state.assumes_no_functions())
    }

    /// True if none has: with `proved`, the log has been heard up to a moment behind them all. Else what they may have done is doubted.
    pub(super) fn confirm_trust(&mut self, proved: bool) -> bool {
        let made = self.created_functions();
        let unchanged = made == self.trusted_function_count;
        let Some(commands) = self.machine.commands() else {
            return false;
        };
        match (commands.state.assumes_no_functions(), unchanged) {
            (true, true) if proved => commands.state.confirm_no_functions(),
            (true, false) => {
                // Nor is what waits certain to run none.
                commands.set_no_functions(false);
                commands.doubt_functions();
                self.trusted_function_count = made;
                return false;
            }
            _ => {}
        }
        true
    }

    /// The same, with a proof that is begun now.
    pub(super) async fn prove_trust(&mut self) -> bool {
        if !self.relies_on_trust() {
            return true;
        }
        let proved = match self.shared.binlog.clone() {
            Some(binlog) => binlog.prove().await,
            None => false,
        };
        proved && self.confirm_trust(true)
    }
}
