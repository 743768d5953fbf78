//! Timelines in Redis, messages in the server and, for their texts, in Redis too: filled on write, filled on read, put together on read, and
//! the newest page of an app that caches it for a while.

use super::Failure;
use super::base::Base;
use super::page::{Page, ROWS, Row};
use super::strategy::{Claim, Memory, Session, Strategy};
use super::world::World;
use crate::lab::bench::way::Task;

/// Messages that a timeline in Redis has at most.
const CAP: usize = 800;
/// Those that it is filled with on a read.
const FILLED: usize = 400;
/// How long a reader who does not read is an active one, in seconds.
const ACTIVE_SECONDS: u64 = 600;
/// How long an app's own cache keeps a page, in milliseconds.
pub const WINDOW_MS: u64 = 30_000;
/// Commands that go to Redis in one pipeline.
const AT_ONCE: usize = 1_000;
const AUTHOR_BYTES: usize = 8;

/// One of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// `t:READER`, for every reader, when a message is written.
    OnWrite,
    /// The same for readers who read, from their first page on.
    OnRead,
    /// `a:AUTHOR`, united when a page is read.
    Pull,
    /// `w:READER`, a page as it was read.
    Window,
}

impl Strategy for Stored {
    fn name(&self) -> &'static str {
        match self {
            Stored::OnWrite => "redis-push",
            Stored::OnRead => "redis-on-read",
            Stored::Pull => "redis-pull",
            Stored::Window => "redis-window",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Stored::OnWrite => {
                "a sorted set a reader in Redis, filled on write: pipelined ZADD, trimmed to 800"
            }
            Stored::OnRead => {
                "the same for readers who read, filled with 400 on their first page; deeper pages from the server"
            }
            Stored::Pull => "a sorted set an author in Redis, united by ZUNIONSTORE on read",
            Stored::Window => "the newest page cached by the app in Redis for 30 s",
        }
    }

    fn claim(&self) -> Claim {
        match self {
            Stored::OnWrite => Claim::Capped,
            Stored::Pull => Claim::Fresh,
            Stored::OnRead | Stored::Window => Claim::Stale,
        }
    }

    fn pushed_bytes(&self) -> Option<f64> {
        // In memory, and only the newest.
        (*self == Stored::OnWrite).then_some(0.0)
    }

    fn memory(&self) -> Memory {
        Memory::Redis(self.prefix())
    }

    fn build(&self, world: &World) -> Result<(), Failure> {
        let mut redis = world.redis()?;
        let prefix = self.prefix();
        let mut pipe = Pipe::default();
        if matches!(self, Stored::OnRead | Stored::Window) {
            return Ok(());
        }
        let rows = world.rows()?;
        if *self == Stored::OnWrite {
            for (reader, authors) in &rows.follows {
                let mut ids: Vec<u64> = authors
                    .iter()
                    .filter_map(|author| rows.of.get(author))
                    .flatten()
                    .copied()
                    .collect();
                ids.sort_unstable_by(|one, other| other.cmp(one));
                ids.truncate(CAP);
                for id in ids {
                    pipe.add(&mut redis, zadd(&format!("{prefix}t:{reader}"), id))?;
                }
            }
        } else {
            for (author, ids) in &rows.of {
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
        world.each_message(|row| {
            let mut command = redis::cmd("SET");
            command
                .arg(format!("{prefix}m:{}", row.id))
                .arg(text(row.author, &row.body));
            pipe.add(&mut redis, command)
        })?;
        pipe.send(&mut redis)
    }

    fn session(&self, world: &World) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(Keeper {
            base: Base(world.connect()?),
            redis: world.redis()?,
            kind: *self,
            prefix: self.prefix(),
        }))
    }
}

impl Stored {
    /// In front of its keys.
    fn prefix(self) -> &'static str {
        match self {
            Stored::OnWrite => "push:",
            Stored::OnRead => "read:",
            Stored::Pull => "pull:",
            Stored::Window => "window:",
        }
    }
}

fn zadd(key: &str, id: u64) -> redis::Cmd {
    let mut command = redis::cmd("ZADD");
    command.arg(key).arg(id).arg(id);
    command
}

fn newest(bound: Option<u64>) -> String {
    bound.map_or_else(|| "+inf".to_owned(), |bound| bound.to_string())
}

/// A message's author and text, as one value.
fn text(author: u64, body: &[u8]) -> Vec<u8> {
    let mut value = author.to_be_bytes().to_vec();
    value.extend_from_slice(body);
    value
}

/// Commands whose answers do not matter.
#[derive(Default)]
struct Pipe {
    pipe: redis::Pipeline,
    length: usize,
}

