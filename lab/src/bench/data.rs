//! Queries the server for its version, the readers, and the bounds of their deep pages.

use std::collections::{BTreeMap, HashMap};

use indicatif::ProgressBar;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use super::depth::PageDepth;
use super::flags::BenchFlags;
use crate::query_path::{PAGE_ROWS, PageTask};

/// Random pages for each reader.
const BOUNDS_EACH: usize = 5;

/// What the bench reads from the server before it measures.
#[derive(Debug)]
pub struct BenchData {
    /// The server.
    pub server: ServerInfo,
    /// The pages to request, as the flags name them, without those that no reader has.
    pub pages: Vec<BenchPage>,
    /// Messages of all timelines together: the number of rows in the push model.
    pub mailbox_rows: u64,
}

/// What the server reports of itself.
#[derive(Clone, Debug, Serialize)]
pub struct ServerInfo {
    /// `VERSION()`.
    pub version: String,
    /// `@@version_comment`.
    pub comment: String,
    /// True for MariaDB.
    pub mariadb: bool,
    /// True when it has LATERAL.
    pub lateral: bool,
    /// Connections that the server still accepts.
    pub free_connections: usize,
}

/// A page of the timeline, and the readers for whom it is requested.
#[derive(Clone, Debug, Serialize)]
pub struct BenchPage {
    /// Its depth.
    pub depth: PageDepth,
    /// How many pages are requested; only with random pages has a reader several.
    pub asked: usize,
    /// Readers who have such a page; a full one unless it is random.
    pub eligible: usize,
    /// Readers who follow an author.
    pub readers: usize,
    /// The readers, and the bound of each page: the same seed gives the same ones on the same data.
    #[serde(skip)]
    pub tasks: Vec<PageTask>,
}

/// Runs these queries with the bench's account, which also makes the server cache its password.
///
/// # Errors
/// Fails if the server cannot be reached, or lacks a table.
pub async fn prepare(flags: &BenchFlags) -> Result<BenchData, mysql_async::Error> {
    let mut conn = connect(flags, &flags.database).await?;
    let server = server_info(&mut conn).await?;
    let lengths = timeline_lengths(&mut conn, flags.seed).await?;
    let mut pages = Vec::new();
    for depth in &flags.pages {
        pages.push(match depth {
            PageDepth::Page(number) => {
                numbered_page(&mut conn, *number, &lengths, flags.readers).await?
            }
            PageDepth::Random => random_page(&mut conn, &lengths, flags).await?,
        });
    }
    conn.disconnect().await?;
    pages.retain(|page| !page.tasks.is_empty());
    Ok(BenchData {
        server,
        pages,
        mailbox_rows: lengths.iter().map(|(_, length)| length).sum(),
    })
}

/// Logs in with the bench's account.
///
/// # Errors
/// Fails if the server cannot be reached, or refuses the login.
pub async fn connect(flags: &BenchFlags, database: &str) -> Result<Conn, mysql_async::Error> {
    let (host, port) = flags
        .upstream
        .rsplit_once(':')
        .unwrap_or((&flags.upstream, "3306"));
    let options = OptsBuilder::default()
        .ip_or_hostname(host.trim_start_matches('[').trim_end_matches(']'))
        .tcp_port(port.parse().unwrap_or(3306))
        .user(Some(flags.user()))
        .pass(Some(&flags.password))
        .db_name(Some(database))
        .prefer_socket(false);
    Conn::new(options).await
}

async fn server_info(conn: &mut Conn) -> Result<ServerInfo, mysql_async::Error> {
    let facts = "SELECT VERSION(), @@version_comment, @@max_connections";
    let (version, comment, connections): (String, String, usize) =
        conn.query_first(facts).await?.unwrap_or_default();
    let status = "SHOW GLOBAL STATUS LIKE 'Threads_connected'";
    let (_, used): (String, usize) = conn.query_first(status).await?.unwrap_or_default();
    let nobody = PageTask {
        reader: 0,
        bound: None,
    };
    let lateral = match conn.query_drop(nobody.lateral()).await {
        Ok(()) => true,
        Err(mysql_async::Error::Server(_)) => false,
        Err(error) => return Err(error),
    };
    Ok(ServerInfo {
        mariadb: version.to_ascii_lowercase().contains("mariadb"),
        version,
        comment,
        lateral,
        free_connections: connections.saturating_sub(used),
    })
}

