//! Fills in a request's placeholders for each reader: `{ids}` needs the rows of the statement that it means.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use super::file::{RequestFile, RequestStep};
use crate::bench::BenchError;
use crate::bench::data::shuffle;
use crate::bench::flags::BenchFlags;
use crate::query_path::query_packet;

/// One reader's request: every statement as it is sent.
#[derive(Clone, Debug)]
pub struct ReaderRequest {
    /// The packet of each step; `None`: connect.
    pub packets: Vec<Option<Vec<u8>>>,
    /// The statements, for messages.
    pub statements: Vec<String>,
}

/// Readers that are read at most.
const MAX_READERS: usize = 100_000;

/// The requests of as many readers as the flags want, each at the page after so many rows.
///
/// # Errors
/// Fails if the server cannot be reached, refuses a statement, or knows no reader.
pub async fn resolve(
    flags: &BenchFlags,
    file: &RequestFile,
    readers: &str,
    page: u64,
) -> Result<Vec<ReaderRequest>, BenchError> {
    let at = |source| crate::bench::prepare_error(flags, source);
    let mut conn = crate::bench::data::connect(flags, &flags.database)
        .await
        .map_err(at)?;
    let rows: Vec<Row> = conn.query(readers).await.map_err(at)?;
    let mut all: Vec<String> = rows
        .iter()
        .take(MAX_READERS)
        .filter_map(|row| literal(row.as_ref(0)?))
        .collect();
    if all.is_empty() {
        return Err(BenchError::NoRequestReaders {
            select: readers.to_owned(),
        });
    }
    shuffle(&mut all, flags.seed);
    let mut requests = Vec::new();
    for reader in all.iter().take(flags.readers) {
        requests.push(
            resolve_one(&mut conn, file, reader, page)
                .await
                .map_err(at)?,
        );
    }
    conn.disconnect().await.map_err(at)?;
    Ok(requests)
}

async fn resolve_one(
    conn: &mut Conn,
    file: &RequestFile,
    reader: &str,
    page: u64,
) -> Result<ReaderRequest, mysql_async::Error> {
    let mut request = ReaderRequest {
        packets: Vec::new(),
        statements: Vec::new(),
    };
    let mut rows_of: Vec<Vec<Row>> = Vec::new();
    for (index, step) in file.steps.iter().enumerate() {
        let (mut rows, mut statement) = (Vec::new(), "connect".to_owned());
        let mut packet = None;
        if let RequestStep::Statement(template) = step {
            let ids = |column: usize| {
                let rows = template.ids_of.and_then(|at| rows_of.get(at));
                let values = rows.into_iter().flatten();
                let values = values.filter_map(|row| literal(row.as_ref(column)?));
                let list: Vec<String> = values.collect();
                // No row passes then, as where an app leaves the statement out.
                if list.is_empty() {
                    "NULL".to_owned()
                } else {
                    list.join(",")
                }
            };
            statement = template.statement(reader, page, ids);
            packet = Some(query_packet(&statement));
            let is_meant = file.steps.iter().any(|other| {
                matches!(other, RequestStep::Statement(other) if other.ids_of == Some(index))
            });
            if is_meant {
                rows = conn.query(statement.as_str()).await?;
            }
        }
        rows_of.push(rows);
        request.packets.push(packet);
        request.statements.push(statement);
    }
    Ok(request)
}

/// A value as SQL writes it; `None`: NULL.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) if !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        other => Some(other.as_sql(false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_sql() {
        let text = |bytes: &[u8]| literal(&Value::Bytes(bytes.to_vec()));
        assert_eq!(text(b"12").as_deref(), Some("12"));
        assert_eq!(text(b"a'b").as_deref(), Some("'a\\'b'"));
        assert_eq!(text(b"").as_deref(), Some("''"));
        assert_eq!(literal(&Value::NULL), None);
    }
}
