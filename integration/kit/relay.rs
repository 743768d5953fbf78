//! A TCP relay between Headwater and a server. It can pause the binary log stream alone, and lead new connections to another server.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID.
const DUMPS: [u8; 2] = [0x12, 0x1e];

/// Listens until the process ends.
#[derive(Debug)]
pub(crate) struct Relay {
    addr: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    held: Arc<AtomicBool>,
}

impl Relay {
    pub(crate) fn start(server: SocketAddr) -> Relay {
        Relay::start_at(Ipv4Addr::LOCALHOST, server)
    }

    /// Connects to the server from another loopback address, which is not exempt from the server's checks of client hosts.
    pub(crate) fn start_from(from: Ipv4Addr, server: SocketAddr) -> Relay {
        Relay::between(Ipv4Addr::LOCALHOST, from, server)
    }

    /// Listens at an address of the loopback network.
    pub(crate) fn start_at(at: Ipv4Addr, server: SocketAddr) -> Relay {
        Relay::between(at, Ipv4Addr::LOCALHOST, server)
    }

    fn between(at: Ipv4Addr, from: Ipv4Addr, server: SocketAddr) -> Relay {
        let listener = TcpListener::bind((at, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let held = Arc::new(AtomicBool::new(false));
        let server = Arc::new(Mutex::new(server));
        let (hold, to) = (Arc::clone(&held), Arc::clone(&server));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = *to.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = carry(client, from, server, &hold);
            }
        });
        Relay { addr, server, held }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Leads new connections to this server; existing ones are unaffected.
    pub(crate) fn lead_to(&self, server: SocketAddr) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }

    /// While true, the relay forwards nothing of the log.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
    }
}

fn carry(
    client: TcpStream,
    from: Ipv4Addr,
    server: SocketAddr,
    held: &Arc<AtomicBool>,
) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect(&server.into())?;
    let server = TcpStream::from(socket);
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let dumps = Arc::new(AtomicBool::new(false));
    let (from, to, seen) = (client.try_clone()?, server.try_clone()?, Arc::clone(&dumps));
    thread::spawn(move || {
        copy(from, to, |bytes| {
            // A command in one packet: the header, then the command byte.
            if bytes.get(3) == Some(&0) && bytes.get(4).is_some_and(|byte| DUMPS.contains(byte)) {
                seen.store(true, Ordering::Relaxed);
            }
        })
    });
    let held = Arc::clone(held);
    thread::spawn(move || {
        copy(server, client, |_| {
            while dumps.load(Ordering::Relaxed) && held.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(2));
            }
        })
    });
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream, before: impl Fn(&[u8])) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        before(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
