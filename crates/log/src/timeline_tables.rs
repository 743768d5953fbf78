//! A timeline's two tables in one database: their routes in the log, and queries about them.

use std::fmt::Write as _;

use headwater_sql::{hex_literal, push_list, quoted};
use headwater_timeline::KeyType;
use headwater_timeline::definition::{FollowerTable, IdType, MessageTable, TimelineDefinition};
use headwater_timeline::index::{KeyedMessage, TimelineId};

use super::evidence::{TableRole, TableRowKey};
use super::routes::{ColumnPosition, KeyColumnPosition, TableRoute};

/// The two tables of a timeline, or the message table alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineTables {
    /// The timeline that they belong to.
    pub timeline_id: TimelineId,
    /// The tables' database.
    pub database: String,
    /// The names of the tables and of their columns.
    pub schema: TimelineSchema,
    /// How many ids a page has.
    pub page_ids: usize,
}

/// The names, columns and types of the two tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineSchema {
    /// The messages.
    pub message: MessageTable,
    /// The sort key that orders pages before the id; `None`: the id alone.
    pub key: Option<KeyColumnDefinition>,
    /// Who follows whom; `None`: the statement names the authors.
    pub follower: Option<FollowerTable>,
    /// The follow table may hold a pair twice.
    pub has_follow_copies: bool,
    /// Some of the columns that hold users are signed, and others are not.
    pub has_mixed_signs: bool,
    /// The messages' rows are on other servers: this log only shows changes of that table's definition.
    pub elsewhere: bool,
    /// The type of ids.
    pub id_type: IdType,
    /// The type of readers and authors.
    pub user_type: IdType,
}

/// A sort key's column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumnDefinition {
    /// The column's name.
    pub column: String,
    /// The column's type.
    pub kind: KeyType,
}

impl KeyColumnDefinition {
    fn satisfies(&self, required: &KeyColumnDefinition) -> bool {
        self.column == required.column && self.kind.has_same_encoding(required.kind)
    }
}

impl TimelineSchema {
    /// True if what is in memory for these tables suffices for `required`: the same columns, whatever the width of their types. Follows may
    /// be present even if they are not required.
    #[must_use]
    pub fn satisfies(&self, required: &TimelineSchema) -> bool {
        let signs =
            |names: &TimelineSchema| (names.id_type.is_signed(), names.user_type.is_signed());
        let key = match (&self.key, &required.key) {
            (Some(cached), Some(required_key)) => cached.satisfies(required_key),
            (cached, required_key) => cached.is_none() && required_key.is_none(),
        };
        self.message == required.message
            && key
            && self.elsewhere == required.elsewhere
            && signs(self) == signs(required)
            && self.has_mixed_signs >= required.has_mixed_signs
            && (required.follower.is_none()
                || self.follower == required.follower
                    && self.has_follow_copies >= required.has_follow_copies)
    }
}

impl From<&TimelineDefinition> for TimelineSchema {
    fn from(definition: &TimelineDefinition) -> TimelineSchema {
        TimelineSchema {
            message: definition.message.clone(),
            key: None,
            follower: Some(definition.follower.clone()),
            has_follow_copies: false,
            has_mixed_signs: false,
            elsewhere: false,
            id_type: definition.id_type,
            user_type: definition.user_type,
        }
    }
}

impl TimelineTables {
    /// The tables of a definition whose messages' rows are on other servers.
    #[must_use]
    pub fn elsewhere(definition: &TimelineDefinition, database: &str) -> TimelineTables {
        let mut tables = TimelineTables::of(TimelineId(0), definition, database);
        tables.schema.elsewhere = true;
        tables
    }

    /// The tables of a definition in a database.
    #[must_use]
    pub fn of(
        timeline_id: TimelineId,
        definition: &TimelineDefinition,
        database: &str,
    ) -> TimelineTables {
        TimelineTables {
            timeline_id,
            database: database.to_owned(),
            schema: TimelineSchema::from(definition),
            page_ids: usize::try_from(definition.n).unwrap_or(usize::MAX),
        }
    }

