//! Sequence numbers that are made here: where the client was told a part of the reply already, and where one leg has compressed
//! frames alone (see `session::compression_frames`).

use super::super::compression_frames;
use super::*;
use headwater_wire::packet::PacketSplitter;

/// What the client says within a reply: a local file, or its part of the dialogue behind COM_CHANGE_USER.
#[derive(Debug)]
pub(super) struct ClientAnswers {
    to_server: SequenceRewriter,
    splitter: PacketSplitter,
}

impl ClientAnswers {
    /// Before the client's turn; `None` where its numbers can stay.
    pub(super) fn new(renumbered: RenumberedSide) -> Option<ClientAnswers> {
        ClientAnswers::after_packet(0, renumbered)
    }

    /// Behind a packet of the server with this number.
    fn after_packet(seq: u8, renumbered: RenumberedSide) -> Option<ClientAnswers> {
        let first = match renumbered {
            RenumberedSide::Neither => return None,
            // The server reads none. The first must not be 0, which has frames begin a command.
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
    /// The client has said so many of these bytes as a part of the dialogue.
    pub(super) fn pass_dialogue(&mut self, input: &[u8], length: usize) -> ClientStep {
        // The server's turn comes next.
        self.shift_known &= length == 0;
        let Some(answers) = self.client_answers.as_mut().filter(|_| length > 0) else {
            return ClientStep::pass(length);
        };
        let said = input.get(..length).unwrap_or_default();
        let own = answers.to_server.rewritten(said);
        if let Some(renumber) = &mut self.renumber {
            // The server goes on from these.
            let _ = renumber.rewritten(said);
        }
        ClientStep::replace(length, own)
    }

    /// The client answers a plugin.
    pub(super) fn pass_auth_answer(&mut self, input: &[u8]) -> ClientStep {
        let Some(answers) = &mut self.client_answers else {
            self.shift_known &= input.is_empty();
            return ClientStep::pass(input.len());
        };
        if answers.splitter.at_boundary() {
            match PacketHeader::parse(input) {
                None => return ClientStep::Need,
                // A command sent ahead, which is numbered by itself.
                Some(header) if header.seq == 0 => return ClientStep::Hold,
                Some(_) => {}
            }
        }
        let length = answers.splitter.next(input).consumed;
        self.pass_dialogue(input, length)
    }

    /// From here on the server's numbers are shifted by so much.
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

    /// The server has spoken: what the client says next goes on from there.
    pub(super) fn server_spoke(&mut self, renumbered: RenumberedSide, event: Option<&ReplyEvent>) {
        let file = matches!(event, Some(ReplyEvent::ClientData));
        let asked = file || self.client_answers.is_some() && event == Some(&ReplyEvent::ClientAuth);
        if asked && renumbered != RenumberedSide::Neither {
            self.client_answers = ClientAnswers::after_packet(self.reply.seq(), renumbered);
        }
    }

    /// The number that the client expects for what the server numbered so.
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

    /// A binary log needs no more than to be counted. Of anything else nobody knows who counts what.
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
    /// A command whose number is not the first, 0: a server that reads numbers says that it is out of order and ends the session,
    /// whatever the command is. `None`: it is in order.
    pub(super) fn out_of_order(
        &mut self,
        header: PacketHeader,
        input: &[u8],
    ) -> Option<ClientStep> {
        if header.seq == 0 {
            return None;
        }
        if self.compression_frames.server.is_none() {
            // Not as a statement, even if the server should go on.
            return Some(self.relay_other(Command::Other(0), header, input));
        }
        // The server is in frames, where it would not notice.
        Some(match self.is_idle() {
            true => ClientStep::Refuse(compression_frames::out_of_order()),
            false => ClientStep::Hold,
        })
    }

    /// Where both legs are in frames, and it is the server's turn to speak: the number that it begins with. Nothing of it is taken
    /// before [`Self::renumber_reply_from`] has told the number that it would have begun with, had the client's frames come to it.
    #[must_use]
    pub fn first_reply_sequence(&mut self, input: &[u8]) -> Option<u8> {
        let alone = self.in_flight.len() == 1;
        let front = self
            .in_flight
            .front_mut()
            .filter(|_| self.compression_frames.both_compressed())?;
        let header = PacketHeader::parse(input).filter(|_| !front.shift_known)?;
        if !alone {
            // The frames that are known may be those of a command behind it.
            front.shift_sequence(front.sequence_shift);
            return None;
        }
        Some(header.seq)
    }

    /// The server begins with the one number, and is to begin with the other. True when the frame in which it does so has that
    /// number as well, since the client was told nothing before.
    pub fn renumber_reply_from(&mut self, own: u8, direct: u8) -> bool {
        let Some(front) = self.in_flight.front_mut() else {
            return false;
        };
        front.shift_sequence(direct.wrapping_sub(own));
        !front.continues
    }

    /// The numbers that the reply to the next command gets; `None`: its own.
    pub(super) fn reply_renumber(&mut self) -> Option<SequenceRewriter> {
        let told = self.packets_sent.take();
        match self.renumbered_side {
            RenumberedSide::Server => Some(SequenceRewriter::counting_from(
                told.unwrap_or(0).wrapping_add(1),
            )),
            _ => told.map(SequenceRewriter::with_offset),
        }
    }

    /// The reply to a command that is told to the client here, with the numbers that it has to have: behind so many frames of the
    /// command, where servers count those.
    pub fn numbered(&mut self, reply: &mut [u8], frames: u8) {
        let renumber = self.reply_renumber();
        if renumber.is_some() || frames > 0 {
            let mut renumber = renumber.unwrap_or(SequenceRewriter::with_offset(0));
            renumber.add_offset(frames);
            renumber.rewrite(reply);
        }
    }

    /// Passes on what waits of a command.
    pub(super) fn pass_waiting(&mut self, input: &[u8]) -> ClientStep {
        let renumber = self
            .partial_packet
            .as_mut()
            .and_then(|it| it.renumber.take());
        let length = self.pass_remainder(input);
        let Some(mut renumber) = renumber else {
            return ClientStep::pass(length);
        };
        let own = renumber.rewritten(input.get(..length).unwrap_or_default());
        if let Some(passing) = &mut self.partial_packet {
            passing.renumber = Some(renumber);
        }
        ClientStep::replace(length, own)
    }
}
