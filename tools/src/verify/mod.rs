//! `headwater verify`: compares Headwater's answers with the server's, for every reader of every definition and feed, on a live server.
//!
//! `verify_plan` lists what there is to compare, `reader_scan` iterates over the readers, `compared_side` sends queries. If two answers
//! differ, `comparison_rounds` queries again, so that concurrent writers cause no false alarm and hide no true one. `latency_watch` sets
//! the pace and detects a slower server. It reads, calls procedures that read, and writes only temporary tables of its own two sessions.

mod answer;
mod compared_side;
mod comparison_rounds;
mod flags;
mod latency_watch;
mod pattern;
mod progress;
mod reader_scan;
mod report;
mod ties;
mod verify_plan;
mod verify_unit;

use futures_util::future::LocalBoxFuture;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::check::{self, CheckError};
use headwater_proxy::account::greeting::product_version;
use headwater_proxy::account::{AccountError, ConnectionPurpose, UpstreamAccount, host};
use headwater_proxy::binlog::FreshnessMode;
use headwater_proxy::tls::{TlsConnector, TlsError, TlsMode, UpstreamTlsSection};
use headwater_server::config::ServeSettings;

use answer::ComparableAnswer;
use compared_side::{ComparedSide, SideError};
use comparison_rounds::{AnswerPair, AnswerVerdict};
pub use flags::{ReaderSelection, VerifyFlags, VerifyOptions};
use latency_watch::{LatencySlowdown, RatePacer};
use progress::{ProgressCounts, VerifyProgress};
use report::{AnswerDifference, MAX_DIFFERENCES_SHOWN, VerifyReport, VerifySummary};
use verify_unit::{AuthorListSource, QueryDropReason, SkippedComparison, VerifyUnit};

/// How the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyOutcome {
    /// All that was compared is equal.
    Equal,
    /// An answer differs, or something could not be compared.
    Different,
    /// It was stopped, or stopped by itself; everything compared until then is equal.
    Stopped,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// No service account is set.
    #[error(
        "the server is asked by the service account: name it (--service-user, HEADWATER_SERVICE_USER, service.user)"
    )]
    NoAccount,
    /// The server cannot be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A certificate that the settings name cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Headwater refuses the account, or does not answer.
    #[error(
        "cannot log in as {user:?} through Headwater at {address}: is it running there, and are the account and its password right? \
         (--headwater; --user, HEADWATER_VERIFY_PASSWORD)"
    )]
    Headwater {
        /// The address it should be at.
        address: String,
        /// The user.
        user: String,
        /// Why not.
        source: AccountError,
    },
    /// A query failed.
    #[error("the server cannot be asked by the service account")]
    Asking {
        /// Why.
        source: AccountError,
    },
    /// A connection was lost before anything was compared.
    #[error("{0}")]
    Lost(String),
    /// There is no timeline.
    #[error(
        "there is nothing to compare: no database that the service account may see has the tables of a [[definition]] or a [[feed]] \
         that is asked for"
    )]
    Nothing,
    /// Signals cannot be received.
    #[error("cannot wait for Ctrl-C")]
    Signal(#[source] std::io::Error),
}

impl From<SideError> for VerifyError {
    fn from(lost: SideError) -> Self {
        VerifyError::Lost(lost.to_string())
    }
}

#[derive(Debug, thiserror::Error)]
enum StopReason {
    #[error(
        "the server has become slower ({title}: an answer took {:.1} ms at first, and takes {:.1} ms now, in the median). Go on when it \
         has less to do, with a lower --rate, or with another --stop-when-slower",
        slower.first.as_secs_f64() * 1e3,
        slower.last.as_secs_f64() * 1e3
    )]
    Slower {
        title: String,
        slower: LatencySlowdown,
    },
    #[error(transparent)]
    Lost(#[from] SideError),
    #[error("{0}")]
    Readers(AccountError),
    #[error("by a signal")]
    Signal,
}

/// One in this many answers is checked for what Headwater would serve it from.
const EXPLAIN_EVERY: u64 = 20;
/// Authors in a list if there is no follow table.
const NEIGHBOUR_AUTHORS: usize = 20;
const MOST_AUTHORS: usize = 1_000;

/// Compares, and writes the findings to `text`.
///
/// # Errors
/// When nothing could be compared.
///
/// Boxed, so that no other package compiles it again.
pub fn run<'r>(
    settings: &'r ServeSettings,
    options: &'r VerifyOptions,
    text: &'r mut String,
) -> LocalBoxFuture<'r, Result<VerifyOutcome, VerifyError>> {
    Box::pin(compare_answers(settings, options, text))
}

