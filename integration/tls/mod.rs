//! TLS on either leg of Headwater, on both, or passed through.

mod certificates;
mod hostile;
mod legs;
mod mariadb11;
mod own;
mod plugins;

use std::net::SocketAddr;

use headwater_lab::private_server::PrivateServer;

use crate::kit::certificates::{Authority, Identity, trust_anyone};
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};

/// A server with TLS, and a CA that all sides trust.
struct Stage<'a> {
    server: &'a mut PrivateServer,
    authority: &'a Authority,
    /// Headwater's certificate.
    own: &'a Identity,
    mariadb: bool,
}

impl Stage<'_> {
    fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// A Headwater with its certificate and these settings.
    #[track_caller]
    fn proxy(&self, settings: &str, flags: &[&str]) -> Proxy {
        let own = ["--tls-cert", self.own.cert(), "--tls-key", self.own.key()];
        Proxy::configured(self.addr(), settings, &[&own[..], flags].concat())
    }

    fn root(&self) -> WireClient {
        WireClient::connect(self.addr())
    }

    /// An account with all rights, a password and this plugin.
    fn account(&self, user: &str, plugin: &str) -> Login {
        let how = if self.mariadb {
            format!("IDENTIFIED VIA {plugin} USING PASSWORD('geheim')")
        } else {
            format!("IDENTIFIED WITH {plugin} BY 'geheim'")
        };
        let mut root = self.root();
        root.ok(&format!("CREATE USER {user}@'%' {how}"));
        root.ok(&format!("GRANT ALL ON *.* TO {user}@'%'"));
        Login::default().user(user).password("geheim")
    }
}

/// Runs a scenario on a server of each product that has TLS.
fn on_each_stage(story: impl Fn(&mut Stage<'_>)) {
    let authority = Authority::new();
    let (theirs, own) = (authority.sign("server"), authority.sign("headwater"));
    let mut options = authority.server_options(&theirs);
    options.push("--max-allowed-packet=1G".to_owned());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    on_servers_of_its_own(
        |_| &options,
        |server| {
            let mariadb = server.kind() == headwater_lab::private_server::ServerKind::Mariadb;
            story(&mut Stage {
                server,
                authority: &authority,
                own: &own,
                mariadb,
            });
        },
    );
}

/// A login as `root` with TLS.
fn enciphered() -> Login {
    Login::default().tls(&trust_anyone())
}

/// The cipher of a session's connection to the server; empty without TLS.
#[track_caller]
fn cipher(client: &mut WireClient) -> String {
    let rows = client.rows("SHOW STATUS LIKE 'Ssl_cipher'");
    rows[0][1].clone().unwrap_or_default()
}
