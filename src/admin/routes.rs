//! What is asked for, and the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue, ORIGIN,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use super::guard::{May, may};
use super::health::{Fault, Health};
use super::{State, api, difference, health, hottest, lamp, page, trial};
use crate::overview::{Tables, metrics};
use crate::session::own::Overview;
use crate::sql::{shown, shown_in_json};
use crate::statement::OwnTable;

/// The paths, and what each says.
pub(super) const PATHS: [(&str, &str); 19] = [
    ("/", "the page"),
    ("/live", "200 while the process runs"),
    (
        "/ready",
        "200 while clients can log in: the server answers, and Headwater takes clients",
    ),
    (
        "/accelerating",
        "200 while calls and feeds are answered from memory",
    ),
    ("/metrics", "what is counted, for Prometheus"),
    ("/api", "these paths"),
    ("/api/health", "who answers now, why, and what cures it"),
    ("/api/history", "the last fifteen minutes"),
    (
        "/api/hottest",
        "readers and authors who were asked for most lately",
    ),
    ("/api/shadow", "what shadow found"),
    (
        "/api/try",
        "a reader's page from memory, beside the server's",
    ),
    ("/api/status", "what is counted, as SHOW HEADWATER STATUS"),
    ("/api/feeds", "definitions and feeds, and who answers them"),
    (
        "/api/statements",
        "forms of statements, and why they are not answered from memory",
    ),
    ("/api/sessions", "who is connected, and what they are doing"),
    ("/api/memory", "what takes memory, and what limits it"),
    ("/api/settings", "settings by their names, without secrets"),
    (
        "/api/upstreams",
        "the servers, and which one is the primary",
    ),
    (
        RELOAD,
        "POST: settings and certificates are read again, as headwater reload has it",
    ),
];

/// The only path where something is done.
pub(super) const RELOAD: &str = "/api/reload";

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";

struct Answer {
    status: StatusCode,
    kind: &'static str,
    text: String,
    /// What may run in it.
    policy: Option<String>,
}

impl Answer {
    fn plain(status: StatusCode, text: impl Into<String>) -> Answer {
        Answer {
            status,
            kind: PLAIN,
            text: text.into(),
            policy: None,
        }
    }

    fn json(status: StatusCode, value: &impl Serialize) -> Answer {
        match serde_json::to_string(value) {
            Ok(text) => Answer {
                kind: JSON,
                ..Answer::plain(status, shown_in_json(&text) + "\n")
            },
            Err(error) => Answer::plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }

    fn of(health: Health, may: May) -> Answer {
        let (status, text) = match health {
            Health::Well(text) => (StatusCode::OK, text.to_owned()),
            Health::Not { reason, text } => match may {
                May::See => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}: {text}")),
                _ => (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned()),
            },
        };
        Answer::plain(status, format!("{}\n", shown(&text)))
    }
}

pub(super) async fn answer(state: &State, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (request, _) = request.into_parts();
    let Answer {
        status,
        kind,
        text,
        policy,
    } = of(state, &request).await;
    let body = match request.method {
        Method::HEAD => Bytes::new(),
        _ => Bytes::from(text),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(policy) = policy.and_then(|policy| HeaderValue::try_from(policy).ok()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            if let Ok(allowed) = HeaderValue::try_from(methods(allowed(&request))) {
                headers.insert(ALLOW, allowed);
            }
        }
        StatusCode::UNAUTHORIZED => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    response
}

async fn of(state: &State, request: &Parts) -> Answer {
    let allowed = allowed(request);
    if !allowed.contains(&request.method) {
        let allowed = methods(allowed);
        return Answer::plain(StatusCode::METHOD_NOT_ALLOWED, format!("only {allowed}\n"));
    }
    let may = may(request, &state.token);
    if may == May::Nothing {
        return Answer::plain(
            StatusCode::MISDIRECTED_REQUEST,
            "without admin.token, ask for this machine by its number or as localhost\n",
        );
    }
    match request.uri.path() {
        "/live" => Answer::plain(StatusCode::OK, "live\n"),
        "/ready" => Answer::of(health::ready(state).await, may),
        "/accelerating" => Answer::of(health::accelerating(&state.seen).await, may),
        "/" => page(!state.token.is_empty()),
        _ if may != May::See => Answer::plain(
            StatusCode::UNAUTHORIZED,
            "show admin.token: Authorization: Bearer TOKEN\n",
        ),
        "/metrics" => {
            let fault = state.reachable.fault(&state.seen).await;
            let up = !matches!(fault, Some(Fault::Away(_)));
            let (kind, text) = metrics::page(&state.seen.shared(), up, wants_openmetrics(request));
            Answer {
                kind,
                ..Answer::plain(StatusCode::OK, text)
            }
        }
        "/api" => Answer::json(StatusCode::OK, &PATHS.map(|(path, _)| path)),
        "/api/health" => Answer::json(StatusCode::OK, &lamp::lamp(state).await),
        "/api/history" => Answer::json(StatusCode::OK, &state.history.told()),
        "/api/hottest" => Answer::json(StatusCode::OK, &hottest::told(&state.seen.shared())),
        "/api/shadow" => Answer::json(StatusCode::OK, &difference::told(&state.seen.shared())),
        "/api/try" => tried(state, request).await,
        RELOAD => reload(state, request).await,
        path => match table(path) {
            Some(table) => rows(state, request, table),
            None => Answer::plain(StatusCode::NOT_FOUND, format!("there is:\n{}", paths())),
        },
    }
}

/// By which methods a path is asked for.
fn allowed(request: &Parts) -> &'static [Method] {
    match request.uri.path() {
        RELOAD => &[Method::POST],
        _ => &[Method::GET, Method::HEAD],
    }
}

