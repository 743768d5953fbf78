//! Timelines in Redis, messages in the server and their texts in Redis too: filled on write, filled on read, merged on read, and an app's
//! cache of the newest page with an expiry.

use super::StrategyError;
use super::base_tables::BaseTables;
use super::page::{MESSAGES_PER_PAGE, MessagePage, PageMessage};
use super::servers::StrategyServers;
use super::strategy::{AppSession, FreshnessClaim, MemoryOwner, TimelineStrategy};
use crate::query_path::PageTask;

/// Maximum length of a timeline in Redis.
const MAX_TIMELINE: usize = 800;
/// Messages with which a read fills a timeline.
const FILL_COUNT: usize = 400;
/// A reader is active for so long after a read, in seconds.
const ACTIVE_SECONDS: u64 = 600;
/// Expiry of a page in the app's cache, in milliseconds.
pub const WINDOW_MS: u64 = 30_000;
/// Commands in one pipeline.
const COMMANDS_AT_ONCE: usize = 1_000;
const AUTHOR_BYTES: usize = 8;

/// A Redis strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisStrategy {
    /// `t:READER`, for every reader, when a message is written.
    OnWrite,
    /// The same for active readers, from their first page on.
    OnRead,
    /// `a:AUTHOR`, merged when a page is read.
    Pull,
    /// `w:READER`, a page as it was first read.
    Window,
}

impl TimelineStrategy for RedisStrategy {
    fn name(&self) -> &'static str {
        match self {
            RedisStrategy::OnWrite => "redis-push",
            RedisStrategy::OnRead => "redis-on-read",
            RedisStrategy::Pull => "redis-pull",
            RedisStrategy::Window => "redis-window",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            RedisStrategy::OnWrite => {
                "a sorted set a reader in Redis, filled on write: pipelined ZADD, trimmed to 800"
            }
            RedisStrategy::OnRead => {
                "the same for readers who read, filled with 400 on their first page; deeper pages from the server"
            }
            RedisStrategy::Pull => "a sorted set an author in Redis, united by ZUNIONSTORE on read",
            RedisStrategy::Window => "the newest page cached by the app in Redis for 30 s",
        }
    }

    fn claim(&self) -> FreshnessClaim {
        match self {
            RedisStrategy::OnWrite => FreshnessClaim::Capped,
            RedisStrategy::Pull => FreshnessClaim::Fresh,
            RedisStrategy::OnRead | RedisStrategy::Window => FreshnessClaim::Stale,
        }
    }

    fn pushed_bytes(&self) -> Option<f64> {
        // The timeline is in memory, and limited.
        (*self == RedisStrategy::OnWrite).then_some(0.0)
    }

    fn memory(&self) -> MemoryOwner {
        MemoryOwner::Redis(self.prefix())
    }

    fn build(&self, servers: &StrategyServers) -> Result<(), StrategyError> {
        let mut redis = servers.redis()?;
        let prefix = self.prefix();
        let mut pipe = CommandPipeline::default();
        if matches!(self, RedisStrategy::OnRead | RedisStrategy::Window) {
            return Ok(());
        }
        let rows = servers.follows_and_messages()?;
        if *self == RedisStrategy::OnWrite {
            for (reader, authors) in &rows.follows {
                let mut ids: Vec<u64> = authors
                    .iter()
                    .filter_map(|author| rows.messages.get(author))
                    .flatten()
                    .copied()
                    .collect();
                ids.sort_unstable_by(|one, other| other.cmp(one));
                ids.truncate(MAX_TIMELINE);
                for id in ids {
                    pipe.add(&mut redis, zadd(&format!("{prefix}t:{reader}"), id))?;
                }
            }
        } else {
            for (author, ids) in &rows.messages {
                for id in ids {
                    pipe.add(&mut redis, zadd(&format!("{prefix}a:{author}"), *id))?;
                }
            }
            for (reader, authors) in &rows.follows {
                for author in authors {
                    let mut command = redis::cmd("SADD");
                    command.arg(format!("{prefix}f:{reader}")).arg(*author);
                    pipe.add(&mut redis, command)?;
                }
            }
        }
        servers.each_message(|row| {
            let mut command = redis::cmd("SET");
            command
                .arg(format!("{prefix}m:{}", row.id))
                .arg(message_value(row.author, &row.body));
            pipe.add(&mut redis, command)
        })?;
        pipe.send(&mut redis)
    }

    fn session(&self, servers: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError> {
        Ok(Box::new(RedisSession {
            base: BaseTables(servers.connect()?),
            redis: servers.redis()?,
            kind: *self,
            prefix: self.prefix(),
        }))
    }
}

