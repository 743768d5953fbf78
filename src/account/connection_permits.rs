//! How many connections the service account has at most, and what each of them is for.
//!
//! A server goes on with a question whose asker is gone, for as long as somebody's lock is in its way. So a connection that is given
//! up before it was answered keeps its seat until the server has ended it: whatever hangs is waited for, and not asked again beside.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::AccountError;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPurpose {
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

/// Connections of each purpose, in the order of [`ConnectionPurpose`].
const PERMITS_BY_PURPOSE: [usize; 11] = [1, 1, 8, 1, 2, 1, 1, 1, 1, 2, 1];
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
    ] = PERMITS_BY_PURPOSE;
    definitions + log + proofs + settings + loads + transactions + comparisons + trials + history
};

/// The places that are taken.
#[derive(Clone, Debug)]
pub(super) struct ConnectionPermits([Arc<Semaphore>; PERMITS_BY_PURPOSE.len()]);

/// A connection's place.
pub(super) type ConnectionPermit = OwnedSemaphorePermit;

impl Default for ConnectionPermits {
    fn default() -> Self {
        ConnectionPermits(PERMITS_BY_PURPOSE.map(|seats| Arc::new(Semaphore::new(seats))))
    }
}

impl ConnectionPermits {
    /// # Errors
    /// When all are taken, by connections that the server has not answered yet.
    pub(super) fn take(
        &self,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionPermit, AccountError> {
        let seats = self.0.get(purpose as usize).map(Arc::clone);
        let seat = seats.and_then(|seats| seats.try_acquire_owned().ok());
        seat.ok_or(AccountError::Waiting(purpose.name()))
    }
}

impl ConnectionPurpose {
    fn name(self) -> &'static str {
        match self {
            ConnectionPurpose::Definitions => "checks of definitions",
            ConnectionPurpose::Log => "the log",
            ConnectionPurpose::Proofs => "proofs of freshness",
            ConnectionPurpose::Settings => "the server's settings",
            ConnectionPurpose::Loads => "rows for memory",
            ConnectionPurpose::Transactions => "the list of open transactions",
            ConnectionPurpose::Comparisons => "comparisons",
            ConnectionPurpose::Trials => "a reader that is tried",
            ConnectionPurpose::History => "what the log held before",
            ConnectionPurpose::Roles => "what the server is",
            ConnectionPurpose::Spread => "where messages are",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_free_again_when_its_connection_is_gone() {
        let seats = ConnectionPermits::default();
        let taken = [ConnectionPurpose::Loads, ConnectionPurpose::Loads]
            .map(|purpose| seats.take(purpose).unwrap());
        assert!(seats.clone().take(ConnectionPurpose::Loads).is_err());
        assert!(seats.take(ConnectionPurpose::Proofs).is_ok());
        drop(taken);
        assert!(seats.take(ConnectionPurpose::Loads).is_ok());
        assert_eq!(MOST_CONNECTIONS, 17);
    }
}
