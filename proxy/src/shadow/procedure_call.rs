//! Runs the server's procedure.

use std::collections::BTreeSet;
use std::fmt::Display;

use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use crate::binlog::CachedTimeline;
use headwater_lookup::lookup::LookupResult;
use headwater_sql::quoted;
use headwater_timeline::AuthorHead;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};
use headwater_wire::resultset::ResultRow;

/// A connection on which procedures run beside the app's.
pub async fn connect(
    account: &UpstreamAccount,
    purpose: ConnectionPurpose,
) -> Result<AccountConnection, AccountError> {
    let mut conn = AccountConnection::open(account, purpose).await?;
    // Under REPEATABLE READ the procedure's INSERT ... SELECT locks rows of the tables: writers would wait, and deadlock.
    conn.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .await?;
    Ok(conn)
}

/// Calls the procedure, and reads the tables that it fills.
pub async fn run_procedure(
    definition: &TimelineDefinition,
    timeline: &CachedTimeline,
    form: ProcedureForm,
    (reader, bound): (u64, Option<u64>),
    conn: &mut AccountConnection,
) -> Result<LookupResult, AccountError> {
    conn.run(&format!("USE {}", quoted(timeline.database())))
        .await?;
    conn.run(&call_statement(definition, form, reader, bound))
        .await?;
    let mut result_rows = LookupResult::default();
    if form.fills_result() {
        let result = &definition.result;
        let ids = format!(
            "SELECT {} FROM {}",
            quoted(&result.id),
            quoted(&result.table)
        );
        let rows = conn.rows(&ids).await?;
        let ids = rows.iter().map(|row| row.u64(0)).collect::<Option<_>>();
        result_rows.ids = ids.ok_or(AccountError::Unexpected)?;
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
        let head = |row: ResultRow<'_>| {
            let (author, id) = row.u64(0).zip(row.u64(1))?;
            Some(AuthorHead { author, id })
        };
        let heads = rows.iter().map(head).collect::<Option<_>>();
        result_rows.heads = heads.ok_or(AccountError::Unexpected)?;
    }
    Ok(result_rows)
}

/// The CALL of a definition's procedure for one reader, as text.
pub fn call_statement(
    definition: &TimelineDefinition,
    form: ProcedureForm,
    reader: impl Display,
    bound: Option<u64>,
) -> String {
    let name = quoted(definition.procedure_name(form));
    match bound {
        Some(bound) => format!("CALL {name}({reader}, {bound})"),
        None => format!("CALL {name}({reader})"),
    }
}

/// True if both tables have the same rows, in any order.
pub fn has_same_rows(form: ProcedureForm, served: &LookupResult, real: &LookupResult) -> bool {
    sorted(&served.ids) == sorted(&real.ids)
        && (!form.fills_heads() || heads(served) == heads(real))
}

fn sorted(ids: &[u64]) -> Vec<u64> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

fn heads(lookup: &LookupResult) -> BTreeSet<(u64, u64)> {
    let heads = lookup.heads.iter();
    heads.map(|head| (head.author, head.id)).collect()
}

pub(super) fn difference_text(
    definition: &TimelineDefinition,
    timeline: &CachedTimeline,
    form: ProcedureForm,
    (reader, bound): (u64, Option<u64>),
    served: &LookupResult,
    real: &LookupResult,
) -> String {
    let mut text = format!(
        "{} in {} was answered otherwise than by the procedure. Headwater: {:?}; procedure: {:?}",
        call_statement(definition, form, reader, bound),
        timeline.database(),
        served.ids,
        real.ids,
    );
    if form.fills_heads() {
        text.push_str(&format!(
            "; heads, Headwater: {:?}; procedure: {:?}",
            heads(served),
            heads(real)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ids: &[u64], heads: &[(u64, u64)]) -> LookupResult {
        let heads = heads.iter().map(|&(author, id)| AuthorHead { author, id });
        LookupResult {
            ids: ids.to_vec(),
            heads: heads.collect(),
        }
    }

    #[test]
    fn rows_count_and_their_order_does_not() {
        let own = found(&[3, 2, 1], &[(1, 3)]);
        assert!(has_same_rows(
            ProcedureForm::Bounded,
            &own,
            &found(&[1, 2, 3], &[(1, 3)])
        ));
        assert!(!has_same_rows(
            ProcedureForm::Bounded,
            &own,
            &found(&[1, 2, 3], &[(1, 2)])
        ));
        assert!(has_same_rows(
            ProcedureForm::Newest,
            &own,
            &found(&[1, 2, 3], &[])
        ));
        assert!(!has_same_rows(
            ProcedureForm::Newest,
            &own,
            &found(&[1, 3], &[])
        ));
        // A row twice would be one row too many.
        assert!(!has_same_rows(
            ProcedureForm::Newest,
            &own,
            &found(&[1, 2, 3, 3], &[])
        ));
    }
}
