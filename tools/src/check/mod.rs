//! `headwater check`: reports what will be served from memory, and every obstacle, before anything is served.
//!
//! It sends the same queries as `serve`: [`headwater_timeline::check`] judges the definitions, [`headwater_proxy::binlog::obstacle_survey`] the server's
//! log and the account's privileges. It only reads, and leaves nothing behind on this machine either.

mod account;
mod cluster_waits;
mod feeds;
mod machine;
mod member;
mod proposed_feeds;
mod report;
mod servers;
mod serving_goal;
mod timelines;

use futures_util::future::LocalBoxFuture;
use std::io;
use std::time::Duration;

pub use self::feeds::ABOVE;
pub use self::proposed_feeds::ProposedFeedCheck;
use self::report::CheckReport;
pub(crate) use self::servers::primary_settings;
use self::serving_goal::{ComparisonPolicy, ServingGoal};
use headwater_feed::catalogue;
use headwater_proxy::account::greeting::{greet, product_version};
use headwater_proxy::account::{
    AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount, host,
};
use headwater_proxy::binlog::obstacle_survey;
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_proxy::binlog::server_facts::BinlogObstacle;
use headwater_proxy::catalogue::query_all;
use headwater_proxy::tls::{TlsConnector, TlsError};
use headwater_server::config::{ServeSettings, ServiceSection as ServiceAccount};
use headwater_server::report::ReportWriter;
use headwater_session::settings_probe;
use headwater_sql::NameCase;
use headwater_timeline::check::ServerProduct;
use headwater_wire::handshake::ServerGreeting;

/// Why the check could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No server answers there.
    #[error(
        "cannot connect to the server at {upstream} (--upstream, HEADWATER_UPSTREAM, upstream)"
    )]
    Unreachable {
        /// The address.
        upstream: String,
        /// Why.
        source: io::Error,
    },
    /// None of several servers takes writes.
    #[error("none of the servers in upstream (--upstream, HEADWATER_UPSTREAM) is the primary: {0}")]
    NoPrimary(String),
    /// The server refuses the service account.
    #[error(
        "the service account cannot log in to the server at {upstream} (--service-user, HEADWATER_SERVICE_USER, \
         service.user; --service-password, HEADWATER_SERVICE_PASSWORD, service.password)"
    )]
    Login {
        /// The address.
        upstream: String,
        /// Why.
        source: AccountError,
    },
    /// The server was not asked whether it takes the account.
    #[error("the service account has no connection to the server at {upstream}")]
    Connection {
        /// The address.
        upstream: String,
        /// Why.
        source: AccountError,
    },
    /// A connection failed meanwhile, or a query about the server itself did.
    #[error("the server cannot be asked by the service account")]
    Asking {
        /// Why.
        source: AccountError,
    },
    /// A certificate or a key that the settings name cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The replies did not come in time.
    #[error("the server did not answer the service account within {ms} ms ({limit})")]
    Slow {
        /// The timeout in milliseconds.
        ms: u64,
        /// The setting.
        limit: &'static str,
    },
}

impl CheckError {
    /// True if the account may not exist. For a missing account MySQL requests a plugin that it picks by the name.
    fn is_denial(&self) -> bool {
        matches!(self, CheckError::Login { source, .. } if source.is_refusal())
    }
}

impl From<AccountError> for CheckError {
    fn from(source: AccountError) -> Self {
        CheckError::Asking { source }
    }
}

/// Checks the server of these settings, and writes the findings to `text`, which has content even if the check fails half-way. True if
/// there is no obstacle to what the settings ask for.
///
/// # Errors
/// When the check cannot be completed.
///
/// Boxed, so that no other package compiles it again.
pub fn run<'r>(
    settings: &'r ServeSettings,
    text: &'r mut String,
) -> LocalBoxFuture<'r, Result<bool, CheckError>> {
    Box::pin(check_server(settings, text))
}

