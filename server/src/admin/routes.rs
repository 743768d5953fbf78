//! Paths of the admin port, and their responses.

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

use super::access_guard::{AccessLevel, access_level};
use super::health::{HealthStatus, LoginFault};
use super::{
    AdminState, health, hottest_readers, json_tables, page, shadow_report, status_lamp, trial,
};
use crate::overview::{OverviewBuilder, metrics};
use headwater_proxy::session::show_statements::OverviewSource;
use headwater_sql::{escape_hidden, escape_hidden_in_json};
use headwater_statement::HeadwaterTable;

/// The paths, each with its description.
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

/// The only path that changes anything.
pub(super) const RELOAD: &str = "/api/reload";

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";

struct AdminResponse {
    status: StatusCode,
    content_type: &'static str,
    body: String,
    /// The Content-Security-Policy.
    content_security_policy: Option<String>,
}

impl AdminResponse {
    fn plain(status: StatusCode, text: impl Into<String>) -> AdminResponse {
        AdminResponse {
            status,
            content_type: PLAIN,
            body: text.into(),
            content_security_policy: None,
        }
    }

    fn json(status: StatusCode, value: &impl Serialize) -> AdminResponse {
        match serde_json::to_string(value) {
            Ok(text) => AdminResponse {
                content_type: JSON,
                ..AdminResponse::plain(status, escape_hidden_in_json(&text) + "\n")
            },
            Err(error) => {
                AdminResponse::plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
            }
        }
    }

    fn from_health(health: HealthStatus, may: AccessLevel) -> AdminResponse {
        let (status, text) = match health {
            HealthStatus::Healthy(text) => (StatusCode::OK, text.to_owned()),
            HealthStatus::Unhealthy { reason, text } => match may {
                AccessLevel::Full => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}: {text}")),
                _ => (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned()),
            },
        };
        AdminResponse::plain(status, format!("{}\n", escape_hidden(&text)))
    }
}

