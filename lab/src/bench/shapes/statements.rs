//! The feed shapes, and their statements.

use crate::bench::client::{BenchClient, BenchClientError};
use crate::bench::data;

/// The shape of a feed's SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedShape {
    /// One join, by id.
    Join,
    /// `IN (SELECT ...)`, by id.
    Select,
    /// EXISTS, by id.
    Exists,
    /// A list of the authors whom a reader follows, with a filter that four of five messages pass.
    Filtered,
    /// A join, by time, with OFFSET 60.
    Timed,
    /// A join with a filter that one of fifty messages passes.
    Rare,
    /// This number of authors, by id.
    ById(usize),
    /// This number of authors, by time.
    ByTime(usize),
    /// A join, for readers with few follows.
    Few,
    /// A list of one author, by id.
    One,
    /// The count of a join with a filter that four of five messages pass, as a paginator sends it.
    Count,
    /// A join with a filter that no message passes.
    Nothing,
    /// A message by its id.
    NoFeed,
}

/// In the order of measurement.
pub const SHAPES: [FeedShape; 15] = [
    FeedShape::Join,
    FeedShape::Select,
    FeedShape::Exists,
    FeedShape::Filtered,
    FeedShape::Timed,
    FeedShape::Rare,
    FeedShape::Count,
    FeedShape::ById(500),
    FeedShape::ById(5_000),
    FeedShape::ByTime(500),
    FeedShape::ByTime(5_000),
    FeedShape::Few,
    FeedShape::One,
    FeedShape::Nothing,
    FeedShape::NoFeed,
];

/// A reader with few follows has at most this many.
const MAX_FEW_FOLLOWS: u64 = 3;
/// Number of different lists of many authors.
const LIST_COUNT: usize = 20;
const COLUMNS: &str = "post.id, post.author, post.body";

