//! What a strategy has to be able to do.

use serde::{Deserialize, Serialize};

use super::StrategyError;
use super::page::MessagePage;
use super::servers::StrategyServers;

/// What a strategy says of its pages, once a write was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshnessClaim {
    /// Each has all of it, however deep it is.
    Fresh,
    /// The newest ones have all of it; deep ones end where the store was trimmed.
    Capped,
    /// It may be missing for a while.
    Stale,
}

/// Whose memory counts, besides tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOwner {
    /// Nobody's.
    None,
    /// Headwater's.
    Headwater,
    /// That of the keys in Redis that begin so.
    Redis(&'static str),
}

/// A way to have timelines.
pub trait TimelineStrategy: Sync {
    /// What it is called in tables and files.
    fn name(&self) -> &'static str;

    /// What it does, in a line.
    fn about(&self) -> &'static str;

    /// What it promises.
    fn claim(&self) -> FreshnessClaim {
        FreshnessClaim::Fresh
    }

    /// Its own tables, besides those of messages and follows.
    fn tables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Where it keeps something for each follower of a message's author: about how many bytes that takes on disk.
    fn pushed_bytes(&self) -> Option<f64> {
        None
    }

    /// What else takes room.
    fn memory(&self) -> MemoryOwner {
        MemoryOwner::None
    }

    /// Fills what it has of its own from messages and follows.
    ///
    /// # Errors
    /// When a statement fails.
    fn build(&self, _world: &StrategyServers) -> Result<(), StrategyError> {
        Ok(())
    }

    /// An app's connections.
    ///
    /// # Errors
    /// When one cannot be had.
    fn session(&self, world: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError>;
}

/// What an app asks for and tells. A write is acknowledged when it returns.
pub trait AppSession: Send {
    /// The newest messages of those that the reader follows, up to this id. `page` comes empty.
    ///
    /// # Errors
    /// When a statement fails.
    fn page(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError>;

    /// Writes a message under an id that is greater than all that are settled.
    ///
    /// # Errors
    /// When a statement fails.
    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError>;

    /// Deletes one again.
    ///
    /// # Errors
    /// When a statement fails.
    fn delete(&mut self, id: u64, author: u64) -> Result<(), StrategyError>;

    /// From now on the reader sees this author's messages, those before as well.
    ///
    /// # Errors
    /// When a statement fails.
    fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError>;

    /// And now not any more.
    ///
    /// # Errors
    /// When a statement fails.
    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError>;
}
