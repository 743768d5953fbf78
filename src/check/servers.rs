//! What each of several servers is, and the settings with the primary alone.

use std::time::Duration;

use super::CheckError;
use super::member::{self, Member};
use crate::account::Account;
use crate::cluster::{Role, Seen, Status};
use crate::config::{Servers, Settings};
use crate::tls::TlsError;
use crate::upstreams::{Upstreams, look_once, why};

/// What the servers are when they are asked once.
#[derive(Debug)]
pub(super) struct Found {
    servers: Vec<Looked>,
    primary: Option<usize>,
}

/// One of them.
#[derive(Debug)]
struct Looked {
    address: String,
    /// What the server is.
    status: Status,
    /// What else it was asked.
    member: Member,
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
    let primary = cluster.primary();
    let patience = Duration::from_millis(settings.limits.check_ms);
    let mut servers = Vec::new();
    for (place, (address, status)) in addresses.iter().zip(cluster.servers()).enumerate() {
        let only = upstreams.target().only(place);
        let member = match only.filter(|_| matches!(status.seen, Seen::Told(_))) {
            Some(only) => {
                let account = account.at(only);
                // Of the primary that is told with what else is in the way there.
                let waits = settings.accelerate && primary != Some(place);
                let looked = tokio::time::timeout(patience, member::look(&account, waits)).await;
                let unasked = |why: String| Member {
                    in_the_way: vec![format!("it was not asked further: {why}")],
                    ..Member::default()
                };
                match looked {
                    Ok(looked) => looked.unwrap_or_else(|error| unasked(error.to_string())),
                    Err(_) => unasked("it did not answer within limits.check_ms".to_owned()),
                }
            }
            None => Member::default(),
        };
        servers.push(Looked {
            address: address.clone(),
            status: status.clone(),
            member,
        });
    }
    Ok(Some(Found { servers, primary }))
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
        let Some(Looked { address, .. }) = primary else {
            let told: Vec<String> = self.servers.iter().map(Looked::line).collect();
            return Err(CheckError::NoPrimary(told.join("; ")));
        };
        Ok(Settings {
            upstream: Servers::one(address),
            listeners: Vec::new(),
            ..settings.clone()
        })
    }

    /// A line for each server, with what is in the way there and what is to be known.
    pub(super) fn lines(&self) -> impl Iterator<Item = (String, &[String], &[String])> {
        let servers = self.servers.iter();
        servers.map(|it| (it.line(), &*it.member.in_the_way, &*it.member.notes))
    }
}

impl Looked {
    fn line(&self) -> String {
        let what = match self.status.role {
            Role::Primary => "the primary".to_owned(),
            Role::Replica => "a replica".to_owned(),
            Role::Stray => {
                "takes writes that the primary does not get: set read_only there".to_owned()
            }
            Role::Unfit(fault) => format!("of no use: {fault}"),
            Role::Silent => format!(
                "does not tell the service account what it is: {}. The account has to be on every server, as replication brings it \
                 there",
                why(&self.status.seen)
            ),
            Role::Unknown | Role::Away => format!("unreachable: {}", why(&self.status.seen)),
        };
        format!("{}: {what}", self.address)
    }
}
