//! Asks where a timeline's messages are, and whether the table on each data node can be followed.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;

use super::Spread;
use super::map::{self, Location, Map};
use super::nodes::Node;
use super::page::{Followed, Shard};
use crate::account::{Account, AccountError, Conn, Purpose, Target, host};
use crate::binlog::{Binlog, Place, STARTING, survey};
use crate::feed::FeedDefinition;
use crate::feed::bind::Types;
use crate::feed::check::check;
use crate::feed::definition::Messages;
use crate::feed::facts::{self, Tables};
use crate::feeds::rows_of;
use crate::sql::quoted;
use crate::timeline::definition::{Definition, IntType};
use crate::tls::{Connector, UpstreamTlsSection};
use crate::wire::resultset::Rows;

/// More timelines than memory takes.
const FULL: &str = "64 timelines of this server are in memory already, and no more are";

/// Why a timeline is not answered from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// A log is not followed yet, or a connection is in use.
    NotYet,
    /// It cannot be told where the messages are, or from there not be followed.
    Map(String),
    /// The Spider node cannot be asked.
    Spider(String),
    /// Something is in the way on a data node.
    Node { address: String, why: String },
}

impl Why {
    /// Something is in the way on this data node.
    pub(super) fn on(address: &str, why: String) -> Why {
        let address = address.to_owned();
        Why::Node { address, why }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotYet => f.write_str("the logs are not followed yet"),
            Why::Map(why) => f.write_str(why),
            Why::Spider(why) => write!(
                f,
                "the Spider node cannot be asked where its data nodes are: {why}"
            ),
            Why::Node { address, why } => write!(f, "data node {address}: {why}"),
        }
    }
}

/// Asks one server again and again.
#[derive(Debug, Default)]
pub(super) struct Asker(Option<Conn>);

impl Asker {
    /// A connection, if it leads to the server whose log is followed.
    async fn connection(&mut self, account: &Account, binlog: &Binlog) -> Result<Conn, Failed> {
        let open = self.0.take();
        let mut conn = match open.and_then(|mut conn| conn.is_open().then_some(conn)) {
            Some(conn) => conn,
            None => Conn::open(account, Purpose::Spread).await?,
        };
        match binlog.is_of(&mut conn).await? {
            true => Ok(conn),
            false => Err(Failed::Elsewhere),
        }
    }

    /// Asks the server whose log is followed.
    async fn ask(
        &mut self,
        account: &Account,
        binlog: &Binlog,
        queries: &[String],
    ) -> Result<Vec<Rows>, Failed> {
        let mut conn = self.connection(account, binlog).await?;
        let rows = conn.rows_of(queries).await?;
        self.0 = Some(conn);
        Ok(rows)
    }

    /// Whether a new connection leads to the server whose log is followed.
    pub(super) async fn leads_to(
        &mut self,
        account: &Account,
        binlog: &Binlog,
    ) -> Result<bool, Failed> {
        match self.connection(account, binlog).await {
            Ok(_) => Ok(true),
            Err(Failed::Elsewhere) => Ok(false),
            Err(failed) => Err(failed),
        }
    }
}

/// Why a server did not answer.
#[derive(Debug)]
pub(super) enum Failed {
    /// The connection leads to another server than the one that is followed.
    Elsewhere,
    Account(AccountError),
}

impl From<AccountError> for Failed {
    fn from(error: AccountError) -> Self {
        Failed::Account(error)
    }
}

impl Failed {
    /// What it means, where it is not over in a moment.
    fn lasting(&self) -> Option<&AccountError> {
        match self {
            Failed::Elsewhere
            | Failed::Account(
                AccountError::Waiting(_) | AccountError::NoPrimary | AccountError::Moved,
            ) => None,
            Failed::Account(error) => Some(error),
        }
    }
}

/// A map, and the stream of the Spider node's log in which it was read first.
pub(super) type Seen = (u64, Map);

