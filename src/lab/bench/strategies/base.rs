//! The two tables that every strategy has: messages and follows.

use super::Failure;
use crate::lab::bench::client::Client;

/// A connection that writes to them.
#[derive(Debug)]
pub struct Base(pub Client);

impl Base {
    /// Inserts a message.
    ///
    /// # Errors
    /// When the statement fails.
    pub fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), Failure> {
        self.run(&format!(
            "INSERT INTO message (id,user_id,body) VALUES ({id},{author},'{body}')"
        ))
    }

    /// Deletes it.
    ///
    /// # Errors
    /// When the statement fails.
    pub fn delete(&mut self, id: u64) -> Result<(), Failure> {
        self.run(&format!("DELETE FROM message WHERE id={id}"))
    }

    /// Inserts a follow.
    ///
    /// # Errors
    /// When the statement fails.
    pub fn follow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.run(&format!(
            "INSERT INTO follower (user_id,follower_id) VALUES ({reader},{author})"
        ))
    }

    /// Deletes it.
    ///
    /// # Errors
    /// When the statement fails.
    pub fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.run(&format!(
            "DELETE FROM follower WHERE user_id={reader} AND follower_id={author}"
        ))
    }

    /// Any statement whose answer does not matter.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.0.run(statement).map_err(|source| Failure::Statement {
            statement: statement.chars().take(200).collect(),
            source,
        })
    }
}
