//! A timeline's two tables in one database: where the log tells of their rows, and the questions about them.

use std::fmt::Write as _;

use headwater_sql::{hex, push_list, quoted};
use headwater_timeline::definition::{Definition, FollowerTable, IntType, MessageTable};
use headwater_timeline::index::PlaceId;

use super::evidence::{Key, Table};
use super::routes::{Column, Route};

/// The two tables of a timeline, or the messages alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// The number of the place that they belong to.
    pub place: PlaceId,
    /// The database that they are in.
    pub database: String,
    /// Their names, and those of their columns.
    pub names: Names,
    /// How many ids a page has.
    pub n: usize,
}

/// What the two tables are called, and what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The messages.
    pub message: MessageTable,
    /// Who follows whom; `None`: whoever asks names the authors.
    pub follower: Option<FollowerTable>,
    /// The type of ids.
    pub id_type: IntType,
    /// The type of readers and authors.
    pub user_type: IntType,
}

impl Names {
    /// True where what is kept of these tables is all that is wanted of others: the same columns, whatever the width of their types;
    /// and who asks for no follows may have them all the same.
    #[must_use]
    pub fn serve(&self, wanted: &Names) -> bool {
        let signs = |names: &Names| (names.id_type.is_signed(), names.user_type.is_signed());
        self.message == wanted.message
            && signs(self) == signs(wanted)
            && (wanted.follower.is_none() || self.follower == wanted.follower)
    }
}

impl From<&Definition> for Names {
    fn from(definition: &Definition) -> Names {
        Names {
            message: definition.message.clone(),
            follower: Some(definition.follower.clone()),
            id_type: definition.id_type,
            user_type: definition.user_type,
        }
    }
}

impl Tables {
    /// The tables of a definition in a database.
    #[must_use]
    pub fn of(place: PlaceId, definition: &Definition, database: &str) -> Tables {
        Tables {
            place,
            database: database.to_owned(),
            names: Names::from(definition),
            n: usize::try_from(definition.n).unwrap_or(usize::MAX),
        }
    }

    /// The names of the tables.
    #[must_use]
    pub fn table_names(&self) -> Vec<&str> {
        let Names {
            message, follower, ..
        } = &self.names;
        let follower = follower.as_ref().map(|follower| &*follower.table);
        [&*message.table].into_iter().chain(follower).collect()
    }

