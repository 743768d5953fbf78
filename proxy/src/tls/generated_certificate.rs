//! The certificate that Headwater generates if none is set: generated once, and stored in a file that only its user may read.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::fs::{Access, access};

use super::acceptor::TlsIdentity;
use super::error::TlsError;
use super::pem_files;
use super::settings::TlsSection;

const SETTING: &str = "tls.own_file";
const FILE_NAME: &str = "tls.pem";
/// Addresses remembered whose clients rejected the certificate.
const MAX_ADDRESSES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4_095);

/// Where the certificate is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CertificateLocation {
    /// In this file.
    File(PathBuf),
    /// Only in memory, for this reason.
    MemoryOnly(String),
}

/// The generated certificate, and which clients it is offered to: clients that worked without TLS must not fail because of it.
#[derive(Debug)]
pub struct GeneratedCertificate {
    location: CertificateLocation,
    /// The server's side cannot have TLS, so the clients' has none.
    withdrawn: AtomicBool,
    /// Addresses whose clients rejected it.
    refusing_addresses: Mutex<LruCache<IpAddr, ()>>,
}

impl GeneratedCertificate {
    /// Reads the certificate, or generates it.
    ///
    /// # Errors
    /// If a file that the settings name cannot be read, written or used. Without one, falls back to a certificate for this process alone.
    pub(super) fn new(
        settings: &TlsSection,
    ) -> Result<(GeneratedCertificate, TlsIdentity), TlsError> {
        let at_location = |location| GeneratedCertificate {
            location,
            withdrawn: AtomicBool::new(false),
            refusing_addresses: Mutex::new(LruCache::new(MAX_ADDRESSES)),
        };
        let is_asked_for = settings.own_file.is_some();
        let why = match certificate_path(settings) {
            Some(path) => match load_or_generate(&path) {
                Ok(identity) => {
                    return Ok((at_location(CertificateLocation::File(path)), identity));
                }
                Err(error) if is_asked_for => return Err(error),
                Err(error) => error.to_string(),
            },
            None => "there is no home folder to keep it in".to_owned(),
        };
        Ok((
            at_location(CertificateLocation::MemoryOnly(why)),
            parse_identity(&generate().map_err(generate_error)?)?,
        ))
    }

    /// True if clients at this address may be offered TLS; `None`: a client of the Unix socket, which needs none.
    pub fn is_offered_to(&self, address: Option<IpAddr>) -> bool {
        let Some(address) = address.filter(|_| !self.withdrawn.load(Ordering::Relaxed)) else {
            return false;
        };
        let refusers = self.refusing_addresses.lock();
        let mut refusers = refusers.unwrap_or_else(PoisonError::into_inner);
        refusers.get(&address.to_canonical()).is_none()
    }

    /// Records that a client at this address rejected it. True if that is new.
    pub fn record_refusal(&self, address: IpAddr) -> bool {
        let refusers = self.refusing_addresses.lock();
        let mut refusers = refusers.unwrap_or_else(PoisonError::into_inner);
        refusers.put(address.to_canonical(), ()).is_none()
    }

    /// Stops offering it. True if it was offered until now.
    pub fn withdraw(&self) -> bool {
        !self.withdrawn.swap(true, Ordering::Relaxed)
    }

    /// The consequences, for people.
    #[must_use]
    pub fn withdrawal(&self) -> &'static str {
        "clients are offered no TLS, and the server's side has none, until settings are read again: the server offers TLS that Headwater \
         cannot have with it. Set tls.own = false, or see upstream_tls in the settings"
    }

    /// Where it is stored, for people.
    #[must_use]
    pub fn location_text(&self) -> String {
        match &self.location {
            CertificateLocation::File(path) => format!("kept in {} (tls.own_file)", path.display()),
            CertificateLocation::MemoryOnly(why) => format!(
                "which is another one after each start, since it cannot be kept: {why}. Mend that, or set tls.own_file to another file"
            ),
        }
    }
}

