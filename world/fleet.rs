//! The Headwaters of a world: one, two side by side, or one that takes the place of another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use headwater::server::{ProxyServer as Headwater, SettingsReloader};
use headwater::session::current_generation::CurrentGeneration;
use headwater::session::session_counters::SessionEvent;
use headwater::session::shared_state::SharedState;
use headwater::sockets::InheritedSockets;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::operator::ChangingSettings;
use crate::plan::WorldPlan;
use crate::random::Random;

/// How a Headwater ends that another one follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyFarewell {
    /// It is shut down: sessions at rest end at once.
    Shutdown,
    /// It is taken over from: sessions that have something of their own go on for a while.
    Takeover,
}

/// All that there are and were.
pub(crate) struct ProxyFleet {
    plan: WorldPlan,
    random: Mutex<Random>,
    members: Mutex<Vec<Arc<FleetMember>>>,
    /// Held while one takes another's place.
    succession: tokio::sync::Mutex<()>,
}

/// One Headwater.
pub(crate) struct FleetMember {
    address: String,
    current: Arc<CurrentGeneration>,
    reloads: Arc<SettingsReloader>,
    /// What stops it, and its end.
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    /// Clients connect to it.
    in_use: AtomicBool,
}

impl FleetMember {
    pub(crate) fn shared(&self) -> Arc<SharedState> {
        self.current.shared()
    }

    /// Waits for a while until the log is followed.
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

    /// One more, which nobody connects to yet.
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

    /// Starts one more, and has it take the place of the one that has been there for longest, once it has got ready for so long.
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

    /// What every client connects to, in the order in which they were started.
    pub(crate) fn in_use(&self) -> Vec<Arc<FleetMember>> {
        let members = self.members();
        members.into_iter().filter(|it| it.is_in_use()).collect()
    }

    /// Where this client connects to.
    pub(crate) fn address(&self, client: u64) -> String {
        let in_use = self.in_use();
        in_use[client as usize % in_use.len()].address.clone()
    }

    pub(crate) fn members(&self) -> Vec<Arc<FleetMember>> {
        lock(&self.members).clone()
    }

    /// So often this happened, to all of them together.
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

    /// Waits until nobody is taking another's place.
    pub(crate) async fn wait_for_takeovers(&self) {
        drop(self.succession.lock().await);
    }

    /// What each has counted.
    pub(crate) fn summaries(&self) -> String {
        let members = self.members();
        let lines: Vec<String> = members.iter().map(|it| it.shared().summary()).collect();
        lines.join("\n")
    }

    /// Ends all.
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
