//! The stage of the session tests: two databases of the same content on one server, and a Headwater
//! process before it.

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{Server, on_each_server};
use crate::kit::timeline::{Timeline, insert};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{Login, WireClient};

pub(crate) const TAIL: &str = "SELECT message.id,user_id,body FROM message \
     INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";

/// The direct session uses the first database, the proxied one the second.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) server: &'static Server,
    pub(crate) databases: [Database; 2],
    pub(crate) proxy: Proxy,
    pub(crate) timeline: Timeline,
    pub(crate) service: bool,
    /// Connected directly to the server, for statements outside the two sessions.
    pub(crate) root: WireClient,
}

/// Runs the test on both servers, with and without a service account. MySQL warns about the wording of 2008
/// whenever it parses it, which is no part of these tests: there the procedures omit it.
#[track_caller]
pub(crate) fn on_each_stage(story: impl Fn(&mut Stage)) {
    on_each_stage_with(&[], story);
}

/// As [`on_each_stage`], with further flags of `serve`.
#[track_caller]
pub(crate) fn on_each_stage_with(flags: &[&str], story: impl Fn(&mut Stage)) {
    on_each_server(|server| {
        for service in [true, false] {
            eprintln!("with a service account: {service}");
            let timeline = if service && server.is_mariadb() {
                Timeline::CLASSIC
            } else {
                Timeline::SILENT
            };
            let databases = [(); 2].map(|()| small(server, &timeline));
            let proxy = start(server, service, flags);
            let root = server.connect();
            story(&mut Stage {
                server,
                databases,
                proxy,
                timeline,
                service,
                root,
            });
        }
    });
}

/// Compares what a served call leaves with what the server's call leaves: by the follow-up SELECT, and from the table.
#[track_caller]
pub(crate) fn look(twin: &mut Twin) {
    twin.run(TAIL);
    twin.run("SELECT COUNT(*),SUM(id) FROM fetch_timeline_tt");
}

fn start(server: &Server, service: bool, flags: &[&str]) -> Proxy {
    let mut all = flags.to_vec();
    if service {
        all.extend(ROOT_SERVICE);
    }
    Proxy::start(server.addr(), &all)
}

/// 240 messages of 12 authors. Reader 1 follows ten of them, itself included, 2 follows two, 3 none;
/// author 11 wrote once and 12 never.
#[track_caller]
fn small(server: &'static Server, timeline: &Timeline) -> Database {
    let database = Database::padded(server, "stage");
    let mut client = database.connect();
    timeline.create(&mut client);
    client.ok("CREATE TABLE note (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, body varchar(99))");
    let mut follows: Vec<(u32, u32)> = [1, 2, 4, 5, 6, 7, 8, 9, 11, 12]
        .map(|author| (1, author))
        .into();
    follows.extend([(2, 1), (2, 5), (4, 11), (5, 12)]);
    insert(&mut client, "follower", &follows, |(reader, author)| {
        format!("({reader},{author})")
    });
    let mut messages: Vec<(u32, u32)> = (1..240).map(|id| (id * 2, id * id % 10 + 1)).collect();
    messages.push((480, 11));
    insert(&mut client, "message", &messages, |(id, author)| {
        format!("({id},{author},'message {id}')")
    });
    client.query("ANALYZE TABLE message, follower");
    database
}

impl Stage {
    /// Opens two new sessions of `root`.
    #[track_caller]
    pub(crate) fn twin(&self) -> Twin {
        self.twin_of(&Login::default())
    }

    /// Opens two new sessions of an account.
    #[track_caller]
    pub(crate) fn twin_of(&self, login: &Login) -> Twin {
        let names = [self.databases[0].name(), self.databases[1].name()];
        let twin = Twin::apart(self.server, &self.proxy, login, names);
        if self.timeline.parse_warns() {
            twin
        } else {
            twin.parse_is_silent()
        }
    }

    /// Runs a statement as `root` in both databases, directly on the server; `{db}` is the database's name.
    #[track_caller]
    pub(crate) fn aside(&mut self, sql: &str) {
        for database in &self.databases {
            self.root.ok(&sql.replace("{db}", database.name()));
        }
    }

    /// Creates an account with `privileges` in both databases.
    #[track_caller]
    pub(crate) fn account(&mut self, privileges: &str) -> Login {
        let login = self.databases[0].account(privileges, "");
        let other = self.databases[1].name();
        self.root.ok(&format!(
            "GRANT {privileges} ON {other}.* TO {}@'%'",
            login.user
        ));
        login
    }

    /// Asserts how many calls have been served since the stage was set up.
    #[track_caller]
    pub(crate) fn owned(&self, calls: u64) {
        let counts = self.proxy.counts();
        assert_eq!(
            counts.of("calls_owned"),
            calls,
            "{counts:?}\n{}",
            self.proxy.log()
        );
    }
}
