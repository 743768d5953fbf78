//! The same checks for feeds that are not in the settings yet.

use std::time::Duration;

use super::feeds::feed_obstacles;
use super::{
    CheckError, CheckedServer, account_of, fetch_greeting, log_in, product, survey_within_limit,
};
use headwater_feed::FeedDefinition;
use headwater_proxy::account::greeting::product_version;
use headwater_proxy::account::{AccountConnection, UpstreamAccount};
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_proxy::binlog::server_facts::BinlogObstacle;
use headwater_proxy::catalogue::query_all;
use headwater_server::config::{ServeSettings, ServiceSection as ServiceAccount};
use headwater_sql::NameCase;
use headwater_timeline::check::{CheckQueryResult, ServerProduct};

/// A server checked by the service account.
#[derive(Debug)]
pub struct ProposedFeedCheck {
    conn: AccountConnection,
    /// The server's product and version.
    pub named: String,
    account: UpstreamAccount,
    server: CheckedServer,
    patience: Duration,
}

impl ProposedFeedCheck {
    /// Logs in and surveys the server, as for memory.
    pub async fn connect(
        settings: &ServeSettings,
        service: &ServiceAccount,
    ) -> Result<ProposedFeedCheck, CheckError> {
        let greeting = fetch_greeting(settings).await?;
        let account = account_of(settings, service)?;
        let mut conn = log_in(settings, &account).await?;
        let server = survey_within_limit(&mut conn, settings, &account, product(&greeting)).await?;
        Ok(ProposedFeedCheck {
            conn,
            named: product_version(&greeting),
            account,
            server,
            patience: Duration::from_millis(settings.limits.check_ms),
        })
    }

    /// Sends further queries, within `limits.check_ms`.
    pub async fn query(&mut self, queries: &[String]) -> Result<Vec<CheckQueryResult>, CheckError> {
        let answers = tokio::time::timeout(self.patience, query_all(&mut self.conn, queries)).await;
        let slow = |_| CheckError::Slow {
            ms: u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX),
            limit: "limits.check_ms",
        };
        Ok(answers.map_err(slow)??)
    }

    /// The account as in a GRANT.
    pub fn account(&self) -> &str {
        &self.server.account
    }

    /// How the server compares names of databases and tables.
    pub fn case(&self) -> NameCase {
        self.server.case
    }

    /// True if the server is a MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.server.product == ServerProduct::Mariadb
    }

    /// The statement that grants the account SELECT on a table.
    pub fn grant_read(&self, database: &str, table: &str) -> String {
        let right = RequiredPrivilege::Read {
            database: database.to_owned(),
            table: table.to_owned(),
        };
        right.grant_statement(&self.server.account)
    }

    /// The obstacles of every feed, a line each.
    pub fn common_obstacles(&self) -> Vec<String> {
        let obstacles = self.server.obstacles.iter().map(|obstacle| match obstacle {
            BinlogObstacle::Right(right) => right.missing_line(&self.server.account),
            other => other.to_string(),
        });
        let sessions = self.server.session_variables.iter().map(|(name, value)| {
            format!("{name} = {value:?} on the server: statements of sessions that begin with it are relayed")
        });
        obstacles.chain(sessions).collect()
    }

    /// The obstacles of this feed, a line each.
    pub async fn feed_obstacles(&self, definition: &FeedDefinition, database: &str) -> Vec<String> {
        feed_obstacles(
            &self.account,
            definition,
            database,
            &self.server,
            self.patience,
        )
        .await
    }
}
