//! The Headwaters of a world: one, two side by side, or one that takes over from another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_proxy::session::session_counters::SessionEvent;
use headwater_proxy::session::shared_state::SharedState;
use headwater_server::server::{ProxyServer as Headwater, SettingsReloader};
use headwater_server::sockets::InheritedSockets;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::operator::ChangingSettings;
use crate::plan::WorldPlan;
use crate::random::Random;

/// How a Headwater ends after its replacement has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyFarewell {
    /// Shutdown: idle sessions end at once.
    Shutdown,
    /// Takeover: sessions with a session state continue for a while.
    Takeover,
}

/// All running and ended Headwaters.
pub(crate) struct ProxyFleet {
    plan: WorldPlan,
    random: Mutex<Random>,
    members: Mutex<Vec<Arc<FleetMember>>>,
    /// Held during a takeover.
    succession: tokio::sync::Mutex<()>,
}

/// One Headwater.
pub(crate) struct FleetMember {
    address: String,
    current: Arc<CurrentGeneration>,
    reloads: Arc<SettingsReloader>,
    /// Its stop signal, and its task.
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    /// True while clients connect to it.
    in_use: AtomicBool,
}

impl FleetMember {
    pub(crate) fn shared(&self) -> Arc<SharedState> {
        self.current.shared()
    }

    /// Waits up to this time until Headwater reads the log.
    pub(crate) async fn follow(&self, most: Duration) {
        let begun = Instant::now();
        let shared = self.shared();
        let is_aside = || {
            let binlog = shared.binlog.as_ref();
            binlog.is_some_and(|it| it.suspension().is_some())
        };
        while is_aside() && begun.elapsed() < most {
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}

impl ProxyFleet {
    pub(crate) async fn start(plan: &WorldPlan, random: Random) -> Result<ProxyFleet, String> {
        let fleet = ProxyFleet {
            plan: plan.clone(),
            random: Mutex::new(random),
            members: Mutex::default(),
            succession: tokio::sync::Mutex::default(),
        };
        for _ in 0..=usize::from(plan.beside) {
            let member = fleet.add().await?;
            member.in_use.store(true, Ordering::Relaxed);
        }
        Ok(fleet)
    }

    /// Starts one more, without clients.
    async fn add(&self) -> Result<Arc<FleetMember>, String> {
        let address = format!("headwater{}:3306", self.members().len() + 1);
        let random = lock(&self.random).fork();
        let source = Box::new(ChangingSettings::new(&self.plan, &address, random));
        let (settings, mut sockets) = (self.plan.settings(&address), InheritedSockets::default());
        let headwater = Headwater::bind_reloadable(&mut sockets, &settings, source)
            .await
            .map_err(|it| it.to_string())?;
        let (current, reloads) = (headwater.current(), headwater.reloader());
        tokio::spawn(headwater.announce());
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(headwater.run(async {
            let _ = stopped.await;
        }));
        let member = Arc::new(FleetMember {
            address,
            current,
            reloads,
            running: Mutex::new(Some((stop, running))),
            in_use: AtomicBool::new(false),
        });
        lock(&self.members).push(Arc::clone(&member));
        Ok(member)
    }

    /// Starts one more, and after this time of preparation lets it take over from the oldest.
    pub(crate) async fn take_over(
        &self,
        getting_ready: Duration,
        farewell: ProxyFarewell,
    ) -> Result<(), String> {
        let _alone = self.succession.lock().await;
        let successor = self.add().await?;
        successor.follow(getting_ready).await;
        successor.in_use.store(true, Ordering::Relaxed);
        let first = self.in_use().into_iter().next();
        let Some(predecessor) = first.filter(|it| it.address != successor.address) else {
            return Ok(());
        };
        predecessor.in_use.store(false, Ordering::Relaxed);
        let handed_over = farewell == ProxyFarewell::Takeover;
        let shared = predecessor.shared();
        shared.handed_over.store(handed_over, Ordering::Relaxed);
        end(&predecessor).await
    }

    /// The Headwaters that clients connect to, in the order of their start.
    pub(crate) fn in_use(&self) -> Vec<Arc<FleetMember>> {
        let members = self.members();
        members.into_iter().filter(|it| it.is_in_use()).collect()
    }

    /// The address that this client connects to.
    pub(crate) fn address(&self, client: u64) -> String {
        let in_use = self.in_use();
        in_use[client as usize % in_use.len()].address.clone()
    }

    pub(crate) fn members(&self) -> Vec<Arc<FleetMember>> {
        lock(&self.members).clone()
    }

    /// The sum of an event's counters over all Headwaters.
    pub(crate) fn count(&self, event: SessionEvent) -> u64 {
        let members = self.members();
        members
            .iter()
            .map(|it| it.shared().counters.count_of(event))
            .sum()
    }

    pub(crate) async fn reload(&self) -> Result<(), String> {
        for member in self.in_use() {
            member.reloads.reload().await?;
        }
        Ok(())
    }

    /// Waits until no takeover is in progress.
    pub(crate) async fn wait_for_takeovers(&self) {
        drop(self.succession.lock().await);
    }

    /// The counters of each Headwater.
    pub(crate) fn summaries(&self) -> String {
        let members = self.members();
        let lines: Vec<String> = members.iter().map(|it| it.shared().summary()).collect();
        lines.join("\n")
    }

    /// Ends all Headwaters.
    pub(crate) async fn end(&self) -> Result<(), String> {
        for member in self.members() {
            end(&member).await?;
        }
        Ok(())
    }
}

async fn end(member: &FleetMember) -> Result<(), String> {
    let running = lock(&member.running).take();
    if let Some((stop, running)) = running {
        let _ = stop.send(());
        running.await.map_err(|it| it.to_string())?;
    }
    Ok(())
}
