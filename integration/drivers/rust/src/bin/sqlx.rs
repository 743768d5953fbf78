//! sqlx: text and prepared statements; it sets up its session with its own statements.

use drivers::{DIGITS, Given, TAIL, given, script};
use futures_util::TryStreamExt;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlRow, MySqlSslMode};
use sqlx::{Arguments, Column, ConnectOptions, Connection, Either, Error, Executor, Row, TypeInfo, ValueRef};

fn failed(error: &Error) {
    match error {
        Error::Database(error) => println!("error {:?} {}", error.code(), error.message()),
        other => println!("error {other}"),
    }
}

/// The raw bytes of the cells: text or binary.
fn cells(row: &MySqlRow) -> Vec<Option<String>> {
    let cell = |at: usize| {
        let value = row.try_get_raw(at).ok()?;
        if value.is_null() {
            return None;
        }
        let bytes = row.try_get_unchecked::<Vec<u8>, _>(at).ok()?;
        Some(bytes.escape_ascii().to_string())
    };
    (0..row.len()).map(cell).collect()
}

async fn tell(connection: &mut MySqlConnection, sql: &'static str, arguments: Option<MySqlArguments>) {
    println!("-- {sql}");
    let mut answers = match arguments {
        None => connection.fetch_many(sqlx::raw_sql(sql)),
        Some(arguments) => connection.fetch_many(sqlx::query_with(sql, arguments)),
    };
    let mut rows = Vec::new();
    loop {
        match answers.try_next().await {
            Ok(Some(Either::Left(done))) => {
                println!("affected {} id {}", done.rows_affected(), done.last_insert_id());
            }
            Ok(Some(Either::Right(row))) => {
                if rows.is_empty() {
                    for column in row.columns() {
                        println!(
                            "{} {} {:?}",
                            column.name(),
                            column.type_info().name(),
                            column.type_info()
                        );
                    }
                }
                rows.push(cells(&row));
            }
            Ok(None) => break,
            Err(error) => {
                failed(&error);
                break;
            }
        }
    }
    drivers::see(&format!("{rows:?}"));
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let given = given();
    let options = MySqlConnectOptions::new()
        .host(&given.host)
        .port(given.port)
        .username(&given.user)
        .password(&given.password)
        .database(&given.database)
        .ssl_mode(if given.tls {
            MySqlSslMode::VerifyIdentity
        } else {
            MySqlSslMode::Disabled
        })
        .ssl_ca(given.ca);
    let mut connection = options.connect().await?;
    for (sql, given) in script() {
        let arguments = given.map(|values| {
            let mut arguments = MySqlArguments::default();
            for value in values {
                let added = match value {
                    Given::Number(number) => arguments.add(number),
                    Given::Text(text) => arguments.add(text),
                    Given::Null => arguments.add(None::<String>),
                };
                added.expect("an argument");
            }
            arguments
        });
        tell(&mut connection, sql, arguments).await;
    }
    tell(
        &mut connection,
        "CALL fetch_timeline_ids(7); SELECT id FROM fetch_timeline_tt ORDER BY id; SELECT 1",
        None,
    )
    .await;
    let mut transaction = connection.begin().await?;
    tell(&mut transaction, "CALL fetch_timeline_ids(7)", None).await;
    tell(&mut transaction, TAIL, None).await;
    transaction.rollback().await?;
    tell(&mut connection, "CALL fetch_timeline_ids2(7, 6000)", None).await;
    tell(&mut connection, TAIL, None).await;
    tell(&mut connection, DIGITS, None).await;
    connection.ping().await?;
    connection.close().await?;
    if let Err(error) = options.password("wrong").connect().await {
        failed(&error);
    }
    Ok(())
}
