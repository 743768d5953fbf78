//! One run: a world from a seed, and what has to be so in it.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use headwater::config::{ServeFlags, Settings};
use headwater::link::memory::MemoryListener;
use headwater::server::Server as Headwater;
use headwater::session::counts::Event;
use headwater::session::shared::Shared;
use tokio::time::{Instant, sleep};

use crate::client::{Answer, Client};
use crate::model::{Change, State, Table};
use crate::network::Weather;
use crate::pages::{self, Rows, ids};
use crate::random::Random;
use crate::server::{Server, TAIL};

const PRIMARY: &str = "primary:3306";
const PROXY: &str = "headwater:3306";
const READERS: u64 = 6;
const AUTHORS: u64 = 8;
const STEPS: usize = 200;
/// Of each of those who write without Headwater.
const TRANSACTIONS: usize = 300;
/// So long after the last trouble memory answers, and clients are let in.
const RECOVERY: Duration = Duration::from_secs(60);
/// A run ends by itself long before this.
const PATIENCE: Duration = Duration::from_secs(3600);

pub(crate) struct Done {
    pub(crate) pages: u64,
    /// What Headwater counted.
    pub(crate) counts: String,
    /// What happened: milliseconds, who, what.
    pub(crate) trace: String,
}

impl Random {
    /// A time up to so many milliseconds, short ones as often as long ones.
    pub(crate) fn pause(&mut self, most: u64) -> Duration {
        let micros = self.below(most * 1000) + 1;
        Duration::from_micros(micros >> self.below(10))
    }

    pub(crate) fn fork(&mut self) -> Random {
        Random(self.next())
    }
}

/// Runs the world of this seed on a thread of its own. The error tells what was wrong.
pub(crate) fn run(seed: u64, traced: bool) -> Result<Done, String> {
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            match tokio::time::timeout(PATIENCE, world(seed, traced)).await {
                Ok(done) => done,
                Err(_) => Err("something waits for good".to_owned()),
            }
        })
    });
    thread.join().unwrap_or_else(|_| Err("a panic".to_owned()))
}

fn settings() -> Settings {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("headwater.toml");
    let text = format!(
        "listen = \"{PROXY}\"\nupstream = \"{PRIMARY}\"\nthreads = 1\n\
         [service]\nuser = \"headwater\"\npassword = \"pw\"\n\
         [shadow]\nrate = 0.0\n\
         [[definition]]\nname = \"classic\"\ndatabase = \"world\"\n\
         [[feed]]\nname = \"home\"\ndatabase = \"world\"\n\
         [feed.message]\ntable = \"statuses\"\nid = \"id\"\nauthor = \"profile_id\"\norder = [\"id\"]\n\
         [feed.follow]\ntable = \"followers\"\nreader = \"profile_id\"\nauthor = \"following_id\"\n"
    );
    std::fs::write(&path, text).expect("a settings file");
    Settings::load(&ServeFlags {
        config: Some(path),
        ..ServeFlags::default()
    })
    .expect("settings")
}

async fn world(seed: u64, traced: bool) -> Result<Done, String> {
    let mut random = Random(seed);
    headwater::binlog::random::seed(random.next());
    let weather = Weather::drawn(&mut random);
    let server = Arc::new(Server::new(beginning(&mut random)));
    let lived = live(Arc::clone(&server), weather, random).await;
    let trace = server.trace.table();
    if traced {
        print!("{trace}");
    }
    lived.map(|(pages, counts)| Done {
        pages,
        counts,
        trace,
    })
}

async fn live(
    server: Arc<Server>,
    weather: Weather,
    mut random: Random,
) -> Result<(u64, String), String> {
    let listener = MemoryListener::bind(PRIMARY).expect("an address");
    tokio::spawn(Arc::clone(&server).run(listener, weather.clone(), random.fork()));
    let headwater = Headwater::bind(&settings())
        .await
        .map_err(|it| it.to_string())?;
    let shared = headwater.shared();
    tokio::spawn(headwater.announce());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(headwater.run(async {
        let _ = stopped.await;
    }));
    let writers: Vec<_> = (0..2)
        .map(|_| tokio::spawn(write(Arc::clone(&server), random.fork())))
        .collect();
    let readers: Vec<_> = (1..=3)
        .map(|number| {
            let reader = Reader {
                number,
                server: Arc::clone(&server),
                shared: Arc::clone(&shared),
                random: random.fork(),
                weather: weather.clone(),
            };
            tokio::spawn(reader.run())
        })
        .collect();
    let mut pages = 0;
    for reader in readers {
        pages += reader.await.map_err(|it| it.to_string())??;
    }
    weather.calm();
    recover(&server, &shared, &weather, &mut random).await?;
    for writer in writers {
        writer.abort();
    }
    let _ = stop.send(());
    running.await.map_err(|it| it.to_string())?;
    let unknown = server.unknown();
    if let Some(first) = unknown.first() {
        return Err(format!("{} statements are unknown: {first}", unknown.len()));
    }
    let counts = shared.counts.summary();
    Ok((pages, counts))
}

