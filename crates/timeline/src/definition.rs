//! The definition of a timeline: names of tables, columns and procedures, types, and n.

use std::fmt;

use headwater_sql::NameCase;
use serde::{Deserialize, Serialize};

/// The index of a definition in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionId(pub usize);

impl DefinitionId {
    /// Looks the definition up.
    #[must_use]
    pub fn resolve(self, definitions: &[TimelineDefinition]) -> Option<&TimelineDefinition> {
        definitions.get(self.0)
    }
}

/// The names, types and page size of one timeline.
///
/// A key left out of a file has its value in [`TimelineDefinition::classic`], the timeline of 2008.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimelineDefinition {
    /// The timeline's name in logs and counters.
    pub name: String,
    /// The only database it is served in; `None`: any database that passes the check.
    pub database: Option<String>,
    /// Rows of each list that the procedures read: n authors, n messages of each.
    pub n: u32,
    /// The type of message ids: of the columns, the local variables and the bound's parameter.
    pub id_type: IdType,
    /// The type of user ids, readers and authors alike.
    pub user_type: IdType,
    /// Serve it even if no account may see the procedures' bodies; they are then assumed to be the known ones.
    pub trust_unseen_body: bool,
    /// Who follows whom.
    pub follower: FollowerTable,
    /// The messages.
    pub message: MessageTable,
    /// The procedures that Headwater answers, and the one they call.
    pub procedures: ProcedureNames,
    /// The temporary table that a call fills.
    pub result: ResultTable,
    /// The temporary table that the bounded call fills as well.
    pub heads: HeadsTable,
    /// The settings no longer name it: no call matches it, but the tables that its calls filled in a session are still recognised.
    #[serde(skip)]
    pub retired: bool,
    /// How the server compares names of databases and tables.
    #[serde(skip)]
    pub name_case: NameCase,
}

/// The table of follows, one row per edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FollowerTable {
    /// The table's name.
    pub table: String,
    /// The column that holds the reader (`user_id` in the classic schema).
    pub reader: String,
    /// The column that holds the followed author (`follower_id` in the classic schema, despite its name).
    pub author: String,
}

/// The table of messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MessageTable {
    /// The table's name.
    pub table: String,
    /// The message id, by which a timeline is ordered.
    pub id: String,
    /// The column that holds the message's author.
    pub author: String,
}

/// The names of the stored procedures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcedureNames {
    /// The newest page: one parameter, the reader.
    pub newest: String,
    /// A page at or below a message id: two parameters, the reader and the greatest id requested.
    pub bounded: String,
    /// The helper that the bounded procedure calls to fill the heads table.
    pub heads: String,
}

/// The temporary table of message ids that a call fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResultTable {
    /// The table's name.
    pub table: String,
    /// Its only column.
    pub id: String,
}

/// The temporary table of each author's head that the bounded call fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadsTable {
    /// The table's name.
    pub table: String,
    /// The column that holds the author.
    pub author: String,
    /// The column that holds the author's newest message id at or below the bound.
    pub head: String,
}

/// An integer type of ids, by its name in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdType {
    /// 32 bits, signed.
    #[serde(rename = "int")]
    Int,
    /// 32 bits, unsigned.
    #[serde(rename = "int unsigned")]
    IntUnsigned,
    /// 64 bits, signed.
    #[serde(rename = "bigint")]
    BigInt,
    /// 64 bits, unsigned.
    #[serde(rename = "bigint unsigned")]
    BigIntUnsigned,
}

/// One of a definition's procedures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcedureForm {
    /// `fetch_timeline_ids(reader)`: the newest page.
    Newest,
    /// `fetch_timeline_ids2(reader, bound)`: the page at or below the bound.
    Bounded,
    /// `build_max_ids_of_followers(reader, bound)`: each author's newest id at or below the bound, and no page.
    Heads,
}

impl ProcedureForm {
    /// All three.
    pub const ALL: [ProcedureForm; 3] = [
        ProcedureForm::Newest,
        ProcedureForm::Bounded,
        ProcedureForm::Heads,
    ];

    /// Whether its procedure empties and fills the result table.
    #[must_use]
    pub fn fills_result(self) -> bool {
        self != ProcedureForm::Heads
    }

    /// Whether its procedure empties and fills the heads table.
    #[must_use]
    pub fn fills_heads(self) -> bool {
        self != ProcedureForm::Newest
    }

    /// Whether its procedure has a second parameter, the greatest message id requested.
    #[must_use]
    pub fn is_bounded(self) -> bool {
        self != ProcedureForm::Newest
    }
}

