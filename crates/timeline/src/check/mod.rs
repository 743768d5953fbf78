//! Decides whether a database has the timeline of a definition. No IO: the input is the results of a list of queries.
//!
//! The caller sends [`queries`] in order on any connection, and passes all results to [`evaluate`]. A failed query does not stop
//! the others: MariaDB, MySQL and look-alikes each lack some.

use std::fmt;
use std::sync::Arc;

use super::body::{self, SqlSecurity, TimelineRoutine};
use super::definition::{ProcedureForm, TimelineDefinition};

pub use answers::{CheckQueryResult, ServerError};
pub use parse_warnings::ParseWarnings;
pub use relay_reason::RelayReason;

mod answers;
mod parse_warnings;
mod queries;
mod relay_reason;
mod tables;
#[cfg(test)]
mod tests;

pub use queries::{databases_query, functions_queries, queries};

use answers::{CheckAnswers, CheckRow, rows_of};
use queries::CheckQuery;

/// The decision on a definition's calls in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionVerdict {
    /// At least one of the two pages may be answered.
    Accelerate(Arc<DefinitionFacts>),
    /// Both are relayed, for this reason.
    Relay(RelayReason),
}

/// What the check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionFacts {
    /// The server's family.
    pub product: ServerProduct,
    /// The version that the server reports.
    pub version: String,
    /// Whether `CALL fetch_timeline_ids(N)` may be answered.
    pub newest: Result<ProcedureStatus, RelayReason>,
    /// Whether `CALL fetch_timeline_ids2(N, M)` may be answered.
    pub bounded: Result<ProcedureStatus, RelayReason>,
    /// Whether `CALL build_max_ids_of_followers(N, M)` may be answered.
    pub heads: Result<ProcedureStatus, RelayReason>,
    /// The index on (author, id) that lookups use.
    pub message_index: String,
    /// Messages per author, on average, by the index statistics. For choosing a plan only.
    pub messages_per_author: Option<u64>,
    /// The greatest message id. For choosing a plan only.
    pub newest_id: Option<u64>,
    /// The server has no stored functions but those it came with: a SELECT runs none.
    pub no_functions: bool,
    /// The options of the tables that the procedures create.
    pub table_options: Arc<TemporaryTableOptions>,
    /// The warnings that the server gives whenever it parses the procedures.
    pub parse_warnings: ParseWarnings,
    /// The optimizer's estimate of the message table's rows, if MySQL gives it to the account.
    pub message_rows: Option<u64>,
    /// The message table's stored columns, without those computed on read.
    pub stored_columns: Arc<[String]>,
    /// Where the rows are stored.
    pub storage: TableStorage,
}

impl DefinitionFacts {
    /// The procedures that exist and may be answered.
    #[must_use]
    pub fn callable_forms(&self) -> Vec<ProcedureForm> {
        let is_callable = |form: &ProcedureForm| {
            let result = self.procedure_status(*form);
            result
                .as_ref()
                .is_ok_and(|status| *status != ProcedureStatus::Absent)
        };
        ProcedureForm::ALL.into_iter().filter(is_callable).collect()
    }

    /// Facts of a server of this product where every procedure is known and no statistics exist. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn known(product: ServerProduct) -> DefinitionFacts {
        DefinitionFacts {
            product,
            version: String::new(),
            newest: Ok(ProcedureStatus::Known),
            bounded: Ok(ProcedureStatus::Known),
            heads: Ok(ProcedureStatus::Known),
            message_index: "user_id".into(),
            messages_per_author: None,
            newest_id: None,
            no_functions: true,
            table_options: Arc::default(),
            parse_warnings: ParseWarnings::None,
            message_rows: None,
            stored_columns: Arc::default(),
            storage: TableStorage::Local,
        }
    }

    /// True if the messages are on other servers: a lookup queries each data node once per statement, and memory follows all their logs.
    #[must_use]
    pub fn is_spread(&self) -> bool {
        self.storage == TableStorage::Spread
    }
}

/// Options of the tables that procedures create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryTableOptions {
    /// Those of the result table.
    pub result: String,
    /// Those of the heads table.
    pub heads: String,
}

impl Default for TemporaryTableOptions {
    /// The options of the original procedures.
    fn default() -> Self {
        let default_options = || "ENGINE=heap DEFAULT CHARSET=utf8".to_owned();
        TemporaryTableOptions {
            result: default_options(),
            heads: default_options(),
        }
    }
}