impl Pipe {
    fn add(&mut self, redis: &mut redis::Connection, command: redis::Cmd) -> Result<(), Failure> {
        self.pipe.add_command(command).ignore();
        self.length += 1;
        if self.length < AT_ONCE {
            return Ok(());
        }
        self.send(redis)
    }

    fn send(&mut self, redis: &mut redis::Connection) -> Result<(), Failure> {
        if self.length > 0 {
            self.pipe.exec(redis)?;
            self.pipe.clear();
            self.length = 0;
        }
        Ok(())
    }
}

struct Keeper {
    base: Base,
    redis: redis::Connection,
    kind: Stored,
    prefix: &'static str,
}

impl Keeper {
    fn key(&self, kind: char, number: u64) -> String {
        format!("{}{kind}:{number}", self.prefix)
    }

    /// The page by the server alone.
    fn join(&mut self, reader: u64, bound: Option<u64>, page: &mut Page) -> Result<(), Failure> {
        page.rows.clear();
        page.ask(&mut self.base.0, &Task { reader, bound }.join())
    }

    /// The newest ids of a sorted set up to this one.
    fn ids(&mut self, key: &str, bound: Option<u64>) -> Result<Vec<u64>, Failure> {
        let mut command = redis::cmd("ZREVRANGEBYSCORE");
        command.arg(key).arg(newest(bound)).arg("-inf");
        command.arg("LIMIT").arg(0).arg(ROWS);
        Ok(command.query(&mut self.redis)?)
    }

    /// Their messages.
    fn of_set(&mut self, key: &str, bound: Option<u64>, page: &mut Page) -> Result<(), Failure> {
        let ids = self.ids(key, bound)?;
        self.messages(&ids, page)
    }