    fn table(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.database), quoted(name))
    }

    /// Routes without columns: the tables are listened for, their rows not read yet.
    #[must_use]
    pub fn blind_routes(&self) -> Vec<Route> {
        let route = |table, name: &str, first, second| Route {
            place: self.place,
            table,
            database: self.database.clone(),
            name: name.to_owned(),
            columns: None,
            first: Column { at: 0, kind: first },
            second: Column {
                at: 0,
                kind: second,
            },
        };
        let Names {
            message,
            follower,
            id_type,
            user_type,
        } = &self.names;
        let messages = route(Table::Message, &message.table, *id_type, *user_type);
        let follows = |follower: &FollowerTable| {
            route(Table::Follower, &follower.table, *user_type, *user_type)
        };
        let follows = follower.as_ref().map(follows);
        [messages].into_iter().chain(follows).collect()
    }

    /// Asks for every column of the tables.
    #[must_use]
    pub fn columns_query(&self) -> String {
        let names: Vec<String> = self.table_names().into_iter().map(hex).collect();
        format!(
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} \
             AND TABLE_NAME IN ({}) ORDER BY TABLE_NAME, ORDINAL_POSITION",
            hex(&self.database),
            names.join(", "),
        )
    }

    /// Asks for each of the tables how it was made.
    #[must_use]
    pub fn show_create_queries(&self) -> Vec<(&str, String)> {
        let query = |name| (name, format!("SHOW CREATE TABLE {}", self.table(name)));
        self.table_names().into_iter().map(query).collect()
    }

    /// The routes, from the columns that the server lists; `None` when one is not there.
    #[must_use]
    pub fn routes(&self, columns: &[(String, String)]) -> Option<Vec<Route>> {
        let of = |table: &str| -> Vec<&str> {
            columns
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(table))
                .map(|(_, column)| column.as_str())
                .collect()
        };
        let Names {
            message, follower, ..
        } = &self.names;
        let whole = |route: Route| {
            let [first, second] = match (route.table, follower) {
                (Table::Message, _) => [&message.id, &message.author],
                (Table::Follower, Some(follower)) => [&follower.reader, &follower.author],
                (Table::Follower, None) => return None,
            };
            let columns = of(&route.name);
            let at = |name: &str| {
                columns
                    .iter()
                    .position(|column| column.eq_ignore_ascii_case(name))
            };
            Some(Route {
                columns: Some(columns.len()),
                first: Column {
                    at: at(first)?,
                    ..route.first
                },
                second: Column {
                    at: at(second)?,
                    ..route.second
                },
                ..route
            })
        };
        self.blind_routes().into_iter().map(whole).collect()
    }

    /// Asks for the follow lists of these readers (pairs, by reader or author), for at most `limit` follows.
    #[must_use]
    pub fn follows_query(&self, readers: &[u64], limit: usize) -> Option<String> {
        let follower = self.names.follower.as_ref()?;
        let (reader, author) = (quoted(&follower.reader), quoted(&follower.author));
        Some(lists(&format!(
            "SELECT {reader} AS k, {author} AS v FROM {table} WHERE {reader} IN ({readers}) \
             AND {author} IS NOT NULL LIMIT {limit}",
            table = self.table(&follower.table),
            readers = list(readers),
        )))
    }

    /// Asks for one reader's follow list, an author a row, for at most `limit` follows.
    #[must_use]
    pub fn follow_query(&self, reader: u64, limit: usize) -> Option<String> {
        let follower = self.names.follower.as_ref()?;
        Some(format!(
            "SELECT {author} FROM {table} WHERE {column} = {reader} AND {author} IS NOT NULL LIMIT {limit}",
            author = quoted(&follower.author),
            table = self.table(&follower.table),
            column = quoted(&follower.reader),
        ))
    }

    /// Asks for the next readers behind one, and for how many there are.
    #[must_use]
    pub fn readers_query(&self, behind: Option<u64>, limit: usize) -> Option<String> {
        let follower = self.names.follower.as_ref()?;
        let reader = quoted(&follower.reader);
        let table = self.table(&follower.table);
        let behind = behind.map_or_else(
            || format!("{reader} >= 0"),
            |behind| format!("{reader} > {behind}"),
        );
        Some(format!(
            "SELECT DISTINCT {reader} FROM {table} WHERE {behind} ORDER BY {reader} LIMIT {limit}"
        ))
    }

    /// Asks how many readers there are.
    #[must_use]
    pub fn count_query(&self) -> Option<String> {
        let follower = self.names.follower.as_ref()?;
        let reader = quoted(&follower.reader);
        let table = self.table(&follower.table);
        Some(format!("SELECT COUNT(DISTINCT {reader}) FROM {table}"))
    }

    /// Asks for the greatest id.
    #[must_use]
    pub fn top_query(&self) -> String {
        let id = quoted(&self.names.message.id);
        let table = self.table(&self.names.message.table);
        format!("SELECT MAX({id}) FROM {table}")
    }

    /// Asks for all ids of these authors from one on, and below another one (pairs, by reader or author), for at most `limit`.
    /// From 0 on means all there are: ids below 0 have to be noticed.
    #[must_use]
    pub fn range_query(
        &self,
        authors: &[u64],
        from: u64,
        below: Option<u64>,
        limit: usize,
    ) -> String {
        let id = quoted(&self.names.message.id);
        let author = quoted(&self.names.message.author);
        let mut range = below.map_or_else(String::new, |below| format!(" AND {id} < {below}"));
        if from > 0 {
            let _ = write!(range, " AND {id} >= {from}");
        }
        lists(&format!(
            "SELECT {author} AS k, {id} AS v FROM {table} WHERE {author} IN ({authors}){range} LIMIT {limit}",
            table = self.table(&self.names.message.table),
            authors = list(authors),
        ))
    }

    /// Asks for the newest ids of an author, below one where there is one, an id a row.
    #[must_use]
    pub fn newest_query(&self, author: u64, below: Option<u64>, limit: usize) -> String {
        let id = quoted(&self.names.message.id);
        let column = quoted(&self.names.message.author);
        let below = below.map_or_else(String::new, |below| format!(" AND {id} < {below}"));
        format!(
            "SELECT {id} FROM {table} WHERE {column} = {author}{below} \
             ORDER BY {column} DESC, {id} DESC LIMIT {limit}",
            table = self.table(&self.names.message.table),
        )
    }

    /// Asks for rows by their keys: place, table (0 or 1), both parts of the key, author.
    #[must_use]
    pub fn evidence_query(&self, keys: &[Key]) -> Vec<String> {
        let mut queries = Vec::new();
        let number = self.place.0;
        let messages: Vec<u64> = keys
            .iter()
            .filter(|key| key.table == Table::Message)
            .map(|key| key.first)
            .collect();
        if !messages.is_empty() {
            queries.push(format!(
                "SELECT {number}, 0, {id}, 0, {author} FROM {table} WHERE {id} IN ({ids}) AND {author} IS NOT NULL",
                id = quoted(&self.names.message.id),
                author = quoted(&self.names.message.author),
                table = self.table(&self.names.message.table),
                ids = list(&messages),
            ));
        }
        let Some(follower) = &self.names.follower else {
            return queries;
        };
        let reader = quoted(&follower.reader);
        let author = quoted(&follower.author);
        let edges: Vec<String> = keys
            .iter()
            .filter(|key| key.table == Table::Follower)
            .map(|key| format!("({reader} = {} AND {author} = {})", key.first, key.second))
            .collect();
        if !edges.is_empty() {
            queries.push(format!(
                "SELECT {number}, 1, {reader}, {author}, {author} FROM {table} WHERE {edges}",
                table = self.table(&follower.table),
                edges = edges.join(" OR "),
            ));
        }
        queries
    }
}

/// Of pairs `k, v`: each `k`, how many there are, a sum to check them by, and all `v`.
fn lists(pairs: &str) -> String {
    format!("SELECT k, COUNT(*), BIT_XOR(v), GROUP_CONCAT(v) FROM ({pairs}) AS pairs GROUP BY k")
}

fn list(numbers: &[u64]) -> String {
    let mut list = String::new();
    push_list(&mut list, numbers);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_kept_serve_whoever_wants_no_more_of_them() {
        let classic = Names::from(&Definition::classic());
        let wider = Names {
            id_type: IntType::BigIntUnsigned,
            ..classic.clone()
        };
        let alone = Names {
            follower: None,
            ..classic.clone()
        };
        assert!(classic.serve(&wider) && wider.serve(&classic));
        assert!(classic.serve(&alone) && !alone.serve(&classic));
        let signed = Names {
            id_type: IntType::Int,
            ..classic.clone()
        };
        assert!(!classic.serve(&signed));
        let mut other = classic.clone();
        other.message.author = "owner".into();
        assert!(!classic.serve(&other));
    }
}
