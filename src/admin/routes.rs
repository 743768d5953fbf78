//! What is asked for, and the answer.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

use super::guard::{May, may};
use super::health::Health;
use super::{State, api, health};
use crate::overview::{Tables, metrics};
use crate::session::own::Overview;
use crate::statement::OwnTable;

/// The paths, and what each says.
pub(super) const PATHS: [(&str, &str); 5] = [
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
    (
        "/api/...",
        "status, feeds, statements, sessions, memory, settings: tables as JSON",
    ),
];

const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

struct Answer {
    status: StatusCode,
    kind: &'static str,
    text: String,
}

impl Answer {
    fn plain(status: StatusCode, text: impl Into<String>) -> Answer {
        Answer {
            status,
            kind: PLAIN,
            text: text.into(),
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
        Answer::plain(status, format!("{text}\n"))
    }
}

pub(super) async fn answer(state: &State, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (request, _) = request.into_parts();
    let Answer { status, kind, text } = of(state, &request).await;
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
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        StatusCode::UNAUTHORIZED => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    response
}

async fn of(state: &State, request: &Parts) -> Answer {
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Answer::plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
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
        _ if may != May::See => Answer::plain(
            StatusCode::UNAUTHORIZED,
            "show admin.token: Authorization: Bearer TOKEN\n",
        ),
        "/metrics" => {
            let up = state.reachable.fault(&state.seen).await.is_none();
            let (kind, text) = metrics::page(&state.seen.shared, up, wants_openmetrics(request));
            Answer {
                status: StatusCode::OK,
                kind,
                text,
            }
        }
        "/" => Answer::plain(StatusCode::OK, paths()),
        path if table(path).is_some() => Answer {
            status: StatusCode::OK,
            kind: JSON,
            text: table(path).map_or_else(String::new, |table| {
                api::json(Tables.table(&state.seen.shared, table))
            }),
        },
        _ => Answer::plain(StatusCode::NOT_FOUND, format!("there is:\n{}", paths())),
    }
}

/// The table that a path asks for.
fn table(path: &str) -> Option<OwnTable> {
    let name = path.strip_prefix("/api/")?;
    OwnTable::ALL.into_iter().find(|table| table.name() == name)
}

fn paths() -> String {
    PATHS
        .map(|(path, says)| format!("{path:15} {says}\n"))
        .concat()
}

/// As Prometheus asks for it.
fn wants_openmetrics(request: &Parts) -> bool {
    let accepts = request.headers.get_all(ACCEPT).iter();
    accepts
        .filter_map(|accept| accept.to_str().ok())
        .any(|accept| accept.contains("application/openmetrics-text"))
}
