//! The interface of a strategy.

use serde::{Deserialize, Serialize};

use super::StrategyError;
use super::page::MessagePage;
use super::servers::StrategyServers;

/// What a strategy promises of its pages after a write was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshnessClaim {
    /// Every page contains the write, at any depth.
    Fresh,
    /// The newest pages contain it; deep ones end where the store was trimmed.
    Capped,
    /// The write may be missing for a while.
    Stale,
}

/// Whose memory counts, in addition to tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOwner {
    /// None.
    None,
    /// Headwater's process.
    Headwater,
    /// The keys in Redis with this prefix.
    Redis(&'static str),
}

/// A strategy for timelines.
pub trait TimelineStrategy: Sync {
    /// The name in tables and files.
    fn name(&self) -> &'static str;

    /// A description of one line.
    fn about(&self) -> &'static str;

    /// The promised freshness.
    fn claim(&self) -> FreshnessClaim {
        FreshnessClaim::Fresh
    }

    /// Its own tables, in addition to messages and follows.
    fn tables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Estimated bytes on disk for each follower of a message's author, if the strategy stores something for each.
    fn pushed_bytes(&self) -> Option<f64> {
        None
    }

    /// The owner of its memory.
    fn memory(&self) -> MemoryOwner {
        MemoryOwner::None
    }

    /// Builds the strategy's data from messages and follows.
    ///
    /// # Errors
    /// Fails if a statement fails.
    fn build(&self, _world: &StrategyServers) -> Result<(), StrategyError> {
        Ok(())
    }

    /// Opens an app's connections.
    ///
    /// # Errors
    /// Fails if a connection fails.
    fn session(&self, servers: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError>;
}

/// An app's reads and writes. A write is acknowledged when it returns.
pub trait AppSession: Send {
    /// Reads the newest messages of the reader's followed authors, up to this id. `page` is empty before.
    ///
    /// # Errors
    /// Fails if a statement fails.
    fn page(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError>;

    /// Writes a message with an id greater than all acknowledged ones.
    ///
    /// # Errors
    /// Fails if a statement fails.
    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError>;

    /// Deletes a message.
    ///
    /// # Errors
    /// Fails if a statement fails.
    fn delete(&mut self, id: u64, author: u64) -> Result<(), StrategyError>;

    /// Adds a follow: the reader's pages include this author's messages, old ones too.
    ///
    /// # Errors
    /// Fails if a statement fails.
    fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError>;

    /// Removes a follow.
    ///
    /// # Errors
    /// Fails if a statement fails.
    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError>;
}
