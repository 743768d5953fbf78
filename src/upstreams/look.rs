//! Asks a server what it is, on one connection that is kept.

use std::time::Duration;

use crate::account::{Account, AccountError, Conn, Purpose};
use crate::catalogue::ask;
use crate::cluster::{self, Facts, PRODUCT, Product, Seen};

/// Who asks one server.
#[derive(Debug)]
pub(super) struct Look {
    account: Account,
    kept: Option<(Conn, Product)>,
}

impl Look {
    /// With an account that connects to this server alone.
    pub(super) fn new(account: Account) -> Look {
        Look {
            account,
            kept: None,
        }
    }

    /// What the server says within this time. `sources`: whom it replicates, too.
    pub(super) async fn look(&mut self, sources: bool, patience: Duration) -> Seen {
        let Ok(asked) = tokio::time::timeout(patience, self.ask(sources)).await else {
            return Seen::Away(format!(
                "it has not answered within {} ms",
                patience.as_millis()
            ));
        };
        match asked {
            Ok(Ok(facts)) => Seen::Told(Box::new(facts)),
            Ok(Err(text)) => Seen::Refuses(text),
            Err(error @ (AccountError::Io(_) | AccountError::Waiting(_))) => {
                Seen::Away(error.to_string())
            }
            Err(error) => Seen::Refuses(error.to_string()),
        }
    }

    /// Waits until the connection has ended; for good where there is none.
    pub(super) async fn ended(&mut self) {
        match &mut self.kept {
            Some((conn, _)) => conn.ended().await,
            None => std::future::pending().await,
        }
    }

    async fn ask(&mut self, sources: bool) -> Result<Result<Facts, String>, AccountError> {
        // A connection that was ended says nothing about the server, until another one cannot be made.
        if let Some((mut conn, product)) = self.kept.take()
            && conn.is_open()
            && let Ok((facts, product)) = ask_on(&mut conn, product, sources).await
        {
            self.kept = Some((conn, product));
            return Ok(facts);
        }
        let mut conn = Conn::open(&self.account, Purpose::Roles).await?;
        let answers = ask(&mut conn, &[PRODUCT.to_owned()]).await?;
        let product = answers.first().and_then(Product::of);
        // Who does not answer even this has nothing but the reason to tell.
        let product = product.unwrap_or(Product::Mariadb { galera: false });
        let (facts, product) = ask_on(&mut conn, product, sources).await?;
        self.kept = Some((conn, product));
        Ok(facts)
    }
}

/// The answers of a server, and what it is known to be by them. What it is in a Galera cluster is asked once it says that it is in one.
async fn ask_on(
    conn: &mut Conn,
    product: Product,
    sources: bool,
) -> Result<(Result<Facts, String>, Product), AccountError> {
    let answers = ask(conn, &cluster::questions(product, sources)).await?;
    let facts = cluster::facts(product, &answers);
    let known = facts.as_ref().map_or(product, |it| product.knowing(it));
    if known == product {
        return Ok((facts, product));
    }
    let answers = ask(conn, &cluster::questions(known, sources)).await?;
    Ok((cluster::facts(known, &answers), known))
}
