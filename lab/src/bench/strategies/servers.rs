//! What the strategies share: a server with messages and follows, a Redis, and Headwater in front of the server.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use mysql_async::prelude::Queryable;
use tokio::runtime::Handle;

use super::kill_guard::KillGuard;
use super::page::{MessagePage, PageMessage};
use super::strategy::MemoryOwner;
use super::user_data::UserData;
use super::{MAX_DISK_SHARE, StrategyError};
use crate::bench::StopSignal;
use crate::bench::client::BenchClient;
use crate::bench::data::shuffle;
use crate::bench::login::BenchAccount;
use crate::bench::memory::resident_bytes;
use crate::bench::proxy_process::ProxyProcess;
use crate::demo::dataset::{Dataset, DatasetSize};
use crate::demo::{accounts, load};
use crate::feed::{CLASSIC_FEED, SettingsFile};
use crate::private_server::redis::RedisServer;
use crate::private_server::{PrivateServer, ServerKind};
use headwater_server::config::ServiceFlags;

const DATABASE: &str = "strategies";
const SERVER_OPTIONS: [&str; 1] = ["--innodb-flush-log-at-trx-commit=2"];
/// Number of generated messages; beyond it, they are repeated.
const MAX_GENERATED: u64 = 1_000_000;
/// Estimated bytes on disk of a message with its index entry, and of a follow.
const ROW_BYTES: (f64, f64) = (230.0, 80.0);
/// Time limit for the calls that fill Headwater's memory.
const WARMUP_TIMEOUT: Duration = Duration::from_secs(120);

/// Followers of the author with a medium number, if there are more additional readers than that.
const SOME_FANS: u32 = 1_000;
/// From so many rows on, secondary keys are built after the rows.
const MANY_ROWS: u64 = 2_000_000;

/// The data of a server.
#[derive(Clone, Copy, Debug)]
pub enum StrategyData<'a> {
    /// Generated: this size, and so many additional readers who follow only one more author each. Among users as similar as these, an
    /// author with many followers shares few of them with others.
    Generated(DatasetSize, u32),
    /// A user's own data.
    Provided(&'a UserData),
}

impl StrategyData<'_> {
    /// The size of the data set.
    #[must_use]
    pub fn size(self) -> DatasetSize {
        match self {
            StrategyData::Generated(size, _) => size,
            StrategyData::Provided(own) => own.size(),
        }
    }

    /// The additional readers.
    #[must_use]
    pub fn fans(self) -> u32 {
        match self {
            StrategyData::Generated(_, fans) => fans,
            StrategyData::Provided(_) => 0,
        }
    }
}

/// The follows of so many additional readers, numbered after the users: all follow one author, and the first thousand another one too.
fn fan_follows(users: u32, many: u32) -> impl Iterator<Item = (u32, u32)> {
    let (some, all) = (users + 1, users + 2);
    (0..many).flat_map(move |index| {
        let reader = all + 1 + index;
        let follows = (index < SOME_FANS && many > SOME_FANS).then_some((reader, some));
        follows.into_iter().chain([(reader, all)])
    })
}

/// The servers and their data. Dropping this value removes everything.
#[derive(Debug)]
pub struct StrategyServers {
    // Dropped before the servers.
    _kill_guard: KillGuard,
    headwater: Option<ProxyProcess>,
    redis: RedisServer,
    server: PrivateServer,
    /// The size of the server's data set.
    pub size: DatasetSize,
    /// Time to fill it.
    pub filled: Duration,
    /// Ids for new messages.
    pub ids: MessageIds,
}

/// Ascending ids.
#[derive(Debug)]
pub struct MessageIds(AtomicU64);

