//! Feed statements that are prepared from a text and executed by name: answers are the same directly and through Headwater.

use super::app::{App, SMALL, large, settings};
use super::narrowed::{narrowed_where, relayed};
use super::opened::Opened;
use super::pair::Pair;
use super::served::served;
use super::statements::Drawn;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{Login, Param, WireClient};

/// Executions to compare on each server: `HEADWATER_FEEDS`, or a number that suffices for a test.
fn executions() -> u64 {
    how_many("HEADWATER_FEEDS", 1_200)
}

/// The ways to write a statement.
const TEMPLATES: u64 = 40;

#[test]
fn executions_by_name_are_answered_as_directly() {
    on_each_server(|server| {
        let mut random = Random(20_261_125);
        let app = large("BIGINT UNSIGNED", "INT");
        let (database, proxy) = story(server, &app, &mut random);
        let login = Login::default().database(database.name());
        let direct = WireClient::login(server.addr(), &login);
        let mut pair = Pair::new(direct, proxy.login(&login));
        let mut prepared = vec![String::new(); TEMPLATES as usize];
        // The server answers executions that select COALESCE or IFNULL together with another table.
        let wanted = (executions(), executions() / 6);
        let quota = Quota::new(&proxy, wanted.0, wanted.1, Counts::feeds_answered);
        while quota.take().is_some() {
            let template = random.below(TEMPLATES);
            let statement = Drawn {
                random: Random(template),
                values: &mut random,
                app: &app,
                key: None,
            }
            .statement();
            let opened = Opened::of(&statement.text, &mut Random(template), &mut random);
            let Opened { text, params } = opened;
            let known = &mut prepared[template as usize];
            if *known != text {
                let quoted = text.replace('\'', "''");
                pair.run(&format!("PREPARE s{template} FROM '{quoted}'"));
                *known = text;
            }
            let names: Vec<_> = (0..params.len()).map(|at| format!("@v{at}")).collect();
            let values = names.iter().zip(&params);
            let values: Vec<_> = values
                .map(|(name, param)| format!("{name} = {}", literal(param)))
                .collect();
            if !values.is_empty() {
                pair.run(&format!("SET {}", values.join(", ")));
            }
            let using = match names.is_empty() {
                true => String::new(),
                false => format!(" USING {}", names.join(", ")),
            };
            pair.ask(template, &format!("EXECUTE s{template}{using}"));
        }
        println!("{} turns: {:?}", quota.taken(), proxy.counts());
    });
}

/// The parameter's value as an SQL literal.
fn literal(param: &Param) -> String {
    let Some(bytes) = &param.value else {
        return "NULL".into();
    };
    let mut wide = [0; 8];
    let length = bytes.len().min(8);
    wide[..length].copy_from_slice(&bytes[..length]);
    match (param.code, param.sign) {
        (0xfe, _) => format!("'{}'", std::str::from_utf8(&bytes[1..]).unwrap()),
        (5, _) => format!("{:e}", f64::from_le_bytes(wide)),
        (8, 0) => i64::from_le_bytes(wide).to_string(),
        (3, 0) => i32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]]).to_string(),
        (2, 0) => i16::from_le_bytes([wide[0], wide[1]]).to_string(),
        (1, 0) => i8::from_le_bytes([wide[0]]).to_string(),
        _ => u64::from_le_bytes(wide).to_string(),
    }
}

fn story(server: &'static Server, app: &App, random: &mut Random) -> (Database, Proxy) {
    let database = Database::empty(server, "feednamed");
    app.make(&mut database.connect(), random);
    let settings = [&settings(), "[limits]\ncandidates = 900\n"].concat();
    let proxy = served(server, &database, "home", &settings);
    (database, proxy)
}

const LISTED: &str = "SELECT id, caption FROM statuses WHERE profile_id IN (?, ?) AND kind <> ''photo'' ORDER BY id DESC LIMIT ?";
const EXECUTE: &str = "EXECUTE page USING @one, @two, @most";

