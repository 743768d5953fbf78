//! Each definition in each database: what will answer its calls, and why not memory.

use std::time::Duration;

use super::goal::{Compares, Goal};
use super::{CheckError, Server, account, databases};
use crate::account::{Account, AccountError, Conn, Purpose};
use crate::binlog::obstacles::Obstacle;
use crate::binlog::right::Right;
use crate::binlog::{MOST_PLACES, survey};
use crate::catalogue::{ServiceError, ask, denied, runs};
use crate::config::Settings;
use crate::spread;
use crate::timeline::check::{self, Procedure, Reason, Verdict};
use crate::timeline::definition::{Definition, Form};
use crate::tls::UpstreamTlsSection;

/// Whether an account may see bodies can be asked of any database; this one is everywhere.
const ANYWHERE: &str = "mysql";

/// A definition in a database, or in none.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) definition: Definition,
    /// `None` where no database was found that has its tables.
    pub(super) database: Option<String>,
    /// How its calls stand, in the order of [`Form::ALL`].
    pub(super) calls: Vec<(Form, Standing)>,
    /// Rights of the account that were seen to be missing.
    pub(super) missing: Vec<Right>,
}

/// What will answer a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The index.
    Memory(Procedure),
    /// The index, once the tables have changed.
    MemoryLater,
    /// Lookups on the client's connection, since memory is not asked for.
    Lookups(Procedure),
    /// Lookups, since these are in the way of memory.
    Pull(Vec<String>),
    /// The server's procedure.
    Relay(String),
}

impl Standing {
    /// In one word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Standing::Memory(_) | Standing::MemoryLater => "memory",
            Standing::Lookups(_) | Standing::Pull(_) => "lookups",
            Standing::Relay(_) => "relay",
        }
    }

    /// True when nothing is left to be wished for.
    pub(super) fn is_best(&self) -> bool {
        matches!(self, Standing::Memory(_) | Standing::Lookups(_))
    }

    /// Why so: a line for each reason.
    pub(super) fn why(&self) -> Vec<String> {
        match self {
            Standing::Memory(procedure) | Standing::Lookups(procedure) => {
                vec![seen(*procedure).to_owned()]
            }
            Standing::MemoryLater => vec![format!(
                "from the next change of its tables on; at once with the right {}",
                Right::OpenTransactions.named()
            )],
            Standing::Pull(reasons) => reasons.clone(),
            Standing::Relay(reason) => vec![reason.clone()],
        }
    }
}

/// The tables themselves are asked for each answer, by the account that calls.
const UNGUARDED: &str = "there is no procedure: the definition is served, by lookups, since nothing says who may have what is in memory; \
     with the procedure it is answered from there";

/// A table of Spider's is changed on the data nodes.
const SPREAD: &str = "spread by Spider, and binlog.data_nodes = false: the log of this server does not hold what others write on data nodes";

fn seen(procedure: Procedure) -> &'static str {
    match procedure {
        Procedure::Known => "the procedure is as known",
        Procedure::Trusted => "the procedure is trusted unseen (trust_unseen_body)",
        Procedure::Absent => "there is no procedure: the definition is served",
    }
}

/// Every definition, in every database where the account sees its tables.
pub(super) async fn all(
    conn: &mut Conn,
    settings: &Settings,
    account: &Account,
    server: &Server,
) -> Result<Vec<Found>, CheckError> {
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
            let answers = ask(conn, &check::queries(definition, ANYWHERE)).await?;
            let hidden = check::hides_bodies(definition, &answers);
            all.push(Found {
                definition: definition.clone(),
                database: None,
                calls: Vec::new(),
                missing: hidden
                    .then_some(Right::Bodies(server.product))
                    .into_iter()
                    .collect(),
            });
        }
        for database in databases {
            let asked = tokio::time::timeout(
                patience,
                look(account, definition, &database, (server.compares, tls)),
            );
            let look = match asked.await {
                Ok(look) => look.map_err(ServiceError::from),
                Err(_) => Err(ServiceError::Slow(patience)),
            };
            let look = look.unwrap_or_else(|error| Look {
                verdict: Err(error.to_string()),
                bodies_hidden: false,
                obstacles: Vec::new(),
                denied: Vec::new(),
                on_nodes: Vec::new(),
            });
            let found = judge(server, definition, &database, look, places >= MOST_PLACES);
            places += usize::from(found.calls.iter().any(|(_, call)| call.word() == "memory"));
            all.push(found);
        }
    }
    Ok(all)
}

/// What the server told of a definition in a database.
#[derive(Debug)]
struct Look {
    verdict: Result<Verdict, String>,
    bodies_hidden: bool,
    obstacles: Vec<Obstacle>,
    /// Procedures that the account may not run, though it is to.
    denied: Vec<Right>,
    /// What keeps the logs of data nodes from being followed.
    on_nodes: Vec<String>,
}

/// A connection of its own: one that is held up holds up no other.
async fn look(
    account: &Account,
    definition: &Definition,
    database: &str,
    (compares, tls): (Compares, Option<&UpstreamTlsSection>),
) -> Result<Look, AccountError> {
    let mut conn = Conn::open(account, Purpose::Loads).await?;
    let answers = ask(&mut conn, &check::queries(definition, database)).await?;
    let verdict = check::evaluate(definition, database, &answers);
    let forms = match (compares, &verdict) {
        (Compares::Wished, _) => Form::ALL.to_vec(),
        (Compares::WherePossible, Verdict::Accelerate(facts)) => facts.runnable(),
        _ => Vec::new(),
    };
    let spread = matches!(&verdict, Verdict::Accelerate(facts) if facts.are_spread());
    let on_nodes = match tls {
        _ if !spread => Vec::new(),
        Some(tls) => spread::obstacles(account, tls, definition, database).await,
        None => vec![SPREAD.to_owned()],
    };
    Ok(Look {
        on_nodes,
        verdict: Ok(verdict),
        bodies_hidden: check::hides_bodies(definition, &answers),
        obstacles: survey::timeline(&mut conn, definition, database).await?,
        denied: {
            let answers = ask(&mut conn, &runs(definition, database, &forms)).await?;
            let denied = denied(&forms, &answers).into_iter();
            denied
                .map(|form| account::execute(definition, form, database))
                .collect()
        },
    })
}