impl MessageIds {
    /// The next id.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// All follows and messages.
#[derive(Debug)]
pub struct FollowsAndMessages {
    /// Authors by reader.
    pub follows: BTreeMap<u64, Vec<u64>>,
    /// Ids by author.
    pub messages: HashMap<u64, Vec<u64>>,
}

impl StrategyServers {
    /// Starts and fills everything. The server's buffer pool has so many gigabytes.
    ///
    /// # Errors
    /// Fails if a server does not start, or a statement fails.
    pub fn start(
        kind: ServerKind,
        data: StrategyData<'_>,
        buffer_pool: u16,
        stop: &StopSignal,
    ) -> Result<StrategyServers, StrategyError> {
        let size = data.size();
        let redis = RedisServer::start()?;
        let pool = format!("--innodb-buffer-pool-size={buffer_pool}G");
        let server = PrivateServer::start(kind, &[&SERVER_OPTIONS[..], &[&pool]].concat())?;
        eprintln!(
            "{} {}: {} users, {} follows, {} messages",
            kind.name(),
            server.version(),
            size.users,
            size.follows(),
            size.messages
        );
        let free = free_bytes(&server)?;
        let bytes = size.messages as f64 * ROW_BYTES.0 + size.follows() as f64 * ROW_BYTES.1;
        if bytes > free * MAX_DISK_SHARE {
            return Err(StrategyError::DiskFull { bytes, free });
        }
        let begun = Instant::now();
        let processes = server.pid().into_iter().chain([redis.pid()]);
        let kill_guard = KillGuard::start(&processes.collect::<Vec<_>>(), stop);
        Handle::current().block_on(fill(&server, kind, data))?;
        Ok(StrategyServers {
            _kill_guard: kill_guard,
            headwater: None,
            redis,
            server,
            size,
            filled: begun.elapsed(),
            ids: MessageIds(AtomicU64::new(size.messages + 1)),
        })
    }

    /// Starts Headwater, and fills its memory with all timelines, those of these readers first.
    ///
    /// # Errors
    /// Fails if it does not start, or a statement fails.
    pub fn start_headwater(&mut self, first: &[u64]) -> Result<Duration, StrategyError> {
        let begun = Instant::now();
        let service = ServiceFlags {
            service_user: Some(accounts::SERVICE.to_owned()),
            service_password: Some(String::new()),
            ..ServiceFlags::default()
        };
        let file = SettingsFile::new(CLASSIC_FEED)
            .map_err(|(path, source)| StrategyError::Write { path, source })?;
        let path = file.path().display().to_string();
        // Both are on one machine: a Unix socket avoids the network stack.
        let upstream = self.server.socket().display().to_string();
        let proxy =
            ProxyProcess::start_for(&upstream, &service, &["--config", &path, "--preload"])?;
        self.headwater = Some(proxy);
        let mut client = self.through_headwater()?;
        let until = Instant::now() + WARMUP_TIMEOUT;
        let first_readers: HashSet<u64> = first.iter().copied().collect();
        let others = self
            .readers()
            .filter(|reader| !first_readers.contains(reader));
        for reader in first.iter().copied().chain(others) {
            client.execute(&format!("CALL fetch_timeline_ids({reader})"))?;
            if Instant::now() > until {
                break;
            }
        }
        Ok(begun.elapsed())
    }

    /// The server's version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.server.version()
    }

    /// Opens an app's connection to the server.
    ///
    /// # Errors
    /// Fails if the connection or the login fails.
    pub fn connect(&self) -> Result<BenchClient, StrategyError> {
        let address = self.server.addr().to_string();
        Ok(BenchClient::connect(&address, &account(accounts::APP))?)
    }

    /// Opens a connection that fills a strategy's tables without the binary log, which would double the writes.
    ///
    /// # Errors
    /// Fails if the connection or the login fails.
    pub fn builder_connection(&self) -> Result<BenchClient, StrategyError> {
        let address = self.server.addr().to_string();
        let mut client = BenchClient::connect(&address, &account("root"))?;
        client.execute("SET SESSION sql_log_bin=0")?;
        Ok(client)
    }

    /// Opens an app's connection through Headwater.
    ///
    /// # Errors
    /// Fails if the connection or the login fails.
    pub fn through_headwater(&self) -> Result<BenchClient, StrategyError> {
        let proxy = self
            .headwater
            .as_ref()
            .ok_or(StrategyError::UnexpectedRow)?;
        Ok(BenchClient::connect(
            &proxy.address(),
            &account(accounts::APP),
        )?)
    }

    /// Opens a connection to Redis.
    ///
    /// # Errors
    /// Fails if the connection fails.
    pub fn redis(&self) -> Result<redis::Connection, StrategyError> {
        Ok(self.redis.connect()?)
    }

    /// Every user.
    pub fn readers(&self) -> impl Iterator<Item = u64> + use<> {
        1..=u64::from(self.size.users)
    }

    /// Every user, in ranges of so many: the first and the last of each.
    pub fn reader_ranges(&self, many: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let users = u64::from(self.size.users);
        (0..users.div_ceil(many)).map(move |at| (at * many + 1, users.min((at + 1) * many)))
    }

