//! What one of several servers is asked beside what it is: whether the service account may see all by which that is known, and whether
//! its sessions' reads wait.

use super::account::as_known;
use super::waits::{self, text};
use crate::account::{Account, AccountError, Conn, Purpose};
use crate::binlog::right::Right;
use crate::catalogue::ask;
use crate::cluster::{self, PRODUCT};
use crate::timeline::check::{Answered, Product};

/// ER_TABLEACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR.
const DENIED: [u16; 2] = [1142, 1227];
/// Whether it may be in a replication group.
const PLUGIN: &str =
    "SELECT PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'group_replication'";
const MEMBERS: &str = "SELECT MEMBER_ID FROM performance_schema.replication_group_members LIMIT 1";
const SOURCES: &str = "SHOW REPLICA STATUS";

/// What was found of one server.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// Each a line: what has to be changed.
    pub(super) in_the_way: Vec<String>,
    /// Each a line: what would have to be changed if the server were used otherwise.
    pub(super) notes: Vec<String>,
}

/// Asks a server, on a connection of its own. `waits`: whether reads wait, too.
pub(super) async fn look(account: &Account, waits: bool) -> Result<Member, AccountError> {
    let mut conn = Conn::open(account, Purpose::Definitions).await?;
    let first = [PRODUCT, "SELECT CURRENT_USER()", SOURCES].map(str::to_owned);
    let first = ask(&mut conn, &first).await?;
    let product = match first.first().and_then(cluster::Product::of) {
        Some(cluster::Product::Mariadb { .. }) => Product::Mariadb,
        Some(cluster::Product::Mysql) => Product::Mysql,
        // It has said so already.
        None => return Ok(Member::default()),
    };
    let known = first.get(1).and_then(text).unwrap_or_default();
    let known = as_known(&known);
    let mut member = Member::default();
    if first.get(2).is_some_and(is_denied) {
        let right = Right::Sources(product);
        member.in_the_way.push(right.missing(&known));
    }
    if product == Product::Mysql {
        let group = ask(&mut conn, &[PLUGIN, MEMBERS].map(str::to_owned)).await?;
        let joins = group.first().and_then(text).as_deref() == Some("ACTIVE");
        let missing = group.get(1).is_some_and(is_denied);
        let right = Right::GroupMembers;
        match (missing, joins) {
            (true, true) => member.in_the_way.push(right.missing(&known)),
            (true, false) => member.notes.push(format!(
                "{}  -- needed once it is in a replication group: to {}",
                right.statement(&known),
                right.purpose()
            )),
            (false, _) => {}
        }
    }
    if waits {
        let answers = ask(&mut conn, &waits::questions(product)).await?;
        if let Some((name, value)) = waits::found(product, &answers) {
            let meaning = waits::meaning(name, &value);
            member
                .in_the_way
                .push(format!("{name} = {value:?} on the server: {meaning}"));
        }
    }
    Ok(member)
}

fn is_denied(answer: &Answered) -> bool {
    matches!(answer, Err(error) if DENIED.contains(&error.code))
}
