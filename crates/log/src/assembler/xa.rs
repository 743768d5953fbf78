//! Two-phase transactions (XA): the log contains their changes where they were prepared. They become readable once they are
//! committed, perhaps much later.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::LogStreamError;
use headwater_wire::cursor::PacketCursor;

/// How many prepared transactions are remembered; committing others empties the index.
const MAX_PREPARED: usize = 10_000;

/// Prepared transactions that did not change the tables: committing them changes nothing either.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnchangedPreparedTransactions(HashSet<Vec<u8>>);

impl UnchangedPreparedTransactions {
    pub(crate) fn insert(&mut self, transaction: Vec<u8>) {
        if self.0.len() < MAX_PREPARED {
            self.0.insert(transaction);
        }
    }

    /// Removes a transaction; true if it did not change the tables.
    pub(crate) fn remove(&mut self, transaction: &[u8]) -> bool {
        self.0.remove(transaction)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XaVerb {
    Start,
    End,
    Commit,
    Rollback,
}

/// The XA verb of a logged statement, and the transaction's name.
pub(crate) fn parse_verb(text: &[u8]) -> Option<(XaVerb, &[u8])> {
    [
        ("XA START ", XaVerb::Start),
        ("XA END ", XaVerb::End),
        ("XA COMMIT ", XaVerb::Commit),
        ("XA ROLLBACK ", XaVerb::Rollback),
    ]
    .into_iter()
    .find_map(|(words, verb)| Some((verb, text.strip_prefix(words.as_bytes())?)))
}

/// Parses an XA PREPARE event: true for a one-phase commit, and the transaction's name as logged statements write it.
pub(crate) fn read_prepare_event(body: &[u8]) -> Result<(bool, Vec<u8>), LogStreamError> {
    let mut body = PacketCursor::new(body);
    let in_one_phase = body.u8()? != 0;
    let format = body.u32()?;
    let global = usize::try_from(body.u32()?).unwrap_or(usize::MAX);
    let branch = usize::try_from(body.u32()?).unwrap_or(usize::MAX);
    let mut name = String::new();
    for part in [body.take(global)?, body.take(branch)?] {
        name.push_str("X'");
        for byte in part {
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str("',");
    }
    let _ = write!(name, "{format}");
    Ok((in_one_phase, name.into_bytes()))
}
