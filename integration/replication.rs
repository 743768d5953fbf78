//! Replicas with Headwater's address in place of their source's.

use headwater_lab::private_server::{PrivateServer, ServerKind};

use crate::kit::certificates::Authority;
use crate::kit::proxy::Proxy;
use crate::kit::replica::{another, follow, from_now_on, wait_for};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// A source, a replica of it, and Headwater between them.
struct Stage<'a> {
    source: &'a PrivateServer,
    replica: PrivateServer,
    proxy: Proxy,
    /// The number of the source's rows.
    rows: u64,
}

impl Stage<'_> {
    fn sql(&self, server: &PrivateServer, statements: &[&str]) {
        let mut root = WireClient::connect(server.addr());
        for statement in statements {
            root.ok(statement);
        }
    }

    /// Configures the replica for this form of replication only.
    fn replicate(&self, user: &str, from: &str, options: &str) {
        let stop: &[&str] = match self.source.kind() {
            ServerKind::Mariadb => &["STOP SLAVE", "RESET SLAVE ALL"],
            ServerKind::Mysql => &["STOP REPLICA", "RESET REPLICA ALL"],
        };
        self.sql(&self.replica, stop);
        let options = format!("{from}{options}");
        follow(&self.replica, self.proxy.addr().port(), user, &options);
    }

    /// Writes on the source, in small events and in one of more than a packet, and waits for the rows on the replica.
    #[track_caller]
    fn arrives(&mut self) {
        let mut root = WireClient::connect(self.source.addr());
        for bytes in [1, 300, 17 * 1024 * 1024, 2] {
            let n = self.rows;
            root.ok(&format!(
                "INSERT INTO kept.words VALUES ({n}, REPEAT('w', {bytes}))"
            ));
            self.rows += 1;
            let there =
                format!("SELECT COUNT(*) FROM kept.words WHERE n = {n} AND LENGTH(word) = {bytes}");
            wait_for(&self.replica, &there);
        }
    }
}

