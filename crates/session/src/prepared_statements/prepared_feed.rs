//! A feed's SELECT that is prepared: what its executions need to be narrowed.

use std::sync::Arc;

use headwater_feed::result_metadata::ColumnFingerprint;
use headwater_feed::words::StatementWords;

use super::ParseContext;
use super::settings_snapshot::SettingsSnapshot;

/// A feed's SELECT as it was prepared.
#[derive(Debug)]
pub struct PreparedFeed {
    text: Box<[u8]>,
    /// The database that was current then, if that was certain.
    database: Option<Vec<u8>>,
    /// How often it may have changed before.
    database_changes: u64,
    /// When it was prepared.
    settings: SettingsSnapshot,
}

/// An execution of one.
#[derive(Clone, Debug)]
pub struct FeedExecution {
    /// The client's statement.
    pub statement: u32,
    /// What it is.
    pub feed: Arc<PreparedFeed>,
    /// How many columns the server has told of it.
    pub columns: usize,
    /// What it has told of them last, where the client keeps that and it is known.
    pub cached_columns: Option<ColumnFingerprint>,
    /// It is a plain one, and the types of its parameters are known.
    pub plain: bool,
    /// When those came, where the server reads values of theirs by the settings of then.
    pub types_settings: Option<Arc<SettingsSnapshot>>,
    /// A parameter is text that was a number or a time before, which MySQL goes on comparing as such.
    pub has_turned_text: bool,
}

impl PreparedFeed {
    /// Of a text that is prepared there and now.
    #[must_use]
    pub fn new(text: &[u8], current: ParseContext<'_>) -> PreparedFeed {
        PreparedFeed {
            text: text.into(),
            database: current.name.map(<[u8]>::to_vec),
            database_changes: current.changes,
            settings: SettingsSnapshot::take(current),
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
    pub fn words(&self) -> Option<StatementWords> {
        let words = StatementWords::read(&self.text).filter(|_| self.text.is_ascii());
        words.filter(|words| !words.selects_parameters(&self.text))
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
        self.settings.has_modes_of(&other.settings)
    }

    /// True where a text that is prepared now is read as this one was. Servers keep the settings under which a statement was prepared.
    /// `zoned`: the time zone is one of them.
    #[must_use]
    pub fn is_read_alike(&self, now: ParseContext<'_>, zoned: bool) -> bool {
        self.settings.is_like(now, zoned)
    }
}
