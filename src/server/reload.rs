//! Settings are read again while clients are connected: what can be put in force is, what needs a restart is named, and a mistake changes
//! nothing.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::background_tasks::{check_definitions, probe_feeds};
use super::state_builder::{BuiltGeneration, PersistentState};
use crate::config::{LogLevel, ServeSettings, SettingChanges};
use crate::feeds;
use crate::report::with_causes;
use crate::session::current_generation::CurrentGeneration;
use crate::session::shared_state::SharedState;
use crate::sql::NameCase;

/// New definitions and feeds are looked at for so long before they are in force. What is not known by then is found out when it is asked for.
const FIRST_PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where settings come from.
pub trait SettingsSource: Debug + Send + Sync {
    /// Reads them again.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    fn read(&self) -> Result<ServeSettings, String>;

    /// Has the log say so much from now on.
    fn set_log_level(&self, level: LogLevel);
}

/// What was done about settings that were read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadOutcome {
    /// What differs.
    #[serde(flatten)]
    pub changes: SettingChanges,
    /// Definitions, and kept rows, that are answered again after an answer had differed.
    pub trusted_again: usize,
}

/// Reads settings again.
#[derive(Debug)]
pub struct SettingsReloader {
    source: Option<Box<dyn SettingsSource>>,
    /// What sessions share, and what that is made of: of those on the primary first, then of those of each port for replicas.
    generations: Vec<(Arc<CurrentGeneration>, PersistentState)>,
    /// The process was started to relay every call.
    relay_only: bool,
    state: Mutex<ReloadState>,
}

#[derive(Debug)]
struct ReloadState {
    /// As they were written.
    written: ServeSettings,
    /// The same, in force.
    settings: ServeSettings,
    /// Looks at the tables of the feeds that are in force, for each set.
    feed_probes: Vec<Option<AbortHandle>>,
}

impl SettingsReloader {
    pub(super) fn new(
        settings: &ServeSettings,
        sets: Vec<(Arc<CurrentGeneration>, PersistentState)>,
        source: Option<Box<dyn SettingsSource>>,
    ) -> SettingsReloader {
        SettingsReloader {
            source,
            relay_only: !settings.accelerate,
            state: Mutex::new(ReloadState {
                written: settings.clone(),
                settings: settings.clone(),
                feed_probes: sets.iter().map(|_| None).collect(),
            }),
            generations: sets,
        }
    }

    /// Looks at the tables of feeds from now on.
    pub(super) async fn start_feed_probes(&self, templates: Vec<Option<feeds::FeedInbox>>) {
        let sets = self.generations.iter().zip(templates);
        let looking = sets.map(|((current, _), inbox)| spawn_feed_probe(current.shared(), inbox));
        self.state.lock().await.feed_probes = looking.collect();
    }

    /// Ends that.
    pub(super) async fn stop_feed_probes(&self) {
        let looking = std::mem::take(&mut self.state.lock().await.feed_probes);
        for looking in looking.into_iter().flatten() {
            looking.abort();
        }
    }

    /// Reads the settings, certificates and keys again, and says in the log what became of them.
    ///
    /// # Errors
    /// What is wrong with them. Then nothing has changed.
    pub async fn reload(&self) -> Result<ReloadOutcome, String> {
        let reloaded = self.reload_quietly().await;
        match &reloaded {
            Ok(reloaded) => log_outcome(reloaded),
            Err(error) => {
                tracing::error!("settings stay as they were: {error}");
            }
        }
        reloaded
    }

    async fn reload_quietly(&self) -> Result<ReloadOutcome, String> {
        let source = self.source.as_ref();
        let source = source.ok_or("settings cannot be read again here")?;
        let mut state = self.state.lock().await;
        let wished = source.read()?;
        let (written, changes) = state.written.reloaded(&wished, self.relay_only);
        let case = state.settings.case;
        let trusted_again = self
            .apply_settings(&mut state, written.folded(case))
            .await?;
        source.set_log_level(written.log.level);
        state.written = written;
        Ok(ReloadOutcome {
            changes,
            trusted_again,
        })
    }

