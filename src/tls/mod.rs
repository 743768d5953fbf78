//! Certificates: what clients are shown, and what the server has to show.

mod acceptor;
mod connector;
mod error;
mod files;
mod own;
pub mod settings;
mod verify;

pub use acceptor::Acceptor;
pub use connector::Connector;
pub use error::{TlsError, is_disagreement};
pub use own::{Own, foretold};
pub use settings::{TlsMode, TlsSection, UpstreamTlsSection};
