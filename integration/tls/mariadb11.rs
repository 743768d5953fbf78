//! MariaDB 11.8: its clients require TLS and verify the server by the proof of its certificate that the account's password yields.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use headwater_lab::private_server::PrivateServer;

use crate::kit::certificates::Authority;
use crate::kit::database::classic_on;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::relay::Relay;
use crate::kit::servers::if_here;
use crate::kit::wire_client::WireClient;

const DATABASE: &str = "eleven";
/// The server's password plugins.
const PLUGINS: [&str; 3] = ["mysql_native_password", "ed25519", "parsec"];
const SCRIPT: &str = "SELECT CURRENT_USER(); SHOW STATUS LIKE 'Ssl_cipher'; CALL fetch_timeline_ids(1); \
     SELECT message.id, user_id, body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20; \
     CALL fetch_timeline_ids2(1, 20); SELECT COUNT(*) FROM fetch_timeline_tt; SHOW WARNINGS";

/// What the product's own client prints as this user, or the number of its error.
fn told(
    server: &PrivateServer,
    addr: SocketAddr,
    user: &str,
    password: &str,
    flags: &[&str],
) -> Result<String, u32> {
    let mut client: Command = server.client();
    let output = client
        .arg(format!("--host={}", addr.ip()))
        .arg("--protocol=tcp")
        .arg(format!("--port={}", addr.port()))
        .arg(format!("--user={user}"))
        .arg(format!("--password={password}"))
        .args(flags)
        .args(["-vvv", "--execute", SCRIPT, DATABASE])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // The printed duration differs.
        let timed = |line: &&str| !line.ends_with(" sec)");
        return Ok(said.lines().filter(timed).collect::<Vec<_>>().join("\n"));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let number = said.split("ERROR ").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    Err(number.unwrap_or_else(|| panic!("{said}")))
}

#[test]
fn clients_that_verify_by_the_password_want_the_servers_own_certificate() {
    let authority = Authority::new();
    // Self-signed, like the servers' own. For a certificate that a CA has signed, known or not, these clients require no proof.
    let theirs = authority.sign_by_itself("server");
    let (own, signed) = (
        authority.sign_by_itself("headwater"),
        authority.sign("known"),
    );
    let mut options = authority.server_options(&theirs);
    options.extend(
        ["auth_ed25519", "auth_parsec"].map(|plugin| format!("--plugin-load-add={plugin}")),
    );
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(server) = if_here(PrivateServer::start_mariadb11(&options)) else {
        return;
    };
    let mut root = WireClient::login(server.addr(), &classic_on(server.addr(), DATABASE));
    root.ok("INSERT INTO follower VALUES (1, 2), (1, 3)");
    root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (20, 3, 'twenty')");
    let configured = |settings: &str, cert: &str, key: &str| {
        let flags = ["--tls-cert", cert, "--tls-key", key];
        let flags = [ROOT_SERVICE, &flags].concat();
        let proxy = Proxy::configured(server.addr(), settings, &flags);
        proxy.wait_for_log(&format!("in database {DATABASE}: accelerated"));
        proxy
    };
    let shown = |cert: &str, key: &str| configured("", cert, key);
    // Clients trust 127.0.0.1 without proof, so each server is reached at another address of the machine.
    let away = |addr| Relay::start_at(Ipv4Addr::new(127, 0, 0, 2), addr).addr();
    let same = shown(theirs.cert(), theirs.key());
    let another = shown(own.cert(), own.key());
    let known = shown(signed.cert(), signed.key());
    let [direct_addr, same_addr, another_addr, known_addr] =
        [server.addr(), same.addr(), another.addr(), known.addr()].map(away);
    // Either leg can use TLS alone, whatever the plugin.
    let apart = |mode: &str| {
        let settings = format!("[upstream_tls]\nmode = '{mode}'\nmirror = false\n");
        configured(&settings, own.cert(), own.key())
    };
    let (in_front, behind) = (apart("disabled"), apart("required"));
    let [in_front_addr, behind_addr] = [in_front.addr(), behind.addr()].map(away);
    let ca = format!("--ssl-ca={}", authority.path().display());
    for plugin in PLUGINS {
        eprintln!("{plugin}");
        let user = format!("u_{plugin}");
        root.ok(&format!(
            "CREATE USER {user}@'%' IDENTIFIED VIA {plugin} USING PASSWORD('geheim')"
        ));
        root.ok(&format!("GRANT ALL ON *.* TO {user}@'%'"));
        let ask = |addr, password, flags: &[&str]| told(&server, addr, &user, password, flags);
        let direct = ask(direct_addr, "geheim", &[]);
        let said = direct.as_deref().unwrap();
        assert!(
            said.contains(&user) && said.contains("TLS_AES") && said.contains("twenty"),
            "{said}"
        );
        assert_eq!(ask(same_addr, "geheim", &[]), direct);
        // Any server could present this certificate.
        assert_eq!(ask(another_addr, "geheim", &[]), Err(2026));
        assert_eq!(ask(known_addr, "geheim", &[&ca]), direct);
        let unverified = ask(
            another_addr,
            "geheim",
            &["--disable-ssl-verify-server-cert"],
        );
        assert_eq!(unverified, direct);
        for addr in [direct_addr, same_addr] {
            let wrong = ask(addr, "falsch", &[]);
            assert_eq!(wrong, ask(direct_addr, "falsch", &[]));
            assert!(wrong.is_err());
        }
        // Without TLS too, if the client allows that.
        let plain = ask(direct_addr, "geheim", &["--skip-ssl"]);
        assert_eq!(ask(same_addr, "geheim", &["--skip-ssl"]), plain);
        assert!(plain.is_ok(), "{plain:?}");
        assert_ne!(plain, direct);
        let alone = ask(
            in_front_addr,
            "geheim",
            &["--disable-ssl-verify-server-cert"],
        );
        assert_eq!(alone, plain);
        let alone = ask(behind_addr, "geheim", &["--skip-ssl"]);
        assert_eq!(alone, direct);
    }
    for (proxy, sessions) in [
        (&same, 2),
        (&another, 1),
        (&known, 1),
        (&in_front, 1),
        (&behind, 1),
    ] {
        let counts = proxy.counts();
        let calls = 2 * sessions * PLUGINS.len() as u64;
        assert_eq!(counts.of("calls_owned"), calls, "{counts:?}");
        assert_eq!(counts.relayed(), 0, "{counts:?}");
    }
}