/// Once nothing is late or lost any more, memory answers again.
async fn recover(
    server: &Arc<Server>,
    shared: &Arc<Shared>,
    weather: &Weather,
    random: &mut Random,
) -> Result<(), String> {
    let begun = Instant::now();
    let from_memory = || shared.counts.of(Event::CallFromMemory);
    let before = from_memory();
    let mut reader = Reader {
        number: 0,
        server: Arc::clone(server),
        shared: Arc::clone(shared),
        random: random.fork(),
        weather: weather.clone(),
    };
    let mut client = reader.connect().await?;
    while from_memory() < before + 3 {
        reader.call(&mut client, 1).await?;
        sleep(Duration::from_millis(20)).await;
        if begun.elapsed() > RECOVERY {
            return Err(format!(
                "memory does not answer after {RECOVERY:?}: {}",
                shared.counts.summary()
            ));
        }
    }
    Ok(())
}

fn beginning(random: &mut Random) -> State {
    let mut state = State::default();
    let mut comes = |table, row| {
        state.apply(&Change {
            table,
            row,
            comes: true,
        });
    };
    for id in 1..=40 {
        comes(Table::Message, (id, 1 + random.below(AUTHORS)));
        comes(Table::Statuses, (id, 1 + random.below(AUTHORS)));
    }
    for reader in 1..=READERS {
        for author in 1..=AUTHORS {
            for table in [Table::Follower, Table::Followers] {
                if random.one_in(3) {
                    comes(table, (reader, author));
                }
            }
        }
    }
    state
}

/// Writes without Headwater.
async fn write(server: Arc<Server>, mut random: Random) {
    let thread = server.model().connect();
    for _ in 0..TRANSACTIONS {
        sleep(random.pause(40)).await;
        let changes = changes(server.model().newest(), &mut random);
        let number = server.model().write(thread, &changes);
        let who = format!("writer {thread}");
        server
            .trace
            .note(&who, &format!("{number} is in the log: {changes:?}"));
        sleep(random.pause(10)).await;
        // In the order of the log.
        while server.model().readable() + 1 < number {
            sleep(Duration::from_micros(50)).await;
        }
        server.model().commit(thread);
        server.trace.note(&who, &format!("{number} is readable"));
    }
}

fn changes(state: &State, random: &mut Random) -> Vec<Change> {
    let (messages, follows) = match random.below(2) {
        0 => (Table::Message, Table::Follower),
        _ => (Table::Statuses, Table::Followers),
    };
    let change = match random.below(10) {
        0..6 => {
            let newest = state.entries(messages).map(|(id, _)| id).max().unwrap_or(0);
            let row = (newest + 1 + random.below(2), 1 + random.below(AUTHORS));
            (messages, row, true)
        }
        6 => {
            let all: Vec<_> = state.entries(messages).collect();
            match all.is_empty() {
                true => return changes(state, random),
                false => (messages, *random.pick(&all), false),
            }
        }
        _ => {
            let row = (1 + random.below(READERS), 1 + random.below(AUTHORS));
            let is = state.entries(follows).any(|it| it == row);
            (follows, row, !is)
        }
    };
    let (table, row, comes) = change;
    vec![Change { table, row, comes }]
}

/// Asks for pages, and compares each with all that it may say.
struct Reader {
    number: u64,
    server: Arc<Server>,
    shared: Arc<Shared>,
    random: Random,
    weather: Weather,
}

impl Reader {
    async fn run(mut self) -> Result<u64, String> {
        let mut client = self.connect().await?;
        let mut pages = 0;
        for _ in 0..STEPS / 3 {
            sleep(self.random.pause(30)).await;
            let reader = 1 + self.random.below(READERS);
            let judged = match self.random.below(2) {
                0 => self.feed(&mut client, reader).await?,
                _ => self.call(&mut client, reader).await?,
            };
            match judged {
                true => pages += 1,
                false => client = self.connect().await?,
            }
        }
        Ok(pages)
    }

    /// Tries until it is let in.
    async fn connect(&mut self) -> Result<Client, String> {
        let begun = Instant::now();
        loop {
            match Client::connect(PROXY, &self.weather, &mut self.random).await {
                Ok(client) => return Ok(client),
                Err(error) if begun.elapsed() > RECOVERY => {
                    return Err(format!("no login: {error}"));
                }
                Err(_) => sleep(self.random.pause(50)).await,
            }
        }
    }