fn methods(allowed: &[Method]) -> String {
    let names: Vec<_> = allowed.iter().map(Method::as_str).collect();
    names.join(", ")
}

fn told(status: StatusCode, error: String) -> Answer {
    Answer::json(status, &BTreeMap::from([("error", error)]))
}

/// True where somebody else's page has a browser ask: not all browsers say it by the first name, and those name the page by the second.
fn is_foreign(request: &Parts) -> bool {
    let from = request.headers.get("sec-fetch-site");
    let from = from.is_some_and(|from| !matches!(from.as_bytes(), b"same-origin" | b"none"));
    let page = request.headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let own = request.headers.get(HOST).map(HeaderValue::as_bytes);
    from || page.is_some_and(|page| page.strip_prefix(b"http://") != own)
}

/// Not at the wish of somebody else's page.
async fn reload(state: &State, request: &Parts) -> Answer {
    if is_foreign(request) {
        return told(StatusCode::FORBIDDEN, "another site's page asks".to_owned());
    }
    let reloads = Arc::clone(&state.seen.reloads);
    // Where what goes on beside the sessions runs.
    let reloaded = state
        .seen
        .runtime
        .spawn(async move { reloads.reload().await });
    match reloaded.await {
        Ok(Ok(reloaded)) => Answer::json(StatusCode::OK, &reloaded),
        Ok(Err(error)) => told(StatusCode::UNPROCESSABLE_ENTITY, error),
        Err(error) => told(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Not at the wish of somebody else's page, and one at a time: the server runs the procedure for it.
async fn tried(state: &State, request: &Parts) -> Answer {
    if is_foreign(request) {
        return told(StatusCode::FORBIDDEN, "another site's page asks".to_owned());
    }
    let Ok(_place) = state.trials.try_acquire() else {
        let busy = "another reader is tried right now: ask again".to_owned();
        return told(StatusCode::TOO_MANY_REQUESTS, busy);
    };
    match trial::Asked::by(request.uri.query().unwrap_or_default()) {
        Ok(asked) => match trial::tried(&state.seen, asked).await {
            Ok(tried) => Answer::json(StatusCode::OK, &tried),
            // It was understood, and there is no answer: the page shows why.
            Err(error) => told(StatusCode::OK, error),
        },
        Err(error) => told(StatusCode::BAD_REQUEST, error),
    }
}

fn page(token: bool) -> Answer {
    let Some(page) = page::page(token) else {
        return Answer::plain(StatusCode::INTERNAL_SERVER_ERROR, "no random bytes\n");
    };
    Answer {
        kind: HTML,
        policy: Some(page.policy),
        ..Answer::plain(StatusCode::OK, page.document)
    }
}

/// The table that a path asks for.
fn table(path: &str) -> Option<OwnTable> {
    let name = path.strip_prefix("/api/")?;
    OwnTable::ALL.into_iter().find(|table| table.name() == name)
}

/// Its rows; `most` tells how many.
fn rows(state: &State, request: &Parts, table: OwnTable) -> Answer {
    let query = request.uri.query().unwrap_or_default();
    let most = match query.split('&').find_map(|pair| pair.strip_prefix("most=")) {
        Some(most) => most.parse(),
        None => Ok(usize::MAX),
    };
    match most {
        Ok(most) => Answer {
            kind: JSON,
            ..Answer::plain(
                StatusCode::OK,
                api::json(&Tables.table(&state.seen.shared(), table), most),
            )
        },
        Err(_) => Answer::plain(StatusCode::BAD_REQUEST, "most has to be a whole number\n"),
    }
}

fn paths() -> String {
    PATHS
        .map(|(path, says)| format!("{path:16} {says}\n"))
        .concat()
}

/// As Prometheus asks for it.
fn wants_openmetrics(request: &Parts) -> bool {
    let accepts = request.headers.get_all(ACCEPT).iter();
    accepts
        .filter_map(|accept| accept.to_str().ok())
        .any(|accept| accept.contains("application/openmetrics-text"))
}
