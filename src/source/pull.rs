//! The pull source: a page from two statements on the client's own connection.
//!
//! 1. *Heads*: of every author followed the newest id, and of the `n` greatest of those more: MySQL
//!    can return each author's newest n ids from the same statement (a derived table may refer to
//!    the row outside), and there it costs no more than the page alone; that is the whole result set.
//!    MariaDB cannot; there the second and the n-th newest id of those authors come along.
//! 2. *Page* (MariaDB): what those authors have at or above a bound T. T is the greatest of: the n-th
//!    of the ids known from step 1, and any author's n-th newest id. At least n ids are at or above T,
//!    so nothing below it is on the page; and no author has more than n ids at or above it (its n-th
//!    newest would exceed T), so the reply is bounded by n x n rows without a sort or a LIMIT. The
//!    size of the result set, which MariaDB's OK packet tells, follows from who has an n-th id at all.
//!
//! ARCHITECTURE.md has what was measured against other plans.

use crate::session::reason::Reason;
use crate::session::result_table::{AuthorRange, Head};
use crate::statement::Call;
use crate::timeline::check::{Answered, Facts, Product, ServerError};
use crate::timeline::definition::{Definition, Form, quoted};
use crate::timeline::merge;
use crate::wire::resultset::{Answer, Limits, Row, Rows};

/// Room for the authors' lists that come in JSON, and for descriptions of tables.
const ROW_LIST_BYTES: usize = 32 * 1024 * 1024;

/// One owned call, in terms of SQL.
#[derive(Debug)]
pub struct Lookup<'a> {
    /// Names and n.
    pub definition: &'a Definition,
    /// What the check found on this server.
    pub facts: &'a Facts,
    /// The session's database, which holds the tables.
    pub database: &'a [u8],
    /// Reader and bound.
    pub call: &'a Call,
    /// Most heads that are taken in (`limits.pending_ids`).
    pub most: usize,
}

/// What step 1 found.
#[derive(Debug, Default)]
pub struct Heads {
    /// Every head when the call is bounded; the greatest n otherwise. Descending.
    pub(super) heads: Vec<Head>,
    /// The n authors with the greatest heads.
    pub(super) top: Vec<(Head, Known)>,
}

/// What step 1 says of one of the top authors besides its head.
#[derive(Debug)]
pub(super) enum Known {
    /// Its newest n ids.
    List(Vec<u64>),
    /// Its second and n-th newest id; `None` when it has fewer.
    Marks {
        second: Option<u64>,
        nth: Option<u64>,
    },
    /// Nothing yet.
    Nothing,
}

impl Heads {
    /// Top authors with fewer than n ids.
    fn few(&self) -> impl Iterator<Item = &Head> {
        self.top
            .iter()
            .filter(|(_, known)| matches!(known, Known::Marks { nth: None, .. }))
            .map(|(head, _)| head)
    }
}

/// Which of the two result tables a session has as temporary tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultTablesThere {
    /// The table of ids.
    pub result: bool,
    /// The table of heads.
    pub heads: bool,
}

/// What an owned call found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The page, descending; or the whole result set when `rest` is empty.
    pub ids: Vec<u64>,
    /// Where the rest of the result set lies; empty when `ids` is all of it.
    pub rest: Vec<AuthorRange>,
    /// Size of the result set.
    pub total: u64,
    /// Every head, for the heads table of a bounded call.
    pub heads: Vec<Head>,
}