async fn check_server(settings: &ServeSettings, text: &mut String) -> Result<bool, CheckError> {
    let servers = servers::survey_servers(settings).await?;
    let mut obstacle_count = 0;
    let primary = servers.as_ref().map(|survey| {
        obstacle_count += CheckReport::new(text).servers(survey.lines());
        survey.primary_settings(settings)
    });
    let primary = primary.transpose()?;
    let (whole, settings) = (settings, primary.as_ref().unwrap_or(settings));
    let upstream = settings.upstream.first();
    let greeting = fetch_greeting(settings).await?;
    let product = product(&greeting);
    let mut report = CheckReport::new(text);
    report.server(&product_version(&greeting), upstream);
    report.settings(settings);
    obstacle_count += report.machine(&machine::survey_machine(settings, whole, &greeting).await);
    if !settings.accelerate {
        report.nothing_accelerated(settings);
        return Ok(obstacle_count == 0);
    }
    let Some(service) = &settings.service else {
        report.no_account(settings, product);
        return Ok(obstacle_count == 0);
    };
    let account = account_of(settings, service)?;
    let mut conn = match log_in(settings, &account).await {
        Ok(conn) => conn,
        Err(error) => {
            if error.is_denial() {
                report.account_to_make(settings, product, &service.user);
            }
            return Err(error);
        }
    };
    let server = survey_within_limit(&mut conn, settings, &account, product).await?;
    let settings = &settings.folded(server.case);
    let timelines = timelines::find_timelines(&mut conn, settings, &account, &server).await?;
    let feeds = feeds::find_feeds(&mut conn, settings, &account, &server).await?;
    let fine = report.write_findings(settings, &server, &timelines);
    Ok(report.feeds(&feeds) && fine && obstacle_count == 0)
}

pub(crate) async fn fetch_greeting(settings: &ServeSettings) -> Result<ServerGreeting, CheckError> {
    let patience = Duration::from_millis(settings.limits.connect_ms);
    let greeting = greet(settings.upstream.first(), patience).await;
    greeting.map_err(|source| CheckError::Unreachable {
        upstream: settings.upstream.to_string(),
        source,
    })
}

fn product(greeting: &ServerGreeting) -> ServerProduct {
    match greeting.is_mariadb() {
        true => ServerProduct::Mariadb,
        false => ServerProduct::Mysql,
    }
}

pub(crate) fn account_of(
    settings: &ServeSettings,
    service: &ServiceAccount,
) -> Result<UpstreamAccount, TlsError> {
    let upstream = settings.upstream.first();
    let connector = TlsConnector::new(&settings.upstream_tls, host(upstream))?;
    let (user, password) = (&service.user, &service.password);
    Ok(UpstreamAccount::new(upstream, user, password, &connector))
}

