//! Without a configured certificate, Headwater offers clients TLS with a self-made one: clients that need TLS get it, and clients that
//! worked without TLS still do.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use headwater_lab::private_server::PrivateServer;
use nix::sys::signal::Signal;

use super::{Stage, enciphered, on_each_stage};
use crate::kit::certificates::{Authority, trust_anyone};
use crate::kit::peer::Peer;
use crate::kit::proxy::{Proxy, headwater};
use crate::kit::relay::Relay;
use crate::kit::servers::if_here;
use crate::kit::wire_client::{Login, WireClient};

const CIPHER: &str = "SHOW STATUS LIKE 'Ssl_cipher'";

/// A Headwater for the stage's server, with only the file for its own certificate configured.
#[track_caller]
fn unset(stage: &Stage<'_>, file: &Path, flags: &[&str]) -> Proxy {
    let kept = ["--tls-own-file", file.to_str().unwrap()];
    Proxy::start(stage.addr(), &[&kept[..], flags].concat())
}

/// Whether a client's program prints a cipher for its connection, or the number of its error.
#[track_caller]
fn told(mut client: Command, addr: SocketAddr, flags: &[&str]) -> Result<bool, u32> {
    let output = client
        .arg(format!("--host={}", addr.ip()))
        .arg(format!("--port={}", addr.port()))
        .args(["--protocol=tcp", "--skip-column-names"])
        .args(flags)
        .args(["--execute", CIPHER])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said.split_whitespace().count() > 1);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let number = error.split("ERROR ").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    Err(number.unwrap_or_else(|| panic!("{said}{error}")))
}

#[test]
fn the_servers_default_login_works_at_the_first_try() {
    on_each_stage(|stage| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headwater/tls.pem");
        let proxy = unset(stage, &file, &[]);
        proxy.wait_for_log("clients are offered TLS by a certificate that Headwater has made");
        assert!(
            proxy.log().contains(file.to_str().unwrap()),
            "{}",
            proxy.log()
        );
        let plugin = match stage.mariadb {
            true => "mysql_native_password",
            false => "caching_sha2_password",
        };
        stage.account("first_hour", plugin);
        let account = ["--user=first_hour", "--password=geheim"];
        let forget = || drop(stage.root().ok("FLUSH PRIVILEGES"));
        let off = unset(stage, &file, &["--tls-own", "false"]);
        for _ in 0..2 {
            forget();
            assert_eq!(
                told(stage.server.client(), proxy.addr(), &account),
                Ok(true)
            );
            forget();
            let without = match stage.mariadb {
                true => Ok(false),
                false => Err(2061),
            };
            assert_eq!(told(stage.server.client(), off.addr(), &account), without);
        }
        assert!(!off.log().contains("certificate"), "{}", off.log());
        // Both sides have TLS, or neither has.
        let mut plain = proxy.login(&Login::default());
        assert_eq!(super::cipher(&mut plain), "");
        assert_ne!(super::cipher(&mut proxy.login(&enciphered())), "");
    });
}

#[test]
fn the_certificate_outlives_the_process_and_can_be_given_to_clients() {
    on_each_stage(|stage| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/tls.pem");
        let shown = |proxy: &Proxy| {
            let client = proxy.login(&Login::default().tls(&trust_anyone()));
            client.stream.certificate().expect("TLS")
        };
        let mut proxy = unset(stage, &file, &[]);
        let first = shown(&proxy);
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        proxy.crash_and_start();
        assert_eq!(shown(&proxy), first);
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("are read again");
        assert_eq!(shown(&proxy), first);
        // As `docs/security.md` documents.
        let text = std::fs::read_to_string(&file).unwrap();
        let (public, _) = text.split_once("-----BEGIN PRIVATE KEY").unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, public).unwrap();
        let ca = format!("--ssl-ca={}", ca.display());
        let verifies = match stage.mariadb {
            true => "--ssl-verify-server-cert",
            false => "--ssl-mode=VERIFY_CA",
        };
        let root = ["--user=root", verifies, &ca];
        assert_eq!(told(stage.server.client(), proxy.addr(), &root), Ok(true));

        // A certificate that cannot be stored is no failure unless it is configured explicitly.
        let nowhere = format!("{}/below", file.display());
        let proxy = Proxy::start_with(
            &["--upstream", &stage.addr().to_string()],
            &[("XDG_STATE_HOME", &nowhere)],
        );
        proxy.wait_for_log("cannot be kept");
        assert_ne!(shown(&proxy), first);
    });
}

