//! Rows of author and id, gathered by author.

use crate::LookupError;
use headwater_wire::resultset::ResultSet;

/// The ids in these rows of each of the authors, which are in ascending order.
///
/// # Errors
/// When a row is not of two numbers, or of another author.
pub(super) fn group_rows_by_author(
    authors: &[u64],
    answers: &[ResultSet],
) -> Result<Vec<Vec<u64>>, LookupError> {
    let mut numbers = Vec::new();
    for row in answers.iter().flat_map(ResultSet::iter) {
        let number = |column| row.u64(column).ok_or(LookupError::Malformed);
        numbers.push((number(0)?, number(1)?));
    }
    group_by_author(authors, numbers.into_iter())
}

/// The same of authors and ids that were read.
///
/// # Errors
/// When one is of another author.
pub(super) fn group_by_author(
    authors: &[u64],
    rows: impl Iterator<Item = (u64, u64)>,
) -> Result<Vec<Vec<u64>>, LookupError> {
    let mut found = vec![Vec::new(); authors.len()];
    // An author's rows come one behind the other, as a rule.
    let mut last = 0;
    for (author, id) in rows {
        if authors.get(last) != Some(&author) {
            let place = authors.binary_search(&author);
            last = place.map_err(|_| LookupError::Malformed)?;
        }
        if let Some(ids) = found.get_mut(last) {
            ids.push(id);
        }
    }
    Ok(found)
}
