//! Asks a Headwater that runs, at its admin port, to read its settings again.

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
use super::section::AdminSection;
use crate::server::Reloaded;

/// It looks at new tables for a while.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of an answer.
const BYTES: usize = 16 << 20;

/// Why settings were not read again.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no admin port to ask at.
    #[error(
        "admin.listen is empty, so there is no port to ask at: send Headwater SIGHUP (systemctl reload headwater), and look at its log"
    )]
    Nowhere,
    /// Nobody answers.
    #[error(
        "no Headwater answers at http://{address}{RELOAD} ({error}). Is it running, and is admin.listen (--admin-listen, \
         HEADWATER_ADMIN_LISTEN) the same as it was started with? SIGHUP does the same"
    )]
    Away {
        /// Where it was asked.
        address: String,
        /// Why not.
        error: String,
    },
    /// The token is missing, or another one.
    #[error(
        "the Headwater at {address} was started with another admin.token (--admin-token-file, HEADWATER_ADMIN_TOKEN)"
    )]
    Token {
        /// Where it was asked.
        address: String,
    },
    /// It says what is wrong.
    #[error("settings stay as they were: {0}")]
    Refused(String),
}

#[derive(Deserialize)]
struct Told {
    error: String,
}

/// Has the Headwater with this admin port read its settings again.
///
/// # Errors
/// It does not answer, or does not take the settings.
pub async fn reload(section: &AdminSection) -> Result<Reloaded, AskError> {
    let address = section.address().ok_or(AskError::Nowhere)?;
    let away = |error: String| AskError::Away {
        address: address.to_owned(),
        error,
    };
    let answer = tokio::time::timeout(PATIENCE, post(address, &section.token)).await;
    let (status, body) = answer
        .map_err(|_| away(format!("no answer within {} s", PATIENCE.as_secs())))?
        .map_err(|error| away(error.to_string()))?;
    match status {
        StatusCode::OK => {
            serde_json::from_slice(&body).map_err(|error| away(format!("not its answer: {error}")))
        }
        StatusCode::UNAUTHORIZED => Err(AskError::Token {
            address: address.to_owned(),
        }),
        status => match serde_json::from_slice::<Told>(&body) {
            Ok(told) => Err(AskError::Refused(told.error)),
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
    let body = Limited::new(response.into_body(), BYTES).collect().await?;
    driving.abort();
    Ok((status, body.to_bytes()))
}
