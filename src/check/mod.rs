//! `headwater check`: what will be answered from memory, and everything that stands in the way, before anything is served.
//!
//! It asks as `serve` would, with the same questions: [`crate::timeline::check`] judges the definitions, [`crate::binlog::survey`] the
//! server's log and the account's rights. It only reads, and leaves nothing behind on this machine either.

mod account;
mod feeds;
mod goal;
mod machine;
mod member;
mod proposed;
mod report;
mod servers;
mod timelines;
mod waits;

use std::io;
use std::time::Duration;

#[cfg(feature = "lab")]
pub(crate) use self::feeds::ABOVE;
use self::goal::{Compares, Goal};
pub(crate) use self::proposed::Proposed;
use self::report::Findings;
pub(crate) use self::servers::of_primary;
use crate::account::{Account, AccountError, Conn, Purpose, host};
use crate::binlog::obstacles::Obstacle;
use crate::binlog::right::Right;
use crate::binlog::survey;
use crate::catalogue::ask;
use crate::config::{Account as ServiceAccount, Settings};
use crate::feed::facts;
use crate::report::Report;
use crate::server::{greet, named};
use crate::session::probe;
use crate::sql::NameCase;
use crate::timeline::check::Product;
use crate::tls::{Connector, TlsError};
use crate::wire::handshake::Greeting;

/// Why the server could not be looked at to the end.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Nothing that speaks the protocol is there.
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
    /// A connection failed on the way, or a question about the server itself did.
    #[error("the server cannot be asked by the service account")]
    Asking {
        /// Why.
        source: AccountError,
    },
    /// A certificate or a key that the settings name cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The answers did not come in time.
    #[error("the server did not answer the service account within {ms} ms ({limit})")]
    Slow {
        /// How long it had.
        ms: u64,
        /// The setting.
        limit: &'static str,
    },
}

impl CheckError {
    /// True when there may be no such account. Of one that is not there MySQL asks for a plugin that it draws by the name.
    fn is_denial(&self) -> bool {
        matches!(self, CheckError::Login { source, .. } if source.is_refusal())
    }
}

impl From<AccountError> for CheckError {
    fn from(source: AccountError) -> Self {
        CheckError::Asking { source }
    }
}

