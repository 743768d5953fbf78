//! Rewrites sequence numbers: where the client has already received part of a reply, and where only one leg uses compressed frames (see
//! `session::compression_frames`).

use super::super::compression_frames;
use super::*;
use headwater_wire::packet::PacketSplitter;

/// What the client sends within a reply: a local file, or its part of the dialogue after COM_CHANGE_USER.
#[derive(Debug)]
pub(super) struct ClientAnswers {
    to_server: SequenceRewriter,
    splitter: PacketSplitter,
}

impl ClientAnswers {
    /// Begins before the client's turn; `None` where its numbers need no change.
    pub(super) fn new(renumbered: RenumberedSide) -> Option<ClientAnswers> {
        ClientAnswers::after_packet(0, renumbered)
    }

    /// Begins after a server packet with this number.
    fn after_packet(seq: u8, renumbered: RenumberedSide) -> Option<ClientAnswers> {
        let first = match renumbered {
            RenumberedSide::Neither => return None,
            // The server checks none. The first must not be 0, which begins a command in frames.
            RenumberedSide::Server => 1,
            RenumberedSide::Client => seq.wrapping_add(1),
        };
        Some(ClientAnswers {
            to_server: SequenceRewriter::counting_from(first),
            splitter: PacketSplitter::new(),
        })
    }
}

impl InFlightCommand {
    /// The client has sent these bytes as part of the dialogue.
    pub(super) fn pass_dialogue(&mut self, input: &[u8], length: usize) -> ClientStep {
        // The server's turn is next.
        self.shift_known &= length == 0;
        let Some(answers) = self.client_answers.as_mut().filter(|_| length > 0) else {
            return ClientStep::pass(length);
        };
        let dialogue_bytes = input.get(..length).unwrap_or_default();
        let renumbered = answers.to_server.rewritten(dialogue_bytes);
        if let Some(renumber) = &mut self.renumber {
            // The server continues from these numbers.
            let _ = renumber.rewritten(dialogue_bytes);
        }
        ClientStep::replace(length, renumbered)
    }

    pub(super) fn pass_auth_answer(&mut self, input: &[u8]) -> ClientStep {
        let Some(answers) = &mut self.client_answers else {
            self.shift_known &= input.is_empty();
            return ClientStep::pass(input.len());
        };
        if answers.splitter.at_boundary() {
            match PacketHeader::parse(input) {
                None => return ClientStep::Need,
                // A command sent ahead, with its own numbers.
                Some(header) if header.seq == 0 => return ClientStep::Hold,
                Some(_) => {}
            }
        }
        let length = answers.splitter.next(input).consumed;
        self.pass_dialogue(input, length)
    }

    /// Shifts the server's numbers by this much from here on.
    fn shift_sequence(&mut self, by: u8) {
        let more = by.wrapping_sub(self.sequence_shift);
        (self.shift_known, self.sequence_shift) = (true, by);
        if more != 0 {
            let renumber = self
                .renumber
                .get_or_insert(SequenceRewriter::with_offset(0));
            renumber.add_offset(more);
        }
    }

    /// The server has replied: the client's next packet continues from its number.
    pub(super) fn server_spoke(&mut self, renumbered: RenumberedSide, event: Option<&ReplyEvent>) {
        let file = matches!(event, Some(ReplyEvent::ClientData));
        let awaits_client =
            file || self.client_answers.is_some() && event == Some(&ReplyEvent::ClientAuth);
        if awaits_client && renumbered != RenumberedSide::Neither {
            self.client_answers = ClientAnswers::after_packet(self.reply.seq(), renumbered);
        }
    }

    /// The number that the client expects for the server's number.
    pub(super) fn client_sequence(&mut self, seq: u8) -> u8 {
        match &mut self.renumber {
            Some(renumber) => renumber.next_number(seq),
            None => seq,
        }
    }

    /// The client's command has another part.
    pub(super) fn skip_sequence(&mut self) {
        if let Some(renumber) = &mut self.renumber {
            renumber.skip_number();
        }
    }

