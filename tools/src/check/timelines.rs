//! Each definition in each database: what will serve its calls, and why not memory.

use std::time::Duration;

use super::serving_goal::{ComparisonPolicy, ServingGoal};
use super::{CheckError, CheckedServer, account, databases};
use headwater_proxy::account::{
    AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount,
};
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_proxy::binlog::server_facts::BinlogObstacle;
use headwater_proxy::binlog::{MAX_TIMELINES, obstacle_survey};
use headwater_proxy::catalogue::{ServiceError, denied_forms, execute_probes, query_all};
use headwater_proxy::spread;
use headwater_proxy::tls::UpstreamTlsSection;
use headwater_server::config::ServeSettings;
use headwater_timeline::check::{self, DefinitionVerdict, ProcedureStatus, RelayReason};
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};

/// Whether an account may see bodies can be queried in any database; this one exists everywhere.
const PLACEHOLDER_DATABASE: &str = "mysql";

/// A definition in a database, or in none.
#[derive(Debug)]
pub(super) struct TimelineFinding {
    pub(super) definition: TimelineDefinition,
    /// `None`: no database was found that has its tables.
    pub(super) database: Option<String>,
    /// What will serve its calls, in the order of [`ProcedureForm::ALL`].
    pub(super) calls: Vec<(ProcedureForm, CallAnswerSource)>,
    pub(super) missing: Vec<RequiredPrivilege>,
}

/// What will serve a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallAnswerSource {
    Memory(ProcedureStatus),
    /// Memory, once the tables have changed.
    MemoryLater,
    /// Lookups on the client's connection, since the settings do not ask for memory.
    Lookups(ProcedureStatus),
    /// Lookups, for these obstacles to memory.
    ObstructedLookups(Vec<String>),
    Relay(String),
}

impl CallAnswerSource {
    /// In one word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            CallAnswerSource::Memory(_) | CallAnswerSource::MemoryLater => "memory",
            CallAnswerSource::Lookups(_) | CallAnswerSource::ObstructedLookups(_) => "lookups",
            CallAnswerSource::Relay(_) => "relay",
        }
    }

    /// True if it is what the settings ask for.
    pub(super) fn is_optimal(&self) -> bool {
        matches!(
            self,
            CallAnswerSource::Memory(_) | CallAnswerSource::Lookups(_)
        )
    }

    /// The reasons, a line each.
    pub(super) fn reasons(&self) -> Vec<String> {
        match self {
            CallAnswerSource::Memory(procedure) | CallAnswerSource::Lookups(procedure) => {
                vec![procedure_text(*procedure).to_owned()]
            }
            CallAnswerSource::MemoryLater => vec![format!(
                "from the next change of its tables on; at once with the right {}",
                RequiredPrivilege::OpenTransactions.grant_target()
            )],
            CallAnswerSource::ObstructedLookups(reasons) => reasons.clone(),
            CallAnswerSource::Relay(reason) => vec![reason.clone()],
        }
    }
}

/// The tables are queried for each answer, by the account that calls.
const NO_PROCEDURE_REASON: &str = "there is no procedure: the definition is served, by lookups, since nothing says who may have what is in memory; \
     with the procedure it is answered from there";

/// A Spider table is changed on the data nodes.
const SPREAD_UNFOLLOWED: &str = "spread by Spider, and binlog.data_nodes = false: the log of this server does not hold what others write on data nodes";

fn procedure_text(procedure: ProcedureStatus) -> &'static str {
    match procedure {
        ProcedureStatus::Known => "the procedure is as known",
        ProcedureStatus::Trusted => "the procedure is trusted unseen (trust_unseen_body)",
        ProcedureStatus::Absent => "there is no procedure: the definition is served",
    }
}

