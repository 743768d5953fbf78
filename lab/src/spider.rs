//! A private MariaDB with the storage engine Spider, and the data nodes with its tables.
//!
//! The messages are partitioned by author, the follow lists optionally by reader. The bench and the scenario tests use it.

use std::path::{Path, PathBuf};

use super::bench::client::{BenchClient, BenchClientError};
use super::bench::login::BenchAccount;
use super::demo::{load, script};
use super::private_server::package_folder::PackageFolder;
use super::private_server::{PrivateServer, PrivateServerError, ServerKind};

/// The library that `setup/spider.sh` unpacks.
const LIBRARY: &str = "ha_spider.so";
/// Room for the data, so that the disk does not matter.
const BUFFER_POOL: &str = "--innodb-buffer-pool-size=256M";
/// By default Spider connects to each data node for each statement, which production setups avoid.
const KEEP_CONNECTIONS: &str = "--spider-conn-recycle-mode=1";
/// Columns and keys of the messages. A table partitioned by author has no key without the author; a data node's own table has.
const MESSAGE: &str = "id int unsigned NOT NULL, user_id int unsigned NOT NULL, body varchar(255) NOT NULL, \
     PRIMARY KEY (id, user_id), KEY user_id_id (user_id, id)";
const DATA_NODE_MESSAGE: &str = "id int unsigned NOT NULL, user_id int unsigned NOT NULL, body varchar(255) NOT NULL, \
     PRIMARY KEY (id), KEY user_id_id (user_id, id)";
const FOLLOWER: &str = "user_id int unsigned NOT NULL, follower_id int unsigned NOT NULL, \
     PRIMARY KEY (user_id, follower_id), KEY follower_id (follower_id)";

/// Why a Spider cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpiderError {
    /// A server did not start.
    #[error(transparent)]
    Server(#[from] PrivateServerError),
    /// A server refused a statement.
    #[error("could not make the tables of Spider")]
    Client(#[from] BenchClientError),
}

/// A Spider node and its data nodes. Dropping this value removes all of them.
#[derive(Debug)]
pub struct SpiderCluster {
    /// The server for clients.
    pub node: PrivateServer,
    /// The servers with the rows.
    pub data_nodes: Vec<PrivateServer>,
}

impl SpiderCluster {
    /// Starts so many data nodes, and a Spider node without tables. `options` are further options of the Spider node.
    ///
    /// # Errors
    /// Fails if a server does not start: [`PrivateServerError::Missing`] if Spider is not on this machine.
    pub fn start(data: usize, options: &[&str]) -> Result<SpiderCluster, SpiderError> {
        let folder = library_folder()?;
        let plugins = format!("--plugin-dir={}", folder.display());
        let own_options = [
            plugins.as_str(),
            "--plugin-load-add=ha_spider",
            KEEP_CONNECTIONS,
            BUFFER_POOL,
        ];
        let node = PrivateServer::start(ServerKind::Mariadb, &[&own_options, options].concat())?;
        let data = (0..data)
            .map(|number| {
                let id = format!("--server-id={}", number.saturating_add(11));
                PrivateServer::start(
                    ServerKind::Mariadb,
                    &[&id, BUFFER_POOL, "--max-connections=1000"],
                )
            })
            .collect::<Result<_, _>>()?;
        Ok(SpiderCluster {
            node,
            data_nodes: data,
        })
    }

    /// Creates the classic timeline in a new, empty database of the Spider node: the messages on the data nodes, and the follow lists
    /// there too or in InnoDB on the Spider node.
    ///
    /// # Errors
    /// Fails if a server refuses a statement.
    pub fn create_tables(&self, database: &str, follows_too: bool) -> Result<(), SpiderError> {
        self.create_partitioned_tables(database, follows_too, 1)
    }

    /// The same with so many partitions of the messages on each data node, each a separate table there.
    ///
    /// # Errors
    /// Fails if a server refuses a statement.
    pub fn create_partitioned_tables(
        &self,
        database: &str,
        follows_too: bool,
        parts: usize,
    ) -> Result<(), SpiderError> {
        let more = (1..parts).map(|part| format!("message_{part}"));
        let more: Vec<String> = more.collect();
        for server in &self.data_nodes {
            let mut client = connect(server, "mysql")?;
            client.execute(&format!("CREATE DATABASE {database}"))?;
            let messages = more.iter().map(|table| (&**table, DATA_NODE_MESSAGE));
            let first = [("message", DATA_NODE_MESSAGE), ("follower", FOLLOWER)];
            for (table, columns) in first.into_iter().chain(messages) {
                client.execute(&format!(
                    "CREATE TABLE {database}.{table} ({columns}) ENGINE=InnoDB"
                ))?;
            }
        }
        let mut client = connect(&self.node, "mysql")?;
        client.execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = connect(&self.node, database)?;
        client.execute(&self.partitioned_table_sql("message", MESSAGE, database, parts))?;
        client.execute(&match follows_too {
            true => self.partitioned_table_sql("follower", FOLLOWER, database, 1),
            false => format!("CREATE TABLE follower ({FOLLOWER}) ENGINE=InnoDB"),
        })?;
        for statement in script::statements(load::PROCEDURES) {
            client.execute(&statement)?;
        }
        Ok(())
    }

    /// The definition of a table partitioned by `user_id`, each partition on a data node.
    fn partitioned_table_sql(
        &self,
        table: &str,
        columns: &str,
        database: &str,
        parts: usize,
    ) -> String {
        let nodes =
            (0..parts).flat_map(|part| self.data_nodes.iter().map(move |server| (part, server)));
        let partitions: Vec<String> = nodes
            .enumerate()
            .map(|(number, (part, server))| {
                let there = match part {
                    0 => table.to_owned(),
                    part => format!("{table}_{part}"),
                };
                format!(
                    "PARTITION p{number} COMMENT='wrapper \"mysql\", host \"127.0.0.1\", port \"{}\", user \"root\", \
                     password \"\", database \"{database}\", table \"{there}\"'",
                    server.port()
                )
            })
            .collect();
        format!(
            "CREATE TABLE {table} ({columns}) ENGINE=SPIDER PARTITION BY HASH (user_id) ({})",
            partitions.join(", ")
        )
    }
}

fn connect(server: &PrivateServer, database: &str) -> Result<BenchClient, BenchClientError> {
    let account = BenchAccount {
        user: "root".into(),
        password: String::new(),
        database: database.into(),
    };
    BenchClient::connect(&server.addr().to_string(), &account)
}

/// The folder of Spider's library.
fn library_folder() -> Result<PathBuf, PrivateServerError> {
    let folder = PackageFolder::at("HEADWATER_SPIDER_PREFIX", "spider");
    let folder: &Path = folder.prefix();
    if folder.join(LIBRARY).is_file() {
        return Ok(folder.to_owned());
    }
    Err(PrivateServerError::Missing {
        what: format!("Spider in {}", folder.display()),
    })
}
