//! mysql_async: text and prepared statements, every result of a command.

use std::fmt::Debug;

use drivers::{DIGITS, Given, TAIL, given, script};
use mysql_async::prelude::*;
use mysql_async::{BinaryProtocol, Conn, Error, OptsBuilder, Params, QueryResult, SslOpts, TextProtocol, Value};

fn see(what: &impl Debug) {
    drivers::see(&format!("{what:?}"));
}

fn failed(error: &Error) {
    match error {
        Error::Server(error) => println!("error {} {} {}", error.code, error.state, error.message),
        other => println!("error {other:?}"),
    }
}

async fn show<P: mysql_async::prelude::Protocol>(mut result: QueryResult<'_, 'static, P>) -> Result<(), Error> {
    loop {
        let columns = result.columns();
        // Before rows, this would be the OK of the preparation, with the statement's number.
        if result.columns_ref().is_empty() {
            println!(
                "{} {:?} {} {:?}",
                result.affected_rows(),
                result.last_insert_id(),
                result.warnings(),
                result.info()
            );
        }
        let cells = |row: mysql_async::Row| row.unwrap().iter().map(|cell| cell.as_sql(true)).collect();
        let rows: Vec<Vec<String>> = result.map(cells).await?;
        for column in columns.iter().flat_map(|columns| columns.iter()) {
            println!(
                "{} {} {} {:?} {:?} {} {} {}",
                column.name_str(),
                column.org_name_str(),
                column.table_str(),
                column.column_type(),
                column.flags(),
                column.character_set(),
                column.column_length(),
                column.decimals()
            );
        }
        see(&rows);
        if result.is_empty() {
            return Ok(());
        }
    }
}

async fn query(connection: &mut Conn, sql: &str) {
    println!("-- {sql}");
    let shown = match connection.query_iter(sql).await {
        Ok(result) => show::<TextProtocol>(result).await,
        Err(error) => Err(error),
    };
    if let Err(error) = shown {
        failed(&error);
    }
}

async fn execute(connection: &mut Conn, sql: &str, params: Params) {
    println!("-- {sql}");
    let shown = match connection.exec_iter(sql, params).await {
        Ok(result) => show::<BinaryProtocol>(result).await,
        Err(error) => Err(error),
    };
    if let Err(error) = shown {
        failed(&error);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let given = given();
    let ssl = SslOpts::default().with_root_certs(vec![given.ca.into()]);
    let opts = OptsBuilder::default()
        .ip_or_hostname(given.host)
        .tcp_port(given.port)
        .user(Some(given.user))
        .pass(Some(given.password))
        .db_name(Some(given.database))
        // Without TLS, the driver asks for the server's socket and switches to it if both are on one machine.
        .prefer_socket(false)
        .ssl_opts(given.tls.then_some(ssl));
    let mut connection = Conn::new(opts.clone()).await?;
    println!("{:?}", connection.server_version());
    for (sql, given) in script() {
        match given {
            None => query(&mut connection, sql).await,
            Some(values) => {
                let values: Vec<Value> = values
                    .into_iter()
                    .map(|value| match value {
                        Given::Number(number) => number.into(),
                        Given::Text(text) => text.into(),
                        Given::Null => Value::NULL,
                    })
                    .collect();
                let params = if values.is_empty() {
                    Params::Empty
                } else {
                    Params::Positional(values)
                };
                execute(&mut connection, sql, params).await;
            }
        }
    }
    query(
        &mut connection,
        &format!("CALL fetch_timeline_ids(7); {TAIL}; SELECT 1"),
    )
    .await;
    let mut transaction = connection.start_transaction(Default::default()).await?;
    transaction.query_drop("CALL fetch_timeline_ids(7)").await?;
    see(&transaction.query::<(u32, u32, String), _>(TAIL).await?);
    transaction.rollback().await?;
    connection.query_drop("CALL fetch_timeline_ids2(7, 6000)").await?;
    see(&connection.query::<(u32, u32, String), _>(TAIL).await?);
    query(&mut connection, DIGITS).await;
    connection.ping().await?;
    println!("reset {}", connection.reset().await?);
    query(&mut connection, TAIL).await;
    connection.change_user(Default::default()).await?;
    query(&mut connection, "CALL fetch_timeline_ids(7)").await;
    query(&mut connection, TAIL).await;
    connection.disconnect().await?;
    if let Err(error) = Conn::new(opts.pass(Some("wrong"))).await {
        failed(&error);
    }
    Ok(())
}
