//! What a session takes for granted of the server's stored functions: a SELECT can do anything by one, such as hide a table by a temporary
//! one. That there was none when a SELECT ran is certain only once the log has been heard up to a moment behind it.

use super::state::Session;

impl Session {
    /// What is known of the server, for the commands that come now. True where it is known to have no functions.
    pub(super) fn knows_server(&mut self) -> bool {
        // Before it is looked whether there are any: what is made in between counts as made since.
        let made = self.functions_made();
        let binlog = self.shared.binlog.as_ref();
        // In this order: once they can be seen, the epoch is another one.
        let are_seen = binlog.is_none_or(|binlog| binlog.shows_functions());
        let none = are_seen && self.shared.catalogue.no_functions() == Some(true);
        if let Some(commands) = self.machine.commands() {
            if !commands.standing.trusts() {
                self.trusted = made;
            }
            commands.knows_no_functions(none);
            commands.standing.reads_names(self.shared.case);
        }
        none
    }

    fn functions_made(&self) -> u64 {
        let binlog = self.shared.binlog.as_ref();
        binlog.map_or(0, |binlog| binlog.functions())
    }

    /// True where a statement of the session may have run a function that was made just before it: a proof has to tell.
    pub(super) fn is_to_be_trusted(&mut self) -> bool {
        let commands = self.machine.commands();
        commands.is_some_and(|commands| commands.standing.trusts())
    }

    /// True if none has: with `proved`, the log has been heard up to a moment behind them all. Else what they may have done is doubted.
    pub(super) fn is_trusted(&mut self, proved: bool) -> bool {
        let made = self.functions_made();
        let unchanged = made == self.trusted;
        let Some(commands) = self.machine.commands() else {
            return false;
        };
        match (commands.standing.trusts(), unchanged) {
            (true, true) if proved => commands.standing.is_trusted(),
            (true, false) => {
                // Nor is what waits certain to run none.
                commands.knows_no_functions(false);
                commands.doubt_functions();
                self.trusted = made;
                return false;
            }
            _ => {}
        }
        true
    }

    /// The same, with a proof that is begun now.
    pub(super) async fn proves_trust(&mut self) -> bool {
        if !self.is_to_be_trusted() {
            return true;
        }
        let proved = match self.shared.binlog.clone() {
            Some(binlog) => binlog.prove().await,
            None => false,
        };
        proved && self.is_trusted(true)
    }
}
