//! `headwater discover`: with the section that it prints for an app's statements, Headwater serves them.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::app::App;
use super::narrowed::narrowed;
use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, free_addr, headwater, settings_file};
use crate::kit::random::Random;
use crate::kit::servers::{mariadb, on_each_server, on_servers_of_its_own};
use crate::kit::wire_client::{Login, WireClient};

const APP: &str = "shop";

/// A statement of each shape, and the report's name for it. The readers have follows, so no page is empty.
const SHAPES: [(&str, &str); 7] = [
    (
        "statuses whose profile_id is in a list",
        "SELECT * FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) AND deleted_at IS NULL ORDER BY id DESC LIMIT 5",
    ),
    (
        "join of statuses with followers",
        "SELECT s.id, s.caption FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 ORDER BY s.id DESC LIMIT 5",
    ),
    (
        "LEFT JOIN of statuses with followers, or which one author wrote",
        "SELECT DISTINCT s.id FROM statuses s LEFT JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = 1 WHERE f.profile_id IS NOT NULL OR s.profile_id = 1 ORDER BY s.id DESC LIMIT 5",
    ),
    (
        "statuses whose profile_id is IN (SELECT ... FROM followers)",
        "SELECT `statuses`.* FROM `statuses` WHERE `profile_id` IN (SELECT `following_id` FROM `followers` WHERE `profile_id` = 1 AND `accepted` = 1) ORDER BY `id` DESC LIMIT 5 OFFSET 0",
    ),
    (
        "statuses whose profile_id is IN (SELECT ... FROM followers), or which one author wrote",
        "SELECT id FROM statuses WHERE (profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) OR profile_id = 1) AND kind IN ('photo', 'text') ORDER BY id DESC LIMIT 5",
    ),
    (
        "statuses for which EXISTS finds a row of followers",
        "SELECT s.id FROM statuses s WHERE EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.profile_id = 1) AND s.likes >= -1 ORDER BY s.id DESC LIMIT 5",
    ),
    (
        // The joined table's name is a keyword.
        "statuses whose profile_id is in a list",
        "SELECT s.id, p.name FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (1, 2, 3) AND COALESCE(s.likes, 0) >= 0 ORDER BY s.id DESC LIMIT 0, 5",
    ),
];

const REFUSED: &str =
    "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND likes + 1 > 0 ORDER BY id DESC LIMIT 5";
const ASTRAY: &str =
    "SELECT id FROM shop.statuses WHERE profile_id IN (1, 2) ORDER BY id DESC LIMIT 5";
const NO_FEED: &str = "SELECT id FROM statuses WHERE profile_id = 1 ORDER BY id DESC LIMIT 5";

fn fill(client: &mut WireClient) {
    let app = App {
        id: "BIGINT UNSIGNED",
        user: "INT",
        users: 30,
        messages: 3_000,
        follows: 200,
    };
    app.make(client, &mut Random(7));
    client.ok("INSERT IGNORE INTO followers VALUES (DEFAULT, 1, 2, 1), (DEFAULT, 1, 3, 1)");
}

fn app_on(server: &PrivateServer) -> Login {
    WireClient::connect(server.addr()).ok(&format!("CREATE DATABASE {APP}"));
    let login = Login::default().database(APP);
    fill(&mut WireClient::login(server.addr(), &login));
    login
}

pub(super) fn spawn(server: SocketAddr, flags: &[&str]) -> Child {
    headwater(&[])
        .args(["discover", "--upstream", &server.to_string()])
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The report on stdout, the text on stderr, and the exit status.
fn told(output: Output) -> (String, String, i32) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (report, said) = (text(output.stdout), text(output.stderr));
    // The test runner shows this only after a failure.
    eprintln!("{report}{said}");
    (report, said, output.status.code().unwrap())
}

fn discover(server: SocketAddr, flags: &[&str]) -> (String, String, i32) {
    told(spawn(server, flags).wait_with_output().unwrap())
}

