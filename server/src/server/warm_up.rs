//! The steps of a process that takes over from another one, and later offers its own sockets.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ProxyServer;
use super::takeover::{PredecessorProcess, SocketCopies, TakeoverError, TakeoverOffer};
use crate::config::TakeoverSection;
use headwater_proxy::clock;
use headwater_proxy::session::shared_state::SharedState;

/// Interval of polling whether memory is ready.
const WARM_POLL_INTERVAL: Duration = Duration::from_millis(20);

impl ProxyServer {
    /// Warms up while the other process continues, for `takeover.warm_ms` at most, then takes over. If dropped before, the other process is
    /// unaffected.
    pub async fn take_over(&mut self, predecessor: PredecessorProcess, section: &TakeoverSection) {
        self.start_background().await;
        let began = clock::now();
        let limit = Duration::from_millis(section.warm_ms);
        match tokio::time::timeout(limit, self.wait_until_warm()).await {
            Ok(()) => tracing::info!("warm after {:.1} s", clock::since(began).as_secs_f64()),
            Err(_) => tracing::warn!(
                "not warm within takeover.warm_ms = {}, takes over as it is: {}",
                section.warm_ms,
                self.cold_reason()
            ),
        }
        self.control = Some(predecessor.take_over().await);
        self.files_handed_over.store(false, Ordering::Relaxed);
    }

    /// Offers the sockets to the next process, if the settings allow it.
    ///
    /// # Errors
    /// The control socket cannot be opened.
    pub fn offer(
        &mut self,
        section: &TakeoverSection,
    ) -> Result<Option<TakeoverOffer>, TakeoverError> {
        let Some(path) = &section.socket else {
            return Ok(None);
        };
        let copies = || {
            let (port, local) = self.listener.duplicate_sockets()?;
            let ports = self
                .additional_ports
                .iter()
                .map(|door| door.listener.duplicate_sockets());
            let ports = ports.map(|copies| Ok(copies?.0));
            let ports = ports.collect::<io::Result<_>>()?;
            let admin = self
                .admin
                .as_ref()
                .map(|admin| admin.duplicate_listener())
                .transpose()?;
            Ok(SocketCopies {
                port,
                additional_ports: ports,
                local,
                admin,
                file_is_external: self.file_is_external,
            })
        };
        let copies = copies().map_err(|source| TakeoverError::Open {
            path: path.clone(),
            source,
        })?;
        let (shared, files_handed_over) = (self.shared(), self.files_handed_over.clone());
        TakeoverOffer::new(path, self.control.take(), copies, shared, files_handed_over).map(Some)
    }

    /// Waits until definitions and feeds are checked, the server's log is followed, and memory is preloaded.
    async fn wait_until_warm(&self) {
        let mut announced = self.announced.subscribe();
        let _ = announced.wait_for(|announced| *announced).await;
        wait_for_memory(&self.shared()).await;
        for replicas in &self.replica_listeners {
            // Without a replica there is no log to follow.
            if replicas.entry.target.select().is_some() {
                wait_for_memory(&replicas.current.shared()).await;
            }
        }
    }

    /// Why memory is not warm.
    fn cold_reason(&self) -> String {
        if !*self.announced.borrow() {
            return "definitions are not checked yet".to_owned();
        }
        let shared = self.shared();
        let binlog = shared.binlog.as_ref();
        match binlog.and_then(|binlog| binlog.suspension()) {
            Some(suspension) => format!("nothing is answered from memory: {}", suspension.text),
            None => {
                "feeds are not looked at, or timelines are not loaded (index.preload)".to_owned()
            }
        }
    }
}

/// Waits until the memory of one server is ready.
async fn wait_for_memory(shared: &SharedState) {
    let Some(binlog) = &shared.binlog else {
        return;
    };
    let feeds = shared.feeds.as_ref();
    let looked = || feeds.is_none_or(|feeds| feeds.has_checked_databases());
    while binlog.suspension().is_some()
        || !looked()
        || !binlog.is_preloaded()
        || !binlog.prove_freshness_now().await
    {
        tokio::time::sleep(WARM_POLL_INTERVAL).await;
    }
}

/// What sessions that have not ended in time may be doing.
pub(super) fn remaining_sessions(shared: &SharedState) -> &'static str {
    match shared.handed_over.load(Ordering::Relaxed) {
        true => "busy, or with something of their own,",
        false => "busy",
    }
}
