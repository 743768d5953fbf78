//! Several statements in one command, of which one may be a feed's: the first is answered by itself, and the others come next, as a
//! command of their own whose reply continues this one.

use super::machine::Part;
use super::narrowing::{Narrowing, Why};
use super::slow::Own;
use super::state::{Ended, Session};
use crate::feed::template::Retired;
use crate::statement::First;
use crate::wire::command::query_payload;
use crate::wire::frame::{self, HEADER_BYTES};
use crate::wire::reply::Outcome;
use crate::wire::reply::layout::promise_more;

/// `ER_PARSE_ERROR`.
const PARSE_ERROR: u16 = 1064;

impl Session {
    /// Answers the first statement of the packet that waits, or has all of them go on as they are.
    pub(super) async fn batch(&mut self, part: Part) -> Result<(), Ended> {
        let packet = self.client_in.get(HEADER_BYTES..HEADER_BYTES + part.end);
        let first = packet.unwrap_or_default().to_vec();
        match part.first {
            First::Feed => {
                let decision = Narrowing::new(first, self.narrowing_policy());
                self.narrow(part.into(), decision).await
            }
            First::Reads => self.read_first(part, &first).await,
            First::Acts => self.relay_feed(part.into(), Some(Why::Several), None),
        }
    }

    /// Runs the first statement, which only reads.
    async fn read_first(&mut self, part: Part, first: &[u8]) -> Result<(), Ended> {
        if let Some(commands) = self.machine.commands() {
            commands.begins_batch();
        }
        self.note_opening();
        let reply = self.run_in_place(first).await?;
        // What the server cannot read it tells with all that stands behind it: whoever wrote several statements is told of those too.
        let is_unread = |outcome: &Outcome| outcome.error_code() == Some(PARSE_ERROR);
        if let (Some(mut bytes), Some(outcome)) = (reply.bytes, reply.outcome)
            && !is_unread(&outcome)
            && let Some(packets) = self.promise(&mut bytes, &outcome)
        {
            if let Some(took) = self.took_long() {
                let own = Own {
                    bytes: Some(bytes.len()),
                    rows: Some(reply.rows),
                    error: outcome.error_code(),
                    ..Own::new("other", "server")
                };
                self.tell_slow(&took, &own);
            }
            return self.tell_first(part, &mut bytes, &outcome, packets);
        }
        self.relay_feed(part.into(), Some(Why::Retired(Retired::Long)), None)
    }

    /// Has the reply to a first statement say that there is more, and says how many packets it has. An error ends the command.
    pub(super) fn promise(&mut self, bytes: &mut [u8], outcome: &Outcome) -> Option<usize> {
        let capabilities = self.machine.commands()?.capabilities;
        match outcome {
            Outcome::Ok(_) => promise_more(bytes, capabilities),
            _ => Some(0),
        }
    }

    /// Tells the reply to the first statement, as [`Self::promise`] has made it, and puts the others in its place.
    pub(super) fn tell_first(
        &mut self,
        part: Part,
        bytes: &mut [u8],
        outcome: &Outcome,
        packets: usize,
    ) -> Result<(), Ended> {
        let mut before = 0;
        let mut rest = None;
        if let Some(commands) = self.machine.commands() {
            before = commands.told_before();
            let payload = self.client_in.get(HEADER_BYTES..part.length);
            rest = payload
                .and_then(|payload| payload.get(part.rest..))
                .filter(|_| packets > 0)
                .map(|text| frame::opening(&query_payload(text, commands.capabilities)));
        }
        let goes_on = rest.is_some();
        self.client_in
            .splice(..part.length, rest.unwrap_or_default());
        self.tell_in_place(bytes, Some(outcome))?;
        if goes_on && let Some(commands) = self.machine.commands() {
            commands.goes_on(before, packets);
        }
        Ok(())
    }
}
