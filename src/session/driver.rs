//! Moves the bytes of one session between its two sockets, and carries out the machine's steps.
//!
//! Buffers: what is read lands in a scratch buffer of the thread and is written on from there.
//! A session keeps only what could not be written at once (then that side is not read any more:
//! a slow client slows the server, and the other way round) and the start of an unfinished packet. Long rows are not read at
//! all where nothing is between the sockets (`long_rows`).

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::machine::{ClientStep, Doing, ServerStep};
use super::state::{Ended, Inbound, Session};
use super::who::log_in;
use crate::clock;
use crate::drain::DrainSignal;
use crate::link::release;
use crate::wire::command::Command;
use crate::wire::frame::{self, HEADER_BYTES};
use crate::wire::response::ErrPacket;

/// ER_TOO_MANY_USER_CONNECTIONS.
const TOO_MANY_USER_CONNECTIONS: u16 = 1203;
/// Bytes read at a time; one buffer a thread, shared by its sessions.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// What can be done.
enum Ready {
    Server,
    Client,
    ClientRoom,
    ServerRoom,
    Stalled,
    Unknown,
    Alarm,
}

/// Tells that the process drains: once, and then no more.
struct Alarm<'f, F> {
    drain: DrainSignal,
    drains: Pin<&'f mut F>,
    heard: Heard,
}

enum Heard {
    /// Nobody has listened yet.
    No,
    /// It will wake the session.
    Armed,
    Yes,
}

impl<F: Future<Output = ()>> Alarm<'_, F> {
    fn rings(&self) -> bool {
        self.drain.is_given()
    }

    /// Listens once, so as to be woken, and from then on only looks whether there is something.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let ready = match self.heard {
            Heard::Yes => false,
            Heard::Armed => self.rings(),
            Heard::No => {
                self.heard = Heard::Armed;
                self.drains.as_mut().poll(context).is_ready()
            }
        };
        if !ready {
            return Poll::Pending;
        }
        self.heard = Heard::Yes;
        Poll::Ready(())
    }
}

impl Session {
    /// Runs until either side ends, until the session is at rest after the signal to `drain`, or until its server is followed no more.
    pub async fn run(mut self, drain: DrainSignal) -> Ended {
        let moved = self.aim.moved.clone();
        let ended = moved.or(pin!(self.go_on(drain))).await;
        let ended = ended.unwrap_or(Ended::Moved);
        // The client was to have it in any case.
        let _ = self.tell_ahead();
        let span = tracing::enabled!(tracing::Level::DEBUG).then(|| self.span());
        self.farewell(&ended).await;
        if let Some(span) = span {
            log_in!(span, DEBUG, "a session ended: {ended}");
        }
        ended
    }

    async fn go_on(&mut self, drain: DrainSignal) -> Ended {
        let signal = drain.clone();
        let mut alarm = Alarm {
            drains: pin!(async move { signal.given().await }),
            drain,
            heard: Heard::No,
        };
        loop {
            if let Err(ended) = self.advance().await {
                return ended;
            }
            let waited = match alarm.rings().then(|| self.drains_in()).flatten() {
                Some(Duration::ZERO) => return Ended::Drained,
                Some(rest) => {
                    let waited = tokio::time::timeout(rest, self.wait(&mut alarm));
                    waited.await.unwrap_or(Ok(()))
                }
                None => self.wait(&mut alarm).await,
            };
            if let Err(ended) = waited {
                return ended;
            }
        }
    }

    /// Carries out every step that can be taken with the bytes at hand.
    async fn advance(&mut self) -> Result<(), Ended> {
        self.take_server_inbox()?;
        loop {
            self.holding = false;
            if !self.backend.link.is_clear() || self.client_in.is_empty() {
                break;
            }
            // Who does not read replies is not answered further ones.
            if !self.client.is_clear() && self.machine.commands().is_some() {
                self.holding = true;
                break;
            }
            self.renew();
            match self.next_step() {
                ClientStep::Need => break,
                ClientStep::Hold => {
                    self.holding = true;
                    break;
                }
                ClientStep::Pass(length) => self.pass_client(length.get())?,
                ClientStep::Replace(length, own) => {
                    self.client_in.splice(..length.get(), own.iter().copied());
                    self.pass_client(own.len())?;
                }
                ClientStep::Number => {
                    if let Some(seq) = self.client_in.get_mut(HEADER_BYTES - 1) {
                        *seq = 0;
                    }
                }
                ClientStep::Secure {
                    length,
                    client,
                    server,
                } => self.secure(length, client, server.as_deref()).await?,
                ClientStep::Refuse(error) => {
                    self.tell_client(&error)?;
                    return Err(Ended::Refused);
                }
                ClientStep::Call(asked) => self.call(*asked).await?,
                ClientStep::Tail(length, tail) => self.tail(length, &tail).await?,
                ClientStep::Batch(part) => self.batch(*part).await?,
                ClientStep::Feed(length, effects) => self.feed(length, effects).await?,
                ClientStep::Execution(length, effects, executed) => {
                    self.execution(length, effects, executed).await?;
                }
                ClientStep::Named(length, effects, executed) => {
                    self.execution_by_name(length, effects, executed).await?;
                }
                ClientStep::Own(length, own) => self.own(length, own).await?,
                ClientStep::Statement(id) => self.name_statement(id),
                ClientStep::Settle { diagnostics } => self.settle(diagnostics).await?,
            }
            self.take_server_inbox()?;
        }
        // Nothing more comes of what is there.
        self.tell_ahead()?;
        if self.inbound == Inbound::Closing && self.backend.link.is_clear() && !self.holding {
            if self.has_left() || self.machine.login_cut().is_some() {
                return Err(Ended::Client);
            }
            self.close_inbound().await;
        }
        release(&mut self.client_in);
        release(&mut self.backend.inbox);
        Ok(())
    }

