//! *Try a reader*: a page from memory, as a session would get it, next to the server procedure's. One at a time.

use std::time::Duration;

use serde::Serialize;

use super::AdminContext;
use headwater_lookup::lookup::LookupResult;
use headwater_proxy::account::{AccountConnection, AccountError, ConnectionPurpose};
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_proxy::binlog::{Binlog, CachedTimeline, PageResidency};
use headwater_proxy::clock;
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::shadow::procedure_call;
use headwater_timeline::check::DefinitionVerdict;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};

/// Pairs of answers requested until no change fell between the two.
const MAX_PAIRS: usize = 10;
/// ER_PROCACCESS_DENIED_ERROR: the account may not run the routine.
const EXECUTE_DENIED: u16 = 1370;
/// Time for a whole trial.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The page to try.
#[derive(Clone, Debug, Default)]
pub(super) struct TrialRequest {
    definition: String,
    database: String,
    reader: u64,
    bound: Option<u64>,
}

/// The result of a trial.
#[derive(Debug, Default, Serialize)]
pub(super) struct TrialResult {
    call: String,
    /// The ids from memory; `None`: memory does not have the page.
    memory: Option<TrialIds>,
    server: Option<TrialIds>,
    equal: Option<bool>,
    /// Pairs requested until no change fell between the two.
    pairs: usize,
    /// Why an answer is missing, or the two cannot be compared.
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct TrialIds {
    ids: Vec<u64>,
    took_ms: f64,
    /// `memory`; `loaded`: memory requested what was missing from the server; `procedure`.
    from: &'static str,
}

impl TrialRequest {
    /// Parses the query of a request.
    pub(super) fn parse(query: &str) -> Result<TrialRequest, String> {
        let mut request = TrialRequest::default();
        let mut reader = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decoded(value).ok_or_else(|| format!("{key}: this is no UTF-8"))?;
            let number = || {
                let number = value.parse::<u64>();
                number.map_err(|_| format!("{key} has to be a whole number"))
            };
            match key {
                "definition" => request.definition = value,
                "database" => request.database = value,
                "reader" => reader = Some(number()?),
                "bound" if value.is_empty() => {}
                "bound" => request.bound = Some(number()?),
                _ => {
                    return Err(format!(
                        "{key} is not known: definition, database, reader, bound"
                    ));
                }
            }
        }
        request.reader = reader.ok_or("whose page? reader=NUMBER")?;
        Ok(request)
    }
}

