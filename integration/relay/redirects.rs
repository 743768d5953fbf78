//! MariaDB's `redirect_url`: a server that redirects its clients elsewhere, and clients that stay with Headwater.

use std::net::SocketAddr;

use headwater_lab::private_server::PrivateServer;

use crate::kit::certificates::trust_anyone;
use crate::kit::proxy::Proxy;
use crate::kit::servers::if_here;
use crate::kit::wire_client::capability::{DEPRECATE_EOF, SESSION_TRACK};
use crate::kit::wire_client::packet::Values;
use crate::kit::wire_client::{Login, OkPacket, WireClient};

const PASS: &str = "redirect_url = 'pass'\n";
const REDIRECT: &str = "redirect_url";
/// In the status of an OK: session state changes follow the message.
const STATE_CHANGED: u16 = 0x4000;

/// The session state changes in an OK: kinds and their bytes; for a variable (0), its name and value.
fn told(ok: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let ok = OkPacket::parse(ok);
    if ok.status & STATE_CHANGED == 0 {
        return Vec::new();
    }
    let mut rest = Values(&ok.rest);
    rest.bytes();
    let mut state = Values(rest.bytes());
    let mut told = Vec::new();
    while !state.0.is_empty() {
        let kind = state.int(1) as u8;
        let mut values = Values(state.bytes());
        if kind != 0 {
            told.push((kind, values.0.to_vec()));
            continue;
        }
        while !values.0.is_empty() {
            let (name, value) = (values.bytes(), values.bytes());
            told.push((kind, [name, b"=", value].concat()));
        }
    }
    told
}

/// Logs in and returns the payload of the OK; the session works.
fn answer(addr: SocketAddr, login: &Login) -> Vec<u8> {
    let mut client = WireClient::login(addr, login);
    assert_eq!(client.column("SELECT 'in step'"), ["in step"]);
    client.login_raw.split_off(4)
}

#[test]
fn a_client_stays_unless_it_may_be_sent_elsewhere() {
    let Some(server) = if_here(PrivateServer::start_mariadb11(&[])) else {
        return;
    };
    let url = "mysql://10.1.2.3:3306";
    let stay = Proxy::start(server.addr(), &["--tls-self-signed"]);
    let pass = Proxy::configured(server.addr(), PASS, &["--tls-self-signed"]);
    let mut root = WireClient::connect(server.addr());
    for settings in [
        "",
        "SET GLOBAL session_track_system_variables = 'redirect_url,time_zone'",
        "SET GLOBAL session_track_system_variables = 'redirect_url'",
        // Then the redirect is the only tracked change.
        "SET GLOBAL session_track_schema = OFF",
    ] {
        if !settings.is_empty() {
            root.ok(settings);
        }
        root.ok(&format!("SET GLOBAL redirect_url = '{url}'"));
        let tracked = Login::default().with(SESSION_TRACK).database("mysql");
        for login in [
            tracked.clone(),
            tracked.clone().without(DEPRECATE_EOF),
            tracked.tls(&trust_anyone()),
        ] {
            let direct = answer(server.addr(), &login);
            let redirect = (0, format!("{REDIRECT}={url}").into_bytes());
            assert!(
                told(&direct).contains(&redirect),
                "{}",
                direct.escape_ascii()
            );
            assert_eq!(answer(pass.addr(), &login), direct);
            let stays = answer(stay.addr(), &login);
            let mut others = told(&direct);
            others.retain(|one| *one != redirect);
            assert_eq!(told(&stays), others, "{}", stays.escape_ascii());
            // No affected rows, no insert id.
            assert_eq!(stays[..3], direct[..3]);
        }
        // A client without session tracking receives no changes, and without a redirect nothing is removed.
        let plain = Login::default();
        assert_eq!(answer(stay.addr(), &plain), answer(server.addr(), &plain));
        root.ok("SET GLOBAL redirect_url = ''");
        let tracked = Login::default().with(SESSION_TRACK);
        assert_eq!(
            answer(stay.addr(), &tracked),
            answer(server.addr(), &tracked)
        );
    }
}
