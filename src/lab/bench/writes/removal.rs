//! Removes what the bench wrote, however it ends.

use std::thread;
use std::time::Duration;

use crate::lab::bench::BenchError;
use crate::lab::bench::client::{Client, ClientError};
use crate::lab::bench::login::Account;

/// Rows that one statement removes, so that it holds its locks for a short time.
const AT_ONCE: u32 = 5_000;
/// A connection that broke may have left a statement that the server still runs.
const STRAGGLERS: Duration = Duration::from_millis(200);

/// The rows of this run. Dropped, they are removed.
#[derive(Debug)]
pub struct Written {
    address: String,
    account: Account,
    condition: String,
    gone: bool,
}

impl Written {
    /// To be called before anything is written: rows above the newest id, whose bodies begin with the mark, are ours.
    ///
    /// # Errors
    /// When the server does not tell its newest id.
    pub fn above_the_newest(
        direct: &mut Client,
        address: &str,
        account: &Account,
        mark: &str,
    ) -> Result<Written, ClientError> {
        let newest = direct.numbers("SELECT COALESCE(MAX(id),0) FROM message")?;
        Ok(Written {
            address: address.to_owned(),
            account: account.clone(),
            condition: condition(newest.first().copied().unwrap_or_default(), mark),
            gone: false,
        })
    }

    /// What removes them by hand.
    #[must_use]
    pub fn statement(&self) -> String {
        format!(
            "DELETE FROM `{}`.message WHERE {}",
            self.account.database, self.condition
        )
    }

    /// Removes them and looks that none is left; returns how many there were.
    ///
    /// # Errors
    /// When the server does not.
    pub fn remove(mut self) -> Result<u64, BenchError> {
        let rows = self.sweep().map_err(BenchError::at(&self.address))?;
        self.gone = true;
        Ok(rows)
    }

    fn sweep(&self) -> Result<u64, ClientError> {
        let mut client = Client::connect(&self.address, &self.account)?;
        let count = format!("SELECT COUNT(*) FROM message WHERE {}", self.condition);
        let some = format!("{} ORDER BY id LIMIT {AT_ONCE}", self.statement());
        let mut rows = 0;
        for last in [false, true] {
            if last {
                thread::sleep(STRAGGLERS);
            }
            let mut left = first(&client.numbers(&count)?);
            rows += left;
            while left > 0 {
                client.run(&some)?;
                left = first(&client.numbers(&count)?);
            }
        }
        Ok(rows)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        match self.sweep() {
            Ok(rows) => eprintln!("removed the {rows} rows that were written"),
            Err(error) => eprintln!(
                "COULD NOT REMOVE what was written ({error}): {}",
                self.statement()
            ),
        }
    }
}

fn first(numbers: &[u64]) -> u64 {
    numbers.first().copied().unwrap_or_default()
}

fn condition(newest: u64, mark: &str) -> String {
    format!("id>{newest} AND body LIKE '{mark} %'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_of_this_run_are_meant() {
        assert_eq!(
            condition(1_000_000, "headwater bench 17-4"),
            "id>1000000 AND body LIKE 'headwater bench 17-4 %'"
        );
    }
}
