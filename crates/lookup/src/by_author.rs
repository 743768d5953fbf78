//! Rows of author and id, gathered by author.

use crate::Unusable;
use headwater_wire::resultset::Rows;

/// The ids in these rows of each of the authors, which are in ascending order.
///
/// # Errors
/// When a row is not of two numbers, or of another author.
pub(super) fn gather(authors: &[u64], answers: &[Rows]) -> Result<Vec<Vec<u64>>, Unusable> {
    let mut found = vec![Vec::new(); authors.len()];
    // An author's rows come one behind the other, as a rule.
    let mut last = 0;
    for row in answers.iter().flat_map(Rows::iter) {
        let number = |column| row.u64(column).ok_or(Unusable::Malformed);
        let (author, id) = (number(0)?, number(1)?);
        if authors.get(last) != Some(&author) {
            let place = authors.binary_search(&author);
            last = place.map_err(|_| Unusable::Malformed)?;
        }
        if let Some(ids) = found.get_mut(last) {
            ids.push(id);
        }
    }
    Ok(found)
}
