//! The demo's output: a timeline, and the commands to type next.

use std::net::SocketAddr;

use mysql_async::prelude::Queryable;

use crate::query_path::PageTask;

use super::{DATABASE, DemoError, accounts, connect};

/// The second statement of an app that uses the procedures.
pub(super) const FOLLOW_UP_SELECT: &str = "SELECT message.id, user_id, body FROM message \
    INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
/// Characters of a body that fit beside the other columns.
const BODY_WIDTH: usize = 56;

#[derive(Debug, Clone, Copy)]
pub(super) struct ShownPage {
    reader: u32,
    last_id: u64,
}

/// Reads a typical reader's timeline as an app does, and prints it.
pub(super) async fn print_first_timeline(proxy: SocketAddr) -> Result<ShownPage, DemoError> {
    let reading = || DemoError::client("read a timeline through Headwater");
    let mut conn = connect(proxy, accounts::APP, Some(DATABASE)).await?;
    let typical = "SELECT user_id FROM follower GROUP BY user_id \
        ORDER BY ABS(COUNT(*) - 43), user_id LIMIT 1";
    let reader: u32 = conn
        .query_first(typical)
        .await
        .map_err(reading())?
        .unwrap_or(1);
    let call = format!("CALL fetch_timeline_ids({reader})");
    conn.query_drop(&call).await.map_err(reading())?;
    let rows: Vec<(u64, u32, String)> = conn.query(FOLLOW_UP_SELECT).await.map_err(reading())?;
    conn.disconnect().await.map_err(reading())?;

    println!("{call}; then the join with message:\n");
    println!("{:>9}  {:>7}  body", "id", "user_id");
    for (id, author, body) in &rows {
        println!("{id:>9}  {author:>7}  {}", shortened(body));
    }
    println!();
    let last_id = rows.last().map_or(1, |&(id, ..)| id);
    Ok(ShownPage { reader, last_id })
}

/// Prints the exact commands for the installed clients.
pub(super) fn print_next_steps(server: SocketAddr, proxy: SocketAddr, page: ShownPage) {
    let ShownPage { reader, last_id } = page;
    let place = format!(
        "-h {} -P {} -u {} {DATABASE}",
        proxy.ip(),
        proxy.port(),
        accounts::APP
    );
    // Newer MariaDB clients require TLS by default.
    let clients = [("mariadb", "mariadb --skip-ssl"), ("mysql", "mysql")];
    println!("Try it with any MySQL client:\n");
    for (_, client) in clients
        .iter()
        .filter(|(program, _)| is_installed(program))
        .take(1)
    {
        println!("    {client} {place}\n");
    }
    println!("and there\n");
    println!("    CALL fetch_timeline_ids({reader});");
    println!("    {FOLLOW_UP_SELECT};");
    println!(
        "    CALL fetch_timeline_ids2({reader}, {});",
        last_id.saturating_sub(1)
    );
    println!("    {FOLLOW_UP_SELECT};");
    println!("\nor one SELECT in place of them, which is answered as a feed's:\n");
    let join = PageTask {
        reader: reader.into(),
        bound: None,
    }
    .join();
    println!("    {join};");
    println!("\nMeasure it, from another terminal:\n");
    let program = std::env::current_exe().unwrap_or_else(|_| "headwater".into());
    println!(
        "    {} bench --feed --upstream {server} --user {} --service-user {}",
        program.display(),
        accounts::APP,
        accounts::SERVICE
    );
    println!("\nCtrl-C stops both and removes the data.");
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn shortened(body: &str) -> String {
    if body.chars().count() <= BODY_WIDTH {
        return body.to_owned();
    }
    let mut text: String = body.chars().take(BODY_WIDTH - 3).collect();
    text.push_str("...");
    text
}
