//! One process takes over from another one.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use headwater_lab::private_server::PrivateServer;

use crate::kit::database::{Database, classic_on};
use crate::kit::proxy::{Proxy, ROOT_SERVICE, free_addr, headwater, settings_file, started_by};
use crate::kit::servers::{mariadb, on_each_server, on_servers_of_its_own};
use crate::kit::wire_client::{COM_PING, COM_RESET_CONNECTION, Login, WireClient};

const TAKEOVER: &[&str] = &["--takeover"];

fn in_folder(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// The server's greeting comes through the Unix socket.
#[track_caller]
fn greets(socket: &str) {
    let mut greeting = [0; 5];
    let mut local = UnixStream::connect(socket).unwrap();
    local.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting[4], 10, "the version of the protocol");
}

/// Waits until the session has ended, without a command that it would answer.
#[track_caller]
fn ends(client: &mut WireClient) {
    let mut rest = Vec::new();
    let end = client.stream.tcp().try_clone().unwrap();
    end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = (&end).read_to_end(&mut rest);
    assert!(client.command(&[COM_PING]).is_err(), "it goes on");
}

#[test]
fn sessions_with_something_of_their_own_go_on_and_new_clients_come_to_the_next_process() {
    on_each_server(|server| {
        let database = Database::empty(server, "takeover");
        database.connect().ok("CREATE TABLE t (id int PRIMARY KEY)");
        let folder = tempfile::tempdir().unwrap();
        let [control, socket] =
            ["takeover.sock", "headwater.sock"].map(|name| in_folder(&folder, name));
        let admin = free_addr();
        let flags = [
            "--takeover-socket",
            &control,
            "--socket",
            &socket,
            "--admin-listen",
            &admin.to_string(),
        ];
        let first = Proxy::start(server.addr(), &flags);
        let login = database.login();
        let [mut idle, mut writer, mut setter, mut preparer, mut holder] =
            std::array::from_fn(|_| first.login(&login));
        idle.ok("DO 1");
        writer.ok("BEGIN");
        writer.ok("INSERT INTO t VALUES (1)");
        setter.ok("SET @a = 7");
        let statement = preparer.prepare("SELECT 8");
        holder.rows("SELECT GET_LOCK('takeover', 0)");
        let second = first.beside(TAKEOVER);
        second.wait_for_log("taken over from process");
        first.wait_for_log(&format!("process {} has taken over", second.pid()));
        ends(&mut idle);
        // Longer than the time after which a session is quiet.
        std::thread::sleep(Duration::from_millis(1_500));
        writer.ok("INSERT INTO t VALUES (2)");
        writer.ok("COMMIT");
        assert_eq!(setter.column("SELECT @a"), ["7"]);
        assert!(preparer.execute(statement, &[], 0).is_ok());
        let free = "SELECT IS_FREE_LOCK('takeover')";
        assert_eq!(holder.column(free), ["0"]);
        for client in [&mut setter, &mut preparer, &mut holder] {
            client.command(&[COM_RESET_CONNECTION]).unwrap();
            ends(client);
        }
        ends(&mut writer);
        let ended = first.wait();
        assert!(ended.status.success(), "{}", ended.log);
        assert!(!ended.log.contains("cut off"), "{}", ended.log);
        assert_eq!(database.connect().column("SELECT COUNT(*) FROM t"), ["2"]);
        // A third process takes over, and everything still works.
        let third = second.beside(&[]);
        third.wait_for_log(&format!("taken over from process {}, ", second.pid()));
        let ended = second.wait();
        assert!(ended.status.success(), "{}", ended.log);
        assert_eq!(third.login(&login).column("SELECT 1"), ["1"]);
        greets(&socket);
        assert!(TcpStream::connect(admin).is_ok());
        let mode = std::fs::metadata(&control).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(third.terminate().0.success());
        assert!(!Path::new(&socket).exists() && !Path::new(&control).exists());
        assert!(TcpStream::connect(admin).is_err());
    });
}

