//! `headwater verify`: every reader of every definition and feed, Headwater's answer beside the server's, on a live server.
//!
//! `find` says what there is to compare, `readers` goes through the readers, `side` asks. Where two answers differ, `judge` asks
//! again, so that writers at work raise no false alarm and hide no true one. `watch` keeps the pace and sees whether the server suffers.
//! It reads, calls procedures that read, and writes nothing but temporary tables of its own two sessions.

mod answer;
mod find;
mod flags;
mod judge;
mod pattern;
mod progress;
mod readers;
mod report;
mod side;
mod ties;
mod unit;
mod watch;

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::account::{Account, AccountError, Purpose, host};
use crate::binlog::Mode;
use crate::check::{self, CheckError};
use crate::config::Settings;
use crate::server::named;
use crate::tls::{Connector, TlsError, TlsMode, UpstreamTlsSection};

use answer::Answer;
pub use flags::{Options, Readers, VerifyFlags};
use judge::{Pair, Verdict};
use progress::{Far, Progress};
use report::{Difference, Findings, MOST_SHOWN, Sum};
use side::{Lost, Side};
use unit::{Authors, Dropped, LeftOut, Unit};
use watch::{Pace, Slower};

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that was compared is equal.
    Equal,
    /// An answer differs, or something could not be compared.
    Different,
    /// It was stopped, or stopped by itself; what was compared until then is equal.
    Stopped,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is nobody to ask with.
    #[error(
        "the server is asked by the service account: name it (--service-user, HEADWATER_SERVICE_USER, service.user)"
    )]
    NoAccount,
    /// The server cannot be looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A certificate that the settings name cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Headwater does not let the account in, or is not there.
    #[error(
        "cannot log in as {user:?} through Headwater at {address}: is it running there, and are the account and its password right? \
         (--headwater; --user, HEADWATER_VERIFY_PASSWORD)"
    )]
    Headwater {
        /// Where it should be.
        address: String,
        /// Who asks.
        user: String,
        /// Why not.
        source: AccountError,
    },
    /// A question on the way failed.
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
    /// Signals cannot be heard.
    #[error("cannot wait for Ctrl-C")]
    Signal(#[source] std::io::Error),
}

impl From<Lost> for VerifyError {
    fn from(lost: Lost) -> Self {
        VerifyError::Lost(lost.to_string())
    }
}

/// Why it ended before its end.
#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error(
        "the server has become slower ({title}: an answer took {:.1} ms at first, and takes {:.1} ms now, in the median). Go on when it \
         has less to do, with a lower --rate, or with another --stop-when-slower",
        slower.first.as_secs_f64() * 1e3,
        slower.last.as_secs_f64() * 1e3
    )]
    Slower { title: String, slower: Slower },
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error("{0}")]
    Readers(AccountError),
    #[error("by a signal")]
    Signal,
}

/// Of so many answers one is asked about, which of its sources Headwater would take.
const ASKED_WHY: u64 = 20;
/// Authors that a list names where nothing says who follows whom.
const NEIGHBOURS: usize = 20;
/// Authors that a list names at most.
const MOST_AUTHORS: usize = 1_000;

