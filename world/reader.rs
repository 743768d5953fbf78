//! An app that reads and writes through Headwater: each page that it receives has to be that of a state during its wait.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use headwater_proxy::session::session_counters::SessionEvent;
use tokio::time::{Instant, sleep};

use crate::answers::FOLLOW_UP_SELECT;
use crate::client::{ClientAnswer, WorldClient};
use crate::fleet::ProxyFleet;
use crate::model::{ModelState, ModelTable, RowEdit};
use crate::pages::{self, AuthorChoice, AuthorNames, FeedForm, FeedPage, TextRows, ids};
use crate::plan::WorldPlan;
use crate::random::Random;
use crate::server::{REFUSAL, WorldServer};
use crate::sql;
use crate::writes::{self, READERS};

/// Time limit after the last fault for logins to succeed and memory to answer.
const RECOVERY: Duration = Duration::from_secs(60);
/// The same with silent connections: each attempt may end only after two minutes, and its close may take as long.
const DEAF_RECOVERY: Duration = Duration::from_secs(300);

/// ER_SERVER_SHUTDOWN.
const SHUTDOWN: u16 = 1053;
/// The maximum pause of a patient app, in milliseconds.
const MAX_REST_MS: u64 = 500;

/// An app with one connection at a time.
pub(crate) struct AppReader {
    pub(crate) number: u64,
    pub(crate) server: Arc<WorldServer>,
    pub(crate) fleet: Arc<ProxyFleet>,
    pub(crate) random: Random,
    pub(crate) plan: WorldPlan,
    /// The open transaction, as far as it is known.
    pub(crate) transaction: Option<AppTransaction>,
    /// The previous feed page.
    pub(crate) last: Option<FeedPage>,
}

/// An app's transaction.
pub(crate) struct AppTransaction {
    /// The possible states of its snapshot, once it has been taken.
    snapshots: Option<Vec<usize>>,
    /// The first state from which a refused statement may have taken the snapshot.
    since: Option<usize>,
    /// Its changes.
    edits: Vec<RowEdit>,
}

impl AppTransaction {
    /// The possible snapshots after a statement between these states, which takes one if there is none.
    fn possible(&self, from: usize, upto: usize) -> Vec<usize> {
        let since = self.since.unwrap_or(from);
        let known = self.snapshots.clone();
        known.unwrap_or_else(|| (since..=upto).collect())
    }
}

impl WorldPlan {
    pub(crate) fn recovery(&self) -> Duration {
        match self.weather.deaf {
            Some(_) => DEAF_RECOVERY,
            None => RECOVERY,
        }
    }
}

/// Calls answered from memory, and feed pages.
pub(crate) fn memory_answers(fleet: &ProxyFleet) -> (u64, u64) {
    let of = |event| fleet.count(event);
    let feeds = of(SessionEvent::FeedNarrowed) + of(SessionEvent::FeedCached);
    (of(SessionEvent::CallFromMemory), feeds)
}

/// The result of a statement.
pub(crate) enum StatementOutcome {
    Told,
    Refused,
    CutOff,
}

impl AppReader {
    /// Runs so many steps. Returns the number of pages received.
    pub(crate) async fn run(mut self, steps: usize) -> Result<u64, String> {
        let mut client = self.connect().await?;
        let mut pages = 0;
        for _ in 0..steps {
            sleep(self.random.pause(30)).await;
            let reader = 1 + self.random.below(READERS);
            let in_transaction = self.transaction.is_some();
            let step = self.random.below(12);
            let before = memory_answers(&self.fleet);
            let outcome = match step {
                0 | 1 if self.plan.app_writes => self.write(&mut client).await?,
                2 if self.plan.transactions => self.begin_or_end(&mut client).await?,
                // In a transaction, a call's reads do not take its snapshot.
                _ if step.is_multiple_of(2) && !in_transaction => {
                    pages += 1;
                    self.call(&mut client, reader).await?
                }
                _ => {
                    pages += 1;
                    let feed = self.next_page(reader);
                    self.feed(&mut client, &feed).await?
                }
            };
            if self.plan.patient && memory_answers(&self.fleet) == before {
                sleep(self.random.pause(MAX_REST_MS)).await;
            }
            if let StatementOutcome::CutOff = outcome {
                self.transaction = None;
                client = self.connect().await?;
            }
        }
        Ok(pages)
    }

