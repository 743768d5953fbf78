//! Many clients at once: each receives a reply.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use crate::kit::patience;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::packet::Packet;
use crate::kit::wire_client::{Greeting, Login};

const CLIENTS: usize = 2_000;
/// Further clients receive the error that there are too many.
const SESSIONS: usize = 100;

/// Starts all connections before it checks the result of the first one.
fn connect_at_once(addr: SocketAddr, clients: usize) -> Vec<TcpStream> {
    let connecting: Vec<Socket> = (0..clients)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            if let Err(error) = socket.connect(&addr.into()) {
                assert_eq!(
                    error.raw_os_error(),
                    Some(nix::errno::Errno::EINPROGRESS as i32)
                );
            }
            socket
        })
        .collect();
    connecting
        .into_iter()
        .map(|socket| {
            socket.set_nonblocking(false).unwrap();
            TcpStream::from(socket)
        })
        .collect()
}

/// Reads the first packet of each client: how many receive a greeting, and how many receive error 1040.
#[track_caller]
fn heard(clients: impl IntoIterator<Item = impl io::Read>) -> (usize, usize) {
    let (mut greeted, mut refused, mut lost) = (0, 0, Vec::new());
    let mut kept = Vec::new();
    for mut client in clients {
        let mut raw = Vec::new();
        match Packet::read(&mut client, &mut raw) {
            Ok(_) => match Greeting::parse(raw) {
                Ok(_) => greeted += 1,
                Err(error) => {
                    assert_eq!(error.code, 1040, "{error:?}");
                    refused += 1;
                }
            },
            Err(error) => lost.push(error.kind()),
        }
        // Accepted clients stay connected, so that the others exceed the limit.
        kept.push(client);
        assert!(lost.len() < 5, "{lost:?} behind {greeted} and {refused}");
    }
    assert!(lost.is_empty(), "{lost:?} of {greeted} and {refused}");
    (greeted, refused)
}

#[test]
fn a_burst_of_2_000_clients_loses_none() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    on_each_server(|server| {
        let settings = format!("[limits]\nsessions = {SESSIONS}\n");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headwater.sock");
        let flags = ["--socket", path.to_str().unwrap()];
        let proxy = Proxy::configured(server.addr(), &settings, &flags);
        for round in 0..5 {
            let clients = connect_at_once(proxy.addr(), CLIENTS);
            for client in &clients {
                let patience = Some(Duration::from_secs(20));
                client.set_read_timeout(patience).unwrap();
            }
            let (greeted, refused) = heard(clients);
            assert_eq!(greeted + refused, CLIENTS, "round {round}");
            assert!(greeted <= SESSIONS, "{greeted} in round {round}");
            assert!(refused >= CLIENTS - SESSIONS, "{refused} in round {round}");
        }
        // On the Unix socket no connection is lost: the client learns at once that there is no room.
        let clients: Vec<UnixStream> = (0..CLIENTS / 2)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        let (greeted, refused) = heard(clients);
        assert_eq!(greeted + refused, CLIENTS / 2);
        let deadline = patience();
        while crate::kit::wire_client::WireClient::try_login(proxy.addr(), &Login::default())
            .map_or(true, |login| login.is_err())
        {
            assert!(std::time::Instant::now() < deadline, "{}", proxy.log());
        }
    });
}

/// While Headwater is stopped, as many connections wait as the system allows.
#[test]
fn as_many_connections_wait_as_the_system_allows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headwater.sock");
    let upstream = crate::kit::proxy::free_addr();
    let proxy = Proxy::start(upstream, &["--socket", path.to_str().unwrap()]);
    let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    assert_eq!(
        room(&proxy, &path),
        limit.trim().parse::<usize>().unwrap() + 1
    );
}

/// How many clients connect to the socket until one would have to wait.
fn room(proxy: &Proxy, path: &std::path::Path) -> usize {
    use nix::sys::signal::Signal;
    use socket2::SockAddr;
    // The port listens slightly earlier than the socket.
    proxy.wait_for_log("listening on");
    proxy.signal(Signal::SIGSTOP);
    let mut waiting = Vec::new();
    loop {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        match socket.connect(&SockAddr::unix(path).unwrap()) {
            Ok(()) => waiting.push(socket),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                proxy.signal(Signal::SIGCONT);
                return waiting.len();
            }
        }
    }
}
