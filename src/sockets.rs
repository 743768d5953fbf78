//! Listening sockets that somebody else has opened: a service manager (systemd's socket activation), or the process before this one.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;

use crate::config::ServeSettings;

/// Where a service manager says what its sockets are called.
const NAMES: &str = "LISTEN_FDNAMES";
/// The name of those that clients connect to.
pub(crate) const CLIENTS: &str = "mysql";
/// The name of each further port for clients.
pub(crate) const ADDITIONAL_PORT: &str = "listener";
/// The name of the admin port.
pub(crate) const ADMIN: &str = "admin";

/// What need not be opened any more.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    /// The port that clients connect to.
    pub port: Option<TcpListener>,
    /// Further ports for clients: which is which, their addresses say.
    pub additional_ports: Vec<TcpListener>,
    /// The socket that clients of this machine connect to.
    pub local: Option<UnixListener>,
    /// The port where operators look in.
    pub admin: Option<TcpListener>,
    /// The file of `local` is somebody else's to remove.
    pub file_is_external: bool,
    /// Another process listens there as well, and may go on.
    pub in_use: bool,
}

/// A listening socket of either kind.
#[derive(Debug)]
pub(crate) enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// What is wrong with sockets that somebody hands over.
#[derive(Debug, thiserror::Error)]
pub enum InheritedSocketsError {
    /// None for clients.
    #[error(
        "the service manager hands over {given} sockets (LISTEN_FDS), and none of them is a TCP port for clients: have a socket unit with \
         ListenStream= and the port, named FileDescriptorName=mysql"
    )]
    NoPort {
        /// How many there are.
        given: usize,
    },
    /// One that nobody knows the use of.
    #[error(
        "a socket is handed over that is named {name:?} (LISTEN_FDNAMES): write FileDescriptorName=mysql into the socket unit of the port \
         that clients connect to, and FileDescriptorName=admin into that of the admin port"
    )]
    UnknownName {
        /// Its name.
        name: String,
    },
    /// More than one of a kind.
    #[error(
        "two sockets are handed over for {role}: leave one ListenStream= out; a port for operators needs FileDescriptorName=admin, in a \
         socket unit of its own"
    )]
    DuplicateSocket {
        /// What both are for.
        role: &'static str,
    },
    /// One that nobody can connect to as is meant.
    #[error(
        "the socket number {number} that is handed over, named {name:?}, is no {wanted}: use ListenStream= with Accept=no, and a port (not a \
         path) for {ADMIN}"
    )]
    WrongKind {
        /// Counted from 1.
        number: usize,
        /// Its name.
        name: String,
        /// What it should be.
        wanted: &'static str,
    },
}

impl InheritedSockets {
    /// What the service manager hands to this process. To be asked once, while there is one thread: it is taken out of the environment.
    ///
    /// # Errors
    /// There is something that is not known what to do with.
    pub fn from_environment() -> Result<InheritedSockets, InheritedSocketsError> {
        // The names stay where they are; without LISTEN_FDS they are nobody's.
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

    /// True where there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let InheritedSockets {
            port,
            additional_ports: doors,
            local,
            admin,
            ..
        } = self;
        port.is_none() && doors.is_empty() && local.is_none() && admin.is_none()
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

    /// Those that are where the settings want them to be; the others are closed.
    #[must_use]
    pub fn matching_settings(self, settings: &ServeSettings) -> InheritedSockets {
        let admin = settings.admin.address();
        let had_port = self.port.is_some();
        // What was a further port may be the first one now, and the other way round.
        let mut doors: Vec<TcpListener> =
            self.port.into_iter().chain(self.additional_ports).collect();
        let port = take_at(&mut doors, &settings.listen);
        if had_port && port.is_none() {
            tracing::warn!(
                "the other process listens elsewhere than listen = {:?} (--listen, HEADWATER_LISTEN) says: nobody listens there any more \
                 once it has ended",
                settings.listen
            );
        }
        let listeners = settings.listeners.iter();
        let kept = listeners.filter_map(|it| take_at(&mut doors, &it.listen));
        let kept = kept.collect();
        let local = self.local.filter(|local| {
            let path = local.local_addr().ok();
            let path = path.as_ref().and_then(|address| address.as_pathname());
            path.is_some() && path == settings.socket.as_deref()
        });
        for gone in doors.iter().filter_map(|it| it.local_addr().ok()) {
            tracing::warn!(
                "the other process listens on {gone} as well, and these settings name no such port: nobody listens there any more once \
                 it has ended"
            );
        }
        InheritedSockets {
            port,
            additional_ports: kept,
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
    /// Somebody may connect to it.
    pub(crate) fn is_listening(&self) -> bool {
        let socket = match self {
            ListeningSocket::Tcp(listener) => listener.as_fd(),
            ListeningSocket::Unix(listener) => listener.as_fd(),
        };
        socket_acceptconn(socket).unwrap_or(false)
    }
}

/// What a socket of this name is for. One without a name of its own is called after its unit.
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

/// The port that a setting means, taken out of these.
pub(crate) fn take_at(ports: &mut Vec<TcpListener>, setting: &str) -> Option<TcpListener> {
    let at = ports.iter().position(|port| is_at(port, setting))?;
    Some(ports.remove(at))
}

fn is_at(port: &TcpListener, setting: &str) -> bool {
    let here = port.local_addr();
    here.is_ok_and(|here| is_address(here, setting))
}

/// True where a port that is open here is the one that a setting means: port 0 is any.
fn is_address(here: SocketAddr, setting: &str) -> bool {
    let mut meant = setting.to_socket_addrs().into_iter().flatten();
    meant.any(|it| it.ip() == here.ip() && [0, here.port()].contains(&it.port()))
}

/// The path of a socket, where it has one.
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
