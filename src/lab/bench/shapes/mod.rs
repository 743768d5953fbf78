//! `--shapes`: SELECTs of feeds in every shape, in a database of the bench's own.
//!
//! Each shape is asked directly and through Headwater, in turn, and each answer is compared with the server's own.

pub mod beside;
pub mod database;
pub mod figures;
pub mod statements;

pub use figures::{Shape, Shapes};

use std::time::Duration;

use database::DATABASE;
use statements::{SHAPES, Sort};

use super::check::Differences;
use super::client::Client;
use super::course::{Course, rounds};
use super::crew::Crew;
use super::data;
use super::depth::Depth;
use super::flags::BenchFlags;
use super::login::Account;
use super::own_database::OwnDatabase;
use super::warm::warm;
use super::way::{Form, Route, Way};
use super::work::Work;
use super::{BenchError, Stop};

/// Most connections that ask at the same time.
pub const CONNECTIONS: usize = 8;
/// Who takes turns.
const WAYS: [Way; 3] = [
    Way::new(Route::Direct, Form::Own),
    Way::new(Route::Headwater, Form::Own),
    Way::new(Route::NoFeeds, Form::Own),
];
/// Each shape's statements are asked beforehand for so long at most.
const WARMING: Duration = Duration::from_secs(10);

/// Makes the database, measures, and drops it, whatever happens.
///
/// # Errors
/// When the database is there already, a connection fails, or a statement is refused.
pub fn measure(
    flags: &BenchFlags,
    messages: u32,
    account: &Account,
    mariadb: bool,
    stop: &Stop,
) -> Result<(Shapes, Differences), BenchError> {
    eprintln!(
        "--shapes: makes the database {DATABASE} on {}, fills it, and drops it at the end",
        flags.upstream
    );
    let own = OwnDatabase::create(DATABASE, flags, account)?;
    let account = Account {
        database: DATABASE.to_owned(),
        ..account.clone()
    };
    let measured = compare(flags, messages, &account, mariadb, stop)?;
    own.remove()?;
    Ok(measured)
}

fn compare(
    flags: &BenchFlags,
    messages: u32,
    account: &Account,
    mariadb: bool,
    stop: &Stop,
) -> Result<(Shapes, Differences), BenchError> {
    let at = BenchError::at(&flags.upstream);
    let users = (messages / 100).max(100);
    let mut client = Client::connect(&flags.upstream, account).map_err(&at)?;
    database::fill(flags, users, u64::from(messages), &mut client, stop)?;
    let readers = client.numbers("SELECT DISTINCT user_id FROM follower ORDER BY user_id");
    let mut readers = readers.map_err(&at)?;
    data::shuffle(&mut readers, flags.seed);
    readers.truncate(flags.readers);
    let routes = [Route::Headwater, Route::NoFeeds];
    let mut crew = Crew::gather(flags, account, CONNECTIONS, &routes, Some(database::FEEDS))?;
    let mut shapes = Vec::new();
    let mut differences = Differences::default();
    for sort in SHAPES {
        let mut works = Vec::new();
        for (reader, statement) in sort.statements(&readers, users, &mut client).map_err(&at)? {
            works.push(Work::own(reader, &statement, &mut crew.direct).map_err(&at)?);
        }
        if works.is_empty() {
            continue;
        }
        eprintln!("{}", sort.name());
        warm(&mut crew, &works, WARMING, stop)?;
        let mut measured = Vec::new();
        for _ in 0..sort.times() {
            let (shape, found) = one(flags, (sort, mariadb), &mut works, &mut crew, stop)?;
            measured.push(shape);
            differences.join(found);
        }
        measured.sort_by(|a, b| {
            a.ratio()
                .unwrap_or(0.0)
                .total_cmp(&b.ratio().unwrap_or(0.0))
        });
        let median = measured.len() / 2;
        shapes.extend(measured.into_iter().nth(median));
    }
    let direct = shapes.first().map_or(0, |join| join.direct.p50_us);
    let beside = beside::measure(flags, account, &readers, users, &mut crew, stop)?;
    let counts = crew.dismiss().counts;
    let shapes = Shapes {
        database: DATABASE,
        users,
        messages,
        seconds: flags.seconds.as_secs_f64(),
        shapes,
        beside,
        direct_p50_us: direct,
        counts,
    };
    Ok((shapes, differences))
}

fn one(
    flags: &BenchFlags,
    (sort, mariadb): (Sort, bool),
    works: &mut [Work],
    crew: &mut Crew,
    stop: &Stop,
) -> Result<(Shape, Differences), BenchError> {
    let connections = sort.connections();
    let ways: &[Way] = match sort.gains_nothing() {
        true => &WAYS,
        false => WAYS.split_at(2).0,
    };
    let mut course = Course::new(ways.len(), rounds(flags), stop);
    course.cells(Depth::NEWEST, ways, connections, crew, works)?;
    let (cells, differences) = course.finish();
    let shape = Shape {
        target: sort.target(mariadb),
        ..Shape::of(sort.name(), &cells)
    };
    Ok((shape, differences))
}
