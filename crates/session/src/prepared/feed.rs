//! A feed's SELECT that is prepared: what its executions need to be narrowed.

use std::sync::{Arc, OnceLock};

use headwater_feed::variants::Columns;
use headwater_feed::words::Words;

use super::Current;

/// A feed's SELECT as it was prepared.
#[derive(Debug)]
pub struct PreparedFeed {
    text: Box<[u8]>,
    /// The database that was current then, if that was certain.
    database: Option<Vec<u8>>,
    /// How often it may have changed before.
    database_changes: u64,
    /// The settings under which it was prepared, once they are certain.
    modes: OnceLock<Box<[u8]>>,
    /// How often a statement may have set them before, and stored code may have run.
    mode_changes: u64,
    code_runs: u64,
}

/// An execution of one.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The client's statement.
    pub statement: u32,
    /// What it is.
    pub feed: Arc<PreparedFeed>,
    /// How many columns the server has told of it.
    pub columns: usize,
    /// What it has told of them last, where the client keeps that and it is known.
    pub told: Option<Columns>,
    /// It is a plain one, and the types of its parameters are known.
    pub plain: bool,
}

impl PreparedFeed {
    /// Of a text that is prepared there and now.
    #[must_use]
    pub fn new(text: &[u8], current: Current<'_>) -> PreparedFeed {
        let modes = current.modes.map(|modes| OnceLock::from(modes.bytes()));
        PreparedFeed {
            text: text.into(),
            database: current.name.map(<[u8]>::to_vec),
            database_changes: current.changes,
            modes: modes.unwrap_or_default(),
            mode_changes: current.mode_changes,
            code_runs: current.code_runs,
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its words. `None`: they are not read alike by all servers, or settings. Letters beyond ASCII mean what they meant when it was
    /// prepared; a narrowed text would be read in the character set of now. (Other strings are compared with columns of letters alone,
    /// in the columns' character sets.)
    #[must_use]
    pub fn words(&self) -> Option<Words> {
        let words = Words::read(&self.text).filter(|_| self.text.is_ascii());
        words.filter(|words| !words.show_parameters(&self.text))
    }

    /// The database that its names are found in, while the session's own is this one or was it last; `None`: nobody can tell.
    #[must_use]
    pub fn database<'a>(&'a self, current: &'a [u8], changes: u64) -> Option<&'a [u8]> {
        match &self.database {
            Some(database) => Some(database),
            None => (self.database_changes == changes).then_some(current),
        }
    }

    /// True where both were prepared under the same settings.
    pub(super) fn has_modes_of(&self, other: &PreparedFeed) -> bool {
        self.modes
            .get()
            .is_some_and(|modes| Some(modes) == other.modes.get())
    }

    /// True where a text that is prepared now is read as this one was. Servers keep the settings under which a statement was prepared.
    /// `zoned`: the time zone is one of them.
    #[must_use]
    pub fn is_read_alike(&self, now: Current<'_>, zoned: bool) -> bool {
        let Some(modes) = now.modes.map(|modes| modes.bytes()) else {
            return false;
        };
        match self.modes.get() {
            Some(then) => *then == modes,
            // They are those of then, and were not known.
            None => {
                let same = self.mode_changes == now.mode_changes
                    && (!zoned || self.code_runs == now.code_runs);
                same && self.modes.set(modes).is_ok()
            }
        }
    }
}
