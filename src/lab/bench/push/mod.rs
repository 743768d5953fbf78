//! `--push`: the classic comparison of push and pull, in a database of the bench's own.
//!
//! One data set serves all three: the mailbox table, the procedure asked directly, and the same calls through Headwater.
//! Pages are read first and compared with each other; then messages are submitted. All take turns.

pub mod database;
pub mod figures;

pub use figures::{Model, Push};

use database::DATABASE;

use super::check::Differences;
use super::client::{Client, ClientError};
use super::course::{Course, rounds};
use super::crew::Crew;
use super::data;
use super::depth::Depth;
use super::figures::Figures;
use super::flags::BenchFlags;
use super::login::Account;
use super::measure::{Job, Lane, SLICE, repeat, together};
use super::own_database::OwnDatabase;
use super::way::{Form, Route, Task, Way, packet};
use super::work::Work;
use super::writes::Pen;
use super::{BenchError, Stop};
use crate::lab::demo::dataset::Size;
use crate::lab::feed::FEED;

/// Connections that read, and that submit.
const CONNECTIONS: usize = 8;
/// Messages a user, as in the classic data set.
const MESSAGES_EACH: u64 = 100;
/// Who takes turns at reading.
const READING: [Way; 4] = [
    Way::new(Route::Direct, Form::Mailbox),
    Way::new(Route::Direct, Form::CallAndTail),
    Way::new(Route::Headwater, Form::CallAndTail),
    Way::new(Route::Headwater, Form::Join),
];
/// Who takes turns at submitting, in the same order: the route, and whether mailboxes are filled.
const SUBMITTING: [(Route, bool); 3] = [
    (Route::Direct, true),
    (Route::Direct, false),
    (Route::Headwater, false),
];

/// Makes the database, measures, and drops it, whatever happens.
///
/// # Errors
/// When the database is there already, a connection fails, or a statement is refused.
pub fn measure(
    flags: &BenchFlags,
    users: u32,
    account: &Account,
    stop: &Stop,
) -> Result<(Push, Differences), BenchError> {
    eprintln!(
        "--push: makes the database {DATABASE} on {}, fills it, and drops it at the end",
        flags.upstream
    );
    let own = OwnDatabase::create(DATABASE, flags, account)?;
    let account = Account {
        database: DATABASE.to_owned(),
        ..account.clone()
    };
    let measured = compare(flags, users, &account, stop)?;
    own.remove()?;
    Ok(measured)
}

fn compare(
    flags: &BenchFlags,
    users: u32,
    account: &Account,
    stop: &Stop,
) -> Result<(Push, Differences), BenchError> {
    let at = BenchError::at(&flags.upstream);
    let size = Size {
        users,
        messages: u64::from(users) * MESSAGES_EACH,
        ..Size::CLASSIC
    };
    let mut client = Client::connect(&flags.upstream, account).map_err(&at)?;
    database::fill(flags, size, &mut client, stop)?;
    let mut bytes = |tables: &[&str]| database::bytes(&mut client, tables).map_err(&at);
    let pull_bytes = bytes(&["follower", "message"])?;
    let push_bytes = bytes(&["follower", "message", "mailbox"])?;
    let mailbox_rows = client
        .numbers("SELECT COUNT(*) FROM mailbox")
        .map_err(&at)?;
    let tasks = tasks(flags, &mut client).map_err(&at)?;
    let mut crew = Crew::gather(flags, account, CONNECTIONS, &[Route::Headwater], Some(FEED))?;
    let (read, differences) = read(flags, &tasks, &mut crew, stop)?;
    let submitted = submit(flags, &mut crew, stop)?;
    let counts = crew.dismiss().counts;
    let [push, procedure, headwater] =
        [(0, push_bytes), (1, pull_bytes), (2, pull_bytes)].map(|(place, bytes)| Model {
            timelines: read.get(place).copied().unwrap_or_default(),
            submissions: submitted.get(place).copied().unwrap_or_default(),
            bytes,
        });
    let push = Push {
        database: DATABASE,
        users,
        follows: size.follows(),
        messages: size.messages,
        mailbox_rows: mailbox_rows.iter().sum(),
        connections: CONNECTIONS,
        seconds: SLICE.as_secs_f64() * f64::from(rounds(flags)),
        push,
        procedure,
        headwater,
        join: read.get(3).copied().unwrap_or_default(),
        counts,
    };
    Ok((push, differences))
}

/// The newest pages of some readers, in the seed's order.
fn tasks(flags: &BenchFlags, client: &mut Client) -> Result<Vec<Task>, ClientError> {
    let mut readers = client.numbers("SELECT DISTINCT user_id FROM follower ORDER BY user_id")?;
    data::shuffle(&mut readers, flags.seed);
    let task = |reader| Task {
        reader,
        bound: None,
    };
    Ok(readers.into_iter().take(flags.readers).map(task).collect())
}

fn read(
    flags: &BenchFlags,
    tasks: &[Task],
    crew: &mut Crew,
    stop: &Stop,
) -> Result<(Vec<Figures>, Differences), BenchError> {
    let at = BenchError::at(&flags.upstream);
    let mut works = Vec::new();
    for task in tasks {
        works.push(Work::new(*task, &mut crew.direct).map_err(&at)?);
    }
    let mut course = Course::new(READING.len(), rounds(flags), stop);
    course.cells(Depth::NEWEST, &READING, CONNECTIONS, crew, &mut works)?;
    let (cells, differences) = course.finish();
    Ok((
        cells.into_iter().map(|cell| cell.figures).collect(),
        differences,
    ))
}

fn submit(flags: &BenchFlags, crew: &mut Crew, stop: &Stop) -> Result<Vec<Figures>, BenchError> {
    let pen = Pen::new(&mut crew.direct).map_err(BenchError::at(&flags.upstream))?;
    let mut lanes = Vec::new();
    for _ in SUBMITTING {
        lanes.push(Lane::several(CONNECTIONS, pen.places())?);
    }
    // Round 0 warms up and does not count.
    for round in 0..=rounds(flags) {
        for ((route, fan_out), lanes) in SUBMITTING.into_iter().zip(&mut lanes) {
            let at = BenchError::at(crew.address(route));
            let (clients, _) = crew.clients(route, CONNECTIONS);
            submit_slice(fan_out, clients, lanes, &pen, stop).map_err(at)?;
            if stop.asked() {
                return Err(BenchError::Stopped);
            }
            if round == 0 {
                lanes.iter_mut().for_each(Lane::forget);
            }
        }
    }
    lanes.iter().map(|lanes| Figures::of(lanes)).collect()
}

fn submit_slice(
    fan_out: bool,
    clients: &mut [Client],
    lanes: &mut [Lane],
    pen: &Pen,
    stop: &Stop,
) -> Result<(), ClientError> {
    let jobs = clients.iter_mut().zip(lanes);
    let jobs = jobs.map(|(client, lane)| -> Job<'_, ()> {
        Box::new(move || {
            let mut none = Vec::new();
            repeat(SLICE, pen.places(), lane, stop, |place| {
                let author = pen.author(place);
                client.ask(&pen.insert(author), &mut none)?;
                if fan_out {
                    client.ask(&packet(&to_followers(author)), &mut none)?;
                }
                Ok(())
            })
        })
    });
    together(jobs.collect()).map(drop)
}

/// The second half of a submission in the push model, behind the message's INSERT on the same connection.
fn to_followers(author: u64) -> String {
    format!(
        "INSERT INTO mailbox (user_id,message_id) \
         SELECT user_id,last_insert_id() FROM follower WHERE follower_id={author}"
    )
}
