//! Inherited listening sockets: from a service manager (systemd's socket activation), or from the previous process.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;

use crate::config::ServeSettings;

/// The variable with the names of a service manager's sockets.
const NAMES: &str = "LISTEN_FDNAMES";
/// The name of the clients' sockets.
pub(crate) const CLIENTS: &str = "mysql";
/// The name of each further port for clients.
pub(crate) const ADDITIONAL_PORT: &str = "listener";
/// The name of the admin port.
pub(crate) const ADMIN: &str = "admin";

/// Sockets that are open already.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    /// The port that clients connect to.
    pub port: Option<TcpListener>,
    /// Further ports for clients, told apart by their addresses.
    pub additional_ports: Vec<TcpListener>,
    /// The Unix socket that clients connect to.
    pub local: Option<UnixListener>,
    /// The admin port.
    pub admin: Option<TcpListener>,
    /// Another owner removes the file of `local`.
    pub file_is_external: bool,
    /// Another process listens there as well, and may continue.
    pub in_use: bool,
}

/// A listening socket, TCP or Unix.
#[derive(Debug)]
pub(crate) enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// What is wrong with inherited sockets.
#[derive(Debug, thiserror::Error)]
pub enum InheritedSocketsError {
    /// None of them is for clients.
    #[error(
        "the service manager hands over {given} sockets (LISTEN_FDS), and none of them is a TCP port for clients: have a socket unit with \
         ListenStream= and the port, named FileDescriptorName=mysql"
    )]
    NoPort {
        /// Number of inherited sockets.
        given: usize,
    },
    /// A socket with an unknown name.
    #[error(
        "a socket is handed over that is named {name:?} (LISTEN_FDNAMES): write FileDescriptorName=mysql into the socket unit of the port \
         that clients connect to, and FileDescriptorName=admin into that of the admin port"
    )]
    UnknownName {
        /// Its name.
        name: String,
    },
    /// Two sockets with one role.
    #[error(
        "two sockets are handed over for {role}: leave one ListenStream= out; a port for operators needs FileDescriptorName=admin, in a \
         socket unit of its own"
    )]
    DuplicateSocket {
        /// The role of both.
        role: &'static str,
    },
    /// A socket of the wrong kind.
    #[error(
        "the socket number {number} that is handed over, named {name:?}, is no {wanted}: use ListenStream= with Accept=no, and a port (not a \
         path) for {ADMIN}"
    )]
    WrongKind {
        /// Its position, from 1.
        number: usize,
        /// Its name.
        name: String,
        /// The expected kind.
        wanted: &'static str,
    },
}

impl InheritedSockets {
    /// Takes the service manager's sockets out of the environment. Call it once, while there is one thread.
    ///
    /// # Errors
    /// The sockets cannot be used.
    pub fn from_environment() -> Result<InheritedSockets, InheritedSocketsError> {
        // The variable with the names stays; without LISTEN_FDS it is ignored.
        let names = std::env::var(NAMES).unwrap_or_default();
        let mut given = ListenFd::from_env();
        let mut names = names.split(':');
        let mut sockets = InheritedSockets::default();
        for number in 0..given.len() {
            let name = names.next().unwrap_or_default();
            let wrong = |wanted| InheritedSocketsError::WrongKind {
                number: number + 1,
                name: name.to_owned(),
                wanted,
            };
            let listening = match given.take_tcp_listener(number) {
                Ok(Some(listener)) => ListeningSocket::Tcp(listener),
                Ok(None) => continue,
                Err(_) => match given.take_unix_listener(number) {
                    Ok(Some(listener)) => ListeningSocket::Unix(listener),
                    _ => return Err(wrong("stream socket")),
                },
            };
            if !listening.is_listening() {
                return Err(wrong("listening socket"));
            }
            match role(name)? {
                CLIENTS => sockets.take_clients(listening)?,
                _ => sockets.take_admin(listening, wrong)?,
            }
        }
        if given.len() > 0 && sockets.port.is_none() {
            return Err(InheritedSocketsError::NoPort { given: given.len() });
        }
        sockets.file_is_external = sockets.local.is_some();
        Ok(sockets)
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let InheritedSockets {
            port,
            additional_ports,
            local,
            admin,
            ..
        } = self;
        port.is_none() && additional_ports.is_empty() && local.is_none() && admin.is_none()
    }

    fn take_clients(&mut self, listening: ListeningSocket) -> Result<(), InheritedSocketsError> {
        let (before, role) = match listening {
            ListeningSocket::Tcp(listener) => {
                (self.port.replace(listener).is_some(), "clients (TCP)")
            }
            ListeningSocket::Unix(listener) => {
                (self.local.replace(listener).is_some(), "clients (Unix)")
            }
        };
        match before {
            true => Err(InheritedSocketsError::DuplicateSocket { role }),
            false => Ok(()),
        }
    }