/// Where it is or would be stored, for people; generates nothing.
///
/// # Errors
/// As `GeneratedCertificate::new` would fail.
pub fn planned_location(settings: &TlsSection) -> Result<String, TlsError> {
    let Some(path) = certificate_path(settings) else {
        return Ok(
            "made anew at each start: there is no home folder to keep it in (tls.own_file)"
                .to_owned(),
        );
    };
    let shown = path.display();
    let fault = match read_identity(&path) {
        Ok(Some(_)) => return Ok(format!("kept in {shown} (tls.own_file)")),
        Ok(None) => match may_write(&path) {
            Ok(()) => {
                return Ok(format!(
                    "to be made at the start, and kept in {shown} (tls.own_file)"
                ));
            }
            Err(source) => write_error(&path)(source),
        },
        Err(error) => error,
    };
    match settings.own_file {
        Some(_) => Err(fault),
        None => Ok(format!(
            "made anew at each start, since it cannot be kept: {fault}"
        )),
    }
}

/// The file: as it is set, or in the state folder that the service manager or the system assigns.
fn certificate_path(settings: &TlsSection) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    settings.own_file.clone().or_else(|| {
        default_path(
            variable("STATE_DIRECTORY"),
            variable("XDG_STATE_HOME"),
            variable("HOME"),
        )
    })
}

/// The file, by these environment variables.
fn default_path(
    service: Option<OsString>,
    state: Option<OsString>,
    home: Option<OsString>,
) -> Option<PathBuf> {
    // systemd gives several folders with colons between them.
    let first = |folders: OsString| std::env::split_paths(&folders).next();
    let folder = service
        .and_then(first)
        .or_else(|| state.map(|folder| Path::new(&folder).join("headwater")))
        .or_else(|| home.map(|folder| Path::new(&folder).join(".local/state/headwater")))?;
    folder.is_absolute().then(|| folder.join(FILE_NAME))
}

/// Reads the file; generates it if it is missing.
fn load_or_generate(path: &Path) -> Result<TlsIdentity, TlsError> {
    if let Some(identity) = read_identity(path)? {
        return Ok(identity);
    }
    let text = generate().map_err(generate_error)?;
    write(path, &text).map_err(write_error(path))?;
    // Another process may have written it first.
    read_identity(path)?.ok_or_else(|| write_error(path)(io::ErrorKind::NotFound.into()))
}

/// Reads the file; `None`: it does not exist.
fn read_identity(path: &Path) -> Result<Option<TlsIdentity>, TlsError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(file) if file.is_dir() => {
            let fault = format!("{} is a folder: name a file", path.display());
            return Err(TlsError::unfit(SETTING, fault));
        }
        Ok(file) if file.permissions().mode() & 0o077 != 0 => {
            return Err(TlsError::unfit(
                SETTING,
                format!(
                    "others may read the key in {0}: chmod 600 {0}",
                    path.display()
                ),
            ));
        }
        // Reading reports the error.
        _ => {}
    }
    let mut shown = pem_files::certificates(SETTING, path)?;
    shown.truncate(1);
    Ok(Some((shown, pem_files::key(SETTING, path)?)))
}

/// Generates a certificate, its CA, and its key, in PEM form. The CA's key is discarded: it never signs another.
///
/// MariaDB's clients since 11.4 require a self-signed certificate to be proved by the account's password, which only the server can do. For
/// one signed by an unknown CA they require no proof (11.8), unless they are given trusted CAs.
fn generate() -> Result<String, rcgen::Error> {
    let named = |name: &str, hosts: Vec<String>| {
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name.push(DnType::CommonName, name);
        Ok::<_, rcgen::Error>(params)
    };
    let mut ca = named("Headwater's own CA", Vec::new())?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = named("Headwater", host_names())?.signed_by(&key, &ca)?;
    Ok([certificate.pem(), ca.pem(), key.serialize_pem()].concat())
}

/// The names by which clients may connect to this machine.
fn host_names() -> Vec<String> {
    let host_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host_name = host_name.trim().to_owned();
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.';
    let host_name = (!host_name.is_empty() && host_name.chars().all(is_name)).then_some(host_name);
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    local.into_iter().chain(host_name).collect()
}

/// Parses the file, without the CA: clients must not receive from the server what to trust.
fn parse_identity(text: &str) -> Result<TlsIdentity, TlsError> {
    pem_files::identity(text).map_err(|error| TlsError::unfit(SETTING, error))
}

fn generate_error(error: rcgen::Error) -> TlsError {
    TlsError::unfit("tls.own", error)
}

