//! Certificates for tests: a CA, and the certificates that it signs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// A CA with its files in a temporary folder.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    ca: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Identity {
    pub(crate) fn cert(&self) -> &str {
        self.cert.to_str().unwrap()
    }

    pub(crate) fn key(&self) -> &str {
        self.key.to_str().unwrap()
    }
}

fn params(name: &str) -> CertificateParams {
    let names = ["localhost", "127.0.0.1", "127.0.0.2"].map(str::to_owned);
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, format!("{}", folder.path().display()));
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.path().join("ca.pem"), ca.pem()).unwrap();
        Authority { folder, ca }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Signs a certificate for `localhost` and addresses of the loopback network.
    pub(crate) fn sign(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let cert = params(name).signed_by(&key, &self.ca).unwrap();
        self.write(name, &cert, &key)
    }

    /// A self-signed certificate.
    pub(crate) fn sign_by_itself(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let cert = params(name).self_signed(&key).unwrap();
        self.write(name, &cert, &key)
    }

    fn write(&self, name: &str, cert: &Certificate, key: &KeyPair) -> Identity {
        let identity = Identity {
            cert: self.folder.path().join(format!("{name}.pem")),
            key: self.folder.path().join(format!("{name}.key")),
        };
        std::fs::write(&identity.cert, cert.pem()).unwrap();
        std::fs::write(&identity.key, key.serialize_pem()).unwrap();
        identity
    }

    /// The server options that turn on TLS with this certificate.
    pub(crate) fn server_options(&self, identity: &Identity) -> Vec<String> {
        vec![
            format!("--ssl-cert={}", identity.cert()),
            format!("--ssl-key={}", identity.key()),
            format!("--ssl-ca={}", self.path().display()),
        ]
    }

    /// A client configuration that trusts this CA and presents a client certificate where one is given.
    pub(crate) fn trust(&self, own: Option<&Identity>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.der().clone()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        Arc::new(match own {
            None => builder.with_no_client_auth(),
            Some(own) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_file(&own.cert).unwrap()],
                    PrivateKeyDer::from_pem_file(&own.key).unwrap(),
                )
                .unwrap(),
        })
    }
}

/// A client configuration that accepts any certificate, as most MySQL clients do.
pub(crate) fn trust_anyone() -> Arc<ClientConfig> {
    let builder = ClientConfig::builder().dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(Anyone));
    Arc::new(builder.with_no_client_auth())
}

/// Reads the certificate from a file.
pub(crate) fn read(path: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).unwrap()
}

#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = default_provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
