//! The same random calls to the procedure and to Headwater: every reply must be equal.

mod asked;
mod dataset;

pub(crate) use self::asked::Asked;
use self::dataset::Shape;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::{Server, mariadb, mysql, on_each_server};
use crate::kit::timeline::{Timeline, insert};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{Login, capability};

/// The number of calls compared on each server, over all data sets: `HEADWATER_CALLS`, or enough for a test.
fn calls() -> u64 {
    how_many("HEADWATER_CALLS", 1_000)
}

/// After this many calls, new sessions begin.
const CALLS_A_SESSION: u64 = 50;

const CLASSIC: Shape = Shape {
    name: "classic",
    timeline: Timeline::CLASSIC,
    users: 40,
    messages: 900,
    follows: 30,
    at_the_limit: false,
    prolific: 0,
};

const SHAPES: &[Shape] = &[
    CLASSIC,
    Shape {
        name: "few",
        users: 6,
        messages: 25,
        follows: 4,
        ..CLASSIC
    },
    Shape {
        name: "none",
        users: 4,
        messages: 0,
        follows: 4,
        ..CLASSIC
    },
    Shape {
        name: "prolific",
        users: 50,
        messages: 1_500,
        follows: 25,
        prolific: 4_000,
        ..CLASSIC
    },
    Shape {
        name: "five",
        timeline: Timeline {
            n: 5,
            ..Timeline::SILENT
        },
        users: 60,
        messages: 800,
        follows: 20,
        ..CLASSIC
    },
    Shape {
        name: "one",
        timeline: Timeline {
            n: 1,
            ..Timeline::SILENT
        },
        users: 20,
        messages: 200,
        ..CLASSIC
    },
    Shape {
        name: "limits",
        timeline: Timeline {
            n: 7,
            ..Timeline::CLASSIC
        },
        at_the_limit: true,
        ..CLASSIC
    },
    Shape {
        name: "wide",
        timeline: Timeline {
            id_type: "bigint unsigned",
            user_type: "bigint unsigned",
            ..Timeline::SILENT
        },
        at_the_limit: true,
        ..CLASSIC
    },
    Shape {
        name: "mixed",
        timeline: Timeline {
            n: 33,
            id_type: "bigint",
            user_type: "int",
            ..Timeline::CLASSIC
        },
        at_the_limit: true,
        ..CLASSIC
    },
    // Large enough that the optimizer's plan for the follow-up SELECT is certain.
    Shape {
        name: "large",
        users: 300,
        messages: 22_000,
        follows: 60,
        ..CLASSIC
    },
];

#[test]
fn calls_leave_what_the_procedure_leaves_on_mariadb() {
    compare(mariadb(), 1);
}

#[test]
fn calls_leave_what_the_procedure_leaves_on_mysql() {
    if let Some(server) = mysql() {
        compare(server, 2);
    }
}

#[track_caller]
fn compare(server: &'static Server, seed: u64) {
    let seed = std::env::var("HEADWATER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(seed);
    let all = calls();
    let calls = all / SHAPES.len() as u64;
    let (mut owned, mut in_statement) = (0, 0);
    for (at, shape) in SHAPES.iter().enumerate() {
        let mut random = Random(seed + ((at as u64) << 32));
        // Alternates with and without the service account.
        let service = at % 2 == 0;
        eprintln!(
            "data set {}, HEADWATER_SEED={seed}, service account: {service}",
            shape.name
        );
        let counts = compare_shape(server, shape, service, calls, &mut random);
        eprintln!("  {counts:?}");
        owned += counts.of("calls_owned");
        in_statement += counts.of("tails_virtual");
    }
    // If no call were served, the comparison would prove nothing.
    assert!(owned * 10 > all * 9, "{owned} of {all} calls were owned");
    assert!(
        in_statement * 20 > all,
        "{in_statement} tails were answered with the ids in the statement"
    );
}

#[track_caller]
fn compare_shape(
    server: &'static Server,
    shape: &Shape,
    service: bool,
    calls: u64,
    random: &mut Random,
) -> crate::kit::proxy::Counts {
    let database = Database::empty(server, &format!("diff_{}", shape.name));
    let mut data = shape.load(&database, random);
    let flags = if service { ROOT_SERVICE } else { &[] };
    let proxy = Proxy::configured(server.addr(), &shape.timeline.toml(), flags);
    let mut somebody = database.connect();
    let mut told = 0;
    while told < calls {
        let mut twin = Twin::new(server, &proxy, &some_login(&database, random)).of_one_plan();
        if !shape.timeline.parse_warns() {
            twin = twin.parse_is_silent();
        }
        let mut asked = Asked::new(&shape.timeline);
        for _ in 0..CALLS_A_SESSION {
            if random.one_in(4) {
                data.change(&mut somebody, random);
            }
            twin.run(&data.call(random));
            asked.after_call(&mut twin, random);
        }
        told += CALLS_A_SESSION;
    }
    proxy.counts()
}

#[test]
fn readers_who_follow_hundreds_have_the_procedures_timeline() {
    on_each_server(|server| {
        const FOLLOWED: [u64; 5] = [1, 499, 500, 501, 640];
        let database = Database::empty(server, "hundreds");
        let mut client = database.connect();
        Timeline::SILENT.create(&mut client);
        let follows: Vec<(u64, u64)> = FOLLOWED
            .iter()
            .flat_map(|count| (0..*count).map(|at| (*count, 1_000 + at * 7 % 640)))
            .collect();
        insert(&mut client, "follower", &follows, |(reader, author)| {
            format!("({reader},{author})")
        });
        let messages: Vec<(u64, u64)> = (1..6_000).map(|id| (id, 1_000 + id * id % 640)).collect();
        insert(&mut client, "message", &messages, |(id, author)| {
            format!("({id},{author},'message {id}')")
        });
        client.query("ANALYZE TABLE message, follower");
        let proxy = Proxy::start(server.addr(), &[]);
        let mut twin = Twin::new(server, &proxy, &database.login()).parse_is_silent();
        for _ in 0..2 {
            for reader in FOLLOWED {
                for bound in [6_000, 5_000, 900, 20, 0] {
                    twin.run(&format!("CALL fetch_timeline_ids({reader})"));
                    twin.run_unordered("SELECT id FROM fetch_timeline_tt");
                    twin.run(&format!("CALL fetch_timeline_ids2({reader}, {bound})"));
                    twin.run_unordered("SELECT id FROM fetch_timeline_tt");
                    twin.run_unordered("SELECT * FROM max_ids_of_followers");
                    twin.run(&format!(
                        "CALL build_max_ids_of_followers({reader}, {})",
                        bound / 2
                    ));
                    twin.run_unordered("SELECT * FROM max_ids_of_followers");
                }
            }
        }
        assert_eq!(proxy.counts().of("calls_owned"), 150);
    });
}

/// A login with random capabilities.
fn some_login(database: &Database, random: &mut Random) -> Login {
    let mut login = database.login();
    for optional in [
        capability::SESSION_TRACK,
        capability::QUERY_ATTRIBUTES,
        capability::MARIADB_CACHE_METADATA,
    ] {
        if random.one_in(2) {
            login = login.with(optional);
        }
    }
    if random.one_in(3) {
        login = login.without(capability::DEPRECATE_EOF);
    }
    login
}
