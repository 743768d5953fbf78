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
use crate::config::ServiceFlags;
use crate::lab::bench::StopSignal;
use crate::lab::bench::client::BenchClient;
use crate::lab::bench::data::shuffle;
use crate::lab::bench::login::BenchAccount;
use crate::lab::bench::memory::resident_bytes;
use crate::lab::bench::proxy_process::ProxyProcess;
use crate::lab::demo::dataset::{Dataset, DatasetSize};
use crate::lab::demo::{accounts, load};
use crate::lab::feed::{CLASSIC_FEED, SettingsFile};
use crate::lab::private_server::redis::RedisServer;
use crate::lab::private_server::{PrivateServer, ServerKind};

const DATABASE: &str = "strategies";
const SERVER_OPTIONS: [&str; 1] = ["--innodb-flush-log-at-trx-commit=2"];
/// So many messages are made up; beyond that, they are repeated.
const MAX_GENERATED: u64 = 1_000_000;
/// What a message takes on disk with its index entry, about, in bytes; and what a follow takes.
const ROW_BYTES: (f64, f64) = (230.0, 80.0);
/// Headwater's memory is filled by calls, for so long at most.
const WARMUP_TIMEOUT: Duration = Duration::from_secs(120);

/// The followers of the author in the middle, where more than that are added.
const SOME_FANS: u32 = 1_000;
/// From so many rows on, secondary keys are built behind them.
const MANY_ROWS: u64 = 2_000_000;

/// What the server is filled with.
#[derive(Clone, Copy, Debug)]
pub enum StrategyData<'a> {
    /// Made up: so much of it, and so many readers more who follow nobody but one author more. Whoever has many followers has few of them
    /// among users who are as alike as these.
    Generated(DatasetSize, u32),
    /// Somebody's own.
    Provided(&'a UserData),
}

impl StrategyData<'_> {
    /// How much there is.
    #[must_use]
    pub fn size(self) -> DatasetSize {
        match self {
            StrategyData::Generated(size, _) => size,
            StrategyData::Provided(own) => own.size(),
        }
    }

    /// Readers more.
    #[must_use]
    pub fn fans(self) -> u32 {
        match self {
            StrategyData::Generated(_, fans) => fans,
            StrategyData::Provided(_) => 0,
        }
    }
}

/// So many readers behind these users, all of whom follow one author, and the first thousand another one too.
fn fan_follows(users: u32, many: u32) -> impl Iterator<Item = (u32, u32)> {
    let (some, all) = (users + 1, users + 2);
    (0..many).flat_map(move |place| {
        let reader = all + 1 + place;
        let follows = (place < SOME_FANS && many > SOME_FANS).then_some((reader, some));
        follows.into_iter().chain([(reader, all)])
    })
}

/// All of it; gone when dropped.
#[derive(Debug)]
pub struct StrategyServers {
    // Dropped in front of the servers.
    _kill_guard: KillGuard,
    headwater: Option<ProxyProcess>,
    redis: RedisServer,
    server: PrivateServer,
    /// What the server was filled with.
    pub size: DatasetSize,
    /// Time that this took.
    pub filled: Duration,
    /// Those of the messages to be written.
    pub ids: MessageIds,
}

/// Ids, each greater than those before.
#[derive(Debug)]
pub struct MessageIds(AtomicU64);

impl MessageIds {
    /// The next one.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Who follows whom, and who wrote what.
#[derive(Debug)]
pub struct FollowsAndMessages {
    /// Authors by reader.
    pub follows: BTreeMap<u64, Vec<u64>>,
    /// Ids by author.
    pub messages: HashMap<u64, Vec<u64>>,
}

impl StrategyServers {
    /// Starts and fills everything. The server keeps so many gigabytes of its tables in memory.
    ///
    /// # Errors
    /// When a part cannot be had, or a statement fails.
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
        let cut = KillGuard::start(&processes.collect::<Vec<_>>(), stop);
        Handle::current().block_on(fill(&server, kind, data))?;
        Ok(StrategyServers {
            _kill_guard: cut,
            headwater: None,
            redis,
            server,
            size,
            filled: begun.elapsed(),
            ids: MessageIds(AtomicU64::new(size.messages + 1)),
        })
    }