impl RedisStrategy {
    /// The prefix of its keys.
    fn prefix(self) -> &'static str {
        match self {
            RedisStrategy::OnWrite => "push:",
            RedisStrategy::OnRead => "read:",
            RedisStrategy::Pull => "pull:",
            RedisStrategy::Window => "window:",
        }
    }
}

fn zadd(key: &str, id: u64) -> redis::Cmd {
    let mut command = redis::cmd("ZADD");
    command.arg(key).arg(id).arg(id);
    command
}

fn upper_score(bound: Option<u64>) -> String {
    bound.map_or_else(|| "+inf".to_owned(), |bound| bound.to_string())
}

/// A message's author and body, as one value.
fn message_value(author: u64, body: &[u8]) -> Vec<u8> {
    let mut value = author.to_be_bytes().to_vec();
    value.extend_from_slice(body);
    value
}

/// Commands whose replies are ignored.
#[derive(Default)]
struct CommandPipeline {
    pipe: redis::Pipeline,
    length: usize,
}

impl CommandPipeline {
    fn add(
        &mut self,
        redis: &mut redis::Connection,
        command: redis::Cmd,
    ) -> Result<(), StrategyError> {
        self.pipe.add_command(command).ignore();
        self.length += 1;
        if self.length < COMMANDS_AT_ONCE {
            return Ok(());
        }
        self.send(redis)
    }

    fn send(&mut self, redis: &mut redis::Connection) -> Result<(), StrategyError> {
        if self.length > 0 {
            self.pipe.exec(redis)?;
            self.pipe.clear();
            self.length = 0;
        }
        Ok(())
    }
}

struct RedisSession {
    base: BaseTables,
    redis: redis::Connection,
    kind: RedisStrategy,
    prefix: &'static str,
}

impl RedisSession {
    fn key(&self, kind: char, number: u64) -> String {
        format!("{}{kind}:{number}", self.prefix)
    }

    /// The page from the server alone.
    fn join(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        page.rows.clear();
        page.query(&mut self.base.0, &PageTask { reader, bound }.join())
    }

    /// The newest ids of a sorted set, up to this one.
    fn ids(&mut self, key: &str, bound: Option<u64>) -> Result<Vec<u64>, StrategyError> {
        let mut command = redis::cmd("ZREVRANGEBYSCORE");
        command.arg(key).arg(upper_score(bound)).arg("-inf");
        command.arg("LIMIT").arg(0).arg(MESSAGES_PER_PAGE);
        Ok(command.query(&mut self.redis)?)
    }

    /// The messages of these ids.
    fn page_of_set(
        &mut self,
        key: &str,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        let ids = self.ids(key, bound)?;
        self.messages(&ids, page)
    }

