//! `headwater demo`: a private database server with the classic data set, and Headwater in front.

pub mod accounts;
pub mod dataset;
pub mod load;
pub mod script;
mod show;
mod speed;
mod warmup;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use mysql_async::{Conn, OptsBuilder};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task;

use self::dataset::DatasetSize;
use self::load::{LoadError, LoadProgress};
use crate::feed::{CLASSIC_FEED, SettingsFile};
use crate::private_server::{PrivateServer, PrivateServerError, ServerKind};
use headwater_proxy::session::shared_state::SharedState;
use headwater_server::config::{ConfigError, ServeFlags, ServeSettings, ServiceFlags};
use headwater_server::server::{ProxyServer, ServeError};

/// The demo's database.
pub const DATABASE: &str = "timeline";
/// The preferred port, so that the printed commands are the same each time.
const USUAL_PORT: u16 = 3307;
/// Room for the whole data set, so that the disk does not matter.
const SERVER_OPTIONS: &[&str] = &["--innodb-buffer-pool-size=512M"];

/// Flags of `headwater demo`.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoFlags {
    /// Users of the data set
    #[arg(long, default_value_t = DatasetSize::CLASSIC.users)]
    pub users: u32,
    /// Messages they wrote
    #[arg(long, default_value_t = DatasetSize::CLASSIC.messages)]
    pub messages: u64,
    /// Authors that a user follows, on average
    #[arg(long, default_value_t = DatasetSize::CLASSIC.mean_follows)]
    pub mean_follows: f64,
    /// Another seed makes other rows of the same shape
    #[arg(long, default_value_t = DatasetSize::CLASSIC.seed)]
    pub seed: u64,
    /// Where Headwater listens [default: 127.0.0.1:3307, or any free port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
}

impl DemoFlags {
    fn size(&self) -> DatasetSize {
        DatasetSize {
            users: self.users.max(2),
            messages: self.messages,
            mean_follows: self.mean_follows,
            seed: self.seed,
        }
    }
}

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The database server did not start.
    #[error(transparent)]
    PrivateServer(#[from] PrivateServerError),
    /// The data set could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A connection to the server or through Headwater failed.
    #[error("could not {doing}")]
    Client {
        /// The failed action, as an infinitive.
        doing: &'static str,
        /// The cause.
        source: mysql_async::Error,
    },
    /// Headwater's settings are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Headwater could not open its port.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Signals or a thread are not available.
    #[error("could not {doing}")]
    System {
        /// The failed action, as an infinitive.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl DemoError {
    fn client(doing: &'static str) -> impl FnOnce(mysql_async::Error) -> DemoError {
        move |source| DemoError::Client { doing, source }
    }
}

/// Shows Headwater at work, then keeps it running until SIGINT or SIGTERM, and removes everything afterwards.
///
/// # Errors
/// What could not be obtained or started, with a remedy if there is one.
pub async fn run(flags: DemoFlags) -> Result<(), DemoError> {
    let signals = |source| DemoError::System {
        doing: "wait for signals",
        source,
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(signals)?;
    tokio::select! {
        // Ends with an error only; dropping the future stops the server.
        result = show_and_serve(flags) => result,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }?;
    println!("\nStopped; nothing is left running.");
    Ok(())
}

async fn show_and_serve(flags: DemoFlags) -> Result<(), DemoError> {
    let server = task::spawn_blocking(|| PrivateServer::start(ServerKind::Mariadb, SERVER_OPTIONS))
        .await
        .map_err(|error| DemoError::System {
            doing: "wait for the private server",
            source: error.into(),
        })??;
    println!("MariaDB {} on {}, private", server.version(), server.addr());

    load_with_progress(server.addr(), flags.size()).await?;
    let start = Instant::now();
    let (proxy, shared) = start_headwater(server.addr(), flags.listen.clone()).await?;
    println!("Headwater on {proxy}, in front of it\n");

    let last = show::print_first_timeline(proxy).await?;
    let users = flags.size().users;
    warmup::wait_until_warm(proxy, &shared, users, start).await?;
    speed::compare(server.addr(), proxy, users).await?;
    show::print_next_steps(server.addr(), proxy, last);
    std::future::pending().await
}

async fn load_with_progress(addr: SocketAddr, size: DatasetSize) -> Result<(), DemoError> {
    let mut conn = connect(addr, "root", None).await?;
    let bar = ProgressBar::new(0);
    let template = "{msg} {wide_bar} {human_pos} of {human_len} rows, {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message("loading");
    let report = |progress: LoadProgress| {
        bar.set_length(progress.total);
        bar.set_position(progress.rows);
    };
    load::load(&mut conn, DATABASE, size, report).await?;
    bar.finish_and_clear();
    println!(
        "{} users, {} follows ({:.1} a user), {} messages; loaded in {:.0} s",
        size.users,
        size.follows(),
        size.follows() as f64 / f64::from(size.users),
        size.messages,
        bar.elapsed().as_secs_f64()
    );
    accounts::create(&mut conn, ServerKind::Mariadb, DATABASE).await?;
    conn.disconnect()
        .await
        .map_err(DemoError::client("close a connection"))
}

/// Starts Headwater in a task of its own, which ends with the program.
async fn start_headwater(
    upstream: SocketAddr,
    listen: Option<String>,
) -> Result<(SocketAddr, Arc<SharedState>), DemoError> {
    let file = SettingsFile::new(CLASSIC_FEED).map_err(|(_, source)| DemoError::System {
        doing: "write a settings file",
        source,
    })?;
    let settings = ServeSettings::load(&ServeFlags {
        config: Some(file.path().to_owned()),
        listen: Some(listen.unwrap_or_else(|| usual_or_free().to_string())),
        upstream: vec![upstream.to_string()],
        service: ServiceFlags {
            service_user: Some(accounts::SERVICE.to_owned()),
            service_password: Some(String::new()),
            ..ServiceFlags::default()
        },
        preload: true,
        ..ServeFlags::default()
    })?;
    let server = ProxyServer::bind(&settings).await?;
    let addr = server.local_addr().map_err(|source| DemoError::System {
        doing: "learn Headwater's port",
        source,
    })?;
    server.announce().await;
    let shared = server.shared();
    task::spawn(server.run(std::future::pending()));
    Ok((addr, shared))
}

/// Opens a connection over TCP, as Headwater's clients do.
async fn connect(
    addr: SocketAddr,
    user: &'static str,
    database: Option<&'static str>,
) -> Result<Conn, DemoError> {
    let options = OptsBuilder::default()
        .ip_or_hostname(addr.ip().to_string())
        .tcp_port(addr.port())
        .prefer_socket(false)
        .user(Some(user))
        .db_name(database);
    Conn::new(options)
        .await
        .map_err(DemoError::client("connect"))
}

fn usual_or_free() -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT));
    match std::net::TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}
