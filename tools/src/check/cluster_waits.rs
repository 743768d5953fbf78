//! Finds a default setting with which sessions' reads wait for other cluster members: all their calls are relayed.

use headwater_timeline::check::{CheckQueryResult, ServerProduct};

const GROUP: &str = "group_replication_consistency";
const GALERA: &str = "wsrep_sync_wait";
/// The bit of `wsrep_sync_wait` that makes reads wait.
const READS: u64 = 1;

/// The queries. A server built without Galera does not know MariaDB's last one.
pub(super) fn queries(product: ServerProduct) -> Vec<String> {
    let questions: &[&str] = match product {
        ServerProduct::Mysql => &["SELECT @@global.group_replication_consistency"],
        ServerProduct::Mariadb => &[
            "SELECT @@global.wsrep_on",
            "SELECT @@global.wsrep_sync_wait",
        ],
    };
    questions.iter().map(|&it| it.to_owned()).collect()
}

/// The variable with which reads wait, and its value.
pub(super) fn waiting_variable(
    product: ServerProduct,
    answers: &[CheckQueryResult],
) -> Option<(&'static str, String)> {
    let text = |at: usize| text(answers.get(at)?);
    match product {
        ServerProduct::Mysql => {
            let level = text(0)?;
            level.starts_with("BEFORE").then_some(())?;
            (level != "BEFORE_ON_PRIMARY_FAILOVER").then_some((GROUP, level))
        }
        ServerProduct::Mariadb => {
            let value = text(1).filter(|_| text(0).as_deref() == Some("1"))?;
            let bits: u64 = value.parse().ok()?;
            (bits & READS != 0).then_some((GALERA, value))
        }
    }
}

pub(super) fn text(answer: &CheckQueryResult) -> Option<String> {
    let cell = answer.as_ref().ok()?.first()?.first()?.as_ref()?;
    Some(String::from_utf8_lossy(cell).into_owned())
}

/// The effect of a variable with which no call is served, and the remedy if it is one of these.
pub(super) fn meaning(name: &str, value: &str) -> String {
    let relayed = "calls of sessions that begin with it are relayed";
    let way_out = match name {
        GROUP => {
            "SET PERSIST group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER' (the default)"
                .to_owned()
        }
        GALERA => {
            let bits = value.parse::<u64>().unwrap_or_default() & !READS;
            format!("SET GLOBAL wsrep_sync_wait = {bits}, and so in the server's file")
        }
        _ => return relayed.to_owned(),
    };
    format!(
        "{relayed} (waits_for_cluster), since their reads wait for the other members. {way_out}, and have those sessions set it for \
         themselves whose reads must wait"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_timeline::check::ServerError;

    fn told(value: &str) -> CheckQueryResult {
        Ok(vec![vec![Some(value.as_bytes().to_vec())]])
    }

    #[test]
    fn reads_wait_under_two_levels_of_a_group_and_one_bit_of_a_node() {
        for (level, waits) in [
            ("EVENTUAL", false),
            ("BEFORE_ON_PRIMARY_FAILOVER", false),
            ("BEFORE", true),
            ("AFTER", false),
            ("BEFORE_AND_AFTER", true),
        ] {
            let found = waiting_variable(ServerProduct::Mysql, &[told(level)]);
            assert_eq!(found.is_some(), waits, "{level}");
        }
        for (on, bits, waits) in [
            ("1", "0", false),
            ("1", "1", true),
            ("1", "7", true),
            ("1", "6", false),
            // No node: the setting means nothing.
            ("0", "1", false),
        ] {
            let found = waiting_variable(ServerProduct::Mariadb, &[told(on), told(bits)]);
            assert_eq!(found.is_some(), waits, "{on} {bits}");
        }
        let unknown = Err(ServerError {
            code: 1193,
            message: "Unknown system variable".to_owned(),
        });
        assert_eq!(
            waiting_variable(ServerProduct::Mariadb, &[told("1"), unknown]),
            None
        );
        assert_eq!(waiting_variable(ServerProduct::Mysql, &[]), None);
    }

    #[test]
    fn the_way_out_keeps_what_else_waits() {
        assert!(meaning("wsrep_sync_wait", "7").contains("wsrep_sync_wait = 6,"));
        assert!(!meaning("sql_safe_updates", "1").contains("cluster"));
    }
}
