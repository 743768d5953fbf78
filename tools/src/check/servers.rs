//! The role of each of several servers, and the settings reduced to the primary.

use std::time::Duration;

use super::CheckError;
use super::member::{self, MemberFindings};
use headwater_cluster::{ServerObservation, ServerRole, ServerStatus};
use headwater_proxy::account::UpstreamAccount;
use headwater_proxy::tls::TlsError;
use headwater_proxy::upstreams::{Upstreams, probe_once, unfit_reason};
use headwater_server::config::{ServeSettings, UpstreamList};

#[derive(Debug)]
pub(super) struct ServerSurvey {
    servers: Vec<SurveyedServer>,
    primary: Option<usize>,
}

#[derive(Debug)]
struct SurveyedServer {
    address: String,
    status: ServerStatus,
    member: MemberFindings,
}

/// Probes each of several servers; `None`: there is one, which is not probed.
///
/// # Errors
/// When the TLS settings cannot be used.
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
    for (index, (address, status)) in addresses.iter().zip(cluster.servers()).enumerate() {
        let only = upstreams.target().server_at(index);
        let member = match only
            .filter(|_| matches!(status.observation, ServerObservation::Reported(_)))
        {
            Some(only) => {
                let account = account.with_target(only);
                // The primary's waits are reported with its other obstacles.
                let waits = settings.accelerate && primary != Some(index);
                let survey =
                    tokio::time::timeout(patience, member::survey_member(&account, waits)).await;
                let failed = |why: String| MemberFindings {
                    obstacles: vec![format!("it was not asked further: {why}")],
                    ..MemberFindings::default()
                };
                match survey {
                    Ok(findings) => findings.unwrap_or_else(|error| failed(error.to_string())),
                    Err(_) => failed("it did not answer within limits.check_ms".to_owned()),
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

/// The same settings with the current primary as the only server.
///
/// # Errors
/// When there is none, or the TLS settings cannot be used.
pub(crate) async fn primary_settings(
    settings: &ServeSettings,
) -> Result<ServeSettings, CheckError> {
    match survey_servers(settings).await? {
        Some(survey) => survey.primary_settings(settings),
        None => Ok(settings.clone()),
    }
}

impl ServerSurvey {
    /// The same settings with the primary as the only server.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn primary_settings(
        &self,
        settings: &ServeSettings,
    ) -> Result<ServeSettings, CheckError> {
        let primary = self.primary.and_then(|primary| self.servers.get(primary));
        let Some(SurveyedServer { address, .. }) = primary else {
            let lines: Vec<String> = self.servers.iter().map(SurveyedServer::line).collect();
            return Err(CheckError::NoPrimary(lines.join("; ")));
        };
        Ok(ServeSettings {
            upstream: UpstreamList::one(address),
            listeners: Vec::new(),
            ..settings.clone()
        })
    }

    /// A line for each server, with its obstacles and its notes.
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
