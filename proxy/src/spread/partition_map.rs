//! Which data node has whose messages, by the Spider node's catalogue.
//!
//! `information_schema.PARTITIONS` has the partitioning rule, `mysql.spider_tables` the location of each part, and `mysql.servers` what a
//! part's `server` stands for. Whatever is ambiguous is refused, with the reason.

use std::collections::HashMap;
use std::net::IpAddr;

use headwater_sql::{hex_literal, quoted};
use headwater_wire::resultset::ResultSet;

/// The most parts that are followed: each takes connections and a stream of its own.
pub(super) const MOST_PARTS: usize = 64;
/// Variables of the Spider node, and the values under which its tables show what the data nodes hold.
const REQUIRED_VARIABLES: [(&str, &str); 4] = [
    ("spider_dry_access", "OFF"),
    ("spider_error_read_mode", "0"),
    ("spider_internal_limit", "9223372036854775807"),
    ("spider_internal_offset", "0"),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionMap {
    pub(super) rule: PartitionRule,
    pub(super) parts: Vec<PartitionLocation>,
}

/// How authors are distributed over parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartitionRule {
    Single,
    /// By author modulo the number of parts.
    Hash,
    /// By bounds, ascending; the last one may be open.
    Range(Vec<Option<u64>>),
    /// By listed values.
    List(HashMap<u64, usize>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionLocation {
    /// `HOST:PORT`.
    pub(super) address: String,
    pub(super) database: String,
    pub(super) table: String,
}

/// The queries whose replies [`read`] takes.
pub(super) fn queries(database: &str, table: &str, follower: &str) -> [String; 4] {
    let name = format!(
        "TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        hex_literal(database),
        hex_literal(table)
    );
    let variables: Vec<String> = REQUIRED_VARIABLES
        .iter()
        .map(|(name, _)| format!("'{name}'"))
        .collect();
    [
        format!(
            "SELECT PARTITION_NAME, SUBPARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION \
             FROM information_schema.PARTITIONS WHERE {name} ORDER BY PARTITION_ORDINAL_POSITION"
        ),
        format!(
            "SELECT t.table_name, t.link_id, t.link_status, t.server, COALESCE(t.scheme, s.Wrapper), COALESCE(t.host, s.Host), \
             COALESCE(t.port, s.Port), COALESCE(t.socket, s.Socket), COALESCE(t.tgt_db_name, s.Db), t.tgt_table_name, \
             CONCAT_WS('', t.dsn, t.filedsn, t.default_file), s.Server_name \
             FROM mysql.spider_tables t LEFT JOIN mysql.servers s ON s.Server_name = t.server \
             WHERE t.db_name = {} AND (t.table_name = {table} OR LEFT(t.table_name, {length}) = CONCAT({table}, '#P#'))",
            hex_literal(database),
            table = hex_literal(table),
            length = table.chars().count() + 3,
        ),
        format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})",
            variables.join(",")
        ),
        format!(
            "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            hex_literal(database),
            hex_literal(follower)
        ),
    ]
}

/// One row of `mysql.spider_tables`.
struct SpiderLink {
    part: String,
    source: Result<PartitionLocation, String>,
}

