//! What a service manager receives, and the unit that the book gives for it.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::kit::proxy::Proxy;
use crate::kit::servers::mariadb;
use crate::kit::wire_client::Login;

/// The next message that is not the watchdog's.
#[track_caller]
fn told(manager: &UnixDatagram) -> String {
    loop {
        let mut message = [0; 512];
        let length = manager.recv(&mut message).expect("something is told");
        let message = String::from_utf8_lossy(&message[..length]).into_owned();
        if message.trim() != "WATCHDOG=1" {
            return message;
        }
    }
}

#[test]
fn a_service_manager_is_told_what_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let upstream = mariadb().addr().to_string();
    let proxy = Proxy::start_with(
        &["--upstream", &upstream],
        &[
            ("NOTIFY_SOCKET", path.to_str().unwrap()),
            ("WATCHDOG_USEC", "300000"),
        ],
    );
    assert_eq!(told(&manager).trim(), "READY=1");
    proxy.login(&Login::default());
    // Headwater sends three messages within the watchdog's time, so that two arrive in it.
    for _ in 0..5 {
        let mut message = [0; 64];
        let length = manager.recv(&mut message).unwrap();
        assert_eq!(message[..length].trim_ascii(), b"WATCHDOG=1");
    }
    proxy.signal(Signal::SIGHUP);
    let reloading = told(&manager);
    assert!(
        reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="),
        "{reloading}"
    );
    assert_eq!(told(&manager).trim(), "READY=1");
    proxy.signal(Signal::SIGTERM);
    assert_eq!(told(&manager).trim(), "STOPPING=1");
    assert!(proxy.wait().status.success());
}

/// The old process must send this: the manager accepts messages only from the main process.
#[test]
fn a_service_manager_is_told_which_process_is_the_main_one_after_a_takeover() {
    let folder = tempfile::tempdir().unwrap();
    let [notify, control] = ["notify", "takeover"].map(|name| folder.path().join(name));
    let manager = UnixDatagram::bind(&notify).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let upstream = mariadb().addr().to_string();
    let first = Proxy::start_with(
        &[
            "--upstream",
            &upstream,
            "--takeover-socket",
            control.to_str().unwrap(),
        ],
        &[("NOTIFY_SOCKET", notify.to_str().unwrap())],
    );
    assert_eq!(told(&manager).trim(), "READY=1");
    let second = first.beside(&["--takeover"]);
    let main = format!("MAINPID={}", second.pid());
    assert_eq!(told(&manager).trim(), main);
    // The service continues: it does not report that it stops.
    assert!(first.wait().status.success());
    manager
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    assert!(manager.recv(&mut [0; 64]).is_err());
}

/// The unit removes rights that Headwater does not need.
#[test]
fn the_unit_exposes_little() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // systemd's exposure figure, times ten: systemd calls less than 2.0 safe.
    let looked = Command::new("systemd-analyze")
        .args([
            "security",
            "--offline=true",
            "--threshold=19",
            "ops/headwater.service",
        ])
        .current_dir(root)
        .env("SYSTEMD_COLORS", "0")
        .output()
        .expect("systemd-analyze is there: make setup gets it");
    assert!(
        looked.status.success(),
        "{}",
        String::from_utf8_lossy(&looked.stdout)
    );
}