#[test]
fn where_nobody_runs_it_is_a_start_as_usual() {
    let folder = tempfile::tempdir().unwrap();
    let control = in_folder(&folder, "takeover.sock");
    let flags = ["--takeover-socket", control.as_str(), "--takeover"];
    for _ in 0..2 {
        let proxy = Proxy::start(mariadb().addr(), &flags);
        proxy.wait_for_log("there is nobody to take over from");
        assert_eq!(proxy.login(&Login::default()).column("SELECT 1"), ["1"]);
        // The second round finds the socket file of a killed process.
        drop(proxy);
    }
    let output = headwater(&[])
        .args(["serve", "--takeover"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("takeover.socket"), "{said}");
}

/// What a process prints that cannot take over.
#[track_caller]
fn refusal(
    mut command: std::process::Command,
    addr: std::net::SocketAddr,
    control: &str,
) -> String {
    let output = command
        .args(["serve", "--takeover", "--admin-listen", "", "--listen"])
        .args([&addr.to_string(), "--takeover-socket", control])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[test]
fn a_process_that_dies_before_it_is_warm_has_changed_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [control, socket] =
        ["takeover.sock", "headwater.sock"].map(|name| in_folder(&folder, name));
    let flags = ["--takeover-socket", &control, "--socket", &socket];
    let first = Proxy::start(mariadb().addr(), &flags);
    // Without a right to follow the log, memory does not become warm.
    let cold = ["--takeover", "--service-user", "hw_nobody"];
    for ends_itself in [false, true] {
        let second = first.beside(&cold);
        first.wait_for_log(&format!("process {} has the sockets", second.pid()));
        let said = refusal(headwater(&[]), first.addr(), &control);
        assert!(said.contains("another process is taking over"), "{said}");
        let died = format!("process {} has not taken over", second.pid());
        match ends_itself {
            true => assert!(second.terminate().0.success()),
            // Has the effect of `kill -9`.
            false => drop(second),
        }
        first.wait_for_log(&died);
        assert_eq!(first.login(&Login::default()).column("SELECT 1"), ["1"]);
        greets(&socket);
    }
    let (_settings, path) = settings_file("[takeover]\nwarm_ms = 300\n");
    let third = first.beside(&[&cold[..], &["--config", &path]].concat());
    third.wait_for_log("not warm within takeover.warm_ms = 300");
    third.wait_for_log("taken over from process");
    assert!(first.wait().status.success());
    assert_eq!(third.login(&Login::default()).column("SELECT 1"), ["1"]);
}

#[test]
fn another_users_process_is_refused_at_either_end() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let another = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let version = started_by("setpriv", &another).arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return eprintln!(
            "left out: only root can start a process of another user, where that may run the program"
        );
    }
    let [theirs, ours] = ["theirs.sock", "ours.sock"].map(|name| in_folder(&folder, name));
    let flags = ["--takeover-socket", theirs.as_str()];
    let upstream = mariadb().addr();
    let proxy = Proxy::by("setpriv", &another, free_addr(), upstream, &flags);
    proxy.wait_for_log("listening on");
    let said = refusal(headwater(&[]), proxy.addr(), &theirs);
    assert!(
        said.contains("runs as user 65534, and this one as user 0"),
        "{said}"
    );
    proxy.wait_for_log("has not taken over");
    assert_eq!(proxy.login(&Login::default()).column("SELECT 1"), ["1"]);
    // The socket file's mode keeps other users out, and Headwater also checks the user of each process that connects.
    let proxy = Proxy::start(upstream, &["--takeover-socket", &ours]);
    for (mode, part) in [
        (0o600, "cannot ask the process"),
        (0o666, "runs as user 0, and this one as user 65534"),
    ] {
        std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(mode)).unwrap();
        let said = refusal(started_by("setpriv", &another), proxy.addr(), &ours);
        assert!(said.contains(part), "no {part} in {said}");
    }
    proxy.wait_for_log("runs as user 65534, and only user 0 may take over");
    assert_eq!(proxy.login(&Login::default()).column("SELECT 1"), ["1"]);
}

fn fill(server: &PrivateServer) -> Login {
    let login = classic_on(server.addr(), "warm");
    let mut root = WireClient::login(server.addr(), &login);
    root.ok("INSERT INTO follower VALUES (1,2),(1,3)");
    root.ok("INSERT INTO message (user_id, body) VALUES (2,'a'),(3,'b'),(2,'c')");
    login
}

#[test]
fn memory_is_warm_when_the_first_client_comes() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = fill(server);
            let folder = tempfile::tempdir().unwrap();
            let control = in_folder(&folder, "takeover.sock");
            let (_settings, path) = settings_file("[freshness]\nwait_ms = 10000\n");
            let own = [
                "--preload",
                "--takeover-socket",
                &control,
                "--config",
                &path,
            ];
            let first = Proxy::start(server.addr(), &[ROOT_SERVICE, &own].concat());
            let second = first.beside(TAKEOVER);
            second.wait_for_log("taken over from process");
            let log = second.log();
            let [loaded, warm, taken] =
                ["preload of warm: ", "warm after ", "taken over"].map(|text| {
                    log.find(text)
                        .unwrap_or_else(|| panic!("no {text} in {log}"))
                });
            assert!(loaded < warm && warm < taken, "{log}");
            let mut client = second.login(&login);
            // A run of the procedure proves its definer's rights for one second.
            for calls in 1..=100 {
                client.ok("CALL fetch_timeline_ids(1)");
                let ids = "SELECT id FROM fetch_timeline_tt ORDER BY id DESC";
                assert_eq!(client.column(ids).len(), 3);
                let counts = second.counts();
                assert_eq!(counts.of("calls_owned"), calls, "{log}{counts:?}");
                if counts.of("calls_from_memory") > 0 {
                    break;
                }
                assert!(calls < 100, "{log}{counts:?}");
            }
            assert!(first.wait().status.success());
        },
    );
}