/// Compares, and writes what is found to `text`.
///
/// # Errors
/// When nothing could be compared.
pub async fn run(
    settings: &Settings,
    options: &Options,
    text: &mut String,
) -> Result<Outcome, VerifyError> {
    let service = settings.service.as_ref().ok_or(VerifyError::NoAccount)?;
    let settings = &check::of_primary(settings).await?;
    let greeting = check::greeted(settings).await?;
    let account = check::account_of(settings, service)?;
    let asking = |source| VerifyError::Asking { source };
    // Which of the two is wrong, address or account, is said as `check` says it.
    drop(check::log_in(settings, &account).await?);
    let server = Side::of("the server", account, Purpose::Trials).await;
    let mut server = server.map_err(asking)?;
    let mut headwater = through(settings, options).await?;
    let found = find::find(settings, options, &mut server, &mut headwater).await?;
    if found.units.is_empty() && found.left_out.is_empty() {
        return Err(VerifyError::Nothing);
    }
    let mut findings = Findings::new(text);
    let user = options.user.as_ref().unwrap_or(service);
    findings.sides(
        &named(&greeting),
        settings.upstream.first(),
        &service.user,
        &options.headwater,
        &user.user,
    );
    let mut run = Run {
        headwater,
        server,
        units: found.units,
        differences: Vec::new(),
        silent: found.silent,
        pace: Pace::of(options.rate),
        slower: options.slower,
        settle: match settings.freshness.mode {
            Mode::Bounded => Duration::from_millis(settings.freshness.bounded_ms),
            _ => Duration::ZERO,
        },
        most_authors: settings.limits.list_authors.min(MOST_AUTHORS),
        progress: Progress::begin(),
    };
    let stopped = run.until_a_signal().await?;
    run.progress.end();
    findings.write(&Sum {
        units: &run.units,
        left_out: &found.left_out,
        differences: &run.differences,
        silent: run.silent.as_deref(),
        stopped: stopped.as_ref().map(ToString::to_string),
        took: run.progress.elapsed(),
    });
    Ok(run.outcome(&found.left_out, stopped.is_some()))
}

/// The connection of a client of Headwater's.
async fn through(settings: &Settings, options: &Options) -> Result<Side, VerifyError> {
    let account = options.user.as_ref().or(settings.service.as_ref());
    let account = account.ok_or(VerifyError::NoAccount)?;
    let address = &options.headwater;
    // It is asked for where it has to be. Nothing is verified: this Headwater's certificate is that of these settings.
    let wanted = settings.tls.required || settings.upstream_tls.mode.is_required();
    let tls = UpstreamTlsSection {
        mode: match wanted && settings.tls.is_offered(&settings.upstream_tls) {
            true => TlsMode::Required,
            false => TlsMode::Disabled,
        },
        ..UpstreamTlsSection::default()
    };
    let connector = Connector::new(&tls, host(address))?;
    let client = Account::new(address, &account.user, &account.password, &connector);
    let refused = |source| VerifyError::Headwater {
        address: address.clone(),
        user: account.user.clone(),
        source,
    };
    let side = Side::of("Headwater", client, Purpose::Trials).await;
    side.map_err(refused)
}

/// What goes on.
#[derive(Debug)]
struct Run {
    headwater: Side,
    server: Side,
    units: Vec<Unit>,
    differences: Vec<Difference>,
    /// Why Headwater does not say what answers.
    silent: Option<String>,
    pace: Pace,
    slower: Option<f64>,
    /// An answer may be stale for so long, by the settings.
    settle: Duration,
    most_authors: usize,
    progress: Progress,
}

impl Run {
    /// Goes through all of them; returns why it ended before their end.
    async fn until_a_signal(&mut self) -> Result<Option<Stop>, VerifyError> {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(VerifyError::Signal)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(VerifyError::Signal)?;
        tokio::select! {
            gone = self.all() => Ok(gone.err()),
            _ = interrupt.recv() => Ok(Some(Stop::Signal)),
            _ = terminate.recv() => Ok(Some(Stop::Signal)),
        }
    }

    fn outcome(&self, left_out: &[LeftOut], stopped: bool) -> Outcome {
        let all = report::total(&self.units);
        let dropped = self.units.iter().flat_map(|unit| &unit.questions);
        let dropped = dropped.filter_map(|question| question.dropped.as_ref());
        let unread =
            left_out.iter().any(|own| own.fails) || dropped.into_iter().any(|own| own.fails);
        // Nothing is not all.
        let nothing = all.compared == 0 && !stopped;
        match (all.differ > 0 || unread || nothing, stopped) {
            (true, _) => Outcome::Different,
            (false, true) => Outcome::Stopped,
            (false, false) => Outcome::Equal,
        }
    }

