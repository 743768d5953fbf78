//! Reads where a timeline's messages are, and checks whether each data node's table can be followed.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;

use super::SpreadMemory;
use super::data_nodes::DataNode;
use super::partition_map::{self, PartitionLocation, PartitionMap};
use super::spread_page::{FollowedTimeline, TimelineShard};
use crate::account::{
    AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount, UpstreamTarget, host,
};
use crate::binlog::{Binlog, CachedTimeline, STARTING, obstacle_survey};
use crate::feeds::row_source;
use crate::tls::{TlsConnector, UpstreamTlsSection};
use headwater_feed::FeedDefinition;
use headwater_feed::binding::FeedColumnTypes;
use headwater_feed::catalogue::{self, DatabaseCatalogue};
use headwater_feed::definition::{MessageDefinition, TieOrder};
use headwater_feed::table_check::check;
use headwater_sql::quoted;
use headwater_timeline::definition::{IdType, TimelineDefinition};
use headwater_wire::resultset::ResultSet;

/// The obstacle when memory has too many timelines.
const FULL: &str = "64 timelines of this server are in memory already, and no more are";

/// Why a timeline is not served from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpreadRefusal {
    /// A log is not followed yet, or a connection is in use.
    NotFollowedYet,
    /// The messages' locations are uncertain, or cannot be followed there.
    Map(String),
    /// The Spider node cannot be queried.
    Spider(String),
    /// An obstacle on a data node.
    Node { address: String, why: String },
}

impl SpreadRefusal {
    pub(super) fn at_node(address: &str, why: String) -> SpreadRefusal {
        let address = address.to_owned();
        SpreadRefusal::Node { address, why }
    }
}

impl fmt::Display for SpreadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpreadRefusal::NotFollowedYet => f.write_str("the logs are not followed yet"),
            SpreadRefusal::Map(why) => f.write_str(why),
            SpreadRefusal::Spider(why) => write!(
                f,
                "the Spider node cannot be asked where its data nodes are: {why}"
            ),
            SpreadRefusal::Node { address, why } => write!(f, "data node {address}: {why}"),
        }
    }
}

/// A cached connection to one server.
#[derive(Debug, Default)]
pub(super) struct ReusableConnection(Option<AccountConnection>);

impl ReusableConnection {
    /// A connection, if it leads to the server whose log is followed.
    async fn connection(
        &mut self,
        account: &UpstreamAccount,
        binlog: &Binlog,
    ) -> Result<AccountConnection, SurveyError> {
        let open = self.0.take();
        let mut conn = match open.and_then(|mut conn| conn.is_open().then_some(conn)) {
            Some(conn) => conn,
            None => AccountConnection::open(account, ConnectionPurpose::Spread).await?,
        };
        match binlog.leads_to_followed_server(&mut conn).await? {
            true => Ok(conn),
            false => Err(SurveyError::OtherServer),
        }
    }

    async fn query(
        &mut self,
        account: &UpstreamAccount,
        binlog: &Binlog,
        queries: &[String],
    ) -> Result<Vec<ResultSet>, SurveyError> {
        let mut conn = self.connection(account, binlog).await?;
        let rows = conn.rows_of(queries).await?;
        self.0 = Some(conn);
        Ok(rows)
    }

    /// Whether a new connection leads to the server whose log is followed.
    pub(super) async fn leads_to_followed_server(
        &mut self,
        account: &UpstreamAccount,
        binlog: &Binlog,
    ) -> Result<bool, SurveyError> {
        match self.connection(account, binlog).await {
            Ok(_) => Ok(true),
            Err(SurveyError::OtherServer) => Ok(false),
            Err(failed) => Err(failed),
        }
    }
}

/// Why a query failed.
#[derive(Debug)]
pub(super) enum SurveyError {
    /// The connection leads to another server than the one that is followed.
    OtherServer,
    Account(AccountError),
}

impl From<AccountError> for SurveyError {
    fn from(error: AccountError) -> Self {
        SurveyError::Account(error)
    }
}

impl SurveyError {
    /// The error, unless it is transient.
    fn permanent_error(&self) -> Option<&AccountError> {
        match self {
            SurveyError::OtherServer
            | SurveyError::Account(
                AccountError::Waiting(_) | AccountError::NoPrimary | AccountError::Moved,
            ) => None,
            SurveyError::Account(error) => Some(error),
        }
    }
}

