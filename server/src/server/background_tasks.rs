//! Background tasks of a generation: the log follower, comparisons, checks of definitions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::reload::SettingsReloader;
use super::state_builder::TaskInboxes;
use headwater_proxy::account::UpstreamAccount;
use headwater_proxy::binlog::BinlogInbox;
use headwater_proxy::catalogue::ServiceError;
use headwater_proxy::feeds;
use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::shadow;
use headwater_proxy::spread;
use headwater_proxy::upstreams::{self, ServerChangeListener, Upstreams};
use headwater_sql::quoted;
use headwater_timeline::check::DefinitionVerdict;
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};

/// The running tasks.
#[derive(Debug)]
pub(super) struct BackgroundTasks(Vec<JoinHandle<()>>);

impl BackgroundTasks {
    /// `watch`: the task that watches the servers, if there are several.
    pub(super) fn start(
        current: &Arc<CurrentGeneration>,
        inboxes: &mut TaskInboxes,
        watch: Option<impl Future<Output = ()> + Send + 'static>,
    ) -> BackgroundTasks {
        let (changes, comparisons) = (inboxes.binlog.take(), inboxes.shadow.take());
        BackgroundTasks(vec![
            tokio::spawn(recheck(Arc::clone(current))),
            tokio::spawn(follow_log(Arc::clone(current), changes)),
            tokio::spawn(run_comparisons(Arc::clone(current), comparisons)),
            tokio::spawn(follow_nodes(Arc::clone(current), inboxes.spread.take())),
            tokio::spawn(async move {
                if let Some(watch) = watch {
                    watch.await;
                }
            }),
        ])
    }

    /// Adds a task that reads names in the case of the followed server.
    pub(super) fn with_name_case_updates(
        mut self,
        current: &CurrentGeneration,
        reloads: Arc<SettingsReloader>,
    ) -> BackgroundTasks {
        if let Some(binlog) = &current.shared().binlog {
            let mut cases = binlog.subscribe_name_case();
            self.0.push(tokio::spawn(async move {
                while cases.changed().await.is_ok() {
                    let case = *cases.borrow_and_update();
                    reloads.set_name_case(case).await;
                }
            }));
        }
        self
    }

