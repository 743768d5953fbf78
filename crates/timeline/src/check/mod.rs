//! Whether a database has the timeline as its definition says: pure, from the answers to a list of queries.
//!
//! The caller sends [`queries`] in order on any connection, and hands all answers to [`evaluate`]. A query that fails does not
//! stop the others: MariaDB, MySQL and look-alikes each lack something.

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

/// What is to be done with the calls of a definition in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionVerdict {
    /// At least one of the two pages may be answered.
    Accelerate(Arc<DefinitionFacts>),
    /// Both are relayed, for this reason.
    Relay(RelayReason),
}

/// What the check found out on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionFacts {
    /// Which server it is.
    pub product: ServerProduct,
    /// What the server says of its version.
    pub version: String,
    /// Whether `CALL fetch_timeline_ids(N)` may be answered.
    pub newest: Result<ProcedureStatus, RelayReason>,
    /// Whether `CALL fetch_timeline_ids2(N, M)` may be answered.
    pub bounded: Result<ProcedureStatus, RelayReason>,
    /// Whether `CALL build_max_ids_of_followers(N, M)` may be answered.
    pub heads: Result<ProcedureStatus, RelayReason>,
    /// The index on (author, id) that lookups use.
    pub message_index: String,
    /// Messages of an author, on average, by the index statistics. For choosing a plan only.
    pub messages_per_author: Option<u64>,
    /// The greatest message id. For choosing a plan only.
    pub newest_id: Option<u64>,
    /// The server has no stored functions but those it came with: a SELECT runs none.
    pub no_functions: bool,
    /// What the procedures create their tables with.
    pub table_options: Arc<TemporaryTableOptions>,
    /// What the server says of the procedures' texts whenever it parses them.
    pub parse_warnings: ParseWarnings,
    /// The optimizer's estimate of the message table's rows, where MySQL tells it to the account.
    pub message_rows: Option<u64>,
    /// The message table's columns that are stored, not computed when they are read.
    pub stored_columns: Arc<[String]>,
    /// Where the rows are.
    pub storage: TableStorage,
}

impl DefinitionFacts {
    /// The procedures that there are and that may be answered.
    #[must_use]
    pub fn callable_forms(&self) -> Vec<ProcedureForm> {
        let runnable = |form: &ProcedureForm| {
            let seen = self.procedure_status(*form);
            seen.as_ref()
                .is_ok_and(|seen| *seen != ProcedureStatus::Absent)
        };
        ProcedureForm::ALL.into_iter().filter(runnable).collect()
    }

    /// A server of this product that has everything as it is known, and says nothing for plans: for tests of those who read facts.
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

    /// True when the messages are on other servers: lookups ask each data node once a statement, and memory follows all their logs.
    #[must_use]
    pub fn is_spread(&self) -> bool {
        self.storage == TableStorage::Spread
    }
}

/// Options of the tables that procedures create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryTableOptions {
    /// Of the result table.
    pub result: String,
    /// Of the heads table.
    pub heads: String,
}

impl Default for TemporaryTableOptions {
    /// The first ones ever.
    fn default() -> Self {
        let usual = || "ENGINE=heap DEFAULT CHARSET=utf8".to_owned();
        TemporaryTableOptions {
            result: usual(),
            heads: usual(),
        }
    }
}

/// Where the rows of a definition's tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStorage {
    /// In tables of InnoDB on this server.
    Local,
    /// The messages on data nodes that Spider reads, the follow lists in InnoDB or there as well: this server's log does not hold what others write there,
    /// and no key of this server's says that an id is unique.
    Spread,
}

/// The two families of servers, which differ in what a CALL answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerProduct {
    /// MySQL and all that is not MariaDB.
    Mysql,
    /// MariaDB.
    Mariadb,
}

/// How a form's procedure stands on a server where it may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcedureStatus {
    /// It is there and does what Headwater knows, with its definer's rights.
    Known,
    /// It is there or not, and by `trust_unseen_body` does what Headwater knows.
    Trusted,
    /// It is not there: a CALL is served from the definition.
    Absent,
}

impl DefinitionFacts {
    /// How a form stands, or why it is relayed.
    pub fn procedure_status(&self, form: ProcedureForm) -> &Result<ProcedureStatus, RelayReason> {
        match form {
            ProcedureForm::Newest => &self.newest,
            ProcedureForm::Bounded => &self.bounded,
            ProcedureForm::Heads => &self.heads,
        }
    }

    /// True when none of the forms is relayed.
    #[must_use]
    pub fn serves_all_forms(&self) -> bool {
        ProcedureForm::ALL
            .iter()
            .all(|form| self.procedure_status(*form).is_ok())
    }
}

impl fmt::Display for DefinitionFacts {
    /// For a log line: how each form stands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = [
            ("newest page", &self.newest),
            ("bounded page", &self.bounded),
            ("its helper", &self.heads),
        ];
        for (place, (form, stands)) in forms.into_iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match stands {
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
    /// True when the other verdict says the same of what is accelerated.
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
    /// The family by what the server says of its version.
    pub fn from_version(version: &str) -> Self {
        if version.to_ascii_lowercase().contains("mariadb") {
            Self::Mariadb
        } else {
            Self::Mysql
        }
    }
}

/// Judges the answers to [`queries`], in their order.
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

