//! One of the two that are asked, over one connection: Headwater, or the server itself.

use std::time::Duration;

use super::answer::ComparableAnswer;
use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use crate::clock;
use crate::wire::resultset::ResultSet;

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection, and whose it is.
#[derive(Debug)]
pub(super) struct ComparedSide {
    name: &'static str,
    account: UpstreamAccount,
    purpose: ConnectionPurpose,
    /// `None` while another one is made.
    conn: Option<AccountConnection>,
}

/// Why there is no answer any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum SideError {
    #[error("{side} cannot be asked any more: {source}")]
    Failed {
        side: &'static str,
        source: AccountError,
    },
    #[error("{side} gave no answer within {} s", PATIENCE.as_secs())]
    Silent { side: &'static str },
}

impl ComparedSide {
    /// Connects.
    pub(super) async fn connect(
        name: &'static str,
        account: UpstreamAccount,
        purpose: ConnectionPurpose,
    ) -> Result<ComparedSide, AccountError> {
        let conn = open_connection(&account, purpose).await?;
        Ok(ComparedSide {
            name,
            account,
            purpose,
            conn: Some(conn),
        })
    }

    /// Connects anew, in this database, as apps do. Sessions of both sides then have the same past.
    pub(super) async fn enter_database(&mut self, database: &str) -> Result<(), AccountError> {
        // There is one at a time.
        self.conn = None;
        let account = self.account.in_database(database);
        self.conn = Some(open_connection(&account, self.purpose).await?);
        Ok(())
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What these are answered, one after the other as a client asks them, up to one that is refused; and how long it took.
    pub(super) async fn query_each(
        &mut self,
        statements: &[String],
    ) -> Result<(Vec<ComparableAnswer>, Duration), SideError> {
        let begun = clock::now();
        let mut answers = Vec::with_capacity(statements.len());
        for statement in statements {
            let answer = self.query_one(statement).await?;
            let refused = answer.is_refusal();
            answers.push(answer);
            if refused {
                break;
            }
        }
        Ok((answers, clock::since(begun)))
    }

    pub(super) async fn query_one(
        &mut self,
        statement: &str,
    ) -> Result<ComparableAnswer, SideError> {
        let side = self.name;
        let conn = self.conn.as_mut().ok_or_else(|| missing_connection(side))?;
        let asked = tokio::time::timeout(PATIENCE, conn.query(&[statement])).await;
        let answers = asked.map_err(|_| SideError::Silent { side })?;
        let answers = answers.map_err(|source| SideError::Failed { side, source })?;
        answers
            .into_iter()
            .next()
            .map(ComparableAnswer::from)
            .ok_or_else(|| missing_connection(side))
    }

    /// The rows of a question of `verify`'s own.
    pub(super) async fn rows(&mut self, question: &str) -> Result<ResultSet, AccountError> {
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let conn = self.conn.as_mut().ok_or(AccountError::Unexpected)?;
        let asked = tokio::time::timeout(PATIENCE, conn.rows(question)).await;
        asked.map_err(timed_out)?
    }
}

fn missing_connection(side: &'static str) -> SideError {
    SideError::Failed {
        side,
        source: AccountError::Unexpected,
    }
}

/// Each statement sees what is committed when it comes, so both sides answer of now; and a procedure that runs locks none of the rows
/// that it reads, so writers do not wait for it.
async fn open_connection(
    account: &UpstreamAccount,
    purpose: ConnectionPurpose,
) -> Result<AccountConnection, AccountError> {
    let mut conn = AccountConnection::open(account, purpose).await?;
    conn.run("SET SESSION autocommit = 1").await?;
    conn.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .await?;
    Ok(conn)
}
