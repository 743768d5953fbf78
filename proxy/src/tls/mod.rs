//! Certificates: those shown to clients, and the verification of the server's.

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
