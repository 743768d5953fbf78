//! The servers of the tests: each starts once, on first use, and all tests share it.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, PrivateServerError, ServerKind, data_homes};

use super::wire_client::{Login, ServerError, WireClient};
use crate::kit::patience;

/// The maximum packet is the largest possible, so that tests of big packets need no private server.
const OPTIONS: &[&str] = &[
    "--max-allowed-packet=1G",
    "--innodb-buffer-pool-size=256M",
    // A MariaDB thread that is cached for the next connection continues its statement counts.
    "--thread-cache-size=0",
    "--max-connections=1500",
    // On a busy machine the server would otherwise mark slow statements in the status flags.
    "--long-query-time=3600",
];

/// One shared server. Each test uses its own databases (see [`super::database`]), and starts a private server ([`PrivateServer::start`]) to
/// stop it or to change its global settings.
#[derive(Debug)]
pub(crate) struct Server(PrivateServer);

impl Server {
    pub(crate) fn kind(&self) -> ServerKind {
        self.0.kind()
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.kind() == ServerKind::Mariadb
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.0.addr()
    }

    /// The product's own `mysql` client, which connects as `root` to `addr`.
    pub(crate) fn stock_client(&self, addr: SocketAddr) -> Command {
        let mut command = self.0.client();
        command
            .args(["--host=127.0.0.1", "--user=root", "--protocol=tcp"])
            .arg(format!("--port={}", addr.port()))
            .stdin(Stdio::null());
        command
    }

    /// The product's own client, without an address to connect to.
    pub(crate) fn client(&self) -> Command {
        self.0.client()
    }

    /// A new `root` connection, straight to the server.
    #[track_caller]
    pub(crate) fn connect(&self) -> WireClient {
        WireClient::connect(self.addr())
    }
}

/// MariaDB from the distribution.
#[track_caller]
pub(crate) fn mariadb() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(
        || match PrivateServer::start(ServerKind::Mariadb, OPTIONS) {
            Ok(server) => Server(server),
            Err(error) => panic!("{error}"),
        },
    )
}

/// MySQL 9.7; `None` on a machine that has not got it. On CI (`CI=true`) that is a failure.
#[track_caller]
pub(crate) fn mysql() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER
        .get_or_init(|| if_here(PrivateServer::start(ServerKind::Mysql, OPTIONS)).map(Server))
        .as_ref()
}

/// MariaDB 11.8; `None` as for [`mysql`].
#[track_caller]
fn mariadb11() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER
        .get_or_init(|| if_here(PrivateServer::start_mariadb11(OPTIONS)).map(Server))
        .as_ref()
}

/// `None` on a machine that has not got the programs. On CI (`CI=true`) that is a failure.
#[track_caller]
pub(crate) fn if_here<T>(started: Result<T, PrivateServerError>) -> Option<T> {
    match started {
        Ok(started) => Some(started),
        Err(error @ PrivateServerError::Missing { .. }) => {
            let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!on_ci, "{error}");
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A second MariaDB, for tests that follow the log and rely on memory: no test changes formats or rotates logs on it.
#[track_caller]
fn quiet_mariadb() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(
        || match PrivateServer::start(ServerKind::Mariadb, OPTIONS) {
            Ok(server) => Server(server),
            Err(error) => panic!("{error}"),
        },
    )
}

/// A second MySQL 9.7, for the same tests.
fn quiet_mysql() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    mysql()?;
    SERVER
        .get_or_init(|| match PrivateServer::start(ServerKind::Mysql, OPTIONS) {
            Ok(server) => Some(Server(server)),
            Err(error) => panic!("{error}"),
        })
        .as_ref()
}