pub(super) async fn respond(
    state: &AdminState,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (request, _) = request.into_parts();
    let AdminResponse {
        status,
        content_type: kind,
        body: text,
        content_security_policy: policy,
    } = route(state, &request).await;
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
            if let Ok(allowed) = HeaderValue::try_from(method_list(allowed_methods(&request))) {
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

async fn route(state: &AdminState, request: &Parts) -> AdminResponse {
    let allowed = allowed_methods(request);
    if !allowed.contains(&request.method) {
        let allowed = method_list(allowed);
        return AdminResponse::plain(StatusCode::METHOD_NOT_ALLOWED, format!("only {allowed}\n"));
    }
    let may = access_level(request, &state.token);
    if may == AccessLevel::Denied {
        return AdminResponse::plain(
            StatusCode::MISDIRECTED_REQUEST,
            "without admin.token, ask for this machine by its number or as localhost\n",
        );
    }
    match request.uri.path() {
        "/live" => AdminResponse::plain(StatusCode::OK, "live\n"),
        "/ready" => AdminResponse::from_health(health::readiness(state).await, may),
        "/accelerating" => {
            AdminResponse::from_health(health::acceleration(&state.context).await, may)
        }
        "/" => page_response(!state.token.is_empty()),
        _ if may != AccessLevel::Full => AdminResponse::plain(
            StatusCode::UNAUTHORIZED,
            "show admin.token: Authorization: Bearer TOKEN\n",
        ),
        "/metrics" => {
            let fault = state.reachable.fault(&state.context).await;
            let up = !matches!(fault, Some(LoginFault::Unreachable(_)));
            let (kind, text) =
                metrics::render_page(&state.context.shared(), up, wants_openmetrics(request));
            AdminResponse {
                content_type: kind,
                ..AdminResponse::plain(StatusCode::OK, text)
            }
        }
        "/api" => AdminResponse::json(StatusCode::OK, &PATHS.map(|(path, _)| path)),
        "/api/health" => {
            AdminResponse::json(StatusCode::OK, &status_lamp::status_lamp(state).await)
        }
        "/api/history" => AdminResponse::json(StatusCode::OK, &state.history.report()),
        "/api/hottest" => AdminResponse::json(
            StatusCode::OK,
            &hottest_readers::report(&state.context.shared()),
        ),
        "/api/shadow" => AdminResponse::json(
            StatusCode::OK,
            &shadow_report::report(&state.context.shared()),
        ),
        "/api/try" => try_reader(state, request).await,
        RELOAD => reload(state, request).await,
        path => match table(path) {
            Some(table) => table_response(state, request, table),
            None => {
                AdminResponse::plain(StatusCode::NOT_FOUND, format!("there is:\n{}", path_list()))
            }
        },
    }
}

/// The methods that a path accepts.
fn allowed_methods(request: &Parts) -> &'static [Method] {
    match request.uri.path() {
        RELOAD => &[Method::POST],
        _ => &[Method::GET, Method::HEAD],
    }
}

fn method_list(allowed: &[Method]) -> String {
    let names: Vec<_> = allowed.iter().map(Method::as_str).collect();
    names.join(", ")
}

fn error_response(status: StatusCode, error: String) -> AdminResponse {
    AdminResponse::json(status, &BTreeMap::from([("error", error)]))
}

/// True if a page of another site sent the request. Browsers without `Sec-Fetch-Site` send `Origin`.
fn is_cross_site(request: &Parts) -> bool {
    let from = request.headers.get("sec-fetch-site");
    let from = from.is_some_and(|from| !matches!(from.as_bytes(), b"same-origin" | b"none"));
    let page = request.headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let host = request.headers.get(HOST).map(HeaderValue::as_bytes);
    from || page.is_some_and(|page| page.strip_prefix(b"http://") != host)
}

/// Reloads the settings; refuses cross-site requests.
async fn reload(state: &AdminState, request: &Parts) -> AdminResponse {
    if is_cross_site(request) {
        return error_response(StatusCode::FORBIDDEN, "another site's page asks".to_owned());
    }
    let settings = Arc::clone(&state.context.settings);
    // Run on the runtime of the background tasks.
    let reloaded = state
        .context
        .runtime
        .spawn(async move { settings.reload().await });
    match reloaded.await {
        Ok(Ok(reloaded)) => AdminResponse::json(StatusCode::OK, &reloaded),
        Ok(Err(error)) => error_response(StatusCode::UNPROCESSABLE_ENTITY, error),
        Err(error) => error_response(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Runs a reader trial; refuses cross-site requests. One at a time, since the server runs the procedure for it.
async fn try_reader(state: &AdminState, request: &Parts) -> AdminResponse {
    if is_cross_site(request) {
        return error_response(StatusCode::FORBIDDEN, "another site's page asks".to_owned());
    }
    let Ok(_place) = state.trials.try_acquire() else {
        let busy = "another reader is tried right now: ask again".to_owned();
        return error_response(StatusCode::TOO_MANY_REQUESTS, busy);
    };
    match trial::TrialRequest::parse(request.uri.query().unwrap_or_default()) {
        Ok(trial_request) => match trial::run_trial(&state.context, trial_request).await {
            Ok(tried) => AdminResponse::json(StatusCode::OK, &tried),
            // The request is valid and has no result: the page shows why.
            Err(error) => error_response(StatusCode::OK, error),
        },
        Err(error) => error_response(StatusCode::BAD_REQUEST, error),
    }
}

fn page_response(token: bool) -> AdminResponse {
    let Some(page) = page::page(token) else {
        return AdminResponse::plain(StatusCode::INTERNAL_SERVER_ERROR, "no random bytes\n");
    };
    AdminResponse {
        content_type: HTML,
        content_security_policy: Some(page.content_security_policy),
        ..AdminResponse::plain(StatusCode::OK, page.document)
    }
}

/// The table for a path.
fn table(path: &str) -> Option<HeadwaterTable> {
    let name = path.strip_prefix("/api/")?;
    HeadwaterTable::ALL
        .into_iter()
        .find(|table| table.name() == name)
}

/// The table's rows; the query's `most` limits their number.
fn table_response(state: &AdminState, request: &Parts, table: HeadwaterTable) -> AdminResponse {
    let query = request.uri.query().unwrap_or_default();
    let most = match query.split('&').find_map(|pair| pair.strip_prefix("most=")) {
        Some(most) => most.parse(),
        None => Ok(usize::MAX),
    };
    match most {
        Ok(most) => AdminResponse {
            content_type: JSON,
            ..AdminResponse::plain(
                StatusCode::OK,
                json_tables::json(&OverviewBuilder.table(&state.context.shared(), table), most),
            )
        },
        Err(_) => AdminResponse::plain(StatusCode::BAD_REQUEST, "most has to be a whole number\n"),
    }
}

fn path_list() -> String {
    PATHS
        .map(|(path, says)| format!("{path:16} {says}\n"))
        .concat()
}

/// True if Prometheus requests the OpenMetrics format.
fn wants_openmetrics(request: &Parts) -> bool {
    let accepts = request.headers.get_all(ACCEPT).iter();
    accepts
        .filter_map(|accept| accept.to_str().ok())
        .any(|accept| accept.contains("application/openmetrics-text"))
}
