//! Asks where a timeline's messages are, and whether the table on each data node can be followed.

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
use crate::feed::FeedDefinition;
use crate::feed::binding::FeedColumnTypes;
use crate::feed::catalogue::{self, DatabaseCatalogue};
use crate::feed::definition::MessageDefinition;
use crate::feed::table_check::check;
use crate::feeds::row_source;
use crate::sql::quoted;
use crate::timeline::definition::{IdType, TimelineDefinition};
use crate::tls::{TlsConnector, UpstreamTlsSection};
use crate::wire::resultset::ResultSet;

/// More timelines than memory takes.
const FULL: &str = "64 timelines of this server are in memory already, and no more are";

/// Why a timeline is not answered from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpreadRefusal {
    /// A log is not followed yet, or a connection is in use.
    NotFollowedYet,
    /// It cannot be told where the messages are, or from there not be followed.
    Map(String),
    /// The Spider node cannot be asked.
    Spider(String),
    /// Something is in the way on a data node.
    Node { address: String, why: String },
}

impl SpreadRefusal {
    /// Something is in the way on this data node.
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

/// Asks one server again and again.
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

    /// Asks the server whose log is followed.
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

/// Why a server did not answer.
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
    /// What it means, where it is not over in a moment.
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

/// A map, and the stream of the Spider node's log in which it was read first.
pub(super) type ObservedMap = (u64, PartitionMap);

impl SpreadMemory {
    /// Where everything is, while the logs are followed in which it would be told that it is elsewhere; `None`: as `before`.
    pub(super) async fn survey(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        before: Option<&FollowedTimeline>,
        asker: &mut ReusableConnection,
    ) -> Result<Option<FollowedTimeline>, SpreadRefusal> {
        let lists = self.binlog.follow_list_timeline(definition, database);
        let lists = lists.ok_or_else(|| SpreadRefusal::Map(FULL.to_owned()))?;
        let stream = self
            .binlog
            .mark_at(&lists, None)
            .ok_or(SpreadRefusal::NotFollowedYet)?
            .generation();
        let map = self
            .current_map(definition, database, (&lists, stream), asker)
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
        // One connection for all that a node has.
        let by_node = nodes.iter().map(|node| async {
            let mut asker = ReusableConnection::default();
            let mut shards = Vec::new();
            for location in &map.parts {
                if location.address == node.address {
                    let shard = load_shard(definition, location, (node, known), &mut asker).await?;
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
        // Two names of one server: it cannot be told by which Spider goes.
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
            let found = all.find(|(own, _)| *own == location);
            found.map(|(_, shard)| shard.clone())
        };
        let shards: Option<Vec<TimelineShard>> = map.parts.iter().map(of).collect();
        let shards = shards.ok_or(SpreadRefusal::NotFollowedYet)?;
        let lists = TimelineShard {
            binlog: Arc::clone(&self.binlog),
            timeline: lists,
            stream,
        };
        // Nothing of it was defined anew meanwhile.
        lists.mark(None).ok_or(SpreadRefusal::NotFollowedYet)?;
        Ok(Some(FollowedTimeline { map, lists, shards }))
    }

    /// Where the messages are; the Spider node heeds a change that is no statement about the table later, or never.
    async fn current_map(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        (lists, stream): (&CachedTimeline, u64),
        asker: &mut ReusableConnection,
    ) -> Result<PartitionMap, SpreadRefusal> {
        let map = load_map(&self.account, &self.binlog, definition, database, asker).await?;
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

/// Where the messages are.
async fn load_map(
    account: &UpstreamAccount,
    binlog: &Binlog,
    definition: &TimelineDefinition,
    database: &str,
    asker: &mut ReusableConnection,
) -> Result<PartitionMap, SpreadRefusal> {
    let message = &definition.message;
    let queries = partition_map::queries(database, &message.table, &definition.follower.table);
    let told = asker.query(account, binlog, &queries).await;
    let told = told.map_err(|failed| {
        let lasting = failed.permanent_error();
        lasting.map_or(SpreadRefusal::NotFollowedYet, |error| {
            SpreadRefusal::Spider(with_grant_hint(error, account))
        })
    })?;
    read(account, definition, database, told)
}

fn read(
    account: &UpstreamAccount,
    definition: &TimelineDefinition,
    database: &str,
    told: Vec<ResultSet>,
) -> Result<PartitionMap, SpreadRefusal> {
    let aim = account
        .target()
        .select()
        .ok_or(SpreadRefusal::NotFollowedYet)?;
    let upstream = match host(aim.server.address()) {
        "localhost" => "127.0.0.1",
        upstream => upstream,
    };
    let told: [ResultSet; 4] = told.try_into().map_err(|_| SpreadRefusal::NotFollowedYet)?;
    let message = &definition.message;
    let names = (database, &*message.table, &*message.author);
    partition_map::read(&told, names, upstream).map_err(SpreadRefusal::Map)
}

/// One part, if its table can be followed; as it is `known`, if nothing has become of it.
async fn load_shard(
    definition: &TimelineDefinition,
    location: &PartitionLocation,
    (node, known): (&Arc<DataNode>, &[TimelineShard]),
    asker: &mut ReusableConnection,
) -> Result<TimelineShard, SpreadRefusal> {
    let why = |why: String| SpreadRefusal::at_node(&node.address, why);
    if !node.is_followed() {
        let aside = node
            .binlog
            .suspension()
            .filter(|aside| aside.reason != STARTING);
        return Err(aside.map_or(SpreadRefusal::NotFollowedYet, |aside| why(aside.text)));
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
    let types = types_on(definition, &wanted, location, node, asker).await?;
    let place = node
        .binlog
        .cached_timeline(row_source(&wanted, types, &location.database));
    let place = place.ok_or_else(|| why(FULL.to_owned()))?;
    let mark = node
        .binlog
        .mark_at(&place, None)
        .ok_or(SpreadRefusal::NotFollowedYet)?;
    let shard = TimelineShard {
        binlog: Arc::clone(&node.binlog),
        timeline: place,
        stream: mark.generation(),
    };
    // Whatever becomes of the table ends this stream from here on.
    types_on(definition, &wanted, location, node, asker).await?;
    shard.mark(None).ok_or(SpreadRefusal::NotFollowedYet)?;
    Ok(shard)
}

/// What the columns of a data node's table hold by now.
async fn types_on(
    definition: &TimelineDefinition,
    wanted: &FeedDefinition,
    location: &PartitionLocation,
    node: &DataNode,
    asker: &mut ReusableConnection,
) -> Result<FeedColumnTypes, SpreadRefusal> {
    let why = |why: String| SpreadRefusal::at_node(&node.address, why);
    let tables = [location.table.clone()];
    let queries = catalogue::catalogue_queries(&location.database, &tables);
    let told = asker.query(&node.account, &node.binlog, &queries).await;
    let told = told.map_err(|failed| {
        let lasting = failed.permanent_error();
        lasting.map_or(
            SpreadRefusal::NotFollowedYet,
            |error| why(error.to_string()),
        )
    })?;
    types(definition, wanted, location, &told).map_err(why)
}

/// What a data node's table has to be.
fn required_table(definition: &TimelineDefinition, location: &PartitionLocation) -> FeedDefinition {
    let message = &definition.message;
    FeedDefinition {
        name: definition.name.clone(),
        database: None,
        message: MessageDefinition {
            table: location.table.clone(),
            id: message.id.clone(),
            author: message.author.clone(),
            order: Vec::new(),
        },
        follow: None,
    }
}

/// What the columns of a data node's table hold.
///
/// # Errors
/// Why it cannot be followed.
fn types(
    definition: &TimelineDefinition,
    wanted: &FeedDefinition,
    location: &PartitionLocation,
    told: &[ResultSet],
) -> Result<FeedColumnTypes, String> {
    let told: Vec<catalogue::CatalogueRows> = told.iter().map(ResultSet::cells).collect();
    let told: [catalogue::CatalogueRows; 3] = told
        .try_into()
        .map_err(|_| "the catalogue's answers are of another number".to_owned())?;
    let types =
        check(wanted, &DatabaseCatalogue::read(&location.database, &told)).map_err(|found| {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            found.join("; ")
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

/// What keeps a timeline from being answered from memory by the logs of its data nodes, whether they are followed now or not.
pub async fn obstacles(
    account: &UpstreamAccount,
    tls: &UpstreamTlsSection,
    definition: &TimelineDefinition,
    database: &str,
) -> Vec<String> {
    let message = &definition.message;
    let queries = partition_map::queries(database, &message.table, &definition.follower.table);
    let told = match query_once(account, &queries).await {
        Ok(told) => told,
        Err(error) => {
            return vec![SpreadRefusal::Spider(with_grant_hint(&error, account)).to_string()];
        }
    };
    let map = match read(account, definition, database, told) {
        Ok(map) => map,
        Err(why) => return vec![why.to_string()],
    };
    let mut found = Vec::new();
    let mut asked: Vec<&str> = Vec::new();
    for location in &map.parts {
        let address = &location.address;
        let says = |why: String| SpreadRefusal::at_node(address, why).to_string();
        match node_obstacles(account, tls, address, &mut asked).await {
            Ok((account, obstacles)) => {
                found.extend(obstacles.into_iter().map(says));
                let tables = [location.table.clone()];
                let queries = catalogue::catalogue_queries(&location.database, &tables);
                let told = query_once(&account, &queries).await;
                let told = told.map_err(|error| error.to_string());
                let types = told.and_then(|told| {
                    types(
                        definition,
                        &required_table(definition, location),
                        location,
                        &told,
                    )
                });
                found.extend(types.err().map(says));
            }
            Err(why) => found.push(says(why)),
        }
    }
    found
}

/// The account on a data node, and what is in the way there, the first time it is asked for.
async fn node_obstacles<'a>(
    account: &UpstreamAccount,
    tls: &UpstreamTlsSection,
    address: &'a str,
    asked: &mut Vec<&'a str>,
) -> Result<(UpstreamAccount, Vec<String>), String> {
    let connector = TlsConnector::new(tls, host(address)).map_err(|error| error.to_string())?;
    let account = account.with_target(UpstreamTarget::one(address, &connector));
    if asked.contains(&address) {
        return Ok((account, Vec::new()));
    }
    asked.push(address);
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
