//! A temporary database of the bench. It is dropped when the bench ends.

use indicatif::ProgressBar;
use tokio::runtime::Handle;

use super::client::{BenchClient, BenchClientError};
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::{BenchError, data};
use crate::demo::dataset::DatasetSize;
use crate::demo::load;

/// The server's error number for a database that exists.
const DATABASE_EXISTS: u16 = 1007;

/// A database that the bench created. Dropping this value drops the database on the server.
#[derive(Debug)]
pub struct BenchDatabase {
    name: &'static str,
    address: String,
    /// The bench's account, with the bench's usual database.
    account: BenchAccount,
    removed: bool,
}

impl BenchDatabase {
    /// Creates an empty database.
    ///
    /// # Errors
    /// Fails if the database exists, or the account lacks the privilege.
    pub fn create(
        name: &'static str,
        flags: &BenchFlags,
        account: &BenchAccount,
    ) -> Result<BenchDatabase, BenchError> {
        let at = BenchError::for_address(&flags.upstream);
        let mut client = BenchClient::connect(&flags.upstream, account).map_err(&at)?;
        match client.execute(&format!("CREATE DATABASE {name}")) {
            Err(BenchClientError::Refused(error)) if error.code == DATABASE_EXISTS => {
                Err(BenchError::Exists { database: name })
            }
            Err(error) => Err(at(error)),
            Ok(()) => Ok(BenchDatabase {
                name,
                address: flags.upstream.clone(),
                account: account.clone(),
                removed: false,
            }),
        }
    }

    /// Drops the database.
    ///
    /// # Errors
    /// Fails if the server refuses.
    pub fn remove(mut self) -> Result<(), BenchError> {
        self.drop_database()
            .map_err(BenchError::for_address(&self.address))?;
        self.removed = true;
        Ok(())
    }

    fn drop_database(&self) -> Result<(), BenchClientError> {
        let mut client = BenchClient::connect(&self.address, &self.account)?;
        client.execute(&format!("DROP DATABASE {}", self.name))
    }
}

impl Drop for BenchDatabase {
    fn drop(&mut self) {
        if self.removed {
            return;
        }
        let name = self.name;
        match self.drop_database() {
            Ok(()) => eprintln!("dropped the database {name}"),
            Err(error) => eprintln!("COULD NOT DROP ({error}): DROP DATABASE {name}"),
        }
    }
}

/// Creates the classic tables and procedures in the bench's database, and fills them; `bar` shows the progress.
///
/// # Errors
/// Fails if the server refuses a statement.
pub fn load(
    name: &str,
    flags: &BenchFlags,
    size: DatasetSize,
    bar: &ProgressBar,
) -> Result<(), BenchError> {
    Handle::current().block_on(async {
        let at = |source| BenchError::Prepare {
            upstream: flags.upstream.clone(),
            source,
        };
        let mut conn = data::connect(flags, name).await.map_err(at)?;
        load::create_tables(&mut conn).await?;
        let report = |progress: load::LoadProgress| {
            bar.set_length(progress.total);
            bar.set_position(progress.rows);
        };
        load::fill(&mut conn, size, report).await?;
        conn.disconnect().await.map_err(at)
    })
}
