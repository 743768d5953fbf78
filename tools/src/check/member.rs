//! Further queries of one of several servers: whether the service account may see what its role is determined by, and whether its sessions'
//! reads wait.

use super::account::grant_name;
use super::cluster_waits::{self, text};
use headwater_cluster::PRODUCT_QUERY;
use headwater_proxy::account::{
    AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount,
};
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_proxy::catalogue::query_all;
use headwater_timeline::check::{CheckQueryResult, ServerProduct};

/// ER_TABLEACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR.
const DENIED: [u16; 2] = [1142, 1227];
/// Whether it may be in a replication group.
const PLUGIN: &str =
    "SELECT PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'group_replication'";
const MEMBERS: &str = "SELECT MEMBER_ID FROM performance_schema.replication_group_members LIMIT 1";
const SOURCES: &str = "SHOW REPLICA STATUS";

#[derive(Debug, Default)]
pub(super) struct MemberFindings {
    /// What must be changed, a line each.
    pub(super) obstacles: Vec<String>,
    /// What would have to be changed for another use of the server, a line each.
    pub(super) notes: Vec<String>,
}

/// Queries a server on a separate connection. `waits`: also whether reads wait.
pub(super) async fn survey_member(
    account: &UpstreamAccount,
    waits: bool,
) -> Result<MemberFindings, AccountError> {
    let mut conn = AccountConnection::open(account, ConnectionPurpose::Definitions).await?;
    let first = [PRODUCT_QUERY, "SELECT CURRENT_USER()", SOURCES].map(str::to_owned);
    let first = query_all(&mut conn, &first).await?;
    let product = match first
        .first()
        .and_then(headwater_cluster::ClusterProduct::from_reply)
    {
        Some(headwater_cluster::ClusterProduct::Mariadb { .. }) => ServerProduct::Mariadb,
        Some(headwater_cluster::ClusterProduct::Mysql) => ServerProduct::Mysql,
        // The role probe has reported that.
        None => return Ok(MemberFindings::default()),
    };
    let known = first.get(1).and_then(text).unwrap_or_default();
    let known = grant_name(&known);
    let mut member = MemberFindings::default();
    if first.get(2).is_some_and(is_denied) {
        let right = RequiredPrivilege::Sources(product);
        member.obstacles.push(right.missing_line(&known));
    }
    if product == ServerProduct::Mysql {
        let group = query_all(&mut conn, &[PLUGIN, MEMBERS].map(str::to_owned)).await?;
        let joins = group.first().and_then(text).as_deref() == Some("ACTIVE");
        let missing = group.get(1).is_some_and(is_denied);
        let right = RequiredPrivilege::GroupMembers;
        match (missing, joins) {
            (true, true) => member.obstacles.push(right.missing_line(&known)),
            (true, false) => member.notes.push(format!(
                "{}  -- needed once it is in a replication group: to {}",
                right.grant_statement(&known),
                right.purpose()
            )),
            (false, _) => {}
        }
    }
    if waits {
        let answers = query_all(&mut conn, &cluster_waits::queries(product)).await?;
        if let Some((name, value)) = cluster_waits::waiting_variable(product, &answers) {
            let meaning = cluster_waits::meaning(name, &value);
            member
                .obstacles
                .push(format!("{name} = {value:?} on the server: {meaning}"));
        }
    }
    Ok(member)
}

fn is_denied(answer: &CheckQueryResult) -> bool {
    matches!(answer, Err(error) if DENIED.contains(&error.code))
}
