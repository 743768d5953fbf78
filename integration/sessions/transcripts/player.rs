//! Plays a scenario on a stage, step by step.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use super::deed::{Deed, Exchange, Execution, Expected};
use super::story::{Place, Step, Story};
use crate::kit::twin::Twin;
use crate::kit::wire_client::Login;
use crate::sessions::stage::{Stage, look};

#[track_caller]
pub(super) fn play(stage: &mut Stage, file: &str, story: &Story) {
    let mut player = Player {
        stage,
        login: Login::default(),
        session: None,
        account: None,
    };
    for step in &story.steps {
        if step.places.iter().all(|place| player.is_at(*place)) {
            let _told = Told { file, step };
            player.take(&step.deed);
        }
    }
}

/// Reports the step that a scenario had reached when it failed.
struct Told<'a> {
    file: &'a str,
    step: &'a Step,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let Told { file, step } = self;
            let place = format!("in fixtures/stories/{file}.txt:{}", step.line);
            eprintln!("{}", [&[place], &step.cases[..]].concat().join(", "));
        }
    }
}

struct Player<'a> {
    stage: &'a mut Stage,
    /// The login of the sessions that follow.
    login: Login,
    /// The session opens with its first statement.
    session: Option<Session>,
    account: Option<Login>,
}

struct Session {
    twin: Twin,
    prepared: BTreeMap<String, [u32; 2]>,
}

impl Player<'_> {
    fn is_at(&self, place: Place) -> bool {
        match place {
            Place::Mariadb => self.stage.server.is_mariadb(),
            Place::Mysql => !self.stage.server.is_mariadb(),
            Place::Service => self.stage.service,
            Place::NoService => !self.stage.service,
        }
    }

    fn take(&mut self, deed: &Deed) {
        match deed {
            Deed::Exchange(exchange) => self.exchange(exchange),
            Deed::Session(capabilities) => {
                let login = self.account.clone().unwrap_or_default();
                self.login = login.with(capabilities.with).without(capabilities.without);
                self.session = None;
            }
            Deed::Account(privileges) => {
                let login = self.stage.account(privileges);
                self.login = login.clone();
                self.account = Some(login);
                self.session = None;
            }
            Deed::Aside(sql) => self.aside(sql),
            Deed::Count(names, expected) => self.count(names, expected),
            Deed::WaitMs(ms) => thread::sleep(Duration::from_millis(*ms)),
        }
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let user = self.login.user.clone();
        let text = |sql: &str| sql.replace("{user}", &user);
        let Session { twin, prepared } = self.session();
        match exchange {
            Exchange::Statement(sql) => drop(twin.run(&text(sql))),
            Exchange::Unordered(sql) => twin.run_unordered(&text(sql)),
            Exchange::Error(code, sql) => assert_eq!(twin.error(&text(sql)), *code, "{sql}"),
            Exchange::Value(expected, sql) => {
                let rows = twin.rows(&text(sql));
                let value = rows.first().and_then(|row| row[0].as_ref());
                assert_eq!(value, Some(expected), "{sql}");
            }
            Exchange::Look => look(twin),
            Exchange::Command(payload) => drop(twin.command(payload)),
            Exchange::ChangeUser => twin.change_to_root(),
            Exchange::Prepare(name, sql) => {
                let statement = twin.prepare(&text(sql));
                prepared.insert(name.clone(), statement);
            }
            Exchange::Execute(execution) => {
                let Execution {
                    name,
                    params,
                    cursor,
                    types,
                } = execution;
                let statement = prepared.get(name);
                let statement = statement.unwrap_or_else(|| panic!("{name} is not prepared"));
                twin.execute_with(*statement, params, u8::from(*cursor), *types);
            }
        }
    }

    fn session(&mut self) -> &mut Session {
        self.session.get_or_insert_with(|| Session {
            twin: self.stage.twin_of(&self.login),
            prepared: BTreeMap::new(),
        })
    }

    /// Runs in each database that the statement names, otherwise once.
    fn aside(&mut self, sql: &str) {
        let sql = sql.replace("{user}", &self.login.user);
        if sql.contains("{db}") {
            self.stage.aside(&sql);
        } else {
            self.stage.root.ok(&sql);
        }
    }

    fn count(&self, names: &[String], expected: &Expected) {
        let counts = self.stage.proxy.counts();
        let sum: u64 = names.iter().map(|name| counts.of(name)).sum();
        let holds = match expected {
            Expected::Exactly(count) => sum == *count,
            Expected::AtLeast(count) => sum >= *count,
        };
        let log = self.stage.proxy.log();
        assert!(
            holds,
            "{sum}, not {expected:?}, of {names:?}: {counts:?}\n{log}"
        );
    }
}