/// An invalid definition; the message names the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A name is empty, too long, or contains a character that names may not have.
    #[error(
        "timeline {timeline:?}: {key} = {value:?}: a name is 1 to 64 printable ASCII characters and does not end in a space"
    )]
    Name {
        /// The timeline's name.
        timeline: String,
        /// The key in the file.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// Two names that must differ are equal (compared without case).
    #[error("timeline {timeline:?}: {key} and {other} are both {value:?}")]
    Same {
        /// The timeline's name.
        timeline: String,
        /// The first key.
        key: &'static str,
        /// The second key.
        other: &'static str,
        /// The name in both.
        value: String,
    },
    /// n is out of range.
    #[error(
        "timeline {timeline:?}: n = {n} is not within 1 to {}",
        TimelineDefinition::MAX_N
    )]
    PageSize {
        /// The timeline's name.
        timeline: String,
        /// The value of n.
        n: u32,
    },
}

impl TimelineDefinition {
    /// The greatest accepted n: a call may fill in n x n ids.
    pub const MAX_N: u32 = 1_000;

    /// The timeline of 2008: `fetch_timeline_ids` over `follower` and `message`, 20 rows a page.
    pub fn classic() -> Self {
        Self {
            name: "classic".into(),
            database: None,
            n: 20,
            id_type: IdType::IntUnsigned,
            user_type: IdType::IntUnsigned,
            trust_unseen_body: false,
            follower: FollowerTable::default(),
            message: MessageTable::default(),
            procedures: ProcedureNames::default(),
            result: ResultTable::default(),
            heads: HeadsTable::default(),
            retired: false,
            name_case: NameCase::Sensitive,
        }
    }

    /// The name of a form's procedure.
    pub fn procedure_name(&self, form: ProcedureForm) -> &str {
        match form {
            ProcedureForm::Newest => &self.procedures.newest,
            ProcedureForm::Bounded => &self.procedures.bounded,
            ProcedureForm::Heads => &self.procedures.heads,
        }
    }

    /// The most ids that a call can put into the result table: n messages of each of n authors.
    pub fn max_ids(&self) -> usize {
        let n = usize::try_from(self.n).unwrap_or(usize::MAX);
        n.saturating_mul(n)
    }

    /// The same definition for a server that compares names this way.
    #[must_use]
    pub fn with_name_case(&self, case: NameCase) -> TimelineDefinition {
        let mut folded = self.clone();
        folded.name_case = case;
        let tables = [
            &mut folded.follower.table,
            &mut folded.message.table,
            &mut folded.result.table,
            &mut folded.heads.table,
        ];
        for name in tables.into_iter().chain(&mut folded.database) {
            case.fold_text(name);
        }
        folded
    }

    /// Whether it may be served in this database. Names compare byte by byte.
    pub fn serves(&self, database: &[u8]) -> bool {
        let only_database = self.database.as_ref();
        !self.retired
            && only_database.is_none_or(|own| own.as_bytes() == &*self.name_case.fold(database))
    }

    /// Checks names and limits.
    ///
    /// # Errors
    /// The first invalid key.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        let names = self.named_keys();
        for &(key, value) in &names {
            if !is_valid_name(value) {
                return Err(DefinitionError::Name {
                    timeline: self.name.clone(),
                    key,
                    value: value.into(),
                });
            }
        }
        if let Some(value) = self.database.as_deref().filter(|name| !is_valid_name(name)) {
            return Err(DefinitionError::Name {
                timeline: self.name.clone(),
                key: "database",
                value: value.into(),
            });
        }
        for (at, &(key, value)) in names.iter().enumerate() {
            for &(other, same) in names.iter().skip(at + 1) {
                if must_differ(key, other) && value.eq_ignore_ascii_case(same) {
                    return Err(DefinitionError::Same {
                        timeline: self.name.clone(),
                        key,
                        other,
                        value: value.into(),
                    });
                }
            }
        }
        if !(1..=Self::MAX_N).contains(&self.n) {
            return Err(DefinitionError::PageSize {
                timeline: self.name.clone(),
                n: self.n,
            });
        }
        Ok(())
    }

    fn named_keys(&self) -> [(&'static str, &str); 15] {
        [
            ("name", &self.name),
            ("follower.table", &self.follower.table),
            ("follower.reader", &self.follower.reader),
            ("follower.author", &self.follower.author),
            ("message.table", &self.message.table),
            ("message.id", &self.message.id),
            ("message.author", &self.message.author),
            ("procedures.newest", &self.procedures.newest),
            ("procedures.bounded", &self.procedures.bounded),
            ("procedures.heads", &self.procedures.heads),
            ("result.table", &self.result.table),
            ("result.id", &self.result.id),
            ("heads.table", &self.heads.table),
            ("heads.author", &self.heads.author),
            ("heads.head", &self.heads.head),
        ]
    }
}