impl Spread {
    /// Where everything is, while the logs are followed in which it would be told that it is elsewhere; `None`: as `before`.
    pub(super) async fn survey(
        &self,
        definition: &Definition,
        database: &str,
        before: Option<&Followed>,
        asker: &mut Asker,
    ) -> Result<Option<Followed>, Why> {
        let lists = self.binlog.place_of_lists(definition, database);
        let lists = lists.ok_or_else(|| Why::Map(FULL.to_owned()))?;
        let stream = self
            .binlog
            .mark_at(&lists, None)
            .ok_or(Why::NotYet)?
            .generation();
        let map = self
            .map_now(definition, database, (&lists, stream), asker)
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
            let mut asker = Asker::default();
            let mut shards = Vec::new();
            for location in &map.parts {
                if location.address == node.address {
                    let shard = shard(definition, location, (node, known), &mut asker).await?;
                    shards.push((location, shard));
                }
            }
            Ok(shards)
        });
        let by_node = join_all(by_node).await;
        let by_node: Vec<(&Location, Shard)> = by_node
            .into_iter()
            .collect::<Result<Vec<_>, Why>>()?
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
            return Err(Why::Map("two partitions lead to one table".to_owned()));
        }
        let of = |location: &Location| {
            let mut all = by_node.iter();
            let found = all.find(|(own, _)| *own == location);
            found.map(|(_, shard)| shard.clone())
        };
        let shards: Option<Vec<Shard>> = map.parts.iter().map(of).collect();
        let shards = shards.ok_or(Why::NotYet)?;
        let lists = Shard {
            binlog: Arc::clone(&self.binlog),
            place: lists,
            stream,
        };
        // Nothing of it was defined anew meanwhile.
        lists.mark(None).ok_or(Why::NotYet)?;
        Ok(Some(Followed { map, lists, shards }))
    }

    /// Where the messages are; the Spider node heeds a change that is no statement about the table later, or never.
    async fn map_now(
        &self,
        definition: &Definition,
        database: &str,
        (lists, stream): (&Place, u64),
        asker: &mut Asker,
    ) -> Result<Map, Why> {
        let map = where_it_is(&self.account, &self.binlog, definition, database, asker).await?;
        match self.seen_first(definition, database, (stream, map.clone())) {
            Some(first) if first != map => {
                // A statement about the table would have ended the stream by then.
                let is_fresh = self.binlog.is_fresh_now().await;
                let now = self
                    .binlog
                    .mark_at(lists, None)
                    .map(|mark| mark.generation());
                if !is_fresh || now != Some(stream) {
                    return Err(Why::NotYet);
                }
                Err(Why::Map(format!(
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
async fn where_it_is(
    account: &Account,
    binlog: &Binlog,
    definition: &Definition,
    database: &str,
    asker: &mut Asker,
) -> Result<Map, Why> {
    let message = &definition.message;
    let queries = map::queries(database, &message.table, &definition.follower.table);
    let told = asker.ask(account, binlog, &queries).await;
    let told = told.map_err(|failed| {
        let lasting = failed.lasting();
        lasting.map_or(Why::NotYet, |error| Why::Spider(with_right(error, account)))
    })?;
    read(account, definition, database, told)
}

fn read(
    account: &Account,
    definition: &Definition,
    database: &str,
    told: Vec<Rows>,
) -> Result<Map, Why> {
    let aim = account.target().aim().ok_or(Why::NotYet)?;
    let upstream = match host(aim.server.address()) {
        "localhost" => "127.0.0.1",
        upstream => upstream,
    };
    let told: [Rows; 4] = told.try_into().map_err(|_| Why::NotYet)?;
    let message = &definition.message;
    let names = (database, &*message.table, &*message.author);
    map::read(&told, names, upstream).map_err(Why::Map)
}

/// One part, if its table can be followed; as it is `known`, if nothing has become of it.
async fn shard(
    definition: &Definition,
    location: &Location,
    (node, known): (&Arc<Node>, &[Shard]),
    asker: &mut Asker,
) -> Result<Shard, Why> {
    let why = |why: String| Why::on(&node.address, why);
    if !node.is_followed() {
        let aside = node.binlog.aside().filter(|aside| aside.reason != STARTING);
        return Err(aside.map_or(Why::NotYet, |aside| why(aside.text)));
    }
    let is_of = |shard: &&Shard| {
        let here = Arc::ptr_eq(&shard.binlog, &node.binlog);
        here && shard.place.is_of(&location.database, &location.table)
    };
    if let Some(shard) = known.iter().find(is_of)
        && shard.mark(None).is_some()
    {
        return Ok(shard.clone());
    }
    let wanted = wanted(definition, location);
    let types = types_on(definition, &wanted, location, node, asker).await?;
    let place = node
        .binlog
        .place(rows_of(&wanted, types, &location.database));
    let place = place.ok_or_else(|| why(FULL.to_owned()))?;
    let mark = node.binlog.mark_at(&place, None).ok_or(Why::NotYet)?;
    let shard = Shard {
        binlog: Arc::clone(&node.binlog),
        place,
        stream: mark.generation(),
    };
    // Whatever becomes of the table ends this stream from here on.
    types_on(definition, &wanted, location, node, asker).await?;
    shard.mark(None).ok_or(Why::NotYet)?;
    Ok(shard)
}

/// What the columns of a data node's table hold by now.
async fn types_on(
    definition: &Definition,
    wanted: &FeedDefinition,
    location: &Location,
    node: &Node,
    asker: &mut Asker,
) -> Result<Types, Why> {
    let why = |why: String| Why::on(&node.address, why);
    let tables = [location.table.clone()];
    let queries = facts::queries(&location.database, &tables);
    let told = asker.ask(&node.account, &node.binlog, &queries).await;
    let told = told.map_err(|failed| {
        let lasting = failed.lasting();
        lasting.map_or(Why::NotYet, |error| why(error.to_string()))
    })?;
    types(definition, wanted, location, &told).map_err(why)
}

/// What a data node's table has to be.
fn wanted(definition: &Definition, location: &Location) -> FeedDefinition {
    let message = &definition.message;
    FeedDefinition {
        name: definition.name.clone(),
        database: None,
        message: Messages {
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
    definition: &Definition,
    wanted: &FeedDefinition,
    location: &Location,
    told: &[Rows],
) -> Result<Types, String> {
    let told: Vec<facts::Told> = told.iter().map(Rows::cells).collect();
    let told: [facts::Told; 3] = told
        .try_into()
        .map_err(|_| "the catalogue's answers are of another number".to_owned())?;
    let types = check(wanted, &Tables::read(&location.database, &told)).map_err(|found| {
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
    account: &Account,
    tls: &UpstreamTlsSection,
    definition: &Definition,
    database: &str,
) -> Vec<String> {
    let message = &definition.message;
    let queries = map::queries(database, &message.table, &definition.follower.table);
    let told = match ask_once(account, &queries).await {
        Ok(told) => told,
        Err(error) => return vec![Why::Spider(with_right(&error, account)).to_string()],
    };
    let map = match read(account, definition, database, told) {
        Ok(map) => map,
        Err(why) => return vec![why.to_string()],
    };
    let mut found = Vec::new();
    let mut asked: Vec<&str> = Vec::new();
    for location in &map.parts {
        let address = &location.address;
        let says = |why: String| Why::on(address, why).to_string();
        match on_node(account, tls, address, &mut asked).await {
            Ok((account, obstacles)) => {
                found.extend(obstacles.into_iter().map(says));
                let tables = [location.table.clone()];
                let queries = facts::queries(&location.database, &tables);
                let told = ask_once(&account, &queries).await;
                let told = told.map_err(|error| error.to_string());
                let types = told.and_then(|told| {
                    types(definition, &wanted(definition, location), location, &told)
                });
                found.extend(types.err().map(says));
            }
            Err(why) => found.push(says(why)),
        }
    }
    found
}

/// The account on a data node, and what is in the way there, the first time it is asked for.
async fn on_node<'a>(
    account: &Account,
    tls: &UpstreamTlsSection,
    address: &'a str,
    asked: &mut Vec<&'a str>,
) -> Result<(Account, Vec<String>), String> {
    let connector = Connector::new(tls, host(address)).map_err(|error| error.to_string())?;
    let account = account.at(Target::one(address, &connector));
    if asked.contains(&address) {
        return Ok((account, Vec::new()));
    }
    asked.push(address);
    let obstacles = survey::server(&account).await;
    let obstacles = obstacles.map_err(|error| error.to_string())?;
    let texts = obstacles.iter().map(ToString::to_string).collect();
    Ok((account, texts))
}

async fn ask_once(account: &Account, queries: &[String]) -> Result<Vec<Rows>, AccountError> {
    let mut conn = Conn::open(account, Purpose::Spread).await?;
    conn.rows_of(queries).await
}

fn bits(kind: IntType) -> u32 {
    match kind {
        IntType::Int | IntType::IntUnsigned => 32,
        IntType::BigInt | IntType::BigIntUnsigned => 64,
    }
}

fn with_right(error: &AccountError, account: &Account) -> String {
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
