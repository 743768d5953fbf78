//! What each of several servers is, and the settings with the primary alone.

use std::time::Duration;

use super::CheckError;
use super::member::{self, MemberFindings};
use crate::account::UpstreamAccount;
use crate::cluster::{ServerObservation, ServerRole, ServerStatus};
use crate::config::{ServeSettings, UpstreamList};
use crate::tls::TlsError;
use crate::upstreams::{Upstreams, probe_once, unfit_reason};

/// What the servers are when they are asked once.
#[derive(Debug)]
pub(super) struct ServerSurvey {
    servers: Vec<SurveyedServer>,
    primary: Option<usize>,
}

/// One of them.
#[derive(Debug)]
struct SurveyedServer {
    address: String,
    /// What the server is.
    status: ServerStatus,
    /// What else it was asked.
    member: MemberFindings,
}

/// What each of several servers is; `None`: there is one, which is not asked.
///
/// # Errors
/// When the settings of TLS cannot be used.
pub(super) async fn survey_servers(
    settings: &ServeSettings,
) -> Result<Option<ServerSurvey>, TlsError> {
    let addresses = settings.upstream.all();
    let Some(service) = settings.service.as_ref().filter(|_| addresses.len() > 1) else {
        return Ok(None);
    };
    let upstreams = Upstreams::new(addresses, &settings.upstream_tls, settings.failover, &[])?;
    let (user, password) = (&service.user, &service.password);
    let account = UpstreamAccount::for_target(upstreams.target().clone(), user, password);
    let cluster = probe_once(&upstreams, &account).await;
    let primary = cluster.primary();
    let patience = Duration::from_millis(settings.limits.check_ms);
    let mut servers = Vec::new();
    for (place, (address, status)) in addresses.iter().zip(cluster.servers()).enumerate() {
        let only = upstreams.target().server_at(place);
        let member = match only
            .filter(|_| matches!(status.observation, ServerObservation::Reported(_)))
        {
            Some(only) => {
                let account = account.with_target(only);
                // Of the primary that is told with what else is in the way there.
                let waits = settings.accelerate && primary != Some(place);
                let looked =
                    tokio::time::timeout(patience, member::survey_member(&account, waits)).await;
                let unasked = |why: String| MemberFindings {
                    obstacles: vec![format!("it was not asked further: {why}")],
                    ..MemberFindings::default()
                };
                match looked {
                    Ok(looked) => looked.unwrap_or_else(|error| unasked(error.to_string())),
                    Err(_) => unasked("it did not answer within limits.check_ms".to_owned()),
                }
            }
            None => MemberFindings::default(),
        };
        servers.push(SurveyedServer {
            address: address.clone(),
            status: status.clone(),
            member,
        });
    }
    Ok(Some(ServerSurvey { servers, primary }))
}

/// The same settings with the server alone that is the primary now.
///
/// # Errors
/// When there is none, or the settings of TLS cannot be used.
pub(crate) async fn primary_settings(
    settings: &ServeSettings,
) -> Result<ServeSettings, CheckError> {
    match survey_servers(settings).await? {
        Some(found) => found.primary_settings(settings),
        None => Ok(settings.clone()),
    }
}

impl ServerSurvey {
    /// The same settings with the server alone that is the primary.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn primary_settings(
        &self,
        settings: &ServeSettings,
    ) -> Result<ServeSettings, CheckError> {
        let primary = self.primary.and_then(|primary| self.servers.get(primary));
        let Some(SurveyedServer { address, .. }) = primary else {
            let told: Vec<String> = self.servers.iter().map(SurveyedServer::line).collect();
            return Err(CheckError::NoPrimary(told.join("; ")));
        };
        Ok(ServeSettings {
            upstream: UpstreamList::one(address),
            listeners: Vec::new(),
            ..settings.clone()
        })
    }

    /// A line for each server, with what is in the way there and what is to be known.
    pub(super) fn lines(&self) -> impl Iterator<Item = (String, &[String], &[String])> {
        let servers = self.servers.iter();
        servers.map(|it| (it.line(), &*it.member.obstacles, &*it.member.notes))
    }
}

impl SurveyedServer {
    fn line(&self) -> String {
        let what = match self.status.role {
            ServerRole::Primary => "the primary".to_owned(),
            ServerRole::Replica => "a replica".to_owned(),
            ServerRole::Stray => {
                "takes writes that the primary does not get: set read_only there".to_owned()
            }
            ServerRole::Unfit(fault) => format!("of no use: {fault}"),
            ServerRole::Silent => format!(
                "does not tell the service account what it is: {}. The account has to be on every server, as replication brings it \
                 there",
                unfit_reason(&self.status.observation)
            ),
            ServerRole::Unknown | ServerRole::Away => {
                format!("unreachable: {}", unfit_reason(&self.status.observation))
            }
        };
        format!("{}: {what}", self.address)
    }
}