    async fn all(&mut self) -> Result<(), Stop> {
        for at in 0..self.units.len() {
            if self.enter(at).await? {
                while self.reader(at).await? {}
            }
        }
        Ok(())
    }

    /// Connects both sides in the database of a definition or feed; false where that is refused.
    async fn enter(&mut self, at: usize) -> Result<bool, Lost> {
        let Some(unit) = self.units.get_mut(at) else {
            return Ok(false);
        };
        for side in [&mut self.server, &mut self.headwater] {
            let name = side.name();
            let entered = side.enter(&unit.database).await;
            if let Err(AccountError::Server(refused)) = entered {
                let why = format!("{name} refuses: {refused}");
                for question in &mut unit.questions {
                    question.dropped = Some(Dropped {
                        why: why.clone(),
                        fails: true,
                    });
                }
                return Ok(false);
            }
            entered.map_err(|source| Lost::Failed { side: name, source })?;
        }
        Ok(true)
    }

    /// Compares what there is for the next reader; false where there is none.
    async fn reader(&mut self, at: usize) -> Result<bool, Stop> {
        let Some(unit) = self.units.get_mut(at) else {
            return Ok(false);
        };
        if unit.questions.iter().all(|own| own.dropped.is_some()) {
            return Ok(false);
        }
        let next = unit.walk.next(&mut self.server).await;
        let Some(reader) = next.map_err(Stop::Readers)? else {
            return Ok(false);
        };
        let authors = unit.authors.clone();
        let authors = self.authors(&authors, reader).await?;
        let mut bound = None;
        let questions = self.units.get(at).map_or(0, |unit| unit.questions.len());
        for question in 0..questions {
            let who = (reader, bound, authors.as_slice());
            bound = self.compare(at, question, who).await?.or(bound);
        }
        if let Some(unit) = self.units.get_mut(at) {
            unit.readers += 1;
        }
        let Run {
            progress, units, ..
        } = self;
        progress.say(|| far(units));
        Ok(true)
    }

    /// Whose messages a reader's list names.
    async fn authors(&mut self, authors: &Authors, reader: i128) -> Result<Vec<i128>, Stop> {
        let question = match authors {
            Authors::None => return Ok(Vec::new()),
            Authors::From(column) => column.from(&format!(">= {reader}"), NEIGHBOURS),
            Authors::Followed { by, author } => by.beside(author, reader, self.most_authors),
        };
        let rows = self.server.rows(&question).await;
        Ok(readers::ids(&rows.map_err(Stop::Readers)?))
    }

    /// Compares both answers to a question about a reader. Returns the bound of the next page, if it is known now.
    async fn compare(
        &mut self,
        unit: usize,
        question: usize,
        (reader, bound, authors): (i128, Option<u64>, &[i128]),
    ) -> Result<Option<u64>, Stop> {
        let Run {
            headwater,
            server,
            units,
            differences,
            silent,
            pace,
            slower,
            settle,
            ..
        } = self;
        let Some(unit) = units.get_mut(unit) else {
            return Ok(None);
        };
        let Some(question) = unit.questions.get_mut(question) else {
            return Ok(None);
        };
        if question.dropped.is_some() {
            return Ok(None);
        }
        let Some(statements) = question.statements(reader, bound, authors) else {
            return Ok(None);
        };
        pace.turn().await;
        // The first one's form may be new to Headwater.
        let second = unit.walk.total.saturating_sub(1).min(1);
        if silent.is_none()
            && question.tally.compared % ASKED_WHY == second
            && let Some(first) = statements.first()
        {
            match why(headwater, first).await? {
                Ok(from) => *question.tally.from.entry(from).or_default() += 1,
                Err(refused) => *silent = Some(refused),
            }
        }
        let (real, took) = server.talk(&statements).await?;
        let (own, _) = headwater.talk(&statements).await?;
        if let Some(dropped) = dropped(&real, &own) {
            question.dropped = Some(dropped);
            return Ok(None);
        }
        let next = question.next_bound(&real);
        let differed = own != real;
        let verdict = match differed {
            false => Verdict::Equal,
            true => {
                let first = Pair {
                    headwater: own,
                    server: real,
                };
                let ties = question.ties(&statements);
                let sides = (headwater, server);
                judge::again(&statements, ties.as_ref(), first, sides, *settle).await?
            }
        };
        let asked_again = differed && verdict != Verdict::Tied;
        question.tally.again += u64::from(asked_again);
        let late = matches!(verdict, Verdict::Late(_));
        if let Some(pair) = question.tally.take(verdict) {
            let of_kind = differences.iter().filter(|own| own.late == late).count();
            if of_kind < MOST_SHOWN {
                differences.push(Difference {
                    of: unit.title.clone(),
                    database: unit.database.clone(),
                    reader,
                    statements,
                    pair,
                    late,
                });
            }
        }
        if let Some(slower) = slower.and_then(|times| question.watch.note(took, times)) {
            let title = format!("{}, {}", unit.title, question.title);
            return Err(Stop::Slower { title, slower });
        }
        Ok(next)
    }
}

