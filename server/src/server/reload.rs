//! Reloads settings while clients are connected: applies those that can change, names those that need a restart; a mistake changes nothing.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::background_tasks::{check_definitions, probe_feeds};
use super::state_builder::{BuiltGeneration, PersistentState};
use crate::admin::ReloadableSettings;
use crate::config::{LogLevel, ReloadOutcome, ServeSettings, SettingChanges};
use crate::report::with_causes;
use headwater_proxy::feeds;
use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_proxy::session::shared_state::SharedState;
use headwater_sql::NameCase;

/// Time to probe new definitions and feeds before they are in force; what is unknown by then is probed on first use.
const FIRST_PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The source of settings.
pub trait SettingsSource: Debug + Send + Sync {
    /// Reads the settings again.
    ///
    /// # Errors
    /// What is wrong with the settings, for people.
    fn read(&self) -> Result<ServeSettings, String>;

    /// Sets the log's level.
    fn set_log_level(&self, level: LogLevel);
}

/// Reloads settings.
#[derive(Debug)]
pub struct SettingsReloader {
    source: Option<Box<dyn SettingsSource>>,
    /// The generations and the state they are built from: first of the sessions on the primary, then of each replica port.
    generations: Vec<(Arc<CurrentGeneration>, PersistentState)>,
    /// The process was started with --relay-only.
    relay_only: bool,
    state: Mutex<ReloadState>,
}

#[derive(Debug)]
struct ReloadState {
    /// As written in the file.
    written: ServeSettings,
    /// As in force.
    settings: ServeSettings,
    /// The probe of the feeds' tables, for each generation.
    feed_probes: Vec<Option<AbortHandle>>,
}

impl ReloadableSettings for SettingsReloader {
    fn reload(&self) -> BoxFuture<'_, Result<ReloadOutcome, String>> {
        Box::pin(SettingsReloader::reload(self))
    }
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

    /// Starts to probe the tables of feeds.
    pub(super) async fn start_feed_probes(&self, templates: Vec<Option<feeds::FeedInbox>>) {
        let sets = self.generations.iter().zip(templates);
        let probes = sets.map(|((current, _), inbox)| spawn_feed_probe(current.shared(), inbox));
        self.state.lock().await.feed_probes = probes.collect();
    }

    /// Stops the probes.
    pub(super) async fn stop_feed_probes(&self) {
        let probes = std::mem::take(&mut self.state.lock().await.feed_probes);
        for probe in probes.into_iter().flatten() {
            probe.abort();
        }
    }

    /// Reads the settings, certificates and keys again, and logs the outcome.
    ///
    /// # Errors
    /// What is wrong with the settings. Then nothing has changed.
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

    /// Reads names of databases and tables in the server's case from now on.
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

    /// Builds new generations, and puts them in force. Returns how many definitions and rows are trusted again.
    async fn apply_settings(
        &self,
        state: &mut ReloadState,
        settings: ServeSettings,
    ) -> Result<usize, String> {
        let mut built = Vec::with_capacity(self.generations.len());
        for (current, persistent) in &self.generations {
            let before = current.shared();
            let generation = persistent.build(&settings, Some((&before, &state.settings)));
            built.push((before, generation.map_err(|error| with_causes(&error))?));
        }
        let same_definitions = settings.definitions == state.settings.definitions;
        let mut trusted_again = 0;
        for (at, (set, (before, built))) in self.generations.iter().zip(built).enumerate() {
            let probe = state.feed_probes.get_mut(at).and_then(Option::take);
            let renewed =
                apply_generation(set, (&before, built), &settings, same_definitions, probe);
            let (probe, trusted) = renewed.await;
            if let Some(slot) = state.feed_probes.get_mut(at) {
                *slot = probe;
            }
            trusted_again += trusted;
        }
        state.settings = settings;
        Ok(trusted_again)
    }
}

/// Puts a built generation in force. Returns its feed probe, and how many definitions and rows are trusted again.
async fn apply_generation(
    (current, persistent): &(Arc<CurrentGeneration>, PersistentState),
    (before, built): (&Arc<SharedState>, BuiltGeneration),
    settings: &ServeSettings,
    same_definitions: bool,
    mut probe: Option<AbortHandle>,
) -> (Option<AbortHandle>, usize) {
    let shared = Arc::new(built.shared);
    persistent.apply(settings);
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
        if let Some(before) = std::mem::replace(&mut probe, next) {
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
    (probe, shared.trust_again())
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
