//! Asks a server what it is, on one connection that is kept.

use std::time::Duration;

use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use crate::catalogue::query_all;
use crate::cluster::{self, ClusterProduct, PRODUCT_QUERY, ServerObservation, ServerReport};

/// Who asks one server.
#[derive(Debug)]
pub(super) struct RoleProbe {
    account: UpstreamAccount,
    cached: Option<(AccountConnection, ClusterProduct)>,
}

impl RoleProbe {
    /// With an account that connects to this server alone.
    pub(super) fn new(account: UpstreamAccount) -> RoleProbe {
        RoleProbe {
            account,
            cached: None,
        }
    }

    /// What the server says within this time. `sources`: whom it replicates, too.
    pub(super) async fn probe(&mut self, sources: bool, patience: Duration) -> ServerObservation {
        let Ok(asked) = tokio::time::timeout(patience, self.query(sources)).await else {
            return ServerObservation::Unreachable(format!(
                "it has not answered within {} ms",
                patience.as_millis()
            ));
        };
        match asked {
            Ok(Ok(facts)) => ServerObservation::Reported(Box::new(facts)),
            Ok(Err(text)) => ServerObservation::Refused(text),
            Err(error @ (AccountError::Io(_) | AccountError::Waiting(_))) => {
                ServerObservation::Unreachable(error.to_string())
            }
            Err(error) => ServerObservation::Refused(error.to_string()),
        }
    }

    /// Waits until the connection has ended; for good where there is none.
    pub(super) async fn ended(&mut self) {
        match &mut self.cached {
            Some((conn, _)) => conn.ended().await,
            None => std::future::pending().await,
        }
    }

    async fn query(&mut self, sources: bool) -> Result<Result<ServerReport, String>, AccountError> {
        // A connection that was ended says nothing about the server, until another one cannot be made.
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
        // Who does not answer even this has nothing but the reason to tell.
        let product = product.unwrap_or(ClusterProduct::Mariadb { galera: false });
        let (facts, product) = query_on(&mut conn, product, sources).await?;
        self.cached = Some((conn, product));
        Ok(facts)
    }
}

/// The answers of a server, and what it is known to be by them. What it is in a Galera cluster is asked once it says that it is in one.
async fn query_on(
    conn: &mut AccountConnection,
    product: ClusterProduct,
    sources: bool,
) -> Result<(Result<ServerReport, String>, ClusterProduct), AccountError> {
    let answers = query_all(conn, &cluster::status_queries(product, sources)).await?;
    let facts = cluster::read_report(product, &answers);
    let known = facts.as_ref().map_or(product, |it| product.updated_by(it));
    if known == product {
        return Ok((facts, product));
    }
    let answers = query_all(conn, &cluster::status_queries(known, sources)).await?;
    Ok((cluster::read_report(known, &answers), known))
}