/// Reads the replies. `upstream`: the host of the Spider node itself.
///
/// # Errors
/// Why the locations are not certain.
pub(super) fn read(
    [partitions, links, variables, follower]: &[ResultSet; 4],
    (database, table, author): (&str, &str, &str),
    upstream: &str,
) -> Result<PartitionMap, String> {
    let mut engine = rows(follower).filter_map(|[engine]| engine);
    if engine
        .next()
        .is_none_or(|engine| !engine.eq_ignore_ascii_case("InnoDB"))
    {
        return Err("the follow lists are not in InnoDB on the Spider node".to_owned());
    }
    for [name, value] in rows(variables) {
        let (name, value) = (name.unwrap_or_default(), value.unwrap_or_default());
        let required = REQUIRED_VARIABLES.iter().find(|(own, _)| *own == name);
        if let Some((_, harmless)) = required.filter(|(_, harmless)| *harmless != value) {
            return Err(format!(
                "{name} = {value} on the Spider node; it has to be {harmless}"
            ));
        }
    }
    let partitions: Vec<PartitionRow> = rows(partitions).map(PartitionRow::of).collect();
    let links: Vec<SpiderLink> = rows(links)
        .map(|row| spider_link(row, database, upstream))
        .collect();
    let rule = partition_rule(&partitions, author)?;
    let names = partitions.iter().map(|it| match &it.name {
        Some(name) => format!("{table}#P#{name}"),
        None => table.to_owned(),
    });
    let parts: Vec<PartitionLocation> = names
        .map(|name| single_location(&links, &name))
        .collect::<Result<_, _>>()?;
    if parts.len() > MOST_PARTS {
        return Err(format!(
            "the messages are in {} partitions; {MOST_PARTS} at most are followed",
            parts.len()
        ));
    }
    for (at, part) in parts.iter().enumerate() {
        if parts.iter().skip(at + 1).any(|other| other == part) {
            return Err(format!(
                "two partitions lead to {}.{} on {}",
                part.database, part.table, part.address
            ));
        }
    }
    Ok(PartitionMap { rule, parts })
}

/// The only link of a part.
fn single_location(links: &[SpiderLink], part: &str) -> Result<PartitionLocation, String> {
    let mut matching = links.iter().filter(|link| link.part == part);
    match (matching.next(), matching.next()) {
        (Some(link), None) => link.source.clone(),
        (None, _) => Err(format!(
            "mysql.spider_tables has no row for {part:?}; names with other characters than letters, digits and _ are not found there"
        )),
        (Some(_), Some(_)) => Err(format!(
            "{part:?} is on several data nodes, of which Spider chooses one"
        )),
    }
}

fn spider_link(row: [Option<String>; 12], database: &str, upstream: &str) -> SpiderLink {
    let [
        part,
        _,
        status,
        server,
        scheme,
        host,
        port,
        socket,
        to_database,
        to_table,
        other,
        known,
    ] = row;
    let part = part.unwrap_or_default();
    let refused = || {
        if server.is_some() && known.is_none() {
            return Some(format!(
                "mysql.servers has no {:?}",
                server.clone().unwrap_or_default()
            ));
        }
        if status.as_deref() != Some("1") {
            return Some(format!(
                "Spider takes the link of {part:?} for broken (link_status in mysql.spider_tables is not 1)"
            ));
        }
        let is_mysql = |scheme: &String| {
            ["mysql", "mariadb"]
                .iter()
                .any(|scheme_name| scheme_name.eq_ignore_ascii_case(scheme))
        };
        if !scheme.as_ref().is_some_and(is_mysql) {
            return Some(format!(
                "{part:?} is not read by Spider's wrapper for MySQL"
            ));
        }
        if socket.as_ref().is_some_and(|socket| !socket.is_empty()) {
            return Some(format!(
                "{part:?} is reached by a socket of the Spider node's machine; name its host and port"
            ));
        }
        if other.as_ref().is_some_and(|other| !other.is_empty()) {
            return Some(format!(
                "the link of {part:?} is in a file of the Spider node's machine; name its host and port"
            ));
        }
        None
    };
    let source = match (refused(), host.as_deref()) {
        (Some(why), _) => Err(why),
        (None, host) => reachable_host(host.unwrap_or_default(), upstream)
            .map(|host| PartitionLocation {
                address: format!(
                    "{host}:{}",
                    port.filter(|port| port != "0").as_deref().unwrap_or("3306")
                ),
                database: to_database
                    .filter(|it| !it.is_empty())
                    .unwrap_or_else(|| database.to_owned()),
                table: to_table
                    .unwrap_or_else(|| part.split("#P#").next().unwrap_or_default().to_owned()),
            })
            .ok_or_else(|| {
                format!("{part:?} is on the Spider node's own machine by a name; write 127.0.0.1, or the host's address")
            }),
    };
    SpiderLink { part, source }
}

