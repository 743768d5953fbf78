//! The queries for a server's state, in one round trip, and the facts in their answers.

use headwater_timeline::check::CheckQueryResult;

use crate::server_report::{
    GaleraMembership, GroupMembership, ReplicationSource, ReportedGtids, ServerReport,
};

/// Its answer shows the product. The first query on each connection.
pub const PRODUCT_QUERY: &str = "SELECT @@global.version, @@global.server_id";
/// ER_UNKNOWN_COM_ERROR: from a Galera node that takes no statements.
const NOT_READY: u16 = 1047;
/// `wsrep_local_state` of a node that has all transactions.
const GALERA_SYNCED: &str = "4";
/// Columns of SHOW REPLICA STATUS, at the same positions in both products.
const SOURCE_HOST: usize = 1;
const SOURCE_PORT: usize = 3;
const SOURCE_ID: usize = 39;

/// The product, as far as the queries depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterProduct {
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb {
        /// It was a Galera node when last queried.
        galera: bool,
    },
}

impl ClusterProduct {
    /// Reads the answer to [`PRODUCT_QUERY`]; `None`: it does not show the product.
    #[must_use]
    pub fn from_reply(answer: &CheckQueryResult) -> Option<ClusterProduct> {
        let version = answer.as_ref().ok()?.first()?.first()?.as_ref()?;
        let is_mariadb = version.windows(7).any(|part| part == b"MariaDB");
        Some(match is_mariadb {
            true => ClusterProduct::Mariadb { galera: false },
            false => ClusterProduct::Mysql,
        })
    }

    /// Updates the product by a later report.
    #[must_use]
    pub fn updated_by(self, facts: &ServerReport) -> ClusterProduct {
        match self {
            ClusterProduct::Mysql => ClusterProduct::Mysql,
            ClusterProduct::Mariadb { .. } => ClusterProduct::Mariadb {
                galera: facts.node != GaleraMembership::None,
            },
        }
    }
}

/// The queries. `sources`: also for the server it replicates.
#[must_use]
pub fn status_queries(product: ClusterProduct, sources: bool) -> Vec<String> {
    let mut questions = match product {
        ClusterProduct::Mysql => vec![
            "SELECT @@global.server_id, @@global.read_only, @@global.super_read_only, @@global.server_uuid, @@global.gtid_executed"
                .to_owned(),
            "SELECT MEMBER_ID, MEMBER_STATE, MEMBER_ROLE FROM performance_schema.replication_group_members".to_owned(),
        ],
        ClusterProduct::Mariadb { galera } => vec![
            "SELECT @@global.server_id, @@global.read_only, @@global.wsrep_on, @@global.gtid_binlog_state, @@global.gtid_current_pos"
                .to_owned(),
            match galera {
                true => "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state', 'wsrep_cluster_status')",
                // Keeps the positions of the answers.
                false => "DO 0",
            }
            .to_owned(),
        ],
    };
    if sources {
        questions.push("SHOW REPLICA STATUS".to_owned());
    }
    questions
}

/// Reads the answers to [`status_queries`].
///
/// # Errors
/// The server's error for the first query, or what is wrong with its answer.
pub fn read_report(
    product: ClusterProduct,
    answers: &[CheckQueryResult],
) -> Result<ServerReport, String> {
    let row = match answers.first() {
        Some(Ok(rows)) => rows.first().ok_or("it answers nothing")?,
        Some(Err(error)) if error.code == NOT_READY => return Ok(not_ready_report()),
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err("it answers nothing".to_owned()),
    };
    let second = answers.get(1);
    let server_id = text(row, 0).parse().unwrap_or_default();
    let source = answers.get(2).and_then(read_source);
    Ok(match product {
        ClusterProduct::Mysql => {
            let uuid = text(row, 3);
            ServerReport {
                server_id,
                read_only: is_on(&text(row, 1)) || is_on(&text(row, 2)),
                group: read_group(&uuid, second),
                node: GaleraMembership::None,
                source,
                gtids: ReportedGtids {
                    executed: text(row, 4),
                    current: String::new(),
                },
                uuid,
            }
        }
        ClusterProduct::Mariadb { galera } => ServerReport {
            server_id,
            uuid: String::new(),
            read_only: is_on(&text(row, 1)),
            group: GroupMembership::None,
            node: match is_on(&text(row, 2)) {
                false => GaleraMembership::None,
                true if !galera => GaleraMembership::NotQueried,
                true => read_galera_node(second),
            },
            source,
            gtids: ReportedGtids {
                executed: text(row, 3),
                current: text(row, 4),
            },
        },
    })
}

/// The report of a server that refuses all statements: a Galera node without its cluster.
pub(crate) fn not_ready_report() -> ServerReport {
    ServerReport {
        node: GaleraMembership::Member {
            ready: false,
            synced: false,
            quorum: false,
        },
        ..ServerReport::default()
    }
}

