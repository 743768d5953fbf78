//! The model server: its connections, commits, log streams and restarts. Commits and restarts take simulated time, as a real server's do.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use headwater_proxy::link::memory::{MemoryListener, MemoryStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::answers::{ModelReply, RecordedReply, ServerSession};
use crate::log;
use crate::model::{ModelState, RowEdit, TableChange, WorldModel};
use crate::network::{NetworkWeather, between};
use crate::plan::WorldPlan;
use crate::random::Random;
use crate::rights::AccountRight;
use crate::trace::WorldTrace;
use crate::wire::{ServerPeer, binary_row, text_row};
use crate::writes;

const VERSION: &str = "10.11.19-MariaDB-log";
/// Maximum time between log write and readability of a transaction, and from there to the client's OK, in milliseconds.
const COMMIT: u64 = 10;
/// One in so many commits takes up to so many milliseconds.
const SLOW: (u64, u64) = (30, 3_000);
const ACKNOWLEDGEMENT: u64 = 3;
/// So many statements at one moment are an endless loop.
const MOST_AT_ONCE: u64 = 10_000;
/// The error of an interrupted statement.
pub(crate) const REFUSAL: (u16, &str, &str) = (1317, "70100", "Query execution was interrupted");

/// The server and its parts.
#[derive(Debug)]
pub(crate) struct WorldServer {
    model: Mutex<WorldModel>,
    pub(crate) recorded: BTreeMap<String, RecordedReply>,
    /// Violations: unsupported statements, and too many statements.
    faults: Mutex<Vec<String>>,
    is_down: AtomicBool,
    weather: NetworkWeather,
    /// One of so many statements is refused.
    refusals: Option<u64>,
    /// Ends all connections. (In their order: a `watch` would wake them in a random one.)
    ends: Notify,
    /// Its connections, and the signal that ends each.
    served: Mutex<BTreeMap<u64, Arc<Notify>>>,
    /// The time of the last statement, and the number of statements at that time.
    moment: Mutex<(Instant, u64)>,
    pub(crate) trace: WorldTrace,
}

/// How a server ends.
#[derive(Clone, Debug)]
pub(crate) enum ServerEnding {
    /// Orderly shutdown.
    Stop,
    /// Killed; the server is durable.
    Crash,
    /// Killed; loses so many of its last transactions, from its log as well or not.
    Loss { count: usize, logged: bool },
    /// Replaced by a replica that lacks so many of its last transactions, and differs by these edits.
    Promotion { lost: usize, drift: Vec<RowEdit> },
}

impl WorldServer {
    pub(crate) fn new(state: ModelState, plan: &WorldPlan, traced: bool) -> WorldServer {
        WorldServer {
            model: Mutex::new(WorldModel::new(state)),
            recorded: crate::answers::recorded(),
            faults: Mutex::default(),
            is_down: AtomicBool::new(false),
            weather: plan.weather.clone(),
            refusals: plan.refusals,
            ends: Notify::new(),
            served: Mutex::default(),
            moment: Mutex::new((Instant::now(), 0)),
            trace: WorldTrace::new(traced),
        }
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, WorldModel> {
        self.model.lock().expect("nobody panics with it")
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.faults.lock().expect("nobody panics with it").clone()
    }

    fn served(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Notify>>> {
        self.served.lock().expect("nobody panics with it")
    }

    /// The connections, and the signal that ends each.
    pub(crate) fn connections(&self) -> Vec<(u64, Arc<Notify>)> {
        let served = self.served();
        let each = served.iter();
        each.map(|(thread, end)| (*thread, Arc::clone(end)))
            .collect()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// Accepts and serves connections.
    pub(crate) async fn run(self: Arc<Self>, listener: MemoryListener, mut random: Random) {
        loop {
            let stream = between(listener.accept().await, &self.weather, &mut random);
            if self.is_down() {
                continue;
            }
            let (server, random) = (Arc::clone(&self), random.fork());
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = server.ends.notified() => {}
                    _ = server.serve(stream, random) => {}
                }
            });
        }
    }

    /// Ends, is unavailable for a while, and starts again.
    pub(crate) async fn restart(&self, ending: ServerEnding, away: Duration) {
        self.trace
            .note("server", format_args!("goes down: {ending:?}"));
        self.is_down.store(true, Ordering::Relaxed);
        self.ends.notify_waiters();
        self.served().clear();
        {
            let mut model = self.model();
            match ending {
                ServerEnding::Stop => model.restart(),
                ServerEnding::Crash => model.crash(),
                ServerEnding::Loss { count, logged } => model.lose(count, logged),
                ServerEnding::Promotion { lost, drift } => model.promote(lost, &drift),
            }
        }
        sleep(away).await;
        self.is_down.store(false, Ordering::Relaxed);
        let readable = self.model().readable();
        self.trace
            .note("server", format_args!("is up, at {readable}"));
    }