async fn compare_answers(
    settings: &ServeSettings,
    options: &VerifyOptions,
    text: &mut String,
) -> Result<VerifyOutcome, VerifyError> {
    let service = settings.service.as_ref().ok_or(VerifyError::NoAccount)?;
    let settings = &check::primary_settings(settings).await?;
    let greeting = check::fetch_greeting(settings).await?;
    let account = check::account_of(settings, service)?;
    let asking = |source| VerifyError::Asking { source };
    // `check` reports whether address or account is wrong.
    drop(check::log_in(settings, &account).await?);
    let server = ComparedSide::connect("the server", account, ConnectionPurpose::Trials).await;
    let mut server = server.map_err(asking)?;
    let mut headwater = connect_headwater(settings, options).await?;
    let plan = verify_plan::make_plan(settings, options, &mut server, &mut headwater).await?;
    if plan.units.is_empty() && plan.skipped.is_empty() {
        return Err(VerifyError::Nothing);
    }
    let mut findings = VerifyReport::new(text);
    let user = options.user.as_ref().unwrap_or(service);
    findings.sides(
        &product_version(&greeting),
        settings.upstream.first(),
        &service.user,
        &options.headwater,
        &user.user,
    );
    let mut run = VerifyRun {
        headwater,
        server,
        units: plan.units,
        differences: Vec::new(),
        explanation_refusal: plan.explanation_refusal,
        pace: RatePacer::of(options.rate),
        max_slowdown: options.max_slowdown,
        staleness_bound: match settings.freshness.mode {
            FreshnessMode::Bounded => Duration::from_millis(settings.freshness.bounded_ms),
            _ => Duration::ZERO,
        },
        most_authors: settings.limits.list_authors.min(MOST_AUTHORS),
        progress: VerifyProgress::begin(),
    };
    let stopped = run.run_until_signal().await?;
    run.progress.end();
    findings.write(&VerifySummary {
        units: &run.units,
        skipped: &plan.skipped,
        differences: &run.differences,
        explanation_refusal: run.explanation_refusal.as_deref(),
        stopped: stopped.as_ref().map(ToString::to_string),
        took: run.progress.elapsed(),
    });
    Ok(run.outcome(&plan.skipped, stopped.is_some()))
}

/// Connects as a client of Headwater.
async fn connect_headwater(
    settings: &ServeSettings,
    options: &VerifyOptions,
) -> Result<ComparedSide, VerifyError> {
    let account = options.user.as_ref().or(settings.service.as_ref());
    let account = account.ok_or(VerifyError::NoAccount)?;
    let address = &options.headwater;
    // TLS only where it is required. The certificate is not verified: it belongs to these settings.
    let wanted = settings.tls.required || settings.upstream_tls.mode.is_required();
    let tls = UpstreamTlsSection {
        mode: match wanted && settings.tls.is_offered(&settings.upstream_tls) {
            true => TlsMode::Required,
            false => TlsMode::Disabled,
        },
        ..UpstreamTlsSection::default()
    };
    let connector = TlsConnector::new(&tls, host(address))?;
    let client = UpstreamAccount::new(address, &account.user, &account.password, &connector);
    let refused = |source| VerifyError::Headwater {
        address: address.clone(),
        user: account.user.clone(),
        source,
    };
    let side = ComparedSide::connect("Headwater", client, ConnectionPurpose::Trials).await;
    side.map_err(refused)
}

#[derive(Debug)]
struct VerifyRun {
    headwater: ComparedSide,
    server: ComparedSide,
    units: Vec<VerifyUnit>,
    differences: Vec<AnswerDifference>,
    /// Why Headwater does not report what serves an answer.
    explanation_refusal: Option<String>,
    pace: RatePacer,
    max_slowdown: Option<f64>,
    /// How long an answer may be stale, by the settings.
    staleness_bound: Duration,
    most_authors: usize,
    progress: VerifyProgress,
}

impl VerifyRun {
    /// Compares all units; returns why it stopped early.
    async fn run_until_signal(&mut self) -> Result<Option<StopReason>, VerifyError> {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(VerifyError::Signal)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(VerifyError::Signal)?;
        tokio::select! {
            gone = self.compare_all() => Ok(gone.err()),
            _ = interrupt.recv() => Ok(Some(StopReason::Signal)),
            _ = terminate.recv() => Ok(Some(StopReason::Signal)),
        }
    }

    fn outcome(&self, left_out: &[SkippedComparison], stopped: bool) -> VerifyOutcome {
        let all = report::total(&self.units);
        let dropped = self.units.iter().flat_map(|unit| &unit.queries);
        let dropped = dropped.filter_map(|query| query.drop_reason.as_ref());
        let unread = left_out.iter().any(|skipped| skipped.fails)
            || dropped.into_iter().any(|own| own.fails);
        // A run without any comparison has not verified anything.
        let nothing = all.compared == 0 && !stopped;
        match (all.different > 0 || unread || nothing, stopped) {
            (true, _) => VerifyOutcome::Different,
            (false, true) => VerifyOutcome::Stopped,
            (false, false) => VerifyOutcome::Equal,
        }
    }