/// Every definition, in every database where the account sees its tables.
pub(super) async fn find_timelines(
    conn: &mut AccountConnection,
    settings: &ServeSettings,
    account: &UpstreamAccount,
    server: &CheckedServer,
) -> Result<Vec<TimelineFinding>, CheckError> {
    let patience = Duration::from_millis(settings.limits.check_ms);
    let tls = settings.binlog.data_nodes.then_some(&settings.upstream_tls);
    let mut all = Vec::new();
    let mut places = 0;
    for definition in &settings.definitions {
        let query = check::databases_query(definition, settings.limits.databases);
        let databases = databases(conn, definition.database.as_ref(), query).await?;
        if databases.is_empty() && settings.are_feeds_alone() {
            continue;
        }
        if databases.is_empty() {
            let answers =
                query_all(conn, &check::queries(definition, PLACEHOLDER_DATABASE)).await?;
            let hidden = check::hides_bodies(definition, &answers);
            all.push(TimelineFinding {
                definition: definition.clone(),
                database: None,
                calls: Vec::new(),
                missing: hidden
                    .then_some(RequiredPrivilege::Bodies(server.product))
                    .into_iter()
                    .collect(),
            });
        }
        for database in databases {
            let observing = tokio::time::timeout(
                patience,
                observe_timeline(account, definition, &database, (server.compares, tls)),
            );
            let observation = match observing.await {
                Ok(observation) => observation.map_err(ServiceError::from),
                Err(_) => Err(ServiceError::TimedOut(patience)),
            };
            let observation = observation.unwrap_or_else(|error| TimelineObservation {
                verdict: Err(error.to_string()),
                bodies_hidden: false,
                obstacles: Vec::new(),
                denied: Vec::new(),
                data_node_obstacles: Vec::new(),
            });
            let finding = evaluate_calls(
                server,
                definition,
                &database,
                observation,
                places >= MAX_TIMELINES,
            );
            places += usize::from(
                finding
                    .calls
                    .iter()
                    .any(|(_, call)| call.word() == "memory"),
            );
            all.push(finding);
        }
    }
    Ok(all)
}

/// What the server reports about a definition in a database.
#[derive(Debug)]
struct TimelineObservation {
    verdict: Result<DefinitionVerdict, String>,
    bodies_hidden: bool,
    obstacles: Vec<BinlogObstacle>,
    /// Procedures that the account must run and may not.
    denied: Vec<RequiredPrivilege>,
    /// What prevents following the logs of data nodes.
    data_node_obstacles: Vec<String>,
}

/// Queries on a separate connection: one that hangs blocks no other.
async fn observe_timeline(
    account: &UpstreamAccount,
    definition: &TimelineDefinition,
    database: &str,
    (compares, tls): (ComparisonPolicy, Option<&UpstreamTlsSection>),
) -> Result<TimelineObservation, AccountError> {
    let mut conn = AccountConnection::open(account, ConnectionPurpose::Loads).await?;
    let answers = query_all(&mut conn, &check::queries(definition, database)).await?;
    let verdict = check::evaluate(definition, database, &answers);
    let forms = match (compares, &verdict) {
        (ComparisonPolicy::Requested, _) => ProcedureForm::ALL.to_vec(),
        (ComparisonPolicy::WherePossible, DefinitionVerdict::Accelerate(facts)) => {
            facts.callable_forms()
        }
        _ => Vec::new(),
    };
    let spread = matches!(&verdict, DefinitionVerdict::Accelerate(facts) if facts.is_spread());
    let on_nodes = match tls {
        _ if !spread => Vec::new(),
        Some(tls) => spread::obstacles(account, tls, definition, database).await,
        None => vec![SPREAD_UNFOLLOWED.to_owned()],
    };
    Ok(TimelineObservation {
        data_node_obstacles: on_nodes,
        verdict: Ok(verdict),
        bodies_hidden: check::hides_bodies(definition, &answers),
        obstacles: obstacle_survey::timeline_obstacles(&mut conn, definition, database).await?,
        denied: {
            let answers =
                query_all(&mut conn, &execute_probes(definition, database, &forms)).await?;
            let denied = denied_forms(&forms, &answers).into_iter();
            denied
                .map(|form| account::execute_privilege(definition, form, database))
                .collect()
        },
    })
}

fn evaluate_calls(
    server: &CheckedServer,
    definition: &TimelineDefinition,
    database: &str,
    observation: TimelineObservation,
    full: bool,
) -> TimelineFinding {
    let mut missing = Vec::new();
    let mut in_the_way = Vec::new();
    if full {
        in_the_way.push(format!(
            "memory is for the first {MAX_TIMELINES} timelines that are called, and here are more"
        ));
    }
    in_the_way.extend(observation.data_node_obstacles);
    if server.is_log_unavailable() {
        in_the_way.push("the server's log cannot be followed: see above".to_owned());
    }
    for obstacle in observation.obstacles {
        match obstacle {
            BinlogObstacle::Right(right) => {
                in_the_way.push(format!("{} is missing", right.grant_target()));
                missing.push(right);
            }
            obstacle => in_the_way.push(obstacle.to_string()),
        }
    }
    if observation.bodies_hidden {
        missing.push(RequiredPrivilege::Bodies(server.product));
    }
    missing.extend(observation.denied);
    let calls = ProcedureForm::ALL.map(|form| {
        let procedure = procedure(&observation.verdict, form, database);
        let source = match procedure {
            Err(reason) => CallAnswerSource::Relay(reason),
            Ok(_) if !server.session_variables.is_empty() => CallAnswerSource::Relay(
                "of settings with which sessions start: see above".to_owned(),
            ),
            Ok(procedure) if server.goal == ServingGoal::Lookups => {
                CallAnswerSource::Lookups(procedure)
            }
            Ok(ProcedureStatus::Absent) => {
                CallAnswerSource::ObstructedLookups(vec![NO_PROCEDURE_REASON.to_owned()])
            }
            Ok(_) if !in_the_way.is_empty() => {
                CallAnswerSource::ObstructedLookups(in_the_way.clone())
            }
            Ok(_) if server.cannot_list_transactions() => CallAnswerSource::MemoryLater,
            Ok(procedure) => CallAnswerSource::Memory(procedure),
        };
        (form, source)
    });
    TimelineFinding {
        definition: definition.clone(),
        database: Some(database.to_owned()),
        calls: calls.into(),
        missing,
    }
}

