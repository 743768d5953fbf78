//! Several statements in one command, of which the first may be a feed's: it is answered alone; the others follow as their own command,
//! whose reply continues the first.

use super::slow_statements::AnsweredStatement;
use super::state::{Session, SessionEnd};
use headwater_feed::template::RetirementReason;
use headwater_session::feed_decision::{FeedDecision, FeedRelayReason};
use headwater_session::machine::BatchPart;
use headwater_statement::FirstStatement;
use headwater_wire::command::query_payload;
use headwater_wire::packet::{self, HEADER_BYTES};
use headwater_wire::reply::ReplyOutcome;
use headwater_wire::reply::layout::set_more_results;

/// `ER_PARSE_ERROR`.
const PARSE_ERROR: u16 = 1064;

impl Session {
    /// Serves the first statement of the waiting packet, or relays all of them.
    pub(super) async fn serve_batch(&mut self, part: BatchPart) -> Result<(), SessionEnd> {
        let packet = self.client_in.get(HEADER_BYTES..HEADER_BYTES + part.end);
        let first = packet.unwrap_or_default().to_vec();
        match part.first {
            FirstStatement::Feed => {
                let decision = FeedDecision::new(first, self.feed_policy());
                self.narrow(part.into(), decision).await
            }
            FirstStatement::ReadOnly => self.run_first(part, &first).await,
            FirstStatement::Other => {
                self.relay_feed(part.into(), Some(FeedRelayReason::Several), None)
            }
        }
    }

    /// Runs the first statement, which only reads.
    async fn run_first(&mut self, part: BatchPart, first: &[u8]) -> Result<(), SessionEnd> {
        if let Some(commands) = self.machine.commands() {
            commands.begins_batch();
        }
        self.note_transaction_start();
        let reply = self.run_in_place(first).await?;
        // The server's syntax error quotes all the text that follows, so a batch with such an error is relayed whole.
        let is_unread = |outcome: &ReplyOutcome| outcome.error_code() == Some(PARSE_ERROR);
        if let (Some(mut bytes), Some(outcome)) = (reply.bytes, reply.outcome)
            && !is_unread(&outcome)
            && let Some(packets) = self.mark_more_results(&mut bytes, &outcome)
        {
            if let Some(took) = self.take_slow_duration() {
                let answered = AnsweredStatement {
                    bytes: Some(bytes.len()),
                    rows: Some(reply.rows),
                    error: outcome.error_code(),
                    ..AnsweredStatement::new("other", "server")
                };
                self.log_slow(&took, &answered);
            }
            return self.send_first_reply(part, &mut bytes, &outcome, packets);
        }
        self.relay_feed(
            part.into(),
            Some(FeedRelayReason::Retired(RetirementReason::TooLong)),
            None,
        )
    }

    /// Marks the reply to a first statement as having more results, and numbers its packets. An error ends the command.
    pub(super) fn mark_more_results(
        &mut self,
        bytes: &mut [u8],
        outcome: &ReplyOutcome,
    ) -> Option<usize> {
        let capabilities = self.machine.commands()?.capabilities;
        match outcome {
            ReplyOutcome::Ok(_) => set_more_results(bytes, capabilities),
            _ => Some(0),
        }
    }

    /// Sends the reply to the first statement, as [`Self::mark_more_results`] has made it, and replaces the packet by the others.
    pub(super) fn send_first_reply(
        &mut self,
        part: BatchPart,
        bytes: &mut [u8],
        outcome: &ReplyOutcome,
        packets: usize,
    ) -> Result<(), SessionEnd> {
        let mut before = 0;
        let mut rest = None;
        if let Some(commands) = self.machine.commands() {
            before = commands.packets_sent();
            let payload = self.client_in.get(HEADER_BYTES..part.length);
            rest = payload
                .and_then(|payload| payload.get(part.remainder..))
                .filter(|_| packets > 0)
                .map(|text| packet::encode_first(&query_payload(text, commands.capabilities)));
        }
        let goes_on = rest.is_some();
        self.client_in
            .splice(..part.length, rest.unwrap_or_default());
        self.reply_in_place(bytes, Some(outcome))?;
        if goes_on && let Some(commands) = self.machine.commands() {
            commands.continue_reply(before, packets);
        }
        Ok(())
    }
}
