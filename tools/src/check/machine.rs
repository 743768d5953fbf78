//! Obstacles to `serve` on this machine: certificates, the port, the socket, settings that do not fit. Nothing is left behind.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, lookup_host};

use headwater_proxy::account::greeting::{greet, has_tls, try_tls};
use headwater_proxy::account::host;
use headwater_proxy::link::is_path;
use headwater_proxy::tls::{TlsAcceptor, TlsConnector, planned_location};
use headwater_proxy::upstreams::ListenerRole;
use headwater_server::config::ServeSettings;
use headwater_server::server::tls_legs;
use headwater_wire::handshake::ServerGreeting;

/// Timeout for the greeting of a process that listens where `serve` is to listen.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum MachineFinding {
    Fine(String),
    Obstacle(String),
}

struct ClientPort<'a> {
    /// The setting's name, without its flags.
    setting: &'static str,
    listen: &'a str,
    /// Its flag and variable, for display.
    flags: &'static str,
    /// Servers that its clients may be routed to.
    upstreams: Vec<&'a str>,
}

/// All findings, in the order of the report. `whole`: the settings with all servers and ports.
pub(super) async fn survey_machine(
    settings: &ServeSettings,
    whole: &ServeSettings,
    greeting: &ServerGreeting,
) -> Vec<MachineFinding> {
    let mut findings = Vec::new();
    let mut before: Vec<ClientPort<'_>> = Vec::new();
    for next in ports(settings, whole) {
        let mut same = None;
        for other in &before {
            if is_same_address(next.listen, other.listen).await {
                same = Some(format!(
                    "{} is the port of {} as well: give each its own",
                    next.named(),
                    other.named()
                ));
            }
        }
        findings.push(match same {
            Some(same) => MachineFinding::Obstacle(same),
            None => port(&next).await,
        });
        before.push(next);
    }
    if let Some(path) = &settings.socket {
        findings.push(socket(settings, path).await);
    }
    if let Some(address) = settings.admin.address() {
        findings.push(admin(settings, address).await);
    }
    findings.extend(certificate(settings, has_tls(greeting)));
    match TlsConnector::new(&settings.upstream_tls, host(settings.upstream.first())) {
        Ok(connector) if has_tls(greeting) => {
            findings.extend(server_tls(settings, &connector).await);
        }
        Ok(_) => {}
        Err(error) => findings.push(MachineFinding::Obstacle(error.to_string())),
    }
    if let Some(void) = tls_legs(settings).voided_settings(has_tls(greeting)) {
        findings.push(MachineFinding::Obstacle(void.to_owned()));
    }
    if let Some(problem) = settings.binlog.too_little_memory() {
        findings.push(MachineFinding::Obstacle(problem));
    }
    findings
}

/// The certificate that clients get if they are offered TLS.
fn certificate(settings: &ServeSettings, server_has_tls: bool) -> Option<MachineFinding> {
    let (tls, upstream) = (&settings.tls, &settings.upstream_tls);
    let outcome = if !tls.offers_generated(upstream) {
        let acceptor = TlsAcceptor::new(tls, upstream).map(|acceptor| acceptor.is_some());
        acceptor
            .map(|is_there| is_there.then(|| "certificate and key (tls) can be used".to_owned()))
    } else if server_has_tls {
        let description = planned_location(tls).map(|kept| {
            format!(
                "clients are offered TLS by a certificate of Headwater's own (tls.own), {kept}. Those who verify it need another one \
                 (tls.cert, tls.key)"
            )
        });
        description.map(Some)
    } else {
        Ok(Some(
            "clients are offered no TLS, since the server has none".to_owned(),
        ))
    };
    match outcome {
        Ok(text) => text.map(MachineFinding::Fine),
        Err(error) => Some(MachineFinding::Obstacle(error.to_string())),
    }
}

/// Tests TLS with the server, if it is of use.
async fn server_tls(settings: &ServeSettings, connector: &TlsConnector) -> Option<MachineFinding> {
    let legs = tls_legs(settings);
    if !legs.offered && !legs.server_required {
        return None;
    }
    let limit = Duration::from_millis(settings.limits.connect_ms);
    let error = try_tls(settings.upstream.first(), connector, limit)
        .await
        .err()?;
    let mode = connector.mode;
    let found = format!("no TLS with the server (upstream_tls.mode = {mode}): {error}");
    Some(match legs.is_optional() {
        true => MachineFinding::Fine(format!("{found}. So clients are offered none")),
        false => MachineFinding::Obstacle(format!(
            "{found}. Look at upstream_tls.ca and upstream_tls.name, and at the certificate that the server shows: clients that have \
             TLS, or need it, will be refused"
        )),
    })
}

async fn port(port: &ClientPort<'_>) -> MachineFinding {
    let named = port.named();
    let ClientPort {
        listen,
        flags,
        upstreams,
        ..
    } = port;
    match bind(listen).await {
        Ok(()) => MachineFinding::Fine(format!("{named} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            for upstream in upstreams {
                if is_server_address(listen, upstream).await {
                    return MachineFinding::Obstacle(format!(
                        "{named}{flags} is the server's own address: choose another port"
                    ));
                }
            }
            taken_address(&format!("{named}{flags}"), listen, upstreams).await
        }
        Err(error) => MachineFinding::Obstacle(match flags.is_empty() {
            true => format!("cannot listen on {named}: {error}"),
            false => format!("cannot listen on {listen}{flags}: {error}"),
        }),
    }
}