/// Decodes `%` and two digits to a byte, `+` to a space.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Runs a trial on the runtime of the freshness proofs.
pub(super) async fn run_trial(
    context: &AdminContext,
    request: TrialRequest,
) -> Result<TrialResult, String> {
    let shared = context.shared();
    let trial = context.runtime.spawn(async move {
        tokio::time::timeout(TRIAL_TIMEOUT, compare_reader(&shared, &request))
            .await
            .unwrap_or_else(|_| Err(format!("it took longer than {} s", TRIAL_TIMEOUT.as_secs())))
    });
    trial.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn compare_reader(
    shared: &SharedState,
    request: &TrialRequest,
) -> Result<TrialResult, String> {
    let mut in_use = shared.catalogue.in_use();
    let named = in_use.find(|(_, known)| known.name == request.definition);
    let (number, definition) = named.ok_or("there is no definition of that name")?;
    let service = shared.catalogue.service.as_ref();
    let account = service
        .ok_or("there is no service account: set service.user")?
        .account();
    // A database that is not served needs no memory.
    let verdict = shared
        .catalogue
        .check_due(number, request.database.as_bytes())
        .await;
    match verdict.map_err(|error| error.to_string())?.as_ref() {
        DefinitionVerdict::Accelerate(_) => {}
        DefinitionVerdict::Relay(reason) => {
            return Err(format!("it is relayed in this database: {reason}"));
        }
    }
    let binlog = shared.binlog.as_ref();
    let binlog = binlog.ok_or("there is no memory: set index.memory_bytes above 0")?;
    let timeline = binlog.timeline_of(definition, &request.database);
    let timeline = timeline.ok_or("there is no more room for timelines in memory")?;
    let mut conn = procedure_call::connect(account, ConnectionPurpose::Trials)
        .await
        .map_err(server_error_text)?;
    // While the log is not followed there is nothing to compare with.
    if binlog.suspension().is_none()
        && !binlog
            .leads_to_followed_server(&mut conn)
            .await
            .map_err(server_error_text)?
    {
        return Err("the address leads to several servers, and this time not to the one that memory is of: try again".to_owned());
    }
    Ok(compare_pages(binlog, definition, &timeline, request, &mut conn).await)
}

/// The missing privilege, if that is the cause.
fn missing_right(
    error: &AccountError,
    definition: &TimelineDefinition,
    timeline: &CachedTimeline,
    form: ProcedureForm,
) -> Option<String> {
    let execute = RequiredPrivilege::Execute {
        database: timeline.database().to_owned(),
        procedure: definition.procedure_name(form).to_owned(),
    };
    (error.code() == Some(EXECUTE_DENIED)).then(|| {
        format!("the service account may not run the procedure, to compare; a right that is missing: {}", execute.grant_target())
    })
}

fn server_error_text(error: AccountError) -> String {
    format!("the server's own answer: {error}")
}

/// Requests both answers, again if a change fell between them.
async fn compare_pages(
    binlog: &Binlog,
    definition: &TimelineDefinition,
    timeline: &CachedTimeline,
    request: &TrialRequest,
    conn: &mut AccountConnection,
) -> TrialResult {
    let form = match request.bound {
        Some(_) => ProcedureForm::Bounded,
        None => ProcedureForm::Newest,
    };
    let who = (request.reader, request.bound);
    let mut tried = TrialResult {
        call: procedure_call::call_statement(definition, form, request.reader, request.bound),
        ..TrialResult::default()
    };
    for pair in 1..=MAX_PAIRS {
        let mark = binlog.mark();
        let begun = clock::now();
        let n = usize::try_from(definition.n).unwrap_or(usize::MAX);
        let page_request = (request.reader, request.bound, n);
        let likely = binlog.page_residency(timeline, None, page_request).await;
        let page = binlog
            .page(timeline, None, page_request, true, likely)
            .await;
        let memory_result = page.map(|page| LookupResult::from_page(page, form));
        let from = if likely == PageResidency::Resident {
            "memory"
        } else {
            "loaded"
        };
        let took = clock::since(begun);
        let begun = clock::now();
        let real = procedure_call::run_procedure(definition, timeline, form, who, conn).await;
        tried.pairs = pair;
        tried.memory = memory_result.as_ref().map(|own| trial_ids(own, took, from));
        let real = match real {
            Ok(real) => real,
            Err(error) => {
                (tried.server, tried.equal) = (None, None);
                tried.why = Some(
                    missing_right(&error, definition, timeline, form)
                        .unwrap_or_else(|| server_error_text(error)),
                );
                return tried;
            }
        };
        let same = memory_result
            .as_ref()
            .map(|result| procedure_call::has_same_rows(form, result, &real));
        tried.server = Some(trial_ids(&real, clock::since(begun), "procedure"));
        tried.equal = same;
        match (same, mark) {
            (Some(true), _) => return tried,
            (None, _) => {
                let suspension_text = binlog.suspension().map(|aside| aside.text);
                tried.why = Some(suspension_text.unwrap_or_else(|| {
                    "memory has not got this page, or not in time: a session's call would be answered by lookups. Try again".to_owned()
                }));
                return tried;
            }
            (Some(false), Some(mark))
                if binlog
                    .is_timeline_unchanged(timeline, mark, request.reader)
                    .await =>
            {
                tried.why = Some(
                    "they differ, and no change in the server's log tells why: look for sql_log_bin = 0, or report it".to_owned(),
                );
                return tried;
            }
            (Some(false), _) => {}
        }
    }
    tried.equal = None;
    tried.why = Some(
        "this timeline changes all the time: a change fell between each pair of answers".to_owned(),
    );
    tried
}

/// The ids in a page's order: newest first.
fn trial_ids(result: &LookupResult, took: Duration, from: &'static str) -> TrialIds {
    let mut ids = result.ids.clone();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    let microseconds = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
    TrialIds {
        ids,
        took_ms: f64::from(microseconds) / 1e3,
        from,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_whose_page() {
        let asked = TrialRequest::parse("definition=a%3Cb+c&database=tl&reader=7&bound=").unwrap();
        assert_eq!((&*asked.definition, &*asked.database), ("a<b c", "tl"));
        assert_eq!((asked.reader, asked.bound), (7, None));
        assert_eq!(
            TrialRequest::parse("reader=7&bound=9").unwrap().bound,
            Some(9)
        );
        for wrong in [
            "",
            "reader=",
            "reader=-1",
            "reader=1&x=2",
            "reader=1&database=%f",
            "reader=1&database=%ff",
        ] {
            assert!(TrialRequest::parse(wrong).is_err(), "{wrong}");
        }
    }
}
