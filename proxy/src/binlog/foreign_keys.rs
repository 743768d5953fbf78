//! Foreign keys that change rows of a timeline's tables by themselves. MariaDB, and MySQL before 9.6, do not log these changes.
//!
//! They are read from SHOW CREATE TABLE, which an account with SELECT may run: MariaDB lists a key's rules in `information_schema` only to
//! accounts with another privilege on the table.

use super::obstacle::BinlogObstacle;
use super::row_decoding::text;
use crate::account::{AccountConnection, AccountError};

const NO_SUCH_TABLE: u16 = 1146;

/// Runs these SHOW CREATE TABLE statements; `None` for a table that does not exist.
///
/// # Errors
/// When the tables may not be seen, or the query fails.
pub(super) async fn load_table_definitions(
    tables: Vec<(String, String)>,
    conn: &mut AccountConnection,
) -> Result<Vec<(String, Option<String>)>, AccountError> {
    let mut all = Vec::with_capacity(tables.len());
    for (table, query) in tables {
        let created = match conn.rows(&query).await {
            Ok(rows) => rows.row(0).and_then(|row| text(row, 1)),
            Err(error) if error.code() == Some(NO_SUCH_TABLE) => None,
            Err(error) => return Err(error),
        };
        all.push((table, created));
    }
    Ok(all)
}

/// The cascading keys in these definitions. A missing table has none.
pub(super) fn cascading_keys(created: &[(String, Option<String>)]) -> Vec<BinlogObstacle> {
    let lines = |(table, created): &(String, Option<String>)| {
        let lines = created.as_deref().unwrap_or_default().lines();
        lines
            .filter_map(|line| cascade(table, line))
            .collect::<Vec<_>>()
    };
    created.iter().flat_map(lines).collect()
}

/// Parses a cascading key from a line of SHOW CREATE TABLE. Both servers write one key a line, and a line's end within a comment or a
/// default as `\n`.
fn cascade(table: &str, line: &str) -> Option<BinlogObstacle> {
    let key = line.trim_start().strip_prefix("CONSTRAINT ")?;
    let (name, key) = key.split_once(" FOREIGN KEY ")?;
    // After the last column: all names stand before it.
    let (_, rule) = key.rsplit_once(')')?;
    let acts = ["CASCADE", "SET NULL", "SET DEFAULT"];
    acts.iter()
        .any(|act| rule.contains(act))
        .then(|| BinlogObstacle::Cascade {
            constraint: name.trim_matches(['`', '"']).to_owned(),
            table: table.to_owned(),
            rule: rule.trim().trim_end_matches(',').to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(line: &str) -> Option<String> {
        match cascade("message", line) {
            Some(BinlogObstacle::Cascade {
                constraint, rule, ..
            }) => Some(format!("{constraint}: {rule}")),
            _ => None,
        }
    }

    #[test]
    fn keys_that_act_are_found_by_their_rule() {
        for (line, expected) in [
            (
                "  CONSTRAINT `fk` FOREIGN KEY (`user_id`) REFERENCES `user` (`id`) ON DELETE CASCADE,",
                Some("fk: ON DELETE CASCADE"),
            ),
            (
                "  CONSTRAINT `fk` FOREIGN KEY (`a`, `b`) REFERENCES `d`.`user` (`a`, `b`) ON DELETE SET NULL ON UPDATE CASCADE",
                Some("fk: ON DELETE SET NULL ON UPDATE CASCADE"),
            ),
            (
                "  CONSTRAINT \"fk\" FOREIGN KEY (\"a\") REFERENCES \"ON DELETE CASCADE\" (\"id\") ON DELETE NO ACTION",
                None,
            ),
            (
                "  CONSTRAINT `fk` FOREIGN KEY (`a`) REFERENCES `user` (`x) ON DELETE CASCADE`)",
                None,
            ),
            (
                "  CONSTRAINT `fk` FOREIGN KEY (`a`) REFERENCES `user` (`id`)",
                None,
            ),
            ("  CONSTRAINT `positive` CHECK (`id` > 0)", None),
            (
                "  `body` text COMMENT 'CONSTRAINT `x` FOREIGN KEY () ON DELETE CASCADE',",
                None,
            ),
        ] {
            assert_eq!(rule(line).as_deref(), expected, "{line}");
        }
    }
}
