//! One of the two that are asked, over one connection: Headwater, or the server itself.

use std::time::Duration;

use super::answer::Answer;
use crate::account::{Account, AccountError, Conn, Purpose};
use crate::clock;
use crate::wire::resultset::Rows;

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection, and whose it is.
#[derive(Debug)]
pub(super) struct Side {
    name: &'static str,
    account: Account,
    purpose: Purpose,
    /// `None` while another one is made.
    conn: Option<Conn>,
}

/// Why there is no answer any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("{side} cannot be asked any more: {source}")]
    Failed {
        side: &'static str,
        source: AccountError,
    },
    #[error("{side} gave no answer within {} s", PATIENCE.as_secs())]
    Silent { side: &'static str },
}

impl Side {
    /// Connects.
    pub(super) async fn of(
        name: &'static str,
        account: Account,
        purpose: Purpose,
    ) -> Result<Side, AccountError> {
        let conn = connected(&account, purpose).await?;
        Ok(Side {
            name,
            account,
            purpose,
            conn: Some(conn),
        })
    }

    /// Connects anew, in this database, as apps do. Sessions of both sides then have the same past.
    pub(super) async fn enter(&mut self, database: &str) -> Result<(), AccountError> {
        // There is one at a time.
        self.conn = None;
        let account = self.account.in_database(database);
        self.conn = Some(connected(&account, self.purpose).await?);
        Ok(())
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What these are answered, one after the other as a client asks them, up to one that is refused; and how long it took.
    pub(super) async fn talk(
        &mut self,
        statements: &[String],
    ) -> Result<(Vec<Answer>, Duration), Lost> {
        let begun = clock::now();
        let mut answers = Vec::with_capacity(statements.len());
        for statement in statements {
            let answer = self.ask_one(statement).await?;
            let refused = answer.is_refusal();
            answers.push(answer);
            if refused {
                break;
            }
        }
        Ok((answers, clock::since(begun)))
    }

    pub(super) async fn ask_one(&mut self, statement: &str) -> Result<Answer, Lost> {
        let side = self.name;
        let conn = self.conn.as_mut().ok_or_else(|| missing(side))?;
        let asked = tokio::time::timeout(PATIENCE, conn.ask(&[statement])).await;
        let answers = asked.map_err(|_| Lost::Silent { side })?;
        let answers = answers.map_err(|source| Lost::Failed { side, source })?;
        answers
            .into_iter()
            .next()
            .map(Answer::from)
            .ok_or_else(|| missing(side))
    }

    /// The rows of a question of `verify`'s own.
    pub(super) async fn rows(&mut self, question: &str) -> Result<Rows, AccountError> {
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let conn = self.conn.as_mut().ok_or(AccountError::Unexpected)?;
        let asked = tokio::time::timeout(PATIENCE, conn.rows(question)).await;
        asked.map_err(timed_out)?
    }
}

fn missing(side: &'static str) -> Lost {
    Lost::Failed {
        side,
        source: AccountError::Unexpected,
    }
}

/// Each statement sees what is committed when it comes, so both sides answer of now; and a procedure that runs locks none of the rows
/// that it reads, so writers do not wait for it.
async fn connected(account: &Account, purpose: Purpose) -> Result<Conn, AccountError> {
    let mut conn = Conn::open(account, purpose).await?;
    conn.run("SET SESSION autocommit = 1").await?;
    conn.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .await?;
    Ok(conn)
}
