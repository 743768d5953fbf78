//! Moves the bytes of one session between its two sockets, and carries out the machine's steps.
//!
//! Buffers: reads go into a scratch buffer of the thread and are written on from there. A session keeps only what could not be written at
//! once (then that side is not read any more, so a slow client slows the server, and vice versa) and the start of an unfinished packet.
//! Long rows are not read where nothing is between the sockets (`long_row_mode`).

use futures_util::future::BoxFuture;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::log_span::log_in;
use super::state::{InboundState, Session, SessionEnd};
use crate::clock;
use crate::drain::DrainSignal;
use crate::link::release_if_empty;
use headwater_session::machine::{ClientStep, ServerStep, SessionActivity};
use headwater_wire::command::Command;
use headwater_wire::packet::{self, HEADER_BYTES};
use headwater_wire::response::ErrPacket;

/// ER_TOO_MANY_USER_CONNECTIONS.
const TOO_MANY_USER_CONNECTIONS: u16 = 1203;
/// Bytes read at a time; one buffer for each thread, shared by its sessions.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// What a session can do next.
enum ReadyEvent {
    ServerReadable,
    ClientReadable,
    ClientWritable,
    ServerWritable,
    Stalled,
    LoginTimeout,
    DrainSignalled,
}

/// Fires once when the process drains.
struct DrainAlarm<'f, F> {
    drain: DrainSignal,
    given: Pin<&'f mut F>,
    state: AlarmState,
}

enum AlarmState {
    /// Not polled yet.
    Unpolled,
    /// It will wake the session.
    Armed,
    Fired,
}

impl<F: Future<Output = ()>> DrainAlarm<'_, F> {
    fn is_given(&self) -> bool {
        self.drain.is_given()
    }

    /// Polls the signal once, to be woken; then only reads its flag.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let ready = match self.state {
            AlarmState::Fired => false,
            AlarmState::Armed => self.is_given(),
            AlarmState::Unpolled => {
                self.state = AlarmState::Armed;
                self.given.as_mut().poll(context).is_ready()
            }
        };
        if !ready {
            return Poll::Pending;
        }
        self.state = AlarmState::Fired;
        Poll::Ready(())
    }
}