    /// Retries until the login succeeds.
    pub(crate) async fn connect(&mut self) -> Result<WorldClient, String> {
        let mut begun = Instant::now();
        loop {
            let address = self.fleet.address(self.number);
            let connecting = WorldClient::connect(&address, &self.plan.weather, &mut self.random);
            let connected = tokio::time::timeout(RECOVERY, connecting).await;
            match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(client) => return Ok(client),
                Err(_) if self.server.is_down() => begun = Instant::now(),
                Err(error) if begun.elapsed() > self.plan.recovery() => {
                    return Err(format!("no login: {error}"));
                }
                Err(_) => {}
            }
            sleep(self.random.pause(50)).await;
        }
    }

    /// Calls answered by lookups, or by the relayed procedure.
    fn lookups(&self) -> u64 {
        let count = |event| self.fleet.count(event);
        count(SessionEvent::CallServed) - count(SessionEvent::CallFromMemory)
    }

    fn readable(&self) -> usize {
        self.server.model().readable()
    }

    /// The state that the app's next statement reads, as needed to choose a meaningful statement.
    fn state(&self) -> Arc<ModelState> {
        let model = self.server.model();
        let known = self.transaction.as_ref();
        let snapshot = known.and_then(|it| it.snapshots.as_ref()?.first().copied());
        let state = model.state(snapshot.unwrap_or(model.readable()));
        match known {
            Some(transaction) => Arc::new(state.with(&transaction.edits)),
            None => state,
        }
    }

    async fn write(&mut self, client: &mut WorldClient) -> Result<StatementOutcome, String> {
        let state = self.state();
        let edit = writes::drawn(&state, &mut self.random);
        let from = self.readable();
        let answer = self.ask(client, &writes::statement(edit)).await?;
        let upto = self.readable();
        let answer = match answer {
            Ok(answer) => answer,
            Err(outcome) => return Ok(self.refused(from, outcome)),
        };
        if let Some(transaction) = &mut self.transaction {
            // The model uses its snapshot to find the rows that a statement changes.
            transaction.snapshots = Some(transaction.possible(from, upto));
            if answer == ClientAnswer::Ok {
                transaction.edits.push(edit);
            }
        }
        Ok(StatementOutcome::Told)
    }

    /// A statement refused after this state, in whole or in part, may have taken its transaction's snapshot.
    fn refused(&mut self, from: usize, outcome: StatementOutcome) -> StatementOutcome {
        if let Some(transaction) = &mut self.transaction {
            transaction.since.get_or_insert(from);
        }
        outcome
    }

    async fn begin_or_end(&mut self, client: &mut WorldClient) -> Result<StatementOutcome, String> {
        let is_open = self.transaction.take().is_some();
        let text = match (is_open, self.random.below(3)) {
            (true, 0) => "ROLLBACK",
            (true, _) => "COMMIT",
            (false, 0) => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            (false, _) => "START TRANSACTION",
        };
        let from = self.readable();
        if let Err(outcome) = self.ask(client, text).await? {
            return Ok(outcome);
        }
        let snapshots = text.ends_with("SNAPSHOT");
        self.transaction = (!is_open).then(|| AppTransaction {
            snapshots: snapshots.then(|| (from..=self.readable()).collect()),
            since: None,
            edits: Vec::new(),
        });
        Ok(StatementOutcome::Told)
    }

    /// Every third page has an upper limit: one of so many of the newest ids.
    fn bound(&mut self, messages: ModelTable, newest: u64) -> Option<u64> {
        let last = self.state().newest(messages);
        let is_bounded = self.random.one_in(3);
        is_bounded.then(|| last.saturating_sub(self.random.below(newest)))
    }

    /// The authors whom a reader follows; sometimes a list of the app's.
    fn authors(&mut self, reader: u64) -> AuthorChoice {
        if !self.plan.lists || !self.random.one_in(3) {
            return AuthorChoice::Followed(reader);
        }
        let all = 1..=writes::AUTHORS;
        AuthorChoice::Listed(
            all.filter(|_| self.random.one_in(3))
                .chain([reader])
                .collect(),
        )
    }

    /// Repeats the previous page, or chooses another one.
    fn next_page(&mut self, reader: u64) -> FeedPage {
        let last = self.last.take();
        let again = last.filter(|_| self.plan.refreshes && !self.random.one_in(4));
        let next = again.unwrap_or_else(|| self.page_of(reader));
        self.last = Some(next.clone());
        next
    }

    /// A page of this reader's feed, as the app shows it: of few kinds, so that most are repeated.
    pub(crate) fn page_of(&mut self, reader: u64) -> FeedPage {
        let form = self.form();
        let (is_page, is_bounded) = match &form {
            FeedForm::Page => (true, true),
            FeedForm::Count | FeedForm::Unread | FeedForm::Exists => (false, true),
            FeedForm::Newest | FeedForm::NewestAndCount => (false, true),
            FeedForm::NewestOfEach
            | FeedForm::CountOfEach
            | FeedForm::NewestMessages
            | FeedForm::Messages(_) => (false, false),
        };
        let names = match self.random.one_in(2) {
            true if is_bounded => self.plan.names,
            _ => AuthorNames::Absent,
        };
        let has_blocks = self.plan.blocks && self.random.one_in(2);
        let bound = self.bound(ModelTable::Statuses, 20);
        FeedPage {
            form,
            authors: self.authors(reader),
            bound: bound.filter(|_| self.plan.bounds && is_bounded),
            offset: match self.random.one_in(2) {
                true if is_page => self.plan.offset,
                _ => 0,
            },
            names,
            unblocked: has_blocks.then_some(reader),
        }
    }

    /// What the next statement shows: mostly a page.
    fn form(&mut self) -> FeedForm {
        let Some(form) = self.plan.counts.filter(|_| self.random.one_in(2)) else {
            return FeedForm::Page;
        };
        match form {
            0 => FeedForm::Count,
            1 => FeedForm::Unread,
            2 => FeedForm::Exists,
            3 => FeedForm::Newest,
            4 => FeedForm::NewestAndCount,
            5 => FeedForm::NewestOfEach,
            6 => FeedForm::NewestMessages,
            7 => FeedForm::CountOfEach,
            _ => {
                let last = self.state().newest(ModelTable::Statuses);
                let ids = (0..4).map(|_| 1 + last.saturating_sub(self.random.below(12)));
                let ids: BTreeSet<u64> = ids.collect();
                FeedForm::Messages(ids.into_iter().collect())
            }
        }
    }

    pub(crate) async fn feed(
        &mut self,
        client: &mut WorldClient,
        feed: &FeedPage,
    ) -> Result<StatementOutcome, String> {
        let statement = feed.statement();
        let executed = self.plan.executions && self.random.one_in(2);
        let from = self.readable();
        let received = match self.ask_for(client, &statement, executed).await? {
            Ok(received) => received,
            Err(outcome) => return Ok(self.refused(from, outcome)),
        };
        let upto = self.readable();
        let page = |state: &ModelState| feed.page(state);
        let server = &self.server;
        let Some(transaction) = &mut self.transaction else {
            return match is_possible_answer(server, from..=upto, &received, page) {
                true => Ok(StatementOutcome::Told),
                false => Err(wrong_answer_text(
                    server,
                    feed,
                    (from, upto),
                    &received,
                    page,
                )),
            };
        };
        let mut possible = transaction.possible(from, upto);
        let (first, last) = (possible.first().copied(), possible.last().copied());
        possible.retain(|number| {
            let state = server.model().state(*number);
            ClientAnswer::Rows(page(&state.with(&transaction.edits))) == received
        });
        if possible.is_empty() {
            let between = (first.unwrap_or(from), last.unwrap_or(upto));
            let text = wrong_answer_text(server, feed, between, &received, |state| {
                page(&state.with(&transaction.edits))
            });
            return Err(format!("in a transaction, {text}"));
        }
        transaction.snapshots = Some(possible);
        Ok(StatementOutcome::Told)
    }

    /// A call, and its follow-up SELECT.
    pub(crate) async fn call(
        &mut self,
        client: &mut WorldClient,
        reader: u64,
    ) -> Result<StatementOutcome, String> {
        let bound = self.bound(ModelTable::Message, 30);
        let (called, looked_up) = (self.readable(), self.lookups());
        let text = match bound {
            Some(bound) => format!("CALL fetch_timeline_ids2({reader}, {bound})"),
            None => format!("CALL fetch_timeline_ids({reader})"),
        };
        let bound = bound.unwrap_or(u64::MAX);
        if let Err(outcome) = self.ask(client, &text).await? {
            return Ok(outcome);
        }
        let between = self.readable();
        let may_be_looked_up = self.lookups() > looked_up;
        sleep(self.random.pause(5)).await;
        let from = self.readable();
        let received = match self.ask(client, FOLLOW_UP_SELECT).await? {
            Ok(received) => received,
            Err(outcome) => return Ok(outcome),
        };
        let upto = self.readable();
        let server = &self.server;
        let any = (called..=between).any(|number| {
            let ids = pages::page(&server.model().state(number), reader, bound);
            is_possible_answer(server, from..=upto, &received, |state| {
                pages::follow_up_rows(state, &ids)
            })
        });
        // A lookup reads heads first, then the lists below them, in one statement or in several.
        let states = |from: usize, upto: usize| -> Vec<_> {
            let model = server.model();
            (from..=upto).map(|number| model.state(number)).collect()
        };
        let any = any
            || may_be_looked_up
                && (called..=between).any(|at| {
                    let lists = pages::lookup_pages(&states(at, between), reader, bound);
                    let ClientAnswer::Rows(received) = &received else {
                        return false;
                    };
                    let shown = states(from, upto);
                    shown
                        .iter()
                        .any(|state| pages::is_mixed(state, &lists, received))
                });
        match any {
            true => Ok(StatementOutcome::Told),
            false => Err(wrong_answer_text(
                server,
                &reader,
                (called, upto),
                &received,
                |state| pages::follow_up_rows(state, &pages::page(state, reader, bound)),
            )),
        }
    }

    /// Runs a statement; no answer if the connection or the server failed, as they may.
    async fn ask(
        &mut self,
        client: &mut WorldClient,
        text: &str,
    ) -> Result<Result<ClientAnswer, StatementOutcome>, String> {
        let statement = (text.to_owned(), Vec::new());
        self.ask_for(client, &statement, false).await
    }

    /// The same for a statement with parameters, by an execution or as text.
    async fn ask_for(
        &mut self,
        client: &mut WorldClient,
        (text, values): &(String, Vec<u64>),
        executed: bool,
    ) -> Result<Result<ClientAnswer, StatementOutcome>, String> {
        let trace = &self.server.trace;
        let bound = sql::bound(text, values);
        let number = self.number;
        let how = if executed { "executes " } else { "" };
        trace.note(
            format_args!("reader {number}"),
            format_args!("{how}{bound}"),
        );
        let reply = async {
            match executed {
                true => client.execute(text, values).await,
                false => client.query(&bound).await,
            }
        };
        // After a longer wait the app considers the connection lost.
        let answer = match tokio::time::timeout(RECOVERY, reply).await {
            Ok(answer) => answer,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        trace.note(format_args!("reader {number}"), TracedAnswer(&answer));
        match answer {
            Ok(ClientAnswer::Error(code, _))
                if code == REFUSAL.0 && self.plan.refusals.is_some() =>
            {
                Ok(Err(StatementOutcome::Refused))
            }
            // A Headwater that ends sends this error.
            Ok(ClientAnswer::Error(SHUTDOWN, _)) if self.plan.successions => {
                Ok(Err(StatementOutcome::CutOff))
            }
            // With 1062 another client inserted this key first.
            Ok(ClientAnswer::Error(code, message)) if code != 1062 => {
                Err(format!("{code} {message}: {text}"))
            }
            Ok(answer) => Ok(Ok(answer)),
            Err(error) if !self.plan.breaks() => Err(format!("{error}: {text}")),
            Err(_) => Ok(Err(StatementOutcome::CutOff)),
        }
    }
}