    /// So many calls were answered by lookups, or by the procedure's own run.
    fn lookups(&self) -> u64 {
        let counts = &self.shared.counts;
        counts.of(Event::CallOwned) - counts.of(Event::CallFromMemory)
    }

    fn readable(&self) -> usize {
        self.server.model().readable()
    }

    /// A feed's page. False: there was none.
    async fn feed(&mut self, client: &mut Client, reader: u64) -> Result<bool, String> {
        let text = format!(
            "SELECT id, caption FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = {reader}) \
             ORDER BY id DESC LIMIT 5"
        );
        let from = self.readable();
        let Some(told) = self.ask(client, &text).await? else {
            return Ok(false);
        };
        let upto = self.readable();
        judge(&self.server, reader, (from, upto), &told, |state| {
            pages::feed(state, reader)
        })?;
        Ok(true)
    }

    /// A call, and the page behind it.
    async fn call(&mut self, client: &mut Client, reader: u64) -> Result<bool, String> {
        let (called, looked_up) = (self.readable(), self.lookups());
        let text = format!("CALL fetch_timeline_ids({reader})");
        let Some(_) = self.ask(client, &text).await? else {
            return Ok(false);
        };
        let between = self.readable();
        let may_be_looked_up = self.lookups() > looked_up;
        sleep(self.random.pause(5)).await;
        let from = self.readable();
        let Some(told) = self.ask(client, TAIL).await? else {
            return Ok(false);
        };
        let upto = self.readable();
        let server = &self.server;
        let any = (called..=between).any(|number| {
            let ids = pages::page(&server.model().state(number), reader, u64::MAX);
            is_told(server, (from, upto), &told, |state| {
                pages::tail(state, &ids)
            })
        });
        // A lookup reads heads first, and the lists below them then.
        let moments = (called..=between).flat_map(|at| (at..=between).map(move |then| (at, then)));
        let any = any
            || may_be_looked_up
                && moments.into_iter().any(|(at, then)| {
                    let model = server.model();
                    let ids = pages::looked_up(&model.state(at), &model.state(then), reader);
                    drop(model);
                    is_told(server, (from, upto), &told, |state| {
                        pages::tail(state, &ids)
                    })
                });
        match any {
            true => Ok(true),
            false => Err(wrong(server, reader, (called, upto), &told, |state| {
                pages::tail(state, &pages::page(state, reader, u64::MAX))
            })),
        }
    }

    /// `None` where the connection failed, as it may.
    async fn ask(&mut self, client: &mut Client, text: &str) -> Result<Option<Answer>, String> {
        let trace = &self.server.trace;
        trace.note(format_args!("reader {}", self.number), text);
        let answer = client.query(text).await;
        let told = match &answer {
            Ok(Answer::Ok) => "is told: OK".to_owned(),
            Ok(Answer::Rows(rows)) => format!("is told: {}", ids(rows)),
            Ok(Answer::Error(code, message)) => format!("is told: error {code} {message}"),
            Err(error) => format!("is cut off: {error}"),
        };
        trace.note(format_args!("reader {}", self.number), &told);
        match answer {
            Ok(Answer::Error(code, message)) => Err(format!("{code} {message}: {text}")),
            Ok(answer) => Ok(Some(answer)),
            Err(error) if self.weather.breaks.is_none() => Err(format!("{error}: {text}")),
            Err(_) => Ok(None),
        }
    }
}

fn is_told(
    server: &Server,
    (from, upto): (usize, usize),
    told: &Answer,
    page: impl Fn(&State) -> Rows,
) -> bool {
    (from..=upto).any(|number| Answer::Rows(page(&server.model().state(number))) == *told)
}

fn judge(
    server: &Server,
    reader: u64,
    between: (usize, usize),
    told: &Answer,
    page: impl Fn(&State) -> Rows,
) -> Result<(), String> {
    match is_told(server, between, told, &page) {
        true => Ok(()),
        false => Err(wrong(server, reader, between, told, page)),
    }
}

fn wrong(
    server: &Server,
    reader: u64,
    (from, upto): (usize, usize),
    told: &Answer,
    page: impl Fn(&State) -> Rows,
) -> String {
    let told = match told {
        Answer::Rows(rows) => ids(rows),
        other => format!("{other:?}"),
    };
    let mut text = format!("reader {reader} was told\n      {told}\n");
    let mut last = String::new();
    for number in from.saturating_sub(3)..=upto {
        let page = ids(&page(&server.model().state(number)));
        let is = if number < from { "before" } else { "right" };
        if page != last || number == from {
            let _ = writeln!(text, "{is} {number}: {page}");
        }
        last = page;
    }
    text
}