impl Session {
    /// Runs until either side ends, until the session is idle after the signal to `drain`, or until its server is not followed any more.
    ///
    /// Boxed, so that no other package compiles it again.
    pub fn run(self, drain: DrainSignal) -> BoxFuture<'static, SessionEnd> {
        Box::pin(self.run_and_close(drain))
    }

    async fn run_and_close(mut self, drain: DrainSignal) -> SessionEnd {
        let moved = self.aim.server_change.clone();
        let ended = moved
            .run_unless_changed(pin!(self.run_until_end(drain)))
            .await;
        let ended = ended.unwrap_or(SessionEnd::ServerMoved);
        // The client was due to get it in any case.
        let _ = self.send_deferred();
        let span = tracing::enabled!(tracing::Level::DEBUG).then(|| self.span());
        self.close_connections(&ended).await;
        if let Some(span) = span {
            log_in!(span, DEBUG, "a session ended: {ended}");
        }
        ended
    }

    async fn run_until_end(&mut self, drain: DrainSignal) -> SessionEnd {
        let signal = drain.clone();
        let mut alarm = DrainAlarm {
            given: pin!(async move { signal.wait().await }),
            drain,
            state: AlarmState::Unpolled,
        };
        loop {
            if let Err(ended) = self.advance().await {
                return ended;
            }
            let waited = match alarm.is_given().then(|| self.drain_delay()).flatten() {
                Some(Duration::ZERO) => return SessionEnd::Drained,
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

    /// Takes every step that is possible with the bytes at hand.
    async fn advance(&mut self) -> Result<(), SessionEnd> {
        self.relay_server_inbox()?;
        loop {
            self.holding = false;
            if !self.backend.link.is_flushed() || self.client_in.is_empty() {
                break;
            }
            // A client that does not read replies gets no further ones.
            if !self.client.is_flushed() && self.machine.commands().is_some() {
                self.holding = true;
                break;
            }
            self.take_generation();
            match self.next_step() {
                ClientStep::Need => break,
                ClientStep::Hold => {
                    self.holding = true;
                    break;
                }
                ClientStep::Pass(length) => self.relay_from_client(length.get())?,
                ClientStep::Replace(length, replacement) => {
                    self.client_in
                        .splice(..length.get(), replacement.iter().copied());
                    self.relay_from_client(replacement.len())?;
                }
                ClientStep::Renumber => {
                    if let Some(seq) = self.client_in.get_mut(HEADER_BYTES - 1) {
                        *seq = 0;
                    }
                }
                ClientStep::BeginTls {
                    length,
                    client,
                    server,
                } => self.upgrade_tls(length, client, server.as_deref()).await?,
                ClientStep::Refuse(error) => {
                    self.send_to_client(&error)?;
                    return Err(SessionEnd::Refused);
                }
                ClientStep::Call(request) => self.serve_call(*request).await?,
                ClientStep::FollowUp(length, follow_up) => {
                    self.serve_follow_up(length, &follow_up).await?
                }
                ClientStep::Batch(part) => self.serve_batch(*part).await?,
                ClientStep::Feed(length, effects) => self.serve_feed(length, effects).await?,
                ClientStep::Execution(length, effects, executed) => {
                    self.serve_execution(length, effects, executed).await?;
                }
                ClientStep::Named(length, effects, executed) => {
                    self.serve_named_execution(length, effects, executed)
                        .await?;
                }
                ClientStep::HeadwaterStatement(length, statement) => {
                    self.serve_show(length, statement).await?
                }
                ClientStep::ReplaceStatementId(id) => self.set_statement_id(id),
                ClientStep::Flush { diagnostics } => self.flush_pending(diagnostics).await?,
            }
            self.relay_server_inbox()?;
        }
        // No further step is possible with these bytes.
        self.send_deferred()?;
        if self.inbound == InboundState::Closing && self.backend.link.is_flushed() && !self.holding
        {
            if self.has_left() || self.machine.login_progress().is_some() {
                return Err(SessionEnd::ClientLeft);
            }
            self.close_inbound().await;
        }
        release_if_empty(&mut self.client_in);
        release_if_empty(&mut self.backend.inbox);
        Ok(())
    }

    /// Takes reloaded settings, between two commands.
    fn take_generation(&mut self) {
        if self.current.generation() == self.generation {
            return;
        }
        // A login continues with the settings of its greeting.
        if self.machine.commands().is_some() && self.machine.is_at_rest() {
            (self.shared, self.generation) = self.current.with_generation();
            self.update_slow_timer();
        }
    }

    fn next_step(&mut self) -> ClientStep {
        let none = self.update_function_knowledge();
        let catalogue = &self.shared.catalogue;
        let classify = &mut |text: &[u8]| catalogue.classify(text, none);
        self.machine.client(&self.client_in, classify)
    }

    /// True if the client sent COM_QUIT, has closed its side, and nothing is due to it.
    fn has_left(&mut self) -> bool {
        let quit = self.machine.commands().is_some_and(|it| it.has_quit());
        quit && self.client_in.is_empty() && self.client.is_flushed()
    }

    /// Waits until one of the sockets can be read or written, and does so once.
    async fn wait<F>(&mut self, alarm: &mut DrainAlarm<'_, F>) -> Result<(), SessionEnd>
    where
        F: Future<Output = ()>,
    {
        if self.client.is_flushed() {
            self.stall.mark_taken();
        }
        self.record_activity();
        // Polled by hand, since most statements need only this: a `select!` of futures costs as much as the work it leads to.
        match poll_fn(|context| self.poll_ready(alarm, context)).await? {
            ReadyEvent::ServerReadable => self.read_server(),
            ReadyEvent::ClientReadable => self.read_client(),
            ReadyEvent::ClientWritable => self.client.flush().map_err(|_| SessionEnd::ClientLeft),
            ReadyEvent::ServerWritable => {
                if let Err(error) = self.backend.link.flush() {
                    self.refuse_inbound(&error);
                }
                Ok(())
            }
            ReadyEvent::Stalled => self.check_stall(),
            ReadyEvent::LoginTimeout => self.login_timed_out(),
            ReadyEvent::DrainSignalled => Ok(()),
        }
    }

    fn poll_ready<F>(
        &mut self,
        alarm: &mut DrainAlarm<'_, F>,
        context: &mut Context<'_>,
    ) -> Poll<Result<ReadyEvent, SessionEnd>>
    where
        F: Future<Output = ()>,
    {
        // First, so that no command begins after the signal.
        if alarm.poll(context).is_ready() {
            return Poll::Ready(Ok(ReadyEvent::DrainSignalled));
        }
        if let Some(until) = &mut self.login_deadline
            && until.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Ok(ReadyEvent::LoginTimeout));
        }
        let (client, server) = (&self.client, &self.backend.link);
        let read_client = match self.inbound {
            InboundState::Open => server.is_flushed() && !self.holding,
            InboundState::Closing | InboundState::Closed => false,
            InboundState::Refused { .. } => true,
        };
        if client.is_flushed() {
            if let Poll::Ready(ready) = server.poll_readable(context) {
                return Poll::Ready(
                    ready
                        .map(|()| ReadyEvent::ServerReadable)
                        .map_err(SessionEnd::ServerClosed),
                );
            }
        } else if let Poll::Ready(ready) = client.poll_writable(context) {
            let ready = ready.map(|()| ReadyEvent::ClientWritable);
            return Poll::Ready(ready.map_err(|_| SessionEnd::ClientLeft));
        } else if self.stall.poll(context).is_ready() {
            return Poll::Ready(Ok(ReadyEvent::Stalled));
        }
        if read_client && let Poll::Ready(ready) = client.poll_readable(context) {
            return Poll::Ready(
                ready
                    .map(|()| ReadyEvent::ClientReadable)
                    .map_err(|_| SessionEnd::ClientLeft),
            );
        }
        if !server.is_flushed()
            && let Poll::Ready(ready) = server.poll_writable(context)
        {
            return Poll::Ready(
                ready
                    .map(|()| ReadyEvent::ServerWritable)
                    .map_err(SessionEnd::ServerClosed),
            );
        }
        Poll::Pending
    }

    /// Publishes what the session does, for the overview.
    pub(super) fn record_activity(&mut self) {
        let doing = self.machine.activity();
        if self.record.activity() == SessionActivity::LoggingIn
            && doing != SessionActivity::LoggingIn
        {
            // Also for a login that is relayed unread.
            self.login_deadline = None;
            let (thread, account) = (self.machine.thread_id(), self.machine.account());
            self.record.set_login(thread, account);
        }
        self.record.set_activity(doing);
    }

    fn read_client(&mut self) -> Result<(), SessionEnd> {
        SCRATCH.with_borrow_mut(|scratch| {
            let read = match self.client.read(scratch) {
                Ok(0) => {
                    self.inbound = match self.inbound {
                        InboundState::Open => InboundState::Closing,
                        _ => InboundState::Closed,
                    };
                    return Ok(());
                }
                Ok(_) if matches!(self.inbound, InboundState::Refused { .. }) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(SessionEnd::ClientLeft),
            };
            if !self.is_logging_in {
                self.record.set_activity(SessionActivity::Busy);
            }
            self.backend.link.follow_client_sequence(&self.client);
            self.take_generation();
            self.note_received();
            let bytes = scratch.get(..read).unwrap_or_default();
            if !self.client_in.is_empty() {
                self.client_in.extend_from_slice(bytes);
                return Ok(());
            }
            // The common case: whole commands that are relayed at once, never copied.
            let none = self.update_function_knowledge();
            let catalogue = &self.shared.catalogue;
            let passed = self
                .machine
                .pass_through(bytes, &mut |text| catalogue.classify(text, none));
            let (pass, keep) = bytes.split_at(passed);
            self.server_was_queried |= passed > 0;
            self.note_transaction_start();
            self.note_sent();
            self.client_in.extend_from_slice(keep);
            self.record.add_to_server(pass.len());
            if let Err(error) = self.backend.link.send(pass) {
                self.refuse_inbound(&error);
            }
            Ok(())
        })
    }

    fn read_server(&mut self) -> Result<(), SessionEnd> {
        if self.splice_row()? {
            return Ok(());
        }
        let room = self.long_row_mode.read_limit().unwrap_or(SCRATCH_BYTES);
        SCRATCH.with_borrow_mut(|scratch| {
            let scratch = scratch.get_mut(..room).unwrap_or_default();
            let read = match self.backend.link.read(scratch) {
                Ok(0) => return Err(SessionEnd::ServerClosed(self.server_end_kind().into())),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(SessionEnd::ServerClosed(error)),
            };
            let bytes = scratch.get(..read).unwrap_or_default();
            if !self.backend.inbox.is_empty() {
                self.backend.inbox.extend_from_slice(bytes);
                return Ok(());
            }
            let passed = self.relay_from_server(bytes)?;
            self.backend
                .inbox
                .extend_from_slice(bytes.get(passed..).unwrap_or_default());
            Ok(())
        })
    }

    /// The kind of the server's end if nothing more is to be read: a reset is reported once, possibly to a write.
    fn server_end_kind(&self) -> io::ErrorKind {
        match self.inbound {
            InboundState::Refused { reset: true } => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::UnexpectedEof,
        }
    }

    /// Gives the machine the server's bytes, and passes them on.
    fn relay_server_inbox(&mut self) -> Result<(), SessionEnd> {
        if !self.backend.inbox.is_empty() {
            let inbox = std::mem::take(&mut self.backend.inbox);
            let passed = self.relay_from_server(&inbox)?;
            self.backend.inbox = inbox;
            self.backend.inbox.drain(..passed);
        }
        Ok(())
    }

    fn relay_from_server(&mut self, bytes: &[u8]) -> Result<usize, SessionEnd> {
        let mut passed = 0;
        if self.is_logging_in {
            self.observe_login(bytes);
        }
        while let Some(rest) = bytes.get(passed..).filter(|rest| !rest.is_empty()) {
            self.number_as_direct(rest);
            let step = self.machine.server(rest);
            if self.is_logging_in
                && !self.admission.has_account_permit()
                && self.machine.commands().is_some()
            {
                self.take_account_permit(rest)?;
            }
            self.publish_reply_effects();
            self.note_ended();
            match step {
                ServerStep::Need => break,
                ServerStep::Pass(length) => {
                    self.send_to_client(rest.get(..length.get()).unwrap_or_default())?;
                    passed += length.get();
                }
                ServerStep::Replace(length, replacement) => {
                    self.send_to_client(&replacement)?;
                    passed += length.get();
                }
                ServerStep::Refuse(error) => {
                    self.send_to_client(&error)?;
                    return Err(SessionEnd::Refused);
                }
            }
            if let Some(frames) = self.machine.take_compression_frames() {
                // A side uses compressed frames from here on, also for bytes that have arrived already.
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

    /// Gives a reply's frames the numbers that it would have without Headwater.
    fn number_as_direct(&mut self, bytes: &[u8]) {
        let Some(commands) = self.machine.commands() else {
            return;
        };
        if let Some(seq) = commands.first_reply_sequence(bytes) {
            let direct = self.backend.link.direct_sequence(seq);
            if commands.renumber_reply_from(seq, direct) {
                self.client.set_next_sequence(direct);
            }
        }
    }

    /// How many frames the waiting command had before its last one, if the server counts them.
    pub(super) fn frames_before_last(&self) -> u8 {
        self.backend.link.client_frame_sequence(&self.client)
    }

    /// Publishes a reply's effects on the procedures to all sessions, before its client receives it.
    fn publish_reply_effects(&mut self) {
        let Some(commands) = self.machine.commands() else {
            return;
        };
        if let Some(sample) = commands.take_metadata_sample() {
            sample.record(clock::now());
        }
        if commands.take_definition_touched() {
            self.shared.catalogue.expire();
        }
        if commands.take_definer_denied()
            && let Some(location) = &self.relayed_procedure
        {
            let catalogue = &self.shared.catalogue;
            let rights = catalogue.definer_rights(location.definition, &location.database);
            rights.run_was_denied(location.form);
        }
    }

    /// The login has succeeded; takes the account's permit, or refuses the client.
    fn take_account_permit(&mut self, end: &[u8]) -> Result<(), SessionEnd> {
        self.login_deadline = None;
        let most = self.shared.limits.sessions_per_account;
        let Some(account) = self.machine.account().filter(|_| most > 0) else {
            return Ok(());
        };
        let permit = self.shared.accounts.acquire(account.into(), most);
        if permit.is_some() {
            self.admission.set_account_permit(permit);
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
        packet::encode(seq, &payload, &mut packet);
        self.send_to_client(&packet)?;
        // The server has admitted it, and must not count it as a broken connection.
        let quit = packet::encode_first(&[Command::Quit.byte()]);
        let _ = self.backend.link.send(&quit);
        Err(SessionEnd::Refused)
    }

    /// The client's time to log in has passed.
    fn login_timed_out(&mut self) -> Result<(), SessionEnd> {
        self.login_deadline = None;
        let limit_ms = self.shared.limits.login_ms;
        let ended = SessionEnd::LoginTimeout { limit_ms };
        log_in!(self.span(), INFO, "a session ended: {ended}");
        Err(ended)
    }

    /// Observes how a login has ended.
    fn observe_login(&mut self, bytes: &[u8]) {
        if self.machine.commands().is_some() {
            self.is_logging_in = false;
            self.shared.login_errors.reset();
        } else {
            self.shared.login_errors.observe(bytes, || self.span());
        }
    }

    /// Writes to the client, after the bytes that wait already.
    pub(super) fn send_to_client(&mut self, bytes: &[u8]) -> Result<(), SessionEnd> {
        self.record.add_to_client(bytes.len());
        if self.deferred_reply.is_empty() {
            return self.client.send(bytes).map_err(|_| SessionEnd::ClientLeft);
        }
        let mut all = std::mem::take(&mut self.deferred_reply);
        all.extend_from_slice(bytes);
        self.client.send(&all).map_err(|_| SessionEnd::ClientLeft)
    }

    /// Writes what was deferred for a reply that does not follow.
    fn send_deferred(&mut self) -> Result<(), SessionEnd> {
        match self.deferred_reply.is_empty() {
            true => Ok(()),
            false => self.send_to_client(&[]),
        }
    }

    /// Passes on the first `length` buffered bytes of the client.
    pub(super) fn relay_from_client(&mut self, length: usize) -> Result<(), SessionEnd> {
        self.server_was_queried = true;
        self.note_transaction_start();
        self.note_sent();
        let bytes = self.client_in.get(..length).unwrap_or_default();
        self.record.add_to_server(bytes.len());
        if let Err(error) = self.backend.link.send(bytes) {
            self.refuse_inbound(&error);
        } else {
            self.client_in.drain(..length);
        }
        Ok(())
    }

    /// The server has closed, and may have sent the reason, which is still to be read.
    fn refuse_inbound(&mut self, error: &io::Error) {
        let reset = error.kind() == io::ErrorKind::ConnectionReset;
        self.inbound = InboundState::Refused { reset };
        self.client_in = Vec::new();
        self.backend.link.discard_backlog();
    }
}
