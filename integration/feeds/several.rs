//! Several statements in one command, some of them of feeds: each answer is the same as directly.

use super::app::{App, SMALL, large, settings};
use super::narrowed::narrowed;
use super::pair::Pair;
use super::rules::{BEHIND, LISTED};
use super::served::served;
use super::statements::Drawn;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{Answer, Login, WireClient, capability};

/// Commands to compare on each server: `HEADWATER_FEEDS`, or a number that suffices for a test.
fn commands() -> u64 {
    how_many("HEADWATER_FEEDS", 600)
}

/// The ways to write a feed's statement.
const TEMPLATES: u64 = 30;

/// Other statements in a command: some only read, others do more or fail.
const BESIDE: [&str; 13] = [
    "SELECT COUNT(*) FROM statuses",
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3)",
    "SELECT name FROM profiles WHERE id = 7",
    "SELECT ';' AS semicolon -- ;\n",
    "SET @seen = 7",
    "SELECT @seen",
    "SELECT id, caption FROM statuses WHERE id < 300 ORDER BY id",
    "SELECT FOUND_ROWS()",
    "SELECT ROW_COUNT()",
    "SHOW WARNINGS",
    "SELECT nothing FROM statuses",
    "SET SESSION sql_notes = DEFAULT",
    "SELECT 1 / 0 AS warned",
];

fn app(server: &'static Server, app: &App) -> (Database, Proxy) {
    let database = Database::empty(server, "feedseveral");
    app.make(&mut database.connect(), &mut Random(5));
    let proxy = served(server, &database, "home", &settings());
    (database, proxy)
}

/// Random commands of one to five statements, inside and outside transactions.
#[test]
fn commands_of_several_statements_are_answered_as_directly() {
    on_each_server(|server| {
        for login in [
            Login::default(),
            Login::default().without(capability::DEPRECATE_EOF),
        ] {
            compare(server, login.with(capability::MULTI_STATEMENTS));
        }
    });
}

fn compare(server: &'static Server, login: Login) {
    let own = large(SMALL.id, SMALL.user);
    let (database, proxy) = app(server, &own);
    let login = login.database(database.name());
    let direct = WireClient::login(server.addr(), &login);
    let mut pair = Pair::new(direct, proxy.login(&login));
    let mut random = Random(20_261_124);
    let turns = commands() / 2;
    let quota = Quota::new(&proxy, turns, turns * 3 / 5, Counts::feeds_answered);
    while let Some(turn) = quota.take() {
        let count = 1 + random.below(5);
        let statements: Vec<(u64, String)> = (0..count).map(|_| drawn(&mut random, &own)).collect();
        let opens = turn.is_multiple_of(7);
        if opens {
            pair.run("BEGIN");
        }
        pair.ask_several(&statements);
        if opens {
            pair.run("ROLLBACK");
        }
    }
    let counts = proxy.counts();
    println!("{counts:?}");
    assert!(counts.of("feeds_relayed[several]") > 0, "{counts:?}");
}

/// A random statement with its template.
fn drawn(random: &mut Random, app: &App) -> (u64, String) {
    if random.one_in(2) {
        let at = random.below(BESIDE.len() as u64);
        return (TEMPLATES + at, BESIDE[at as usize].to_owned());
    }
    let template = random.below(TEMPLATES);
    let mut drawn = Drawn {
        random: Random(template),
        values: random,
        app,
        key: None,
    };
    (template, drawn.statement().text)
}

/// Compares packet by packet: sequence numbers, flags, and where the command ends.
#[test]
fn statements_of_one_command_are_narrowed_one_by_one() {
    on_each_server(|server| {
        let (database, proxy) = app(server, &SMALL);
        let login = database.login().with(capability::MULTI_STATEMENTS);
        for login in [login.clone(), login.without(capability::DEPRECATE_EOF)] {
            let mut twin = Twin::new(server, &proxy, &login);
            narrowed(&proxy, &mut twin.proxied, LISTED);
            // The reply ends where the packet numbers wrap around, one packet before that, and after it.
            let many: Vec<String> = (240..262)
                .map(|rows| {
                    format!("SELECT id FROM statuses WHERE id <= {rows} ORDER BY id; {LISTED}")
                })
                .collect();
            let read_first = many.iter().map(|text| (&**text, 1));
            let texts = [
                (format!("{LISTED}; SELECT 2"), 1),
                (format!("SELECT 1;{LISTED};"), 1),
                (format!("{LISTED}; {LISTED} ; {LISTED}"), 3),
                (format!("SET @a = 2; {LISTED}; SELECT @a"), 1),
                (format!("{LISTED}; SELECT nothing; {LISTED}"), 1),
                (format!("SELECT nothing; {LISTED}"), 0),
                (format!("{LISTED}; COMMIT; SELECT 1"), 1),
                (format!("{LISTED}; SELECT FROM"), 1),
                // The error quotes the text that the server could not parse, and everything after it.
                (format!("SELECT id, FROM statuses; {LISTED}"), 0),
                (format!("SELECT 1; SELECT id, FROM statuses; {LISTED}"), 0),
                (format!("BEGIN; {LISTED}; COMMIT"), 0),
                (format!("DO 1; {LISTED}"), 0),
            ];
            let texts = texts.iter().map(|(text, count)| (&**text, *count));
            for (text, count) in texts.chain(read_first) {
                // A change by other tests makes Headwater check its metadata samples again.
                narrowed(&proxy, &mut twin.proxied, LISTED);
                let before = proxy.counts().feeds_answered();
                twin.run(text);
                twin.run("SELECT 7");
                let found = proxy.counts().feeds_answered() - before;
                assert!(found <= count, "{found} narrowed of {count}: {text}");
            }
            for behind in BEHIND {
                twin.run(&format!("{LISTED}; {behind}"));
                twin.run(&format!("{LISTED}; SELECT 1"));
                twin.run(behind);
            }
        }
        // A command that is certainly narrowed each time.
        let mut client = proxy.login(&database.login().with(capability::MULTI_STATEMENTS));
        narrowed(
            &proxy,
            &mut client,
            &format!("SELECT 1; {LISTED}; SELECT 2"),
        );
        let several = |proxy: &Proxy| proxy.counts().of("feeds_relayed[several]");
        let before = several(&proxy);
        client.query(&format!("DO 1; {LISTED}"));
        assert_eq!(several(&proxy), before + 1);
    });
}

/// Servers accept one statement per command unless the client requests more.
#[test]
fn several_statements_are_an_error_where_one_is_taken() {
    on_each_server(|server| {
        let (database, proxy) = app(server, &SMALL);
        let login = database.login().without(capability::MULTI_STATEMENTS);
        let mut twin = Twin::new(server, &proxy, &login);
        narrowed(&proxy, &mut twin.proxied, LISTED);
        assert_eq!(twin.error(&format!("{LISTED}; {LISTED}")), 1064);
        // COM_SET_OPTION: on, and off again.
        twin.command(&[0x1b, 0, 0]);
        let answers = twin.run(&format!("{LISTED}; {LISTED}"));
        assert!(matches!(answers[..], [Answer::Rows(_), Answer::Rows(_)]));
        twin.command(&[0x1b, 1, 0]);
        assert_eq!(twin.error(&format!("SELECT 1; {LISTED}")), 1064);
    });
}