    fn messages(&mut self, ids: &[u64], page: &mut MessagePage) -> Result<(), StrategyError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut command = redis::cmd("MGET");
        for id in ids {
            command.arg(self.key('m', *id));
        }
        let texts: Vec<Option<Vec<u8>>> = command.query(&mut self.redis)?;
        for (id, text) in ids.iter().zip(texts) {
            // The message was deleted meanwhile.
            let Some(text) = text else { continue };
            let (author, body) = text
                .split_at_checked(AUTHOR_BYTES)
                .ok_or(StrategyError::UnexpectedRow)?;
            let author = author
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte));
            page.rows.push(PageMessage {
                id: *id,
                author,
                body: body.to_vec(),
            });
        }
        Ok(())
    }

    fn followers(&mut self, author: u64) -> Result<Vec<u64>, StrategyError> {
        let select = format!("SELECT user_id FROM follower WHERE follower_id={author}");
        Ok(self.base.0.query_numbers(&select)?)
    }

    /// The existing keys among these.
    fn present(&mut self, keys: Vec<String>) -> Result<Vec<String>, StrategyError> {
        let mut present = Vec::new();
        for keys in keys.chunks(COMMANDS_AT_ONCE) {
            let mut pipe = redis::pipe();
            for key in keys {
                pipe.cmd("EXISTS").arg(key);
            }
            let exists: Vec<bool> = pipe.query(&mut self.redis)?;
            let exists = keys.iter().zip(exists).filter(|(_, there)| *there);
            present.extend(exists.map(|(key, _)| key.clone()));
        }
        Ok(present)
    }

    /// A reader's timeline from the server, newest first.
    fn timeline(&mut self, reader: u64, most: usize) -> Result<Vec<u64>, StrategyError> {
        Ok(self.base.0.query_numbers(&format!(
            "SELECT message.id FROM message INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader} ORDER BY message.id DESC LIMIT {most}"
        ))?)
    }

    /// Replaces the reader's timeline in Redis.
    fn refill(&mut self, reader: u64, most: usize) -> Result<(), StrategyError> {
        let ids = self.timeline(reader, most)?;
        let key = self.key('t', reader);
        let mut pipe = redis::pipe();
        pipe.cmd("DEL").arg(&key).ignore();
        for id in ids {
            pipe.add_command(zadd(&key, id)).ignore();
        }
        if self.kind == RedisStrategy::OnRead {
            pipe.cmd("EXPIRE").arg(&key).arg(ACTIVE_SECONDS).ignore();
        }
        Ok(pipe.exec(&mut self.redis)?)
    }

    fn page_on_read(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        let key = self.key('t', reader);
        let exists: bool = redis::cmd("EXISTS").arg(&key).query(&mut self.redis)?;
        if !exists {
            self.refill(reader, FILL_COUNT)?;
        }
        self.page_with_fallback(&key, bound, page)?;
        match page.rows.len() {
            MESSAGES_PER_PAGE => Ok(()),
            _ => self.join(reader, bound, page),
        }
    }

    /// The page, with texts missing in Redis read from the server and stored.
    fn page_with_fallback(
        &mut self,
        key: &str,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        let ids = self.ids(key, bound)?;
        self.messages(&ids, page)?;
        if page.rows.len() == ids.len() {
            return Ok(());
        }
        page.rows.clear();
        page.query(&mut self.base.0, &crate::query_path::bodies_select(&ids))?;
        let mut pipe = redis::pipe();
        for row in &page.rows {
            let value = message_value(row.author, &row.body);
            let key = self.key('m', row.id);
            pipe.cmd("SET").arg(key).arg(value);
            pipe.arg("EX").arg(ACTIVE_SECONDS).ignore();
        }
        Ok(pipe.exec(&mut self.redis)?)
    }

    fn page_of_authors(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        let follows = self.key('f', reader);
        let authors: Vec<u64> = redis::cmd("SMEMBERS").arg(follows).query(&mut self.redis)?;
        if authors.is_empty() {
            return Ok(());
        }
        let united = self.key('u', reader);
        let mut pipe = redis::pipe();
        pipe.atomic()
            .cmd("ZUNIONSTORE")
            .arg(&united)
            .arg(authors.len());
        for author in authors {
            pipe.arg(self.key('a', author));
        }
        pipe.arg("AGGREGATE").arg("MAX").ignore();
        pipe.cmd("ZREVRANGEBYSCORE")
            .arg(&united)
            .arg(upper_score(bound))
            .arg("-inf");
        pipe.arg("LIMIT").arg(0).arg(MESSAGES_PER_PAGE);
        pipe.cmd("UNLINK").arg(&united).ignore();
        let (ids,): (Vec<u64>,) = pipe.query(&mut self.redis)?;
        self.messages(&ids, page)
    }

    fn page_of_window(&mut self, reader: u64, page: &mut MessagePage) -> Result<(), StrategyError> {
        let key = self.key('w', reader);
        let cached: Option<Vec<u8>> = redis::cmd("GET").arg(&key).query(&mut self.redis)?;
        if let Some(cached) = cached {
            page.rows = serde_json::from_slice::<Vec<(u64, u64, String)>>(&cached)
                .map_err(|_| StrategyError::UnexpectedRow)?
                .into_iter()
                .map(|(id, author, body)| PageMessage {
                    id,
                    author,
                    body: body.into_bytes(),
                })
                .collect();
            return Ok(());
        }
        self.join(reader, None, page)?;
        let rows: Vec<_> = page
            .rows
            .iter()
            .map(|row| (row.id, row.author, String::from_utf8_lossy(&row.body)))
            .collect();
        let value = serde_json::to_vec(&rows).map_err(|_| StrategyError::UnexpectedRow)?;
        let mut command = redis::cmd("SET");
        command.arg(&key).arg(value).arg("PX").arg(WINDOW_MS);
        Ok(command.exec(&mut self.redis)?)
    }
}