/// Checks that an ended process has removed the folders of the servers that it started.
#[track_caller]
pub(crate) fn leaves_nothing(pid: u32) {
    let left: Vec<_> = data_homes()
        .into_iter()
        .filter_map(|home| std::fs::read_dir(home).ok())
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("headwater-") && name.contains(&format!("-{pid}-")))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Runs a test on both quiet servers, one after the other.
#[track_caller]
pub(crate) fn on_each_quiet_server(story: impl Fn(&'static Server)) {
    on_each([Some(quiet_mariadb()), quiet_mysql()], story);
}

/// Runs a test on two more servers, one after the other, and no other test meanwhile. So the log contains no tables or functions of other
/// tests.
#[track_caller]
pub(crate) fn on_each_server_alone(story: impl Fn(&'static Server)) {
    static TOLD: Mutex<()> = Mutex::new(());
    static SERVERS: OnceLock<[Option<Server>; 2]> = OnceLock::new();
    let _told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = SERVERS.get_or_init(|| {
        [ServerKind::Mariadb, ServerKind::Mysql]
            .map(|kind| if_here(PrivateServer::start(kind, OPTIONS)).map(Server))
    });
    on_each(servers.each_ref().map(Option::as_ref), story);
}

/// Runs a test on a private server of each product. The options depend on whether it is MariaDB.
#[track_caller]
pub(crate) fn on_servers_of_its_own<'a>(
    options: impl Fn(bool) -> &'a [&'a str],
    story: impl Fn(&mut PrivateServer),
) {
    for kind in [ServerKind::Mariadb, ServerKind::Mysql] {
        if kind == ServerKind::Mysql && mysql().is_none() {
            continue;
        }
        let options = options(kind == ServerKind::Mariadb);
        let mut server = match PrivateServer::start(kind, options) {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        };
        eprintln!("on {} {} with {options:?}", kind.name(), server.version());
        story(&mut server);
    }
}

/// Waits until the server runs a statement of this session that begins with this text.
#[track_caller]
pub(crate) fn wait_until_busy(addr: SocketAddr, session: u32, with: &str) {
    let mut root = WireClient::connect(addr);
    let deadline = patience();
    loop {
        let all = root.rows("SHOW PROCESSLIST");
        let is_busy = all.iter().any(|row| {
            let info = row[7].as_deref().unwrap_or_default();
            row[0].as_deref() == Some(&session.to_string()) && info.starts_with(with)
        });
        if is_busy {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{session} is not at {with}: {all:?}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// Takes all connection slots of a server. Returns the connections, and the error that the next client gets.
///
/// Older connections may still hold slots at first and free them later. So the refusal counts only once no others are connected.
#[track_caller]
pub(crate) fn full(addr: SocketAddr) -> (Vec<WireClient>, ServerError) {
    let deadline = patience();
    let mut guests: Vec<WireClient> = Vec::new();
    let mut alone = false;
    loop {
        match WireClient::try_login(addr, &Login::default()).unwrap() {
            Ok(guest) => {
                guests.push(guest);
                assert!(guests.len() < 20, "no limit in sight");
            }
            Err(refused) if alone => return (guests, refused),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
        let connected = guests
            .first_mut()
            .map(|guest| guest.rows("SHOW GLOBAL STATUS LIKE 'Threads_connected'"));
        alone = connected
            .as_ref()
            .is_some_and(|rows| rows[0][1] == Some(guests.len().to_string()));
        assert!(
            Instant::now() < deadline,
            "somebody else stays: {connected:?}"
        );
    }
}

/// Runs a test on both servers, one after the other.
#[track_caller]
pub(crate) fn on_each_server(story: impl Fn(&'static Server)) {
    on_each([Some(mariadb()), mysql()], story);
}

/// Runs a test on both servers and on MariaDB 11.8, which sends more at a login.
#[track_caller]
pub(crate) fn on_each_release(story: impl Fn(&'static Server)) {
    on_each([Some(mariadb()), mariadb11(), mysql()], story);
}

#[track_caller]
fn on_each<const N: usize>(servers: [Option<&'static Server>; N], story: impl Fn(&'static Server)) {
    for server in servers.into_iter().flatten() {
        // Shown on failure only: which server it was.
        eprintln!("on {} {}", server.0.kind().name(), server.0.version());
        story(server);
    }
}