/// A map, and the stream of the Spider node's log in which it was first read.
pub(super) type ObservedMap = (u64, PartitionMap);

impl SpreadMemory {
    /// Locates all parts, with the streams of the logs that would report a change; `None`: as `before`.
    pub(super) async fn survey(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        before: Option<&FollowedTimeline>,
        connection: &mut ReusableConnection,
    ) -> Result<Option<FollowedTimeline>, SpreadRefusal> {
        let lists = self.binlog.follow_list_timeline(definition, database);
        let lists = lists.ok_or_else(|| SpreadRefusal::Map(FULL.to_owned()))?;
        let stream = self
            .binlog
            .mark_at(&lists, None)
            .ok_or(SpreadRefusal::NotFollowedYet)?
            .generation();
        let map = self
            .current_map(definition, database, (&lists, stream), connection)
            .await?;
        if before.is_some_and(|before| before.map == map && before.is_current()) {
            return Ok(None);
        }
        let mut addresses: Vec<String> =
            map.parts.iter().map(|part| part.address.clone()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let nodes = self.nodes_of(definition, database, &addresses)?;
        let known = before.map_or(&[][..], |before| &before.shards);
        // One connection per node.
        let by_node = nodes.iter().map(|node| async {
            let mut connection = ReusableConnection::default();
            let mut shards = Vec::new();
            for location in &map.parts {
                if location.address == node.address {
                    let shard =
                        load_shard(definition, location, (node, known), &mut connection).await?;
                    shards.push((location, shard));
                }
            }
            Ok(shards)
        });
        let by_node = join_all(by_node).await;
        let by_node: Vec<(&PartitionLocation, TimelineShard)> = by_node
            .into_iter()
            .collect::<Result<Vec<_>, SpreadRefusal>>()?
            .into_iter()
            .flatten()
            .collect();
        // Two names of one server: Spider may use either.
        let mut tables: Vec<_> = by_node
            .iter()
            .map(|(it, shard)| (shard.binlog.identity(), &it.database, &it.table))
            .collect();
        tables.sort_unstable();
        tables.dedup();
        if tables.len() < map.parts.len() {
            return Err(SpreadRefusal::Map(
                "two partitions lead to one table".to_owned(),
            ));
        }
        let of = |location: &PartitionLocation| {
            let mut all = by_node.iter();
            let found = all.find(|(shard_location, _)| *shard_location == location);
            found.map(|(_, shard)| shard.clone())
        };
        let shards: Option<Vec<TimelineShard>> = map.parts.iter().map(of).collect();
        let shards = shards.ok_or(SpreadRefusal::NotFollowedYet)?;
        let lists = TimelineShard {
            binlog: Arc::clone(&self.binlog),
            timeline: lists,
            stream,
        };
        // Nothing of it was redefined meanwhile.
        lists.mark(None).ok_or(SpreadRefusal::NotFollowedYet)?;
        Ok(Some(FollowedTimeline { map, lists, shards }))
    }

    /// The current map. The Spider node applies a change of its system tables later or never, unless a statement names the table.
    async fn current_map(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        (lists, stream): (&CachedTimeline, u64),
        connection: &mut ReusableConnection,
    ) -> Result<PartitionMap, SpreadRefusal> {
        let map = load_map(
            &self.account,
            &self.binlog,
            definition,
            database,
            connection,
        )
        .await?;
        match self.first_observed_map(definition, database, (stream, map.clone())) {
            Some(first) if first != map => {
                // A statement about the table would have ended the stream by then.
                let is_fresh = self.binlog.prove_freshness_now().await;
                let now = self
                    .binlog
                    .mark_at(lists, None)
                    .map(|mark| mark.generation());
                if !is_fresh || now != Some(stream) {
                    return Err(SpreadRefusal::NotFollowedYet);
                }
                Err(SpreadRefusal::Map(format!(
                    "mysql.servers or mysql.spider_tables was changed, and the Spider node may still use what stood there: run FLUSH TABLES \
                 {}.{} on it, and restart Headwater",
                    quoted(database),
                    quoted(&definition.message.table)
                )))
            }
            _ => Ok(map),
        }
    }
}

async fn load_map(
    account: &UpstreamAccount,
    binlog: &Binlog,
    definition: &TimelineDefinition,
    database: &str,
    connection: &mut ReusableConnection,
) -> Result<PartitionMap, SpreadRefusal> {
    let message = &definition.message;
    let queries = partition_map::queries(database, &message.table, &definition.follower.table);
    let replies = connection.query(account, binlog, &queries).await;
    let replies = replies.map_err(|failed| {
        let permanent = failed.permanent_error();
        permanent.map_or(SpreadRefusal::NotFollowedYet, |error| {
            SpreadRefusal::Spider(with_grant_hint(error, account))
        })
    })?;
    read(account, definition, database, replies)
}

fn read(
    account: &UpstreamAccount,
    definition: &TimelineDefinition,
    database: &str,
    replies: Vec<ResultSet>,
) -> Result<PartitionMap, SpreadRefusal> {
    let selected = account
        .target()
        .select()
        .ok_or(SpreadRefusal::NotFollowedYet)?;
    let upstream = match host(selected.server.address()) {
        "localhost" => "127.0.0.1",
        upstream => upstream,
    };
    let replies: [ResultSet; 4] = replies
        .try_into()
        .map_err(|_| SpreadRefusal::NotFollowedYet)?;
    let message = &definition.message;
    let names = (database, &*message.table, &*message.author);
    partition_map::read(&replies, names, upstream).map_err(SpreadRefusal::Map)
}

/// One part, if its table can be followed; the one in `known`, if it is still current.
async fn load_shard(
    definition: &TimelineDefinition,
    location: &PartitionLocation,
    (node, known): (&Arc<DataNode>, &[TimelineShard]),
    connection: &mut ReusableConnection,
) -> Result<TimelineShard, SpreadRefusal> {
    let why = |why: String| SpreadRefusal::at_node(&node.address, why);
    if !node.is_followed() {
        let suspension = node
            .binlog
            .suspension()
            .filter(|suspension| suspension.reason != STARTING);
        return Err(suspension.map_or(SpreadRefusal::NotFollowedYet, |aside| why(aside.text)));
    }
    let is_of = |shard: &&TimelineShard| {
        let here = Arc::ptr_eq(&shard.binlog, &node.binlog);
        here && shard
            .timeline
            .has_message_table(&location.database, &location.table)
    };
    if let Some(shard) = known.iter().find(is_of)
        && shard.mark(None).is_some()
    {
        return Ok(shard.clone());
    }
    let wanted = required_table(definition, location);
    let types = types_on(definition, &wanted, location, node, connection).await?;
    let timeline = node
        .binlog
        .cached_timeline(row_source(&wanted, types, &location.database));
    let timeline = timeline.ok_or_else(|| why(FULL.to_owned()))?;
    let mark = node
        .binlog
        .mark_at(&timeline, None)
        .ok_or(SpreadRefusal::NotFollowedYet)?;
    let shard = TimelineShard {
        binlog: Arc::clone(&node.binlog),
        timeline,
        stream: mark.generation(),
    };
    // From here on, a change of the table ends this stream.
    types_on(definition, &wanted, location, node, connection).await?;
    shard.mark(None).ok_or(SpreadRefusal::NotFollowedYet)?;
    Ok(shard)
}

/// The current column types of a data node's table.
async fn types_on(
    definition: &TimelineDefinition,
    wanted: &FeedDefinition,
    location: &PartitionLocation,
    node: &DataNode,
    connection: &mut ReusableConnection,
) -> Result<FeedColumnTypes, SpreadRefusal> {
    let why = |why: String| SpreadRefusal::at_node(&node.address, why);
    let tables = [location.table.clone()];
    let queries = catalogue::catalogue_queries(&location.database, &tables);
    let replies = connection
        .query(&node.account, &node.binlog, &queries)
        .await;
    let replies = replies.map_err(|failed| {
        let permanent = failed.permanent_error();
        permanent.map_or(
            SpreadRefusal::NotFollowedYet,
            |error| why(error.to_string()),
        )
    })?;
    types(definition, wanted, location, &replies).map_err(why)
}

/// The definition that a data node's table must satisfy.
fn required_table(definition: &TimelineDefinition, location: &PartitionLocation) -> FeedDefinition {
    let message = &definition.message;
    FeedDefinition {
        name: definition.name.clone(),
        database: None,
        ties: TieOrder::default(),
        message: MessageDefinition {
            table: location.table.clone(),
            id: message.id.clone(),
            author: message.author.clone(),
            order: Vec::new(),
        },
        follow: None,
    }
}

/// The column types of a data node's table.
///
/// # Errors
/// Why it cannot be followed.
fn types(
    definition: &TimelineDefinition,
    wanted: &FeedDefinition,
    location: &PartitionLocation,
    replies: &[ResultSet],
) -> Result<FeedColumnTypes, String> {
    let replies: Vec<catalogue::CatalogueRows> = replies.iter().map(ResultSet::cells).collect();
    let replies: [catalogue::CatalogueRows; 3] = replies
        .try_into()
        .map_err(|_| "the catalogue's answers are of another number".to_owned())?;
    let types = check(
        wanted,
        &DatabaseCatalogue::read(&location.database, &replies),
    )
    .map_err(|obstacles| {
        let texts: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
        texts.join("; ")
    })?;
    let message = &definition.message;
    for (column, kind, is) in [
        (&message.id, definition.id_type, types.id),
        (&message.author, definition.user_type, types.author),
    ] {
        if (bits(kind), kind.is_signed()) != (is.bits, is.signed) {
            let (database, table) = (&location.database, &location.table);
            return Err(format!(
                "the column {column} of {database}.{table} is not {kind}, as on the Spider node"
            ));
        }
    }
    Ok(types)
}

/// What keeps a timeline from being served from memory by the logs of its data nodes, whether they are followed now or not.
pub async fn obstacles(
    account: &UpstreamAccount,
    tls: &UpstreamTlsSection,
    definition: &TimelineDefinition,
    database: &str,
) -> Vec<String> {
    let message = &definition.message;
    let queries = partition_map::queries(database, &message.table, &definition.follower.table);
    let replies = match query_once(account, &queries).await {
        Ok(replies) => replies,
        Err(error) => {
            return vec![SpreadRefusal::Spider(with_grant_hint(&error, account)).to_string()];
        }
    };
    let map = match read(account, definition, database, replies) {
        Ok(map) => map,
        Err(why) => return vec![why.to_string()],
    };
    let mut found = Vec::new();
    let mut surveyed: Vec<&str> = Vec::new();
    for location in &map.parts {
        let address = &location.address;
        let at_node = |why: String| SpreadRefusal::at_node(address, why).to_string();
        match node_obstacles(account, tls, address, &mut surveyed).await {
            Ok((account, obstacles)) => {
                found.extend(obstacles.into_iter().map(at_node));
                let tables = [location.table.clone()];
                let queries = catalogue::catalogue_queries(&location.database, &tables);
                let replies = query_once(&account, &queries).await;
                let replies = replies.map_err(|error| error.to_string());
                let types = replies.and_then(|told| {
                    types(
                        definition,
                        &required_table(definition, location),
                        location,
                        &told,
                    )
                });
                found.extend(types.err().map(at_node));
            }
            Err(why) => found.push(at_node(why)),
        }
    }
    found
}

/// The account on a data node, and the obstacles there, only the first time.
async fn node_obstacles<'a>(
    account: &UpstreamAccount,
    tls: &UpstreamTlsSection,
    address: &'a str,
    surveyed: &mut Vec<&'a str>,
) -> Result<(UpstreamAccount, Vec<String>), String> {
    let connector = TlsConnector::new(tls, host(address)).map_err(|error| error.to_string())?;
    let account = account.with_target(UpstreamTarget::one(address, &connector));
    if surveyed.contains(&address) {
        return Ok((account, Vec::new()));
    }
    surveyed.push(address);
    let obstacles = obstacle_survey::server_obstacles(&account).await;
    let obstacles = obstacles.map_err(|error| error.to_string())?;
    let texts = obstacles.iter().map(ToString::to_string).collect();
    Ok((account, texts))
}

async fn query_once(
    account: &UpstreamAccount,
    queries: &[String],
) -> Result<Vec<ResultSet>, AccountError> {
    let mut conn = AccountConnection::open(account, ConnectionPurpose::Spread).await?;
    conn.rows_of(queries).await
}

fn bits(kind: IdType) -> u32 {
    match kind {
        IdType::Int | IdType::IntUnsigned => 32,
        IdType::BigInt | IdType::BigIntUnsigned => 64,
    }
}

fn with_grant_hint(error: &AccountError, account: &UpstreamAccount) -> String {
    match error.code() {
        Some(1142 | 1143 | 1044) => {
            let user = quoted(account.user());
            format!(
                "{error}; GRANT SELECT ON mysql.spider_tables TO {user}@...; GRANT SELECT ON mysql.servers TO {user}@..."
            )
        }
        _ => error.to_string(),
    }
}
