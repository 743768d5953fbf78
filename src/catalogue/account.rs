//! How the service account connects.

use mysql_async::{ClientIdentity, OptsBuilder, SslOpts};

use crate::link::is_path;
use crate::tls::{TlsMode, UpstreamTlsSection};

/// How an account connects to this server (`HOST:PORT`, or the path of its socket).
#[must_use]
pub fn account(
    upstream: &str,
    user: &str,
    password: &str,
    tls: &UpstreamTlsSection,
) -> OptsBuilder {
    let account = OptsBuilder::default().user(Some(user)).pass(Some(password));
    if is_path(upstream) {
        return account.socket(Some(upstream));
    }
    let (_, port) = upstream.rsplit_once(':').unwrap_or((upstream, "3306"));
    account
        .ip_or_hostname(host(upstream))
        .tcp_port(port.parse().unwrap_or(3306))
        .prefer_socket(false)
        .ssl_opts(service_tls(tls))
}

/// The host of an address, without the brackets of IPv6.
#[must_use]
pub fn host(upstream: &str) -> &str {
    if is_path(upstream) {
        return "localhost";
    }
    let host = upstream.rsplit_once(':').map_or(upstream, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// TLS of the service account's connections: where the settings leave no choice.
fn service_tls(settings: &UpstreamTlsSection) -> Option<SslOpts> {
    if !settings.mode.is_required() {
        return None;
    }
    let mut tls = SslOpts::default()
        .with_danger_accept_invalid_certs(!settings.mode.verifies())
        .with_danger_skip_domain_validation(settings.mode != TlsMode::VerifyIdentity)
        .with_root_certs(settings.ca.iter().cloned().map(Into::into).collect());
    if let Some(name) = &settings.name {
        tls = tls.with_danger_tls_hostname_override(Some(name.clone()));
    }
    if let (Some(cert), Some(key)) = (&settings.cert, &settings.key) {
        tls = tls.with_client_identity(Some(ClientIdentity::new(
            cert.clone().into(),
            key.clone().into(),
        )));
    }
    Some(tls)
}

/// A session of the service account that answers the same whatever the server's defaults: it sees what is committed now, and all
/// of it.
#[must_use]
pub fn in_own_session(account: OptsBuilder) -> OptsBuilder {
    account.init(vec![
        "SET SESSION autocommit = 1, completion_type = 0, sql_mode = '', sql_select_limit = 18446744073709551615, \
         sql_big_selects = 1, sql_quote_show_create = 1"
            .to_owned(),
        // One read view a statement.
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
    ])
}