    pub(super) fn abort(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Watches the servers, if there are several: first those of the sessions on the primary, then those of each replica port.
pub(super) fn watch_servers(
    upstreams: Arc<Upstreams>,
    account: UpstreamAccount,
    sets: Vec<Arc<CurrentGeneration>>,
    announced: &watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + use<> {
    let follower = |current| {
        let announced = announced.clone();
        Box::new(FailoverHandler { current, announced }) as Box<dyn ServerChangeListener>
    };
    let followers: Vec<_> = sets.into_iter().map(follower).collect();
    upstreams::run(upstreams, account, followers.into())
}

/// Reacts to a change of the followed server.
struct FailoverHandler {
    current: Arc<CurrentGeneration>,
    announced: watch::Receiver<bool>,
}

impl ServerChangeListener for FailoverHandler {
    fn server_lost(&self) {
        let shared = self.current.shared();
        shared.catalogue.change_primary();
        if let Some(binlog) = &shared.binlog {
            binlog.change_primary();
        }
    }

    fn server_followed(&self, other: bool) {
        let shared = self.current.shared();
        if let Some(binlog) = &shared.binlog
            && !other
            && binlog.suspension().is_some()
        {
            // Clients that wait to try again need not wait longer.
            binlog.change_primary();
        }
        if shared.catalogue.service.is_none() || !shared.accelerate {
            return;
        }
        let unknown = *self.announced.borrow() && shared.catalogue.checked_databases().is_empty();
        tokio::spawn(async move {
            if unknown {
                return check_definitions(&shared).await;
            }
            if !other {
                return;
            }
            if let Some(feeds) = &shared.feeds {
                feeds.refresh();
            }
            for (number, database) in shared.catalogue.checked_databases() {
                let _ = shared.catalogue.check_due(number, &database).await;
            }
        });
    }
}

/// Keeps memory coherent with the server, if there is memory.
async fn follow_log(current: Arc<CurrentGeneration>, inbox: Option<BinlogInbox>) {
    let binlog = current.shared().binlog.clone();
    let (Some(binlog), Some(inbox)) = (binlog, inbox) else {
        return;
    };
    let changes = async {
        loop {
            binlog.changed.notified().await;
            // The epoch of this log is counted already.
            let shared = current.shared();
            if let Some(feeds) = &shared.feeds {
                feeds.refresh();
            }
            // Check before the next call needs it. That call retries what fails.
            for (definition, database) in shared.catalogue.checked_databases() {
                let _ = shared.catalogue.check_due(definition, &database).await;
            }
        }
    };
    tokio::join!(Arc::clone(&binlog).run(inbox), changes);
}

/// Follows the data nodes of Spider nodes, if there are any.
async fn follow_nodes(current: Arc<CurrentGeneration>, inbox: Option<spread::SpreadInbox>) {
    let spread = current.shared().spread.clone();
    if let (Some(spread), Some(inbox)) = (spread, inbox) {
        spread.run(inbox).await;
    }
}

/// Probes the tables and templates of feeds, if there are any.
pub(super) async fn probe_feeds(shared: Arc<SharedState>, inbox: feeds::FeedInbox) {
    if let Some(feeds) = &shared.feeds {
        let every = Duration::from_millis(shared.limits.recheck_ms.max(100));
        feeds::run(Arc::clone(feeds), &shared.catalogue, inbox, every).await;
    }
}

/// Runs the real procedure for a share of the calls, if the settings request it.
async fn run_comparisons(current: Arc<CurrentGeneration>, inbox: Option<shadow::ShadowInbox>) {
    let binlog = current.shared().binlog.clone();
    if let (Some(binlog), Some(inbox)) = (binlog, inbox) {
        let of = |number: DefinitionId| {
            let shared = current.shared();
            number.resolve(shared.catalogue.definitions()).cloned()
        };
        shadow::run(binlog, Box::new(of), inbox).await;
    }
}

/// Logs once which calls cannot be compared for want of a privilege, if comparisons are on by default.
pub(super) async fn report_uncompared(shared: &SharedState) {
    let (Some(shadow), Some(service)) = (&shared.shadow, &shared.catalogue.service) else {
        return;
    };
    if !shadow.is_by_default() {
        return;
    }
    let mut denied = Vec::new();
    for (number, database) in shared.catalogue.checked_databases() {
        let verdict = shared.catalogue.last_verdict(number, &database);
        let (Some((verdict, _)), Some(definition), Ok(database)) = (
            verdict,
            number.resolve(shared.catalogue.definitions()),
            std::str::from_utf8(&database),
        ) else {
            continue;
        };
        let DefinitionVerdict::Accelerate(facts) = &*verdict else {
            continue;
        };
        let forms = facts.callable_forms();
        let denied_forms = service
            .denied_procedures(definition, database, &forms)
            .await;
        if let Some(form) = denied_forms.unwrap_or_default().first() {
            shadow.exclude(number, database);
            let procedure = quoted(definition.procedure_name(*form));
            denied.push(format!("{}.{procedure}", quoted(database)));
        }
    }
    if let Some(first) = denied.first() {
        let others = match denied.len() - 1 {
            0 => String::new(),
            others => format!(", nor those of {others} other timelines"),
        };
        tracing::info!(
            "calls are not compared with the server's procedures: the service account may not run {first}{others}. `headwater check` \
             prints the GRANT, which counts from the next start or SIGHUP; shadow.rate = 0 (--shadow 0) is for no comparisons"
        );
    }
}

/// Checks every definition in every database that holds its tables.
pub(super) async fn check_definitions(shared: &SharedState) {
    for (number, definition) in shared.catalogue.in_use() {
        check_definition(shared, number, definition).await;
    }
}

/// Checks a definition in every database that holds its tables.
async fn check_definition(
    shared: &SharedState,
    number: DefinitionId,
    definition: &TimelineDefinition,
) {
    let catalogue = &shared.catalogue;
    if let Some(service) = &catalogue.service {
        let databases = match &definition.database {
            Some(database) => Ok(vec![database.clone().into_bytes()]),
            None => service.databases(definition, shared.limits.databases).await,
        };
        catalogue.record_listing(number, databases.is_ok());
        match databases {
            Ok(databases) => {
                if databases.is_empty() {
                    report_missing_tables(shared, definition);
                }
                for database in databases {
                    let mut checked = catalogue.check(number, &database).await;
                    // The failure for the previous database does not predict this one's.
                    if matches!(checked, Err(ServiceError::FailedRecently)) {
                        tokio::time::sleep(ServiceError::RETRY).await;
                        checked = catalogue.check(number, &database).await;
                    }
                    match checked {
                        Ok(verdict) => preload(shared, number, &database, &verdict),
                        Err(error) => report_unchecked(definition, &error),
                    }
                }
            }
            Err(error) => report_unchecked(definition, &error),
        }
    }
}

/// Logs that a definition's tables are nowhere. Silent for the classic timeline that no setting names, also where feeds are configured.
fn report_missing_tables(shared: &SharedState, definition: &TimelineDefinition) {
    let TimelineDefinition {
        name,
        follower,
        message,
        ..
    } = definition;
    let (follows, messages) = (&follower.table, &message.table);
    match (shared.classic_by_default, shared.has_feeds()) {
        (false, _) => {
            tracing::warn!(
                "definition {name}: no database has the tables {follows} and {messages}"
            );
        }
        (true, false) => {
            tracing::info!(
                "definition {name}: no database has the tables {follows} and {messages}"
            );
        }
        (true, true) => {}
    }
}

/// Logs why a definition is not checked, unless that was logged already.
fn report_unchecked(definition: &TimelineDefinition, error: &ServiceError) {
    if !error.was_logged() {
        tracing::warn!("definition {}: {error}", definition.name);
    }
}

/// Fills memory now, not at the first calls, if the settings request it and memory answers.
fn preload(
    shared: &SharedState,
    number: DefinitionId,
    database: &[u8],
    verdict: &DefinitionVerdict,
) {
    if let (Some(binlog), Some(definition), Ok(database), DefinitionVerdict::Accelerate(facts)) = (
        &shared.binlog,
        number.resolve(shared.catalogue.definitions()),
        std::str::from_utf8(database),
        verdict,
    ) && !facts.is_spread()
    {
        binlog.preload(definition, database);
    }
}

/// Checks the definitions in use again, every `limits.recheck_ms`, if there is a service account.
async fn recheck(current: Arc<CurrentGeneration>) {
    let mut failing = false;
    loop {
        let every = current.shared().limits.recheck_ms.max(100);
        tokio::time::sleep(Duration::from_millis(every)).await;
        let shared = current.shared();
        if shared.catalogue.service.is_none() || !shared.accelerate {
            continue;
        }
        for (number, database) in shared.catalogue.checked_databases() {
            match shared.catalogue.check(number, &database).await {
                Ok(_) => failing = false,
                Err(error) if !failing && !error.was_logged() => {
                    failing = true;
                    tracing::warn!("definitions cannot be checked again: {error}");
                }
                Err(_) => {}
            }
        }
        // After the others: it checks what it finds.
        let unlisted = shared.catalogue.unlisted();
        for (number, definition) in shared.catalogue.in_use() {
            if unlisted.contains(&number) {
                check_definition(&shared, number, definition).await;
            }
        }
    }
}
