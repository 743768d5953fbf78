//! What a process does that takes over from another one, and lets a third one take over from it.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Server;
use super::takeover::{Copies, Offer, Predecessor, TakeoverError};
use crate::clock;
use crate::config::TakeoverSection;
use crate::session::shared::Shared;

/// So often it is looked whether memory is ready.
const EVERY: Duration = Duration::from_millis(20);

impl Server {
    /// Gets ready for calls while the other process goes on, for `takeover.warm_ms` at most, and then takes its place. Nothing has
    /// happened to the other one if this is dropped before.
    pub async fn take_over(&mut self, predecessor: Predecessor, section: &TakeoverSection) {
        self.begin().await;
        let began = clock::now();
        let limit = Duration::from_millis(section.warm_ms);
        match tokio::time::timeout(limit, self.warmed()).await {
            Ok(()) => tracing::info!("warm after {:.1} s", clock::since(began).as_secs_f64()),
            Err(_) => tracing::warn!(
                "not warm within takeover.warm_ms = {}, takes over as it is: {}",
                section.warm_ms,
                self.lacks()
            ),
        }
        self.control = Some(predecessor.go().await);
        self.files_kept.store(false, Ordering::Relaxed);
    }

    /// What another process may take over, where it may.
    ///
    /// # Errors
    /// The socket that it would ask at cannot be opened.
    pub fn offer(&mut self, section: &TakeoverSection) -> Result<Option<Offer>, TakeoverError> {
        let Some(path) = &section.socket else {
            return Ok(None);
        };
        let copies = || {
            let (port, local) = self.listener.copies()?;
            let doors = self.doors.iter().map(|door| door.listener.copies());
            let doors = doors.map(|copies| Ok(copies?.0));
            let doors = doors.collect::<io::Result<_>>()?;
            let admin = self.admin.as_ref().map(|admin| admin.copy()).transpose()?;
            Ok(Copies {
                port,
                doors,
                local,
                admin,
                keeps_file: self.keeps_file,
            })
        };
        let copies = copies().map_err(|source| TakeoverError::Open {
            path: path.clone(),
            source,
        })?;
        let (shared, kept) = (self.shared(), self.files_kept.clone());
        Offer::new(path, self.control.take(), copies, shared, kept).map(Some)
    }

    /// Definitions and feeds are checked, the server's log is followed, and what is loaded at the start is there.
    async fn warmed(&self) {
        let mut announced = self.announced.subscribe();
        let _ = announced.wait_for(|announced| *announced).await;
        is_warm(&self.shared()).await;
        for replicas in &self.replicas {
            // Without a replica there is nothing to follow.
            if replicas.entry.target.aim().is_some() {
                is_warm(&replicas.current.shared()).await;
            }
        }
    }

    /// Why it is not warm.
    fn lacks(&self) -> String {
        if !*self.announced.borrow() {
            return "definitions are not checked yet".to_owned();
        }
        let shared = self.shared();
        let binlog = shared.binlog.as_ref();
        match binlog.and_then(|binlog| binlog.aside()) {
            Some(aside) => format!("nothing is answered from memory: {}", aside.text),
            None => {
                "feeds are not looked at, or timelines are not loaded (index.preload)".to_owned()
            }
        }
    }
}

/// Waits until the memory of one server is.
async fn is_warm(shared: &Shared) {
    let Some(binlog) = &shared.binlog else {
        return;
    };
    let feeds = shared.feeds.as_ref();
    let looked = || feeds.is_none_or(|feeds| feeds.have_looked());
    while binlog.aside().is_some()
        || !looked()
        || !binlog.is_preloaded()
        || !binlog.is_fresh_now().await
    {
        tokio::time::sleep(EVERY).await;
    }
}

/// What sessions may be at that have not ended in time.
pub(super) fn left(shared: &Shared) -> &'static str {
    match shared.handed_over.load(Ordering::Relaxed) {
        true => "busy, or with something of their own,",
        false => "busy",
    }
}
