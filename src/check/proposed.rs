//! Feeds that are not in the settings yet: the same questions about the server and about each of them.

use std::time::Duration;

use super::feeds::in_the_way;
use super::{CheckError, Server, account_of, greeted, log_in, looked_at, product};
use crate::account::{Account, Conn};
use crate::binlog::obstacles::Obstacle;
use crate::binlog::right::Right;
use crate::catalogue::ask;
use crate::config::{Account as ServiceAccount, Settings};
use crate::feed::FeedDefinition;
use crate::server::named;
use crate::sql::NameCase;
use crate::timeline::check::{Answered, Product};

/// A server that was looked at by the service account.
#[derive(Debug)]
pub(crate) struct Proposed {
    conn: Conn,
    /// The server's product and version.
    pub(crate) named: String,
    account: Account,
    server: Server,
    patience: Duration,
}

impl Proposed {
    /// Logs in and looks at the server, as for memory.
    pub(crate) async fn connect(
        settings: &Settings,
        service: &ServiceAccount,
    ) -> Result<Proposed, CheckError> {
        let greeting = greeted(settings).await?;
        let account = account_of(settings, service)?;
        let mut conn = log_in(settings, &account).await?;
        let server = looked_at(&mut conn, settings, &account, product(&greeting)).await?;
        Ok(Proposed {
            conn,
            named: named(&greeting),
            account,
            server,
            patience: Duration::from_millis(settings.limits.check_ms),
        })
    }

    /// Asks further questions, within `limits.check_ms`.
    pub(crate) async fn ask(&mut self, questions: &[String]) -> Result<Vec<Answered>, CheckError> {
        let answers = tokio::time::timeout(self.patience, ask(&mut self.conn, questions)).await;
        let slow = |_| CheckError::Slow {
            ms: u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX),
            limit: "limits.check_ms",
        };
        Ok(answers.map_err(slow)??)
    }

    /// The account as in a GRANT.
    pub(crate) fn account(&self) -> &str {
        &self.server.account
    }

    /// How the server compares names of databases and tables.
    pub(crate) fn case(&self) -> NameCase {
        self.server.case
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.server.product == Product::Mariadb
    }

    /// The statement that gives the account the right to read a table.
    pub(crate) fn grant_read(&self, database: &str, table: &str) -> String {
        let right = Right::Read {
            database: database.to_owned(),
            table: table.to_owned(),
        };
        right.statement(&self.server.account)
    }

    /// What is in the way of every feed, a line each.
    pub(crate) fn of_every_feed(&self) -> Vec<String> {
        let obstacles = self.server.obstacles.iter().map(|obstacle| match obstacle {
            Obstacle::Right(right) => right.missing(&self.server.account),
            other => other.to_string(),
        });
        let sessions = self.server.sessions.iter().map(|(name, value)| {
            format!("{name} = {value:?} on the server: statements of sessions that begin with it are relayed")
        });
        obstacles.chain(sessions).collect()
    }

    /// What is in the way of this one, a line each.
    pub(crate) async fn of_feed(&self, definition: &FeedDefinition, database: &str) -> Vec<String> {
        in_the_way(
            &self.account,
            definition,
            database,
            &self.server,
            self.patience,
        )
        .await
    }
}
