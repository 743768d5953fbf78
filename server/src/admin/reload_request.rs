//! The client of `headwater reload`: asks a running Headwater, at its admin port, to read its settings again.

use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::routes::RELOAD;
use crate::config::{AdminSection, ReloadOutcome};

/// Includes the time that the other process spends probing new tables.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest response.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Why the settings were not read again.
#[derive(Debug, thiserror::Error)]
pub enum ReloadRequestError {
    /// No admin port is configured.
    #[error(
        "admin.listen is empty, so there is no port to ask at: send Headwater SIGHUP (systemctl reload headwater), and look at its log"
    )]
    NoAdminPort,
    /// No process answers.
    #[error(
        "no Headwater answers at http://{address}{RELOAD} ({error}). Is it running, and is admin.listen (--admin-listen, \
         HEADWATER_ADMIN_LISTEN) the same as it was started with? SIGHUP does the same"
    )]
    Unreachable {
        /// The admin port's address.
        address: String,
        /// The cause.
        error: String,
    },
    /// The token is missing or wrong.
    #[error(
        "the Headwater at {address} was started with another admin.token (--admin-token-file, HEADWATER_ADMIN_TOKEN)"
    )]
    WrongToken {
        /// The admin port's address.
        address: String,
    },
    /// The settings were rejected, for this reason.
    #[error("settings stay as they were: {0}")]
    Refused(String),
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

/// Has the Headwater at this admin port read its settings again.
///
/// # Errors
/// It does not answer, or rejects the settings.
pub async fn reload(section: &AdminSection) -> Result<ReloadOutcome, ReloadRequestError> {
    let address = section.address().ok_or(ReloadRequestError::NoAdminPort)?;
    let away = |error: String| ReloadRequestError::Unreachable {
        address: address.to_owned(),
        error,
    };
    let answer = tokio::time::timeout(REQUEST_TIMEOUT, post(address, &section.token)).await;
    let (status, body) = answer
        .map_err(|_| away(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs())))?
        .map_err(|error| away(error.to_string()))?;
    match status {
        StatusCode::OK => {
            serde_json::from_slice(&body).map_err(|error| away(format!("not its answer: {error}")))
        }
        StatusCode::UNAUTHORIZED => Err(ReloadRequestError::WrongToken {
            address: address.to_owned(),
        }),
        status => match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(response) => Err(ReloadRequestError::Refused(response.error)),
            Err(_) => Err(away(format!("it answers {status}"))),
        },
    }
}

async fn post(
    address: &str,
    token: &str,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let socket = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    let driving = tokio::spawn(connection);
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(RELOAD)
        .header(HOST, address);
    if !token.is_empty() {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let response = sender
        .send_request(request.body(Empty::<Bytes>::new())?)
        .await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
        .collect()
        .await?;
    driving.abort();
    Ok((status, body.to_bytes()))
}
