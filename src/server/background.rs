//! What goes on beside the sessions: memory, comparisons, checks of definitions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::build::Inboxes;
use super::reload::Reloads;
use crate::account::Account;
use crate::binlog::Inbox;
use crate::catalogue::ServiceError;
use crate::feeds;
use crate::session::current::Current;
use crate::session::shared::Shared;
use crate::shadow;
use crate::spread;
use crate::sql::quoted;
use crate::timeline::check::Verdict;
use crate::timeline::definition::{Definition, DefinitionId};
use crate::upstreams::{self, Follower, Upstreams};

/// All of it, under way.
#[derive(Debug)]
pub(super) struct Background(Vec<JoinHandle<()>>);

impl Background {
    /// `watch`: what watches the servers, where there are several.
    pub(super) fn start(
        current: &Arc<Current>,
        inboxes: &mut Inboxes,
        watch: Option<impl Future<Output = ()> + Send + 'static>,
    ) -> Background {
        let (changes, comparisons) = (inboxes.binlog.take(), inboxes.shadow.take());
        Background(vec![
            tokio::spawn(recheck(Arc::clone(current))),
            tokio::spawn(follow(Arc::clone(current), changes)),
            tokio::spawn(compare(Arc::clone(current), comparisons)),
            tokio::spawn(follow_nodes(Arc::clone(current), inboxes.spread.take())),
            tokio::spawn(async move {
                if let Some(watch) = watch {
                    watch.await;
                }
            }),
        ])
    }

    /// That, and names are read as the server does that is followed.
    pub(super) fn reading_names(mut self, current: &Current, reloads: Arc<Reloads>) -> Background {
        if let Some(binlog) = &current.shared().binlog {
            let mut cases = binlog.name_cases();
            self.0.push(tokio::spawn(async move {
                while cases.changed().await.is_ok() {
                    let case = *cases.borrow_and_update();
                    reloads.read_names(case).await;
                }
            }));
        }
        self
    }