fn judge(
    server: &Server,
    definition: &Definition,
    database: &str,
    look: Look,
    full: bool,
) -> Found {
    let mut missing = Vec::new();
    let mut in_the_way = Vec::new();
    if full {
        in_the_way.push(format!(
            "memory is for the first {MOST_PLACES} timelines that are called, and here are more"
        ));
    }
    in_the_way.extend(look.on_nodes);
    if server.hides_the_log() {
        in_the_way.push("the server's log cannot be followed: see above".to_owned());
    }
    for obstacle in look.obstacles {
        match obstacle {
            Obstacle::Right(right) => {
                in_the_way.push(format!("{} is missing", right.named()));
                missing.push(right);
            }
            obstacle => in_the_way.push(obstacle.to_string()),
        }
    }
    if look.bodies_hidden {
        missing.push(Right::Bodies(server.product));
    }
    missing.extend(look.denied);
    let calls = Form::ALL.map(|form| {
        let procedure = procedure(&look.verdict, form, database);
        let standing = match procedure {
            Err(reason) => Standing::Relay(reason),
            Ok(_) if !server.sessions.is_empty() => {
                Standing::Relay("of settings with which sessions start: see above".to_owned())
            }
            Ok(procedure) if server.goal == Goal::Lookups => Standing::Lookups(procedure),
            Ok(Procedure::Absent) => Standing::Pull(vec![UNGUARDED.to_owned()]),
            Ok(_) if !in_the_way.is_empty() => Standing::Pull(in_the_way.clone()),
            Ok(_) if server.lists_no_transactions() => Standing::MemoryLater,
            Ok(procedure) => Standing::Memory(procedure),
        };
        (form, standing)
    });
    Found {
        definition: definition.clone(),
        database: Some(database.to_owned()),
        calls: calls.into(),
        missing,
    }
}

/// How a form's procedure stands, or why its calls are relayed.
fn procedure(
    verdict: &Result<Verdict, String>,
    form: Form,
    database: &str,
) -> Result<Procedure, String> {
    if !database.is_ascii() {
        return Err("the database's name is not plain ASCII".to_owned());
    }
    let said = |reason: &Reason| reason.to_string();
    match verdict {
        Ok(Verdict::Accelerate(facts)) => facts.form(form).as_ref().copied().map_err(said),
        Ok(Verdict::Relay(reason)) => Err(said(reason)),
        Err(failure) => Err(failure.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::NameCase;
    use crate::timeline::check::Product;

    fn server(obstacles: Vec<Obstacle>) -> Server {
        Server {
            product: Product::Mysql,
            account: "`a`@`%`".into(),
            goal: Goal::Memory,
            compares: Compares::Never,
            obstacles,
            sessions: Vec::new(),
            case: NameCase::Kept,
        }
    }

    fn stands(server: &Server, database: &str, full: bool) -> Vec<Standing> {
        let look = Look {
            on_nodes: Vec::new(),
            verdict: Ok(Verdict::Accelerate(std::sync::Arc::new(check::Facts {
                bounded: Err(Reason::NoHelper {
                    procedure: "helper".into(),
                }),
                heads: Ok(Procedure::Absent),
                ..check::Facts::known(Product::Mysql)
            }))),
            bodies_hidden: false,
            obstacles: Vec::new(),
            denied: Vec::new(),
        };
        let found = judge(server, &Definition::classic(), database, look, full);
        found.calls.into_iter().map(|(_, call)| call).collect()
    }

    fn words(server: &Server, database: &str, full: bool) -> Vec<&'static str> {
        let standings = stands(server, database, full);
        standings.iter().map(Standing::word).collect()
    }

    #[test]
    fn each_call_has_a_verdict_of_its_own() {
        let fine = server(Vec::new());
        assert_eq!(words(&fine, "app", false), ["memory", "relay", "lookups"]);
        assert_eq!(words(&fine, "app", true), ["lookups", "relay", "lookups"]);
        assert_eq!(words(&fine, "für", false), ["relay"; 3]);
        let unfollowed = server(vec![Obstacle::Right(Right::FollowLog)]);
        assert_eq!(
            words(&unfollowed, "app", false),
            ["lookups", "relay", "lookups"]
        );
        let lookups = Server {
            goal: Goal::Lookups,
            ..server(Vec::new())
        };
        assert_eq!(
            words(&lookups, "app", false),
            ["lookups", "relay", "lookups"]
        );
        let odd = Server {
            sessions: vec![("sql_safe_updates", "1".into())],
            ..server(Vec::new())
        };
        assert_eq!(words(&odd, "app", false), ["relay"; 3]);
    }

    #[test]
    fn memory_that_has_to_wait_is_not_the_best() {
        let waiting = server(vec![Obstacle::Right(Right::OpenTransactions)]);
        let standings = stands(&waiting, "app", false);
        assert_eq!(standings.first(), Some(&Standing::MemoryLater));
        assert!(!Standing::MemoryLater.is_best());
    }
}
