//! Who is the primary of several servers, who are its replicas, and what has changed: by what each server says of itself.
//!
//! No IO: [`status_queries`] are asked by somebody else, [`ServerReport`] reads the answers, [`ClusterView`] concludes.
//!
//! | module | what it is |
//! |---|---|
//! | `server_report` | what a server says of itself, and whether it takes writes |
//! | `status_query` | the questions, and facts from their answers |
//! | `cluster_view` | the conclusion |

mod cluster_view;
mod server_report;
mod status_query;

pub use cluster_view::{ClusterChange, ClusterView, ServerObservation, ServerRole, ServerStatus};
pub use server_report::{
    GaleraMembership, GroupMembership, PrimaryFault, ReplicationSource, ReportedGtids, ServerReport,
};
pub use status_query::{ClusterProduct, PRODUCT_QUERY, read_report, status_queries};
