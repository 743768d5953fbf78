//! What memory has already is passed over, in the log of another server than the one beside which it was filled.

use crate::index::Position;
use crate::log::events::Events;
use crate::log::gtid::Stamp;
use crate::log::routes::Routes;
use crate::log::seek::{Known, Seek, Strayed};

/// Which of the transactions that a stream tells are to be applied.
#[derive(Debug)]
pub(super) struct Passing {
    /// What is still looked for, and where the log ended when it was asked for.
    seek: Option<(Seek, Position)>,
    /// The transaction that is being told is in memory already, or there was none yet.
    passes: bool,
    /// One was begun.
    begun: bool,
    /// No table is listened to.
    nobodys: Routes,
}

impl Passing {
    pub(super) fn new(seek: Option<(Seek, Position)>) -> Passing {
        Passing {
            passes: seek.is_some(),
            seek,
            begun: false,
            nobodys: Routes::default(),
        }
    }

    /// The tables that are listened to now.
    pub(super) fn routes<'a>(&'a self, own: &'a Routes) -> &'a Routes {
        match self.passes {
            true => &self.nobodys,
            false => own,
        }
    }

    /// An event was taken in.
    pub(super) fn hears(&mut self, events: &mut Events) -> Result<(), Strayed> {
        if !events.has_begun() {
            return Ok(());
        }
        self.begun = true;
        if let Some((seek, _)) = &mut self.seek {
            self.passes = seek.hears(events.stamp())? == Known::Held;
        }
        Ok(())
    }

    /// The log has been told up to between two transactions. The one that ended there, if it is to be applied.
    pub(super) fn ended(&mut self, events: &Events) -> Option<Option<Stamp>> {
        let ended = std::mem::take(&mut self.begun) && !self.passes;
        ended.then(|| events.stamp().cloned())
    }

    /// The log has been told up to there. True once, where nothing is to be passed over any more.
    pub(super) fn arrives(&mut self, at: Position) -> Result<bool, Strayed> {
        let Some((seek, _)) = self.seek.take_if(|(_, end)| at >= *end) else {
            return Ok(false);
        };
        self.passes = false;
        seek.ends().map(|()| true)
    }

    /// True of a transaction that ends there, if it was in the log before the stream began: nothing in memory is confirmed yet.
    pub(super) fn is_before(&self, end: Position) -> bool {
        self.seek.as_ref().is_some_and(|(_, goal)| end <= *goal)
    }

    /// True while something may have to be passed over.
    pub(super) fn goes_on(&self) -> bool {
        self.seek.is_some()
    }
}