    /// A binary log only needs its packets counted. For any other reply it is unknown how each side counts.
    pub(super) fn unfollowable_reply(&mut self, renumbered: RenumberedSide) -> ReplyStep {
        let dump = matches!(self.command, Command::BinlogDump | Command::BinlogDumpGtid);
        match (renumbered, self.renumber.take()) {
            (RenumberedSide::Server, Some(renumber)) if dump => {
                ReplyStep::Dump(Box::new(BinlogDump::new(renumber)))
            }
            (_, _) if dump => ReplyStep::Unfollowable,
            (_, renumber) => {
                let seq = renumber.map_or(1, |mut renumber| renumber.next_number(1));
                ReplyStep::Refuse(compression_frames::refusal(
                    seq,
                    "A reply that cannot be followed",
                ))
            }
        }
    }
}

impl CommandPhase {
    /// Handles a command whose number is not 0: a server that checks numbers reports it as out of order and ends the session, whatever the
    /// command is. `None`: it is in order.
    pub(super) fn out_of_order(
        &mut self,
        header: PacketHeader,
        input: &[u8],
    ) -> Option<ClientStep> {
        if header.seq == 0 {
            return None;
        }
        if self.compression_frames.server.is_none() {
            // Not as a statement, even if the server should continue.
            return Some(self.relay_other(Command::Other(0), header, input));
        }
        // The server uses compressed frames, and would not notice.
        Some(match self.is_idle() {
            true => ClientStep::Refuse(compression_frames::out_of_order()),
            false => ClientStep::Hold,
        })
    }

    /// Where both legs use frames and the server's reply is next: the number that it begins with. No byte of it is taken before
    /// [`Self::renumber_reply_from`] gets the number that the reply would have had without Headwater.
    #[must_use]
    pub fn first_reply_sequence(&mut self, input: &[u8]) -> Option<u8> {
        let alone = self.in_flight.len() == 1;
        let front = self
            .in_flight
            .front_mut()
            .filter(|_| self.compression_frames.both_compressed())?;
        let header = PacketHeader::parse(input).filter(|_| !front.shift_known)?;
        if !alone {
            // The known frames may be those of a later command.
            front.shift_sequence(front.sequence_shift);
            return None;
        }
        Some(header.seq)
    }

    /// The server begins with the first number, and the client expects the second. True when the compressed frame gets that number too,
    /// since the client has received nothing yet.
    pub fn renumber_reply_from(&mut self, server_sequence: u8, direct: u8) -> bool {
        let Some(front) = self.in_flight.front_mut() else {
            return false;
        };
        front.shift_sequence(direct.wrapping_sub(server_sequence));
        !front.continues
    }

    /// The rewriter for the reply to the next command; `None`: its numbers stay.
    pub(super) fn reply_renumber(&mut self) -> Option<SequenceRewriter> {
        let packets_sent = self.packets_sent.take();
        match self.renumbered_side {
            RenumberedSide::Server => Some(SequenceRewriter::counting_from(
                packets_sent.unwrap_or(0).wrapping_add(1),
            )),
            _ => packets_sent.map(SequenceRewriter::with_offset),
        }
    }

    /// Numbers a reply that Headwater sends: after the command's frames, where servers count those.
    pub fn numbered(&mut self, reply: &mut [u8], frames: u8) {
        let renumber = self.reply_renumber();
        if renumber.is_some() || frames > 0 {
            let mut renumber = renumber.unwrap_or(SequenceRewriter::with_offset(0));
            renumber.add_offset(frames);
            renumber.rewrite(reply);
        }
    }

    pub(super) fn pass_waiting(&mut self, input: &[u8]) -> ClientStep {
        let renumber = self
            .partial_packet
            .as_mut()
            .and_then(|it| it.renumber.take());
        let length = self.pass_remainder(input);
        let Some(mut renumber) = renumber else {
            return ClientStep::pass(length);
        };
        let renumbered = renumber.rewritten(input.get(..length).unwrap_or_default());
        if let Some(passing) = &mut self.partial_packet {
            passing.renumber = Some(renumber);
        }
        ClientStep::replace(length, renumbered)
    }
}
