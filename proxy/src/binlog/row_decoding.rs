//! Decodes rows of the control connections. A cell that is no number yields `None`: nothing here panics.

use std::collections::{BTreeMap, BTreeSet};

use super::obstacle::BinlogObstacle;
use crate::account::{AccountConnection, AccountError};
use headwater_log::assembler::file_number;
use headwater_log::evidence::{MessageAttributes, ObservedRows, RowState, TableRole, TableRowKey};
use headwater_timeline::index::{BinlogPosition, TimelineId};
use headwater_timeline::{KeyType, key};
use headwater_wire::resultset::{ResultRow, ResultSet};

/// The first cells of a row; `None` if one of them is not a number from 0 on.
pub(super) fn numbers<const N: usize>(row: ResultRow<'_>) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = row.u64(at)?;
    }
    Some(numbers)
}

pub(super) fn all_numbers<const N: usize>(rows: &ResultSet) -> Option<Vec<[u64; N]>> {
    rows.iter().map(numbers).collect()
}

/// Lists of numbers by key.
#[derive(Debug, Default)]
pub(super) struct NumberLists {
    pub(super) lists: BTreeMap<u64, Vec<u64>>,
    /// Keys whose lists hold a number below 0.
    pub(super) negative: BTreeSet<u64>,
}

/// Reads rows of `key, COUNT(*), BIT_XOR(number), GROUP_CONCAT(number)`. `Some(None)`: the limit was reached, or the server has truncated a
/// list (`group_concat_max_len`, `max_allowed_packet`).
pub(super) fn number_lists(rows: &ResultSet, limit: usize) -> Option<Option<NumberLists>> {
    let mut all = 0;
    let mut read = NumberLists::default();
    for row in rows.iter() {
        let [key, count, sum] = numbers::<3>(row)?;
        let text = text(row, 3)?;
        let list: Option<Vec<u64>> = text.split(',').map(list_number).collect();
        let list = list.unwrap_or_default();
        let is_whole =
            list.len() as u64 == count && list.iter().fold(0, |sum, one| sum ^ one) == sum;
        if !is_whole {
            return Some(None);
        }
        all += list.len();
        if text.contains('-') {
            read.negative.insert(key);
        } else {
            read.lists.insert(key, list);
        }
    }
    Some((all < limit).then_some(read))
}

/// A number as `BIT_XOR` takes it: one below 0 by its two's complement.
fn list_number(text: &str) -> Option<u64> {
    match text.starts_with('-') {
        true => text.parse::<i64>().ok().map(i64::cast_unsigned),
        false => text.parse().ok(),
    }
}

/// The first cells of a row, as text.
pub(super) fn texts<const N: usize>(row: ResultRow<'_>) -> Option<[String; N]> {
    let mut texts = [const { String::new() }; N];
    for (at, text) in texts.iter_mut().enumerate() {
        *text = self::text(row, at)?;
    }
    Some(texts)
}

/// A cell as text; `None` if it is NULL or missing.
pub(super) fn text(row: ResultRow<'_>, at: usize) -> Option<String> {
    String::from_utf8(row.cell(at)?.to_vec()).ok()
}

/// The rows of an evidence query; `kind`: the key type of each timeline, if it has a key.
pub(super) fn evidence_rows(
    rows: &ResultSet,
    kind: impl Fn(TimelineId) -> Option<KeyType>,
) -> Option<ObservedRows> {
    let observed = rows.iter().map(|row| {
        let [place, table, first, second, author] = numbers::<5>(row)?;
        let timeline_id = TimelineId(usize::try_from(place).ok()?);
        let (table, state) = match table {
            0 => (
                TableRole::Message,
                message_state(row, author, kind(timeline_id)),
            ),
            _ => (TableRole::Follower, RowState::Present(None)),
        };
        let key = TableRowKey {
            timeline_id,
            table,
            first,
            second,
        };
        Some((key, state))
    });
    observed.collect()
}

/// The state of a message. A key without a number is `Unknown`: it proves nothing, and contradicts nothing.
fn message_state(row: ResultRow<'_>, author: u64, kind: Option<KeyType>) -> RowState {
    let key = match (kind, row.cell(5)) {
        (None, _) => Some(0),
        (Some(_), None) => Some(key::NULL),
        (Some(kind), Some(text)) => kind.encode_text(text),
    };
    key.map_or(RowState::Unknown, |key| {
        RowState::Present(Some(MessageAttributes { author, key }))
    })
}

/// The base name of the log files, and the end position. From a row of SHOW BINARY LOG STATUS.
pub(super) fn log_end(
    row: Option<ResultRow<'_>>,
) -> Result<(String, BinlogPosition), BinlogObstacle> {
    let name = row.and_then(|row| text(row, 0)).unwrap_or_default();
    let offset = row.and_then(|row| row.u64(1));
    match (file_number(&name), offset) {
        (Some((base, file)), Some(offset)) => {
            Ok((base.to_owned(), BinlogPosition { file, offset }))
        }
        _ => Err(BinlogObstacle::FileName(name)),
    }
}

/// The first cell of a query's first row, as text; empty if there is none.
pub(super) async fn first_text(
    conn: &mut AccountConnection,
    query: &str,
) -> Result<String, AccountError> {
    let rows = conn.rows(query).await?;
    Ok(rows.row(0).and_then(|row| text(row, 0)).unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use headwater_wire::resultset::result_set_of;

    use super::*;

    fn lists(rows: &[[&str; 4]]) -> Option<NumberLists> {
        let cells = |row: &[&str; 4]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
        let rows: Vec<Vec<Option<String>>> = rows.iter().map(cells).collect();
        number_lists(&result_set_of(&rows), 10).unwrap()
    }

    #[test]
    fn a_list_with_a_number_below_zero_is_told_apart() {
        let sum = (5 ^ (-7i64).cast_unsigned()).to_string();
        let read = lists(&[["1", "2", "6", "5,3"], ["2", "2", &sum, "5,-7"]]).unwrap();
        assert_eq!(read.lists, BTreeMap::from([(1, vec![5, 3])]));
        assert_eq!(read.negative, BTreeSet::from([2]));
        // Truncated, within a number or after one.
        for text in ["5,-", "5", "5,-6"] {
            assert!(lists(&[["2", "2", &sum, text]]).is_none());
        }
        let many = (0..10).map(|number| number.to_string()).collect::<Vec<_>>();
        assert!(lists(&[["1", "10", "1", &many.join(",")]]).is_none());
    }
}