    /// Some users; those with follows come first.
    ///
    /// # Errors
    /// Fails if the query fails.
    pub fn some_readers(&self, most: usize) -> Result<Vec<u64>, StrategyError> {
        let mut readers = self.connect()?.query_numbers(&format!(
            "SELECT DISTINCT user_id FROM follower WHERE user_id<={} ORDER BY user_id",
            self.size.users
        ))?;
        let following: HashSet<u64> = readers.iter().copied().collect();
        shuffle(&mut readers, self.size.seed);
        readers.extend(self.readers().filter(|user| !following.contains(user)));
        readers.truncate(most);
        Ok(readers)
    }

    /// Followers of a message's author, on average over the messages.
    ///
    /// # Errors
    /// Fails if the query fails.
    pub fn followers_per_message(&self) -> Result<f64, StrategyError> {
        let pushed = self.query_number(
            "SELECT SUM(written.messages*followed.followers) FROM \
             (SELECT user_id,COUNT(*) AS messages FROM message GROUP BY user_id) AS written INNER JOIN \
             (SELECT follower_id,COUNT(*) AS followers FROM follower GROUP BY follower_id) AS followed \
             ON followed.follower_id=written.user_id",
        )?;
        Ok(pushed / self.size.messages.max(1) as f64)
    }

    /// Authors whom a reader follows, on average over the readers with follows.
    ///
    /// # Errors
    /// Fails if the query fails.
    pub fn follows_per_reader(&self) -> Result<f64, StrategyError> {
        let readers = self.query_number(&format!(
            "SELECT COUNT(DISTINCT user_id) FROM follower WHERE user_id<={}",
            self.size.users
        ))?;
        Ok(self.size.follows() as f64 / readers.max(1.0))
    }

    fn query_number(&self, select: &str) -> Result<f64, StrategyError> {
        let numbers = self.connect()?.query_numbers(select)?;
        Ok(numbers.first().copied().unwrap_or_default() as f64)
    }

    /// Reads all follows and messages.
    ///
    /// # Errors
    /// Fails if a query fails.
    pub fn follows_and_messages(&self) -> Result<FollowsAndMessages, StrategyError> {
        let mut client = self.connect()?;
        let mut rows = FollowsAndMessages {
            follows: BTreeMap::new(),
            messages: HashMap::new(),
        };
        let follows =
            client.query_pairs("SELECT user_id,follower_id FROM follower ORDER BY 1,2")?;
        for (reader, author) in follows {
            rows.follows.entry(reader).or_default().push(author);
        }
        for (id, author) in client.query_pairs("SELECT id,user_id FROM message ORDER BY id")? {
            rows.messages.entry(author).or_default().push(id);
        }
        Ok(rows)
    }

    /// Calls `each` for every message.
    ///
    /// # Errors
    /// Fails if a query or `each` fails.
    pub fn each_message(
        &self,
        mut each: impl FnMut(&PageMessage) -> Result<(), StrategyError>,
    ) -> Result<(), StrategyError> {
        const AT_ONCE: u64 = 5_000;
        let mut client = self.connect()?;
        let last = self.ids.0.load(Ordering::Relaxed);
        let mut first = 1;
        while first < last {
            let mut page = MessagePage::default();
            let end = first + AT_ONCE;
            page.query(
                &mut client,
                &format!("SELECT id,user_id,body FROM message WHERE id>={first} AND id<{end}"),
            )?;
            for row in &page.rows {
                each(row)?;
            }
            first = end;
        }
        Ok(())
    }

    /// Data and indexes of these tables, in bytes.
    ///
    /// # Errors
    /// Fails if the query fails.
    pub fn table_bytes(&self, tables: &[&str]) -> Result<u64, StrategyError> {
        let mut client = self.connect()?;
        let mut bytes = 0;
        for table in tables {
            // The file size, if the server has one file for each table: its statistics are estimates, and delayed.
            let file = self
                .server
                .data()
                .join(DATABASE)
                .join(format!("{table}.ibd"));
            bytes += match std::fs::metadata(&file) {
                Ok(file) => file.len(),
                Err(_) => client
                    .query_numbers(&format!(
                        "SELECT DATA_LENGTH+INDEX_LENGTH FROM information_schema.TABLES \
                         WHERE TABLE_SCHEMA='{DATABASE}' AND TABLE_NAME='{table}'"
                    ))?
                    .iter()
                    .sum(),
            };
        }
        Ok(bytes)
    }

