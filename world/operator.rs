//! The actions of the operators of the server and of Headwater.

use std::sync::{Arc, Mutex};

use headwater_server::config::{LogLevel, ServeSettings};
use headwater_server::server;
use tokio::time::sleep;

use crate::fleet::{ProxyFarewell, ProxyFleet};
use crate::model::{ModelTable, RowEdit, TableChange};
use crate::plan::{RestartKind, WorldPlan};
use crate::random::Random;
use crate::rights::AccountRight;
use crate::server::{ServerEnding, WorldServer};
use crate::writes;

/// Maximum number of restarts of a server.
const RESTARTS: usize = 3;
/// Maximum number of takeovers.
const SUCCESSIONS: usize = 3;

/// Operates both, until the world is calm.
pub(crate) struct ServerOperator {
    pub(crate) server: Arc<WorldServer>,
    pub(crate) fleet: Arc<ProxyFleet>,
    pub(crate) plan: WorldPlan,
    pub(crate) random: Random,
}

impl ServerOperator {
    pub(crate) async fn run(mut self) {
        let (mut restarts, mut successions) = (0, 0);
        loop {
            sleep(self.random.pause(self.plan.rests)).await;
            if self.plan.weather.is_calm() {
                return;
            }
            match self.random.below(9) {
                0 if self.plan.flushes => {
                    self.note("FLUSH BINARY LOGS");
                    self.server.model().log.flush();
                }
                1 if self.plan.truncations => self.define(TableChange::Empty).await,
                2 if restarts < RESTARTS => {
                    if let Some(kind) = self.plan.restarts {
                        restarts += 1;
                        self.restart(kind).await;
                    }
                }
                3 if self.plan.purges => {
                    self.note("PURGE BINARY LOGS");
                    self.server.model().log.purge();
                }
                4 if self.plan.kills => self.kill(),
                5 if self.plan.rights => self.deny_or_grant(),
                6 if self.plan.reloads => {
                    self.note("settings are read again");
                    // Errors are reported once the world is calm.
                    let _ = self.fleet.reload().await;
                }
                7 if self.plan.alterations => self.define(TableChange::Widen).await,
                8 if self.plan.successions && successions < SUCCESSIONS => {
                    successions += 1;
                    self.succeed().await;
                }
                _ => {}
            }
        }
    }

    /// Applies this change to a table.
    async fn define(&mut self, change: fn(ModelTable) -> TableChange) {
        let changes = [change(*self.random.pick(&ModelTable::ALL))];
        let thread = self.server.model().connect();
        let random = &mut self.random;
        self.server.commit(thread, &changes, random).await;
    }

    fn note(&self, what: &str) {
        self.server.trace.note("operator", what);
    }

    async fn restart(&mut self, kind: RestartKind) {
        let ending = match (self.random.below(3), kind) {
            (_, RestartKind::Replaced) => ServerEnding::Promotion {
                lost: self.random.below(3) as usize / 2 * self.random.below(4) as usize,
                drift: self.drift(),
            },
            (0, _) => ServerEnding::Stop,
            (_, RestartKind::Losing) => ServerEnding::Loss {
                count: self.random.below(5) as usize,
                logged: self.random.one_in(2),
            },
            (_, RestartKind::Durable) => ServerEnding::Crash,
        };
        let away = self.random.pause(3000);
        self.server.restart(ending, away).await;
    }

    /// Starts a takeover.
    async fn succeed(&mut self) {
        let getting_ready = self.random.pause(3000);
        let farewell = *self
            .random
            .pick(&[ProxyFarewell::Shutdown, ProxyFarewell::Takeover]);
        self.note(&format!(
            "another Headwater: {farewell:?} after {getting_ready:?}"
        ));
        let fleet = Arc::clone(&self.fleet);
        // Other actions continue meanwhile.
        tokio::spawn(async move { fleet.take_over(getting_ready, farewell).await });
    }

    /// The rows in which a replica differs: mostly none.
    fn drift(&mut self) -> Vec<RowEdit> {
        let model = self.server.model();
        let state = model.state(model.readable());
        let count = self.random.below(3) / 2 * self.random.below(4);
        (0..count)
            .map(|_| writes::drawn(&state, &mut self.random))
            .collect()
    }

    /// KILL of any connection.
    fn kill(&mut self) {
        let connections = self.server.connections();
        if connections.is_empty() {
            return;
        }
        let (thread, end) = self.random.pick(&connections);
        self.note(&format!("KILL {thread}"));
        end.notify_one();
    }

    fn deny_or_grant(&mut self) {
        let denied = &mut self.server.model().denied;
        let right = *self.random.pick(&AccountRight::ALL);
        let what = match denied.is_empty() {
            true => {
                denied.insert(right);
                format!("REVOKE {}", right.name())
            }
            false => {
                denied.clear();
                "all rights are given back".to_owned()
            }
        };
        self.note(&what);
    }
}

/// Settings that change at each reload, until the world is calm.
#[derive(Debug)]
pub(crate) struct ChangingSettings {
    plan: WorldPlan,
    listen: String,
    random: Mutex<Random>,
}

impl ChangingSettings {
    pub(crate) fn new(plan: &WorldPlan, listen: &str, random: Random) -> ChangingSettings {
        ChangingSettings {
            plan: plan.clone(),
            listen: listen.to_owned(),
            random: Mutex::new(random),
        }
    }
}

impl server::SettingsSource for ChangingSettings {
    fn read(&self) -> Result<ServeSettings, String> {
        let mut plan = self.plan.clone();
        if !plan.weather.is_calm() {
            let mut random = self.random.lock().expect("nobody panics with it");
            plan.always_narrow = random.one_in(2);
            plan.has_calls = !random.one_in(4);
            plan.has_feed = !random.one_in(4);
        }
        Ok(plan.settings(&self.listen))
    }

    fn set_log_level(&self, _: LogLevel) {}
}
