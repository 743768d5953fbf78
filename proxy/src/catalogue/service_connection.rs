//! The service account's connection for catalogue checks; it never carries a client's traffic.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::account::error::EXECUTE_DENIED;
use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use crate::clock;
use headwater_feed::catalogue::CatalogueRows;
use headwater_lookup::session_probes::to_check_reply;
use headwater_sql::quoted;
use headwater_timeline::check::{self, CheckQueryResult, DefinitionVerdict, ServerError};
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};

/// A connection of the service account, opened on demand and again after a loss.
#[derive(Debug)]
pub struct ServiceConnection {
    account: UpstreamAccount,
    connection: Mutex<Option<AccountConnection>>,
    /// Timeout of a check, in milliseconds.
    patience_ms: AtomicU64,
    /// When the account's queries last failed.
    failed_at: std::sync::Mutex<Option<Instant>>,
    sessions: Mutex<Option<SessionList>>,
}

/// The ids of all sessions of the server at a moment; `None`: the account may not see those of others.
type SessionList = (Instant, Option<HashSet<u32>>);

/// Succeeds for an account that may see other sessions; others get an error that names the missing privilege.
pub(crate) const SESSION_PRIVILEGE_QUERY: &str =
    "SELECT COUNT(*) FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'";
/// How long a list of sessions is valid.
const SESSION_LIST_TTL: Duration = Duration::from_millis(500);

impl ServiceError {
    /// How long the account is not tried again after a failure.
    pub const RETRY: Duration = Duration::from_secs(1);

    /// True if it was logged when it happened.
    #[must_use]
    pub fn was_logged(&self) -> bool {
        match self {
            ServiceError::Server(error) => error.is_refusal(),
            ServiceError::FailedRecently => true,
            ServiceError::None | ServiceError::TimedOut(_) | ServiceError::Refused(_) => false,
        }
    }
}

/// Why the service account's query failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No service account is set.
    #[error("no service account is set (--service-user, HEADWATER_SERVICE_USER, service.user)")]
    None,
    /// The server is unreachable, refused the account, or dropped the connection.
    #[error("the service account cannot ask the server: {0}")]
    Server(#[from] AccountError),
    /// The server refused a query.
    #[error("the server refuses a question of the service account: {0}")]
    Refused(String),
    /// The replies did not come in time.
    #[error("the server did not answer the service account within {} ms (limits.check_ms)", .0.as_millis())]
    TimedOut(Duration),
    /// It failed a moment ago; that was logged then.
    #[error("the service account could not ask the server a moment ago")]
    FailedRecently,
}

impl ServiceConnection {
    /// A service account's connection.
    #[must_use]
    pub fn new(account: UpstreamAccount, patience: Duration) -> Self {
        ServiceConnection {
            account,
            connection: Mutex::new(None),
            patience_ms: AtomicU64::new(millis(patience)),
            failed_at: std::sync::Mutex::new(None),
            sessions: Mutex::default(),
        }
    }

    /// Sets the timeout of checks.
    pub fn set_patience(&self, patience: Duration) {
        self.patience_ms.store(millis(patience), Ordering::Relaxed);
    }

    /// Another server is queried from now on: failures of the previous one no longer delay queries.
    pub fn change_primary(&self) {
        *super::lock(&self.failed_at) = None;
    }

    /// The service account.
    #[must_use]
    pub fn account(&self) -> &UpstreamAccount {
        &self.account
    }

