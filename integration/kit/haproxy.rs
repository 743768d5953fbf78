//! HAProxy as operators run it: with `ops/haproxy.cfg` before Headwaters, or with a plain configuration before servers.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::package_folder::PackageFolder;

use super::proxy::free_addr;
use crate::kit::patience;

/// The configuration that operators start from.
const EXAMPLE: &str = include_str!("../../ops/haproxy.cfg");
const PROGRAM: &str = "usr/sbin/haproxy";

/// A running HAProxy. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct HaProxy {
    child: Child,
    addr: SocketAddr,
    _folder: tempfile::TempDir,
}

/// False on a machine without HAProxy. On CI (`CI=true`) that is a failure.
#[track_caller]
pub(crate) fn is_here() -> bool {
    let here = haproxy().has(PROGRAM);
    let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(here || !on_ci, "no HAProxy: run setup/haproxy.sh");
    if !here {
        eprintln!("left out: no HAProxy (setup/haproxy.sh)");
    }
    here
}

impl HaProxy {
    /// Balances three Headwaters by the example. Each pair: the client port, and the admin port.
    #[track_caller]
    pub(crate) fn by_the_example(headwaters: [(SocketAddr, SocketAddr); 3]) -> HaProxy {
        let addr = free_addr();
        let mut config = EXAMPLE.to_owned();
        let mut put = |old: &str, new: String| {
            assert_eq!(config.matches(old).count(), 1, "{old} in {EXAMPLE}");
            config = config.replace(old, &new);
        };
        put("bind :3306", format!("bind {addr}"));
        for (number, (clients, admin)) in (11..).zip(headwaters) {
            let port = admin.port();
            put(
                &format!("10.0.0.{number}:3307"),
                format!("{clients} port {port}"),
            );
        }
        HaProxy::start(addr, &config)
    }

    /// Balances servers round-robin.
    #[track_caller]
    pub(crate) fn in_turn(servers: &[SocketAddr]) -> HaProxy {
        let addr = free_addr();
        let mut config = format!(
            "defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 1h\n    timeout server 1h\n\
             listen mysql\n    bind {addr}\n    balance roundrobin\n"
        );
        for (number, server) in servers.iter().enumerate() {
            writeln!(config, "    server s{number} {server}").unwrap();
        }
        HaProxy::start(addr, &config)
    }

    #[track_caller]
    fn start(addr: SocketAddr, config: &str) -> HaProxy {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haproxy.cfg");
        std::fs::write(&path, config).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut child = haproxy()
            .command(PROGRAM)
            .args(["-db", "-f"])
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("haproxy starts");
        let deadline = patience();
        while TcpStream::connect(addr).is_err() {
            let ended = child.try_wait().unwrap();
            let log = std::fs::read_to_string(folder.path().join("log"));
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "haproxy does not listen ({ended:?}): {log:?}\n{config}"
            );
            thread::sleep(Duration::from_millis(5));
        }
        HaProxy {
            child,
            addr,
            _folder: folder,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn haproxy() -> PackageFolder {
    PackageFolder::at("HEADWATER_HAPROXY_PREFIX", "haproxy-2.6")
}
