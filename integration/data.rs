//! The data set, the accounts and `headwater demo`: a new user's first steps.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::Stdio;

use headwater_lab::demo::dataset::DatasetSize;
use headwater_lab::demo::{accounts, load};
use mysql_async::{Conn, OptsBuilder};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::kit::proxy::headwater;
use crate::kit::servers::{Server, leaves_nothing, on_each_server};
use crate::kit::wire_client::{Login, WireClient};

const TAIL: &str = "SELECT message.id, user_id, body FROM message \
    INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";

#[test]
fn a_loaded_data_set_answers_an_app_and_shows_its_procedures_to_the_service_account() {
    on_each_server(|server| {
        let size = DatasetSize {
            users: 300,
            messages: 20_000,
            mean_follows: 30.0,
            seed: 1,
        };
        load_with_accounts(server, "hw_data", size);

        let login = Login::default().database("hw_data").user(accounts::APP);
        let mut app = WireClient::login(server.addr(), &login);
        assert_eq!(app.column("SELECT COUNT(*) FROM follower"), ["9000"]);
        assert_eq!(app.column("SELECT MAX(id) FROM message"), ["20000"]);
        app.ok("CALL fetch_timeline_ids(17)");
        let page = app.column(TAIL);
        let newest = "SELECT message.id FROM message JOIN follower \
            ON follower.follower_id = message.user_id WHERE follower.user_id = 17 \
            ORDER BY message.id DESC LIMIT 20";
        assert_eq!(page, app.column(newest));
        assert_eq!(page.len(), 20);

        let login = Login::default().user(accounts::SERVICE);
        let mut service = WireClient::login(server.addr(), &login);
        for procedure in [
            "fetch_timeline_ids",
            "fetch_timeline_ids2",
            "build_max_ids_of_followers",
        ] {
            let shown = service.rows(&format!("SHOW CREATE PROCEDURE hw_data.{procedure}"));
            let body = shown[0][2].as_deref().unwrap_or_default();
            assert!(body.contains("BEGIN"), "{procedure}: {body:?}");
        }
    });
}

#[test]
fn keys_that_are_built_behind_the_rows_are_those_of_the_schema() {
    on_each_server(|server| {
        let size = DatasetSize {
            users: 50,
            messages: 500,
            mean_follows: 5.0,
            seed: 1,
        };
        for (database, behind) in [("hw_keys", false), ("hw_keys_behind", true)] {
            on_connection(server, async |conn| {
                load::create(conn, database).await.unwrap();
                if behind {
                    load::drop_keys(conn).await.unwrap();
                }
                load::fill(conn, size, |_| {}).await.unwrap();
                if behind {
                    load::build_keys(conn).await.unwrap();
                }
            });
        }
        let mut root = WireClient::login(server.addr(), &Login::default());
        for table in ["follower", "message"] {
            let shown = ["hw_keys", "hw_keys_behind"]
                .map(|database| root.rows(&format!("SHOW CREATE TABLE {database}.{table}")));
            assert_eq!(shown[0], shown[1]);
        }
    });
}

#[test]
fn the_demo_shows_a_timeline_stays_until_interrupted_and_leaves_nothing() {
    let mut demo = headwater(&[])
        .args([
            "demo",
            "--users=200",
            "--messages=5000",
            "--mean-follows=20",
        ])
        .args(["--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(demo.stdout.take().unwrap());
    let mut shown = String::new();
    while !shown.contains("Ctrl-C stops") {
        let read = output.read_line(&mut shown).unwrap();
        assert!(read > 0, "it ended by itself:\n{shown}");
    }
    assert!(shown.contains("4000 follows"), "{shown}");

    // Follows the printed instructions.
    let proxy: SocketAddr = after(&shown, "Headwater on ")
        .trim_end_matches(',')
        .parse()
        .unwrap();
    let call = shown
        .lines()
        .find_map(|line| line.trim().strip_suffix(';'))
        .unwrap();
    let login = Login::default().database("timeline").user(accounts::APP);
    let mut client = WireClient::login(proxy, &login);
    client.ok(call);
    assert_eq!(client.column(TAIL).len(), 20);

    let pid = demo.id();
    signal::kill(Pid::from_raw(pid as i32), Signal::SIGINT).unwrap();
    let status = demo.wait().unwrap();
    output.read_to_string(&mut shown).unwrap();
    assert!(status.success(), "{status}:\n{shown}");
    leaves_nothing(pid);
}

fn load_with_accounts(server: &Server, database: &str, size: DatasetSize) {
    let kind = server.kind();
    on_connection(server, async |conn| {
        let mut rows = 0;
        load::load(conn, database, size, |progress| rows = progress.rows)
            .await
            .unwrap();
        assert_eq!(rows, size.follows() + size.messages);
        accounts::create(conn, kind, database).await.unwrap();
    });
}

/// Runs statements as `root`.
fn on_connection(server: &Server, does: impl AsyncFnOnce(&mut Conn)) {
    let addr = server.addr();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = OptsBuilder::default()
            .ip_or_hostname(addr.ip().to_string())
            .tcp_port(addr.port())
            .prefer_socket(false)
            .user(Some("root"));
        let mut conn = Conn::new(options).await.unwrap();
        does(&mut conn).await;
        conn.disconnect().await.unwrap();
    });
}

/// The first word after `mark`.
fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    let (_, rest) = text
        .split_once(mark)
        .unwrap_or_else(|| panic!("no {mark:?} in:\n{text}"));
    rest.split_whitespace().next().unwrap_or_default()
}