/// True for two tables, two procedures, or two columns of one table.
fn must_differ(key: &str, other: &str) -> bool {
    match (key.split_once('.'), other.split_once('.')) {
        (Some((_, "table")), Some((_, "table"))) => true,
        (Some((_, "table")), _) | (_, Some((_, "table"))) => false,
        (Some((section, _)), Some((same, _))) => section == same,
        _ => false,
    }
}

/// Longer names and names beyond ASCII exist. But a client's text that contains one is relayed, so they would serve nothing.
fn is_valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && !name.ends_with(' ')
}

impl IdType {
    /// The type's name in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::IntUnsigned => "int unsigned",
            Self::BigInt => "bigint",
            Self::BigIntUnsigned => "bigint unsigned",
        }
    }

    /// The same as MariaDB shows it, with a display width.
    pub fn sql_with_width(self) -> &'static str {
        match self {
            Self::Int => "int(11)",
            Self::IntUnsigned => "int(10) unsigned",
            Self::BigInt => "bigint(20)",
            Self::BigIntUnsigned => "bigint(20) unsigned",
        }
    }

    /// The greatest value of the type.
    pub fn max(self) -> u64 {
        match self {
            Self::Int => 0x7fff_ffff,
            Self::IntUnsigned => 0xffff_ffff,
            Self::BigInt => 0x7fff_ffff_ffff_ffff,
            Self::BigIntUnsigned => u64::MAX,
        }
    }

    /// Whether it has negative values.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int | Self::BigInt)
    }

    /// Whether the type holds this value.
    pub fn holds(self, value: u64) -> bool {
        value <= self.max()
    }
}

impl fmt::Display for IdType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sql())
    }
}

impl fmt::Display for ProcedureForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Newest => "newest",
            Self::Bounded => "bounded",
            Self::Heads => "heads",
        })
    }
}

impl Default for TimelineDefinition {
    fn default() -> Self {
        Self::classic()
    }
}

impl Default for FollowerTable {
    fn default() -> Self {
        Self {
            table: "follower".into(),
            reader: "user_id".into(),
            author: "follower_id".into(),
        }
    }
}

impl Default for MessageTable {
    fn default() -> Self {
        Self {
            table: "message".into(),
            id: "id".into(),
            author: "user_id".into(),
        }
    }
}

impl Default for ProcedureNames {
    fn default() -> Self {
        Self {
            newest: "fetch_timeline_ids".into(),
            bounded: "fetch_timeline_ids2".into(),
            heads: "build_max_ids_of_followers".into(),
        }
    }
}

impl Default for ResultTable {
    fn default() -> Self {
        Self {
            table: "fetch_timeline_tt".into(),
            id: "id".into(),
        }
    }
}

impl Default for HeadsTable {
    fn default() -> Self {
        Self {
            table: "max_ids_of_followers".into(),
            author: "user_id".into(),
            head: "max_id".into(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_keys_is_the_classic_timeline() {
        let read: TimelineDefinition = toml::from_str("").unwrap();
        assert_eq!(read, TimelineDefinition::classic());
        assert_eq!(read.validate(), Ok(()));
    }

    #[test]
    fn a_written_definition_reads_back() {
        let mut definition = TimelineDefinition::classic();
        definition.id_type = IdType::BigIntUnsigned;
        definition.database = Some("social".into());
        let text = toml::to_string(&definition).unwrap();
        assert_eq!(
            toml::from_str::<TimelineDefinition>(&text).unwrap(),
            definition
        );
    }

    #[test]
    fn a_key_that_does_not_exist_is_an_error() {
        let error =
            toml::from_str::<TimelineDefinition>("[follower]\nfollowee = \"x\"").unwrap_err();
        assert!(error.to_string().contains("followee"), "{error}");
    }

    #[test]
    fn reader_and_author_must_be_two_columns() {
        let mut definition = TimelineDefinition::classic();
        definition.follower.author = "USER_ID".into();
        let error = definition.validate().unwrap_err().to_string();
        assert_eq!(
            error,
            "timeline \"classic\": follower.reader and follower.author are both \"user_id\""
        );
    }

    #[test]
    fn tables_differ_and_columns_of_different_tables_need_not() {
        let mut definition = TimelineDefinition::classic();
        definition.heads.table = "fetch_timeline_tt".into();
        assert!(matches!(
            definition.validate(),
            Err(DefinitionError::Same {
                key: "result.table",
                ..
            })
        ));
    }

    #[test]
    fn n_has_limits() {
        for n in [0, TimelineDefinition::MAX_N + 1] {
            let error = TimelineDefinition {
                n,
                ..TimelineDefinition::classic()
            }
            .validate();
            assert!(matches!(error, Err(DefinitionError::PageSize { .. })));
        }
    }
}
