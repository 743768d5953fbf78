//! Certificates: what clients are shown, and what the server has to show.

mod acceptor;
mod certificate_verifier;
mod connector;
mod error;
mod generated_certificate;
mod pem_files;
pub mod settings;

pub use acceptor::TlsAcceptor;
pub use connector::TlsConnector;
pub use error::{TlsError, is_disagreement};
pub use generated_certificate::{GeneratedCertificate, planned_location};
pub use settings::{TlsMode, TlsSection, UpstreamTlsSection};