    async fn serve(&self, stream: MemoryStream, mut random: Random) -> io::Result<()> {
        let thread = self.model().connect();
        let mut peer = ServerPeer::new(stream);
        let user = peer.log_in(VERSION, thread).await?;
        let mut session = ServerSession::new(thread, user == "headwater");
        let end = Arc::clone(&session.end);
        self.served().insert(thread, end);
        let served = self.converse(&mut peer, &mut session, &mut random).await;
        self.served().remove(&thread);
        self.model().end(thread);
        served
    }

    async fn converse(
        &self,
        peer: &mut ServerPeer,
        session: &mut ServerSession,
        random: &mut Random,
    ) -> io::Result<()> {
        let who = format!("server {}", session.thread);
        loop {
            // A killed connection completes its current command.
            let command = tokio::select! {
                biased;
                () = session.end.notified() => return Ok(()),
                command = peer.command() => command?,
            };
            let mut encode: fn(&[_], &[_]) -> _ = text_row;
            let answer = match command.split_first() {
                // COM_QUIT.
                Some((1, _)) | None => return Ok(()),
                // COM_INIT_DB, COM_PING, COM_REGISTER_SLAVE.
                Some((2 | 14 | 21, _)) => ModelReply::Ok(0),
                Some((3, text)) => {
                    let text = String::from_utf8_lossy(text);
                    self.statement(session, &text, &who, random).await
                }
                Some((22, text)) => {
                    let text = String::from_utf8_lossy(text);
                    self.trace.note(&who, format_args!("prepares {text}"));
                    self.prepare(session, &text)
                }
                Some((23, execution)) => {
                    encode = binary_row;
                    match session.bound(execution) {
                        Some(text) => self.statement(session, &text, &who, random).await,
                        None => ModelReply::Unknown(format!("execution {execution:?}")),
                    }
                }
                Some((25, statement)) => {
                    session.close(statement);
                    continue;
                }
                Some((18, _)) if self.is_denied(session, AccountRight::Stream) => {
                    AccountRight::Stream.denial()
                }
                Some((18, request)) => {
                    self.trace.note(&who, "sends its log");
                    return tokio::select! {
                        biased;
                        () = session.end.notified() => Ok(()),
                        sent = self.dump(peer, session, request) => sent,
                    };
                }
                Some((kind, _)) => ModelReply::Unknown(format!("command {kind}")),
            };
            if let ModelReply::Unknown(what) = &answer {
                self.record_fault(format!("a statement is unknown: {what}"));
            }
            peer.send_reply(answer, encode, session.status());
            peer.flush().await?;
        }
    }

    /// Answers a statement that came as text, or with the values of an execution.
    async fn statement(
        &self,
        session: &mut ServerSession,
        text: &str,
        who: &str,
        random: &mut Random,
    ) -> ModelReply {
        self.trace.note(who, text);
        self.delay_flood().await;
        match writes::read(text) {
            _ if self.is_refused(text, random) => {
                self.trace.note(who, "refuses it");
                let (code, state, message) = REFUSAL;
                ModelReply::Error(code, state, message.to_owned())
            }
            Some(edit) => self.edit(session, edit, random).await,
            None if text == "COMMIT" => self.end(session, random).await,
            None => self.answer(session, text),
        }
    }

    /// A loop of statements would stop the simulated time: marks the world as failed, and delays the statement.
    async fn delay_flood(&self) {
        let now = Instant::now();
        let count = {
            let mut moment = self.moment.lock().expect("nobody panics with it");
            if moment.0 != now {
                *moment = (now, 0);
            }
            moment.1 += 1;
            moment.1
        };
        if count == MOST_AT_ONCE {
            self.record_fault(format!("{count} statements came at one moment"));
        }
        if count >= MOST_AT_ONCE {
            sleep(Duration::from_secs(1)).await;
        }
    }

    fn record_fault(&self, why: String) {
        let mut faults = self.faults.lock().expect("nobody panics with it");
        faults.push(why);
    }

    /// True if Headwater's account lacks this right now.
    pub(crate) fn is_denied(&self, session: &ServerSession, right: AccountRight) -> bool {
        session.is_service && self.model().denied.contains(&right)
    }

    /// Statements that end a transaction are never refused.
    fn is_refused(&self, text: &str, random: &mut Random) -> bool {
        let is_end = ["COMMIT", "ROLLBACK"].contains(&text);
        let of = self.refusals.filter(|_| !is_end && !self.weather.is_calm());
        of.is_some_and(|of| random.one_in(of))
    }

