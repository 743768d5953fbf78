//! Sequence numbers that are made here: where the client was told a part of the reply already, and where one leg has compressed
//! frames alone (see `session::frames`).

use super::super::frames;
use super::*;
use headwater_wire::frame::Splitter;

/// What the client says within a reply: a local file, or its part of the dialogue behind COM_CHANGE_USER.
#[derive(Debug)]
pub(super) struct Answers {
    to_server: Renumber,
    splitter: Splitter,
}

impl Answers {
    /// Before the client's turn; `None` where its numbers can stay.
    pub(super) fn new(renumbered: Renumbered) -> Option<Answers> {
        Answers::behind(0, renumbered)
    }

    /// Behind a packet of the server with this number.
    fn behind(seq: u8, renumbered: Renumbered) -> Option<Answers> {
        let first = match renumbered {
            Renumbered::Nobodys => return None,
            // The server reads none. The first must not be 0, which has frames begin a command.
            Renumbered::Servers => 1,
            Renumbered::Clients => seq.wrapping_add(1),
        };
        Some(Answers {
            to_server: Renumber::from(first),
            splitter: Splitter::new(),
        })
    }
}

impl InFlight {
    /// The client has said so many of these bytes as a part of the dialogue.
    pub(super) fn say(&mut self, input: &[u8], length: usize) -> ClientStep {
        // The server's turn comes next.
        self.begun &= length == 0;
        let Some(answers) = self.answers.as_mut().filter(|_| length > 0) else {
            return ClientStep::pass(length);
        };
        let said = input.get(..length).unwrap_or_default();
        let own = answers.to_server.renumbered(said);
        if let Some(renumber) = &mut self.renumber {
            // The server goes on from these.
            let _ = renumber.renumbered(said);
        }
        ClientStep::replace(length, own)
    }

    /// The client answers a plugin.
    pub(super) fn answer(&mut self, input: &[u8]) -> ClientStep {
        let Some(answers) = &mut self.answers else {
            self.begun &= input.is_empty();
            return ClientStep::pass(input.len());
        };
        if answers.splitter.at_boundary() {
            match Header::parse(input) {
                None => return ClientStep::Need,
                // A command sent ahead, which is numbered by itself.
                Some(header) if header.seq == 0 => return ClientStep::Hold,
                Some(_) => {}
            }
        }
        let length = answers.splitter.next(input).consumed;
        self.say(input, length)
    }

    /// From here on the server's numbers are shifted by so much.
    fn shift(&mut self, by: u8) {
        let more = by.wrapping_sub(self.shifted);
        (self.begun, self.shifted) = (true, by);
        if more != 0 {
            let renumber = self.renumber.get_or_insert(Renumber::plus(0));
            renumber.shift(more);
        }
    }

    /// The server has spoken: what the client says next goes on from there.
    pub(super) fn heard(&mut self, renumbered: Renumbered, event: Option<&Event>) {
        let file = matches!(event, Some(Event::ClientData));
        let asked = file || self.answers.is_some() && event == Some(&Event::ClientAuth);
        if asked && renumbered != Renumbered::Nobodys {
            self.answers = Answers::behind(self.reply.seq(), renumbered);
        }
    }

    /// The number that the client expects for what the server numbered so.
    pub(super) fn told_number(&mut self, seq: u8) -> u8 {
        match &mut self.renumber {
            Some(renumber) => renumber.next(seq),
            None => seq,
        }
    }

    /// The client's command has another part.
    pub(super) fn skip_number(&mut self) {
        if let Some(renumber) = &mut self.renumber {
            renumber.skip();
        }
    }

    /// A binary log needs no more than to be counted. Of anything else nobody knows who counts what.
    pub(super) fn unfollowable(&mut self, renumbered: Renumbered) -> Served {
        let dump = matches!(self.command, Command::BinlogDump | Command::BinlogDumpGtid);
        match (renumbered, self.renumber.take()) {
            (Renumbered::Servers, Some(renumber)) if dump => {
                Served::Dump(Box::new(Dump::new(renumber)))
            }
            (_, _) if dump => Served::Unfollowable,
            (_, renumber) => {
                let seq = renumber.map_or(1, |mut renumber| renumber.next(1));
                Served::Refuse(frames::refusal(seq, "A reply that cannot be followed"))
            }
        }
    }
}

impl Commands {
    /// A command whose number is not the first, 0: a server that reads numbers says that it is out of order and ends the session,
    /// whatever the command is. `None`: it is in order.
    pub(super) fn out_of_order(&mut self, header: Header, input: &[u8]) -> Option<ClientStep> {
        if header.seq == 0 {
            return None;
        }
        if self.frames.server.is_none() {
            // Not as a statement, even if the server should go on.
            return Some(self.other(Command::Other(0), header, input));
        }
        // The server is in frames, where it would not notice.
        Some(match self.is_idle() {
            true => ClientStep::Refuse(frames::out_of_order()),
            false => ClientStep::Hold,
        })
    }

    /// Where both legs are in frames, and it is the server's turn to speak: the number that it begins with. Nothing of it is taken
    /// before [`Self::count_from`] has told the number that it would have begun with, had the client's frames come to it.
    #[must_use]
    pub fn begins(&mut self, input: &[u8]) -> Option<u8> {
        let alone = self.in_flight.len() == 1;
        let front = self.in_flight.front_mut().filter(|_| self.frames.meet())?;
        let header = Header::parse(input).filter(|_| !front.begun)?;
        if !alone {
            // The frames that are known may be those of a command behind it.
            front.shift(front.shifted);
            return None;
        }
        Some(header.seq)
    }

    /// The server begins with the one number, and is to begin with the other. True when the frame in which it does so has that
    /// number as well, since the client was told nothing before.
    pub fn count_from(&mut self, own: u8, direct: u8) -> bool {
        let Some(front) = self.in_flight.front_mut() else {
            return false;
        };
        front.shift(direct.wrapping_sub(own));
        !front.continues
    }

    /// The numbers that the reply to the next command gets; `None`: its own.
    pub(super) fn reply_numbers(&mut self) -> Option<Renumber> {
        let told = self.told.take();
        match self.renumbered {
            Renumbered::Servers => Some(Renumber::from(told.unwrap_or(0).wrapping_add(1))),
            _ => told.map(Renumber::plus),
        }
    }

    /// The reply to a command that is told to the client here, with the numbers that it has to have: behind so many frames of the
    /// command, where servers count those.
    pub fn numbered(&mut self, reply: &mut [u8], frames: u8) {
        let renumber = self.reply_numbers();
        if renumber.is_some() || frames > 0 {
            let mut renumber = renumber.unwrap_or(Renumber::plus(0));
            renumber.shift(frames);
            renumber.apply(reply);
        }
    }

    /// Passes on what waits of a command.
    pub(super) fn go_on(&mut self, input: &[u8]) -> ClientStep {
        let renumber = self.passing.as_mut().and_then(|it| it.renumber.take());
        let length = self.pass_rest(input);
        let Some(mut renumber) = renumber else {
            return ClientStep::pass(length);
        };
        let own = renumber.renumbered(input.get(..length).unwrap_or_default());
        if let Some(passing) = &mut self.passing {
            passing.renumber = Some(renumber);
        }
        ClientStep::replace(length, own)
    }
}