/// Writes the file atomically, and never replaces one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let part = folder.join(name);
    let _ = std::fs::remove_file(&part);
    let options = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part);
    let written = options.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let placed = written.and_then(|()| match std::fs::hard_link(&part, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => std::fs::rename(&part, path),
        _ => Ok(()),
    });
    let _ = std::fs::remove_file(&part);
    placed
}

/// Whether a file could be created there.
fn may_write(path: &Path) -> io::Result<()> {
    let there = path.ancestors().skip(1).find(|folder| folder.exists());
    Ok(access(
        there.unwrap_or(Path::new("/")),
        Access::WRITE_OK | Access::EXEC_OK,
    )?)
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> TlsError {
    let path = path.to_owned();
    move |source| TlsError::Write {
        setting: SETTING,
        path,
        source,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn section(file: &Path) -> TlsSection {
        TlsSection {
            own_file: Some(file.to_owned()),
            ..TlsSection::default()
        }
    }

    #[test]
    fn it_is_generated_once_and_only_its_user_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/headwater/tls.pem");
        let foretelling = planned_location(&section(&path)).unwrap();
        assert!(foretelling.starts_with("to be made"), "{foretelling}");
        assert!(!path.parent().unwrap().exists());
        let (own, first) = GeneratedCertificate::new(&section(&path)).unwrap();
        assert!(own.location_text().contains(path.to_str().unwrap()));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let (_, second) = GeneratedCertificate::new(&section(&path)).unwrap();
        assert_eq!(first.0, second.0);
        let left = std::fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(left.count(), 1);
        let foretelling = planned_location(&section(&path)).unwrap();
        assert!(foretelling.starts_with("kept in"), "{foretelling}");
    }

    #[test]
    fn processes_that_start_at_once_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tls.pem");
        let (first, second) = (generate().unwrap(), generate().unwrap());
        write(&path, &first).unwrap();
        write(&path, &second).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    }

    #[test]
    fn a_set_file_that_cannot_be_used_is_an_error_and_stays_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a file");
        std::fs::write(&file, "no certificate").unwrap();
        let error = |path: &Path| {
            let error = GeneratedCertificate::new(&section(path))
                .map(|_| ())
                .unwrap_err();
            assert_eq!(
                planned_location(&section(path)).unwrap_err().to_string(),
                error.to_string()
            );
            error.to_string()
        };
        assert!(error(&file).contains("chmod 600"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(error(&file).contains("no certificate in PEM form"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "no certificate");
        let below = GeneratedCertificate::new(&section(&file.join("below")))
            .map(|_| ())
            .unwrap_err();
        assert!(below.to_string().contains("tls.own_file"), "{below}");
    }

    #[test]
    fn it_is_stored_in_the_state_folder() {
        let path = |service: &str, state: &str, home: &str| {
            let given = |text: &str| (!text.is_empty()).then(|| text.into());
            default_path(given(service), given(state), given(home))
        };
        for (service, state, home, expected) in [
            (
                "/var/lib/headwater:/var/lib/more",
                "/s",
                "/h",
                "/var/lib/headwater/tls.pem",
            ),
            ("", "/s", "/h", "/s/headwater/tls.pem"),
            ("", "", "/h", "/h/.local/state/headwater/tls.pem"),
        ] {
            assert_eq!(path(service, state, home), Some(PathBuf::from(expected)));
        }
        assert_eq!(path("", "", ""), None);
        assert_eq!(path("", "relative", "/h"), None);
    }

    #[test]
    fn rejection_and_withdrawal_stop_the_offer() {
        let folder = tempfile::tempdir().unwrap();
        let (own, _) = GeneratedCertificate::new(&section(&folder.path().join("tls.pem"))).unwrap();
        let address = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        assert!(own.is_offered_to(address("192.0.2.1")));
        assert!(!own.is_offered_to(None));
        assert!(own.record_refusal("::ffff:192.0.2.1".parse().unwrap()));
        assert!(!own.record_refusal("192.0.2.1".parse().unwrap()));
        assert!(!own.is_offered_to(address("192.0.2.1")));
        assert!(own.is_offered_to(address("192.0.2.2")));
        assert!(own.withdraw() && !own.withdraw());
        assert!(!own.is_offered_to(address("192.0.2.2")));
    }
}
