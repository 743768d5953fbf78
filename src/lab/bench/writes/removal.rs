//! Removes what the bench wrote, however it ends.

use std::thread;
use std::time::Duration;

use crate::lab::bench::BenchError;
use crate::lab::bench::client::{BenchClient, BenchClientError};
use crate::lab::bench::login::BenchAccount;

/// Rows that one statement removes, so that it holds its locks for a short time.
const DELETED_AT_ONCE: u32 = 5_000;
/// A connection that broke may have left a statement that the server still runs.
const STRAGGLER_WAIT: Duration = Duration::from_millis(200);

/// The rows of this run. Dropped, they are removed.
#[derive(Debug)]
pub struct WrittenRows {
    address: String,
    account: BenchAccount,
    condition: String,
    removed: bool,
}

impl WrittenRows {
    /// To be called before anything is written: rows above the newest id, whose bodies begin with the mark, are ours.
    ///
    /// # Errors
    /// When the server does not tell its newest id.
    pub fn after_newest(
        direct: &mut BenchClient,
        address: &str,
        account: &BenchAccount,
        mark: &str,
    ) -> Result<WrittenRows, BenchClientError> {
        let newest = direct.query_numbers("SELECT COALESCE(MAX(id),0) FROM message")?;
        Ok(WrittenRows {
            address: address.to_owned(),
            account: account.clone(),
            condition: condition(newest.first().copied().unwrap_or_default(), mark),
            removed: false,
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
        let rows = self
            .delete_rows()
            .map_err(BenchError::for_address(&self.address))?;
        self.removed = true;
        Ok(rows)
    }

    fn delete_rows(&self) -> Result<u64, BenchClientError> {
        let mut client = BenchClient::connect(&self.address, &self.account)?;
        let count = format!("SELECT COUNT(*) FROM message WHERE {}", self.condition);
        let some = format!("{} ORDER BY id LIMIT {DELETED_AT_ONCE}", self.statement());
        let mut rows = 0;
        for last in [false, true] {
            if last {
                thread::sleep(STRAGGLER_WAIT);
            }
            let mut left = first_number(&client.query_numbers(&count)?);
            rows += left;
            while left > 0 {
                client.execute(&some)?;
                left = first_number(&client.query_numbers(&count)?);
            }
        }
        Ok(rows)
    }
}

impl Drop for WrittenRows {
    fn drop(&mut self) {
        if self.removed {
            return;
        }
        match self.delete_rows() {
            Ok(rows) => eprintln!("removed the {rows} rows that were written"),
            Err(error) => eprintln!(
                "COULD NOT REMOVE what was written ({error}): {}",
                self.statement()
            ),
        }
    }
}

fn first_number(numbers: &[u64]) -> u64 {
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
