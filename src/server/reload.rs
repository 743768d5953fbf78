//! Settings are read again while clients are connected: what can be put in force is, what needs a restart is named, and a mistake changes
//! nothing.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::background::{discover, look};
use super::build::{Built, Lasting};
use crate::config::{Changes, LogLevel, Settings};
use crate::feeds;
use crate::report::with_causes;
use crate::session::current::Current;
use crate::session::shared::Shared;
use crate::sql::NameCase;

/// New definitions and feeds are looked at for so long before they are in force. What is not known by then is found out when it is asked for.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Where settings come from.
pub trait Source: Debug + Send + Sync {
    /// Reads them again.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    fn read(&self) -> Result<Settings, String>;

    /// Has the log say so much from now on.
    fn log_at(&self, level: LogLevel);
}

/// What was done about settings that were read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// What differs.
    #[serde(flatten)]
    pub changes: Changes,
    /// Definitions, and kept rows, that are answered again after an answer had differed.
    pub trusted_again: usize,
}

/// Reads settings again.
#[derive(Debug)]
pub struct Reloads {
    source: Option<Box<dyn Source>>,
    /// What sessions share, and what that is made of: of those on the primary first, then of those of each port for replicas.
    sets: Vec<(Arc<Current>, Lasting)>,
    /// The process was started to relay every call.
    relays_only: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// As they were written.
    written: Settings,
    /// The same, in force.
    settings: Settings,
    /// Looks at the tables of the feeds that are in force, for each set.
    looking: Vec<Option<AbortHandle>>,
}

impl Reloads {
    pub(super) fn new(
        settings: &Settings,
        sets: Vec<(Arc<Current>, Lasting)>,
        source: Option<Box<dyn Source>>,
    ) -> Reloads {
        Reloads {
            source,
            relays_only: !settings.accelerate,
            state: Mutex::new(State {
                written: settings.clone(),
                settings: settings.clone(),
                looking: sets.iter().map(|_| None).collect(),
            }),
            sets,
        }
    }

    /// Looks at the tables of feeds from now on.
    pub(super) async fn look(&self, templates: Vec<Option<feeds::Inbox>>) {
        let sets = self.sets.iter().zip(templates);
        let looking = sets.map(|((current, _), inbox)| spawn_look(current.shared(), inbox));
        self.state.lock().await.looking = looking.collect();
    }

    /// Ends that.
    pub(super) async fn stop(&self) {
        let looking = std::mem::take(&mut self.state.lock().await.looking);
        for looking in looking.into_iter().flatten() {
            looking.abort();
        }
    }

    /// Reads the settings, certificates and keys again, and says in the log what became of them.
    ///
    /// # Errors
    /// What is wrong with them. Then nothing has changed.
    pub async fn reload(&self) -> Result<Reloaded, String> {
        let reloaded = self.reload_quietly().await;
        match &reloaded {
            Ok(reloaded) => tell(reloaded),
            Err(error) => {
                tracing::error!("settings stay as they were: {error}");
            }
        }
        reloaded
    }

    async fn reload_quietly(&self) -> Result<Reloaded, String> {
        let source = self.source.as_ref();
        let source = source.ok_or("settings cannot be read again here")?;
        let mut state = self.state.lock().await;
        let wished = source.read()?;
        let (written, changes) = state.written.renewed(&wished, self.relays_only);
        let case = state.settings.case;
        let trusted_again = self.put_in_force(&mut state, written.folded(case)).await?;
        source.log_at(written.log.level);
        state.written = written;
        Ok(Reloaded {
            changes,
            trusted_again,
        })
    }

    /// Reads names of databases and tables from now on as the server does.
    pub(super) async fn read_names(&self, case: NameCase) {
        let mut state = self.state.lock().await;
        if state.settings.case == case {
            return;
        }
        let settings = state.written.folded(case);
        match self.put_in_force(&mut state, settings).await {
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
    async fn put_in_force(&self, state: &mut State, settings: Settings) -> Result<usize, String> {
        let mut built = Vec::with_capacity(self.sets.len());
        for (current, lasting) in &self.sets {
            let before = current.shared();
            let made = lasting.build(&settings, Some((&before, &state.settings)));
            built.push((before, made.map_err(|error| with_causes(&error))?));
        }
        let same_definitions = settings.definitions == state.settings.definitions;
        let mut trusted_again = 0;
        for (at, (set, (before, built))) in self.sets.iter().zip(built).enumerate() {
            let looking = state.looking.get_mut(at).and_then(Option::take);
            let renewed = renew(set, (&before, built), &settings, same_definitions, looking);
            let (looking, trusted) = renewed.await;
            if let Some(place) = state.looking.get_mut(at) {
                *place = looking;
            }
            trusted_again += trusted;
        }
        state.settings = settings;
        Ok(trusted_again)
    }
}

/// Puts what was built in force. Returns what looks at the tables of feeds from now on, and how much is trusted again.
async fn renew(
    (current, lasting): &(Arc<Current>, Lasting),
    (before, built): (&Arc<Shared>, Built),
    settings: &Settings,
    same_definitions: bool,
    mut looking: Option<AbortHandle>,
) -> (Option<AbortHandle>, usize) {
    let shared = Arc::new(built.shared);
    lasting.obey(settings);
    if !same_definitions {
        let _ = tokio::time::timeout(FIRST_LOOK, discover(&shared)).await;
    }
    if built.templates.is_some() || shared.feeds.is_none() {
        let next = spawn_look(Arc::clone(&shared), built.templates);
        if let (Some(feeds), Some(_)) = (&shared.feeds, &next) {
            let mut looked = feeds.looked.subscribe();
            let looked = looked.wait_for(|looked| *looked);
            let _ = tokio::time::timeout(FIRST_LOOK, looked).await;
        }
        if let Some(before) = std::mem::replace(&mut looking, next) {
            before.abort();
        }
    }
    current.replace(Arc::clone(&shared));
    let same = |now: &Arc<feeds::Feeds>| {
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

fn spawn_look(shared: Arc<Shared>, templates: Option<feeds::Inbox>) -> Option<AbortHandle> {
    let templates = templates?;
    Some(tokio::spawn(look(shared, templates)).abort_handle())
}

fn tell(reloaded: &Reloaded) {
    let Changes {
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
