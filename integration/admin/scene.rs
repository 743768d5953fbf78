//! A Headwater with data to show: calls served from memory, and a reply that differed from the procedure's.

use serde_json::Value;

use super::http::Admin;
use crate::feeds::narrowed::narrowed;
use crate::kit::database::{Database, HOME_FEED, one_message};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::Server;
use crate::kit::wire_client::WireClient;
use crate::memory::{call_until_it_differs, warm};

/// A name that would execute if it were rendered as HTML.
pub(super) const NAME: &str = "<img src=x onerror=alert(1)>";

pub(super) const STATEMENT: &str =
    "SELECT id, body FROM message WHERE user_id IN (1, 2) ORDER BY id DESC LIMIT 3";
pub(super) struct Scene {
    pub(super) proxy: Proxy,
    pub(super) admin: Admin,
    pub(super) database: Database,
    pub(super) root: WireClient,
    pub(super) client: WireClient,
}

impl Scene {
    /// Reader 1 follows author 2 and has been served from memory.
    #[track_caller]
    pub(super) fn of(server: &'static Server, flags: &[&str]) -> Scene {
        Scene::with(server, flags, "")
    }

    /// Also has a feed, one of whose statements has been run.
    #[track_caller]
    pub(super) fn with_a_feed(server: &'static Server, flags: &[&str]) -> Scene {
        let mut scene = Scene::with(server, flags, &HOME_FEED.replace("home", "<b>home</b>"));
        narrowed(&scene.proxy, &mut scene.client, STATEMENT);
        scene
    }

    #[track_caller]
    fn with(server: &'static Server, flags: &[&str], feed: &str) -> Scene {
        let database = Database::classic(server, "page");
        let mut root = database.connect();
        one_message(&mut root);
        // On a busy machine freshness proofs are late, so the waits are long.
        let waits = "[freshness]\nwait_ms = 60000\n[index]\nwait_ms = 60000\n";
        let settings = format!("{waits}[[definition]]\nname = \"{NAME}\"\n{feed}");
        let flags = [ROOT_SERVICE, flags].concat();
        let (proxy, admin) = Admin::beside(server.addr(), &settings, &flags);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        Scene {
            proxy,
            admin,
            database,
            root,
            client,
        }
    }

    /// An unlogged change makes memory wrong, and the shadow comparison detects it.
    #[track_caller]
    pub(super) fn differ(&mut self) {
        self.root.ok("SET sql_log_bin = 0");
        self.root
            .ok("INSERT INTO message (id, user_id, body) VALUES (20, 2, 'unseen')");
        self.root.ok("SET sql_log_bin = 1");
        call_until_it_differs(&self.proxy, &mut self.client, "CALL fetch_timeline_ids(1)");
    }

    /// The API path of a trial for a reader.
    pub(super) fn trial(&self, reader: &str) -> String {
        let name = "%3Cimg+src%3Dx+onerror%3Dalert(1)%3E";
        let database = self.database.name();
        format!("/api/try?definition={name}&database={database}&reader={reader}")
    }
}

/// The JSON that an API path returns.
#[track_caller]
pub(super) fn told(admin: Admin, path: &str) -> Value {
    let answer = admin.get(path);
    assert!(
        answer.head.contains("application/json"),
        "{path}: {answer:?}"
    );
    serde_json::from_str(&answer.body).unwrap()
}
