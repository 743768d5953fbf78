//! Who is the primary of several servers, who are its replicas, and what has changed: by what each server says of itself.
//!
//! No IO: [`questions`] are asked by somebody else, [`facts`] reads the answers, [`Cluster`] concludes.
//!
//! | module | what it is |
//! |---|---|
//! | `facts` | what a server says of itself, and whether it takes writes |
//! | `ask` | the questions, and facts from their answers |
//! | `cluster` | the conclusion |

mod ask;
mod cluster;
mod facts;

pub use ask::{PRODUCT, Product, facts, questions};
pub use cluster::{Change, Cluster, Role, Seen, Status};
pub use facts::{Facts, Fault, Group, Gtids, Node, SourceOf};