    /// A session edits a row: at once, or with its transaction.
    async fn edit(
        &self,
        session: &mut ServerSession,
        edit: RowEdit,
        random: &mut Random,
    ) -> ModelReply {
        let mut state = (*self.read(session)).clone();
        let Some(done) = state.apply(edit) else {
            return match edit.before {
                None => {
                    let message = "Duplicate entry for key 'PRIMARY'".to_owned();
                    ModelReply::Error(1062, "23000", message)
                }
                Some(_) => ModelReply::Ok(0),
            };
        };
        match &mut session.transaction {
            Some(transaction) => {
                transaction.edits.push(done);
                self.model().begin(session.thread);
            }
            None => {
                self.commit(session.thread, &[TableChange::Row(done)], random)
                    .await;
            }
        }
        ModelReply::Ok(1)
    }

    async fn end(&self, session: &mut ServerSession, random: &mut Random) -> ModelReply {
        if let Some(transaction) = session.transaction.take() {
            let changes: Vec<TableChange> = transaction
                .edits
                .into_iter()
                .map(TableChange::Row)
                .collect();
            self.commit(session.thread, &changes, random).await;
        }
        self.model().end(session.thread);
        ModelReply::Ok(0)
    }

    /// Commits: the transaction is first in the log, then readable, then acknowledged. Its locks are held until it is readable.
    pub(crate) async fn commit(&self, thread: u64, changes: &[TableChange], random: &mut Random) {
        while self.model().is_locked(changes) {
            sleep(Duration::from_millis(1)).await;
        }
        let written = self.model().write(thread, changes);
        let Some((number, changes)) = written else {
            return;
        };
        let who = format!("server {thread}");
        self.trace
            .note(&who, format_args!("{number} is in the log: {changes:?}"));
        let (one_in, long) = SLOW;
        let most = if random.one_in(one_in) { long } else { COMMIT };
        sleep(random.pause(most)).await;
        // In the order of the log.
        while self.model().readable() + 1 < number {
            sleep(Duration::from_millis(1)).await;
        }
        self.model().commit(thread, number);
        self.trace.note(&who, format_args!("{number} is readable"));
        sleep(random.pause(ACKNOWLEDGEMENT)).await;
    }

    /// The state that a session reads: its snapshot with its own changes.
    pub(crate) fn read(&self, session: &mut ServerSession) -> Arc<ModelState> {
        let model = self.model();
        let Some(transaction) = &mut session.transaction else {
            return model.state(model.readable());
        };
        let snapshot = *transaction.snapshot.get_or_insert(model.readable());
        let state = model.state(snapshot);
        match transaction.edits.is_empty() {
            true => state,
            false => Arc::new(state.with(&transaction.edits)),
        }
    }

    async fn dump(
        &self,
        peer: &mut ServerPeer,
        session: &ServerSession,
        request: &[u8],
    ) -> io::Result<()> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let offset = request.first_chunk().ok_or_else(malformed)?;
        let mut at = u64::from(u32::from_le_bytes(*offset));
        let to_the_end = request.get(4) == Some(&1);
        let name = String::from_utf8_lossy(request.get(10..).unwrap_or_default());
        let mut file = log::number(&name).ok_or_else(malformed)?;
        if !self.model().log.begins_in(file) {
            let message = "Could not find first log file name in binary log index file".to_owned();
            let error = ModelReply::Error(1236, "HY000", message);
            peer.send_reply(error, text_row, session.status());
            return peer.flush().await;
        }
        let changes = self.model().log.changes();
        let send = |peer: &mut ServerPeer, event: &[u8]| peer.packet(&[&[0][..], event].concat());
        send(peer, &self.model().log.rotation(file, at));
        if at > 4 {
            send(peer, &self.model().log.description());
        }
        let silence = session.heartbeat.unwrap_or(Duration::from_secs(30));
        loop {
            let changed = changes.notified();
            loop {
                let event = self.model().log.at(file, at).map(<[u8]>::to_vec);
                if let Some(event) = event {
                    at += event.len() as u64;
                    send(peer, &event);
                } else if self.model().log.has(file + 1) {
                    (file, at) = (file + 1, 4);
                    send(peer, &self.model().log.rotation(file, at));
                } else {
                    break;
                }
            }
            if to_the_end {
                peer.end_of_log();
                return peer.flush().await;
            }
            peer.flush().await?;
            let changed = tokio::time::timeout(silence, changed).await;
            if changed.is_err() {
                send(peer, &self.model().log.heartbeat(file, at));
            }
        }
    }
}
