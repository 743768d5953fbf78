//! The accounts of a private server: one for apps, one for Headwater itself.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::load::LoadError;
use crate::private_server::ServerKind;
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_timeline::check::ServerProduct;

/// An app's account: it reads and writes the database and runs its procedures.
pub const APP: &str = "app";
/// The service account: it sees the tables, and has every right of [`RequiredPrivilege`].
pub const SERVICE: &str = "headwater";

/// Recreates both accounts with empty passwords, for use in `database`. An empty password needs no TLS under either product's default
/// authentication.
///
/// # Errors
/// The server's error.
pub async fn create(conn: &mut Conn, kind: ServerKind, database: &str) -> Result<(), LoadError> {
    let app_rights = "SELECT, INSERT, UPDATE, DELETE, EXECUTE, CREATE TEMPORARY TABLES";
    let mut statements = Vec::new();
    for user in [APP, SERVICE] {
        statements.push(format!("DROP USER IF EXISTS '{user}'@'%'"));
        statements.push(format!("CREATE USER '{user}'@'%' IDENTIFIED BY ''"));
    }
    statements.push(format!(
        "GRANT {app_rights} ON `{database}`.* TO '{APP}'@'%'"
    ));
    statements.push(format!("GRANT SELECT ON `{database}`.* TO '{SERVICE}'@'%'"));
    let product = match kind {
        ServerKind::Mariadb => ServerProduct::Mariadb,
        ServerKind::Mysql => ServerProduct::Mysql,
    };
    for right in [
        RequiredPrivilege::Bodies(product),
        RequiredPrivilege::FollowLog,
        RequiredPrivilege::LogPosition,
        RequiredPrivilege::OpenTransactions,
    ] {
        statements.push(right.grant_statement(&format!("'{SERVICE}'@'%'")));
    }
    for sql in statements {
        let doing = "make the accounts";
        let result = conn.query_drop(sql).await;
        result.map_err(|source| LoadError { doing, source })?;
    }
    Ok(())
}