/// Looks at the server as these settings name it, and writes what is found to `text`, which holds something even where
/// the check fails half-way. True when nothing stands in the way of what the settings ask for.
///
/// # Errors
/// When the server cannot be looked at to the end.
pub async fn run(settings: &Settings, text: &mut String) -> Result<bool, CheckError> {
    let servers = servers::look(settings).await?;
    let mut own = 0;
    let primary = servers.as_ref().map(|found| {
        own += Findings::new(text).servers(found.lines());
        found.of_primary(settings)
    });
    let primary = primary.transpose()?;
    let (whole, settings) = (settings, primary.as_ref().unwrap_or(settings));
    let upstream = settings.upstream.first();
    let greeting = greeted(settings).await?;
    let product = product(&greeting);
    let mut report = Findings::new(text);
    report.server(&named(&greeting), upstream);
    report.settings(settings);
    own += report.machine(&machine::look(settings, whole, &greeting).await);
    if !settings.accelerate {
        report.nothing_accelerated(settings);
        return Ok(own == 0);
    }
    let Some(service) = &settings.service else {
        report.no_account(settings, product);
        return Ok(own == 0);
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
    let server = looked_at(&mut conn, settings, &account, product).await?;
    let settings = &settings.folded(server.case);
    let timelines = timelines::all(&mut conn, settings, &account, &server).await?;
    let feeds = feeds::all(&mut conn, settings, &account, &server).await?;
    let fine = report.found(settings, &server, &timelines);
    Ok(report.feeds(&feeds) && fine && own == 0)
}

/// What the server says to who connects.
pub(crate) async fn greeted(settings: &Settings) -> Result<Greeting, CheckError> {
    let patience = Duration::from_millis(settings.limits.connect_ms);
    let greeting = greet(settings.upstream.first(), patience).await;
    greeting.map_err(|source| CheckError::Unreachable {
        upstream: settings.upstream.to_string(),
        source,
    })
}

fn product(greeting: &Greeting) -> Product {
    match greeting.is_mariadb() {
        true => Product::Mariadb,
        false => Product::Mysql,
    }
}

pub(crate) fn account_of(
    settings: &Settings,
    service: &ServiceAccount,
) -> Result<Account, TlsError> {
    let upstream = settings.upstream.first();
    let connector = Connector::new(&settings.upstream_tls, host(upstream))?;
    let (user, password) = (&service.user, &service.password);
    Ok(Account::new(upstream, user, password, &connector))
}

/// What was found of the server itself.
#[derive(Debug)]
struct Server {
    product: Product,
    /// The account as the server knows it, written as in a GRANT.
    account: String,
    goal: Goal,
    /// Answers are compared with the procedure's (`shadow.rate`).
    compares: Compares,
    /// What is in the way of memory, on the server itself.
    obstacles: Vec<Obstacle>,
    /// Variables with which sessions start and under which no call is answered.
    sessions: Vec<(&'static str, String)>,
    /// How it compares names of databases and tables.
    case: NameCase,
}

pub(crate) async fn log_in(settings: &Settings, account: &Account) -> Result<Conn, CheckError> {
    let ms = settings.limits.connect_ms;
    let connecting = Conn::open(account, Purpose::Definitions);
    let connected = tokio::time::timeout(Duration::from_millis(ms), connecting);
    let slow = |_| CheckError::Slow {
        ms,
        limit: "limits.connect_ms",
    };
    let upstream = settings.upstream.to_string();
    let connected = connected.await.map_err(slow)?;
    connected.map_err(|source| match source {
        // What the server said: it may be about anything that has to do with the account.
        _ if source.is_refusal() || source.code().is_some() => {
            CheckError::Login { upstream, source }
        }
        _ => CheckError::Connection { upstream, source },
    })
}

async fn looked_at(
    conn: &mut Conn,
    settings: &Settings,
    account: &Account,
    product: Product,
) -> Result<Server, CheckError> {
    let limit = Duration::from_millis(settings.limits.check_ms);
    let about = tokio::time::timeout(limit, server(conn, settings, account, product));
    let server = about.await.map_err(|_| CheckError::Slow {
        ms: settings.limits.check_ms,
        limit: "limits.check_ms",
    })??;
    Ok(server)
}

async fn server(
    conn: &mut Conn,
    settings: &Settings,
    account: &Account,
    product: Product,
) -> Result<Server, AccountError> {
    let known = conn.rows("SELECT CURRENT_USER()").await?;
    let known = known.row(0).and_then(|row| row.cell(0));
    let known = String::from_utf8_lossy(known.unwrap_or_default());
    let goal = if settings.binlog.memory_bytes > 0 {
        Goal::Memory
    } else {
        Goal::Lookups
    };
    let obstacles = match goal {
        Goal::Memory => survey::server(account).await?,
        Goal::Lookups => Vec::new(),
    };
    Ok(Server {
        product,
        account: account::as_known(&known),
        goal,
        compares: settings.shadow.into(),
        obstacles,
        sessions: sessions(conn, product).await?,
        case: case(conn).await?,
    })
}

/// The variables under which a session that keeps the server's defaults is answered nothing: this one has them.
async fn sessions(
    conn: &mut Conn,
    product: Product,
) -> Result<Vec<(&'static str, String)>, AccountError> {
    let mariadb = product == Product::Mariadb;
    let queries = [
        probe::settings_query(probe::Asked::of(mariadb)),
        "SELECT @@autocommit".to_owned(),
    ];
    let answers = ask(conn, &queries).await?;
    if let Some(Err(error)) = answers.first() {
        return Ok(vec![("settings of sessions", error.to_string())]);
    }
    let mut rows = answers.into_iter().map(|answer| {
        let rows = answer.unwrap_or_default();
        rows.into_iter().next().unwrap_or_default()
    });
    let mut unfit = probe::unfit(mariadb, &rows.next().unwrap_or_default());
    if rows.next().unwrap_or_default().first() == Some(&Some(b"0".to_vec())) {
        unfit.push(("autocommit", "OFF".to_owned()));
    }
    // That of a replication group is among those above.
    if mariadb {
        let answers = ask(conn, &waits::questions(product)).await?;
        unfit.extend(waits::found(product, &answers));
    }
    Ok(unfit)
}

async fn case(conn: &mut Conn) -> Result<NameCase, AccountError> {
    let told = conn.rows("SELECT @@lower_case_table_names").await?;
    let told = told.row(0).and_then(|row| row.cell(0));
    let value = String::from_utf8_lossy(told.unwrap_or_default());
    Ok(NameCase::of_variable(&value))
}

/// The database that is named, or else those that a query lists.
async fn databases(
    conn: &mut Conn,
    named: Option<&String>,
    query: String,
) -> Result<Vec<String>, AccountError> {
    if let Some(database) = named {
        return Ok(vec![database.clone()]);
    }
    let answers = ask(conn, &[query]).await?;
    let rows = answers.into_iter().filter_map(Result::ok).flatten();
    Ok(facts::names(rows).collect())
}

impl Server {
    /// True when something is in the way of following the log.
    fn hides_the_log(&self) -> bool {
        let waits = Obstacle::Right(Right::OpenTransactions);
        self.obstacles.iter().any(|obstacle| *obstacle != waits)
    }

    /// True when memory has to wait for the next change of the tables.
    fn lists_no_transactions(&self) -> bool {
        self.obstacles
            .contains(&Obstacle::Right(Right::OpenTransactions))
    }
}
