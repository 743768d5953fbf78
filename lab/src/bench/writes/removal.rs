//! Removes the rows that the bench wrote, however the bench ends.

use std::thread;
use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::client::{BenchClient, BenchClientError};
use crate::bench::login::BenchAccount;

/// Rows that one statement deletes, so that its locks are short.
const DELETED_AT_ONCE: u32 = 5_000;
/// After a connection failure the server may still run its statement.
const STRAGGLER_WAIT: Duration = Duration::from_millis(200);

/// The rows of this run. Dropping this value deletes them.
#[derive(Debug)]
pub struct WrittenRows {
    address: String,
    account: BenchAccount,
    condition: String,
    removed: bool,
}

impl WrittenRows {
    /// Call this before any write: the run's rows are those above the newest id whose bodies begin with the mark.
    ///
    /// # Errors
    /// Fails if the newest id cannot be read.
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

    /// The statement that deletes them by hand.
    #[must_use]
    pub fn statement(&self) -> String {
        format!(
            "DELETE FROM `{}`.message WHERE {}",
            self.account.database, self.condition
        )
    }

    /// Deletes them, and checks that none remains; returns their number.
    ///
    /// # Errors
    /// Fails if a statement fails.
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
            let mut remaining = first_number(&client.query_numbers(&count)?);
            rows += remaining;
            while remaining > 0 {
                client.execute(&some)?;
                remaining = first_number(&client.query_numbers(&count)?);
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