/// Every reader who follows an author with messages, with the timeline's length in messages, in the seed's order.
///
/// Each table is read once and joined here: with tens of millions of rows that takes seconds, the server's join minutes.
async fn timeline_lengths(
    conn: &mut Conn,
    seed: u64,
) -> Result<Vec<(u64, u64)>, mysql_async::Error> {
    let spinner = ProgressBar::new_spinner().with_message("how long every reader's timeline is");
    spinner.enable_steady_tick(std::time::Duration::from_millis(100));
    let posted = "SELECT user_id, COUNT(*) FROM message GROUP BY user_id";
    let posted: HashMap<u64, u64> = conn
        .query::<(u64, u64), _>(posted)
        .await?
        .into_iter()
        .collect();
    let add = |mut lengths: BTreeMap<u64, u64>, (reader, author): (u64, u64)| {
        if let Some(posted) = posted.get(&author) {
            *lengths.entry(reader).or_default() += posted;
        }
        lengths
    };
    let follows = "SELECT user_id, follower_id FROM follower";
    let lengths = conn.query_fold(follows, BTreeMap::new(), add).await?;
    spinner.finish_and_clear();
    let mut lengths: Vec<(u64, u64)> = lengths.into_iter().collect();
    shuffle(&mut lengths, seed);
    Ok(lengths)
}

/// Fisher-Yates shuffle.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = Pcg64::seed_from_u64(seed);
    for last in (1..items.len()).rev() {
        let among = u64::try_from(last + 1).unwrap_or(u64::MAX);
        let chosen = usize::try_from(random.next_u64() % among).unwrap_or(last);
        items.swap(last, chosen);
    }
}

async fn numbered_page(
    conn: &mut Conn,
    number: u32,
    lengths: &[(u64, u64)],
    readers: usize,
) -> Result<BenchPage, mysql_async::Error> {
    let full = u64::from(number) * u64::from(PAGE_ROWS);
    let above = full - u64::from(PAGE_ROWS);
    let eligible: Vec<u64> = lengths
        .iter()
        .filter(|(_, length)| *length >= full)
        .map(|(reader, _)| *reader)
        .collect();
    let chosen = eligible.get(..readers).unwrap_or(&eligible);
    let progress = ProgressBar::new(u64::try_from(chosen.len()).unwrap_or(u64::MAX))
        .with_message(format!("where page {number} begins"));
    let mut tasks = Vec::with_capacity(chosen.len());
    for reader in chosen {
        let bound = if above == 0 {
            None
        } else {
            page_bound(conn, *reader, above).await?
        };
        if above == 0 || bound.is_some() {
            tasks.push(PageTask {
                reader: *reader,
                bound,
            });
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(BenchPage {
        depth: PageDepth::Page(number),
        asked: tasks.len(),
        eligible: eligible.len(),
        readers: lengths.len(),
        tasks,
    })
}

/// Pages from random bounds: as many for each reader, interleaved so that consecutive tasks differ.
async fn random_page(
    conn: &mut Conn,
    lengths: &[(u64, u64)],
    flags: &BenchFlags,
) -> Result<BenchPage, mysql_async::Error> {
    let newest: Option<Option<u64>> = conn.query_first("SELECT MAX(id) FROM message").await?;
    let newest = newest.flatten().unwrap_or_default();
    let chosen = lengths.get(..flags.readers).unwrap_or(lengths);
    let tasks = random_tasks(chosen, newest, flags.seed);
    Ok(BenchPage {
        depth: PageDepth::Random,
        asked: tasks.len(),
        eligible: lengths.len(),
        readers: lengths.len(),
        tasks,
    })
}

fn random_tasks(chosen: &[(u64, u64)], newest: u64, seed: u64) -> Vec<PageTask> {
    let mut random = Pcg64::seed_from_u64(seed);
    (0..BOUNDS_EACH)
        .flat_map(|_| chosen)
        .map(|(reader, _)| PageTask {
            reader: *reader,
            bound: Some(random.next_u64() % newest.max(1) + 1),
        })
        .collect()
}

/// One less than the last id of the `above` newest messages: the procedure's bound is inclusive.
async fn page_bound(
    conn: &mut Conn,
    reader: u64,
    above: u64,
) -> Result<Option<u64>, mysql_async::Error> {
    let last: Option<u64> = conn
        .query_first(format!(
            "SELECT message.id FROM message INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader} ORDER BY message.id DESC LIMIT {},1",
            above - 1
        ))
        .await?;
    Ok(last.map(|id| id.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_pages_begin_anywhere_and_the_same_again() {
        let tasks = random_tasks(&[(1, 20), (2, 1)], 1_000, 7);
        assert_eq!(tasks, random_tasks(&[(1, 20), (2, 1)], 1_000, 7));
        assert_eq!(tasks.len(), 2 * BOUNDS_EACH);
        let bounds: std::collections::BTreeSet<_> = tasks.iter().map(|task| task.bound).collect();
        assert!(bounds.len() > BOUNDS_EACH, "{bounds:?}");
        assert!(
            tasks
                .iter()
                .all(|task| (Some(1)..=Some(1_000)).contains(&task.bound))
        );
    }

    #[test]
    fn each_seed_gives_a_permutation_of_its_own() {
        let shuffled = |seed| {
            let mut readers: Vec<u32> = (0..100).collect();
            shuffle(&mut readers, seed);
            readers
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut all = shuffled(3);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..100));
    }
}