/// What Headwater would answer this from, or why it does not say.
async fn why(headwater: &mut Side, statement: &str) -> Result<Result<String, String>, Lost> {
    let told = headwater
        .ask_one(&format!("SHOW HEADWATER WHY FOR {statement}"))
        .await?;
    let cell = |at: usize| {
        let cell = told.rows().first()?.get(at)?.as_deref()?;
        Some(String::from_utf8_lossy(cell).into_owned())
    };
    Ok(match (cell(0), cell(1).filter(|why| !why.is_empty())) {
        (Some(from), Some(why)) => Ok(format!("{from} ({why})")),
        (Some(from), None) => Ok(from),
        (None, _) => Err(told.summary()),
    })
}

/// Why a question is not asked any more, by what was answered first.
fn dropped(real: &[Answer], own: &[Answer]) -> Option<Dropped> {
    let refused = |answers: &[Answer]| answers.last().filter(|last| last.is_refusal()).cloned();
    let Some(said) = refused(real) else {
        // Somebody else may ask there.
        let said = refused(own).filter(Answer::is_denial)?.summary();
        let why = format!("Headwater's client (--user) needs {RIGHTS}: {said}");
        return Some(Dropped { why, fails: true });
    };
    if said.is_denial() {
        let said = said.summary();
        let why = format!("the server refuses the service account, which needs {RIGHTS}: {said}");
        return Some(Dropped { why, fails: true });
    }
    let gone = real.len() == 1 && said.lacks_procedure();
    (gone || real == own).then(|| Dropped {
        why: format!("the server refuses: {}", said.summary()),
        fails: false,
    })
}

/// What it takes to ask as an app does.
const RIGHTS: &str = "SELECT, EXECUTE and CREATE TEMPORARY TABLES in this database";

fn far(units: &[Unit]) -> Far {
    let all = report::total(units);
    Far {
        readers: units.iter().map(|unit| unit.readers).sum(),
        all_readers: units.iter().map(|unit| unit.walk.total).sum(),
        answers: all.compared,
        all_answers: units.iter().map(Unit::answers).sum(),
        differences: all.differ,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Answer = Answer::Done {
        last_insert_id: 0,
        warnings: 0,
    };

    fn refused(code: u16) -> Answer {
        Answer::Refused {
            code,
            message: "no".to_owned(),
        }
    }

    fn fails(real: &[Answer], own: &[Answer]) -> Option<bool> {
        dropped(real, own).map(|dropped| dropped.fails)
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
        // An answer beside an error is a difference, until it is asked for again.
        assert_eq!(fails(&[DONE], &[refused(1205)]), None);
        assert_eq!(fails(&[refused(1205)], &[DONE]), None);
    }
}
