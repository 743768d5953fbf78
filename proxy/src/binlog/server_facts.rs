//! The server's settings and privileges that memory depends on, and the obstacles among them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::error::BinlogError;
pub use super::obstacle::BinlogObstacle;
use super::privilege::RequiredPrivilege;
use super::row_decoding::{first_text, log_end, text, texts};
use crate::account::{AccountConnection, AccountError};
use crate::clock;
use headwater_log::gtid::{GtidSource, parse_uuid_bytes};
use headwater_session::settings_probe::{ProbedServer, server_identity};
use headwater_sql::NameCase;
use headwater_timeline::check::ServerProduct;
use headwater_wire::resultset::ResultSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerFacts {
    pub(super) mariadb: bool,
    /// Which server it is: see [`server_identity`].
    pub(super) identity: String,
    /// How it compares names of databases and tables, and whether case is insignificant in its log.
    pub(super) case: NameCase,
    pub(super) caseless: bool,
    /// The statement that reports the position.
    pub(super) status: &'static str,
    /// Number of RESET statements counted before its log was read.
    pub(super) resets: Option<String>,
    /// The kind of cluster that it may be in.
    pub(super) cluster: Option<ReplicationClusterKind>,
    pub(super) version: String,
    /// When it was started, by its uptime in whole seconds; and how many connections it had counted by then.
    started: Option<(Instant, u64)>,
    /// Drawn anew at every start: the end of UUID(), without the time.
    run_id: String,
    /// Its transactions have GTIDs.
    pub(super) gtids: bool,
    /// The group that it is a member of, as the source of its GTIDs.
    pub(super) group: Option<GtidSource>,
}

/// The name of a proof session's prepared statement that reports the position.
const LOG_END: &str = "headwater_log_end";

/// Servers report their uptime in whole seconds.
const UPTIME_STEP: Duration = Duration::from_secs(2);

#[cfg(all(test, feature = "interleavings"))]
impl ServerFacts {
    pub(super) fn named(identity: &str) -> ServerFacts {
        ServerFacts {
            mariadb: true,
            identity: identity.to_owned(),
            case: NameCase::Sensitive,
            caseless: false,
            status: "",
            resets: None,
            cluster: None,
            version: String::new(),
            started: None,
            run_id: String::new(),
            gtids: false,
            group: None,
        }
    }
}

impl ServerFacts {
    /// The statements that a session runs before it proves anything.
    pub(super) fn proof_session_statements(&self) -> Vec<String> {
        let prepare = || format!("PREPARE {LOG_END} FROM '{}'", self.status);
        let session = |cluster: ReplicationClusterKind| {
            vec![cluster.session_statement().to_owned(), prepare()]
        };
        self.cluster.map(session).unwrap_or_default()
    }

    /// The query for the position in such a session. A cluster member answers it even while it holds up or forbids clients' reads. But it
    /// holds up or refuses EXECUTE like a SELECT of a table, whatever is executed.
    pub(super) fn log_end(&self) -> String {
        match self.cluster {
            Some(_) => format!("EXECUTE {LOG_END}"),
            None => self.status.to_owned(),
        }
    }

    /// True if `later` describes the same run of the same server, and its log was not reset.
    pub(super) fn is_same_run(&self, later: &ServerFacts) -> bool {
        let is_same =
            |((one, before), (other, later_connections)): ((Instant, u64), (Instant, u64))| {
                let difference = other.max(one) - other.min(one);
                difference <= UPTIME_STEP && before <= later_connections
            };
        self.identity == later.identity
            && self.run_id == later.run_id
            && self.resets == later.resets
            && self.started.zip(later.started).is_some_and(is_same)
    }

    pub(super) fn was_up_since(&self, then: Instant) -> bool {
        self.started
            .is_some_and(|(started, _)| started + UPTIME_STEP <= then)
    }

    /// The kind of server, for settings probes of its sessions.
    pub(super) fn session_request(&self) -> ProbedServer {
        ProbedServer {
            mariadb: self.mariadb,
            galera: self.cluster == Some(ReplicationClusterKind::Galera),
        }
    }
}

/// A cluster that may hold up or forbid a server's reads, while SHOW still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicationClusterKind {
    /// MySQL's Group Replication plugin is loaded, whether the server is a member now or not.
    Group,
    /// MariaDB is a Galera node.
    Galera,
}

impl ReplicationClusterKind {
    /// The statement after which a session's statements fail or wait wherever a client's SELECT would.
    pub(super) fn session_statement(self) -> &'static str {
        match self {
            // Waits for what a new primary has still to apply, and for what was promised to all members; fails on a member that is not
            // online.
            ReplicationClusterKind::Group => "SET SESSION group_replication_consistency = AFTER",
            // Fails on a node that has lost the others; does not wait for them.
            ReplicationClusterKind::Galera => {
                "SET SESSION wsrep_dirty_reads = OFF, wsrep_sync_wait = 0"
            }
        }
    }
}

