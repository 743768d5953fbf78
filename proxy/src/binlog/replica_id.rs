//! The stream's server id as a replica. Of two streams with one id the server ends the older.
//!
//! | | MySQL 9.7 | MariaDB 10.11 |
//! |---|---|---|
//! | the older stream ends with | error 1236, "A replica with the same `server_uuid`/`server_id` as this replica has connected to the source" | error 4052, "A slave with the same `server_uuid`/`server_id` is already connected" |
//! | the ids count as equal | if neither has set a UUID (`@replica_uuid`, `@slave_uuid`), as a real replica does | whatever its UUID |
//! | others' ids are listed by | `SHOW REPLICAS` (`REPLICATION SLAVE`) | `SHOW SLAVE HOSTS` (`REPLICATION MASTER ADMIN`, which the service account need not have) |
//!
//! So a listed id is not drawn, and an id that another replica arrives with is given up. No UUID is set: then both products compare ids,
//! and a stream that the network has lost ends when its successor connects.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::random::replica_id;
use super::server_facts::ServerFacts;
use crate::account::{AccountConnection, AccountError};
use headwater_wire::resultset::ResultSet;

/// MySQL's code for whatever ends a stream.
const FATAL_READ_ERROR: u16 = 1236;
/// Its text for this case, in all releases.
const SAME_ID_TEXT: &str = "same server_uuid/server_id";
/// MariaDB's code, whatever the language of the text.
const SAME_ON_MARIADB: u16 = 4052;

/// The server id of the stream that follows the log.
#[derive(Debug)]
pub(super) struct ReplicaId(Mutex<ReplicaIdState>);

#[derive(Debug)]
struct ReplicaIdState {
    number: u32,
    /// The server that has had a stream with this id.
    server: Option<String>,
}

impl ReplicaId {
    pub(super) fn draw() -> ReplicaId {
        ReplicaId(Mutex::new(ReplicaIdState {
            number: replica_id(),
            server: None,
        }))
    }

    /// The id for a stream from this server. An older stream with it there is ours, which this one replaces.
    pub(super) async fn for_server(
        &self,
        conn: &mut AccountConnection,
        server: &ServerFacts,
    ) -> u32 {
        let number = {
            let held = self.state();
            if held.server.as_ref() == Some(&server.identity) {
                return held.number;
            }
            held.number
        };
        let taken = used_ids(conn, server.mariadb).await;
        let number = draw_unlike(&taken, number, replica_id);
        *self.state() = ReplicaIdState {
            number,
            server: Some(server.identity.clone()),
        };
        number
    }

    /// Draws a new id, since another replica has this one. Returns the old and the new id.
    pub(super) fn redraw(&self) -> [u32; 2] {
        let mut held = self.state();
        let old = held.number;
        let number = draw_unlike(&HashSet::from([old]), replica_id(), replica_id);
        *held = ReplicaIdState {
            number,
            server: None,
        };
        [old, number]
    }

    fn state(&self) -> MutexGuard<'_, ReplicaIdState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id for a stream beside the one that follows.
pub(super) async fn draw_unused(conn: &mut AccountConnection, mariadb: bool) -> u32 {
    draw_unlike(&used_ids(conn, mariadb).await, replica_id(), replica_id)
}

/// True if the server has ended a stream because a newer one came with its id.
pub(super) fn is_taken(error: &AccountError) -> bool {
    match error {
        AccountError::Server(error) if error.code == FATAL_READ_ERROR => {
            String::from_utf8_lossy(&error.message).contains(SAME_ID_TEXT)
        }
        error => error.code() == Some(SAME_ON_MARIADB),
    }
}

/// The server's own id, and those of its replicas as far as it lists them.
async fn used_ids(conn: &mut AccountConnection, mariadb: bool) -> HashSet<u32> {
    // MySQL used the other name until 8.0.22.
    let lists: &[&str] = if mariadb {
        &["SHOW SLAVE HOSTS"]
    } else {
        &["SHOW REPLICAS", "SHOW SLAVE HOSTS"]
    };
    let mut taken = HashSet::new();
    // Ids missing here are detected when the id is used.
    if let Ok(rows) = conn.rows("SELECT @@server_id").await {
        taken.extend(numbers(&rows));
    }
    for list in lists {
        if let Ok(rows) = conn.rows(list).await {
            taken.extend(numbers(&rows));
            break;
        }
    }
    taken
}

fn numbers(rows: &ResultSet) -> impl Iterator<Item = u32> + '_ {
    rows.iter()
        .filter_map(|row| row.u64(0).and_then(|number| u32::try_from(number).ok()))
}

/// This id, or the first drawn that is not taken.
fn draw_unlike(taken: &HashSet<u32>, first: u32, mut draw: impl FnMut() -> u32) -> u32 {
    let mut number = first;
    // A server has far fewer replicas than there are ids.
    while taken.contains(&number) {
        number = draw();
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_wire::response::ErrPacket;

    #[test]
    fn a_number_that_somebody_has_is_not_drawn() {
        let taken = HashSet::from([7, 8, 9]);
        let mut drawn = [8, 7, 5, 6].into_iter();
        let number = draw_unlike(&taken, 9, || drawn.next().unwrap_or_default());
        assert_eq!((number, drawn.next()), (5, Some(6)));
        assert_eq!(draw_unlike(&taken, 1, || 2), 1);
    }

    #[test]
    fn a_number_that_is_given_up_is_another_one_afterwards() {
        let number = ReplicaId::draw();
        let mut before = number.state().number;
        for _ in 0..1_000 {
            let [old, new] = number.redraw();
            assert_eq!(old, before);
            assert!(new != old && new >= 1 << 31);
            before = new;
        }
    }

    #[test]
    fn what_servers_say_of_a_number_that_is_taken_is_known_by_code_and_text() {
        let said = |code, message: &str| {
            is_taken(&AccountError::Server(ErrPacket::new(
                code, *b"HY000", message,
            )))
        };
        // MySQL 9.7.4, MySQL 5.7, MariaDB 10.11.19.
        assert!(said(
            1236,
            "A replica with the same server_uuid/server_id as this replica has connected to the source; the first event 'b.000001' at 158"
        ));
        assert!(said(
            1236,
            "A slave with the same server_uuid/server_id as this slave has connected to the master; the first event"
        ));
        assert!(said(
            4052,
            "A slave with the same server_uuid/server_id is already connected; the first event"
        ));
        assert!(!said(
            1236,
            "Could not find first log file name in binary log index file"
        ));
        assert!(!said(1053, "Server shutdown in progress"));
    }
}