    /// The memory of the Redis keys with this prefix, with their values.
    fn redis_bytes(&self, prefix: &str) -> Result<u64, StrategyError> {
        let mut redis = self.redis()?;
        let (mut bytes, mut cursor) = (0, 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*"));
            scan.arg("COUNT").arg(1_000);
            let keys: Vec<String>;
            (cursor, keys) = scan.query(&mut redis)?;
            let mut pipe = redis::pipe();
            for key in &keys {
                // All elements of a value are counted: the sizes of a sample may be far from the others'.
                pipe.cmd("MEMORY").arg("USAGE").arg(key);
                pipe.arg("SAMPLES").arg(0);
            }
            if !keys.is_empty() {
                // An expired key is gone.
                let each: Vec<Option<u64>> = pipe.query(&mut redis)?;
                bytes += each.iter().flatten().sum::<u64>();
            }
            if cursor == 0 {
                return Ok(bytes);
            }
        }
    }

    /// The free space on the disk of the server's data, in bytes.
    ///
    /// # Errors
    /// Fails if the system does not report it.
    pub fn free_bytes(&self) -> Result<f64, StrategyError> {
        free_bytes(&self.server)
    }

    /// The memory of the strategy, in bytes.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn memory_bytes(&self, of: MemoryOwner) -> Result<u64, StrategyError> {
        match of {
            MemoryOwner::None => Ok(0),
            MemoryOwner::Headwater => {
                let pid = self.headwater.as_ref().map(ProxyProcess::pid);
                Ok(pid.map(resident_bytes).transpose()?.unwrap_or(0))
            }
            MemoryOwner::Redis(prefix) => self.redis_bytes(prefix),
        }
    }
}

fn free_bytes(server: &PrivateServer) -> Result<f64, StrategyError> {
    let path = server.data();
    let disk = rustix::fs::statvfs(&path).map_err(|error| StrategyError::Write {
        path,
        source: error.into(),
    })?;
    Ok(disk.f_bavail as f64 * disk.f_frsize as f64)
}

fn account(user: &str) -> BenchAccount {
    BenchAccount {
        user: user.to_owned(),
        password: String::new(),
        database: DATABASE.to_owned(),
    }
}

async fn fill(
    server: &PrivateServer,
    kind: ServerKind,
    data: StrategyData<'_>,
) -> Result<(), StrategyError> {
    let options = mysql_async::OptsBuilder::default()
        .ip_or_hostname(server.addr().ip().to_string())
        .tcp_port(server.port())
        .prefer_socket(false)
        .user(Some("root"));
    let fill_error = |source| StrategyError::Fill { source };
    let mut conn = mysql_async::Conn::new(options).await.map_err(fill_error)?;
    let bar = ProgressBar::new(0);
    let progress = |progress: load::LoadProgress| {
        bar.set_length(progress.total);
        bar.set_position(progress.rows);
    };
    // The log is not used here, and would double the writes.
    conn.query_drop("SET SESSION sql_log_bin=0")
        .await
        .map_err(fill_error)?;
    load::create(&mut conn, DATABASE).await?;
    let many = data.size().rows() > MANY_ROWS;
    if many {
        load::drop_keys(&mut conn).await?;
    }
    match data {
        StrategyData::Generated(size, more) => {
            let sent = DatasetSize {
                messages: size.messages.min(MAX_GENERATED),
                ..size
            };
            let dataset = Dataset::new(sent);
            let follows = dataset.follows().map(|it| (it.reader, it.author));
            let follows = follows.chain(fan_follows(size.users, more));
            let of = sent.rows();
            load::insert_rows(&mut conn, follows, dataset.messages(), of, progress).await?;
            load::repeat_messages(&mut conn, sent.messages, size.messages, progress).await?;
        }
        StrategyData::Provided(own) => {
            let of = own.size().rows();
            load::insert_rows(&mut conn, own.follows(), own.messages(), of, progress).await?;
        }
    }
    if many {
        load::build_keys(&mut conn).await?;
    }
    bar.finish_and_clear();
    accounts::create(&mut conn, kind, DATABASE).await?;
    // Makes the server cache the account's password: without TLS it would request it again.
    conn.query_drop("SELECT 1").await.map_err(fill_error)?;
    conn.disconnect().await.map_err(fill_error)
}