/// True when the account sees too little of one of the procedures to check it.
pub fn hides_bodies(definition: &TimelineDefinition, answers: &[CheckQueryResult]) -> bool {
    let answers = CheckAnswers::new(answers);
    TimelineRoutine::ALL.into_iter().any(|of| {
        let stands = routine_status(definition, of, answers);
        matches!(stands, Err(RelayReason::BodyUnseen { .. }))
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
        // It calls the helper, so the helper has to be there and as expected.
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

/// The text of a procedure, where the account may see it.
fn procedure_text(answers: CheckAnswers<'_>, routine: TimelineRoutine) -> Option<&[u8]> {
    let rows = answers.rows(CheckQuery::ShowCreate(routine)).ok()?;
    rows.first()?.bytes(2)
}

/// What the procedures create their tables with, as far as they are seen. Where no character set is named both have the
/// database's.
fn temporary_table_options(
    definition: &TimelineDefinition,
    answers: CheckAnswers<'_>,
) -> TemporaryTableOptions {
    let of = |routine| {
        let text = procedure_text(answers, routine)?;
        let body = body::compare(definition, routine, text).ok()?;
        Some(body.table_options)
    };
    let result = of(TimelineRoutine::Newest).or_else(|| of(TimelineRoutine::Bounded));
    let usual = TemporaryTableOptions::default();
    TemporaryTableOptions {
        result: result.unwrap_or(usual.result),
        heads: of(TimelineRoutine::Heads).unwrap_or(usual.heads),
    }
}

/// What may be said of the texts of these forms' procedures. Of a text that is not seen that is the usual.
fn parse_warnings(
    answers: CheckAnswers<'_>,
    stands: &[&Result<ProcedureStatus, RelayReason>; 3],
) -> ParseWarnings {
    let texts =
        TimelineRoutine::ALL.map(|routine| procedure_text(answers, routine).map(ParseWarnings::of));
    let unseen = stands.contains(&&Ok(ProcedureStatus::Trusted));
    let unseen = unseen.then_some(ParseWarnings::Alias);
    let all = texts.into_iter().chain([unseen]).flatten();
    all.max().unwrap_or_default()
}

fn routine_status(
    definition: &TimelineDefinition,
    routine: TimelineRoutine,
    answers: CheckAnswers<'_>,
) -> Result<ProcedureStatus, RelayReason> {
    let unseen = || {
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
                unseen()
            };
        }
        Err(RelayReason::Failed {
            code: SYNTAX | NOT_SUPPORTED,
            ..
        }) => return Ok(ProcedureStatus::Absent),
        Err(reason) => return Err(reason),
    };
    // The columns: name, sql_mode, the text (NULL where the account may not see it), character sets.
    let Some(text) = rows.first().and_then(|row| row.bytes(2)) else {
        return unseen();
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

/// The server gives one error for a procedure that is not there and for one that the account may know nothing of. It is the
/// first where the list of routines has none of that name and the account has a right by which each routine is listed.
fn is_surely_absent(
    definition: &TimelineDefinition,
    routine: TimelineRoutine,
    answers: CheckAnswers<'_>,
) -> bool {
    let Ok(routines) = answers.rows(CheckQuery::Routines) else {
        return false;
    };
    let named = |name: String| name.eq_ignore_ascii_case(routine.name(definition));
    if routines.iter().any(|row| row.text(0).is_none_or(named)) {
        return false;
    }
    lists_routines(answers, true)
}

/// Judges the answers to [`functions_queries`]: true when the server surely has no stored functions, so that neither views nor statements
/// run any.
#[must_use]
pub fn no_functions(answers: &[CheckQueryResult]) -> bool {
    let [Ok(count), Ok(rights), partial] = answers else {
        return false;
    };
    let none = rows_of(count).first().is_some_and(|row| row.equals(0, "0"));
    let partial = partial.as_deref().map(rows_of);
    none && lists_all_routines(&rows_of(rights), partial.as_deref().ok(), false)
}

fn has_surely_no_functions(answers: CheckAnswers<'_>) -> bool {
    let none = answers
        .value(CheckQuery::Functions)
        .is_ok_and(|count| count.as_deref() == Some("0"));
    none && lists_routines(answers, false)
}

/// True when the account has a right by which each routine is listed to it: of the definition's database,
/// or else of all.
fn lists_routines(answers: CheckAnswers<'_>, of_database: bool) -> bool {
    let Ok(rights) = answers.rows(CheckQuery::Privileges) else {
        return false;
    };
    let partial = answers.rows(CheckQuery::PartialRevokes);
    lists_all_routines(&rights, partial.as_deref().ok(), of_database)
}

fn lists_all_routines(
    rights: &[CheckRow<'_>],
    partial: Option<&[CheckRow<'_>]>,
    of_database: bool,
) -> bool {
    let whole = partial.is_some_and(|rows| rows.iter().all(|row| row.equals(1, "OFF")));
    rights.iter().any(|row| {
        let right = row.text(0).unwrap_or_default().to_ascii_uppercase();
        let listed = LISTS_ROUTINES.contains(&right.as_str());
        match row.text(1).unwrap_or_default().as_str() {
            "database" => listed && of_database,
            "global" => right == SHOW_ROUTINE || (listed && whole),
            "routines" => right == "SELECT",
            _ => false,
        }
    })
}

/// MySQL manual, information_schema.ROUTINES; MariaDB, `check_some_routine_access` in `sql_parse.cc`.
const LISTS_ROUTINES: &[&str] = &["EXECUTE", "ALTER ROUTINE", "CREATE ROUTINE"];
/// MySQL manual, "Dynamic Privilege Descriptions": all routines. On MariaDB, SELECT on the table of routines is as much.
const SHOW_ROUTINE: &str = "SHOW_ROUTINE";

const UNKNOWN_VARIABLE: u16 = 1193;
const NO_SUCH_ROUTINE: u16 = 1305;
const SYNTAX: u16 = 1064;
const NOT_SUPPORTED: u16 = 1235;