fn on_each_stage(story: impl Fn(&mut Stage<'_>)) {
    on_each_stage_with("", story);
}

fn on_each_stage_with(settings: &str, story: impl Fn(&mut Stage<'_>)) {
    let authority = Authority::new();
    let (theirs, own) = (authority.sign("server"), authority.sign("headwater"));
    let mut options = authority.server_options(&theirs);
    options.push("--max-allowed-packet=64M".to_owned());
    let global_ids = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    let mariadb: Vec<&str> = options.iter().map(String::as_str).collect();
    let mysql = [&mariadb[..], &global_ids].concat();
    on_servers_of_its_own(
        |is_mariadb| if is_mariadb { &mariadb } else { &mysql },
        |source| {
            let options = match source.kind() {
                ServerKind::Mariadb => &mariadb,
                ServerKind::Mysql => &mysql,
            };
            let replica = another(source, options);
            let flags = ["--tls-cert", own.cert(), "--tls-key", own.key()];
            let proxy = Proxy::configured(source.addr(), settings, &flags);
            let mut stage = Stage {
                source,
                replica,
                proxy,
                rows: 0,
            };
            let made = [
                "CREATE DATABASE kept",
                "CREATE TABLE kept.words (n int PRIMARY KEY, word longblob)",
            ];
            for server in [stage.source, &stage.replica] {
                // Unlogged: each server has its own account.
                let unlogged = [&["SET sql_log_bin = 0"], &made[..]].concat();
                stage.sql(server, &unlogged);
            }
            story(&mut stage);
        },
    );
}

#[test]
fn a_replica_follows_its_source_through_headwater() {
    on_each_stage(|stage| {
        stage.replicate("root", &from_now_on(stage.source), "");
        stage.arrives();
        // From the replica's own position.
        let by_id = match stage.source.kind() {
            ServerKind::Mariadb => "MASTER_USE_GTID = slave_pos",
            ServerKind::Mysql => "SOURCE_AUTO_POSITION = 1",
        };
        stage.replicate("root", by_id, "");
        stage.arrives();
        // A replica that reconnects gets the events it missed.
        let (stop, start) = match stage.source.kind() {
            ServerKind::Mariadb => ("STOP SLAVE", "START SLAVE"),
            ServerKind::Mysql => ("STOP REPLICA", "START REPLICA"),
        };
        stage.sql(&stage.replica, &[stop]);
        let n = stage.rows;
        stage.rows += 1;
        let insert = format!("INSERT INTO kept.words VALUES ({n}, 'meanwhile')");
        stage.sql(stage.source, &[&insert]);
        stage.sql(&stage.replica, &[start]);
        stage.arrives();
        wait_for(
            &stage.replica,
            &format!("SELECT COUNT(*) FROM kept.words WHERE n = {n}"),
        );
    });
}

#[test]
fn a_replica_follows_its_source_behind_tls_and_in_frames() {
    on_each_stage(|stage| {
        let made = [
            "CREATE USER secret@'%' REQUIRE SSL",
            "GRANT REPLICATION SLAVE ON *.* TO secret@'%'",
        ];
        stage.sql(
            stage.source,
            &[&["SET sql_log_bin = 0"], &made[..]].concat(),
        );
        let (tls, squeeze, frames) = match stage.source.kind() {
            ServerKind::Mariadb => (
                ", MASTER_SSL = 1, MASTER_SSL_VERIFY_SERVER_CERT = 0",
                Some("SET GLOBAL slave_compressed_protocol = 1"),
                "",
            ),
            // Uncompressed connections are not allowed.
            ServerKind::Mysql => (
                ", SOURCE_SSL = 1",
                None,
                ", SOURCE_COMPRESSION_ALGORITHMS = 'zstd'",
            ),
        };
        stage.replicate("secret", &from_now_on(stage.source), tls);
        stage.arrives();
        if let Some(squeeze) = squeeze {
            stage.sql(&stage.replica, &[squeeze]);
        }
        stage.replicate("root", &from_now_on(stage.source), frames);
        stage.arrives();
        let both = format!("{tls}{frames}");
        stage.replicate("secret", &from_now_on(stage.source), &both);
        stage.arrives();
    });
}

/// The replica acknowledges on the same connection, and the source waits for that.
#[test]
fn a_semi_synchronous_replica_answers_through_headwater() {
    on_each_stage(answers);
}

/// The source counts frames, the replica packets, and both restart with each reply.
#[test]
fn replicas_without_frames_follow_a_source_in_frames() {
    on_each_stage_with("[compression]\nserver = 'where-offered'\n", |stage| {
        stage.replicate("root", &from_now_on(stage.source), "");
        stage.arrives();
        // More events than there are sequence numbers.
        let mut root = WireClient::connect(stage.source.addr());
        for _ in 0..300 {
            let n = stage.rows;
            root.ok(&format!(
                "INSERT INTO kept.words VALUES ({n}, 'one of many')"
            ));
            stage.rows += 1;
        }
        stage.arrives();
        answers(stage);
    });
}

#[test]
fn replicas_in_frames_follow_a_source_without() {
    on_each_stage_with("[compression]\nserver = 'never'\n", |stage| {
        let frames = match stage.source.kind() {
            ServerKind::Mariadb => {
                stage.sql(
                    &stage.replica,
                    &["SET GLOBAL slave_compressed_protocol = 1"],
                );
                ""
            }
            ServerKind::Mysql => ", SOURCE_COMPRESSION_ALGORITHMS = 'zlib'",
        };
        stage.replicate("root", &from_now_on(stage.source), frames);
        stage.arrives();
    });
}

/// The replica acknowledges the events.
fn answers(stage: &mut Stage<'_>) {
    let before = stage.rows;
    let (of_source, of_replica, answered): (&[&str], &[&str], _) = match stage.source.kind() {
        ServerKind::Mariadb => (
            &[
                "SET GLOBAL rpl_semi_sync_master_timeout = 30000",
                "SET GLOBAL rpl_semi_sync_master_enabled = 1",
            ],
            &["SET GLOBAL rpl_semi_sync_slave_enabled = 1"],
            "Rpl_semi_sync_master_yes_tx",
        ),
        ServerKind::Mysql => (
            &[
                "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
                "SET GLOBAL rpl_semi_sync_source_timeout = 30000",
                "SET GLOBAL rpl_semi_sync_source_enabled = 1",
            ],
            &[
                "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'",
                "SET GLOBAL rpl_semi_sync_replica_enabled = 1",
            ],
            "Rpl_semi_sync_source_yes_tx",
        ),
    };
    stage.sql(&stage.replica, of_replica);
    stage.sql(stage.source, of_source);
    stage.replicate("root", &from_now_on(stage.source), "");
    stage.arrives();
    let mut root = WireClient::connect(stage.source.addr());
    let rows = root.rows(&format!("SHOW GLOBAL STATUS LIKE '{answered}'"));
    let count: u64 = rows[0][1].as_deref().unwrap().parse().unwrap();
    let written = stage.rows - before;
    assert!(count >= written - 1, "{count} of {written}");
}