/// A host as Headwater reaches it: a loopback address means the Spider node's own machine, so it becomes `upstream`. `None` for a local
/// name: for that the client library may take a socket, or it means another machine here.
fn reachable_host(host: &str, upstream: &str) -> Option<String> {
    let lowered = host.to_ascii_lowercase();
    let is_own = ["localhost", "ip6-"];
    if host.is_empty() || is_own.iter().any(|own| lowered.starts_with(own)) {
        return None;
    }
    let host = match host.parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() => return None,
        Ok(address) if address.is_loopback() => upstream,
        _ => host,
    };
    Some(match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    })
}

struct PartitionRow {
    name: Option<String>,
    subpartition: Option<String>,
    method: String,
    expression: String,
    description: Option<String>,
}

impl PartitionRow {
    fn of([name, sub, method, expression, description]: [Option<String>; 5]) -> PartitionRow {
        PartitionRow {
            name,
            subpartition: sub,
            method: method.unwrap_or_default(),
            expression: expression.unwrap_or_default(),
            description,
        }
    }
}

fn partition_rule(partitions: &[PartitionRow], author: &str) -> Result<PartitionRule, String> {
    let Some(first) = partitions.first() else {
        return Err(
            "the table of messages cannot be seen; GRANT SELECT on it to the service account"
                .to_owned(),
        );
    };
    if first.name.is_none() {
        return Ok(PartitionRule::Single);
    }
    if partitions.iter().any(|it| it.subpartition.is_some()) {
        return Err("the messages are in subpartitions; partitions alone are followed".to_owned());
    }
    let by_author = first.expression.eq_ignore_ascii_case(author)
        || first.expression.eq_ignore_ascii_case(&quoted(author));
    if !by_author {
        return Err(format!(
            "the messages are in partitions by {} {}, not by the column {}",
            first.method,
            first.expression,
            quoted(author)
        ));
    }
    let description = |it: &PartitionRow| it.description.clone().unwrap_or_default();
    match &*first.method {
        "HASH" => Ok(PartitionRule::Hash),
        "RANGE" | "RANGE COLUMNS" => {
            let bounds = partitions.iter().map(|it| match &*description(it) {
                "MAXVALUE" => Ok(None),
                bound => bound.parse().map(Some).map_err(|_| bound.to_owned()),
            });
            let bounds: Result<Vec<_>, String> = bounds.collect();
            bounds
                .map(PartitionRule::Range)
                .map_err(|bound| format!("the messages' partitions have a bound of {bound}"))
        }
        "LIST" | "LIST COLUMNS" => {
            let mut all = HashMap::new();
            for (at, partition) in partitions.iter().enumerate() {
                for value in description(partition)
                    .split(',')
                    .filter(|value| *value != "NULL")
                {
                    let value = value.trim().parse();
                    let author = value.map_err(|_| {
                        "a list of the messages' partitions has more than numbers (DEFAULT is not followed)".to_owned()
                    })?;
                    all.insert(author, at);
                }
            }
            Ok(PartitionRule::List(all))
        }
        method => Err(format!(
            "the messages are in partitions by {method}; HASH, RANGE and LIST are followed"
        )),
    }
}

impl PartitionMap {
    /// The part that has an author's messages; `None`: no part can.
    fn part_of(&self, author: u64) -> Option<usize> {
        match &self.rule {
            PartitionRule::Single => Some(0),
            // As the servers compute it: a signed number, whose remainder is taken without its sign.
            PartitionRule::Hash => {
                let parts = i64::try_from(self.parts.len()).ok()?;
                let rest = author.cast_signed().checked_rem(parts)?;
                usize::try_from(rest.unsigned_abs()).ok()
            }
            PartitionRule::Range(bounds) => bounds
                .iter()
                .position(|bound| bound.is_none_or(|bound| author < bound)),
            PartitionRule::List(all) => all.get(&author).copied(),
        }
    }

    /// Distributes authors over the parts; in ascending order if they come in that.
    pub(super) fn distribute(&self, authors: &[u64]) -> Vec<Vec<u64>> {
        let mut by_part = vec![Vec::new(); self.parts.len()];
        for author in authors {
            let part = self.part_of(*author).and_then(|part| by_part.get_mut(part));
            if let Some(part) = part {
                part.push(*author);
            }
        }
        by_part
    }
}