impl AppSession for RedisSession {
    fn page(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        match self.kind {
            RedisStrategy::OnWrite => self.page_of_set(&self.key('t', reader), bound, page),
            RedisStrategy::OnRead => self.page_on_read(reader, bound, page),
            RedisStrategy::Pull => self.page_of_authors(reader, bound, page),
            RedisStrategy::Window if bound.is_some() => self.join(reader, bound, page),
            RedisStrategy::Window => self.page_of_window(reader, page),
        }
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError> {
        self.base.post(id, author, body)?;
        let mut pipe = CommandPipeline::default();
        let mut set = redis::cmd("SET");
        set.arg(self.key('m', id))
            .arg(message_value(author, body.as_bytes()));
        match self.kind {
            RedisStrategy::Window => return Ok(()),
            RedisStrategy::Pull => {
                pipe.add(&mut self.redis, set)?;
                let key = self.key('a', author);
                pipe.add(&mut self.redis, zadd(&key, id))?;
            }
            RedisStrategy::OnWrite | RedisStrategy::OnRead => {
                if self.kind == RedisStrategy::OnRead {
                    set.arg("EX").arg(ACTIVE_SECONDS);
                }
                pipe.add(&mut self.redis, set)?;
                let followers = self.followers(author)?;
                let keys = followers.iter().map(|reader| self.key('t', *reader));
                let mut keys: Vec<String> = keys.collect();
                if self.kind == RedisStrategy::OnRead {
                    keys = self.present(keys)?;
                }
                for key in keys {
                    pipe.add(&mut self.redis, zadd(&key, id))?;
                    let mut trim = redis::cmd("ZREMRANGEBYRANK");
                    // Ranks begin with the oldest.
                    trim.arg(&key).arg(0).arg(format!("-{}", MAX_TIMELINE + 1));
                    pipe.add(&mut self.redis, trim)?;
                }
            }
        }
        pipe.send(&mut self.redis)
    }

    fn delete(&mut self, id: u64, author: u64) -> Result<(), StrategyError> {
        self.base.delete(id)?;
        let mut pipe = CommandPipeline::default();
        let keys = match self.kind {
            RedisStrategy::Window => return Ok(()),
            RedisStrategy::Pull => vec![self.key('a', author)],
            RedisStrategy::OnWrite | RedisStrategy::OnRead => {
                let followers = self.followers(author)?;
                followers.iter().map(|it| self.key('t', *it)).collect()
            }
        };
        for key in keys {
            let mut command = redis::cmd("ZREM");
            command.arg(key).arg(id);
            pipe.add(&mut self.redis, command)?;
        }
        let mut gone = redis::cmd("DEL");
        gone.arg(self.key('m', id));
        pipe.add(&mut self.redis, gone)?;
        pipe.send(&mut self.redis)
    }

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.follow(reader, author)?;
        self.update_follow("SADD", reader, author)
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.unfollow(reader, author)?;
        self.update_follow("SREM", reader, author)
    }
}

impl RedisSession {
    /// Adjusts Redis after a follow or unfollow.
    fn update_follow(&mut self, how: &str, reader: u64, author: u64) -> Result<(), StrategyError> {
        match self.kind {
            RedisStrategy::Pull => {
                let mut command = redis::cmd(how);
                command.arg(self.key('f', reader)).arg(author);
                Ok(command.exec(&mut self.redis)?)
            }
            RedisStrategy::OnWrite => self.refill(reader, MAX_TIMELINE),
            RedisStrategy::OnRead | RedisStrategy::Window => {
                let kind = if self.kind == RedisStrategy::OnRead {
                    't'
                } else {
                    'w'
                };
                let mut command = redis::cmd("DEL");
                command.arg(self.key(kind, reader));
                Ok(command.exec(&mut self.redis)?)
            }
        }
    }
}