    /// The names of the tables.
    #[must_use]
    pub fn table_names(&self) -> Vec<&str> {
        let TimelineSchema {
            message, follower, ..
        } = &self.schema;
        let follower = follower.as_ref().map(|follower| &*follower.table);
        [&*message.table].into_iter().chain(follower).collect()
    }

    fn qualified_name(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.database), quoted(name))
    }

    /// Routes without column positions: the tables are watched, but their rows cannot be read yet.
    #[must_use]
    pub fn blind_routes(&self) -> Vec<TableRoute> {
        let route = |table, name: &str, first, second| TableRoute {
            table_id: self.timeline_id.into(),
            table,
            database: self.database.clone(),
            name: name.to_owned(),
            columns: None,
            first: ColumnPosition { at: 0, kind: first },
            second: ColumnPosition {
                at: 0,
                kind: second,
            },
            key: None,
            has_copies: false,
            has_mixed_signs: self.schema.has_mixed_signs,
        };
        let TimelineSchema {
            message,
            key,
            follower,
            has_follow_copies,
            has_mixed_signs: _,
            id_type,
            user_type,
            elsewhere,
        } = &self.schema;
        let table = match elsewhere {
            // Rows of such a table are in no index.
            true => TableRole::Referred,
            false => TableRole::Message,
        };
        let messages = TableRoute {
            key: key.as_ref().map(|key| KeyColumnPosition {
                at: 0,
                kind: key.kind,
            }),
            ..route(table, &message.table, *id_type, *user_type)
        };
        let follows = |follower: &FollowerTable| TableRoute {
            has_copies: *has_follow_copies,
            ..route(TableRole::Follower, &follower.table, *user_type, *user_type)
        };
        let follows = follower.as_ref().map(follows);
        [messages].into_iter().chain(follows).collect()
    }

    /// Query for all columns of the tables.
    #[must_use]
    pub fn columns_query(&self) -> String {
        let names: Vec<String> = self.table_names().into_iter().map(hex_literal).collect();
        format!(
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} \
             AND TABLE_NAME IN ({}) ORDER BY TABLE_NAME, ORDINAL_POSITION",
            hex_literal(&self.database),
            names.join(", "),
        )
    }

    /// For each table its name, and the query for its definition.
    #[must_use]
    pub fn show_create_queries(&self) -> Vec<(String, String)> {
        let query = |name: &str| {
            let query = format!("SHOW CREATE TABLE {}", self.qualified_name(name));
            (name.to_owned(), query)
        };
        self.table_names().into_iter().map(query).collect()
    }

    /// The routes, from the columns that the server lists; `None` if one is missing.
    #[must_use]
    pub fn routes(&self, columns: &[(String, String)]) -> Option<Vec<TableRoute>> {
        let columns_of = |table: &str| -> Vec<&str> {
            columns
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(table))
                .map(|(_, column)| column.as_str())
                .collect()
        };
        let TimelineSchema {
            message,
            key,
            follower,
            elsewhere,
            ..
        } = &self.schema;
        let resolve_columns = |route: TableRoute| {
            // Changes of its definition are detected whether its columns are known or not.
            if *elsewhere && route.table == TableRole::Referred {
                return Some(route);
            }
            let [first, second] = match (route.table, follower) {
                (TableRole::Message, _) => [&message.id, &message.author],
                (TableRole::Follower, Some(follower)) => [&follower.reader, &follower.author],
                (TableRole::Follower, None) | (TableRole::Referred, _) => return None,
            };
            let columns = columns_of(&route.name);
            let at = |name: &str| {
                columns
                    .iter()
                    .position(|column| column.eq_ignore_ascii_case(name))
            };
            let key = match (route.key, key) {
                (Some(blind), Some(key)) => Some(KeyColumnPosition {
                    at: at(&key.column)?,
                    ..blind
                }),
                _ => None,
            };
            Some(TableRoute {
                columns: Some(columns.len()),
                key,
                first: ColumnPosition {
                    at: at(first)?,
                    ..route.first
                },
                second: ColumnPosition {
                    at: at(second)?,
                    ..route.second
                },
                ..route
            })
        };
        self.blind_routes()
            .into_iter()
            .map(resolve_columns)
            .collect()
    }

    /// Query for the follow lists of these readers (pairs, by reader or author), with at most `limit` follows.
    #[must_use]
    pub fn follows_query(&self, readers: &[u64], limit: usize) -> Option<String> {
        let follower = self.schema.follower.as_ref()?;
        let (reader, author) = (quoted(&follower.reader), quoted(&follower.author));
        Some(grouped_pairs(&format!(
            "SELECT {reader} AS k, {author} AS v FROM {table} WHERE {reader} IN ({readers}) \
             AND {author} IS NOT NULL LIMIT {limit}",
            table = self.qualified_name(&follower.table),
            readers = number_list(readers),
        )))
    }

    /// Query for one reader's follow list, an author per row, with at most `limit` follows.
    #[must_use]
    pub fn reader_follows_query(&self, reader: u64, limit: usize) -> Option<String> {
        let follower = self.schema.follower.as_ref()?;
        Some(format!(
            "SELECT {author} FROM {table} WHERE {column} = {reader} AND {author} IS NOT NULL LIMIT {limit}",
            author = quoted(&follower.author),
            table = self.qualified_name(&follower.table),
            column = quoted(&follower.reader),
        ))
    }

    /// Query for the next readers after a given one, at most `limit`.
    #[must_use]
    pub fn readers_query(&self, behind: Option<u64>, limit: usize) -> Option<String> {
        let follower = self.schema.follower.as_ref()?;
        let reader = quoted(&follower.reader);
        let table = self.qualified_name(&follower.table);
        let behind = behind.map_or_else(
            || format!("{reader} >= 0"),
            |behind| format!("{reader} > {behind}"),
        );
        Some(format!(
            "SELECT DISTINCT {reader} FROM {table} WHERE {behind} ORDER BY {reader} LIMIT {limit}"
        ))
    }

    /// Query for the number of readers.
    #[must_use]
    pub fn reader_count_query(&self) -> Option<String> {
        let follower = self.schema.follower.as_ref()?;
        let reader = quoted(&follower.reader);
        let table = self.qualified_name(&follower.table);
        Some(format!("SELECT COUNT(DISTINCT {reader}) FROM {table}"))
    }

    /// Query for the largest id; `None` if the messages are on other servers.
    #[must_use]
    pub fn max_id_query(&self) -> Option<String> {
        let id = quoted(&self.schema.message.id);
        let table = self.qualified_name(&self.schema.message.table);
        (!self.schema.elsewhere).then(|| format!("SELECT MAX({id}) FROM {table}"))
    }

    /// Query for all ids of these authors in `from..below` (pairs, by reader or author), at most `limit`. From 0 on means all there are,
    /// since ids below 0 must be noticed.
    #[must_use]
    pub fn message_range_query(
        &self,
        authors: &[u64],
        from: u64,
        below: Option<u64>,
        limit: usize,
    ) -> String {
        let id = quoted(&self.schema.message.id);
        let author = quoted(&self.schema.message.author);
        let mut range = below.map_or_else(String::new, |below| format!(" AND {id} < {below}"));
        if from > 0 {
            let _ = write!(range, " AND {id} >= {from}");
        }
        grouped_pairs(&format!(
            "SELECT {author} AS k, {id} AS v FROM {table} WHERE {author} IN ({authors}){range} LIMIT {limit}",
            table = self.qualified_name(&self.schema.message.table),
            authors = number_list(authors),
        ))
    }

    /// Query for the newest ids of an author, below one if given, an id per row.
    #[must_use]
    pub fn newest_messages_query(&self, author: u64, below: Option<u64>, limit: usize) -> String {
        let id = quoted(&self.schema.message.id);
        let column = quoted(&self.schema.message.author);
        let below = below.map_or_else(String::new, |below| format!(" AND {id} < {below}"));
        format!(
            "SELECT {id} FROM {table} WHERE {column} = {author}{below} \
             ORDER BY {column} DESC, {id} DESC LIMIT {limit}",
            table = self.qualified_name(&self.schema.message.table),
        )
    }

    /// Query for each author's newest messages below one: author, id, key as text. The session must be in UTC and accept any date. `None`:
    /// pages are ordered by the id alone, or the key has no text.
    #[must_use]
    pub fn newest_keyed_messages_query(
        &self,
        requests: &[NewestMessagesRequest],
    ) -> Option<String> {
        let key_column = self.schema.key.as_ref()?;
        let key = quoted(&key_column.column);
        let id = quoted(&self.schema.message.id);
        let column = quoted(&self.schema.message.author);
        let table = self.qualified_name(&self.schema.message.table);
        let mut selects = Vec::with_capacity(requests.len());
        for request in requests {
            let below = match request.below {
                None => String::new(),
                // NULL is last. `IS NULL` would find 0000-00-00 as well.
                Some(KeyedMessage { key: 0, id: last }) => {
                    format!(" AND {key} <=> NULL AND {id} < {last}")
                }
                Some(KeyedMessage { key: at, id: last }) => {
                    let at = key_column.kind.literal(at)?;
                    format!(
                        " AND ({key} < {at} OR ({key} = {at} AND {id} < {last}) OR {key} <=> NULL)"
                    )
                }
            };
            selects.push(format!(
                "(SELECT {column}, {id}, {key} FROM {table} WHERE {column} = {author}{below} \
                 ORDER BY {column} DESC, {key} DESC, {id} DESC LIMIT {limit})",
                author = request.author,
                limit = request.limit,
            ));
        }
        Some(selects.join(" UNION ALL "))
    }

    /// Queries for rows by their keys: timeline, table (0 or 1), both parts of the key, author, sort key as text.
    #[must_use]
    pub fn evidence_query(&self, keys: &[TableRowKey]) -> Vec<String> {
        let mut queries = Vec::new();
        let number = self.timeline_id.0;
        let messages: Vec<u64> = keys
            .iter()
            .filter(|key| key.table == TableRole::Message)
            .map(|key| key.first)
            .collect();
        if !messages.is_empty() {
            queries.push(format!(
                "SELECT {number}, 0, {id}, 0, {author}, {key} FROM {table} WHERE {id} IN ({ids}) AND {author} >= 0",
                key = self.key_as_text(),
                id = quoted(&self.schema.message.id),
                author = quoted(&self.schema.message.author),
                table = self.qualified_name(&self.schema.message.table),
                ids = number_list(&messages),
            ));
        }
        let Some(follower) = &self.schema.follower else {
            return queries;
        };
        let reader = quoted(&follower.reader);
        let author = quoted(&follower.author);
        let edges: Vec<String> = keys
            .iter()
            .filter(|key| key.table == TableRole::Follower)
            .map(|key| format!("({reader} = {} AND {author} = {})", key.first, key.second))
            .collect();
        if !edges.is_empty() {
            queries.push(format!(
                "SELECT {number}, 1, {reader}, {author}, {author}, NULL FROM {table} WHERE {edges}",
                table = self.qualified_name(&follower.table),
                edges = edges.join(" OR "),
            ));
        }
        queries
    }

    /// As text, so that its type is the same in every part of one answer.
    fn key_as_text(&self) -> String {
        match &self.schema.key {
            Some(key) => format!("CAST({} AS CHAR)", quoted(&key.column)),
            None => "NULL".into(),
        }
    }
}

