//! Sockets that a service manager opens.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::kit::patience;
use crate::kit::proxy::{Proxy, free_addr, started_by};
use crate::kit::servers::mariadb;
use crate::kit::wire_client::{Login, WireClient};

/// Part of systemd's own package.
const PROGRAM: &str = "systemd-socket-activate";

#[test]
fn a_service_manager_may_open_port_socket_and_admin_port() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("headwater.sock");
    let [port, admin] = [free_addr(), free_addr()];
    let arguments = [
        "-l",
        &port.to_string(),
        "-l",
        socket.to_str().unwrap(),
        "-l",
        &admin.to_string(),
        "--fdname=mysql:mysql:admin",
    ];
    let proxy = Proxy::by(PROGRAM, &arguments, port, mariadb().addr(), &[]);
    let mut client = proxy.login(&Login::default());
    assert_eq!(client.column("SELECT 1"), ["1"]);
    proxy.wait_for_log("the service manager has opened the port (LISTEN_FDS)");
    proxy.wait_for_log(&format!("listening on {port} and {}", socket.display()));
    let mut greeting = [0; 5];
    let mut local = UnixStream::connect(&socket).unwrap();
    local.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting[4], 10, "the version of the protocol");
    let mut asker = TcpStream::connect(admin).unwrap();
    asker
        .write_all(b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    asker.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (status, log) = proxy.terminate();
    assert!(status.success(), "{log}");
    assert!(socket.exists(), "the file is the service manager's");
}

#[test]
fn clients_wait_while_the_service_is_restarted_and_none_is_refused() {
    let addr = free_addr();
    let listener = TcpListener::bind(addr).unwrap();
    let first = Proxy::given(&listener, mariadb().addr());
    let mut writer = first.login(&Login::default());
    writer.ok("BEGIN");
    first.signal(Signal::SIGTERM);
    first.wait_for_log("stopping");
    let comes = thread::spawn(move || WireClient::connect(addr).column("SELECT 1"));
    thread::sleep(Duration::from_millis(300));
    assert!(!comes.is_finished());
    writer.ok("COMMIT");
    assert!(first.wait().status.success());
    let second = Proxy::given(&listener, mariadb().addr());
    assert_eq!(comes.join().unwrap(), ["1"]);
    assert!(second.terminate().0.success());
}

/// What Headwater prints when it starts with the sockets that these arguments open.
#[track_caller]
fn said(port: SocketAddr, arguments: &[&str]) -> String {
    let mut child = started_by(PROGRAM, arguments)
        .args(["serve", "--admin-listen", ""])
        .stderr(Stdio::piped())
        .spawn()
        .expect("systemd is there: make setup gets it");
    let deadline = patience();
    let status = loop {
        // A connection starts the program.
        let _ = TcpStream::connect(port);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "{arguments:?}: it goes on");
        thread::sleep(Duration::from_millis(20));
    };
    let mut said = String::new();
    child.stderr.unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    said
}

#[test]
fn sockets_of_no_use_are_told_with_the_line_of_the_unit_that_cures_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("headwater.sock");
    let socket = socket.to_str().unwrap();
    let [port, other] = [free_addr(), free_addr()];
    let [one, two] = [port.to_string(), other.to_string()];
    for (arguments, part) in [
        (
            &["-l", &one, "--fdname=http"][..],
            "FileDescriptorName=mysql",
        ),
        (
            &["-l", &one, "--fdname=admin"],
            "none of them is a TCP port for clients",
        ),
        (
            &["-l", &one, "-l", &two, "--fdname=mysql:mysql"],
            "two sockets are handed over for clients (TCP)",
        ),
        (
            &["-l", &one, "-l", socket, "--fdname=mysql:admin"],
            "is no TCP port",
        ),
    ] {
        let said = said(port, arguments);
        assert!(said.contains(part), "no {part} in {said}");
    }
}
