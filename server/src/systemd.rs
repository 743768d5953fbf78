//! Notifications to a service manager (`Type=notify`): ready, reloading, stopping, and the watchdog's, while all threads run. Without a
//! service manager, nothing is sent.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::shards::LivenessProbe;

/// Reports that clients are accepted.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports that a reload (SIGHUP) has begun; [`ready`] ends it.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!("the service manager is not told of a reload: {error}"),
    }
}

/// Reports that no more clients are accepted.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Reports that another process is the service's main process from here on.
pub fn notify_main_pid(pid: u32) {
    notify(&[NotifyState::MainPid(pid)]);
}

/// Feeds the watchdog, if there is one, while all threads respond.
pub async fn feed_watchdog(pulse: LivenessProbe) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    let every = (limit / 3).max(Duration::from_millis(10));
    loop {
        if pulse.responds(every).await {
            notify(&[NotifyState::Watchdog]);
        } else {
            tracing::error!(
                "a thread has not responded for {every:?}: the service manager's watchdog is not fed"
            );
        }
        tokio::time::sleep(every).await;
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("the service manager (NOTIFY_SOCKET) cannot be told {state:?}: {error}");
    }
}
