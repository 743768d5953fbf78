//! How many connections the service account may have, by purpose.
//!
//! A server continues a query whose client is gone for as long as a lock blocks it. So an abandoned connection holds its permit until the
//! server has ended it: a query that hangs is not repeated on another connection.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::AccountError;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// Checks of definitions.
    Definitions,
    /// The stream of the server's log.
    Log,
    /// Proofs of freshness.
    Proofs,
    /// Checks of the server's settings.
    Settings,
    /// Loads of rows into memory.
    Loads,
    /// The list of open transactions.
    Transactions,
    /// Procedures run beside calls, to compare them (`shadow.rate`).
    Comparisons,
    /// A reader that an operator tries out.
    Trials,
    /// Reading what the log held before the stream.
    History,
    /// Probes of a server's role, with several servers.
    Roles,
    /// Locations of a Spider node's messages, and queries of its data nodes.
    Spread,
}

/// Connections of each purpose, in the order of [`ConnectionPurpose`].
const PERMITS_BY_PURPOSE: [usize; 11] = [1, 1, 8, 1, 2, 1, 1, 1, 1, 2, 1];
/// The total for a single server. With several, each has up to two more for its role: the second serves while the first hangs. A Spider
/// node and its data nodes have one more each.
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

#[derive(Clone, Debug)]
pub(super) struct ConnectionPermits([Arc<Semaphore>; PERMITS_BY_PURPOSE.len()]);

pub(super) type ConnectionPermit = OwnedSemaphorePermit;

impl Default for ConnectionPermits {
    fn default() -> Self {
        ConnectionPermits(PERMITS_BY_PURPOSE.map(|permits| Arc::new(Semaphore::new(permits))))
    }
}

impl ConnectionPermits {
    /// # Errors
    /// When all are taken by connections that the server has not yet answered.
    pub(super) fn take(
        &self,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionPermit, AccountError> {
        let permits = self.0.get(purpose as usize).map(Arc::clone);
        let permit = permits.and_then(|seats| seats.try_acquire_owned().ok());
        permit.ok_or(AccountError::Waiting(purpose.name()))
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
    fn a_permit_is_free_again_when_its_connection_is_gone() {
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