    /// Reads names of databases and tables from now on as the server does.
    pub(super) async fn set_name_case(&self, case: NameCase) {
        let mut state = self.state.lock().await;
        if state.settings.case == case {
            return;
        }
        let settings = state.written.folded(case);
        match self.apply_settings(&mut state, settings).await {
            Ok(_) if case == NameCase::Folded => tracing::info!(
                "names of databases and tables have no case on the server (lower_case_table_names = 1): they are read in small letters"
            ),
            Ok(_) => tracing::info!("names of databases and tables have case on the server"),
            Err(error) => tracing::error!(
                "names of databases and tables are not read as the server does: {error}"
            ),
        }
    }

    /// Builds anew what sessions share, and has it replace what they shared. Returns how much is trusted again.
    async fn apply_settings(
        &self,
        state: &mut ReloadState,
        settings: ServeSettings,
    ) -> Result<usize, String> {
        let mut built = Vec::with_capacity(self.generations.len());
        for (current, lasting) in &self.generations {
            let before = current.shared();
            let made = lasting.build(&settings, Some((&before, &state.settings)));
            built.push((before, made.map_err(|error| with_causes(&error))?));
        }
        let same_definitions = settings.definitions == state.settings.definitions;
        let mut trusted_again = 0;
        for (at, (set, (before, built))) in self.generations.iter().zip(built).enumerate() {
            let looking = state.feed_probes.get_mut(at).and_then(Option::take);
            let renewed =
                apply_generation(set, (&before, built), &settings, same_definitions, looking);
            let (looking, trusted) = renewed.await;
            if let Some(place) = state.feed_probes.get_mut(at) {
                *place = looking;
            }
            trusted_again += trusted;
        }
        state.settings = settings;
        Ok(trusted_again)
    }
}

/// Puts what was built in force. Returns what looks at the tables of feeds from now on, and how much is trusted again.
async fn apply_generation(
    (current, lasting): &(Arc<CurrentGeneration>, PersistentState),
    (before, built): (&Arc<SharedState>, BuiltGeneration),
    settings: &ServeSettings,
    same_definitions: bool,
    mut looking: Option<AbortHandle>,
) -> (Option<AbortHandle>, usize) {
    let shared = Arc::new(built.shared);
    lasting.apply(settings);
    if !same_definitions {
        let _ = tokio::time::timeout(FIRST_PROBE_TIMEOUT, check_definitions(&shared)).await;
    }
    if built.template_inbox.is_some() || shared.feeds.is_none() {
        let next = spawn_feed_probe(Arc::clone(&shared), built.template_inbox);
        if let (Some(feeds), Some(_)) = (&shared.feeds, &next) {
            let mut looked = feeds.databases_checked.subscribe();
            let looked = looked.wait_for(|looked| *looked);
            let _ = tokio::time::timeout(FIRST_PROBE_TIMEOUT, looked).await;
        }
        if let Some(before) = std::mem::replace(&mut looking, next) {
            before.abort();
        }
    }
    current.replace(Arc::clone(&shared));
    let same = |now: &Arc<feeds::FeedRegistry>| {
        let before = before.feeds.as_ref();
        before.is_some_and(|before| Arc::ptr_eq(before, now))
    };
    if let Some(feeds) = before.feeds.as_ref()
        && !shared.feeds.as_ref().is_some_and(same)
    {
        feeds.retire();
    }
    (looking, shared.trust_again())
}

fn spawn_feed_probe(
    shared: Arc<SharedState>,
    templates: Option<feeds::FeedInbox>,
) -> Option<AbortHandle> {
    let templates = templates?;
    Some(tokio::spawn(probe_feeds(shared, templates)).abort_handle())
}

fn log_outcome(reloaded: &ReloadOutcome) {
    let SettingChanges {
        changed,
        need_restart,
    } = &reloaded.changes;
    for change in changed {
        tracing::info!("in force now: {change}");
    }
    for change in need_restart {
        tracing::warn!("needs a restart, and is as it was until then: {change}");
    }
    if reloaded.trusted_again > 0 {
        tracing::info!(
            "memory is emptied; what was relayed or not kept for an answer that differed is answered and kept again"
        );
    }
    tracing::info!(
        "settings and certificates are read again: {} changed, {} need a restart",
        changed.len(),
        need_restart.len()
    );
}