    fn take_admin(
        &mut self,
        listening: ListeningSocket,
        wrong: impl Fn(&'static str) -> InheritedSocketsError,
    ) -> Result<(), InheritedSocketsError> {
        let ListeningSocket::Tcp(listener) = listening else {
            return Err(wrong("TCP port"));
        };
        match self.admin.replace(listener) {
            Some(_) => Err(InheritedSocketsError::DuplicateSocket { role: ADMIN }),
            None => Ok(()),
        }
    }

    /// Those that the settings name; closes the others.
    #[must_use]
    pub fn matching_settings(self, settings: &ServeSettings) -> InheritedSockets {
        let admin = settings.admin.address();
        let had_port = self.port.is_some();
        // A further port may have become the first one, and vice versa.
        let mut ports: Vec<TcpListener> =
            self.port.into_iter().chain(self.additional_ports).collect();
        let port = take_at(&mut ports, &settings.listen);
        if had_port && port.is_none() {
            tracing::warn!(
                "the other process listens elsewhere than listen = {:?} (--listen, HEADWATER_LISTEN) says: nobody listens there any more \
                 once it has ended",
                settings.listen
            );
        }
        let listeners = settings.listeners.iter();
        let additional_ports = listeners.filter_map(|it| take_at(&mut ports, &it.listen));
        let additional_ports = additional_ports.collect();
        let local = self.local.filter(|local| {
            let path = local.local_addr().ok();
            let path = path.as_ref().and_then(|address| address.as_pathname());
            path.is_some() && path == settings.socket.as_deref()
        });
        for gone in ports.iter().filter_map(|it| it.local_addr().ok()) {
            tracing::warn!(
                "the other process listens on {gone} as well, and these settings name no such port: nobody listens there any more once \
                 it has ended"
            );
        }
        InheritedSockets {
            port,
            additional_ports,
            local,
            admin: self
                .admin
                .filter(|port| admin.is_some_and(|address| is_at(port, address))),
            file_is_external: self.file_is_external,
            in_use: self.in_use,
        }
    }
}

impl ListeningSocket {
    /// True if the socket accepts connections.
    pub(crate) fn is_listening(&self) -> bool {
        let socket = match self {
            ListeningSocket::Tcp(listener) => listener.as_fd(),
            ListeningSocket::Unix(listener) => listener.as_fd(),
        };
        socket_acceptconn(socket).unwrap_or(false)
    }
}

/// The role of a socket with this name. systemd names an unnamed one after its unit.
fn role(name: &str) -> Result<&'static str, InheritedSocketsError> {
    let unnamed = ["", "unknown"].contains(&name) || name.ends_with(".socket");
    match name {
        ADMIN => Ok(ADMIN),
        CLIENTS => Ok(CLIENTS),
        _ if unnamed => Ok(CLIENTS),
        _ => Err(InheritedSocketsError::UnknownName {
            name: name.to_owned(),
        }),
    }
}

/// Removes and returns the port that a setting names.
pub(crate) fn take_at(ports: &mut Vec<TcpListener>, setting: &str) -> Option<TcpListener> {
    let at = ports.iter().position(|port| is_at(port, setting))?;
    Some(ports.remove(at))
}

fn is_at(port: &TcpListener, setting: &str) -> bool {
    let here = port.local_addr();
    here.is_ok_and(|here| is_address(here, setting))
}

/// True if the setting names this open port; port 0 matches any.
fn is_address(here: SocketAddr, setting: &str) -> bool {
    let mut addresses = setting.to_socket_addrs().into_iter().flatten();
    addresses.any(|it| it.ip() == here.ip() && [0, here.port()].contains(&it.port()))
}

/// The path of a Unix socket, if it has one.
pub(crate) fn path_of(listener: &UnixListener) -> Option<std::path::PathBuf> {
    let address = listener.local_addr().ok()?;
    address.as_pathname().map(Path::to_owned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_a_socket_is_for_and_an_unknown_one_is_an_error() {
        for name in ["", "unknown", "mysql", "headwater.socket"] {
            assert_eq!(role(name).unwrap(), CLIENTS, "{name}");
        }
        assert_eq!(role("admin").unwrap(), ADMIN);
        let error = role("http").unwrap_err().to_string();
        assert!(
            error.contains("\"http\"") && error.contains("FileDescriptorName=mysql"),
            "{error}"
        );
    }

    #[test]
    fn a_port_is_taken_over_where_the_settings_mean_it() {
        let here: SocketAddr = "127.0.0.1:3307".parse().unwrap();
        for setting in ["127.0.0.1:3307", "127.0.0.1:0", "localhost:3307"] {
            assert!(is_address(here, setting), "{setting}");
        }
        for setting in ["127.0.0.1:3308", "0.0.0.0:3307", "[::1]:3307", "nonsense"] {
            assert!(!is_address(here, setting), "{setting}");
        }
    }

    #[test]
    fn two_ports_for_clients_are_one_too_many() {
        let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sockets = InheritedSockets::default();
        let tcp = || ListeningSocket::Tcp(listener());
        assert!(tcp().is_listening());
        sockets.take_clients(tcp()).unwrap();
        let error = sockets.take_clients(tcp()).unwrap_err().to_string();
        assert!(error.contains("FileDescriptorName=admin"), "{error}");
    }
}
