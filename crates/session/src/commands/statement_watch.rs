//! Watches SELECTs: their texts, times and row counts, only where a consumer wants them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use headwater_feed::feed_proposal::resembles;
use headwater_statement::StatementClass;
use headwater_wire::command::{self, Command, LAST_PREPARED};
use headwater_wire::packet::{HEADER_BYTES, PacketHeader};
use headwater_wire::reply::ReplyOutcome;

use super::{CommandPhase, command_of};
use crate::machine_step::{ClientStep, SessionLimits};

/// Longer texts are not watched, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct StatementWatch {
    prepared: BTreeMap<u32, Arc<[u8]>>,
    last_prepared: Option<Arc<[u8]>>,
    finished: Vec<WatchedSelect>,
}

#[derive(Debug)]
pub(super) struct WatchedCommand {
    text: Arc<[u8]>,
    database: Option<Vec<u8>>,
    command: Command,
    sent: Option<Instant>,
}

/// A SELECT that was answered.
#[derive(Debug)]
pub struct WatchedSelect {
    /// Its text, or the one that was prepared.
    pub text: Arc<[u8]>,
    /// The current database, if known.
    pub database: Option<Vec<u8>>,
    /// When it went to the server.
    pub sent: Instant,
    /// How many rows came back.
    pub rows: u64,
    /// It was prepared by the protocol, and executed.
    pub prepared: bool,
}

impl CommandPhase {
    /// Watches SELECTs that resemble a feed's, from here on.
    pub(crate) fn watch(&mut self) {
        self.watch = Some(Box::default());
    }

    /// Marks the relayed commands as sent now.
    pub fn sent(&mut self, now: Instant) {
        for command in &mut self.in_flight {
            command.mark_sent(now);
            if let Some(watched) = &mut command.watched {
                watched.sent.get_or_insert(now);
            }
        }
    }

    /// The SELECTs that ended since the last call.
    pub fn take_watched_selects(&mut self) -> Vec<WatchedSelect> {
        let watch = self.watch.as_mut();
        watch
            .map(|watch| std::mem::take(&mut watch.finished))
            .unwrap_or_default()
    }

    /// As [`CommandPhase::client`], where commands are watched.
    pub(crate) fn watched_client(
        &mut self,
        input: &[u8],
        limits: SessionLimits,
        classify: &mut dyn FnMut(&[u8]) -> StatementClass,
    ) -> ClientStep {
        let before = self.in_flight.len();
        let step = self.client(input, limits, classify);
        if self.in_flight.len() > before {
            self.note_begun(input);
        }
        step
    }

    /// Records the command that these bytes begin.
    fn note_begun(&mut self, input: &[u8]) {
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        let length = PacketHeader::parse(input).map_or(0, |header| header.len);
        let payload = body.get(..length).unwrap_or(body);
        let of_text = |range: Option<Range<usize>>| -> Option<Arc<[u8]>> {
            // A packet that is relayed in pieces is long.
            let text = payload.get(range?).filter(|_| payload.len() == length)?;
            (text.len() <= MAX_TEXT_BYTES && resembles(text)).then(|| text.into())
        };
        let command = command_of(body);
        let Some(watch) = &mut self.watch else {
            return;
        };
        let text = match command {
            Command::Query => of_text(command::query_text_range(payload, self.capabilities)),
            Command::StmtPrepare => {
                watch.last_prepared = of_text(Some(1..payload.len()));
                watch.last_prepared.clone()
            }
            Command::StmtExecute => match command::statement_id(payload) {
                Some(LAST_PREPARED) if self.server.mariadb => watch.last_prepared.clone(),
                Some(id) => watch.prepared.get(&id).cloned(),
                None => None,
            },
            _ => None,
        };
        if let (Some(text), Some(latest)) = (text, self.in_flight.back_mut()) {
            latest.watched = Some(Box::new(WatchedCommand {
                text,
                database: self.state.database().map(<[u8]>::to_vec),
                command,
                sent: None,
            }));
        }
    }

    /// Records the end of a watched command.
    pub(super) fn note_ended(
        &mut self,
        watched: WatchedCommand,
        outcome: &ReplyOutcome,
        rows: u64,
    ) {
        let most = self.prepared.max_statements();
        let Some(watch) = &mut self.watch else {
            return;
        };
        match (outcome, watched.sent) {
            (ReplyOutcome::Prepared(prepared), _) => {
                if watch.prepared.len() >= most {
                    // The oldest: it may be closed.
                    watch.prepared.pop_first();
                }
                watch.prepared.insert(prepared.statement_id, watched.text);
            }
            (ReplyOutcome::Ok(_), Some(sent)) => watch.finished.push(WatchedSelect {
                text: watched.text,
                database: watched.database,
                sent,
                rows,
                prepared: watched.command == Command::StmtExecute,
            }),
            _ => {}
        }
    }
}
