//! The server in front of which all take their turns, its rows, and what is asked.

use anyhow::{Context, ensure};
use headwater_lab::bench::client::BenchClient;
use headwater_lab::bench::login::BenchAccount;
use headwater_lab::private_server::{PrivateServer, ServerKind};
use headwater_lab::query_path::query_packet;

const DATABASE: &str = "relay";
/// Rows of the table.
const ITEMS: u64 = 16_384;
/// Bytes of a value in the great result: so many for each row make 1 GiB.
const VALUE_BYTES: u64 = 65_536;
/// In front of a value of that length stand as many bytes.
const LENGTH_BYTES: u64 = 4;
/// Different statements with 20 keys.
const SELECTS: u64 = 64;
const KEYS: u64 = 20;
const ROWS_A_STATEMENT: usize = 1_024;

/// A statement and its right answer.
#[derive(Debug)]
pub(crate) struct CheckedStatement {
    pub(crate) packet: Vec<u8>,
    pub(crate) expected: Vec<u8>,
}

/// A private server with everything ready.
#[derive(Debug)]
pub(crate) struct RelayStage {
    pub(crate) server: PrivateServer,
    pub(crate) account: BenchAccount,
    pub(crate) point: Vec<CheckedStatement>,
    pub(crate) rows: Vec<CheckedStatement>,
    pub(crate) inserts: Vec<CheckedStatement>,
    /// The statement that answers 1 GiB.
    pub(crate) gigabyte: Vec<u8>,
}

impl RelayStage {
    pub(crate) fn start(kind: ServerKind, options: &[&str]) -> anyhow::Result<RelayStage> {
        let server = PrivateServer::start(kind, options)?;
        let mut account = BenchAccount {
            user: "root".to_owned(),
            password: String::new(),
            database: String::new(),
        };
        let address = server.addr().to_string();
        let mut client = BenchClient::connect(&address, &account)?;
        load(&mut client).context("cannot load the rows")?;
        DATABASE.clone_into(&mut account.database);
        let mut client = BenchClient::connect(&address, &account)?;
        let point = vec![CheckedStatement::new("DO 1", &mut client)?];
        let rows = (0..SELECTS)
            .map(|number| CheckedStatement::new(&select(number), &mut client))
            .collect::<anyhow::Result<_>>()?;
        let inserts = vec![CheckedStatement::new(&insert(), &mut client)?];
        Ok(RelayStage {
            server,
            account,
            point,
            rows,
            inserts,
            gigabyte: gigabyte(),
        })
    }

    /// Asks for the great result, counts it, and returns its bytes.
    pub(crate) fn ask_gigabyte(
        &self,
        client: &mut BenchClient,
        buffer: &mut [u8],
    ) -> anyhow::Result<u64> {
        let bytes = client.query_discarding(&self.gigabyte, buffer)?;
        let right = ITEMS * (VALUE_BYTES + LENGTH_BYTES);
        ensure!(
            bytes == right,
            "the rows of 1 GiB had {bytes} bytes, and not {right}"
        );
        Ok(bytes)
    }
}

impl CheckedStatement {
    /// The server's own answer is the right one.
    fn new(text: &str, direct: &mut BenchClient) -> anyhow::Result<CheckedStatement> {
        let packet = query_packet(text);
        let mut expected = Vec::new();
        direct
            .query(&packet, &mut expected)
            .with_context(|| format!("cannot ask {text}"))?;
        Ok(CheckedStatement { packet, expected })
    }
}

fn load(client: &mut BenchClient) -> anyhow::Result<()> {
    client.execute(&format!("CREATE DATABASE {DATABASE}"))?;
    client.execute(&format!("USE {DATABASE}"))?;
    client.execute(
        "CREATE TABLE item (id INT PRIMARY KEY, author INT NOT NULL, body VARCHAR(200) NOT NULL)",
    )?;
    // No id: the answer to each INSERT is the same.
    client.execute("CREATE TABLE post (author INT NOT NULL, body VARCHAR(200) NOT NULL)")?;
    let rows: Vec<_> = (0..ITEMS).map(row).collect();
    for rows in rows.chunks(ROWS_A_STATEMENT) {
        client.execute(&format!("INSERT INTO item VALUES {}", rows.join(",")))?;
    }
    Ok(())
}

/// Bodies are of 60 and 120 bytes.
fn row(id: u64) -> String {
    let body = body(if id.is_multiple_of(2) { 2 } else { 4 });
    format!("({id},{},'{body}')", id % 100)
}

fn body(parts: usize) -> String {
    "a message of ordinary length, ".repeat(parts)
}

fn insert() -> String {
    format!("INSERT INTO post VALUES (7,'{}')", body(4))
}

/// Repeats long texts: one letter again and again keeps the server busy, not the relay.
fn gigabyte() -> Vec<u8> {
    let repeated = "x".repeat(1_024);
    query_packet(&format!(
        "SELECT REPEAT('{repeated}', {}) FROM item",
        VALUE_BYTES / 1_024
    ))
}

/// Keys far from each other. Both factors are odd, so none comes twice.
fn select(number: u64) -> String {
    let key = |place: u64| ((number * 7_919 + place * 811) % ITEMS).to_string();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    format!(
        "SELECT id, author, body FROM item WHERE id IN ({})",
        keys.join(",")
    )
}