    async fn compare_all(&mut self) -> Result<(), StopReason> {
        for at in 0..self.units.len() {
            if self.enter_database(at).await? {
                while self.compare_next_reader(at).await? {}
            }
        }
        Ok(())
    }

    /// Connects both sides in the database of a definition or feed; false if one refuses.
    async fn enter_database(&mut self, at: usize) -> Result<bool, SideError> {
        let Some(unit) = self.units.get_mut(at) else {
            return Ok(false);
        };
        for side in [&mut self.server, &mut self.headwater] {
            let name = side.name();
            let entered = side.enter_database(&unit.database).await;
            if let Err(AccountError::Server(refused)) = entered {
                let why = format!("{name} refuses: {refused}");
                for query in &mut unit.queries {
                    query.drop_reason = Some(QueryDropReason {
                        why: why.clone(),
                        fails: true,
                    });
                }
                return Ok(false);
            }
            entered.map_err(|source| SideError::Failed { side: name, source })?;
        }
        Ok(true)
    }

    /// Compares everything for the next reader; false if there is none.
    async fn compare_next_reader(&mut self, at: usize) -> Result<bool, StopReason> {
        let Some(unit) = self.units.get_mut(at) else {
            return Ok(false);
        };
        if unit.queries.iter().all(|query| query.drop_reason.is_some()) {
            return Ok(false);
        }
        let next = unit.scan.next(&mut self.server).await;
        let Some(reader) = next.map_err(StopReason::Readers)? else {
            return Ok(false);
        };
        let authors = unit.authors.clone();
        let authors = self.listed_authors(&authors, reader).await?;
        let mut bound = None;
        let questions = self.units.get(at).map_or(0, |unit| unit.queries.len());
        for question in 0..questions {
            let who = (reader, bound, authors.as_slice());
            bound = self.compare(at, question, who).await?.or(bound);
        }
        if let Some(unit) = self.units.get_mut(at) {
            unit.readers += 1;
        }
        let VerifyRun {
            progress, units, ..
        } = self;
        progress.report(|| progress_counts(units));
        Ok(true)
    }

    /// The authors that a reader's list names.
    async fn listed_authors(
        &mut self,
        authors: &AuthorListSource,
        reader: i128,
    ) -> Result<Vec<i128>, StopReason> {
        let query = match authors {
            AuthorListSource::None => return Ok(Vec::new()),
            AuthorListSource::From(column) => {
                column.ids_query(&format!(">= {reader}"), NEIGHBOUR_AUTHORS)
            }
            AuthorListSource::Followed { by, author } => {
                by.other_column_query(author, reader, self.most_authors)
            }
        };
        let rows = self.server.rows(&query).await;
        Ok(reader_scan::ids(&rows.map_err(StopReason::Readers)?))
    }

    /// Compares both answers to a query about a reader. Returns the bound of the next page, once known.
    async fn compare(
        &mut self,
        unit: usize,
        question: usize,
        (reader, bound, authors): (i128, Option<u64>, &[i128]),
    ) -> Result<Option<u64>, StopReason> {
        let VerifyRun {
            headwater,
            server,
            units,
            differences,
            explanation_refusal: silent,
            pace,
            max_slowdown: slower,
            staleness_bound: staleness,
            ..
        } = self;
        let Some(unit) = units.get_mut(unit) else {
            return Ok(None);
        };
        let Some(query) = unit.queries.get_mut(question) else {
            return Ok(None);
        };
        if query.drop_reason.is_some() {
            return Ok(None);
        }
        let Some(statements) = query.statements(reader, bound, authors) else {
            return Ok(None);
        };
        pace.wait().await;
        // Not the first statement: its form may be new to Headwater.
        let second = unit.scan.total.saturating_sub(1).min(1);
        if silent.is_none()
            && query.tally.compared % EXPLAIN_EVERY == second
            && let Some(first) = statements.first()
        {
            match explain(headwater, first).await? {
                Ok(from) => *query.tally.answered_from.entry(from).or_default() += 1,
                Err(refused) => *silent = Some(refused),
            }
        }
        let (real, took) = server.query_each(&statements).await?;
        let (served, _) = headwater.query_each(&statements).await?;
        if let Some(dropped) = drop_reason(&real, &served) {
            query.drop_reason = Some(dropped);
            return Ok(None);
        }
        let next = query.next_bound(&real);
        let differed = served != real;
        let verdict = match differed {
            false => AnswerVerdict::Equal,
            true => {
                let first = AnswerPair {
                    headwater: served,
                    server: real,
                };
                let ties = query.tie_query(&statements);
                let sides = (headwater, server);
                comparison_rounds::compare_again(
                    &statements,
                    ties.as_ref(),
                    first,
                    sides,
                    *staleness,
                )
                .await?
            }
        };
        let asked_again = differed && verdict != AnswerVerdict::Tied;
        query.tally.asked_again += u64::from(asked_again);
        let late = matches!(verdict, AnswerVerdict::Late(_));
        if let Some(pair) = query.tally.record(verdict) {
            let of_kind = differences
                .iter()
                .filter(|difference| difference.late == late)
                .count();
            if of_kind < MAX_DIFFERENCES_SHOWN {
                differences.push(AnswerDifference {
                    unit_title: unit.title.clone(),
                    database: unit.database.clone(),
                    reader,
                    statements,
                    pair,
                    late,
                });
            }
        }
        if let Some(slower) = slower.and_then(|times| query.latency.record(took, times)) {
            let title = format!("{}, {}", unit.title, query.title);
            return Err(StopReason::Slower { title, slower });
        }
        Ok(next)
    }
}

