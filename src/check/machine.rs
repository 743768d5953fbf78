//! What on this machine would be in the way of `serve`: certificates, the port, the socket, settings that fit nothing. Nothing is left
//! behind.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, lookup_host};

use crate::account::host;
use crate::config::Settings;
use crate::link::is_path;
use crate::server::{greet, has_tls, legs};
use crate::tls::{Acceptor, Connector};
use crate::wire::handshake::Greeting;

/// Whoever listens where `serve` is to listen has so long to say who it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Fine(String),
    InTheWay(String),
}

/// Everything, in the order in which it is told.
pub(super) async fn look(settings: &Settings, greeting: &Greeting) -> Vec<Finding> {
    let mut findings = vec![port(settings).await];
    if let Some(path) = &settings.socket {
        findings.push(socket(settings, path).await);
    }
    if let Some(address) = settings.admin.address() {
        findings.push(admin(settings, address).await);
    }
    match Acceptor::new(&settings.tls) {
        Ok(None) => {}
        Ok(Some(_)) => findings.push(Finding::Fine(
            "certificate and key (tls) can be used".to_owned(),
        )),
        Err(error) => findings.push(Finding::InTheWay(error.to_string())),
    }
    if let Err(error) = Connector::new(&settings.upstream_tls, host(settings.upstream.first())) {
        findings.push(Finding::InTheWay(error.to_string()));
    }
    if let Some(void) = legs(settings).void(has_tls(greeting)) {
        findings.push(Finding::InTheWay(void.to_owned()));
    }
    if let Some(problem) = settings.binlog.too_little_memory() {
        findings.push(Finding::InTheWay(problem));
    }
    findings
}

async fn port(settings: &Settings) -> Finding {
    let listen = &settings.listen;
    match bind(listen).await {
        Ok(()) => Finding::Fine(format!("listen = {listen} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if is_the_servers(listen, settings.upstream.first()).await {
                return Finding::InTheWay(format!(
                    "listen = {listen} (--listen, HEADWATER_LISTEN) is the server's own address: choose another port"
                ));
            }
            taken(
                &format!("listen = {listen} (--listen, HEADWATER_LISTEN)"),
                listen,
                settings,
            )
            .await
        }
        Err(error) => Finding::InTheWay(format!(
            "cannot listen on {listen} (--listen, HEADWATER_LISTEN, listen): {error}"
        )),
    }
}

/// Where operators look in: a Headwater that is there already is in nobody's way.
async fn admin(settings: &Settings, address: &str) -> Finding {
    let name = format!("admin.listen = {address} (--admin-listen, HEADWATER_ADMIN_LISTEN)");
    match bind(address).await {
        Ok(()) => Finding::Fine(format!("{name} is free")),
        Err(_) if is_live(address).await => {
            Finding::Fine(format!("{name} is taken, by a Headwater as it seems"))
        }
        // Without having been asked for, it is done without.
        Err(error) if settings.admin.listen.is_none() => Finding::Fine(format!(
            "{name} cannot be opened ({error}): there will be no admin port, unless another address is set"
        )),
        Err(error) => Finding::InTheWay(format!(
            "{name} cannot be opened: {error}. Set another address, or \"\" for none"
        )),
    }
}

/// True if a Headwater answers there.
async fn is_live(address: &str) -> bool {
    let asked = async {
        let mut socket = tokio::net::TcpStream::connect(address).await?;
        socket.write_all(b"GET /live HTTP/1.0\r\n\r\n").await?;
        let mut reply = Vec::new();
        socket.take(1_024).read_to_end(&mut reply).await?;
        io::Result::Ok(reply)
    };
    let reply = tokio::time::timeout(PATIENCE, asked).await;
    reply.is_ok_and(|reply| reply.is_ok_and(|reply| reply.ends_with(b"\r\n\r\nlive\n")))
}

async fn socket(settings: &Settings, path: &Path) -> Finding {
    let name = format!("socket = {} (--socket, HEADWATER_SOCKET)", path.display());
    match std::fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            Finding::InTheWay(format!("{name} is there already, and is no socket"))
        }
        Ok(_) if tokio::net::UnixStream::connect(path).await.is_err() => Finding::Fine(format!(
            "{name} was left behind by a process that is gone; `serve` takes its place"
        )),
        Ok(_) => taken(&name, &path.to_string_lossy(), settings).await,
        Err(_) => match UnixListener::bind(path) {
            Ok(_) => {
                let _ = std::fs::remove_file(path);
                Finding::Fine(format!("{name} can be opened"))
            }
            Err(error) => Finding::InTheWay(format!("{name} cannot be opened: {error}")),
        },
    }
}

/// Opens the port for nobody: who listens is only seen by those who connect.
async fn bind(address: &str) -> io::Result<()> {
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in lookup_host(address).await? {
        match bind_one(address) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_one(address: SocketAddr) -> io::Result<()> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As `serve` does: connections that are just gone are in nobody's way.
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

/// True if the server itself listens there.
async fn is_the_servers(listen: &str, upstream: &str) -> bool {
    if is_path(upstream) {
        return false;
    }
    let (Ok(listen), Ok(upstream)) = (lookup_host(listen).await, lookup_host(upstream).await)
    else {
        return false;
    };
    let own: Vec<u16> = listen.map(|address| address.port()).collect();
    let mut upstream = upstream;
    upstream.any(|server| {
        let on_this_machine = bind_one(SocketAddr::new(server.ip(), 0)).is_ok();
        own.contains(&server.port()) && on_this_machine
    })
}

/// Somebody listens there: a Headwater in front of the same server is in nobody's way, since `check` may be run beside it.
async fn taken(name: &str, address: &str, settings: &Settings) -> Finding {
    if leads_to_the_server(address, settings.upstream.first())
        .await
        .unwrap_or(false)
    {
        Finding::Fine(format!(
            "{name} is taken, by a Headwater in front of this server as it seems"
        ))
    } else {
        Finding::InTheWay(format!(
            "{name} is taken by another process: stop that, or choose another one"
        ))
    }
}

/// Servers number their connections: who is given a number between two of the server's own leads to it.
async fn leads_to_the_server(address: &str, upstream: &str) -> io::Result<bool> {
    let before = greet(upstream, PATIENCE).await?;
    let there = greet(address, PATIENCE).await?;
    let behind = greet(upstream, PATIENCE).await?;
    let between = before.thread_id < there.thread_id && there.thread_id < behind.thread_id;
    Ok(between && there.server_version == before.server_version)
}
