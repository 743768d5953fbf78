//! How many connections the service account has at most, and what each of them is for.
//!
//! A server goes on with a question whose asker is gone, for as long as somebody's lock is in its way. So a connection that is given
//! up before it was answered keeps its seat until the server has ended it: whatever hangs is waited for, and not asked again beside.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::AccountError;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The checks of definitions.
    Definitions,
    /// The stream of the server's log.
    Log,
    /// Proofs of freshness.
    Proofs,
    /// The look at the server's settings.
    Settings,
    /// Rows that are loaded into memory.
    Loads,
    /// The list of open transactions.
    Transactions,
    /// The procedure beside calls (`shadow.rate`).
    Comparisons,
    /// A reader that an operator tries.
    Trials,
    /// What the log held before the stream.
    History,
    /// What the server is, where there are several.
    Roles,
    /// Where a Spider node's messages are, and what a data node has of them.
    Spread,
}

/// Connections of each purpose, in the order of [`Purpose`].
const SEATS: [usize; 11] = [1, 1, 8, 1, 2, 1, 1, 1, 1, 2, 1];
/// All of them on a server that is the only one: the service account never has more. Of several each has up to two more, for its role:
/// the second one is for the time in which the first hangs. A Spider node and its data nodes have one more each.
pub const MOST_CONNECTIONS: usize = {
    let [
        definitions,
        log,
        proofs,
        settings,
        loads,
        transactions,
        comparisons,
        trials,
        history,
        _roles,
        _spread,
    ] = SEATS;
    definitions + log + proofs + settings + loads + transactions + comparisons + trials + history
};

/// The places that are taken.
#[derive(Clone, Debug)]
pub(super) struct Seats([Arc<Semaphore>; SEATS.len()]);

/// A connection's place.
pub(super) type Seat = OwnedSemaphorePermit;

impl Default for Seats {
    fn default() -> Self {
        Seats(SEATS.map(|seats| Arc::new(Semaphore::new(seats))))
    }
}

impl Seats {
    /// # Errors
    /// When all are taken, by connections that the server has not answered yet.
    pub(super) fn take(&self, purpose: Purpose) -> Result<Seat, AccountError> {
        let seats = self.0.get(purpose as usize).map(Arc::clone);
        let seat = seats.and_then(|seats| seats.try_acquire_owned().ok());
        seat.ok_or(AccountError::Waiting(purpose.name()))
    }
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Purpose::Definitions => "checks of definitions",
            Purpose::Log => "the log",
            Purpose::Proofs => "proofs of freshness",
            Purpose::Settings => "the server's settings",
            Purpose::Loads => "rows for memory",
            Purpose::Transactions => "the list of open transactions",
            Purpose::Comparisons => "comparisons",
            Purpose::Trials => "a reader that is tried",
            Purpose::History => "what the log held before",
            Purpose::Roles => "what the server is",
            Purpose::Spread => "where messages are",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_free_again_when_its_connection_is_gone() {
        let seats = Seats::default();
        let taken = [Purpose::Loads, Purpose::Loads].map(|purpose| seats.take(purpose).unwrap());
        assert!(seats.clone().take(Purpose::Loads).is_err());
        assert!(seats.take(Purpose::Proofs).is_ok());
        drop(taken);
        assert!(seats.take(Purpose::Loads).is_ok());
        assert_eq!(MOST_CONNECTIONS, 17);
    }
}
