//! Conditions on the local machine that would stop `serve`, and the check cleans up after itself.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::check;
use crate::kit::certificates::Authority;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, free_addr};
use crate::kit::servers::{mariadb, on_each_server, on_servers_of_its_own};

const PART: &str = "This machine";

#[test]
fn certificate_and_key_are_read() {
    let server = mariadb().addr();
    let authority = Authority::new();
    let (own, other) = (authority.sign("headwater"), authority.sign("other"));
    for (cert, key, named) in [
        ("no/such.pem", own.key(), "tls.cert = no/such.pem"),
        (own.cert(), own.cert(), "tls.key = "),
        (own.cert(), other.key(), "tls.cert and tls.key: "),
    ] {
        let checked = check(server, "", &["--tls-cert", cert, "--tls-key", key]);
        assert_eq!(checked.status, 1);
        let found = checked.part(PART);
        let about = |line: &&&str| line.starts_with("in the way: ") && line.contains(named);
        assert_eq!(found.iter().filter(about).count(), 1, "{found:?}");
    }
}

#[test]
fn the_admin_port_is_tried() {
    let server = mariadb().addr();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let flags = ["--admin-listen", &listen];
    let says = |text: &str| {
        let found = check(server, "", &flags).part(PART).join("\n");
        assert!(found.contains(text), "no {text} in:\n{found}");
    };
    says(&format!(
        "in the way: admin.listen = {listen} (--admin-listen, HEADWATER_ADMIN_LISTEN) cannot be opened"
    ));
    drop(taken);
    says("HEADWATER_ADMIN_LISTEN) is free");
    let proxy = Proxy::start(server, &flags);
    proxy.wait_for_log("operators look in at http://");
    says("HEADWATER_ADMIN_LISTEN) is taken, by a Headwater as it seems");
}

/// TLS would be offered to no client, and `tls.required` would refuse every client.
#[test]
fn tls_in_front_of_a_server_without_it_is_in_the_way_and_warned_of() {
    let without = |mariadb| {
        if mariadb {
            &["--skip-ssl"]
        } else {
            &["--tls-version="]
        }
    };
    on_servers_of_its_own(
        |mariadb| without(mariadb),
        |server| {
            for (settings, told) in [
                ("[tls]\nself_signed = true\n", "though a certificate is set"),
                (
                    "[tls]\nself_signed = true\nrequired = true\n",
                    "tls.required has them refused",
                ),
            ] {
                let checked = check(server.addr(), settings, &[]);
                assert_eq!(checked.status, 1);
                let proxy = Proxy::configured(server.addr(), settings, &[]);
                proxy.wait_for_log("the server has no TLS");
                for said in [&checked.report, &proxy.log()] {
                    for part in [told, "ssl_cert", "upstream_tls.mirror = false"] {
                        assert!(said.contains(part), "no {part} in:\n{said}");
                    }
                }
                let ended = format!("{settings}[upstream_tls]\nmirror = false\n");
                let checked = check(server.addr(), &ended, &[]);
                assert_eq!(checked.status, 0);
                checked.says("certificate and key (tls) can be used");
            }
        },
    );
}

/// A server certificate that fails verification is not reported as a fault of the account.
#[test]
fn a_wrong_ca_is_not_taken_for_a_wrong_password() {
    let (authority, others) = (Authority::new(), Authority::new());
    let theirs = authority.sign("server");
    let options = authority.server_options(&theirs);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    on_servers_of_its_own(
        |_| &options,
        |server| {
            let ca = others.path();
            let flags = ["--upstream-tls", "verify-ca", "--upstream-tls-ca"];
            let flags = [&flags[..], &[ca.to_str().unwrap()], ROOT_SERVICE].concat();
            let checked = check(server.addr(), "", &flags);
            assert_eq!(checked.status, 1);
            checked.says("in the way: no TLS with the server (upstream_tls.mode = verify-ca)");
            for said in [&checked.report, &checked.said] {
                assert!(said.contains("upstream_tls.ca"), "{said}");
                assert!(!said.contains("service.password"), "{said}");
            }
            // A wrong password is not reported as a wrong CA either.
            let own = authority.path();
            let flags = [
                "--upstream-tls",
                "verify-ca",
                "--upstream-tls-ca",
                own.to_str().unwrap(),
            ];
            let account = ["--service-user", "root", "--service-password", "wrong"];
            let checked = check(server.addr(), "", &[&flags[..], &account].concat());
            assert!(
                checked.said.contains("service.password"),
                "{}",
                checked.said
            );
            assert!(!checked.said.contains("upstream_tls"), "{}", checked.said);
        },
    );
}

#[test]
fn a_port_is_tried_and_who_has_it_is_told_apart() {
    on_each_server(|server| {
        let listening = |addr: &str| check(server.addr(), "", &["--listen", addr]);
        let free = free_addr().to_string();
        for _ in 0..2 {
            let checked = listening(&free);
            assert_eq!(checked.status, 0);
            checked.says(&format!("listen = {free} is free"));
        }
        // The check releases the port.
        let taken = TcpListener::bind(&free).unwrap();
        let checked = listening(&free);
        assert_eq!(checked.status, 1);
        checked.says("is taken by another process");
        drop(taken);

        let proxy = Proxy::start(server.addr(), &[]);
        let checked = listening(&proxy.addr().to_string());
        assert_eq!(checked.status, 0);
        checked.says("is taken, by a Headwater in front of this server as it seems");

        let checked = listening(&server.addr().to_string());
        assert_eq!(checked.status, 1);
        checked.says("is the server's own address");

        let checked = listening("192.0.2.1:3307");
        assert_eq!(checked.status, 1);
        checked.says("in the way: cannot listen on 192.0.2.1:3307 (--listen");
    });
}

#[test]
fn a_socket_is_tried_and_nothing_is_left_behind() {
    let server = mariadb().addr();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headwater.sock");
    let opening = |path: &str| check(server, "", &["--socket", path]);
    let at = path.to_str().unwrap();
    let checked = opening(at);
    assert_eq!(checked.status, 0);
    checked.says("can be opened");
    assert!(!path.exists(), "a socket was left behind");

    let checked = opening(folder.path().join("no/such.sock").to_str().unwrap());
    assert_eq!(checked.status, 1);
    checked.says("cannot be opened");

    let others = UnixListener::bind(&path).unwrap();
    drop(others);
    let checked = opening(at);
    assert_eq!(checked.status, 0);
    checked.says("was left behind by a process that is gone");
    assert!(path.exists(), "a file of others was removed");
    std::fs::remove_file(&path).unwrap();

    let proxy = Proxy::start(server, &["--socket", at]);
    let checked = opening(at);
    assert_eq!(checked.status, 0);
    checked.says("by a Headwater in front of this server");
    drop(proxy);
    std::fs::remove_file(&path).unwrap();

    std::fs::write(&path, "text").unwrap();
    let checked = opening(at);
    assert_eq!(checked.status, 1);
    checked.says("is no socket");
}

#[test]
fn memory_that_is_of_no_use_is_in_the_way_and_warned_of() {
    let server = mariadb().addr();
    let settings = "[index]\nmemory_bytes = 1000\n";
    let checked = check(server, settings, ROOT_SERVICE);
    assert_eq!(checked.status, 1);
    checked.says("in the way: index.memory_bytes = 1000");
    let proxy = Proxy::configured(server, settings, ROOT_SERVICE);
    proxy.wait_for_log("index.memory_bytes = 1000");
}
