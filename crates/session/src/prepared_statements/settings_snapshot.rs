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

    pub(super) fn are_known(&self) -> bool {
        self.modes.get().is_some()
    }

    /// The settings are the present ones, unless a statement may have changed them since. `zoned`: or stored code the time zone.
    pub(super) fn learn(&self, now: ParseContext<'_>, zoned: bool) {
        let same =
            self.mode_changes == now.mode_changes && (!zoned || self.code_runs == now.code_runs);
        if let Some(modes) = now.parse_modes.filter(|_| same) {
            self.modes.get_or_init(|| modes.bytes());
        }
    }

    /// True where the same settings are certain to hold now. `zoned`: including the time zone, which stored code may set for good.
    #[must_use]
    pub fn is_like(&self, now: ParseContext<'_>, zoned: bool) -> bool {
        self.learn(now, zoned);
        let modes = now.parse_modes;
        modes.is_some_and(|modes| self.modes.get().is_some_and(|then| modes.equals(then)))
    }

    /// True where both are certain and equal.
    pub(super) fn has_modes_of(&self, other: &SettingsSnapshot) -> bool {
        self.modes
            .get()
            .is_some_and(|modes| Some(modes) == other.modes.get())
    }
}
