//! Servers whose commits wait for a replica to acknowledge them (semi-synchronous replication).

use std::time::Duration;

use headwater_lab::private_server::{PrivateServer, ServerKind};

use crate::kit::wire_client::WireClient;

/// The word for a source in the names of settings.
pub(crate) fn word(server: &PrivateServer) -> &'static str {
    match server.kind() {
        ServerKind::Mysql => "source",
        ServerKind::Mariadb => "master",
    }
}

/// Has each commit of a server wait this long for a replica, even where there is none.
pub(crate) fn wait_for_nobody(server: &PrivateServer, point: &str, patience: Duration) {
    let mut root = WireClient::connect(server.addr());
    let word = word(server);
    match server.kind() {
        ServerKind::Mysql => {
            // The plugin may already be installed.
            root.query("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'");
        }
        ServerKind::Mariadb => {
            root.ok("SET GLOBAL rpl_semi_sync_master_wait_no_slave = 1");
        }
    }
    for (name, value) in [
        ("wait_point", point),
        ("timeout", &patience.as_millis().to_string()),
        ("enabled", "1"),
    ] {
        root.ok(&format!("SET GLOBAL rpl_semi_sync_{word}_{name} = {value}"));
    }
}

/// Runs a statement that the log contains this long before its effects are visible to others.
#[track_caller]
pub(crate) fn run_told_early(
    server: &PrivateServer,
    client: &mut WireClient,
    statement: &str,
    early: Duration,
) {
    wait_for_nobody(server, "AFTER_SYNC", early);
    client.ok(statement);
    let_go(server);
}

/// Ends the wait: commits that wait return, and later ones do not wait.
pub(crate) fn let_go(server: &PrivateServer) {
    let mut root = WireClient::connect(server.addr());
    let word = word(server);
    root.ok(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled = 0"));
}