impl Lookup<'_> {
    /// Statements whose answers show whether temporary tables hide the real ones.
    #[must_use]
    pub fn shadow_queries(&self) -> Vec<String> {
        let Definition {
            follower,
            message,
            result,
            heads,
            ..
        } = self.definition;
        [&follower.table, &message.table, &result.table, &heads.table]
            .map(|table| format!("SHOW CREATE TABLE {}", quoted(table)))
            .to_vec()
    }

    /// Judges the answers to [`Self::shadow_queries`].
    ///
    /// # Errors
    /// When one of the definition's tables is hidden, or a result table has another form.
    pub fn judge_shadows(&self, answers: &[Answer]) -> Result<ResultTablesThere, Reason> {
        let mut there = ResultTablesThere::default();
        for (place, answer) in answers.iter().enumerate() {
            let is_result = place >= 2;
            let text = match answer {
                Answer::Rows(rows) => rows.iter().next().and_then(|row| row.cell(1)),
                // A result table that is not there yet; or a table this account may not describe.
                Answer::Err(_) if is_result => continue,
                _ => None,
            };
            let text = text.ok_or(Reason::TemporaryTables)?;
            if !text.starts_with(b"CREATE TEMPORARY TABLE") {
                continue;
            }
            if !(is_result && self.is_result_table(place == 2, text)) {
                return Err(Reason::TemporaryTables);
            }
            there.result |= place == 2;
            there.heads |= place == 3;
        }
        Ok(there)
    }

    /// True when the statement creates the table as the procedure does: these columns and this key,
    /// no others, no limits.
    fn is_result_table(&self, result: bool, text: &[u8]) -> bool {
        let Definition {
            result: ids,
            heads,
            id_type,
            user_type,
            ..
        } = self.definition;
        let id = quoted(&ids.id);
        let (columns, key) = if result {
            let key = format!("PRIMARY KEY ({id})");
            (vec![(id, id_type)], Some(key))
        } else {
            let columns = vec![
                (quoted(&heads.author), user_type),
                (quoted(&heads.head), id_type),
            ];
            (columns, None)
        };
        let mut lines = text.split(|byte| *byte == b'\n').skip(1).map(|line| {
            line.trim_ascii()
                .strip_suffix(b",")
                .unwrap_or(line.trim_ascii())
        });
        let columns_fit = columns.iter().all(|(name, int)| {
            let described = |int: &str| format!("{name} {int} NOT NULL").into_bytes();
            lines.next().is_some_and(|line| {
                line == described(int.sql()) || line == described(int.sql_with_width())
            })
        });
        let key_fits = key.is_none_or(|key| lines.next() == Some(key.as_bytes()));
        let engine_fits = lines.next().is_some_and(|line| {
            line.starts_with(b") ENGINE=MEMORY")
                && line.split(|byte| *byte == b' ').skip(2).all(|option| {
                    option == b"DEFAULT"
                        || option.starts_with(b"CHARSET=")
                        || option.starts_with(b"COLLATE=")
                })
        });
        columns_fit && key_fits && engine_fits && lines.next().is_none()
    }

    /// A call without arguments: it tells who may execute the procedure, and runs nothing.
    #[must_use]
    pub fn execute_probe(&self) -> String {
        format!(
            "CALL {}()",
            self.name(self.definition.procedure(self.call.form))
        )
    }

    /// Counts a result table's rows.
    #[must_use]
    pub fn count_query(&self, table: &str) -> String {
        format!("SELECT COUNT(*) FROM {}", self.name(table))
    }

    /// Step 1. One row a head: author, newest id, and for the n greatest heads what step 2 needs.
    ///
    /// The aliases make the statement fail under LOCK TABLES, where the procedure would.
    #[must_use]
    pub fn heads_query(&self) -> String {
        let Definition { follower, n, .. } = self.definition;
        let heads = format!(
            "SELECT hw_f.{author} hw_a,{newest} hw_h FROM {table} hw_f WHERE hw_f.{reader}={uid}",
            author = quoted(&follower.author),
            newest = self.nth_newest(1, &format!("hw_f.{}", quoted(&follower.author))),
            table = self.name(&follower.table),
            reader = quoted(&follower.reader),
            uid = self.call.reader,
        );
        let details = self.details();
        if self.call.form == Form::Newest {
            let columns = details.join(",");
            return format!(
                "SELECT hw_t.hw_a,hw_t.hw_h,{columns} FROM ({heads} ORDER BY hw_h DESC LIMIT {n}) hw_t"
            );
        }
        // The heads table wants every author's head; the rest is computed for the greatest n alone.
        let columns: Vec<String> = details
            .iter()
            .map(|column| format!("IF(hw_t.hw_r<={n},{column},NULL)"))
            .collect();
        format!(
            "SELECT hw_t.hw_a,hw_t.hw_h,{} FROM (SELECT hw_g.hw_a,hw_g.hw_h,\
             ROW_NUMBER() OVER (ORDER BY hw_g.hw_h DESC) hw_r FROM ({heads}) hw_g) hw_t \
             WHERE hw_t.hw_h IS NOT NULL LIMIT {}",
            columns.join(","),
            self.most.saturating_add(1)
        )
    }

    /// MySQL: the author's list itself. MariaDB: its second and its n-th newest id.
    fn details(&self) -> Vec<String> {
        let n = u64::from(self.definition.n);
        match self.facts.product {
            Product::Mysql => {
                let id = quoted(&self.definition.message.id);
                let list = self.newest_ids("hw_t.hw_a", &format!("LIMIT {n}"));
                vec![format!(
                    "(SELECT JSON_ARRAYAGG(hw_l.{id}) FROM ({list}) hw_l)"
                )]
            }
            Product::Mariadb => {
                vec![
                    self.nth_newest(2, "hw_t.hw_a"),
                    self.nth_newest(n, "hw_t.hw_a"),
                ]
            }
        }
    }

    /// An author's k-th newest id at or below the bound.
    fn nth_newest(&self, k: u64, author: &str) -> String {
        format!(
            "({})",
            self.newest_ids(author, &format!("LIMIT {},1", k.saturating_sub(1)))
        )
    }

    /// An author's ids at or below the bound, newest first.
    fn newest_ids(&self, author: &str, limit: &str) -> String {
        let message = &self.definition.message;
        let (id, by) = (quoted(&message.id), quoted(&message.author));
        let bound = match self.call.bound {
            Some(bound) => format!(" AND hw_m.{id}<={bound}"),
            None => String::new(),
        };
        format!(
            "SELECT hw_m.{id} FROM {} hw_m WHERE hw_m.{by}={author}{bound} \
             ORDER BY hw_m.{by} DESC,hw_m.{id} DESC {limit}",
            self.name(&message.table),
        )
    }

    /// Takes in the rows of step 1.
    ///
    /// # Errors
    /// When there are more heads than may be held, or a value is no id (negative ones are not).
    pub fn read_heads(&self, rows: &Rows) -> Result<Heads, Reason> {
        if rows.len() > self.most {
            return Err(Reason::TooManyIds);
        }
        let mut authors = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            // An author without messages contributes nothing.
            if row.cell(1).is_none() {
                continue;
            }
            let number = |column| row.u64(column).ok_or(Reason::LookupFailed);
            let optional = |column| match row.cell(column) {
                None => Ok(None),
                Some(_) => number(column).map(Some),
            };
            let head = Head {
                author: number(0)?,
                id: number(1)?,
            };
            let known = match self.facts.product {
                Product::Mysql => Known::List(row.cell(2).map(read_list).unwrap_or_default()),
                Product::Mariadb => Known::Marks {
                    second: optional(2)?,
                    nth: optional(3)?,
                },
            };
            authors.push((head, known));
        }
        Ok(self.rank(authors))
    }

    /// Orders heads; the n greatest are the top authors.
    pub(super) fn rank(&self, mut authors: Vec<(Head, Known)>) -> Heads {
        authors.sort_unstable_by_key(|(head, _)| std::cmp::Reverse(head.id));
        let heads = authors.iter().map(|(head, _)| *head).collect();
        authors.truncate(self.n());
        Heads {
            heads,
            top: authors,
        }
    }

    /// Step 2, where step 1 did not bring the lists: the page, and how many ids the authors have
    /// who have fewer than n.
    #[must_use]
    pub fn page_queries(&self, heads: &Heads) -> Vec<String> {
        let Some(bound) = self.lower_bound(heads) else {
            return Vec::new();
        };
        let message = &self.definition.message;
        let (id, by, table) = (
            quoted(&message.id),
            quoted(&message.author),
            self.name(&message.table),
        );
        let greatest = heads.heads.first().map_or(0, |head| head.id);
        let index = quoted(&self.facts.message_index);
        let all = heads.top.iter().map(|(head, _)| head.author);
        let mut queries = vec![format!(
            "SELECT hw_m.{id} FROM {table} hw_m FORCE INDEX ({index}) \
             WHERE hw_m.{by} IN ({}) AND hw_m.{id} BETWEEN {bound} AND {greatest}",
            joined(all)
        )];
        let few = joined(heads.few().map(|head| head.author));
        if !few.is_empty() {
            queries.push(format!(
                "SELECT COUNT(*) FROM {table} hw_m FORCE INDEX ({index}) \
                 WHERE hw_m.{by} IN ({few}) AND hw_m.{id}<={greatest}"
            ));
        }
        queries
    }

    /// T: nothing below it is on the page. `None` when the lists are known.
    fn lower_bound(&self, heads: &Heads) -> Option<u64> {
        let mut known = Vec::with_capacity(2 * heads.top.len());
        let mut bound = 0;
        for (head, marks) in &heads.top {
            let Known::Marks { second, nth } = marks else {
                return None;
            };
            known.push(head.id);
            known.extend(second);
            bound = bound.max(nth.unwrap_or(0));
        }
        if known.is_empty() {
            return None;
        }
        known.sort_unstable_by(|a, b| b.cmp(a));
        Some(known.get(self.n() - 1).map_or(bound, |id| bound.max(*id)))
    }

    /// The result: from the lists of step 1, or from the answers of step 2.
    ///
    /// # Errors
    /// When an answer of step 2 is not what its statement returns.
    pub fn found(
        &self,
        heads: Heads,
        page: Option<&Rows>,
        few: Option<&Rows>,
    ) -> Result<Found, Reason> {
        let n = self.n();
        let all_heads = match self.call.form {
            Form::Newest => Vec::new(),
            Form::Bounded => heads.heads.clone(),
        };
        let Some(page) = page else {
            let lists = heads.top.into_iter().filter_map(|(_, known)| match known {
                Known::List(ids) => Some(ids),
                Known::Marks { .. } | Known::Nothing => None,
            });
            let ids = merge::result_set(lists.collect());
            let total = ids.len() as u64;
            return Ok(Found {
                ids,
                rest: Vec::new(),
                total,
                heads: all_heads,
            });
        };
        let ids: Option<Vec<u64>> = page.iter().map(|row| row.u64(0)).collect();
        let ids = merge::newest(ids.ok_or(Reason::LookupFailed)?, n);
        let few_ids = match few {
            Some(rows) => rows
                .iter()
                .next()
                .and_then(|row| row.u64(0))
                .ok_or(Reason::LookupFailed)?,
            None => 0,
        };
        let full = heads.top.len() - heads.few().count();
        let total = (full * n) as u64 + few_ids;
        let ranges = heads.top.iter().map(|(head, known)| AuthorRange {
            author: head.author,
            low: match known {
                Known::Marks { nth, .. } => nth.unwrap_or(0),
                Known::List(_) | Known::Nothing => 0,
            },
            high: head.id,
        });
        let rest = if ids.len() as u64 >= total {
            Vec::new()
        } else {
            ranges.collect()
        };
        Ok(Found {
            ids,
            rest,
            total,
            heads: all_heads,
        })
    }

    /// How much an answer to one of these statements may hold.
    #[must_use]
    pub fn collect_limits(&self) -> Limits {
        let max_rows = self
            .most
            .max(self.n().saturating_mul(self.n()))
            .saturating_add(1);
        Limits {
            max_rows,
            max_bytes: max_rows.saturating_mul(64).saturating_add(ROW_LIST_BYTES),
        }
    }

    fn n(&self) -> usize {
        self.definition.n as usize
    }

    /// A table's name with its database, quoted.
    pub(super) fn name(&self, table: &str) -> String {
        format!(
            "{}.{}",
            quoted(&String::from_utf8_lossy(self.database)),
            quoted(table)
        )
    }
}

fn joined(numbers: impl Iterator<Item = u64>) -> String {
    numbers
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join(",")
}

/// The numbers of a JSON array of numbers.
fn read_list(json: &[u8]) -> Vec<u64> {
    json.split(|byte| !byte.is_ascii_digit())
        .filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .collect()
}

/// An own answer in the form that a definition's check takes.
pub fn answered(answer: Answer) -> Answered {
    match answer {
        Answer::Ok(_) => Ok(Vec::new()),
        Answer::Err(error) => Err(ServerError {
            code: error.code,
            message: String::from_utf8_lossy(&error.message).into_owned(),
        }),
        Answer::Rows(rows) => {
            let columns = rows.columns().len();
            let cells = |row: Row<'_>| {
                (0..columns)
                    .map(|column| row.cell(column).map(<[u8]>::to_vec))
                    .collect()
            };
            Ok(rows.iter().map(cells).collect())
        }
    }
}
