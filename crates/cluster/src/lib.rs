//! Finds the primary among several servers and its replicas, and what has changed, from what each server reports of itself.
//!
//! No IO: the caller runs [`status_queries`], [`ServerReport`] holds what the answers contain, [`ClusterView`] decides.
//!
//! | module | what it is |
//! |---|---|
//! | `server_report` | what a server reports of itself, and whether it takes writes |
//! | `status_query` | the queries, and facts from their answers |
//! | `cluster_view` | the decision |

mod cluster_view;
mod server_report;
mod status_query;

pub use cluster_view::{ClusterChange, ClusterView, ServerObservation, ServerRole, ServerStatus};
pub use server_report::{
    GaleraMembership, GroupMembership, PrimaryFault, ReplicationSource, ReportedGtids, ServerReport,
};
pub use status_query::{ClusterProduct, PRODUCT_QUERY, read_report, status_queries};
