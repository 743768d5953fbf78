//! A tail whose result table is pending: answered with the ids in the statement itself.

use super::counts::Event;
use super::driver::{Ended, Session};
use super::owned::INTERRUPTED;
use super::probe;
use crate::statement::{Tail, TailForm};
use crate::timeline::check::{Facts, Product, Verdict};
use crate::wire::command;
use crate::wire::frame::HEADER_BYTES;
use crate::wire::reply::Outcome;

impl Session {
    /// Answers the tail whose packet waits; where the reply could differ from the real join's, the
    /// table is written and the packet goes on as it is.
    pub(super) async fn tail(&mut self, length: usize, tail: &Tail) -> Result<(), Ended> {
        if let Some((own, whole)) = self.virtual_tail(length, tail) {
            let limit = self.shared.limits.tail_bytes;
            let Some(commands) = self.machine.commands() else {
                return self.pass_client(length);
            };
            let capabilities = commands.capabilities;
            let mut read = self.backend.run(&own, capabilities, limit).await?;
            // A page shorter than its limit may lack an id that the rest of the result set has.
            let full = whole || read.rows == tail.limit;
            // A warning is our form's own, or the server's and to be given with its place.
            let silent = matches!(&read.outcome, Some(Outcome::Ok(ok)) if ok.warnings == 0);
            let exact = full && silent;
            if let (Some(Outcome::Ok(ok)), Some(bytes), true) =
                (&read.outcome, &mut read.bytes, exact)
            {
                let text = self.client_in.drain(..length).skip(HEADER_BYTES).collect();
                if let Some(commands) = self.machine.commands() {
                    commands.standing.observe(ok);
                    commands.numbered(bytes);
                    if let Some(pending) = &mut commands.tables.pending {
                        pending.tail = Some(text);
                        pending.spared = Vec::new();
                        pending.aside = None;
                    }
                }
                self.shared.counts.add(Event::TailVirtual);
                return self.tell_client(bytes);
            }
            if let (Some(Outcome::Err(error)), Some(bytes)) = (&read.outcome, &mut read.bytes)
                && error.code == INTERRUPTED
            {
                if let Some(commands) = self.machine.commands() {
                    commands.standing.observe_error();
                    commands.numbered(bytes);
                }
                self.client_in.drain(..length);
                return self.tell_client(bytes);
            }
            self.shared.counts.add(Event::TailRetried);
        }
        self.settle_and_pass(length).await
    }

    /// The tail's payload with the ids in it, and whether those are the whole result set.
    fn virtual_tail(&mut self, length: usize, tail: &Tail) -> Option<(Vec<u8>, bool)> {
        let commands = self.machine.commands()?;
        let pending = commands.tables.pending.as_deref()?;
        let definition = self.shared.catalogue.definitions().get(pending.definition);
        if !definition.is_some_and(|definition| tail.fits(definition))
            || !commands.standing.settings_proven
        {
            return None;
        }
        let database = commands.standing.database.as_deref()?;
        let all = pending.ids.as_deref()?;
        // Two ids at least, even for `LIMIT 1`: with a single one the server plans otherwise.
        let ids = newest_ids(all, tail.limit.max(2))?;
        let verdict = self
            .shared
            .catalogue
            .verdict(pending.definition, database)?;
        let Verdict::Accelerate(facts) = &*verdict else {
            return None;
        };
        let form = form(facts, all.len() as u64)?;
        if ids.len() >= usize::from(probe::LONG_LIST) {
            return None;
        }
        let payload = self.client_in.get(HEADER_BYTES..length)?;
        let text = command::query_text(payload, commands.capabilities)?;
        let mut own = payload.get(..text.start)?.to_vec();
        own.extend_from_slice(tail.rewrite(form, ids)?.as_bytes());
        Some((own, ids.len() == all.len()))
    }
}

/// Messages, as the optimizer estimates them, from which on MySQL is known to read the result table first.
const MANY_MESSAGES: u64 = 4_000;
/// So many messages must there be for each row of the result table, for the same reason.
const MESSAGES_PER_ROW: u64 = 10;

/// The form whose reply has the real join's column definitions; `None` where that is not certain.
///
/// They depend on the join's plan. MariaDB reports the same columns under every plan as long as both
/// tables' ids are of one type (which the check demands). MySQL reports columns without their key
/// flags where it reads the result table first and sorts through a temporary table: as soon as there
/// are two rows in it, and many more messages. Measured over sizes of both tables: docs/tail.md.
fn form(facts: &Facts, rows: u64) -> Option<TailForm> {
    match facts.product {
        Product::Mariadb => Some(TailForm::List),
        Product::Mysql if rows <= 1 => Some(TailForm::List),
        Product::Mysql => {
            let needed = MANY_MESSAGES.max(rows.saturating_mul(MESSAGES_PER_ROW));
            facts
                .message_rows
                .is_some_and(|messages| messages >= needed)
                .then_some(TailForm::BufferedList)
        }
    }
}

/// The newest ids of the result set, as many as the tail can show; `None` when there are none.
fn newest_ids(all: &[u64], limit: u64) -> Option<&[u64]> {
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let ids = all.get(..wanted.min(all.len()))?;
    (!ids.is_empty()).then_some(ids)
}