    /// Takes settings that were read again, between two commands.
    fn renew(&mut self) {
        if self.current.generation() == self.generation {
            return;
        }
        // Who logs in goes on with what its greeting told.
        if self.machine.commands().is_some() && self.machine.is_at_rest() {
            (self.shared, self.generation) = self.current.with_generation();
            self.tell_slow_ones();
        }
    }

    fn next_step(&mut self) -> ClientStep {
        let none = self.knows_server();
        let catalogue = &self.shared.catalogue;
        let classify = &mut |text: &[u8]| catalogue.classify(text, none);
        self.machine.client(&self.client_in, classify)
    }

    /// True when a client that has closed its side said before that it would, and nothing is to come for it.
    fn has_left(&mut self) -> bool {
        let quit = self.machine.commands().is_some_and(|it| it.has_quit());
        quit && self.client_in.is_empty() && self.client.is_clear()
    }

    /// Waits until one of the sockets can be read or written, and does so once.
    async fn wait<F>(&mut self, alarm: &mut Alarm<'_, F>) -> Result<(), Ended>
    where
        F: Future<Output = ()>,
    {
        if self.client.is_clear() {
            self.stall.taken();
        }
        self.note_doing();
        // By hand, since this is all that most statements need: a `select!` of futures costs as much as what they lead to.
        match poll_fn(|context| self.poll_ready(alarm, context)).await? {
            Ready::Server => self.read_server(),
            Ready::Client => self.read_client(),
            Ready::ClientRoom => self.client.flush().map_err(|_| Ended::Client),
            Ready::ServerRoom => {
                if let Err(error) = self.backend.link.flush() {
                    self.refuse_inbound(&error);
                }
                Ok(())
            }
            Ready::Stalled => self.look_at_stalled(),
            Ready::Unknown => self.login_took_too_long(),
            Ready::Alarm => Ok(()),
        }
    }

    fn poll_ready<F>(
        &mut self,
        alarm: &mut Alarm<'_, F>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Ready, Ended>>
    where
        F: Future<Output = ()>,
    {
        // First, so that no command is begun behind it.
        if alarm.poll(context).is_ready() {
            return Poll::Ready(Ok(Ready::Alarm));
        }
        if let Some(until) = &mut self.login_until
            && until.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Ok(Ready::Unknown));
        }
        let (client, server) = (&self.client, &self.backend.link);
        let read_client = match self.inbound {
            Inbound::Open => server.is_clear() && !self.holding,
            Inbound::Closing | Inbound::Closed => false,
            Inbound::Refused { .. } => true,
        };
        if client.is_clear() {
            if let Poll::Ready(ready) = server.poll_readable(context) {
                return Poll::Ready(ready.map(|()| Ready::Server).map_err(Ended::Server));
            }
        } else if let Poll::Ready(ready) = client.poll_writable(context) {
            let ready = ready.map(|()| Ready::ClientRoom);
            return Poll::Ready(ready.map_err(|_| Ended::Client));
        } else if self.stall.poll(context).is_ready() {
            return Poll::Ready(Ok(Ready::Stalled));
        }
        if read_client && let Poll::Ready(ready) = client.poll_readable(context) {
            return Poll::Ready(ready.map(|()| Ready::Client).map_err(|_| Ended::Client));
        }
        if !server.is_clear()
            && let Poll::Ready(ready) = server.poll_writable(context)
        {
            return Poll::Ready(ready.map(|()| Ready::ServerRoom).map_err(Ended::Server));
        }
        Poll::Pending
    }