/// Variables, the values under which the log contains everything, and the fault of other values. A variable that a server does not have is
/// no obstacle.
const REQUIRED_VARIABLES: [(&str, &[&str], &str); 4] = [
    (
        "log_bin",
        &["1", "ON"],
        "there is no log to follow; start the server with log_bin",
    ),
    (
        "binlog_format",
        &["ROW"],
        "changes are logged as statements; it has to be ROW (SET GLOBAL binlog_format = ROW; open sessions keep theirs)",
    ),
    (
        "binlog_order_commits",
        &["1", "ON"],
        "transactions become readable out of the log's order; it has to be ON (SET GLOBAL binlog_order_commits = ON)",
    ),
    (
        ENHANCED_BINLOG,
        &["0", "OFF"],
        "Aurora writes its log beside its engine, so rows may be readable before they are in the log; turn it off in the \
         cluster's parameter group (aurora_enhanced_binlog = 0, binlog_backup = 1) and restart the writer",
    ),
];
const ENABLED_VALUES: [&str; 2] = ["1", "ON"];
/// Galera's variables.
const GALERA_VARIABLE: &str = "wsrep_on";
const GALERA_TRANSFER: &str = "wsrep_sst_method";
/// A variable that only the Group Replication plugin defines.
const GROUP_VARIABLE: &str = "group_replication_group_name";
/// A parameter of Aurora, and a status of the same name (ACTIVE, say): the log is written beside the engine, not before it.
const ENHANCED_BINLOG: &str = "aurora_enhanced_binlog";

/// Access denied: to a database, an account, a table, a column, and for a missing global privilege.
const ACCESS_DENIED: [u16; 5] = [1044, 1045, 1142, 1143, 1227];
const SYNTAX_ERROR: u16 = 1064;

/// Reads the server's facts, if nothing prevents following its log, except for single tables.
///
/// # Errors
/// The first obstacle; or a query fails.
pub(super) async fn load_server_facts(
    conn: &mut AccountConnection,
) -> Result<ServerFacts, BinlogError> {
    let failed = BinlogError::while_doing("the server's settings cannot be read");
    let (facts, obstacles) = survey_server(conn).await.map_err(failed)?;
    match obstacles.into_iter().next() {
        Some(obstacle) => Err(obstacle.into()),
        None => Ok(facts),
    }
}

/// Queries everything that could prevent following the server's log, except for single tables.
///
/// # Errors
/// When the server cannot be queried.
pub(super) async fn survey_server(
    conn: &mut AccountConnection,
) -> Result<(ServerFacts, Vec<BinlogObstacle>), AccountError> {
    let version = first_text(conn, "SELECT VERSION()").await?;
    let names: Vec<String> = REQUIRED_VARIABLES
        .iter()
        .map(|(name, ..)| *name)
        .chain([
            "lower_case_table_names",
            "log_slave_updates",
            "log_replica_updates",
            "gtid_mode",
            "group_replication_group_name",
            GALERA_VARIABLE,
            GALERA_TRANSFER,
            GROUP_VARIABLE,
            "wsrep_gtid_mode",
        ])
        .map(|name| format!("'{name}'"))
        .collect();
    let rows = conn
        .rows(&format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})",
            names.join(",")
        ))
        .await?;
    let variables = values_by_name(&rows);
    let counted = conn
        .rows(&format!(
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_running', 'Com_reset', 'Uptime', 'Connections', '{ENHANCED_BINLOG}')"
        ))
        .await?;
    let counted = values_by_name(&counted);
    let mariadb = ServerProduct::from_version(&version) == ServerProduct::Mariadb;
    let value_of = |name: &str| variables.get(name).map(String::as_str);
    let counted_of = |name: &str| counted.get(name)?.parse::<u64>().ok();
    let mut obstacles = find_obstacles(mariadb, &variables, &counted);
    let status = position_statement(conn, is_off(&variables, "log_bin"), &mut obstacles).await?;
    let cluster = cluster(mariadb, &variables);
    let galera = cluster == Some(ReplicationClusterKind::Galera);
    let facts = ServerFacts {
        mariadb,
        identity: identity(conn, ProbedServer { mariadb, galera }).await?,
        case: value_of("lower_case_table_names")
            .map_or(NameCase::Sensitive, NameCase::from_variable),
        caseless: value_of("lower_case_table_names").is_some_and(|value| value != "0"),
        status,
        resets: counted.get("com_reset").cloned(),
        cluster,
        version,
        started: counted_of("uptime")
            .zip(counted_of("connections"))
            .and_then(|(uptime, connections)| {
                let started = clock::now().checked_sub(Duration::from_secs(uptime))?;
                Some((started, connections))
            }),
        run_id: first_text(conn, "SELECT SUBSTRING(UUID(), 20)").await?,
        gtids: if mariadb {
            // Otherwise each node of a Galera cluster has its own numbering.
            !galera || value_of("wsrep_gtid_mode").is_some_and(|mode| matches!(mode, "ON" | "1"))
        } else {
            value_of("gtid_mode").is_some_and(|mode| mode.eq_ignore_ascii_case("ON"))
        },
        group: value_of("group_replication_group_name")
            .and_then(parse_uuid_bytes)
            .map(|uuid| GtidSource::Uuid(uuid, String::new())),
    };
    Ok((facts, obstacles))
}

