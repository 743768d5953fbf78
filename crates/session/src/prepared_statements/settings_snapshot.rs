//! The settings at one moment, which a server retains for a statement: those of its PREPARE, and those of when its parameter types came.

use std::sync::OnceLock;

use super::ParseContext;

/// Settings at one moment: known then, or later, if no statement may have set any in between.
#[derive(Debug)]
pub struct SettingsSnapshot {
    modes: OnceLock<Box<[u8]>>,
    /// How many statements may have set them before, and how often stored code may have run.
    mode_changes: u64,
    code_runs: u64,
}

impl SettingsSnapshot {
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

    /// True where the same settings are certain to hold now. `zoned`: including the time zone, which stored code may set for good.
    #[must_use]
    pub fn is_like(&self, now: ParseContext<'_>, zoned: bool) -> bool {
        let Some(modes) = now.parse_modes else {
            return false;
        };
        match self.modes.get() {
            Some(then) => modes.equals(then),
            // The present settings are those of the snapshot, whose values were unknown then.
            None => {
                let same = self.mode_changes == now.mode_changes
                    && (!zoned || self.code_runs == now.code_runs);
                same && self.modes.set(modes.bytes()).is_ok()
            }
        }
    }

    /// True where both are certain and equal.
    pub(super) fn has_modes_of(&self, other: &SettingsSnapshot) -> bool {
        self.modes
            .get()
            .is_some_and(|modes| Some(modes) == other.modes.get())
    }
}