    /// The databases that hold both tables of a definition, at most `limit`.
    ///
    /// # Errors
    /// When the server cannot be queried.
    pub async fn databases(
        &self,
        definition: &TimelineDefinition,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, ServiceError> {
        let answers = self
            .query(&[check::databases_query(definition, limit)])
            .await?;
        let rows = answers
            .into_iter()
            .next()
            .and_then(Result::ok)
            .unwrap_or_default();
        Ok(rows
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect())
    }

    /// Checks a definition in a database. Waits up to `limits.check_ms`.
    ///
    /// # Errors
    /// When the server cannot be queried; a server error about the definition is part of the verdict.
    pub async fn check(
        &self,
        definition: &TimelineDefinition,
        database: &[u8],
    ) -> Result<DefinitionVerdict, ServiceError> {
        // A name that is not UTF-8 is replaced by one that matches nothing: the verdict is to relay.
        let database = String::from_utf8_lossy(database);
        let queries = check::queries(definition, &database);
        let answers = self.query(&queries).await?;
        Ok(check::evaluate(definition, &database, &answers))
    }

    /// The rows of each query.
    ///
    /// # Errors
    /// When the server cannot be queried, or refuses one of them.
    pub async fn query_rows(&self, queries: &[String]) -> Result<Vec<CatalogueRows>, ServiceError> {
        let answers = self.query(queries).await?;
        let rows: Result<Vec<CatalogueRows>, ServerError> = answers.into_iter().collect();
        rows.map_err(|error| ServiceError::Refused(error.to_string()))
    }

    /// True if the server no longer has a session of this id, as far as the account may see those of others.
    pub async fn has_ended(&self, thread: u32) -> bool {
        let mut list = self.sessions.lock().await;
        if list
            .as_ref()
            .is_none_or(|(at, _)| clock::since(*at) > SESSION_LIST_TTL)
        {
            let begun = clock::now();
            *list = Some((begun, self.session_list().await));
        }
        let listed = list.as_ref().and_then(|(_, listed)| listed.as_ref());
        listed.is_some_and(|listed| !listed.contains(&thread))
    }

    async fn session_list(&self) -> Option<HashSet<u32>> {
        let queries = [
            SESSION_PRIVILEGE_QUERY,
            "SELECT ID FROM information_schema.PROCESSLIST",
        ];
        let replies = self.query_rows(&queries.map(str::to_owned)).await.ok()?;
        let number = |row: Vec<Option<Vec<u8>>>| -> Option<u32> {
            let cell = row.into_iter().next().flatten()?;
            let number: u64 = str::from_utf8(&cell).ok()?.parse().ok()?;
            // A greeting holds the lower 32 bits.
            u32::try_from(number & u64::from(u32::MAX)).ok()
        };
        replies
            .into_iter()
            .nth(1)?
            .into_iter()
            .map(number)
            .collect()
    }

    /// True if the server surely has no stored functions, by which a SELECT could do more than read.
    ///
    /// # Errors
    /// When the server cannot be queried.
    pub async fn has_no_functions(&self) -> Result<bool, ServiceError> {
        let answers = self.query(&check::functions_queries()).await?;
        Ok(check::no_functions(&answers))
    }

    /// True unless the server rejects a statement with a parse error.
    ///
    /// # Errors
    /// When the server cannot be queried.
    pub async fn accepts_statement(&self, statement: &str) -> Result<bool, ServiceError> {
        const PARSE_ERROR: u16 = 1064;
        let answers = self.query(&[statement.to_owned()]).await?;
        let mistake =
            |answer: &CheckQueryResult| matches!(answer, Err(error) if error.code == PARSE_ERROR);
        Ok(!answers.first().is_some_and(mistake))
    }

    /// Which of these procedures the account may not run.
    ///
    /// # Errors
    /// When the server cannot be queried.
    pub async fn denied_procedures(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        forms: &[ProcedureForm],
    ) -> Result<Vec<ProcedureForm>, ServiceError> {
        let answers = self
            .query(&execute_probes(definition, database, forms))
            .await?;
        Ok(denied_forms(forms, &answers))
    }

    async fn query(&self, queries: &[String]) -> Result<Vec<CheckQueryResult>, ServiceError> {
        let is_recent = |at: Instant| clock::since(at) < ServiceError::RETRY;
        if super::lock(&self.failed_at).is_some_and(is_recent) {
            return Err(ServiceError::FailedRecently);
        }
        let patience = Duration::from_millis(self.patience_ms.load(Ordering::Relaxed));
        let answers =
            match tokio::time::timeout(patience, self.query_cached_connection(queries)).await {
                Ok(answers) => answers,
                Err(_) => Err(ServiceError::TimedOut(patience)),
            };
        *super::lock(&self.failed_at) = answers.is_err().then(clock::now);
        answers
    }

    async fn query_cached_connection(
        &self,
        queries: &[String],
    ) -> Result<Vec<CheckQueryResult>, ServiceError> {
        let mut place = self.connection.lock().await;
        // Only a connection that answered everything is cached again.
        let mut cached = place.take();
        if cached
            .as_mut()
            .is_some_and(|connection| !connection.is_open())
        {
            cached = None;
        }
        let mut connection = match cached {
            Some(connection) => connection,
            None => AccountConnection::open(&self.account, ConnectionPurpose::Definitions).await?,
        };
        let answers = query_all(&mut connection, queries).await?;
        *place = Some(connection);
        Ok(answers)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Queries that show whether procedures may be run: without arguments none of them does anything.
#[must_use]
pub fn execute_probes(
    definition: &TimelineDefinition,
    database: &str,
    forms: &[ProcedureForm],
) -> Vec<String> {
    let run = |form: &ProcedureForm| {
        let procedure = definition.procedure_name(*form);
        format!("CALL {}.{}()", quoted(database), quoted(procedure))
    };
    forms.iter().map(run).collect()
}

/// The procedures that may not be run, according to these replies.
#[must_use]
pub fn denied_forms(forms: &[ProcedureForm], answers: &[CheckQueryResult]) -> Vec<ProcedureForm> {
    let answered = forms.iter().zip(answers);
    let denied = answered.filter(|(_, answer)| {
        let error = answer.as_ref().err();
        error.is_some_and(|error| EXECUTE_DENIED.contains(&error.code))
    });
    denied.map(|(form, _)| *form).collect()
}

/// Sends queries in one write; one that fails does not stop later ones.
///
/// # Errors
/// When the connection fails.
pub async fn query_all(
    connection: &mut AccountConnection,
    queries: &[String],
) -> Result<Vec<CheckQueryResult>, AccountError> {
    let answers = connection.query(queries).await?;
    Ok(answers.into_iter().map(to_check_reply).collect())
}