    /// Starts Headwater, and fills its memory with everybody's timeline, those of these readers first.
    ///
    /// # Errors
    /// When one does not come up, or a statement fails.
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
        // They are on one machine: no part of it needs the network.
        let upstream = self.server.socket().display().to_string();
        let proxy =
            ProxyProcess::start_for(&upstream, &service, &["--config", &path, "--preload"])?;
        self.headwater = Some(proxy);
        let mut client = self.through_headwater()?;
        let until = Instant::now() + WARMUP_TIMEOUT;
        let asked: HashSet<u64> = first.iter().copied().collect();
        let others = self.readers().filter(|reader| !asked.contains(reader));
        for reader in first.iter().copied().chain(others) {
            client.execute(&format!("CALL fetch_timeline_ids({reader})"))?;
            if Instant::now() > until {
                break;
            }
        }
        Ok(begun.elapsed())
    }

    /// What the server calls itself.
    #[must_use]
    pub fn version(&self) -> &str {
        self.server.version()
    }

    /// An app's connection to the server.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn connect(&self) -> Result<BenchClient, StrategyError> {
        let address = self.server.addr().to_string();
        Ok(BenchClient::connect(&address, &account(accounts::APP))?)
    }

    /// A connection that fills a strategy's tables: the binary log does without, which would be as long again.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn builder_connection(&self) -> Result<BenchClient, StrategyError> {
        let address = self.server.addr().to_string();
        let mut client = BenchClient::connect(&address, &account("root"))?;
        client.execute("SET SESSION sql_log_bin=0")?;
        Ok(client)
    }

    /// An app's connection through Headwater.
    ///
    /// # Errors
    /// When it cannot be had.
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

    /// A connection to Redis.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn redis(&self) -> Result<redis::Connection, StrategyError> {
        Ok(self.redis.connect()?)
    }

    /// Every user.
    pub fn readers(&self) -> impl Iterator<Item = u64> + use<> {
        1..=u64::from(self.size.users)
    }

    /// Every user, by so many at once: the first and the last of each.
    pub fn reader_ranges(&self, many: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let users = u64::from(self.size.users);
        (0..users.div_ceil(many)).map(move |at| (at * many + 1, users.min((at + 1) * many)))
    }

    /// Some users: those who follow anybody in front of those who follow nobody.
    ///
    /// # Errors
    /// When the server does not tell.
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
    /// When the server does not tell.
    pub fn followers_per_message(&self) -> Result<f64, StrategyError> {
        let pushed = self.query_number(
            "SELECT SUM(written.messages*followed.followers) FROM \
             (SELECT user_id,COUNT(*) AS messages FROM message GROUP BY user_id) AS written INNER JOIN \
             (SELECT follower_id,COUNT(*) AS followers FROM follower GROUP BY follower_id) AS followed \
             ON followed.follower_id=written.user_id",
        )?;
        Ok(pushed / self.size.messages.max(1) as f64)
    }

    /// Authors whom a reader follows, on average over those who follow anybody.
    ///
    /// # Errors
    /// When the server does not tell.
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

    /// Who follows whom, and who wrote what.
    ///
    /// # Errors
    /// When the server does not tell.
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

    /// Hands on every message.
    ///
    /// # Errors
    /// When the server does not tell, or `each` fails.
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
    /// When the server does not tell.
    pub fn table_bytes(&self, tables: &[&str]) -> Result<u64, StrategyError> {
        let mut client = self.connect()?;
        let mut bytes = 0;
        for table in tables {
            // The files, where the server keeps one for each table: what it says of tables is an estimate, and late.
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

    /// Keys of Redis that begin so, with their values.
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
                // Of all elements of a value: sizes of a few may be far from the others'.
                pipe.cmd("MEMORY").arg("USAGE").arg(key);
                pipe.arg("SAMPLES").arg(0);
            }
            if !keys.is_empty() {
                // A key whose time is over is not there any more.
                let each: Vec<Option<u64>> = pipe.query(&mut redis)?;
                bytes += each.iter().flatten().sum::<u64>();
            }
            if cursor == 0 {
                return Ok(bytes);
            }
        }
    }

    /// What is free on the disk of the server's data, in bytes.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn free_bytes(&self) -> Result<f64, StrategyError> {
        free_bytes(&self.server)
    }

    /// What is in memory besides.
    ///
    /// # Errors
    /// When it cannot be asked.
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
    let asked = |source| StrategyError::Fill { source };
    let mut conn = mysql_async::Conn::new(options).await.map_err(asked)?;
    let bar = ProgressBar::new(0);
    let progress = |progress: load::LoadProgress| {
        bar.set_length(progress.total);
        bar.set_position(progress.rows);
    };
    // The log has no use for it, and would be as long again.
    conn.query_drop("SET SESSION sql_log_bin=0")
        .await
        .map_err(asked)?;
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
    // Without TLS an account's password is asked for once more where the server has forgotten it: there is none.
    conn.query_drop("SELECT 1").await.map_err(asked)?;
    conn.disconnect().await.map_err(asked)
}