    fn messages(&mut self, ids: &[u64], page: &mut Page) -> Result<(), Failure> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut command = redis::cmd("MGET");
        for id in ids {
            command.arg(self.key('m', *id));
        }
        let texts: Vec<Option<Vec<u8>>> = command.query(&mut self.redis)?;
        for (id, text) in ids.iter().zip(texts) {
            // A message that is deleted right now.
            let Some(text) = text else { continue };
            let (author, body) = text.split_at_checked(AUTHOR_BYTES).ok_or(Failure::Row)?;
            let author = author
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte));
            page.rows.push(Row {
                id: *id,
                author,
                body: body.to_vec(),
            });
        }
        Ok(())
    }

    fn followers(&mut self, author: u64) -> Result<Vec<u64>, Failure> {
        let select = format!("SELECT user_id FROM follower WHERE follower_id={author}");
        Ok(self.base.0.numbers(&select)?)
    }

    /// Those of these keys that are there.
    fn present(&mut self, keys: Vec<String>) -> Result<Vec<String>, Failure> {
        let mut present = Vec::new();
        for keys in keys.chunks(AT_ONCE) {
            let mut pipe = redis::pipe();
            for key in keys {
                pipe.cmd("EXISTS").arg(key);
            }
            let there: Vec<bool> = pipe.query(&mut self.redis)?;
            let there = keys.iter().zip(there).filter(|(_, there)| *there);
            present.extend(there.map(|(key, _)| key.clone()));
        }
        Ok(present)
    }

    /// A reader's timeline from the server, newest first.
    fn timeline(&mut self, reader: u64, most: usize) -> Result<Vec<u64>, Failure> {
        Ok(self.base.0.numbers(&format!(
            "SELECT message.id FROM message INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader} ORDER BY message.id DESC LIMIT {most}"
        ))?)
    }

    /// Puts it there anew.
    fn refill(&mut self, reader: u64, most: usize) -> Result<(), Failure> {
        let ids = self.timeline(reader, most)?;
        let key = self.key('t', reader);
        let mut pipe = redis::pipe();
        pipe.cmd("DEL").arg(&key).ignore();
        for id in ids {
            pipe.add_command(zadd(&key, id)).ignore();
        }
        if self.kind == Stored::OnRead {
            pipe.cmd("EXPIRE").arg(&key).arg(ACTIVE_SECONDS).ignore();
        }
        Ok(pipe.exec(&mut self.redis)?)
    }

    fn page_on_read(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut Page,
    ) -> Result<(), Failure> {
        let key = self.key('t', reader);
        let there: bool = redis::cmd("EXISTS").arg(&key).query(&mut self.redis)?;
        if !there {
            self.refill(reader, FILLED)?;
        }
        self.of_ids_or_server(&key, bound, page)?;
        match page.rows.len() {
            ROWS => Ok(()),
            _ => self.join(reader, bound, page),
        }
    }

    /// Texts that Redis lacks are read from the server, and put there.
    fn of_ids_or_server(
        &mut self,
        key: &str,
        bound: Option<u64>,
        page: &mut Page,
    ) -> Result<(), Failure> {
        let ids = self.ids(key, bound)?;
        self.messages(&ids, page)?;
        if page.rows.len() == ids.len() {
            return Ok(());
        }
        page.rows.clear();
        page.ask(&mut self.base.0, &crate::lab::bench::way::bodies(&ids))?;
        let mut pipe = redis::pipe();
        for row in &page.rows {
            let value = text(row.author, &row.body);
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
        page: &mut Page,
    ) -> Result<(), Failure> {
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
            .arg(newest(bound))
            .arg("-inf");
        pipe.arg("LIMIT").arg(0).arg(ROWS);
        pipe.cmd("UNLINK").arg(&united).ignore();
        let (ids,): (Vec<u64>,) = pipe.query(&mut self.redis)?;
        self.messages(&ids, page)
    }

    fn page_of_window(&mut self, reader: u64, page: &mut Page) -> Result<(), Failure> {
        let key = self.key('w', reader);
        let kept: Option<Vec<u8>> = redis::cmd("GET").arg(&key).query(&mut self.redis)?;
        if let Some(kept) = kept {
            page.rows = serde_json::from_slice::<Vec<(u64, u64, String)>>(&kept)
                .map_err(|_| Failure::Row)?
                .into_iter()
                .map(|(id, author, body)| Row {
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
        let value = serde_json::to_vec(&rows).map_err(|_| Failure::Row)?;
        let mut command = redis::cmd("SET");
        command.arg(&key).arg(value).arg("PX").arg(WINDOW_MS);
        Ok(command.exec(&mut self.redis)?)
    }
}

impl Session for Keeper {
    fn page(&mut self, reader: u64, bound: Option<u64>, page: &mut Page) -> Result<(), Failure> {
        match self.kind {
            Stored::OnWrite => self.of_set(&self.key('t', reader), bound, page),
            Stored::OnRead => self.page_on_read(reader, bound, page),
            Stored::Pull => self.page_of_authors(reader, bound, page),
            Stored::Window if bound.is_some() => self.join(reader, bound, page),
            Stored::Window => self.page_of_window(reader, page),
        }
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), Failure> {
        self.base.post(id, author, body)?;
        let mut pipe = Pipe::default();
        let mut set = redis::cmd("SET");
        set.arg(self.key('m', id))
            .arg(text(author, body.as_bytes()));
        match self.kind {
            Stored::Window => return Ok(()),
            Stored::Pull => {
                pipe.add(&mut self.redis, set)?;
                let key = self.key('a', author);
                pipe.add(&mut self.redis, zadd(&key, id))?;
            }
            Stored::OnWrite | Stored::OnRead => {
                if self.kind == Stored::OnRead {
                    set.arg("EX").arg(ACTIVE_SECONDS);
                }
                pipe.add(&mut self.redis, set)?;
                let followers = self.followers(author)?;
                let keys = followers.iter().map(|reader| self.key('t', *reader));
                let mut keys: Vec<String> = keys.collect();
                if self.kind == Stored::OnRead {
                    keys = self.present(keys)?;
                }
                for key in keys {
                    pipe.add(&mut self.redis, zadd(&key, id))?;
                    let mut trim = redis::cmd("ZREMRANGEBYRANK");
                    // Ranks begin with the oldest.
                    trim.arg(&key).arg(0).arg(format!("-{}", CAP + 1));
                    pipe.add(&mut self.redis, trim)?;
                }
            }
        }
        pipe.send(&mut self.redis)
    }

    fn delete(&mut self, id: u64, author: u64) -> Result<(), Failure> {
        self.base.delete(id)?;
        let mut pipe = Pipe::default();
        let keys = match self.kind {
            Stored::Window => return Ok(()),
            Stored::Pull => vec![self.key('a', author)],
            Stored::OnWrite | Stored::OnRead => {
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

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.base.follow(reader, author)?;
        self.changed("SADD", reader, author)
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.base.unfollow(reader, author)?;
        self.changed("SREM", reader, author)
    }
}

impl Keeper {
    /// The reader follows others now.
    fn changed(&mut self, how: &str, reader: u64, author: u64) -> Result<(), Failure> {
        match self.kind {
            Stored::Pull => {
                let mut command = redis::cmd(how);
                command.arg(self.key('f', reader)).arg(author);
                Ok(command.exec(&mut self.redis)?)
            }
            Stored::OnWrite => self.refill(reader, CAP),
            Stored::OnRead | Stored::Window => {
                let kind = if self.kind == Stored::OnRead {
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