/// One author's part of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestMessagesRequest {
    /// The messages' author.
    pub author: u64,
    /// Only messages below this one.
    pub below: Option<KeyedMessage>,
    /// At most this many.
    pub limit: usize,
}

/// Groups pairs `k, v`: each `k`, the number of its pairs, a checksum, and all `v`.
fn grouped_pairs(pairs: &str) -> String {
    format!("SELECT k, COUNT(*), BIT_XOR(v), GROUP_CONCAT(v) FROM ({pairs}) AS pairs GROUP BY k")
}

fn number_list(numbers: &[u64]) -> String {
    let mut list = String::new();
    push_list(&mut list, numbers);
    list
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn cached_tables_serve_definitions_that_need_no_more() {
        let classic = TimelineSchema::from(&TimelineDefinition::classic());
        let wider = TimelineSchema {
            id_type: IdType::BigIntUnsigned,
            ..classic.clone()
        };
        let alone = TimelineSchema {
            follower: None,
            ..classic.clone()
        };
        assert!(classic.satisfies(&wider) && wider.satisfies(&classic));
        assert!(classic.satisfies(&alone) && !alone.satisfies(&classic));
        let signed = TimelineSchema {
            id_type: IdType::Int,
            ..classic.clone()
        };
        assert!(!classic.satisfies(&signed));
        let mut other = classic.clone();
        other.message.author = "owner".into();
        assert!(!classic.satisfies(&other));
    }

    #[test]
    fn of_messages_that_are_elsewhere_the_table_alone_is_listened_to() {
        let tables = TimelineTables::elsewhere(&TimelineDefinition::classic(), "app");
        let columns = [("follower", "user_id"), ("follower", "follower_id")];
        let columns = columns.map(|(table, column)| (table.to_owned(), column.to_owned()));
        let routes = tables.routes(&columns).unwrap();
        let columns_by_table: Vec<_> = routes.iter().map(|it| (&*it.name, it.columns)).collect();
        assert_eq!(columns_by_table, [("message", None), ("follower", Some(2))]);
        assert_eq!(tables.max_id_query(), None);
        let here = TimelineTables::of(TimelineId(0), &TimelineDefinition::classic(), "app").schema;
        assert!(!here.satisfies(&tables.schema) && !tables.schema.satisfies(&here));
    }

    fn keyed(kind: KeyType) -> TimelineTables {
        let mut tables = TimelineTables::of(TimelineId(3), &TimelineDefinition::classic(), "app");
        tables.schema.key = Some(KeyColumnDefinition {
            column: "at".into(),
            kind,
        });
        tables
    }

    #[test]
    fn tables_with_a_key_serve_those_of_the_same_key() {
        let datetime = keyed(KeyType::Datetime(0)).schema;
        let classic = TimelineSchema::from(&TimelineDefinition::classic());
        assert!(!datetime.satisfies(&classic) && !classic.satisfies(&datetime));
        assert!(datetime.satisfies(&keyed(KeyType::Datetime(6)).schema));
        assert!(!datetime.satisfies(&keyed(KeyType::Timestamp(0)).schema));
    }

    #[test]
    fn a_load_by_keys_queries_each_author_below_what_is_cached() {
        let request = |author, below| NewestMessagesRequest {
            author,
            below,
            limit: 9,
        };
        let tables = keyed(KeyType::Datetime(0));
        let key = KeyType::Datetime(0).encode_text(b"2026-11-23 10:00:00");
        let at = |key| Some(KeyedMessage { key, id: 5 });
        let requests = [
            request(1, None),
            request(2, at(key.unwrap())),
            request(3, at(0)),
        ];
        let begins = "(SELECT `user_id`, `id`, `at` FROM `app`.`message` WHERE `user_id` = ";
        let ends = " ORDER BY `user_id` DESC, `at` DESC, `id` DESC LIMIT 9)";
        let ten = "'2026-11-23 10:00:00'";
        assert_eq!(
            tables.newest_keyed_messages_query(&requests).unwrap(),
            format!(
                "{begins}1{ends} UNION ALL \
                 {begins}2 AND (`at` < {ten} OR (`at` = {ten} AND `id` < 5) OR `at` <=> NULL){ends} UNION ALL \
                 {begins}3 AND `at` <=> NULL AND `id` < 5{ends}"
            )
        );
    }
}
