//! What the server's procedure says.

use std::collections::BTreeSet;
use std::fmt::Display;

use crate::account::{Account, AccountError, Conn, Purpose};
use crate::binlog::Place;
use crate::source::lookup::Found;
use crate::sql::quoted;
use crate::timeline::Head;
use crate::timeline::definition::{Definition, Form};
use crate::wire::resultset::Row;

/// ER_PROCACCESS_DENIED_ERROR, and a right to the database that is missing.
pub(crate) const EXECUTE_DENIED: [u16; 2] = [1370, 1044];

/// A connection on which procedures run beside the app's.
pub(crate) async fn connect(account: &Account, purpose: Purpose) -> Result<Conn, AccountError> {
    let mut conn = Conn::open(account, purpose).await?;
    // Under REPEATABLE READ the procedure's INSERT ... SELECT locks rows of the tables: writers would wait, and deadlock.
    conn.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .await?;
    Ok(conn)
}

/// Calls the procedure, and reads what it leaves behind.
pub(crate) async fn answer(
    definition: &Definition,
    place: &Place,
    form: Form,
    (reader, bound): (u64, Option<u64>),
    conn: &mut Conn,
) -> Result<Found, AccountError> {
    conn.run(&format!("USE {}", quoted(place.database())))
        .await?;
    conn.run(&call(definition, form, reader, bound)).await?;
    let mut found = Found::default();
    if form.fills_result() {
        let result = &definition.result;
        let ids = format!(
            "SELECT {} FROM {}",
            quoted(&result.id),
            quoted(&result.table)
        );
        let rows = conn.rows(&ids).await?;
        let ids = rows.iter().map(|row| row.u64(0)).collect::<Option<_>>();
        found.ids = ids.ok_or(AccountError::Unexpected)?;
    }
    if form.fills_heads() {
        let heads = &definition.heads;
        let heads = format!(
            "SELECT {}, {} FROM {}",
            quoted(&heads.author),
            quoted(&heads.head),
            quoted(&heads.table)
        );
        let rows = conn.rows(&heads).await?;
        let head = |row: Row<'_>| {
            let (author, id) = row.u64(0).zip(row.u64(1))?;
            Some(Head { author, id })
        };
        let heads = rows.iter().map(head).collect::<Option<_>>();
        found.heads = heads.ok_or(AccountError::Unexpected)?;
    }
    Ok(found)
}

/// The statement that calls it.
pub(crate) fn call(
    definition: &Definition,
    form: Form,
    reader: impl Display,
    bound: Option<u64>,
) -> String {
    let name = quoted(definition.procedure(form));
    match bound {
        Some(bound) => format!("CALL {name}({reader}, {bound})"),
        None => format!("CALL {name}({reader})"),
    }
}

/// The same rows in both tables, in whatever order.
pub(crate) fn same(form: Form, own: &Found, real: &Found) -> bool {
    sorted(&own.ids) == sorted(&real.ids) && (!form.fills_heads() || heads(own) == heads(real))
}

fn sorted(ids: &[u64]) -> Vec<u64> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

fn heads(found: &Found) -> BTreeSet<(u64, u64)> {
    let heads = found.heads.iter();
    heads.map(|head| (head.author, head.id)).collect()
}

/// Both answers, for the log.
pub(super) fn difference(
    definition: &Definition,
    place: &Place,
    form: Form,
    (reader, bound): (u64, Option<u64>),
    own: &Found,
    real: &Found,
) -> String {
    let mut text = format!(
        "{} in {} was answered otherwise than by the procedure. Headwater: {:?}; procedure: {:?}",
        call(definition, form, reader, bound),
        place.database(),
        own.ids,
        real.ids,
    );
    if form.fills_heads() {
        text.push_str(&format!(
            "; heads, Headwater: {:?}; procedure: {:?}",
            heads(own),
            heads(real)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ids: &[u64], heads: &[(u64, u64)]) -> Found {
        let heads = heads.iter().map(|&(author, id)| Head { author, id });
        Found {
            ids: ids.to_vec(),
            heads: heads.collect(),
        }
    }

    #[test]
    fn rows_count_and_their_order_does_not() {
        let own = found(&[3, 2, 1], &[(1, 3)]);
        assert!(same(Form::Bounded, &own, &found(&[1, 2, 3], &[(1, 3)])));
        assert!(!same(Form::Bounded, &own, &found(&[1, 2, 3], &[(1, 2)])));
        assert!(same(Form::Newest, &own, &found(&[1, 2, 3], &[])));
        assert!(!same(Form::Newest, &own, &found(&[1, 3], &[])));
        // A row twice would be one row too many.
        assert!(!same(Form::Newest, &own, &found(&[1, 2, 3, 3], &[])));
    }
}