/// True for on, and for any value but off: MariaDB has further values of read_only, each of which refuses something.
fn is_on(value: &str) -> bool {
    !matches!(value, "0" | "OFF" | "")
}

fn read_group(server_uuid: &str, answer: Option<&CheckQueryResult>) -> GroupMembership {
    let Some(Ok(rows)) = answer else {
        return GroupMembership::Hidden;
    };
    let mut view = Vec::new();
    for row in rows {
        view.push((text(row, 0), text(row, 1), text(row, 2)));
    }
    // A member that has not begun, or has stopped, sees itself alone, offline. Then `read_only` decides.
    let Some((_, state, role)) = view.iter().find(|(id, ..)| id == server_uuid) else {
        return GroupMembership::None;
    };
    if state == "OFFLINE" && view.len() == 1 {
        return GroupMembership::None;
    }
    let reached = |state: &str| matches!(state, "ONLINE" | "RECOVERING");
    GroupMembership::Member {
        online: state == "ONLINE",
        primary: role == "PRIMARY",
        primaries: view.iter().filter(|(.., role)| role == "PRIMARY").count(),
        reachable: view.iter().filter(|(_, state, _)| reached(state)).count(),
        members: view.len(),
    }
}

fn read_galera_node(answer: Option<&CheckQueryResult>) -> GaleraMembership {
    let Some(Ok(rows)) = answer else {
        return GaleraMembership::NotQueried;
    };
    let value = |name: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| text(row, 0).eq_ignore_ascii_case(name));
        row.map(|row| text(row, 1)).unwrap_or_default()
    };
    GaleraMembership::Member {
        ready: value("wsrep_ready") == "ON",
        synced: value("wsrep_local_state") == GALERA_SYNCED,
        quorum: value("wsrep_cluster_status") == "Primary",
    }
}

fn read_source(answer: &CheckQueryResult) -> Option<ReplicationSource> {
    let row = answer.as_ref().ok()?.first()?;
    Some(ReplicationSource {
        address: format!("{}:{}", text(row, SOURCE_HOST), text(row, SOURCE_PORT)),
        server_id: text(row, SOURCE_ID).parse().unwrap_or_default(),
    })
}