/// Where the rows of a definition's tables are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStorage {
    /// In InnoDB tables on this server.
    Local,
    /// Messages are on data nodes that Spider reads; follow lists are in InnoDB or on the nodes as well. This server's log lacks what
    /// others write to the nodes, and no key of this server guarantees that an id is unique.
    Spread,
}

/// The two server families, which reply differently to a CALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerProduct {
    /// MySQL and every server that is not MariaDB.
    Mysql,
    /// MariaDB.
    Mariadb,
}

/// The status of a form's procedure on a server where it may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcedureStatus {
    /// It exists and does what Headwater knows, with its definer's privileges.
    Known,
    /// It may exist or not; by `trust_unseen_body` it does what Headwater knows.
    Trusted,
    /// It does not exist: a CALL is served from the definition.
    Absent,
}

impl DefinitionFacts {
    /// The status of a form, or why it is relayed.
    pub fn procedure_status(&self, form: ProcedureForm) -> &Result<ProcedureStatus, RelayReason> {
        match form {
            ProcedureForm::Newest => &self.newest,
            ProcedureForm::Bounded => &self.bounded,
            ProcedureForm::Heads => &self.heads,
        }
    }

    /// True if no form is relayed.
    #[must_use]
    pub fn serves_all_forms(&self) -> bool {
        ProcedureForm::ALL
            .iter()
            .all(|form| self.procedure_status(*form).is_ok())
    }
}

impl fmt::Display for DefinitionFacts {
    /// For a log line: the status of each form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = [
            ("newest page", &self.newest),
            ("bounded page", &self.bounded),
            ("its helper", &self.heads),
        ];
        for (index, (form, status)) in forms.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match status {
                Ok(ProcedureStatus::Known) => write!(f, "{comma}{form}: procedure as known")?,
                Ok(ProcedureStatus::Trusted) => {
                    write!(f, "{comma}{form}: procedure trusted unseen")?
                }
                Ok(ProcedureStatus::Absent) => {
                    write!(f, "{comma}{form}: served without a procedure")?
                }
                Err(reason) => write!(f, "{comma}{form}: relayed, {reason}")?,
            }
        }
        if self.is_spread() {
            f.write_str("; spread by Spider")?;
        }
        Ok(())
    }
}

impl DefinitionVerdict {
    /// True if both verdicts accelerate the same forms in the same way, or relay for the same reason.
    #[must_use]
    pub fn is_equivalent(&self, other: &DefinitionVerdict) -> bool {
        match (self, other) {
            (DefinitionVerdict::Accelerate(a), DefinitionVerdict::Accelerate(b)) => {
                (a.product, a.storage) == (b.product, b.storage)
                    && ProcedureForm::ALL
                        .iter()
                        .all(|form| a.procedure_status(*form) == b.procedure_status(*form))
            }
            (a, b) => a == b,
        }
    }
}

impl ServerProduct {
    /// The family, by the version that the server reports.
    pub fn from_version(version: &str) -> Self {
        if version.to_ascii_lowercase().contains("mariadb") {
            Self::Mariadb
        } else {
            Self::Mysql
        }
    }
}

/// Evaluates the results of [`queries`], in their order.
pub fn evaluate(
    definition: &TimelineDefinition,
    database: &str,
    answers: &[CheckQueryResult],
) -> DefinitionVerdict {
    let answers = CheckAnswers::new(answers);
    match collect_facts(definition, database, answers) {
        Ok(facts) => match (&facts.newest, &facts.bounded) {
            (Err(reason), Err(_)) => DefinitionVerdict::Relay(reason.clone()),
            _ => DefinitionVerdict::Accelerate(Arc::new(facts)),
        },
        Err(reason) => DefinitionVerdict::Relay(reason),
    }
}

/// True if the account sees too little of one of the procedures to check it.
pub fn hides_bodies(definition: &TimelineDefinition, answers: &[CheckQueryResult]) -> bool {
    let answers = CheckAnswers::new(answers);
    TimelineRoutine::ALL.into_iter().any(|routine| {
        let status = routine_status(definition, routine, answers);
        matches!(status, Err(RelayReason::BodyUnseen { .. }))
    })
}

