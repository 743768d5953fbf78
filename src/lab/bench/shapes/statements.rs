//! The shapes that are asked for, and their statements.

use crate::lab::bench::client::{Client, ClientError};
use crate::lab::bench::data;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// One join, by id.
    Join,
    /// `IN (SELECT ...)`, by id.
    Select,
    /// EXISTS, by id.
    Exists,
    /// A list of those whom a reader follows, with a filter that four of five messages pass.
    Filtered,
    /// A join, by time, with OFFSET 60.
    Timed,
    /// A join with a filter that one of fifty messages passes.
    Rare,
    /// So many authors, by id.
    ById(usize),
    /// So many authors, by time.
    ByTime(usize),
    /// A join, by readers who follow few.
    Few,
    /// A list of one author, by id.
    One,
    /// A join with a filter that no message passes.
    Nothing,
    /// A message by its id.
    NoFeed,
}

/// In the order in which they are asked for.
pub const SHAPES: [Sort; 14] = [
    Sort::Join,
    Sort::Select,
    Sort::Exists,
    Sort::Filtered,
    Sort::Timed,
    Sort::Rare,
    Sort::ById(500),
    Sort::ById(5_000),
    Sort::ByTime(500),
    Sort::ByTime(5_000),
    Sort::Few,
    Sort::One,
    Sort::Nothing,
    Sort::NoFeed,
];

/// Who follows so many at most follows few.
const FEW: u64 = 3;
/// Different lists of many authors.
const LISTS: usize = 20;
const COLUMNS: &str = "post.id, post.author, post.body";

impl Sort {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Sort::Join => "join".into(),
            Sort::Select => "IN (SELECT)".into(),
            Sort::Exists => "EXISTS".into(),
            Sort::Filtered => "list of followed, 4 of 5 pass a filter".into(),
            Sort::Timed => "join, by time, OFFSET 60".into(),
            Sort::Rare => "join, 1 of 50 passes a filter".into(),
            Sort::ById(authors) => format!("list of {authors}, by id"),
            Sort::ByTime(authors) => format!("list of {authors}, by time"),
            Sort::Few => format!("join, by who follows {FEW} at most"),
            Sort::One => "list of one author".into(),
            Sort::Nothing => "join, nothing passes a filter".into(),
            Sort::NoFeed => "no feed: a message by its id".into(),
        }
    }

    /// What the ratio is to be at least: to the direct rate, or to that of a Headwater without feeds.
    #[must_use]
    pub const fn target(self, mariadb: bool) -> f64 {
        match self {
            Sort::Join | Sort::Select | Sort::Exists => 25.0,
            Sort::Filtered | Sort::Timed => 20.0,
            Sort::Rare => 3.0,
            Sort::ById(_) if mariadb => 2.0,
            Sort::ById(_) => 1.3,
            Sort::ByTime(_) => 40.0,
            Sort::Few | Sort::One | Sort::Nothing => 0.95,
            Sort::NoFeed => 0.98,
        }
    }

    /// It gains nothing: what it loses is measured, against a Headwater without feeds.
    #[must_use]
    pub const fn gains_nothing(self) -> bool {
        matches!(self, Sort::Few | Sort::One | Sort::Nothing | Sort::NoFeed)
    }

    /// How often it is measured: the median ratio counts.
    #[must_use]
    pub const fn times(self) -> usize {
        match self {
            Sort::NoFeed => 7,
            _ => 1,
        }
    }

    /// Connections that ask at the same time.
    #[must_use]
    pub const fn connections(self) -> usize {
        match self {
            Sort::ById(_) | Sort::ByTime(_) => 1,
            _ => super::CONNECTIONS,
        }
    }

    /// The statements, and whose feeds they are.
    ///
    /// # Errors
    /// When the server does not say whom a reader follows.
    pub fn statements(
        self,
        readers: &[u64],
        users: u32,
        client: &mut Client,
    ) -> Result<Vec<(u64, String)>, ClientError> {
        let many = |authors: usize, order: &str| {
            let lists = (0..LISTS as u64).map(|number| {
                let mut all: Vec<u64> = (1..=u64::from(users)).collect();
                data::shuffle(&mut all, number + 1);
                all.truncate(authors);
                (number, listed(&all, "", order))
            });
            Ok(lists.collect())
        };
        match self {
            Sort::ById(authors) => return many(authors, "post.id DESC LIMIT 20"),
            Sort::ByTime(authors) => {
                return many(authors, "post.created_at DESC, post.id DESC LIMIT 20");
            }
            Sort::Few => {
                let few = client.numbers(&format!(
                    "SELECT user_id FROM follower GROUP BY user_id HAVING COUNT(*) <= {FEW} LIMIT {}",
                    readers.len()
                ))?;
                let of_one = |reader: &u64| (*reader, self.of_reader(*reader));
                return Ok(few.iter().map(of_one).collect());
            }
            _ => {}
        }
        let one = |reader: &u64| {
            let text = match self {
                Sort::Filtered => {
                    let follows =
                        format!("SELECT follower_id FROM follower WHERE user_id={reader}");
                    let authors = client.numbers(&follows)?;
                    listed(&authors, "post.kind <> 0 AND ", "post.id DESC LIMIT 20")
                }
                sort => sort.of_reader(*reader),
            };
            Ok((*reader, text))
        };
        readers.iter().map(one).collect()
    }

    /// The newest page of a reader, where no list has to be known.
    #[must_use]
    pub fn of_reader(self, reader: u64) -> String {
        let joined = |more: &str, order: &str| {
            format!(
                "SELECT {COLUMNS} FROM post JOIN follower ON follower.follower_id = post.author \
                 WHERE follower.user_id = {reader}{more} ORDER BY {order}"
            )
        };
        let whose = |condition: &str| {
            format!("SELECT {COLUMNS} FROM post WHERE {condition} ORDER BY post.id DESC LIMIT 20")
        };
        match self {
            Sort::Timed => joined("", "post.created_at DESC, post.id DESC LIMIT 20 OFFSET 60"),
            Sort::Rare => joined(" AND post.rare = 0", "post.id DESC LIMIT 20"),
            Sort::Select => whose(&format!(
                "post.author IN (SELECT follower_id FROM follower WHERE user_id = {reader})"
            )),
            Sort::Exists => whose(&format!(
                "EXISTS (SELECT 1 FROM follower WHERE follower.follower_id = post.author AND follower.user_id = {reader})"
            )),
            Sort::NoFeed => format!("SELECT {COLUMNS} FROM post WHERE post.id = {reader}"),
            Sort::One => listed(&[reader], "", "post.id DESC LIMIT 20"),
            Sort::Nothing => joined(" AND post.kind = 9", "post.id DESC LIMIT 20"),
            Sort::Few | Sort::Join | Sort::Filtered | Sort::ById(_) | Sort::ByTime(_) => {
                joined("", "post.id DESC LIMIT 20")
            }
        }
    }
}

/// Asks for author 0, who is nobody, where the list is empty.
fn listed(authors: &[u64], filter: &str, order: &str) -> String {
    let mut list = String::new();
    crate::sql::push_list(&mut list, if authors.is_empty() { &[0] } else { authors });
    format!("SELECT {COLUMNS} FROM post WHERE {filter}post.author IN ({list}) ORDER BY {order}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_nobody_is_still_a_statement() {
        assert!(listed(&[], "", "post.id DESC").contains("IN (0)"));
        assert!(
            listed(&[3, 2], "a AND ", "b").contains("WHERE a AND post.author IN (3,2) ORDER BY b")
        );
    }
}