    /// What it does, for those who watch.
    pub(super) fn note_doing(&mut self) {
        let doing = self.machine.doing();
        if self.listed.doing() == Doing::LoggingIn && doing != Doing::LoggingIn {
            // Also where the login goes on unread.
            self.login_until = None;
            let (thread, account) = (self.machine.thread_id(), self.machine.account());
            self.listed.knows(thread, account);
        }
        self.listed.is(doing);
    }

    fn read_client(&mut self) -> Result<(), Ended> {
        SCRATCH.with_borrow_mut(|scratch| {
            let read = match self.client.read(scratch) {
                Ok(0) => {
                    self.inbound = match self.inbound {
                        Inbound::Open => Inbound::Closing,
                        _ => Inbound::Closed,
                    };
                    return Ok(());
                }
                Ok(_) if matches!(self.inbound, Inbound::Refused { .. }) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Ended::Client),
            };
            if !self.logs_in {
                self.listed.is(Doing::Busy);
            }
            self.backend.link.comes_from(&self.client);
            self.renew();
            self.note_came();
            let bytes = scratch.get(..read).unwrap_or_default();
            if !self.client_in.is_empty() {
                self.client_in.extend_from_slice(bytes);
                return Ok(());
            }
            // The common case: whole commands that go straight on, never copied.
            let none = self.knows_server();
            let catalogue = &self.shared.catalogue;
            let passed = self
                .machine
                .straight(bytes, &mut |text| catalogue.classify(text, none));
            let (pass, keep) = bytes.split_at(passed);
            self.sent |= passed > 0;
            self.note_opening();
            self.note_sent();
            self.client_in.extend_from_slice(keep);
            self.listed.to_server(pass.len());
            if let Err(error) = self.backend.link.send(pass) {
                self.refuse_inbound(&error);
            }
            Ok(())
        })
    }

    fn read_server(&mut self) -> Result<(), Ended> {
        if self.carry_row()? {
            return Ok(());
        }
        let room = self.long_rows.room().unwrap_or(SCRATCH_BYTES);
        SCRATCH.with_borrow_mut(|scratch| {
            let scratch = scratch.get_mut(..room).unwrap_or_default();
            let read = match self.backend.link.read(scratch) {
                Ok(0) => return Err(Ended::Server(self.end_of_server().into())),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Ended::Server(error)),
            };
            let bytes = scratch.get(..read).unwrap_or_default();
            if !self.backend.inbox.is_empty() {
                self.backend.inbox.extend_from_slice(bytes);
                return Ok(());
            }
            let passed = self.pass_server(bytes)?;
            self.backend
                .inbox
                .extend_from_slice(bytes.get(passed..).unwrap_or_default());
            Ok(())
        })
    }

    /// How the server has ended where nothing more is to be read: a reset is told once, and may have been told to who wrote.
    fn end_of_server(&self) -> io::ErrorKind {
        match self.inbound {
            Inbound::Refused { reset: true } => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::UnexpectedEof,
        }
    }

    /// Shows the machine what waits from the server, and passes it on.
    fn take_server_inbox(&mut self) -> Result<(), Ended> {
        if !self.backend.inbox.is_empty() {
            let inbox = std::mem::take(&mut self.backend.inbox);
            let passed = self.pass_server(&inbox)?;
            self.backend.inbox = inbox;
            self.backend.inbox.drain(..passed);
        }
        Ok(())
    }

    fn pass_server(&mut self, bytes: &[u8]) -> Result<usize, Ended> {
        let mut passed = 0;
        if self.logs_in {
            self.hear_of_login(bytes);
        }
        while let Some(rest) = bytes.get(passed..).filter(|rest| !rest.is_empty()) {
            self.count_as_directly(rest);
            let step = self.machine.server(rest);
            if self.logs_in && !self.admission.has_of_account() && self.machine.commands().is_some()
            {
                self.take_place_of_account(rest)?;
            }
            self.spread();
            self.note_ended();
            match step {
                ServerStep::Need => break,
                ServerStep::Pass(length) => {
                    self.tell_client(rest.get(..length.get()).unwrap_or_default())?;
                    passed += length.get();
                }
                ServerStep::Replace(length, own) => {
                    self.tell_client(&own)?;
                    passed += length.get();
                }
                ServerStep::Refuse(error) => {
                    self.tell_client(&error)?;
                    return Err(Ended::Refused);
                }
            }
            if let Some(frames) = self.machine.take_frames() {
                // A side speaks in frames from here on, also in what has come already.
                if let Some(algorithm) = frames.client {
                    let begun = std::mem::take(&mut self.client_in);
                    self.client.compress(algorithm, false, &begun);
                }
                if let Some(algorithm) = frames.server {
                    let begun = bytes.get(passed..).unwrap_or_default();
                    self.backend.link.compress(algorithm, true, begun);
                    return Ok(bytes.len());
                }
            }
        }
        Ok(passed)
    }

    /// A reply that begins has the numbers that it would have without Headwater, whose frames are not the client's.
    fn count_as_directly(&mut self, bytes: &[u8]) {
        let Some(commands) = self.machine.commands() else {
            return;
        };
        if let Some(seq) = commands.begins(bytes) {
            let direct = self.backend.link.answered(seq);
            if commands.count_from(seq, direct) {
                self.client.go_on_from(direct);
            }
        }
    }

    /// How many frames the waiting command has had before its last one, where the server would count them.
    pub(super) fn frames_before_last(&self) -> u8 {
        self.backend.link.frames_of(&self.client)
    }

    /// Has all sessions know what a reply tells of the procedures, before its client hears it.
    fn spread(&mut self) {
        let Some(commands) = self.machine.commands() else {
            return;
        };
        if let Some(lesson) = commands.take_lesson() {
            lesson.end(clock::now());
        }
        if commands.take_definition_touched() {
            self.shared.catalogue.expire();
        }
        if commands.take_definer_denied()
            && let Some(place) = &self.relayed
        {
            let catalogue = &self.shared.catalogue;
            let rights = catalogue.definer_rights(place.definition, &place.database);
            rights.run_was_denied(place.form);
        }
    }

    /// Its login has ended well, unless there are as many sessions of this account as there may be.
    fn take_place_of_account(&mut self, end: &[u8]) -> Result<(), Ended> {
        self.login_until = None;
        let most = self.shared.limits.sessions_per_account;
        let Some(account) = self.machine.account().filter(|_| most > 0) else {
            return Ok(());
        };
        let place = self.shared.accounts.take(account.into(), most);
        if place.is_some() {
            self.admission.take_of_account(place);
            return Ok(());
        }
        let name = String::from_utf8_lossy(account).into_owned();
        let error = ErrPacket {
            code: TOO_MANY_USER_CONNECTIONS,
            sqlstate: Some(*b"42000"),
            message: format!(
                "User {name} already has {most} sessions in Headwater (limits.sessions_per_account = {most})"
            )
            .into_bytes(),
        };
        let (mut payload, mut packet) = (Vec::new(), Vec::new());
        error.write(&mut payload);
        let seq = end.get(HEADER_BYTES - 1).copied().unwrap_or_default();
        frame::encode(seq, &payload, &mut packet);
        self.tell_client(&packet)?;
        // The server has let it in, and shall not take this for a connection that broke.
        let quit = frame::opening(&[Command::Quit.byte()]);
        let _ = self.backend.link.send(&quit);
        Err(Ended::Refused)
    }

    /// The client has had its time.
    fn login_took_too_long(&mut self) -> Result<(), Ended> {
        self.login_until = None;
        let limit_ms = self.shared.limits.login_ms;
        let ended = Ended::Unknown { limit_ms };
        log_in!(self.span(), INFO, "a session ended: {ended}");
        Err(ended)
    }

    /// Looks how a login has ended.
    fn hear_of_login(&mut self, bytes: &[u8]) {
        if self.machine.commands().is_some() {
            self.logs_in = false;
            self.shared.login_errors.passed();
        } else {
            self.shared.login_errors.hear(bytes, || self.span());
        }
    }

    /// Writes to the client, behind whatever waits for it already.
    pub(super) fn tell_client(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.listed.to_client(bytes.len());
        if self.ahead.is_empty() {
            return self.client.send(bytes).map_err(|_| Ended::Client);
        }
        let mut all = std::mem::take(&mut self.ahead);
        all.extend_from_slice(bytes);
        self.client.send(&all).map_err(|_| Ended::Client)
    }

    /// Writes what was to go together with something that does not come.
    fn tell_ahead(&mut self) -> Result<(), Ended> {
        match self.ahead.is_empty() {
            true => Ok(()),
            false => self.tell_client(&[]),
        }
    }

    /// Passes the first `length` waiting bytes of the client on.
    pub(super) fn pass_client(&mut self, length: usize) -> Result<(), Ended> {
        self.sent = true;
        self.note_opening();
        self.note_sent();
        let bytes = self.client_in.get(..length).unwrap_or_default();
        self.listed.to_server(bytes.len());
        if let Err(error) = self.backend.link.send(bytes) {
            self.refuse_inbound(&error);
        } else {
            self.client_in.drain(..length);
        }
        Ok(())
    }

    /// The server has closed, and may have said why: that is still to be read.
    fn refuse_inbound(&mut self, error: &io::Error) {
        let reset = error.kind() == io::ErrorKind::ConnectionReset;
        self.inbound = Inbound::Refused { reset };
        self.client_in = Vec::new();
        self.backend.link.forget();
    }
}