/// Waits until discovery listens.
pub(super) fn await_listener(listen: SocketAddr) {
    let deadline = patience();
    while TcpStream::connect(listen).is_err() {
        assert!(Instant::now() < deadline, "nobody listens on {listen}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a discovery by SIGINT, as Ctrl-C sends it: idle sessions end.
pub(super) fn interrupted(child: Child) -> Output {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    child.wait_with_output().unwrap()
}

/// The sections of settings in a report.
pub(super) fn sections(report: &str) -> Vec<String> {
    let mut sections = Vec::new();
    let mut lines = report.lines();
    while lines.any(|line| line.trim() == "[[feed]]") {
        let rest = lines.by_ref().take_while(|line| !line.is_empty());
        let section: Vec<&str> = ["[[feed]]"].into_iter().chain(rest).collect();
        sections.push(section.join("\n"));
    }
    sections
}

#[track_caller]
fn names_each_shape(report: &str, statements: usize) {
    for (shape, _) in SHAPES {
        assert!(
            report.contains(&format!("        {shape}\n")),
            "no {shape:?} in:\n{report}"
        );
    }
    let (served, refused) = report.split_once("would be relayed as they are").unwrap();
    assert!(
        refused.contains("likes + ? > ?") || refused.contains("`likes` + ? > ?"),
        "{report}"
    );
    assert!(refused.contains("why: it has arithmetic"), "{report}");
    assert_eq!(
        served.matches(" on average, ").count(),
        statements,
        "{report}"
    );
    // The report must not disclose values.
    assert!(!report.contains("photo"), "{report}");
}

/// Asserts that `check` accepts this section and that the statements are then narrowed.
#[track_caller]
fn is_served(server: SocketAddr, login: &Login, section: &str) {
    let only_here = format!(
        "[[definition]]\ndatabase = \"{}\"\n",
        login.database.as_deref().unwrap()
    );
    let (_folder, path) = settings_file(&format!("{only_here}{section}"));
    let mut command = headwater(&[]);
    command.args([
        "check",
        "--upstream",
        &server.to_string(),
        "--config",
        &path,
    ]);
    command.args(["--listen", "127.0.0.1:0"]).args(ROOT_SERVICE);
    let (report, _, _) = told(command.output().unwrap());
    assert!(report.contains("Every feed is served."), "{report}");

    let proxy = Proxy::configured(
        server,
        &format!("[feeds]\nnarrow = \"always\"\n{section}"),
        ROOT_SERVICE,
    );
    proxy.wait_for_log(": served");
    let mut client = proxy.login(login);
    for (_, statement) in SHAPES {
        narrowed(&proxy, &mut client, statement);
    }
}

#[test]
fn digests_lead_to_the_section_that_serves_their_statements() {
    let options = |mariadb| match mariadb {
        true => &["--performance-schema=ON"][..],
        false => &[],
    };
    on_servers_of_its_own(options, |server| {
        let login = app_on(server);
        let mut client = WireClient::login(server.addr(), &login);
        for (_, statement) in SHAPES {
            client.query(statement);
            client.query(statement);
        }
        client.query(REFUSED);
        client.query(NO_FEED);
        WireClient::connect(server.addr()).query(ASTRAY);
        let (report, said, status) = discover(server.addr(), ROOT_SERVICE);
        assert_eq!((status, said.as_str()), (0, ""));
        names_each_shape(&report, SHAPES.len());
        assert!(
            report.contains("why: its sessions have no current database"),
            "{report}"
        );
        assert!(report.contains("seen 2 times, "), "{report}");
        assert!(report.contains(" rows read for each row sent"), "{report}");
        let found = sections(&report);
        let [section] = found.as_slice() else {
            panic!("{found:?}");
        };
        is_served(server.addr(), &login, section);

        // The section is now in the settings.
        let (_folder, path) = settings_file(section);
        let with_it = [ROOT_SERVICE, &["--config", &path]].concat();
        let (report, ..) = discover(server.addr(), &with_it);
        assert!(
            report.contains("Feed statuses of the settings, database shop"),
            "{report}"
        );
        assert!(sections(&report).is_empty());

        // The report gives each obstacle with its remedy, and names the missing grants.
        client.ok("ALTER TABLE followers DROP INDEX profile_id");
        let (report, ..) = discover(server.addr(), ROOT_SERVICE);
        assert!(
            report.contains("ALTER TABLE `followers` ADD INDEX (`profile_id`)"),
            "{report}"
        );
        client.ok("CREATE USER reader@'%' IDENTIFIED BY ''");
        let reader = ["--service-user", "reader", "--service-password", ""];
        let (report, said, status) = discover(server.addr(), &reader);
        assert_eq!((status, report.as_str()), (1, ""));
        assert!(
            said.contains("GRANT SELECT ON performance_schema.* TO `reader`@`%`"),
            "{said}"
        );
        client.ok("GRANT SELECT ON performance_schema.* TO reader@'%'");
        let (report, _, status) = discover(server.addr(), &reader);
        assert_eq!(status, 0);
        assert!(
            report.contains("GRANT SELECT ON `shop`.`statuses` TO `reader`@`%`"),
            "{report}"
        );
        assert!(report.contains("In the way of every feed"), "{report}");
    });
}

/// MariaDB does not count statements by default.
#[test]
fn a_server_that_counts_no_statements_is_told_from_one_without_feeds() {
    let (report, said, status) = discover(mariadb().addr(), ROOT_SERVICE);
    assert_eq!((status, report.as_str()), (1, ""));
    assert!(said.contains("performance_schema = ON"), "{said}");
    assert!(said.contains("--listen"), "{said}");
    let (_, said, status) = discover(mariadb().addr(), &[]);
    assert_eq!(status, 1);
    assert!(said.contains("--service-user"), "{said}");
    let (_, said, status) = discover(mariadb().addr(), &["--for", "5"]);
    assert_eq!(status, 2);
    assert!(said.contains("--listen"), "{said}");
}

#[test]
fn what_goes_by_leads_to_the_section_that_serves_it() {
    on_each_server(|server| {
        let database = Database::empty(server, "discover");
        fill(&mut database.connect());
        let listen = free_addr();
        let address = listen.to_string();
        let folder = tempfile::tempdir().unwrap();
        let request = folder.path().join("page.txt");
        let file = ["--request", request.to_str().unwrap()];
        let listening = ["--listen", &address, "--for", "600"];
        let flags = [ROOT_SERVICE, &listening, &file].concat();
        let child = spawn(server.addr(), &flags);
        await_listener(listen);
        let mut client = WireClient::login(listen, &database.login());
        for (_, statement) in SHAPES {
            client.query(statement);
        }
        client.query(REFUSED);
        let statement = client
            .prepare("SELECT id FROM statuses WHERE profile_id IN (?, ?) ORDER BY id DESC LIMIT 5");
        for _ in 0..3 {
            client
                .execute(statement, &[Some("1"), Some("2")], 0)
                .unwrap();
        }
        let (report, said, status) = told(interrupted(child));
        assert_eq!(status, 0);
        assert!(
            said.contains(&format!("relaying on {listen} for 600 s")),
            "{said}"
        );
        assert!(client.command(&[0x0e]).is_err());
        names_each_shape(&report, SHAPES.len() + 1);
        assert!(
            report.contains("seen 3 times, as a prepared statement, "),
            "{report}"
        );
        assert!(report.contains("A request of the app is in "), "{report}");
        let request = std::fs::read_to_string(&request).unwrap();
        for part in ["readers SELECT DISTINCT `", "= {reader}"] {
            assert!(request.contains(part), "no {part:?} in {request}");
        }
        let found = sections(&report);
        let [section] = found.as_slice() else {
            panic!("{found:?}");
        };
        is_served(server.addr(), &database.login(), section);
    });
}

#[test]
fn it_listens_for_so_long_and_finds_nothing_where_nothing_goes_by() {
    let address = free_addr().to_string();
    let flags = [ROOT_SERVICE, &["--listen", &address, "--for", "1"]].concat();
    let (report, _, status) = discover(mariadb().addr(), &flags);
    assert_eq!(status, 0);
    assert!(report.contains("No statement was found"), "{report}");
}
