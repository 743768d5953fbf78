//! What each of several servers is, and the settings with the primary alone.

use super::CheckError;
use crate::account::Account;
use crate::cluster::{Role, Status};
use crate::config::{Servers, Settings};
use crate::tls::TlsError;
use crate::upstreams::{Upstreams, look_once, why};

/// What the servers are when they are asked once.
#[derive(Debug)]
pub(super) struct Found {
    /// Each address, and what the server is.
    servers: Vec<(String, Status)>,
    primary: Option<usize>,
}

/// What each of several servers is; `None`: there is one, which is not asked.
///
/// # Errors
/// When the settings of TLS cannot be used.
pub(super) async fn look(settings: &Settings) -> Result<Option<Found>, TlsError> {
    let addresses = settings.upstream.all();
    let Some(service) = settings.service.as_ref().filter(|_| addresses.len() > 1) else {
        return Ok(None);
    };
    let upstreams = Upstreams::new(addresses, &settings.upstream_tls, settings.failover, &[])?;
    let (user, password) = (&service.user, &service.password);
    let account = Account::toward(upstreams.target().clone(), user, password);
    let cluster = look_once(&upstreams, &account).await;
    let statuses = cluster.servers().iter().cloned();
    Ok(Some(Found {
        servers: addresses.iter().cloned().zip(statuses).collect(),
        primary: cluster.primary(),
    }))
}

/// The same settings with the server alone that is the primary now.
///
/// # Errors
/// When there is none, or the settings of TLS cannot be used.
pub(crate) async fn of_primary(settings: &Settings) -> Result<Settings, CheckError> {
    match look(settings).await? {
        Some(found) => found.of_primary(settings),
        None => Ok(settings.clone()),
    }
}

impl Found {
    /// The same settings with the server alone that is the primary.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn of_primary(&self, settings: &Settings) -> Result<Settings, CheckError> {
        let primary = self.primary.and_then(|primary| self.servers.get(primary));
        let Some((address, _)) = primary else {
            let told: Vec<String> = self.lines().collect();
            return Err(CheckError::NoPrimary(told.join("; ")));
        };
        Ok(Settings {
            upstream: Servers::one(address),
            listeners: Vec::new(),
            ..settings.clone()
        })
    }

    /// A line for each server.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let line = |(address, status): &(String, Status)| {
            let what = match status.role {
                Role::Primary => "the primary".to_owned(),
                Role::Replica => "a replica".to_owned(),
                Role::Stray => {
                    "takes writes that the primary does not get: set read_only there".to_owned()
                }
                Role::Unfit(fault) => format!("of no use: {fault}"),
                Role::Unknown | Role::Silent | Role::Away => {
                    format!("unreachable: {}", why(&status.seen))
                }
            };
            format!("{address}: {what}")
        };
        self.servers.iter().map(line)
    }
}
