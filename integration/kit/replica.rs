//! Servers that replicate from another one.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::wire_client::WireClient;
use crate::kit::patience;

/// Starts another server of the same product, to become a replica.
pub(crate) fn another(server: &PrivateServer, options: &[&str]) -> PrivateServer {
    let options = [options, &["--server-id=2"]].concat();
    match PrivateServer::start(server.kind(), &options) {
        Ok(server) => server,
        Err(error) => panic!("{error}"),
    }
}

/// Has a server replicate from that port, as a user without a password. `options` give the start position.
pub(crate) fn follow(replica: &PrivateServer, port: u16, user: &str, options: &str) {
    let mut root = WireClient::connect(replica.addr());
    match replica.kind() {
        ServerKind::Mariadb => {
            root.ok(&format!(
                "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_PASSWORD='', {options}"
            ));
            root.ok("START SLAVE");
        }
        ServerKind::Mysql => {
            root.ok(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='{user}', \
                 SOURCE_PASSWORD='', GET_SOURCE_PUBLIC_KEY=1, {options}"
            ));
            root.ok("START REPLICA");
        }
    }
}

/// The options of [`follow`] that start at the source's current position.
pub(crate) fn from_now_on(source: &PrivateServer) -> String {
    let mut root = WireClient::connect(source.addr());
    let (status, word) = match source.kind() {
        ServerKind::Mariadb => ("SHOW MASTER STATUS", "MASTER"),
        ServerKind::Mysql => ("SHOW BINARY LOG STATUS", "SOURCE"),
    };
    let rows = root.rows(status);
    let [file, position] = [0, 1].map(|column: usize| rows[0][column].clone().unwrap());
    format!("{word}_LOG_FILE='{file}', {word}_LOG_POS={position}")
}

/// Waits until a replica answers `select` with 1. It may fail or give other answers before.
#[track_caller]
pub(crate) fn wait_for(replica: &PrivateServer, select: &str) {
    let deadline = patience();
    let mut root = WireClient::connect(replica.addr());
    loop {
        let answers = root.query_reply(select).unwrap();
        let failed = answers.raw.get(4) == Some(&0xff);
        if !failed && root.column(select) == ["1"] {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the replica does not replicate: {:?}",
            root.rows("SHOW REPLICA STATUS")
        );
        thread::sleep(Duration::from_millis(1));
    }
}