/// The status of a form's procedure, or why its calls are relayed.
fn procedure(
    verdict: &Result<DefinitionVerdict, String>,
    form: ProcedureForm,
    database: &str,
) -> Result<ProcedureStatus, String> {
    if !database.is_ascii() {
        return Err("the database's name is not plain ASCII".to_owned());
    }
    let reason_text = |reason: &RelayReason| reason.to_string();
    match verdict {
        Ok(DefinitionVerdict::Accelerate(facts)) => facts
            .procedure_status(form)
            .as_ref()
            .copied()
            .map_err(reason_text),
        Ok(DefinitionVerdict::Relay(reason)) => Err(reason_text(reason)),
        Err(failure) => Err(failure.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_sql::NameCase;
    use headwater_timeline::check::ServerProduct;

    fn server(obstacles: Vec<BinlogObstacle>) -> CheckedServer {
        CheckedServer {
            product: ServerProduct::Mysql,
            account: "`a`@`%`".into(),
            goal: ServingGoal::Memory,
            compares: ComparisonPolicy::Never,
            obstacles,
            session_variables: Vec::new(),
            case: NameCase::Sensitive,
        }
    }

    fn stands(server: &CheckedServer, database: &str, full: bool) -> Vec<CallAnswerSource> {
        let look = TimelineObservation {
            data_node_obstacles: Vec::new(),
            verdict: Ok(DefinitionVerdict::Accelerate(std::sync::Arc::new(
                check::DefinitionFacts {
                    bounded: Err(RelayReason::NoHelper {
                        procedure: "helper".into(),
                    }),
                    heads: Ok(ProcedureStatus::Absent),
                    ..check::DefinitionFacts::known(ServerProduct::Mysql)
                },
            ))),
            bodies_hidden: false,
            obstacles: Vec::new(),
            denied: Vec::new(),
        };
        let found = evaluate_calls(server, &TimelineDefinition::classic(), database, look, full);
        found.calls.into_iter().map(|(_, call)| call).collect()
    }

    fn words(server: &CheckedServer, database: &str, full: bool) -> Vec<&'static str> {
        let standings = stands(server, database, full);
        standings.iter().map(CallAnswerSource::word).collect()
    }

    #[test]
    fn each_call_has_a_verdict_of_its_own() {
        let fine = server(Vec::new());
        assert_eq!(words(&fine, "app", false), ["memory", "relay", "lookups"]);
        assert_eq!(words(&fine, "app", true), ["lookups", "relay", "lookups"]);
        assert_eq!(words(&fine, "für", false), ["relay"; 3]);
        let unfollowed = server(vec![BinlogObstacle::Right(RequiredPrivilege::FollowLog)]);
        assert_eq!(
            words(&unfollowed, "app", false),
            ["lookups", "relay", "lookups"]
        );
        let lookups = CheckedServer {
            goal: ServingGoal::Lookups,
            ..server(Vec::new())
        };
        assert_eq!(
            words(&lookups, "app", false),
            ["lookups", "relay", "lookups"]
        );
        let odd = CheckedServer {
            session_variables: vec![("sql_safe_updates", "1".into())],
            ..server(Vec::new())
        };
        assert_eq!(words(&odd, "app", false), ["relay"; 3]);
    }

    #[test]
    fn memory_that_has_to_wait_is_not_the_best() {
        let waiting = server(vec![BinlogObstacle::Right(
            RequiredPrivilege::OpenTransactions,
        )]);
        let standings = stands(&waiting, "app", false);
        assert_eq!(standings.first(), Some(&CallAnswerSource::MemoryLater));
        assert!(!CallAnswerSource::MemoryLater.is_optimal());
    }
}
