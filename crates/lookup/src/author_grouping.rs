//! Groups rows of author and id by author.

use crate::LookupError;
use headwater_wire::resultset::ResultSet;

/// The ids of each author in the rows. `authors` are in ascending order.
///
/// # Errors
/// When a row does not hold two numbers, or belongs to another author.
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

/// Like [`group_rows_by_author`], for authors and ids already read.
///
/// # Errors
/// When a row belongs to another author.
pub(super) fn group_by_author(
    authors: &[u64],
    rows: impl Iterator<Item = (u64, u64)>,
) -> Result<Vec<Vec<u64>>, LookupError> {
    let mut ids_by_author = vec![Vec::new(); authors.len()];
    // An author's rows are usually adjacent.
    let mut last = 0;
    for (author, id) in rows {
        if authors.get(last) != Some(&author) {
            let position = authors.binary_search(&author);
            last = position.map_err(|_| LookupError::Malformed)?;
        }
        if let Some(ids) = ids_by_author.get_mut(last) {
            ids.push(id);
        }
    }
    Ok(ids_by_author)
}
