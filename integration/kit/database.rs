//! A database for one test, and accounts to use it with.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use headwater_lab::demo::{load, script};

use super::servers::Server;
use super::wire_client::{Login, WireClient};

/// The settings file's section that declares the classic tables as a feed.
pub(crate) const HOME_FEED: &str = "[[feed]]
name = \"home\"
[feed.message]
table = \"message\"
author = \"user_id\"
[feed.follow]
table = \"follower\"
reader = \"user_id\"
author = \"follower_id\"
";

/// Makes a database with the classic tables and procedures on a private server.
#[track_caller]
pub(crate) fn classic_on(server: SocketAddr, database: &str) -> Login {
    WireClient::connect(server).ok(&format!("CREATE DATABASE {database}"));
    let login = Login::default().database(database);
    fill(&mut WireClient::login(server, &login));
    login
}

/// Makes the classic tables and procedures in the current database.
#[track_caller]
pub(crate) fn fill(root: &mut WireClient) {
    for text in [load::SCHEMA, load::PROCEDURES] {
        run(root, text);
    }
}

/// Adds rows to the classic tables: reader 1 follows author 2, who wrote one message, number 10.
#[track_caller]
pub(crate) fn one_message(root: &mut WireClient) {
    root.ok("INSERT INTO follower VALUES (1, 2)");
    root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten')");
}

/// Runs the statements of a script.
#[track_caller]
pub(crate) fn run(root: &mut WireClient, text: &str) {
    for statement in script::statements(text) {
        root.ok(&statement);
    }
}

/// A database that drop removes.
#[derive(Debug)]
pub(crate) struct Database {
    server: &'static Server,
    name: String,
}

impl Database {
    /// Makes an empty database. `story` makes the name readable: `hw_<story>_<number>`.
    #[track_caller]
    pub(crate) fn empty(server: &'static Server, story: &str) -> Database {
        Database::named(server, unique(&format!("hw_{story}")))
    }

    /// [`Database::empty`] with a name of fixed length.
    #[track_caller]
    pub(crate) fn padded(server: &'static Server, story: &str) -> Database {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Database::named(server, format!("hw_{story}_{number:06}"))
    }

    #[track_caller]
    fn named(server: &'static Server, name: String) -> Database {
        let mut root = server.connect();
        root.ok(&format!("DROP DATABASE IF EXISTS {name}"));
        root.ok(&format!("CREATE DATABASE {name}"));
        Database { server, name }
    }

    /// Makes a database with the classic tables and procedures, and no rows.
    #[track_caller]
    pub(crate) fn classic(server: &'static Server, story: &str) -> Database {
        let database = Database::empty(server, story);
        fill(&mut database.connect());
        database
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn server(&self) -> &'static Server {
        self.server
    }

    /// Connects `root` straight to the server, with this as its current database.
    #[track_caller]
    pub(crate) fn connect(&self) -> WireClient {
        WireClient::login(self.server.addr(), &self.login())
    }

    /// The login of `root` with this database, for a connection through a proxy.
    pub(crate) fn login(&self) -> Login {
        Login::default().database(&self.name)
    }

    /// Makes an account with `password` (which may be empty) and these `privileges` (`EXECUTE, SELECT`) in this database only. Returns its
    /// login.
    #[track_caller]
    pub(crate) fn account(&self, privileges: &str, password: &str) -> Login {
        let user = unique("hw_user");
        let mut root = self.server.connect();
        root.ok(&format!("DROP USER IF EXISTS {user}@'%'"));
        root.ok(&format!(
            "CREATE USER {user}@'%' IDENTIFIED BY '{password}'"
        ));
        root.ok(&format!(
            "GRANT {privileges} ON {}.* TO {user}@'%'",
            self.name
        ));
        self.login().user(&user).password(password)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Not after a failure: a second panic would hide the first.
        if !std::thread::panicking() {
            self.server
                .connect()
                .ok(&format!("DROP DATABASE {}", self.name));
        }
    }
}

static NEXT: AtomicU32 = AtomicU32::new(0);

fn unique(stem: &str) -> String {
    format!("{stem}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
