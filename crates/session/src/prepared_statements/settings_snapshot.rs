//! The settings of one moment, which a server keeps for a statement: those of its PREPARE, and those under which types of parameters came.

use std::sync::OnceLock;

use super::ParseContext;

/// Settings as they were at one moment: known then, or once they are, where nothing may have set any since.
#[derive(Debug)]
pub struct SettingsSnapshot {
    /// What they were, once that is certain.
    modes: OnceLock<Box<[u8]>>,
    /// How often a statement may have set them before, and stored code may have run.
    mode_changes: u64,
    code_runs: u64,
}

impl SettingsSnapshot {
    /// This one.
    pub(super) fn take(current: ParseContext<'_>) -> SettingsSnapshot {
        let modes = current
            .parse_modes
            .map(|modes| OnceLock::from(modes.bytes()));
        SettingsSnapshot {
            modes: modes.unwrap_or_default(),
            mode_changes: current.mode_changes,
            code_runs: current.code_runs,
        }
    }

    /// True where the same settings are certain to hold now. `zoned`: the time zone is one of them, which stored code may set for good.
    #[must_use]
    pub fn is_like(&self, now: ParseContext<'_>, zoned: bool) -> bool {
        let Some(modes) = now.parse_modes else {
            return false;
        };
        match self.modes.get() {
            Some(then) => modes.equals(then),
            // They are those of then, and were not known.
            None => {
                let same = self.mode_changes == now.mode_changes
                    && (!zoned || self.code_runs == now.code_runs);
                same && self.modes.set(modes.bytes()).is_ok()
            }
        }
    }

    /// True where both are certain, and the same.
    pub(super) fn has_modes_of(&self, other: &SettingsSnapshot) -> bool {
        self.modes
            .get()
            .is_some_and(|modes| Some(modes) == other.modes.get())
    }
}