fn collect_facts(
    definition: &TimelineDefinition,
    database: &str,
    answers: CheckAnswers<'_>,
) -> Result<DefinitionFacts, RelayReason> {
    let version = answers
        .value(CheckQuery::Version)?
        .ok_or(RelayReason::Unanswered {
            question: "the version",
        })?;
    let init = match answers.value(CheckQuery::InitConnect) {
        Ok(init) => init.unwrap_or_default(),
        Err(RelayReason::Failed {
            code: UNKNOWN_VARIABLE,
            ..
        }) => String::new(),
        Err(reason) => return Err(reason),
    };
    let words = ["TEMPORARY", "CALL", "EXECUTE", "PREPARE"];
    if let Some(word) = words
        .into_iter()
        .find(|word| init.to_ascii_uppercase().contains(word))
    {
        return Err(RelayReason::InitConnect { word });
    }
    if !definition.serves(database.as_bytes()) {
        return Err(RelayReason::OtherDatabase {
            database: database.into(),
        });
    }
    let (message_index, storage) = tables::check_tables(definition, answers)?;

    let newest = routine_status(definition, TimelineRoutine::Newest, answers);
    let heads = routine_status(definition, TimelineRoutine::Heads, answers);
    let bounded = match routine_status(definition, TimelineRoutine::Bounded, answers) {
        // It calls the helper, so the helper must exist and match.
        Ok(ProcedureStatus::Known) => match &heads {
            Ok(ProcedureStatus::Absent) => Err(RelayReason::NoHelper {
                procedure: definition.procedures.heads.clone(),
            }),
            Ok(ProcedureStatus::Known | ProcedureStatus::Trusted) => Ok(ProcedureStatus::Known),
            Err(reason) => Err(reason.clone()),
        },
        other => other,
    };
    let product = ServerProduct::from_version(&version);
    let parse_warnings = match product {
        ServerProduct::Mariadb => ParseWarnings::None,
        ServerProduct::Mysql => parse_warnings(answers, &[&newest, &bounded, &heads]),
    };
    Ok(DefinitionFacts {
        product,
        version,
        table_options: Arc::new(temporary_table_options(definition, answers)),
        parse_warnings,
        newest,
        bounded,
        heads,
        messages_per_author: tables::messages_per_author(definition, &message_index, answers),
        newest_id: tables::newest_id(answers),
        message_index,
        no_functions: has_surely_no_functions(answers),
        message_rows: tables::message_rows(answers),
        stored_columns: tables::stored_columns(definition, answers),
        storage,
    })
}

/// The text of a procedure, if the account may see it.
fn procedure_text(answers: CheckAnswers<'_>, routine: TimelineRoutine) -> Option<&[u8]> {
    let rows = answers.rows(CheckQuery::ShowCreate(routine)).ok()?;
    rows.first()?.bytes(2)
}

/// The table options of the procedures that the account sees. If they name no character set, both tables have the database's.
fn temporary_table_options(
    definition: &TimelineDefinition,
    answers: CheckAnswers<'_>,
) -> TemporaryTableOptions {
    let options_of = |routine| {
        let text = procedure_text(answers, routine)?;
        let body = body::compare(definition, routine, text).ok()?;
        Some(body.table_options)
    };
    let result =
        options_of(TimelineRoutine::Newest).or_else(|| options_of(TimelineRoutine::Bounded));
    let defaults = TemporaryTableOptions::default();
    TemporaryTableOptions {
        result: result.unwrap_or(defaults.result),
        heads: options_of(TimelineRoutine::Heads).unwrap_or(defaults.heads),
    }
}

/// The warnings for the texts of these forms' procedures. An unseen text counts as the usual one.
fn parse_warnings(
    answers: CheckAnswers<'_>,
    statuses: &[&Result<ProcedureStatus, RelayReason>; 3],
) -> ParseWarnings {
    let texts =
        TimelineRoutine::ALL.map(|routine| procedure_text(answers, routine).map(ParseWarnings::of));
    let has_unseen = statuses.contains(&&Ok(ProcedureStatus::Trusted));
    let unseen_warning = has_unseen.then_some(ParseWarnings::Alias);
    let all = texts.into_iter().chain([unseen_warning]).flatten();
    all.max().unwrap_or_default()
}