/// The ports for clients: `listen`, and those of `[[listener]]`.
fn ports<'a>(
    settings: &'a ServeSettings,
    whole: &'a ServeSettings,
) -> impl Iterator<Item = ClientPort<'a>> {
    let first = ClientPort {
        setting: "listen",
        listen: &settings.listen,
        flags: " (--listen, HEADWATER_LISTEN)",
        upstreams: vec![settings.upstream.first()],
    };
    let others = whole.listeners.iter().map(|it| ClientPort {
        setting: "listener.listen",
        listen: &it.listen,
        flags: "",
        upstreams: match it.role {
            ListenerRole::Primary => vec![settings.upstream.first()],
            // Whichever is a replica at that time.
            ListenerRole::Replica | ListenerRole::Any => {
                whole.upstream.all().iter().map(String::as_str).collect()
            }
        },
    });
    std::iter::once(first).chain(others)
}

impl ClientPort<'_> {
    fn named(&self) -> String {
        format!("{} = {}", self.setting, self.listen)
    }
}

/// True if two addresses cannot both be listened on, however they are written. Port 0 is any free port.
async fn is_same_address(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (lookup_host(one).await, lookup_host(other).await) else {
        return false;
    };
    let other: Vec<SocketAddr> = other.collect();
    let covers = |all: &SocketAddr, it: &SocketAddr| {
        all.ip().is_unspecified() && (all.is_ipv6() || it.is_ipv4())
    };
    one.into_iter().any(|one| {
        other.iter().any(|other| {
            let same = one.ip() == other.ip() || covers(&one, other) || covers(other, &one);
            one.port() != 0 && one.port() == other.port() && same
        })
    })
}

/// Checks the admin port: a running Headwater there is no obstacle.
async fn admin(settings: &ServeSettings, address: &str) -> MachineFinding {
    let name = format!("admin.listen = {address} (--admin-listen, HEADWATER_ADMIN_LISTEN)");
    match bind(address).await {
        Ok(()) => MachineFinding::Fine(format!("{name} is free")),
        Err(_) if is_live(address).await => {
            MachineFinding::Fine(format!("{name} is taken, by a Headwater as it seems"))
        }
        // A default admin port is optional.
        Err(error) if settings.admin.listen.is_none() => MachineFinding::Fine(format!(
            "{name} cannot be opened ({error}): there will be no admin port, unless another address is set"
        )),
        Err(error) => MachineFinding::Obstacle(format!(
            "{name} cannot be opened: {error}. Set another address, or \"\" for none"
        )),
    }
}

/// True if a Headwater answers there.
async fn is_live(address: &str) -> bool {
    let request = async {
        let mut socket = tokio::net::TcpStream::connect(address).await?;
        socket.write_all(b"GET /live HTTP/1.0\r\n\r\n").await?;
        let mut reply = Vec::new();
        socket.take(1_024).read_to_end(&mut reply).await?;
        io::Result::Ok(reply)
    };
    let reply = tokio::time::timeout(PATIENCE, request).await;
    reply.is_ok_and(|reply| reply.is_ok_and(|reply| reply.ends_with(b"\r\n\r\nlive\n")))
}

async fn socket(settings: &ServeSettings, path: &Path) -> MachineFinding {
    let name = format!("socket = {} (--socket, HEADWATER_SOCKET)", path.display());
    match std::fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            MachineFinding::Obstacle(format!("{name} is there already, and is no socket"))
        }
        Ok(_) if tokio::net::UnixStream::connect(path).await.is_err() => MachineFinding::Fine(
            format!("{name} was left behind by a process that is gone; `serve` takes its place"),
        ),
        Ok(_) => {
            let upstreams = [settings.upstream.first()];
            taken_address(&name, &path.to_string_lossy(), &upstreams).await
        }
        Err(_) => match UnixListener::bind(path) {
            Ok(_) => {
                let _ = std::fs::remove_file(path);
                MachineFinding::Fine(format!("{name} can be opened"))
            }
            Err(error) => MachineFinding::Obstacle(format!("{name} cannot be opened: {error}")),
        },
    }
}

/// Binds without listening: only clients would notice a listener.
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
    // As `serve` does: recently closed connections are no obstacle.
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

/// True if the server itself listens there.
async fn is_server_address(listen: &str, upstream: &str) -> bool {
    if is_path(upstream) {
        return false;
    }
    let (Ok(listen), Ok(upstream)) = (lookup_host(listen).await, lookup_host(upstream).await)
    else {
        return false;
    };
    let listen_ports: Vec<u16> = listen.map(|address| address.port()).collect();
    let mut upstream = upstream;
    upstream.any(|server| {
        let on_this_machine = bind_one(SocketAddr::new(server.ip(), 0)).is_ok();
        listen_ports.contains(&server.port()) && on_this_machine
    })
}

/// The address is taken. A Headwater in front of the same server is no obstacle, since `check` may run beside it.
async fn taken_address(name: &str, address: &str, upstreams: &[&str]) -> MachineFinding {
    for upstream in upstreams {
        let leads = leads_to_the_server(address, upstream).await;
        if leads.unwrap_or(false) {
            return MachineFinding::Fine(format!(
                "{name} is taken, by a Headwater in front of this server as it seems"
            ));
        }
    }
    MachineFinding::Obstacle(format!(
        "{name} is taken by another process: stop that, or choose another one"
    ))
}

/// Servers number their connections: a number between two of the server's own shows that the address leads to it.
async fn leads_to_the_server(address: &str, upstream: &str) -> io::Result<bool> {
    let before = greet(upstream, PATIENCE).await?;
    let there = greet(address, PATIENCE).await?;
    let after = greet(upstream, PATIENCE).await?;
    let between = before.thread_id < there.thread_id && there.thread_id < after.thread_id;
    Ok(between && there.server_version == before.server_version)
}