/// The identity of the server that a connection leads to.
pub(super) async fn identity(
    conn: &mut AccountConnection,
    probed: ProbedServer,
) -> Result<String, AccountError> {
    first_text(conn, &format!("SELECT {}", server_identity(probed))).await
}

fn cluster(mariadb: bool, variables: &HashMap<String, String>) -> Option<ReplicationClusterKind> {
    match mariadb {
        true => is_galera(variables).then_some(ReplicationClusterKind::Galera),
        false => variables
            .contains_key(GROUP_VARIABLE)
            .then_some(ReplicationClusterKind::Group),
    }
}

fn is_galera(variables: &HashMap<String, String>) -> bool {
    let value = variables.get(GALERA_VARIABLE);
    value.is_some_and(|value| {
        ENABLED_VALUES
            .iter()
            .any(|on| on.eq_ignore_ascii_case(value))
    })
}

/// True for an error caused by a missing privilege.
pub(super) fn is_denial(error: &AccountError) -> bool {
    let code = error.code();
    code.is_some_and(|code| ACCESS_DENIED.contains(&code))
}

/// Values by name; servers differ in the case of names.
fn values_by_name(rows: &ResultSet) -> HashMap<String, String> {
    let pairs = rows.iter().filter_map(texts);
    pairs
        .map(|[name, value]| (name.to_ascii_lowercase(), value))
        .collect()
}

fn is_off(variables: &HashMap<String, String>, name: &str) -> bool {
    let value = variables.get(name);
    value.is_some_and(|value| matches!(value.as_str(), "OFF" | "0"))
}

fn find_obstacles(
    mariadb: bool,
    variables: &HashMap<String, String>,
    status: &HashMap<String, String>,
) -> Vec<BinlogObstacle> {
    let replicates = status
        .get("slaves_running")
        .is_some_and(|count| count != "0");
    let unfit = REQUIRED_VARIABLES
        .iter()
        .filter_map(|(variable, good, why)| {
            // Aurora's parameter is the requested value, its status the actual one.
            let status = status
                .get(*variable)
                .filter(|_| *variable == ENHANCED_BINLOG);
            let fits = |value: &&String| good.iter().any(|good| good.eq_ignore_ascii_case(value));
            let mut values = variables.get(*variable).into_iter().chain(status);
            let value = values.find(|value| !fits(value))?;
            Some(BinlogObstacle::Variable {
                variable,
                value: value.clone(),
                why,
            })
        });
    let mut obstacles: Vec<BinlogObstacle> = unfit.collect();
    let galera = is_galera(variables);
    if galera {
        obstacles.extend(galera_obstacle(mariadb, variables));
    }
    // Without a log MySQL reports OFF for `log_replica_updates` too.
    let logs = !is_off(variables, "log_bin");
    let unlogged = |variable| logs && is_off(variables, variable);
    if (replicates || galera) && unlogged("log_slave_updates") {
        let variable = "log_slave_updates";
        obstacles.push(BinlogObstacle::Replica { variable });
    }
    if unlogged("log_replica_updates") {
        let variable = "log_replica_updates";
        obstacles.push(BinlogObstacle::Replica { variable });
    }
    obstacles
}

/// What keeps a Galera node's log from containing everything.
fn galera_obstacle(mariadb: bool, variables: &HashMap<String, String>) -> Option<BinlogObstacle> {
    let obstacle = |variable: &'static str, why| BinlogObstacle::Variable {
        variable,
        value: variables.get(variable).cloned().unwrap_or_default(),
        why,
    };
    let transfer = variables.get(GALERA_TRANSFER);
    if !mariadb {
        let why = "of Galera only MariaDB's is known to commit in its log's order; follow a server outside the cluster";
        return Some(obstacle(GALERA_VARIABLE, why));
    }
    let dumps = transfer.is_some_and(|method| method.eq_ignore_ascii_case("mysqldump"));
    dumps.then(|| {
        let why = "a state transfer fills a running node without its log; set rsync or mariabackup";
        obstacle(GALERA_TRANSFER, why)
    })
}