/// What Headwater would serve this from, or why it does not report that.
async fn explain(
    headwater: &mut ComparedSide,
    statement: &str,
) -> Result<Result<String, String>, SideError> {
    let reply = headwater
        .query_one(&format!("SHOW HEADWATER WHY FOR {statement}"))
        .await?;
    let cell = |at: usize| {
        let cell = reply.rows().first()?.get(at)?.as_deref()?;
        Some(String::from_utf8_lossy(cell).into_owned())
    };
    Ok(match (cell(0), cell(1).filter(|why| !why.is_empty())) {
        (Some(from), Some(why)) => Ok(format!("{from} ({why})")),
        (Some(from), None) => Ok(from),
        (None, _) => Err(reply.summary()),
    })
}

fn drop_reason(real: &[ComparableAnswer], served: &[ComparableAnswer]) -> Option<QueryDropReason> {
    let refused =
        |answers: &[ComparableAnswer]| answers.last().filter(|last| last.is_refusal()).cloned();
    let Some(said) = refused(real) else {
        // Another account may have the privilege there.
        let said = refused(served)
            .filter(ComparableAnswer::is_denial)?
            .summary();
        let why = format!("Headwater's client (--user) needs {RIGHTS}: {said}");
        return Some(QueryDropReason { why, fails: true });
    };
    if said.is_denial() {
        let said = said.summary();
        let why = format!("the server refuses the service account, which needs {RIGHTS}: {said}");
        return Some(QueryDropReason { why, fails: true });
    }
    let is_missing = real.len() == 1 && said.lacks_procedure();
    (is_missing || real == served).then(|| QueryDropReason {
        why: format!("the server refuses: {}", said.summary()),
        fails: false,
    })
}

/// The privileges that an app's statements need.
const RIGHTS: &str = "SELECT, EXECUTE and CREATE TEMPORARY TABLES in this database";

fn progress_counts(units: &[VerifyUnit]) -> ProgressCounts {
    let all = report::total(units);
    ProgressCounts {
        readers: units.iter().map(|unit| unit.readers).sum(),
        all_readers: units.iter().map(|unit| unit.scan.total).sum(),
        answers: all.compared,
        all_answers: units.iter().map(VerifyUnit::answers).sum(),
        differences: all.different,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: ComparableAnswer = ComparableAnswer::Done {
        last_insert_id: 0,
        warnings: 0,
    };

    fn refused(code: u16) -> ComparableAnswer {
        ComparableAnswer::Refused {
            code,
            message: "no".to_owned(),
        }
    }

    fn fails(real: &[ComparableAnswer], own: &[ComparableAnswer]) -> Option<bool> {
        drop_reason(real, own).map(|dropped| dropped.fails)
    }

    #[test]
    fn what_cannot_be_compared_is_told_from_what_differs() {
        assert_eq!(fails(&[DONE], &[DONE]), None);
        // A right is missing, on one side or the other.
        assert_eq!(fails(&[refused(1370)], &[DONE]), Some(true));
        assert_eq!(fails(&[DONE], &[refused(1370)]), Some(true));
        // There is no procedure, and Headwater serves the definition.
        assert_eq!(fails(&[refused(1305)], &[DONE]), Some(false));
        // A statement that is none.
        assert_eq!(fails(&[refused(1064)], &[refused(1064)]), Some(false));
        // An answer beside an error is a difference until both are queried again.
        assert_eq!(fails(&[DONE], &[refused(1205)]), None);
        assert_eq!(fails(&[refused(1205)], &[DONE]), None);
    }
}
