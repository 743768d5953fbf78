//! Random sessions, tables and statements: whole replies are the same directly and through Headwater, byte by byte, and so are the replies
//! to statements after a page. The test is written from docs/ alone.

mod difference;
mod form;
mod script;
mod settings;
mod spelling;
mod talk;
mod values;
mod world;

use self::script::Player;
use self::talk::Report;
use self::world::World;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_quiet_server};

/// Comparisons of one app's tables before the test draws another app.
const PER_WORLD: u64 = 25_000;

/// From this number of comparisons on, the test runs until three in ten of them are pages from memory.
const SOAK: u64 = 200_000;

/// Makes as many comparisons on each server as `HEADWATER_DRAWS` requests, from the seed `HEADWATER_SEED`.
#[test]
fn what_is_drawn_is_answered_as_directly() {
    let draws = how_many("HEADWATER_DRAWS", 1_000);
    let seed = how_many("HEADWATER_SEED", 20_261_128);
    on_each_quiet_server(|server| {
        let only = std::env::var("HEADWATER_SERVER").unwrap_or_default();
        if !only.is_empty() && (only == "mariadb") != server.is_mariadb() {
            return;
        }
        let mut report = Report::default();
        let mut counted = Counted::default();
        let mut number = 0;
        // In a short test most forms, sessions and rows are new, so few pages come from memory; a busy machine may need more comparisons.
        let (least, most, more) = match draws >= SOAK {
            true => (draws / 10 * 3, draws * 2, PER_WORLD),
            false => (draws / 50, draws * 10, 1_000),
        };
        while report.compared < draws || (counted.kept < least && report.compared < most) {
            let wanted = draws
                .max(report.compared + more)
                .min(report.compared + PER_WORLD);
            let until = wanted.min(most);
            told_of_a_world(
                server,
                seed.wrapping_add(number),
                until,
                &mut report,
                &mut counted,
            );
            number += 1;
        }
        let Counted {
            kept,
            narrowed,
            learned,
            relayed,
        } = counted;
        println!(
            "{}: {} compared, {kept} kept, {narrowed} narrowed, {learned} learned, {relayed} relayed; differences: {:#?}",
            server.kind().name(),
            report.compared,
            report.differences
        );
        assert!(
            report.differences.is_empty(),
            "HEADWATER_SEED={seed}: {:#?}",
            report.differences
        );
        assert!(
            kept >= least,
            "HEADWATER_SEED={seed}: few were kept: {kept} of {}",
            report.compared
        );
    });
}

/// Headwater's counters.
#[derive(Debug, Default)]
struct Counted {
    kept: u64,
    narrowed: u64,
    learned: u64,
    relayed: u64,
}

fn told_of_a_world(
    server: &'static Server,
    seed: u64,
    until: u64,
    report: &mut Report,
    counted: &mut Counted,
) {
    let mut random = Random(seed);
    let database = Database::empty(server, "drawn");
    let world = World::draw(&mut random);
    world.make(&mut database.connect(), &mut random);
    let proxy = Proxy::configured(
        server.addr(),
        &world.settings(database.name()),
        ROOT_SERVICE,
    );
    for feed in ["home", "timed"] {
        proxy.wait_for_log(&format!(
            "feed {feed} in database {}: served",
            database.name()
        ));
    }
    println!("{} seed {seed}: {world:?}", server.kind().name());
    report.forget_forms();
    let mut player = Player::new(server, &proxy, &database, &world, random);
    while report.compared < until {
        player.play(report);
    }
    let counts = proxy.counts();
    counted.kept += counts.of("feeds_kept");
    counted.narrowed += counts.of("feeds_narrowed");
    counted.learned += counts.of("feeds_learned");
    let line = proxy.counts_line();
    let relayed = line
        .split_whitespace()
        .filter(|pair| pair.starts_with("feeds_relayed["));
    counted.relayed += relayed
        .filter_map(|pair| pair.rsplit_once('=')?.1.parse::<u64>().ok())
        .sum::<u64>();
    println!("{line}");
    if std::env::var_os("HEADWATER_WHY").is_some() {
        for row in proxy
            .login(&database.login())
            .rows("SHOW HEADWATER STATEMENTS")
        {
            println!("{row:?}");
        }
    }
    for line in proxy
        .log()
        .lines()
        .filter(|line| line.contains("WARN") || line.contains("ERROR"))
        .take(20)
    {
        println!("{line}");
    }
}
