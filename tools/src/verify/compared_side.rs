//! One of the two sides, over one connection: Headwater, or the server itself.

use std::time::Duration;

use super::answer::ComparableAnswer;
use headwater_proxy::account::{
    AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount,
};
use headwater_proxy::clock;
use headwater_wire::resultset::ResultSet;

/// Timeout of a reply.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct ComparedSide {
    name: &'static str,
    account: UpstreamAccount,
    purpose: ConnectionPurpose,
    /// `None` while it is reopened.
    conn: Option<AccountConnection>,
}

/// Why a side gives no more answers.
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

    /// Reconnects in this database, as apps do. Sessions of both sides then have the same history.
    pub(super) async fn enter_database(&mut self, database: &str) -> Result<(), AccountError> {
        // Only one connection may be open.
        self.conn = None;
        let account = self.account.in_database(database);
        self.conn = Some(open_connection(&account, self.purpose).await?);
        Ok(())
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Runs these one after the other, as a client does, until one is refused. Returns the answers and the total time.
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
        let reply = tokio::time::timeout(PATIENCE, conn.query(&[statement])).await;
        let answers = reply.map_err(|_| SideError::Silent { side })?;
        let answers = answers.map_err(|source| SideError::Failed { side, source })?;
        answers
            .into_iter()
            .next()
            .map(ComparableAnswer::from)
            .ok_or_else(|| missing_connection(side))
    }

    /// Returns the rows of a query of `verify` itself.
    pub(super) async fn rows(&mut self, query: &str) -> Result<ResultSet, AccountError> {
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let conn = self.conn.as_mut().ok_or(AccountError::Unexpected)?;
        let reply = tokio::time::timeout(PATIENCE, conn.rows(query)).await;
        reply.map_err(timed_out)?
    }
}

fn missing_connection(side: &'static str) -> SideError {
    SideError::Failed {
        side,
        source: AccountError::Unexpected,
    }
}

/// Each statement reads what is committed at that time, so both sides answer for now; and a procedure does not lock the rows that it reads,
/// so writers do not wait for it.
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