fn text(row: &[Option<Vec<u8>>], at: usize) -> String {
    let cell = row.get(at).and_then(Option::as_ref);
    cell.map(|cell| String::from_utf8_lossy(cell).into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use headwater_timeline::check::ServerError;

    use super::*;
    use crate::server_report::PrimaryFault;

    fn rows(rows: &[&[&str]]) -> CheckQueryResult {
        let cell = |cell: &&str| Some(cell.as_bytes().to_vec());
        Ok(rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect())
    }

    fn error(code: u16) -> CheckQueryResult {
        Err(ServerError {
            code,
            message: "no".to_owned(),
        })
    }

    fn mysql(read_only: [&str; 2], members: CheckQueryResult) -> ServerReport {
        let [read, super_read] = read_only;
        let own = rows(&[&["7", read, super_read, "a", "a:1-5"]]);
        read_report(ClusterProduct::Mysql, &[own, members]).unwrap()
    }

    fn mariadb(
        read_only: &str,
        wsrep: &str,
        galera: bool,
        status: CheckQueryResult,
    ) -> ServerReport {
        let own = rows(&[&["7", read_only, wsrep, "0-7-5", "0-7-4"]]);
        read_report(ClusterProduct::Mariadb { galera }, &[own, status]).unwrap()
    }

    #[test]
    fn the_product_is_known_by_the_version() {
        let of = |version: &str| ClusterProduct::from_reply(&rows(&[&[version, "1"]]));
        let mariadb = Some(ClusterProduct::Mariadb { galera: false });
        assert_eq!(of("9.7.0"), Some(ClusterProduct::Mysql));
        assert_eq!(of("10.11.6-MariaDB-log"), mariadb);
        assert_eq!(of("11.8.2-MariaDB-ubu2404"), mariadb);
        assert_eq!(ClusterProduct::from_reply(&error(1047)), None);
    }

    #[test]
    fn whether_mysql_takes_writes_follows_its_settings_and_its_group() {
        use PrimaryFault::{NoQuorum, Offline, ReadOnly, Secondary};
        let none: &[&[&str]] = &[];
        let alone: &[&[&str]] = &[&["a", "OFFLINE", ""]];
        let first: &[&[&str]] = &[
            &["a", "ONLINE", "PRIMARY"],
            &["b", "ONLINE", "SECONDARY"],
            &["c", "RECOVERING", "SECONDARY"],
        ];
        let second: &[&[&str]] = &[&["a", "ONLINE", "SECONDARY"], &["b", "ONLINE", "PRIMARY"]];
        let coming: &[&[&str]] = &[
            &["a", "RECOVERING", "SECONDARY"],
            &["b", "ONLINE", "PRIMARY"],
        ];
        let expelled: &[&[&str]] = &[&["a", "ERROR", ""]];
        let cut_off: &[&[&str]] = &[
            &["a", "ONLINE", "PRIMARY"],
            &["b", "UNREACHABLE", "SECONDARY"],
            &["c", "UNREACHABLE", "SECONDARY"],
        ];
        let half: &[&[&str]] = &[
            &["a", "ONLINE", "PRIMARY"],
            &["b", "UNREACHABLE", "PRIMARY"],
        ];
        let most: &[&[&str]] = &[
            &["a", "ONLINE", "PRIMARY"],
            &["b", "UNREACHABLE", "PRIMARY"],
            &["c", "ONLINE", "PRIMARY"],
        ];
        for (read_only, members, fault) in [
            (["0", "0"], none, None),
            (["1", "0"], none, Some(ReadOnly)),
            (["1", "1"], none, Some(ReadOnly)),
            // A group that has not begun.
            (["0", "0"], alone, None),
            (["1", "1"], alone, Some(ReadOnly)),
            (["0", "0"], first, None),
            (["1", "1"], first, Some(ReadOnly)),
            (["1", "1"], second, Some(Secondary)),
            (["1", "1"], coming, Some(Offline)),
            (["1", "1"], expelled, Some(Offline)),
            // Somebody has switched it off.
            (["0", "0"], expelled, Some(Offline)),
            (["0", "0"], cut_off, Some(NoQuorum)),
            (["0", "0"], half, Some(NoQuorum)),
            (["0", "0"], most, None),
        ] {
            let facts = mysql(read_only, rows(members));
            assert_eq!(facts.primary_fault(), fault, "{read_only:?} {members:?}");
        }
        let unseen = mysql(["0", "0"], error(1142));
        assert_eq!(
            (unseen.group, unseen.primary_fault()),
            (GroupMembership::Hidden, None)
        );
        assert!(mysql(["0", "0"], rows(most)).is_multi_primary());
        assert!(!mysql(["0", "0"], rows(first)).is_multi_primary());
    }

    #[test]
    fn whether_mariadb_takes_writes_follows_its_settings_and_its_cluster() {
        use PrimaryFault::{NoQuorum, NotSynced, ReadOnly};
        let status = |ready: &str, state: &str, status: &str| {
            rows(&[
                &["wsrep_cluster_status", status],
                &["wsrep_local_state", state],
                &["wsrep_ready", ready],
            ])
        };
        for (read_only, wsrep, galera, answer, fault) in [
            ("0", "0", false, rows(&[]), None),
            ("1", "0", false, rows(&[]), Some(ReadOnly)),
            ("NO_LOCK", "0", false, rows(&[]), Some(ReadOnly)),
            ("OFF", "0", false, rows(&[]), None),
            // Its state as a node is queried next.
            ("0", "1", false, rows(&[]), Some(NotSynced)),
            ("0", "1", true, error(1227), Some(NotSynced)),
            ("0", "1", true, status("ON", "4", "Primary"), None),
            ("1", "1", true, status("ON", "4", "Primary"), Some(ReadOnly)),
            (
                "0",
                "1",
                true,
                status("ON", "2", "Primary"),
                Some(NotSynced),
            ),
            (
                "0",
                "1",
                true,
                status("OFF", "4", "Primary"),
                Some(NotSynced),
            ),
            (
                "0",
                "1",
                true,
                status("ON", "4", "non-Primary"),
                Some(NoQuorum),
            ),
            // It has left the cluster since.
            ("0", "0", true, status("OFF", "0", "Disconnected"), None),
        ] {
            let facts = mariadb(read_only, wsrep, galera, answer);
            assert_eq!(facts.primary_fault(), fault, "{facts:?}");
        }
        let refused =
            read_report(ClusterProduct::Mariadb { galera: true }, &[error(1047)]).unwrap();
        assert_eq!(refused.primary_fault(), Some(NoQuorum));
        assert!(read_report(ClusterProduct::Mysql, &[error(1040)]).is_err());
        assert!(read_report(ClusterProduct::Mysql, &[]).is_err());
    }

    #[test]
    fn a_replica_reports_its_source() {
        let mut status = vec![""; 41];
        status[SOURCE_HOST] = "127.0.0.1";
        status[SOURCE_PORT] = "3306";
        status[SOURCE_ID] = "9";
        let own = rows(&[&["7", "1", "1", "a", ""]]);
        let answers = [own.clone(), rows(&[]), rows(&[&status])];
        let source = read_report(ClusterProduct::Mysql, &answers)
            .unwrap()
            .source
            .unwrap();
        assert_eq!(
            (source.address.as_str(), source.server_id),
            ("127.0.0.1:3306", 9)
        );
        let denied = [own, rows(&[]), error(1227)];
        assert_eq!(
            read_report(ClusterProduct::Mysql, &denied).unwrap().source,
            None
        );
    }
}
