//! Columns of every type, in the text and the binary protocol, with every form of column metadata.

use super::columns::{Family, families, vectors_of_mariadb};
use super::player::Player;
use super::side::Side;
use super::statements::about;
use crate::kit::database::Database;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::{Answer, COM_STMT_CLOSE, Login, capability};

/// Capabilities that change the form of column metadata and the terminator of rows.
fn logins(login: &Login) -> Vec<(&'static str, Login)> {
    let with = |capabilities: u64| login.clone().with(capabilities);
    let metadata = with(capability::OPTIONAL_RESULTSET_METADATA);
    let cached = with(capability::MARIADB_CACHE_METADATA | capability::MARIADB_EXTENDED_METADATA);
    vec![
        ("as usual", login.clone()),
        ("with EOF", login.clone().without(capability::DEPRECATE_EOF)),
        ("metadata as wanted", metadata.clone()),
        (
            "metadata as wanted, with EOF",
            metadata.without(capability::DEPRECATE_EOF),
        ),
        ("metadata once", cached.clone()),
        (
            "metadata once, with EOF",
            cached.without(capability::DEPRECATE_EOF),
        ),
        (
            "metadata at length",
            with(capability::MARIADB_EXTENDED_METADATA),
        ),
    ]
}

#[test]
fn columns_of_every_type() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_types");
        let player = Player::new(server);
        let mut made = 0;
        let known = database.connect().query("SELECT VEC_FromText('[1]')");
        let vectors = matches!(known[..], [Answer::Rows(_)]).then(vectors_of_mariadb);
        eprintln!("vectors of MariaDB: {}", vectors.is_some());
        for family in families(server.is_mariadb()).into_iter().chain(vectors) {
            made += family.columns.len();
            fill(&mut database.connect(), &family);
            for (how, login) in logins(&database.login()) {
                let what = format!("{} {how}", family.name);
                player.play(&what, &login, |side| read(side, &family));
            }
        }
        assert!(made >= 150, "{made} types");
    });
}

/// Makes a table for each column, with a row for each of its values and one of NULL or the default.
fn fill(root: &mut crate::kit::wire_client::WireClient, family: &Family) {
    root.ok("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00', NAMES utf8mb4");
    for (number, column) in family.columns.iter().enumerate() {
        let table = format!("{}_{number}", family.name);
        root.ok(&format!(
            "CREATE TABLE {table} (c {}, k int) ENGINE = InnoDB",
            column.definition
        ));
        for value in &column.values {
            root.ok(&format!("INSERT INTO {table} (c, k) VALUES ({value}, 1)"));
        }
        let null = if column.definition.contains("NOT NULL") || column.values[0] == "DEFAULT" {
            "DEFAULT"
        } else {
            "NULL"
        };
        root.ok(&format!("INSERT INTO {table} (c, k) VALUES ({null}, 2)"));
    }
}

fn read(side: &mut Side, family: &Family) {
    side.query("SET time_zone = '+00:00'");
    for number in 0..family.columns.len() {
        let table = format!("{}_{number}", family.name);
        let sql = format!("SELECT c, k FROM {table}");
        side.query(&sql);
        let id = side.prepare(&sql);
        // On the second execution, metadata that is sent only once is absent.
        side.execute(id, &[], 0);
        side.execute(id, &[], 0);
        side.command(&about(COM_STMT_CLOSE, id, &[]));
        side.command(&[b"\x04", table.as_bytes(), b"\0c"].concat());
    }
    // Without metadata, where the server allows that.
    let first = format!("{}_0", family.name);
    side.query("SET resultset_metadata = 'NONE'");
    side.query(format!("SELECT c, k FROM {first}"));
    let id = side.prepare(&format!("SELECT c, ? FROM {first}"));
    side.execute(id, &[Some("1")], 0);
    side.query(format!("SELECT * FROM {first}; SELECT k FROM {first}"));
    side.query("SET resultset_metadata = 'FULL'");
    side.query(format!("SELECT * FROM {first}; SHOW CREATE TABLE {first}"));
}
