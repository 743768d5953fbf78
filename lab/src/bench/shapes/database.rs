//! The data set: messages with a time and a kind, and each user's follows.

use indicatif::ProgressBar;

use crate::bench::client::BenchClient;
use crate::bench::flags::BenchFlags;
use crate::bench::{BenchError, StopSignal, bench_database};
use crate::demo::dataset::DatasetSize;

/// Its name; an existing database is never touched.
pub const DATABASE: &str = "headwater_bench_shapes";
/// Several messages share a second, as with many writers.
const CREATE_POST: &str = "CREATE TABLE post (id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, author int unsigned NOT NULL, \
     created_at datetime NOT NULL, kind tinyint NOT NULL, rare tinyint NOT NULL, body varchar(255) NOT NULL, KEY (author), \
     KEY by_time (author, created_at)) ENGINE=InnoDB";
/// Messages that one statement copies.
const COPIED_AT_ONCE: usize = 50_000;

/// The feeds of the measured Headwater.
pub const FEEDS: &str = r#"
[[feed]]
name = "by_id"
database = "headwater_bench_shapes"
[feed.message]
table = "post"
id = "id"
author = "author"
[feed.follow]
table = "follower"
reader = "user_id"
author = "follower_id"
[[feed]]
name = "by_time"
database = "headwater_bench_shapes"
[feed.message]
table = "post"
id = "id"
author = "author"
order = ["created_at", "id"]
[feed.follow]
table = "follower"
reader = "user_id"
author = "follower_id"
"#;

/// Loads tables and rows; `client` is in the database.
///
/// # Errors
/// Fails if the server refuses a statement, or the bench is stopped.
pub fn fill(
    flags: &BenchFlags,
    users: u32,
    messages: u64,
    client: &mut BenchClient,
    stop: &StopSignal,
) -> Result<(), BenchError> {
    let size = DatasetSize {
        users,
        messages,
        ..DatasetSize::CLASSIC
    };
    let bar = ProgressBar::new(0).with_message("loading");
    bench_database::load(DATABASE, flags, size, &bar)?;
    let at = BenchError::for_address(&flags.upstream);
    client.execute(CREATE_POST).map_err(&at)?;
    for first in (1..=messages).step_by(COPIED_AT_ONCE) {
        if stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        let last = first.saturating_add(COPIED_AT_ONCE as u64 - 1);
        let copy = format!(
            "INSERT INTO post SELECT id, user_id, FROM_UNIXTIME(1700000000 + id DIV 3), id % 5, id % 50, body \
             FROM message WHERE id BETWEEN {first} AND {last}"
        );
        client.execute(&copy).map_err(&at)?;
    }
    bar.finish_and_clear();
    client
        .execute("ANALYZE NO_WRITE_TO_BINLOG TABLE follower, post")
        .map_err(&at)
}
