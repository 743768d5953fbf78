//! Queries a server's role, on one cached connection.

use std::time::Duration;

use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use crate::catalogue::query_all;
use headwater_cluster::{ClusterProduct, PRODUCT_QUERY, ServerObservation, ServerReport};

#[derive(Debug)]
pub(super) struct RoleProbe {
    account: UpstreamAccount,
    cached: Option<(AccountConnection, ClusterProduct)>,
}

impl RoleProbe {
    /// `account` connects to this server only.
    pub(super) fn new(account: UpstreamAccount) -> RoleProbe {
        RoleProbe {
            account,
            cached: None,
        }
    }

    /// What the server reports within `patience`. `sources`: also which servers it replicates from.
    pub(super) async fn probe(&mut self, sources: bool, patience: Duration) -> ServerObservation {
        let Ok(reply) = tokio::time::timeout(patience, self.query(sources)).await else {
            return ServerObservation::Unreachable(format!(
                "it has not answered within {} ms",
                patience.as_millis()
            ));
        };
        match reply {
            Ok(Ok(facts)) => ServerObservation::Reported(Box::new(facts)),
            Ok(Err(text)) => ServerObservation::Refused(text),
            Err(error @ (AccountError::Io(_) | AccountError::Waiting(_))) => {
                ServerObservation::Unreachable(error.to_string())
            }
            Err(error) => ServerObservation::Refused(error.to_string()),
        }
    }

    /// Waits until the connection has ended; forever if there is none.
    pub(super) async fn ended(&mut self) {
        match &mut self.cached {
            Some((conn, _)) => conn.ended().await,
            None => std::future::pending().await,
        }
    }

    async fn query(&mut self, sources: bool) -> Result<Result<ServerReport, String>, AccountError> {
        // A closed connection proves nothing about the server until a new one cannot be made.
        if let Some((mut conn, product)) = self.cached.take()
            && conn.is_open()
            && let Ok((facts, product)) = query_on(&mut conn, product, sources).await
        {
            self.cached = Some((conn, product));
            return Ok(facts);
        }
        let mut conn = AccountConnection::open(&self.account, ConnectionPurpose::Roles).await?;
        let answers = query_all(&mut conn, &[PRODUCT_QUERY.to_owned()]).await?;
        let product = answers.first().and_then(ClusterProduct::from_reply);
        // A server that does not answer even this returns its error next.
        let product = product.unwrap_or(ClusterProduct::Mariadb { galera: false });
        let (facts, product) = query_on(&mut conn, product, sources).await?;
        self.cached = Some((conn, product));
        Ok(facts)
    }
}

/// Queries a server's status; returns what it is known to be. A node of a Galera cluster is queried again with the cluster's queries.
async fn query_on(
    conn: &mut AccountConnection,
    product: ClusterProduct,
    sources: bool,
) -> Result<(Result<ServerReport, String>, ClusterProduct), AccountError> {
    let answers = query_all(conn, &headwater_cluster::status_queries(product, sources)).await?;
    let facts = headwater_cluster::read_report(product, &answers);
    let known = facts.as_ref().map_or(product, |it| product.updated_by(it));
    if known == product {
        return Ok((facts, product));
    }
    let answers = query_all(conn, &headwater_cluster::status_queries(known, sources)).await?;
    Ok((headwater_cluster::read_report(known, &answers), known))
}
