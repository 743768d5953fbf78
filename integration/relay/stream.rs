//! Streams whose end only their two ends can recognize.

use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::{COM_BINLOG_DUMP, Login};

#[test]
fn a_replica_reads_the_binary_log_through_headwater() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_binlog");
        let mut root = database.connect();
        root.ok("CREATE TABLE t (id int)");
        let log = root.rows("SHOW BINARY LOGS").pop().unwrap()[0]
            .clone()
            .unwrap();
        let proxy = Proxy::start(server.addr(), &[]);
        let mut replica = proxy.login(&Login::default());
        replica.query(
            "SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE', \
             @mariadb_slave_capability = 4",
        );
        let mut dump = vec![COM_BINLOG_DUMP];
        dump.extend(4_u32.to_le_bytes());
        dump.extend([0, 0]);
        dump.extend(4_242_u32.to_le_bytes());
        dump.extend(log.as_bytes());
        replica.send(&dump).unwrap();
        for word in ["the first of these words", "the second of these words"] {
            root.ok(&format!("CREATE TABLE `{word}` (id int)"));
            loop {
                let event = replica.read_packet().unwrap().payload;
                assert_eq!(event[0], 0, "{}", event.escape_ascii());
                if event
                    .windows(word.len())
                    .any(|window| window == word.as_bytes())
                {
                    break;
                }
            }
        }
    });
}