#[test]
fn a_name_means_what_it_was_given_last() {
    on_each_server(|server| {
        let (database, proxy) = story(server, &SMALL, &mut Random(5));
        let mut twin = Twin::new(server, &proxy, &database.login());
        let narrowed = |twin: &mut Twin, text: &str| {
            narrowed_where(&proxy, text, |text| {
                twin.run(text);
            });
        };
        twin.run("SET @one = 1, @two = 2, @most = 5");
        twin.run(&format!("PREPARE Page FROM '{LISTED}'"));
        narrowed(&mut twin, EXECUTE);
        narrowed(&mut twin, "execute `PAGE` using @one, @two, @most;");
        for behind in [
            "SELECT FOUND_ROWS(), ROW_COUNT()",
            "SHOW WARNINGS",
            "SELECT @one, @two",
        ] {
            narrowed(&mut twin, EXECUTE);
            twin.run(behind);
        }
        // Strings of digits count as numbers, except in LIMIT.
        twin.run("SET @one = '3'");
        narrowed(&mut twin, EXECUTE);
        for (set, why) in [
            ("SET @one = 2.5", "execution"),
            ("SET @one = '2x'", "types"),
            ("SET @one = NULL", "types"),
            ("SET @one = 'it\\'s'", "execution"),
            ("SET @one = x'31'", "execution"),
            ("SET @one = 1, @most = '5'", "limit"),
        ] {
            twin.run(set);
            relayed(&proxy, &mut twin, EXECUTE, why);
        }
        twin.run("SET @most = 5");
        narrowed(&mut twin, EXECUTE);
        // Too few values, and too many.
        relayed(&proxy, &mut twin, "EXECUTE page USING @one", "execution");
        let more = "EXECUTE page USING @one, @two, @most, @most";
        relayed(&proxy, &mut twin, more, "execution");

        twin.run("PREPARE page FROM 'SELECT id FROM statuses WHERE profile_id = ? AND id > ? ORDER BY id DESC LIMIT ?'");
        narrowed(&mut twin, EXECUTE);
        twin.run("BEGIN");
        narrowed(&mut twin, EXECUTE);
        twin.run("SET SESSION sql_notes = DEFAULT");
        relayed(&proxy, &mut twin, EXECUTE, "in_transaction");
        twin.run("ROLLBACK");
        twin.run(&format!("PREPARE page FROM '{LISTED}'"));
        narrowed(&mut twin, EXECUTE);
        database
            .connect()
            .ok("ALTER TABLE statuses ADD COLUMN more INT NOT NULL DEFAULT 7");
        narrowed(&mut twin, EXECUTE);
        // Table names in the text keep the meaning that they have at PREPARE.
        let other = Database::empty(server, "feednamedtoo");
        let small = App {
            messages: 50,
            ..SMALL
        };
        small.make(&mut other.connect(), &mut Random(6));
        twin.run(&format!("USE {}", other.name()));
        relayed(&proxy, &mut twin, EXECUTE, "other_database");
        twin.run(&format!("USE {}", database.name()));
        narrowed(&mut twin, EXECUTE);
        // A PREPARE that fails leaves no statement. The server answers a text that belongs to no feed.
        twin.run("PREPARE page FROM 'SELECT id FROM nothing WHERE a = ? ORDER BY id DESC LIMIT ?'");
        twin.run(EXECUTE);
        twin.run("PREPARE page FROM 'SELECT ?, ?, ?'");
        twin.run(EXECUTE);
        // An unknown statement may have set the level of the next transaction, until that transaction ends.
        twin.run(&format!("PREPARE page FROM '{LISTED}'"));
        relayed(&proxy, &mut twin, EXECUTE, "one_shot_transaction");
        twin.run("commit;");
        narrowed(&mut twin, EXECUTE);
        twin.run("DEALLOCATE PREPARE page");
        twin.run(EXECUTE);
    });
}
