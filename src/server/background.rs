//! What goes on beside the sessions: memory, comparisons, checks of definitions.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::binlog::Inbox;
use crate::catalogue::ServiceError;
use crate::feeds;
use crate::session::shared::Shared;
use crate::shadow;
use crate::timeline::check::Verdict;
use crate::timeline::definition::{Definition, DefinitionId};

/// All of it, under way.
#[derive(Debug)]
pub(super) struct Background([JoinHandle<()>; 4]);

impl Background {
    pub(super) fn start(
        shared: &Arc<Shared>,
        inbox: Option<Inbox>,
        templates: Option<feeds::Inbox>,
        comparisons: Option<shadow::Inbox>,
    ) -> Background {
        Background([
            tokio::spawn(recheck(Arc::clone(shared))),
            tokio::spawn(follow(Arc::clone(shared), inbox)),
            tokio::spawn(look(Arc::clone(shared), templates)),
            tokio::spawn(compare(Arc::clone(shared), comparisons)),
        ])
    }

    pub(super) fn end(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Keeps memory coherent with the server, where there is any.
async fn follow(shared: Arc<Shared>, inbox: Option<Inbox>) {
    let (Some(binlog), Some(inbox)) = (&shared.binlog, inbox) else {
        return;
    };
    let changes = async {
        loop {
            binlog.changed.notified().await;
            shared.catalogue.expire();
            if let Some(feeds) = &shared.feeds {
                feeds.refresh();
            }
            // Before the next call asks for it. What fails is tried again by that.
            for (definition, database) in shared.catalogue.known() {
                let _ = shared.catalogue.check_due(definition, &database).await;
            }
        }
    };
    tokio::join!(Arc::clone(binlog).run(inbox), changes);
}

/// Looks at the tables and templates of feeds, where there are any.
async fn look(shared: Arc<Shared>, inbox: Option<feeds::Inbox>) {
    if let (Some(feeds), Some(inbox)) = (&shared.feeds, inbox) {
        let every = Duration::from_millis(shared.limits.recheck_ms.max(100));
        feeds::run(Arc::clone(feeds), &shared.catalogue, inbox, every).await;
    }
}

/// Has the real procedure run beside a share of the calls, where that is wished for.
async fn compare(shared: Arc<Shared>, inbox: Option<shadow::Inbox>) {
    if let (Some(shadow), Some(binlog), Some(inbox)) = (&shared.shadow, &shared.binlog, inbox) {
        let definitions = shared.catalogue.definitions();
        shadow::run(Arc::clone(shadow), Arc::clone(binlog), definitions, inbox).await;
    }
}

/// Checks every definition in every database that holds its tables.
pub(super) async fn discover(shared: &Shared) {
    let catalogue = &shared.catalogue;
    let Some(service) = &catalogue.service else {
        return;
    };
    for (number, definition) in (0..).map(DefinitionId).zip(catalogue.definitions()) {
        let databases = match &definition.database {
            Some(database) => Ok(vec![database.clone().into_bytes()]),
            None => service.databases(definition, shared.limits.databases).await,
        };
        match databases {
            Ok(databases) => {
                // Who has feeds need not have the classic timeline.
                let unasked = shared.classic_by_default && shared.has_feeds();
                if databases.is_empty() && !unasked {
                    tracing::warn!(
                        "definition {}: no database has the tables {} and {}",
                        definition.name,
                        definition.follower.table,
                        definition.message.table
                    );
                }
                for database in databases {
                    let mut checked = catalogue.check(number, &database).await;
                    // What held up the database before says nothing about this one.
                    if matches!(checked, Err(ServiceError::Lately)) {
                        tokio::time::sleep(ServiceError::RETRY).await;
                        checked = catalogue.check(number, &database).await;
                    }
                    match checked {
                        Ok(verdict) => preload(shared, number, &database, &verdict),
                        Err(error) => unchecked(definition, &error),
                    }
                }
            }
            Err(error) => unchecked(definition, &error),
        }
    }
}

/// Says why a definition is not checked, unless that was said where it happened.
fn unchecked(definition: &Definition, error: &ServiceError) {
    if !error.was_said() {
        tracing::warn!("definition {}: {error}", definition.name);
    }
}

/// Has memory filled now, and not with the first calls, where that is wished for.
fn preload(shared: &Shared, number: DefinitionId, database: &[u8], verdict: &Verdict) {
    if let (Some(binlog), Some(definition), Ok(database), Verdict::Accelerate(_)) = (
        &shared.binlog,
        number.of(shared.catalogue.definitions()),
        std::str::from_utf8(database),
        verdict,
    ) {
        binlog.preload(definition, database);
    }
}

/// Checks what is in use again, every `limits.recheck_ms`, where there is a service account.
async fn recheck(shared: Arc<Shared>) {
    if shared.catalogue.service.is_none() || !shared.accelerate {
        return;
    }
    let mut rounds =
        tokio::time::interval(Duration::from_millis(shared.limits.recheck_ms.max(100)));
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    rounds.tick().await;
    let mut failing = false;
    loop {
        rounds.tick().await;
        for (number, database) in shared.catalogue.known() {
            match shared.catalogue.check(number, &database).await {
                Ok(_) => failing = false,
                Err(error) if !failing && !error.was_said() => {
                    failing = true;
                    tracing::warn!("definitions cannot be checked again: {error}");
                }
                Err(_) => {}
            }
        }
    }
}