/// The statement that reports the position, which was renamed in MySQL 8.2. Obstacles in its reply are added.
async fn position_statement(
    conn: &mut AccountConnection,
    no_log: bool,
    obstacles: &mut Vec<BinlogObstacle>,
) -> Result<&'static str, AccountError> {
    for statement in ["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"] {
        match conn.rows(statement).await {
            Ok(rows) => {
                let row = rows.row(0);
                let filter = |at| row.and_then(|row| text(row, at));
                for (at, variable) in [(2, "binlog_do_db"), (3, "binlog_ignore_db")] {
                    if let Some(value) = filter(at).filter(|value| !value.is_empty()) {
                        obstacles.push(BinlogObstacle::Filter { variable, value });
                    }
                }
                if let (Err(obstacle), false) = (log_end(row), no_log) {
                    obstacles.push(obstacle);
                }
                return Ok(statement);
            }
            Err(error) if error.code() == Some(SYNTAX_ERROR) => {}
            Err(error) if is_denial(&error) => {
                obstacles.push(BinlogObstacle::Right(RequiredPrivilege::LogPosition));
                return Ok(statement);
            }
            Err(error) => return Err(error),
        }
    }
    Ok("SHOW MASTER STATUS")
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn said(variables: &[(&str, &str)], replicates: bool) -> Vec<String> {
        let running = if replicates { "1" } else { "0" };
        said_with(variables, &[("slaves_running", running)])
    }

    fn said_with(variables: &[(&str, &str)], status: &[(&str, &str)]) -> Vec<String> {
        let owned = |all: &[(&str, &str)]| {
            let all = all
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()));
            all.collect::<HashMap<_, _>>()
        };
        let obstacles = find_obstacles(true, &owned(variables), &owned(status));
        obstacles.iter().map(ToString::to_string).collect()
    }

    /// No Aurora is at hand: its documentation names the parameter and the status.
    #[test]
    fn a_log_that_aurora_writes_beside_its_engine_is_refused_by_name() {
        let name = "aurora_enhanced_binlog";
        for value in ["1", "ON", "on"] {
            let said = said(&[("log_bin", "ON"), (name, value)], false);
            assert_eq!(said.len(), 1, "{value}");
            assert!(said[0].starts_with(&format!("{name} = {value:?} on the server: ")));
        }
        // Turned off in the parameters, and the writer not restarted yet.
        let said_of = |status| said_with(&[("log_bin", "ON"), (name, "0")], &[(name, status)]);
        assert_eq!(said_of("ACTIVE").len(), 1);
        assert!(said_of("OFF").is_empty());
    }

    #[test]
    fn a_format_that_logs_statements_is_named() {
        let said = said(&[("log_bin", "ON"), ("binlog_format", "MIXED")], false);
        assert_eq!(said.len(), 1);
        for word in ["binlog_format", "MIXED", "ROW"] {
            assert!(said[0].contains(word), "{said:?}");
        }
    }

    #[test]
    fn a_variable_that_is_not_there_is_no_obstacle() {
        assert!(said(&[("log_bin", "1")], false).is_empty());
    }

    #[test]
    fn everything_is_named_and_what_follows_from_another_is_not() {
        let all = [
            ("log_bin", "OFF"),
            ("binlog_format", "STATEMENT"),
            ("binlog_order_commits", "OFF"),
            ("log_replica_updates", "OFF"),
        ];
        assert_eq!(said(&all, false).len(), 3);
        let replica = [("log_bin", "ON"), ("log_slave_updates", "OFF")];
        assert!(said(&replica, false).is_empty());
        assert!(said(&replica, true)[0].contains("log_slave_updates"));
        let replica = [("log_bin", "ON"), ("log_replica_updates", "OFF")];
        assert!(said(&replica, false)[0].contains("log_replica_updates"));
    }

    #[test]
    fn a_galera_node_has_to_log_what_it_applies_and_to_be_filled_before_it_serves() {
        let node = [
            ("log_bin", "ON"),
            ("wsrep_on", "ON"),
            ("log_slave_updates", "ON"),
        ];
        assert!(said(&node, false).is_empty());
        let unlogged = [node[0], node[1], ("log_slave_updates", "OFF")];
        assert!(said(&unlogged, false)[0].contains("log_slave_updates"));
        for (method, obstacles) in [("rsync", 0), ("mariabackup", 0), ("mysqldump", 1)] {
            let filled = [node[0], node[1], ("wsrep_sst_method", method)];
            assert_eq!(said(&filled, false).len(), obstacles, "{method}");
        }
        let owned = node.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let others = find_obstacles(false, &HashMap::from(owned), &HashMap::new());
        assert!(others[0].to_string().contains("wsrep_on"));
    }
}
