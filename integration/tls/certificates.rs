//! Which side verifies which certificate, and certificates that change.

use std::fs;

use nix::sys::signal::Signal;

use super::{Stage, enciphered, on_each_stage};
use crate::kit::certificates::{Authority, read, trust_anyone};
use crate::kit::proxy::Proxy;
use crate::kit::wire_client::{Login, WireClient};

#[test]
fn clients_may_verify_headwater() {
    on_each_stage(|stage| {
        let proxy = stage.proxy("", &[]);
        let login = Login::default().tls(&stage.authority.trust(None));
        let mut client = proxy.login(&login);
        assert_eq!(client.stream.certificate(), Some(read(&stage.own.cert)));
        client.ok("DO 1");
        let stranger = Login::default().tls(&Authority::new().trust(None));
        let error = WireClient::try_login(proxy.addr(), &stranger).map(|_| ());
        assert!(error.unwrap_err().to_string().contains("UnknownIssuer"));
        let first_try = Proxy::start(stage.addr(), &["--tls-self-signed"]);
        first_try.login(&enciphered()).ok("DO 1");
    });
}

#[test]
fn a_server_that_does_not_prove_what_it_should_is_not_logged_in_to() {
    on_each_stage(|stage| {
        let stranger = Authority::new();
        let (own, others) = (stage.authority.path(), stranger.path());
        let (own, others) = (own.to_str().unwrap(), others.to_str().unwrap());
        for (mode, ca, name, error) in [
            ("verify-ca", own, "", None),
            ("verify-identity", own, "", None),
            ("verify-identity", own, "name = 'localhost'", None),
            ("verify-ca", own, "name = 'elsewhere'", None),
            ("verify-ca", others, "", Some("UnknownIssuer")),
            ("verify-identity", others, "", Some("UnknownIssuer")),
            (
                "verify-identity",
                own,
                "name = 'elsewhere'",
                Some("not valid for name"),
            ),
        ] {
            let settings = format!("[upstream_tls]\nmode = '{mode}'\nca = '{ca}'\n{name}\n");
            let proxy = stage.proxy(&settings, &[]);
            let login = WireClient::try_login(proxy.addr(), &enciphered()).unwrap();
            match (login, error) {
                (Ok(mut client), None) => drop(client.ok("DO 1")),
                (Err(told), Some(error)) => {
                    assert!(told.message.contains(error), "{told:?}");
                    assert!(
                        told.message
                            .contains(&format!("upstream_tls.mode = {mode}"))
                    );
                }
                (login, _) => panic!("{mode} {ca} {name}: {:?}", login.err()),
            }
        }
    });
}

/// An account that requires a certificate gets Headwater's: a client's own cannot be passed on.
#[test]
fn a_certificate_for_the_server_is_headwaters() {
    on_each_stage(|stage| {
        let mut root = stage.root();
        root.ok("CREATE USER shows@'%'");
        root.ok("ALTER USER shows@'%' REQUIRE X509");
        let login = enciphered().user("shows");
        let without = stage.proxy("", &[]);
        let refused = WireClient::try_login(without.addr(), &login).unwrap();
        assert_eq!(refused.map(|_| ()).unwrap_err().code, 1045);
        let identity = stage.authority.sign("for_the_server");
        let (cert, key) = (identity.cert(), identity.key());
        let settings = format!("[upstream_tls]\ncert = '{cert}'\nkey = '{key}'\n");
        stage.proxy(&settings, &[]).login(&login).ok("DO 1");
    });
}

#[test]
fn clients_may_have_to_show_a_certificate() {
    on_each_stage(|stage| {
        let ca = stage.authority.path();
        let settings = format!("[tls]\nclient_ca = '{}'\n", ca.display());
        let proxy = stage.proxy(&settings, &[]);
        let anyone = WireClient::try_login(proxy.addr(), &enciphered());
        assert!(anyone.is_err() || anyone.unwrap().is_err());
        let identity = stage.authority.sign("a_client");
        let login = Login::default().tls(&stage.authority.trust(Some(&identity)));
        proxy.login(&login).ok("DO 1");
    });
}

#[test]
fn a_certificate_is_read_again_on_sighup_and_who_is_connected_stays() {
    on_each_stage(|stage: &mut Stage<'_>| {
        let shown = stage.authority.sign("shown");
        let flags = ["--tls-cert", shown.cert(), "--tls-key", shown.key()];
        let proxy = Proxy::start(stage.addr(), &flags);
        let login = Login::default().tls(&trust_anyone());
        let first = read(&shown.cert);
        let mut early = proxy.login(&login);
        assert_eq!(early.stream.certificate(), Some(first.clone()));

        // A key of another certificate: the old pair stays in use.
        let next = stage.authority.sign("next");
        fs::copy(&next.cert, &shown.cert).unwrap();
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("stay as they were");
        assert!(
            proxy.log().contains("tls.cert and tls.key"),
            "{}",
            proxy.log()
        );
        let mut client = proxy.login(&login);
        assert_eq!(client.stream.certificate(), Some(first));
        client.ok("DO 1");

        fs::copy(&next.key, &shown.key).unwrap();
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("are read again");
        let mut late = proxy.login(&login);
        assert_eq!(late.stream.certificate(), Some(read(&next.cert)));
        for client in [&mut early, &mut client, &mut late] {
            client.ok("DO 1");
        }
    });
}
