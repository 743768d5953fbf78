//! The data nodes whose logs are followed, each by its own [`Binlog`], and how they share memory.

use std::sync::Arc;

use futures_util::future::join_all;
use tracing::Instrument;

use super::spread_survey::{ReusableConnection, SpreadRefusal};
use crate::account::{UpstreamAccount, UpstreamTarget, host};
use crate::binlog::{Binlog, BinlogLimits, FreshnessSection};
use crate::tls::{TlsConnector, TlsError, UpstreamTlsSection};

pub(super) const MOST_NODES: usize = 16;

/// A data node whose log is followed while this value lives.
#[derive(Debug)]
pub(super) struct DataNode {
    pub(super) address: String,
    pub(super) account: UpstreamAccount,
    pub(super) binlog: Arc<Binlog>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for DataNode {
    fn drop(&mut self) {
        self.task.abort();
        self.binlog.close();
    }
}

impl DataNode {
    pub(super) fn is_followed(&self) -> bool {
        self.binlog.suspension().is_none()
    }

    /// Checks whether a new connection, as the Spider node may open at any time, still leads to the server whose log is followed. If not,
    /// the other server is followed from now on.
    async fn check_address(&self) {
        if !self.is_followed() {
            return;
        }
        let leads = ReusableConnection::default()
            .leads_to_followed_server(&self.account, &self.binlog)
            .await;
        if let Ok(false) = leads {
            tracing::warn!(
                "data node {}: another server has come to this address; its log is followed from now on",
                self.address
            );
            self.binlog.change_primary();
        }
    }
}

#[derive(Debug)]
pub(super) struct DataNodeSet {
    account: UpstreamAccount,
    /// The Spider node's log, whose memory they share.
    binlog: Arc<Binlog>,
    freshness: FreshnessSection,
    tls: UpstreamTlsSection,
    all: Vec<Arc<DataNode>>,
}

impl DataNodeSet {
    pub(super) fn new(
        account: UpstreamAccount,
        binlog: Arc<Binlog>,
        freshness: FreshnessSection,
        tls: UpstreamTlsSection,
    ) -> DataNodeSet {
        DataNodeSet {
            account,
            binlog,
            freshness,
            tls,
            all: Vec::new(),
        }
    }

    pub(super) fn all(&self) -> &[Arc<DataNode>] {
        &self.all
    }

    /// The nodes at these addresses, in their order; new ones are followed from now on.
    pub(super) fn follow_addresses(
        &mut self,
        addresses: &[String],
    ) -> Result<Vec<Arc<DataNode>>, SpreadRefusal> {
        let mut nodes = Vec::with_capacity(addresses.len());
        for address in addresses {
            let known = self.all.iter().find(|node| node.address == *address);
            let node = match known {
                Some(node) => Arc::clone(node),
                None if self.all.len() >= MOST_NODES => {
                    return Err(SpreadRefusal::Map(format!(
                        "there are more than {MOST_NODES} data nodes, of which no more are followed"
                    )));
                }
                None => {
                    let node = self
                        .connect_node(address)
                        .map_err(|error| SpreadRefusal::at_node(address, error.to_string()))?;
                    self.all.push(Arc::clone(&node));
                    node
                }
            };
            nodes.push(node);
        }
        self.share_out();
        Ok(nodes)
    }

    pub(super) fn retain(&mut self, used: impl Fn(&str) -> bool) {
        self.all.retain(|node| used(&node.address));
        self.share_out();
    }

    /// Gives each node's log as much memory as each of the Spider node's own timelines.
    pub(super) fn share_out(&self) {
        let bytes = self.binlog.share_with(self.all.len());
        for node in &self.all {
            node.binlog.resize(bytes);
        }
    }

    fn connect_node(&self, address: &str) -> Result<Arc<DataNode>, TlsError> {
        let connector = TlsConnector::new(&self.tls, host(address))?;
        let account = self
            .account
            .with_target(UpstreamTarget::one(address, &connector));
        let limits = BinlogLimits {
            rows_bytes: 0,
            preload: false,
            ..*self.binlog.limits()
        };
        let (binlog, inbox) = Binlog::new(account.clone(), self.freshness, limits);
        // Its log lines name this node.
        let span = tracing::error_span!("data_node", address);
        let task = tokio::spawn(Arc::clone(&binlog).run(inbox).instrument(span));
        Ok(Arc::new(DataNode {
            address: address.to_owned(),
            account,
            binlog,
            task,
        }))
    }
}

/// Checks whether each address still leads to the server that is followed.
pub(super) async fn check_addresses(nodes: &[Arc<DataNode>]) {
    join_all(nodes.iter().map(|node| node.check_address())).await;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::binlog::{BinlogSection, IndexSection};

    fn limits() -> BinlogLimits {
        let (index, binlog) = (IndexSection::default(), BinlogSection::default());
        BinlogLimits {
            memory_bytes: index.memory_bytes,
            index_bytes: 1 << 30,
            preload: false,
            wait_ms: 10,
            rows_bytes: 0,
            load_bytes: 1 << 20,
            transaction_rows: binlog.transaction_rows,
            event_bytes: binlog.event_bytes,
            data_nodes: true,
        }
    }

    #[tokio::test]
    async fn nothing_remains_of_a_dropped_data_node() {
        let tls = UpstreamTlsSection::default();
        let connector = TlsConnector::new(&tls, "127.0.0.1").unwrap();
        // No server listens there.
        let account = UpstreamAccount::new("127.0.0.1:1", "nobody", "", &connector);
        let freshness = FreshnessSection {
            wait_ms: 10,
            ..FreshnessSection::default()
        };
        let (own, _inbox) = Binlog::new(account.clone(), freshness, limits());
        let mut nodes = DataNodeSet::new(account, Arc::clone(&own), freshness, tls);
        let addresses = ["127.0.0.1:1", "127.0.0.1:2"].map(str::to_owned);
        let followed = nodes.follow_addresses(&addresses).unwrap();
        // One proves for this thread from now on.
        assert!(!followed.first().unwrap().binlog.prove_freshness_now().await);
        let weak: Vec<_> = followed
            .iter()
            .map(|it| Arc::downgrade(&it.binlog))
            .collect();
        let budget = own.share_with(2);
        drop(followed);
        nodes.retain(|address| address == "127.0.0.1:2");
        assert_eq!(nodes.all().len(), 1);
        assert!(own.share_with(1) >= budget);
        let gone = async {
            while weak.first().unwrap().upgrade().is_some() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), gone)
            .await
            .unwrap();
        assert!(weak.last().unwrap().upgrade().is_some());
    }

    #[tokio::test]
    async fn there_are_only_so_many() {
        let tls = UpstreamTlsSection::default();
        let connector = TlsConnector::new(&tls, "127.0.0.1").unwrap();
        let account = UpstreamAccount::new("127.0.0.1:1", "nobody", "", &connector);
        let freshness = FreshnessSection::default();
        let (own, _inbox) = Binlog::new(account.clone(), freshness, limits());
        let mut nodes = DataNodeSet::new(account, own, freshness, tls);
        let addresses: Vec<String> = (1..=MOST_NODES)
            .map(|it| format!("127.0.0.1:{it}"))
            .collect();
        assert_eq!(
            nodes.follow_addresses(&addresses).unwrap().len(),
            MOST_NODES
        );
        assert!(
            nodes
                .follow_addresses(&["127.0.0.1:99".to_owned()])
                .is_err()
        );
        // Dropped nodes make room.
        nodes.retain(|_| false);
        assert!(nodes.follow_addresses(&["127.0.0.1:99".to_owned()]).is_ok());
    }
}