fn routine_status(
    definition: &TimelineDefinition,
    routine: TimelineRoutine,
    answers: CheckAnswers<'_>,
) -> Result<ProcedureStatus, RelayReason> {
    let unseen_status = || {
        if definition.trust_unseen_body {
            return Ok(ProcedureStatus::Trusted);
        }
        Err(RelayReason::BodyUnseen {
            procedure: routine.name(definition).into(),
            timeline: definition.name.clone(),
        })
    };
    let rows = match answers.rows(CheckQuery::ShowCreate(routine)) {
        Ok(rows) => rows,
        Err(RelayReason::Failed {
            code: NO_SUCH_ROUTINE,
            ..
        }) => {
            return if is_surely_absent(definition, routine, answers) {
                Ok(ProcedureStatus::Absent)
            } else {
                unseen_status()
            };
        }
        Err(RelayReason::Failed {
            code: SYNTAX | NOT_SUPPORTED,
            ..
        }) => return Ok(ProcedureStatus::Absent),
        Err(reason) => return Err(reason),
    };
    // The columns: name, sql_mode, the text (NULL if the account may not see it), character sets.
    let Some(text) = rows.first().and_then(|row| row.bytes(2)) else {
        return unseen_status();
    };
    let mode = rows.first().and_then(|row| row.text(1)).unwrap_or_default();
    if mode
        .split(',')
        .any(|mode| mode.eq_ignore_ascii_case("ORACLE"))
    {
        return Err(RelayReason::SqlMode {
            procedure: routine.name(definition).into(),
            mode: "ORACLE",
        });
    }
    match body::compare(definition, routine, text)?.security {
        SqlSecurity::Definer => Ok(ProcedureStatus::Known),
        SqlSecurity::Invoker => Err(RelayReason::Invoker {
            procedure: routine.name(definition).into(),
        }),
    }
}

/// The server gives the same error for a missing procedure and for one that the account may not see. It is missing if the list of
/// routines lacks its name and the account has a privilege by which every routine is listed.
fn is_surely_absent(
    definition: &TimelineDefinition,
    routine: TimelineRoutine,
    answers: CheckAnswers<'_>,
) -> bool {
    let Ok(routines) = answers.rows(CheckQuery::Routines) else {
        return false;
    };
    let has_name = |name: String| name.eq_ignore_ascii_case(routine.name(definition));
    if routines.iter().any(|row| row.text(0).is_none_or(has_name)) {
        return false;
    }
    lists_routines(answers, true)
}

/// Evaluates the results of [`functions_queries`]: true if the server surely has no stored functions, so views and statements run none.
#[must_use]
pub fn no_functions(answers: &[CheckQueryResult]) -> bool {
    let [Ok(count), Ok(privileges), partial_revokes_result] = answers else {
        return false;
    };
    let is_zero = rows_of(count).first().is_some_and(|row| row.equals(0, "0"));
    let partial_revokes = partial_revokes_result.as_deref().map(rows_of);
    is_zero && lists_all_routines(&rows_of(privileges), partial_revokes.as_deref().ok(), false)
}

fn has_surely_no_functions(answers: CheckAnswers<'_>) -> bool {
    let is_zero = answers
        .value(CheckQuery::Functions)
        .is_ok_and(|count| count.as_deref() == Some("0"));
    is_zero && lists_routines(answers, false)
}

/// True if the account has a privilege by which every routine is listed: of the definition's database, or else of all.
fn lists_routines(answers: CheckAnswers<'_>, of_database: bool) -> bool {
    let Ok(privileges) = answers.rows(CheckQuery::Privileges) else {
        return false;
    };
    let partial_revokes = answers.rows(CheckQuery::PartialRevokes);
    lists_all_routines(&privileges, partial_revokes.as_deref().ok(), of_database)
}

fn lists_all_routines(
    privileges: &[CheckRow<'_>],
    partial_revokes: Option<&[CheckRow<'_>]>,
    of_database: bool,
) -> bool {
    let none_revoked =
        partial_revokes.is_some_and(|rows| rows.iter().all(|row| row.equals(1, "OFF")));
    privileges.iter().any(|row| {
        let privilege = row.text(0).unwrap_or_default().to_ascii_uppercase();
        let lists_routines = LISTS_ROUTINES.contains(&privilege.as_str());
        match row.text(1).unwrap_or_default().as_str() {
            "database" => lists_routines && of_database,
            "global" => privilege == SHOW_ROUTINE || (lists_routines && none_revoked),
            "routines" => privilege == "SELECT",
            _ => false,
        }
    })
}

/// MySQL manual, information_schema.ROUTINES; MariaDB, `check_some_routine_access` in `sql_parse.cc`.
const LISTS_ROUTINES: &[&str] = &["EXECUTE", "ALTER ROUTINE", "CREATE ROUTINE"];
/// MySQL manual, "Dynamic Privilege Descriptions": all routines. On MariaDB, SELECT on the table of routines is equivalent.
const SHOW_ROUTINE: &str = "SHOW_ROUTINE";

const UNKNOWN_VARIABLE: u16 = 1193;
const NO_SUCH_ROUTINE: u16 = 1305;
const SYNTAX: u16 = 1064;
const NOT_SUPPORTED: u16 = 1235;