/// The result of a statement, as shown in the trace.
struct TracedAnswer<'a>(&'a io::Result<ClientAnswer>);

impl fmt::Display for TracedAnswer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(ClientAnswer::Ok) => write!(f, "is told: OK"),
            Ok(ClientAnswer::Rows(rows)) => write!(f, "is told: {}", ids(rows)),
            Ok(ClientAnswer::Error(code, message)) => write!(f, "is told: error {code} {message}"),
            Err(error) => write!(f, "is cut off: {error}"),
        }
    }
}

fn is_possible_answer(
    server: &WorldServer,
    mut between: std::ops::RangeInclusive<usize>,
    received: &ClientAnswer,
    page: impl Fn(&ModelState) -> TextRows,
) -> bool {
    between.any(|number| ClientAnswer::Rows(page(&server.model().state(number))) == *received)
}

fn wrong_answer_text(
    server: &WorldServer,
    reader: &dyn std::fmt::Debug,
    (from, upto): (usize, usize),
    told: &ClientAnswer,
    page: impl Fn(&ModelState) -> TextRows,
) -> String {
    let told = match told {
        ClientAnswer::Rows(rows) => ids(rows),
        other => format!("{other:?}"),
    };
    let mut text = format!("{reader:?} was told\n      {told}\n");
    let mut last = String::new();
    for number in from.saturating_sub(3)..=upto {
        let page = ids(&page(&server.model().state(number)));
        let is = if number < from { "before" } else { "right" };
        if page != last || number == from {
            let _ = writeln!(text, "{is} {number}: {page}");
        }
        last = page;
    }
    text
}