impl FeedShape {
    /// The label in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            FeedShape::Join => "join".into(),
            FeedShape::Select => "IN (SELECT)".into(),
            FeedShape::Exists => "EXISTS".into(),
            FeedShape::Filtered => "list of followed, 4 of 5 pass a filter".into(),
            FeedShape::Timed => "join, by time, OFFSET 60".into(),
            FeedShape::Rare => "join, 1 of 50 passes a filter".into(),
            FeedShape::Count => "count of a join, 4 of 5 pass a filter".into(),
            FeedShape::ById(authors) => format!("list of {authors}, by id"),
            FeedShape::ByTime(authors) => format!("list of {authors}, by time"),
            FeedShape::Few => format!("join, by who follows {MAX_FEW_FOLLOWS} at most"),
            FeedShape::One => "list of one author".into(),
            FeedShape::Nothing => "join, nothing passes a filter".into(),
            FeedShape::NoFeed => "no feed: a message by its id".into(),
        }
    }

    /// The least ratio that is required: to the direct rate, or to that of a Headwater without feeds.
    #[must_use]
    pub const fn target(self, mariadb: bool) -> f64 {
        match self {
            FeedShape::Join | FeedShape::Select | FeedShape::Exists => 25.0,
            FeedShape::Filtered | FeedShape::Timed => 20.0,
            FeedShape::Rare => 3.0,
            FeedShape::Count => 100.0,
            FeedShape::ById(_) if mariadb => 2.0,
            FeedShape::ById(_) => 1.3,
            FeedShape::ByTime(_) => 40.0,
            FeedShape::Few | FeedShape::One | FeedShape::Nothing => 0.95,
            FeedShape::NoFeed => 0.98,
        }
    }

    /// True for a shape that Headwater cannot accelerate: its overhead is measured against a Headwater without feeds.
    #[must_use]
    pub const fn is_control(self) -> bool {
        matches!(
            self,
            FeedShape::Few | FeedShape::One | FeedShape::Nothing | FeedShape::NoFeed
        )
    }

    /// How often the shape is measured: the median ratio counts.
    #[must_use]
    pub const fn repetitions(self) -> usize {
        match self {
            FeedShape::NoFeed => 7,
            _ => 1,
        }
    }

    /// Connections that query at the same time.
    #[must_use]
    pub const fn connections(self) -> usize {
        match self {
            FeedShape::ById(_) | FeedShape::ByTime(_) => 1,
            _ => super::CONNECTIONS,
        }
    }

    /// The statements, and the reader of each.
    ///
    /// # Errors
    /// Fails if a reader's follows cannot be read.
    pub fn statements(
        self,
        readers: &[u64],
        users: u32,
        client: &mut BenchClient,
    ) -> Result<Vec<(u64, String)>, BenchClientError> {
        let many = |authors: usize, order: &str| {
            let lists = (0..LIST_COUNT as u64).map(|number| {
                let mut all: Vec<u64> = (1..=u64::from(users)).collect();
                data::shuffle(&mut all, number + 1);
                all.truncate(authors);
                (number, list_select(&all, "", order))
            });
            Ok(lists.collect())
        };
        match self {
            FeedShape::ById(authors) => return many(authors, "post.id DESC LIMIT 20"),
            FeedShape::ByTime(authors) => {
                return many(authors, "post.created_at DESC, post.id DESC LIMIT 20");
            }
            FeedShape::Few => {
                let few = client.query_numbers(&format!(
                    "SELECT user_id FROM follower GROUP BY user_id HAVING COUNT(*) <= {MAX_FEW_FOLLOWS} LIMIT {}",
                    readers.len()
                ))?;
                let of_one = |reader: &u64| (*reader, self.reader_select(*reader));
                return Ok(few.iter().map(of_one).collect());
            }
            _ => {}
        }
        let one = |reader: &u64| {
            let text = match self {
                FeedShape::Filtered => {
                    let follows =
                        format!("SELECT follower_id FROM follower WHERE user_id={reader}");
                    let authors = client.query_numbers(&follows)?;
                    list_select(&authors, "post.kind <> 0 AND ", "post.id DESC LIMIT 20")
                }
                sort => sort.reader_select(*reader),
            };
            Ok((*reader, text))
        };
        readers.iter().map(one).collect()
    }

    /// The newest page of a reader, for shapes without a list of authors.
    #[must_use]
    pub fn reader_select(self, reader: u64) -> String {
        let joined = |more: &str, order: &str| {
            format!(
                "SELECT {COLUMNS} FROM post JOIN follower ON follower.follower_id = post.author \
                 WHERE follower.user_id = {reader}{more} ORDER BY {order}"
            )
        };
        let count = || {
            format!(
                "SELECT COUNT(*) FROM post JOIN follower ON follower.follower_id = post.author \
                 WHERE follower.user_id = {reader} AND post.kind <> 0"
            )
        };
        let whose = |condition: &str| {
            format!("SELECT {COLUMNS} FROM post WHERE {condition} ORDER BY post.id DESC LIMIT 20")
        };
        match self {
            FeedShape::Timed => joined("", "post.created_at DESC, post.id DESC LIMIT 20 OFFSET 60"),
            FeedShape::Count => count(),
            FeedShape::Rare => joined(" AND post.rare = 0", "post.id DESC LIMIT 20"),
            FeedShape::Select => whose(&format!(
                "post.author IN (SELECT follower_id FROM follower WHERE user_id = {reader})"
            )),
            FeedShape::Exists => whose(&format!(
                "EXISTS (SELECT 1 FROM follower WHERE follower.follower_id = post.author AND follower.user_id = {reader})"
            )),
            FeedShape::NoFeed => format!("SELECT {COLUMNS} FROM post WHERE post.id = {reader}"),
            FeedShape::One => list_select(&[reader], "", "post.id DESC LIMIT 20"),
            FeedShape::Nothing => joined(" AND post.kind = 9", "post.id DESC LIMIT 20"),
            FeedShape::Few
            | FeedShape::Join
            | FeedShape::Filtered
            | FeedShape::ById(_)
            | FeedShape::ByTime(_) => joined("", "post.id DESC LIMIT 20"),
        }
    }
}

/// With an empty list it uses author 0, who does not exist.
fn list_select(authors: &[u64], filter: &str, order: &str) -> String {
    let mut list = String::new();
    headwater_sql::push_list(&mut list, if authors.is_empty() { &[0] } else { authors });
    format!("SELECT {COLUMNS} FROM post WHERE {filter}post.author IN ({list}) ORDER BY {order}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_of_authors_is_a_valid_statement() {
        assert!(list_select(&[], "", "post.id DESC").contains("IN (0)"));
        assert!(
            list_select(&[3, 2], "a AND ", "b")
                .contains("WHERE a AND post.author IN (3,2) ORDER BY b")
        );
    }
}
