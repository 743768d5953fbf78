//! A database that the bench makes, and drops at its end.

use indicatif::ProgressBar;
use tokio::runtime::Handle;

use super::client::{Client, ClientError};
use super::flags::BenchFlags;
use super::login::Account;
use super::{BenchError, data};
use crate::lab::demo::dataset::Size;
use crate::lab::demo::load;

/// The server's error for a database that exists.
const EXISTS: u16 = 1007;

/// A database of the bench's own. Dropped, it is dropped on the server too.
#[derive(Debug)]
pub struct OwnDatabase {
    name: &'static str,
    address: String,
    /// The bench's account, in the bench's usual database.
    account: Account,
    gone: bool,
}

impl OwnDatabase {
    /// Makes it, empty.
    ///
    /// # Errors
    /// When it exists already, or the account may not.
    pub fn create(
        name: &'static str,
        flags: &BenchFlags,
        account: &Account,
    ) -> Result<OwnDatabase, BenchError> {
        let at = BenchError::at(&flags.upstream);
        let mut client = Client::connect(&flags.upstream, account).map_err(&at)?;
        match client.run(&format!("CREATE DATABASE {name}")) {
            Err(ClientError::Refused(error)) if error.code == EXISTS => {
                Err(BenchError::Exists { database: name })
            }
            Err(error) => Err(at(error)),
            Ok(()) => Ok(OwnDatabase {
                name,
                address: flags.upstream.clone(),
                account: account.clone(),
                gone: false,
            }),
        }
    }

    /// Drops it.
    ///
    /// # Errors
    /// When the server does not.
    pub fn remove(mut self) -> Result<(), BenchError> {
        self.sweep().map_err(BenchError::at(&self.address))?;
        self.gone = true;
        Ok(())
    }

    fn sweep(&self) -> Result<(), ClientError> {
        let mut client = Client::connect(&self.address, &self.account)?;
        client.run(&format!("DROP DATABASE {}", self.name))
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        let name = self.name;
        match self.sweep() {
            Ok(()) => eprintln!("dropped the database {name}"),
            Err(error) => eprintln!("COULD NOT DROP ({error}): DROP DATABASE {name}"),
        }
    }
}

/// Makes the classic tables and procedures in such a database, and fills them; `bar` tells how far that is.
///
/// # Errors
/// When the server refuses something.
pub fn load(
    name: &str,
    flags: &BenchFlags,
    size: Size,
    bar: &ProgressBar,
) -> Result<(), BenchError> {
    Handle::current().block_on(async {
        let at = |source| BenchError::Prepare {
            upstream: flags.upstream.clone(),
            source,
        };
        let mut conn = data::connect(flags, name).await.map_err(at)?;
        load::furnish(&mut conn).await?;
        let told = |progress: load::Progress| {
            bar.set_length(progress.of);
            bar.set_position(progress.rows);
        };
        load::fill(&mut conn, size, told).await?;
        conn.disconnect().await.map_err(at)
    })
}
