//! What a service manager is told (`Type=notify`): that clients are taken, that settings are read again, that Headwater stops, and, for its
//! watchdog, that all threads still run. Without one nothing is told to anybody.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::shards::LivenessProbe;

/// Clients are taken.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// What SIGHUP asks for is under way; [`ready`] ends it.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!("the service manager is not told of a reload: {error}"),
    }
}

/// No more clients are taken.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Another process is the service from here on.
pub fn notify_main_pid(pid: u32) {
    notify(&[NotifyState::MainPid(pid)]);
}

/// Feeds the watchdog, where there is one, as long as all threads respond.
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
