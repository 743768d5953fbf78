//! The two tables of every strategy: messages and follows.

use super::StrategyError;
use crate::bench::client::BenchClient;

/// A connection that writes to the base tables.
#[derive(Debug)]
pub struct BaseTables(pub BenchClient);

impl BaseTables {
    /// Inserts a message.
    ///
    /// # Errors
    /// Fails if the statement fails.
    pub fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError> {
        self.run(&format!(
            "INSERT INTO message (id,user_id,body) VALUES ({id},{author},'{body}')"
        ))
    }

    /// Deletes a message.
    ///
    /// # Errors
    /// Fails if the statement fails.
    pub fn delete(&mut self, id: u64) -> Result<(), StrategyError> {
        self.run(&format!("DELETE FROM message WHERE id={id}"))
    }

    /// Inserts a follow.
    ///
    /// # Errors
    /// Fails if the statement fails.
    pub fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.run(&format!(
            "INSERT INTO follower (user_id,follower_id) VALUES ({reader},{author})"
        ))
    }

    /// Deletes a follow.
    ///
    /// # Errors
    /// Fails if the statement fails.
    pub fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.run(&format!(
            "DELETE FROM follower WHERE user_id={reader} AND follower_id={author}"
        ))
    }

    /// Runs a statement and ignores its rows.
    ///
    /// # Errors
    /// Fails if the statement fails.
    pub fn run(&mut self, statement: &str) -> Result<(), StrategyError> {
        self.0
            .execute(statement)
            .map_err(|source| StrategyError::Statement {
                statement: statement.chars().take(200).collect(),
                source,
            })
    }
}