/// Clients of three vendors' releases, with and without verification: a client that logs in where TLS is not offered also logs in where
/// it is, at the second attempt if not at the first.
#[test]
fn who_was_served_without_it_is_served_still() {
    let others = Authority::new();
    let ca = format!("--ssl-ca={}", others.path().display());
    let eleven = if_here(PrivateServer::start_mariadb11(&[]));
    on_each_stage(|stage| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.pem");
        let off = unset(stage, &file, &["--tls-own", "false"]);
        let plugin = match stage.mariadb {
            true => "mysql_native_password",
            false => "caching_sha2_password",
        };
        stage.account("u", plugin);
        stage.root().ok("CREATE USER nobody@'%'");
        let ten = mariadb_client();
        type Client<'a> = Option<&'a dyn Fn() -> Command>;
        let clients: [(&str, Client<'_>); 3] = [
            ("own", Some(&|| stage.server.client())),
            ("MariaDB 10.11", Some(&ten)),
            ("MariaDB 11.8", None),
        ];
        let mut better = Vec::new();
        for (name, client) in &clients {
            let eleven = || eleven.as_ref().map(PrivateServer::client);
            let client = || client.map_or_else(eleven, |client| Some(client()));
            let Some(_) = client() else { continue };
            for flags in [
                &[][..],
                &["--skip-ssl"],
                &["--disable-ssl-verify-server-cert"],
                &[ca.as_str()],
                &[ca.as_str(), "--disable-ssl-verify-server-cert"],
            ] {
                for account in [&["--user=nobody"][..], &["--user=u", "--password=geheim"]] {
                    let flags = [account, flags].concat();
                    // The client of the same vendor may lack such an option.
                    let of_mysql = *name == "own" && !stage.mariadb;
                    if of_mysql
                        && flags
                            .iter()
                            .any(|flag| flag.contains("-ssl") && !flag.contains("-ca"))
                    {
                        continue;
                    }
                    for away in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)] {
                        let proxy = unset(stage, &file, &[]);
                        let at = |addr| Relay::start_at(away, addr).addr();
                        let ask = |addr: SocketAddr| {
                            // Empties the server's password cache.
                            stage.root().ok("FLUSH PRIVILEGES");
                            told(client().unwrap(), addr, &flags)
                        };
                        let before = ask(at(off.addr()));
                        let on = at(proxy.addr());
                        let first = ask(on);
                        // The refusal of the certificate is known once its session has ended.
                        let mut second = first;
                        for _ in 0..50 {
                            second = second.or_else(|_| ask(on));
                            if before.is_err() {
                                break;
                            }
                        }
                        let shown = format!(
                            "{name} {flags:?} at {away}: {before:?}, then {first:?} and {second:?}"
                        );
                        eprintln!("{shown}");
                        assert!(
                            before.is_err() || second.is_ok(),
                            "{shown}\n{}",
                            proxy.log()
                        );
                        if before.is_err() && first.is_ok() {
                            better.push(shown);
                        }
                    }
                }
            }
        }
        assert!(!better.is_empty(), "it helps nobody");
    });
}

/// The distribution's MariaDB client.
fn mariadb_client() -> impl Fn() -> Command {
    let server = crate::kit::servers::mariadb();
    move || server.client()
}

/// A server offers TLS but fails the handshake with Headwater: Headwater offers its clients none.
#[test]
fn it_is_taken_back_where_the_servers_side_cannot_have_it() {
    on_each_stage(|stage| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.pem");
        let greeting = WireClient::connect(stage.addr()).greeting.raw;
        let peer = Peer::start(move |side| {
            side.write(&greeting)?;
            side.read()?;
            side.write(b"no hello of a server")?;
            // Waits until the other side closes.
            let _ = side.read();
            Ok(())
        });
        let proxy = Proxy::start(peer.addr(), &["--tls-own-file", file.to_str().unwrap()]);
        proxy.wait_for_log("clients are offered no TLS");
        let refused = WireClient::try_login(proxy.addr(), &enciphered());
        let error = refused.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("offers no TLS"), "{error}");
    });
}

/// `check` reports the path before anything is served, and creates no file.
#[test]
fn check_says_where_it_is_kept() {
    on_each_stage(|stage| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("none/tls.pem");
        let path = file.to_str().unwrap();
        let check = |flags: &[&str]| {
            let mut command = headwater(&[]);
            command.args(["check", "--upstream", &stage.addr().to_string()]);
            command
                .args(["--listen", "127.0.0.1:0", "--admin-listen", ""])
                .args(flags);
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        let said = check(&["--tls-own-file", path]);
        assert!(
            said.contains("clients are offered TLS by a certificate of Headwater's own"),
            "{said}"
        );
        assert!(
            said.contains(&format!("to be made at the start, and kept in {path}")),
            "{said}"
        );
        assert!(!file.exists());
        let said = check(&["--tls-own", "false"]);
        assert!(!said.contains("certificate"), "{said}");
        std::fs::write(folder.path().join("none"), "a file").unwrap();
        let said = check(&["--tls-own-file", path]);
        assert!(
            said.contains("in the way: cannot read tls.own_file"),
            "{said}"
        );
    });
}
