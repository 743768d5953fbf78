//! Transactions in two phases (XA): what they changed stands in the log where they were prepared, and can be read once
//! they are committed, perhaps much later.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::Lost;
use headwater_wire::cursor::Cursor;

/// Prepared transactions that are remembered; others empty the index when they are committed.
const MOST_PREPARED: usize = 10_000;

/// Transactions that were prepared and did not change the tables: committing them changes nothing either.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared(HashSet<Vec<u8>>);

impl Prepared {
    /// One more of them.
    pub(crate) fn without_changes(&mut self, transaction: Vec<u8>) {
        if self.0.len() < MOST_PREPARED {
            self.0.insert(transaction);
        }
    }

    /// Forgets a transaction; true when it did not change the tables.
    pub(crate) fn ended(&mut self, transaction: &[u8]) -> bool {
        self.0.remove(transaction)
    }
}

/// What a statement does with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Start,
    End,
    Commit,
    Rollback,
}

/// What a statement of the log does with which transaction.
pub(crate) fn verb(text: &[u8]) -> Option<(Verb, &[u8])> {
    [
        ("XA START ", Verb::Start),
        ("XA END ", Verb::End),
        ("XA COMMIT ", Verb::Commit),
        ("XA ROLLBACK ", Verb::Rollback),
    ]
    .into_iter()
    .find_map(|(words, verb)| Some((verb, text.strip_prefix(words.as_bytes())?)))
}

/// True when XA PREPARE's event stands for a commit in one phase, and the transaction's name as statements of the log have it.
pub(crate) fn prepared(body: &[u8]) -> Result<(bool, Vec<u8>), Lost> {
    let mut body = Cursor::new(body);
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