fn rows<const N: usize>(rows: &ResultSet) -> impl Iterator<Item = [Option<String>; N]> {
    rows.iter().map(|row| {
        std::array::from_fn(|at| {
            let cell = row.cell(at)?;
            Some(String::from_utf8_lossy(cell).into_owned())
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn partition(method: &str, name: &str, description: Option<&str>) -> PartitionRow {
        PartitionRow::of(
            [
                Some(name),
                None,
                Some(method),
                Some("`user_id`"),
                description,
            ]
            .map(|it| it.map(str::to_owned)),
        )
    }

    fn of(rule: PartitionRule, parts: usize) -> PartitionMap {
        let part = |at| PartitionLocation {
            address: format!("n{at}:3306"),
            database: "tl".into(),
            table: "message".into(),
        };
        PartitionMap {
            rule,
            parts: (0..parts).map(part).collect(),
        }
    }

    #[test]
    fn authors_are_dealt_out_as_the_server_does() {
        let authors: Vec<u64> = (0..10).collect();
        assert_eq!(
            of(PartitionRule::Single, 1).distribute(&authors),
            std::slice::from_ref(&authors)
        );
        assert_eq!(
            of(PartitionRule::Hash, 3).distribute(&authors)[1],
            [1, 4, 7]
        );
        // The servers read these as -1 and -4.
        let large = [u64::MAX - 3, u64::MAX];
        assert_eq!(of(PartitionRule::Hash, 3).distribute(&large)[1], large);
        let bounds = ["5", "7"].map(|bound| partition("RANGE", "p", Some(bound)));
        let dealt = of(partition_rule(&bounds, "user_id").unwrap(), 2).distribute(&authors);
        // No part takes those from 7 on.
        assert_eq!(dealt, [vec![0, 1, 2, 3, 4], vec![5, 6]]);
        let all = [partition("RANGE COLUMNS", "p", Some("MAXVALUE"))];
        assert_eq!(
            of(partition_rule(&all, "user_id").unwrap(), 1).distribute(&authors),
            std::slice::from_ref(&authors)
        );
        let lists = ["1,3", "NULL,2"].map(|list| partition("LIST", "p", Some(list)));
        let dealt = of(partition_rule(&lists, "user_id").unwrap(), 2).distribute(&authors);
        assert_eq!(dealt, [vec![1, 3], vec![2]]);
    }

    #[test]
    fn what_is_dealt_out_otherwise_is_refused_by_name() {
        for method in ["KEY", "LINEAR HASH", "SYSTEM_TIME"] {
            let why = partition_rule(&[partition(method, "p", None)], "user_id").unwrap_err();
            assert!(why.contains(method), "{why}");
        }
        let why = partition_rule(&[partition("HASH", "p", None)], "author").unwrap_err();
        assert!(why.contains("`user_id`"), "{why}");
        assert!(partition_rule(&[partition("LIST", "p", Some("1,-3"))], "user_id").is_err());
        assert!(partition_rule(&[], "user_id").is_err());
    }

    #[test]
    fn a_link_leads_to_a_host_as_the_spider_node_has_it() {
        let row = |host: Option<&str>, socket: Option<&str>, status: &str| {
            let row = [
                Some("message#P#p0"),
                Some("0"),
                Some(status),
                None,
                Some("mysql"),
                host,
                Some("7711"),
                socket,
                None,
                None,
                Some(""),
                None,
            ];
            spider_link(row.map(|it| it.map(str::to_owned)), "tl", "db9").source
        };
        let told = row(Some("node1"), None, "1").unwrap();
        assert_eq!(
            (&*told.address, &*told.database, &*told.table),
            ("node1:7711", "tl", "message")
        );
        assert_eq!(
            row(Some("127.0.0.1"), Some(""), "1").unwrap().address,
            "db9:7711"
        );
        assert_eq!(
            row(Some("127.0.1.1"), None, "1").unwrap().address,
            "db9:7711"
        );
        for refused in [
            row(Some("localhost.localdomain"), None, "1"),
            row(Some("0.0.0.0"), None, "1"),
            row(Some("localhost"), None, "1"),
            row(None, None, "1"),
            row(Some("n"), Some("/s"), "1"),
            row(Some("n"), None, "3"),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
    }
}
