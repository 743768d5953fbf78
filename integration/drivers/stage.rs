//! The test environment: a server of each product with TLS, which all drivers share, and a database for each driver.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::program;
use crate::kit::certificates::{Authority, Identity, trust_anyone};
use crate::kit::database::{fill, run};
use crate::kit::servers;
use crate::kit::wire_client::{Answer, Login, WireClient};

const PASSWORD: &str = "geheim";
const STATE: &str = include_str!("state.sql");

/// A server whose certificate is signed by the same CA as Headwater's.
pub(super) struct Stage {
    server: PrivateServer,
    authority: Authority,
    pub(super) own: Identity,
}

impl Stage {
    /// The stage that a test uses at this moment, else a new one, which stops with the last test on it. `None`: the machine has no such
    /// server.
    pub(super) fn shared(kind: ServerKind) -> Option<Arc<Stage>> {
        static MARIADB: Mutex<Weak<Stage>> = Mutex::new(Weak::new());
        static MYSQL: Mutex<Weak<Stage>> = Mutex::new(Weak::new());
        let shared = match kind {
            ServerKind::Mariadb => &MARIADB,
            ServerKind::Mysql => {
                servers::mysql()?;
                &MYSQL
            }
        };
        // A test that failed while it held the lock left the value valid.
        let mut shared = shared
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let stage = shared
            .upgrade()
            .unwrap_or_else(|| Arc::new(Stage::new(kind)));
        *shared = Arc::downgrade(&stage);
        Some(stage)
    }

    fn new(kind: ServerKind) -> Stage {
        let authority = Authority::new();
        let (theirs, own) = (authority.sign("server"), authority.sign("headwater"));
        let options = authority.server_options(&theirs);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let server = PrivateServer::start(kind, &options).unwrap();
        Stage {
            server,
            authority,
            own,
        }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Creates a database with timelines for one driver.
    #[track_caller]
    pub(super) fn scene<'a>(&'a self, driver: &'a str) -> Scene<'a> {
        let name = format!("hw_{driver}");
        let mut root = WireClient::connect(self.addr());
        root.ok(&format!("DROP DATABASE IF EXISTS {name}"));
        root.ok(&format!("CREATE DATABASE {name}"));
        root.ok(&format!("USE {name}"));
        let (state, _) = parts();
        fill(&mut root);
        run(&mut root, state);
        // Query plans, and thus column flags, must not depend on when the server updates its statistics.
        let analyzed = root.query("ANALYZE TABLE message, follower");
        assert!(matches!(analyzed[..], [Answer::Rows(_)]), "{analyzed:?}");
        Scene {
            stage: self,
            driver,
            name,
        }
    }
}

/// The script of a database's state, and the part that restores it.
fn parts() -> (&'static str, &'static str) {
    STATE.split_once("-- again\n").unwrap()
}

/// One driver's database and account, both with the same name.
pub(super) struct Scene<'a> {
    stage: &'a Stage,
    driver: &'a str,
    name: String,
}

impl Scene<'_> {
    /// Restores the rows and recreates the account, with its password in the server's cache only if `remembered`.
    #[track_caller]
    pub(super) fn begin(&self, remembered: bool) {
        let Scene { stage, name, .. } = self;
        let login = Login::default().database(name);
        let mut root = WireClient::login(stage.addr(), &login);
        let (_, again) = parts();
        run(&mut root, again);
        root.ok(&format!("DROP USER IF EXISTS {name}@'%'"));
        root.ok(&format!(
            "CREATE USER {name}@'%' IDENTIFIED BY '{PASSWORD}'"
        ));
        root.ok(&format!("GRANT ALL ON {name}.* TO {name}@'%'"));
        if remembered {
            let login = login.user(name).password(PASSWORD).tls(&trust_anyone());
            WireClient::login(stage.addr(), &login).ok("DO 1");
        }
    }

    /// What the driver's program prints when it connects to `addr`; on failure, how it failed.
    pub(super) fn tell(&self, addr: SocketAddr, tls: bool) -> Result<String, String> {
        let ca = self.stage.authority.path();
        program::run(&[
            self.driver,
            &addr.ip().to_string(),
            &addr.port().to_string(),
            &self.name,
            PASSWORD,
            &self.name,
            if tls { "1" } else { "0" },
            ca.to_str().unwrap(),
        ])
    }
}
