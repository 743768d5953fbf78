//! A prepared feed SELECT: what narrowing its executions needs.

use std::sync::Arc;

use headwater_feed::result_metadata::ColumnFingerprint;
use headwater_feed::words::StatementWords;

use super::ParseContext;
use super::settings_snapshot::SettingsSnapshot;

/// A feed's SELECT, as it was prepared.
#[derive(Debug)]
pub struct PreparedFeed {
    text: Box<[u8]>,
    /// The database that was current at PREPARE, if certain.
    database: Option<Vec<u8>>,
    /// How many statements may have changed it before.
    database_changes: u64,
    settings: SettingsSnapshot,
}

/// An execution of a prepared feed SELECT.
#[derive(Clone, Debug)]
pub struct FeedExecution {
    /// The client's statement.
    pub statement: u32,
    /// The prepared SELECT.
    pub feed: Arc<PreparedFeed>,
    /// How many columns the server reported for it.
    pub columns: usize,
    /// The column definitions that the server sent last, where the client caches them and they are known.
    pub cached_columns: Option<ColumnFingerprint>,
    /// It is a plain execution, and its parameter types are known.
    pub plain: bool,
    /// The settings when those types came, where the server reads values by these.
    pub types_settings: Option<Arc<SettingsSnapshot>>,
    /// A parameter is text where a number or a time came before; MySQL continues to compare it as such.
    pub has_turned_text: bool,
}

impl PreparedFeed {
    /// A text that is prepared in this context.
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

    /// Its words. `None`: servers or settings differ in how they read them. Letters beyond ASCII mean what they meant at PREPARE, but a
    /// narrowed text would be read in the present character set. (Other strings are compared with text columns only, in the columns'
    /// character sets.)
    #[must_use]
    pub fn words(&self) -> Option<StatementWords> {
        let words = StatementWords::read(&self.text).filter(|_| self.text.is_ascii());
        words.filter(|words| !words.selects_parameters(&self.text))
    }

    /// The database of its names, while the current one is or was last this one; `None`: unknown.
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

    /// True where the settings of its PREPARE are known.
    #[must_use]
    pub fn are_settings_known(&self) -> bool {
        self.settings.are_known()
    }

    /// The settings of its PREPARE are the present ones, unless a statement may have changed them.
    pub fn learn_settings(&self, now: ParseContext<'_>) {
        self.settings.learn(now, true);
    }

    /// True where a text prepared now is read as this one was. Servers retain the settings of a PREPARE. `zoned`: including the time zone.
    #[must_use]
    pub fn is_read_alike(&self, now: ParseContext<'_>, zoned: bool) -> bool {
        self.settings.is_like(now, zoned)
    }
}
