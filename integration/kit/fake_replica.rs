//! A replica that only receives: it registers under a given server id, and the server sends it the log.

use std::io;
use std::net::SocketAddr;

use super::wire_client::packet::Packet;
use super::wire_client::{COM_BINLOG_DUMP, WireClient};

const COM_REGISTER: u8 = 0x15;
const ERR: u8 = 0xff;

/// A registered replica, connected until drop.
#[derive(Debug)]
pub(crate) struct FakeReplica(WireClient);

impl FakeReplica {
    /// Registers with this server id, and with a UUID where one is given, as real MySQL replicas have.
    #[track_caller]
    pub(crate) fn start(server: SocketAddr, number: u32, uuid: Option<&str>) -> FakeReplica {
        let mut client = WireClient::connect(server);
        let status = match client.greeting.is_mariadb() {
            true => "SHOW MASTER STATUS",
            false => "SHOW BINARY LOG STATUS",
        };
        let row = client.rows(status).remove(0);
        let [file, position] = [0, 1].map(|at: usize| row[at].clone().unwrap());
        client.ok("SET @master_binlog_checksum = 'ALL', @source_binlog_checksum = 'ALL', @mariadb_slave_capability = 4");
        if let Some(uuid) = uuid {
            client.ok(&format!(
                "SET @replica_uuid = '{uuid}', @slave_uuid = '{uuid}'"
            ));
        }
        let register = [&[COM_REGISTER][..], &number.to_le_bytes(), &[0; 13]].concat();
        client.command(&register).unwrap();
        let position: u32 = position.parse().unwrap();
        let dump = [
            &[COM_BINLOG_DUMP][..],
            &position.to_le_bytes(),
            &[0; 2],
            &number.to_le_bytes(),
            file.as_bytes(),
        ];
        client.send(&dump.concat()).unwrap();
        FakeReplica(client)
    }

    /// The next event. The server's error packet counts as one.
    pub(crate) fn event(&mut self) -> io::Result<Packet> {
        let packet = self.0.read_packet()?;
        match packet.first_byte() {
            Some(ERR) => Err(io::Error::other(
                String::from_utf8_lossy(&packet.payload).into_owned(),
            )),
            _ => Ok(packet),
        }
    }
}

/// The server ids of the replicas that a server reports.
#[track_caller]
pub(crate) fn registered(root: &mut WireClient) -> Vec<u32> {
    let list = match root.greeting.is_mariadb() {
        true => "SHOW SLAVE HOSTS",
        false => "SHOW REPLICAS",
    };
    let mut numbers: Vec<u32> = root
        .column(list)
        .iter()
        .map(|number| number.parse().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// How many threads of a server send its log.
#[track_caller]
pub(crate) fn dump_threads(root: &mut WireClient) -> usize {
    let threads =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'";
    root.column(threads)[0].parse().unwrap()
}