    pub(super) fn end(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Watches several servers, where there are any: for the sessions of each set, those on the primary first.
pub(super) fn watch_servers(
    upstreams: Arc<Upstreams>,
    account: Account,
    sets: Vec<Arc<Current>>,
    announced: &watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + use<> {
    let follower = |current| {
        let announced = announced.clone();
        Box::new(Knowledge { current, announced }) as Box<dyn Follower>
    };
    let followers: Vec<_> = sets.into_iter().map(follower).collect();
    upstreams::run(upstreams, account, followers.into())
}

/// What is known of the server that was followed.
struct Knowledge {
    current: Arc<Current>,
    announced: watch::Receiver<bool>,
}

impl Follower for Knowledge {
    fn leaves(&self) {
        let shared = self.current.shared();
        shared.catalogue.server_moved();
        if let Some(binlog) = &shared.binlog {
            binlog.server_moved();
        }
    }

    fn arrives(&self, other: bool) {
        let shared = self.current.shared();
        if let Some(binlog) = &shared.binlog
            && !other
            && binlog.aside().is_some()
        {
            // Who waits to try again need not.
            binlog.server_moved();
        }
        if shared.catalogue.service.is_none() || !shared.accelerate {
            return;
        }
        let unknown = *self.announced.borrow() && shared.catalogue.known().is_empty();
        tokio::spawn(async move {
            if unknown {
                return discover(&shared).await;
            }
            if !other {
                return;
            }
            if let Some(feeds) = &shared.feeds {
                feeds.refresh();
            }
            for (number, database) in shared.catalogue.known() {
                let _ = shared.catalogue.check_due(number, &database).await;
            }
        });
    }
}

/// Keeps memory coherent with the server, where there is any.
async fn follow(current: Arc<Current>, inbox: Option<Inbox>) {
    let binlog = current.shared().binlog.clone();
    let (Some(binlog), Some(inbox)) = (binlog, inbox) else {
        return;
    };
    let changes = async {
        loop {
            binlog.changed.notified().await;
            // Its epoch is counted already.
            let shared = current.shared();
            if let Some(feeds) = &shared.feeds {
                feeds.refresh();
            }
            // Before the next call asks for it. What fails is tried again by that.
            for (definition, database) in shared.catalogue.known() {
                let _ = shared.catalogue.check_due(definition, &database).await;
            }
        }
    };
    tokio::join!(Arc::clone(&binlog).run(inbox), changes);
}

/// Follows the data nodes of Spider nodes, where there are any.
async fn follow_nodes(current: Arc<Current>, inbox: Option<spread::Inbox>) {
    let spread = current.shared().spread.clone();
    if let (Some(spread), Some(inbox)) = (spread, inbox) {
        spread.run(inbox).await;
    }
}

/// Looks at the tables and templates of feeds, where there are any.
pub(super) async fn look(shared: Arc<Shared>, inbox: feeds::Inbox) {
    if let Some(feeds) = &shared.feeds {
        let every = Duration::from_millis(shared.limits.recheck_ms.max(100));
        feeds::run(Arc::clone(feeds), &shared.catalogue, inbox, every).await;
    }
}

/// Has the real procedure run beside a share of the calls, where that is wished for.
async fn compare(current: Arc<Current>, inbox: Option<shadow::Inbox>) {
    let binlog = current.shared().binlog.clone();
    if let (Some(binlog), Some(inbox)) = (binlog, inbox) {
        let of = |number: DefinitionId| {
            let shared = current.shared();
            number.of(shared.catalogue.definitions()).cloned()
        };
        shadow::run(binlog, of, inbox).await;
    }
}

/// Says once which calls are not compared for want of a right, where nobody asked for comparisons.
pub(super) async fn uncompared(shared: &Shared) {
    let (Some(shadow), Some(service)) = (&shared.shadow, &shared.catalogue.service) else {
        return;
    };
    if !shadow.is_unasked() {
        return;
    }
    let mut denied = Vec::new();
    for (number, database) in shared.catalogue.known() {
        let verdict = shared.catalogue.last_verdict(number, &database);
        let (Some((verdict, _)), Some(definition), Ok(database)) = (
            verdict,
            number.of(shared.catalogue.definitions()),
            std::str::from_utf8(&database),
        ) else {
            continue;
        };
        let Verdict::Accelerate(facts) = &*verdict else {
            continue;
        };
        let forms = facts.runnable();
        let denied_forms = service.may_not_run(definition, database, &forms).await;
        if let Some(form) = denied_forms.unwrap_or_default().first() {
            shadow.spare(number, database);
            let procedure = quoted(definition.procedure(*form));
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
pub(super) async fn discover(shared: &Shared) {
    let catalogue = &shared.catalogue;
    let Some(service) = &catalogue.service else {
        return;
    };
    for (number, definition) in catalogue.in_use() {
        let databases = match &definition.database {
            Some(database) => Ok(vec![database.clone().into_bytes()]),
            None => service.databases(definition, shared.limits.databases).await,
        };
        match databases {
            Ok(databases) => {
                if databases.is_empty() {
                    nowhere(shared, definition);
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

/// Says that a definition's tables are nowhere. Whoever has not named the classic timeline need not have it, and who has feeds does not ask
/// for it.
fn nowhere(shared: &Shared, definition: &Definition) {
    let Definition {
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

/// Says why a definition is not checked, unless that was said where it happened.
fn unchecked(definition: &Definition, error: &ServiceError) {
    if !error.was_said() {
        tracing::warn!("definition {}: {error}", definition.name);
    }
}

/// Has memory filled now, and not with the first calls, where that is wished for and memory answers.
fn preload(shared: &Shared, number: DefinitionId, database: &[u8], verdict: &Verdict) {
    if let (Some(binlog), Some(definition), Ok(database), Verdict::Accelerate(facts)) = (
        &shared.binlog,
        number.of(shared.catalogue.definitions()),
        std::str::from_utf8(database),
        verdict,
    ) && !facts.are_spread()
    {
        binlog.preload(definition, database);
    }
}

/// Checks what is in use again, every `limits.recheck_ms`, where there is a service account.
async fn recheck(current: Arc<Current>) {
    let mut failing = false;
    loop {
        let every = current.shared().limits.recheck_ms.max(100);
        tokio::time::sleep(Duration::from_millis(every)).await;
        let shared = current.shared();
        if shared.catalogue.service.is_none() || !shared.accelerate {
            continue;
        }
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