#[derive(Debug)]
struct CheckedServer {
    product: ServerProduct,
    /// The account as the server knows it, in the notation of a GRANT.
    account: String,
    goal: ServingGoal,
    /// Whether answers are compared with the procedure's (`shadow.rate`).
    compares: ComparisonPolicy,
    /// Obstacles to memory, on the server itself.
    obstacles: Vec<BinlogObstacle>,
    /// Initial session variables with which no call is served.
    session_variables: Vec<(&'static str, String)>,
    case: NameCase,
}

pub(crate) async fn log_in(
    settings: &ServeSettings,
    account: &UpstreamAccount,
) -> Result<AccountConnection, CheckError> {
    let ms = settings.limits.connect_ms;
    let connecting = AccountConnection::open(account, ConnectionPurpose::Definitions);
    let connected = tokio::time::timeout(Duration::from_millis(ms), connecting);
    let slow = |_| CheckError::Slow {
        ms,
        limit: "limits.connect_ms",
    };
    let upstream = settings.upstream.to_string();
    let connected = connected.await.map_err(slow)?;
    connected.map_err(|source| match source {
        // A server error may concern anything about the account.
        _ if source.is_refusal() || source.code().is_some() => {
            CheckError::Login { upstream, source }
        }
        _ => CheckError::Connection { upstream, source },
    })
}

async fn survey_within_limit(
    conn: &mut AccountConnection,
    settings: &ServeSettings,
    account: &UpstreamAccount,
    product: ServerProduct,
) -> Result<CheckedServer, CheckError> {
    let limit = Duration::from_millis(settings.limits.check_ms);
    let about = tokio::time::timeout(limit, survey_server(conn, settings, account, product));
    let server = about.await.map_err(|_| CheckError::Slow {
        ms: settings.limits.check_ms,
        limit: "limits.check_ms",
    })??;
    Ok(server)
}

async fn survey_server(
    conn: &mut AccountConnection,
    settings: &ServeSettings,
    account: &UpstreamAccount,
    product: ServerProduct,
) -> Result<CheckedServer, AccountError> {
    let known = conn.rows("SELECT CURRENT_USER()").await?;
    let known = known.row(0).and_then(|row| row.cell(0));
    let known = String::from_utf8_lossy(known.unwrap_or_default());
    let goal = if settings.binlog.memory_bytes > 0 {
        ServingGoal::Memory
    } else {
        ServingGoal::Lookups
    };
    let obstacles = match goal {
        ServingGoal::Memory => obstacle_survey::server_obstacles(account).await?,
        ServingGoal::Lookups => Vec::new(),
    };
    Ok(CheckedServer {
        product,
        account: account::grant_name(&known),
        goal,
        compares: settings.shadow.into(),
        obstacles,
        session_variables: unfit_session_variables(conn, product).await?,
        case: name_case(conn).await?,
    })
}

/// Session variables, at the server's defaults, with which no call is served: this session has the defaults.
async fn unfit_session_variables(
    conn: &mut AccountConnection,
    product: ServerProduct,
) -> Result<Vec<(&'static str, String)>, AccountError> {
    let mariadb = product == ServerProduct::Mariadb;
    let queries = [
        settings_probe::settings_query(settings_probe::ProbedServer::of(mariadb)),
        "SELECT @@autocommit".to_owned(),
    ];
    let answers = query_all(conn, &queries).await?;
    if let Some(Err(error)) = answers.first() {
        return Ok(vec![("settings of sessions", error.to_string())]);
    }
    let mut rows = answers.into_iter().map(|answer| {
        let rows = answer.unwrap_or_default();
        rows.into_iter().next().unwrap_or_default()
    });
    let mut unfit = settings_probe::unsuitable_settings(mariadb, &rows.next().unwrap_or_default());
    if rows.next().unwrap_or_default().first() == Some(&Some(b"0".to_vec())) {
        unfit.push(("autocommit", "OFF".to_owned()));
    }
    // Those of a replication group are among the variables above.
    if mariadb {
        let answers = query_all(conn, &cluster_waits::queries(product)).await?;
        unfit.extend(cluster_waits::waiting_variable(product, &answers));
    }
    Ok(unfit)
}

async fn name_case(conn: &mut AccountConnection) -> Result<NameCase, AccountError> {
    let reply = conn.rows("SELECT @@lower_case_table_names").await?;
    let reply = reply.row(0).and_then(|row| row.cell(0));
    let value = String::from_utf8_lossy(reply.unwrap_or_default());
    Ok(NameCase::from_variable(&value))
}

/// The named database, or those that a query lists.
async fn databases(
    conn: &mut AccountConnection,
    named: Option<&String>,
    query: String,
) -> Result<Vec<String>, AccountError> {
    if let Some(database) = named {
        return Ok(vec![database.clone()]);
    }
    let answers = query_all(conn, &[query]).await?;
    let rows = answers.into_iter().filter_map(Result::ok).flatten();
    Ok(catalogue::first_column_names(rows).collect())
}

impl CheckedServer {
    /// True if an obstacle prevents following the log.
    fn is_log_unavailable(&self) -> bool {
        let waits = BinlogObstacle::Right(RequiredPrivilege::OpenTransactions);
        self.obstacles.iter().any(|obstacle| *obstacle != waits)
    }

    /// True if memory must wait for the next change of the tables.
    fn cannot_list_transactions(&self) -> bool {
        self.obstacles
            .contains(&BinlogObstacle::Right(RequiredPrivilege::OpenTransactions))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use headwater_proxy::account::AccountError;
    use headwater_server::report::with_causes;

    use super::CheckError;

    #[test]
    fn a_cause_is_written_once() {
        let reset = || io::Error::new(io::ErrorKind::ConnectionReset, "reset by the peer");
        // Its text contains its cause.
        let lost = AccountError::from(reset());
        let once = "the connection to the server failed: reset by the peer";
        assert_eq!(with_causes(&lost), once);
        let asking = CheckError::Asking { source: lost };
        assert_eq!(
            with_causes(&asking),
            format!("the server cannot be asked by the service account: {once}")
        );
        let unreachable = CheckError::Unreachable {
            upstream: "db:3306".to_owned(),
            source: reset(),
        };
        assert!(with_causes(&unreachable).ends_with(": reset by the peer"));
    }
}
