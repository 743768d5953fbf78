//! The last state of a login: the dialogue of the authentication plugins, up to the server's OK.

use super::packet::{answer_to, is_command, may_be_login_packet, numbered, unreadable};
use super::{Next, Ways};
use crate::commands::Commands;
use crate::frames::Frames;
use crate::legs::{Agreed, refusal};
use crate::peer::OwnUser;
use crate::standing::Standing;
use crate::step::{ClientStep, Limits, Server, ServerStep};
use headwater_wire::capability::Capabilities;
use headwater_wire::frame::{self, HEADER_BYTES, Header, Splitter};
use headwater_wire::reply::{AuthEvent, AuthLoop, Outcome};
use headwater_wire::response::{OkPacket, without_redirect};

/// The server has the client's login.
#[derive(Debug)]
pub(crate) struct Authenticating {
    limits: Limits,
    /// A `redirect_url` goes on to the client.
    redirects: bool,
    own_user: Option<OwnUser>,
    account: Account,
    agreed: Agreed,
    auth: AuthLoop,
    answers: Answers,
}

/// What a client has logged in to, and how.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) server: Server,
    pub(super) capabilities: Capabilities,
    pub(super) user: Vec<u8>,
    pub(super) database: Option<Vec<u8>>,
    pub(super) frames: Frames,
}

/// The client's side of the dialogue behind its login.
#[derive(Debug, Default)]
struct Answers {
    splitter: Splitter,
    /// One of the packets was no answer: only commands have sequence number 0 there.
    hold_a_command: bool,
}

impl Answers {
    fn see(&mut self, input: &[u8]) {
        let mut seen = 0;
        while let Some(rest) = input.get(seen..).filter(|rest| !rest.is_empty()) {
            let part = self.splitter.next(rest);
            seen += part.consumed;
            self.hold_a_command |= part.start.is_some_and(|header| header.seq == 0);
        }
    }
}

impl Authenticating {
    pub(super) fn new(
        ways: Ways,
        limits: Limits,
        account: Account,
        agreed: Agreed,
    ) -> Authenticating {
        Authenticating {
            limits,
            redirects: ways.redirects,
            own_user: ways.own_user,
            auth: AuthLoop::new(account.capabilities),
            account,
            agreed,
            answers: Answers::default(),
        }
    }

    /// The client answers a plugin, or says more before it is asked.
    pub(super) fn client(mut self: Box<Self>, input: &[u8]) -> (ClientStep, Next) {
        // Each packet has to be read: it must not make the client the own user, and the other leg may speak otherwise.
        let strict = self.own_user.is_some() || self.account.frames.differ();
        // Commands sent ahead wait until both sides speak as they will.
        if strict && is_command(input) {
            return (ClientStep::Hold, self.into());
        }
        if !strict && !self.agreed.renumbers() {
            self.answers.see(input);
            return (ClientStep::pass(input.len()), self.into());
        }
        let agreed = self.agreed;
        let seq = |header: Header| agreed.to_server(header.seq);
        match frame::whole(input) {
            Some(packet) => {
                let length = HEADER_BYTES + packet.len();
                let step = ClientStep::replace(length, numbered(input, packet, seq));
                self.answers.see(input.get(..length).unwrap_or_default());
                (step, self.into())
            }
            None if may_be_login_packet(input) => (ClientStep::Need, self.into()),
            None if strict => {
                let error = unreadable(answer_to(input));
                (ClientStep::Refuse(error), self.into())
            }
            None => (ClientStep::pass(input.len()), Next::Pump),
        }
    }

    /// The server asks, lets the client in, or does not.
    pub(super) fn server(mut self: Box<Self>, input: &[u8]) -> (ServerStep, Next) {
        let Some(packet) = frame::whole(input) else {
            return match may_be_login_packet(input) {
                true => (ServerStep::Need, self.into()),
                false if self.account.frames.differ() => (
                    ServerStep::Refuse(unreadable(self.told_number(input))),
                    Next::Pump,
                ),
                false => (ServerStep::pass(input.len()), Next::Pump),
            };
        };
        if let Some(why) = self.agreed.obstacle(packet) {
            let error = refusal(self.told_number(input), why);
            return (ServerStep::Refuse(error), self.into());
        }
        let length = HEADER_BYTES + packet.len();
        match self
            .auth
            .feed(input.get(..length).unwrap_or_default())
            .event
        {
            Some(AuthEvent::Done(Outcome::Ok(ok))) => {
                let own = match self.redirects {
                    true => None,
                    false => without_redirect(packet, self.account.capabilities),
                };
                let step = self.said_to_client(input, packet, own.as_deref());
                (step, self.let_in(&ok))
            }
            Some(AuthEvent::Unfollowable) if self.account.frames.differ() => {
                let error = unreadable(self.told_number(input));
                (ServerStep::Refuse(error), self.into())
            }
            Some(AuthEvent::Done(_) | AuthEvent::Unfollowable) => {
                (self.said_to_client(input, packet, None), Next::Pump)
            }
            Some(AuthEvent::ClientTurn | AuthEvent::ServerAgain) | None => {
                (self.said_to_client(input, packet, None), self.into())
            }
        }
    }

    /// The number that the client expects on the packet that `input` starts with.
    fn told_number(&self, input: &[u8]) -> u8 {
        Header::parse(input).map_or(2, |header| self.agreed.to_client(header.seq))
    }

    /// The packet that `input` starts with goes on: as it is, or with its own number, or with `own` in its place.
    fn said_to_client(&self, input: &[u8], packet: &[u8], own: Option<&[u8]>) -> ServerStep {
        let length = HEADER_BYTES + packet.len();
        if own.is_none() && !self.agreed.renumbers() {
            return ServerStep::pass(length);
        }
        let seq = |header: Header| self.agreed.to_client(header.seq);
        ServerStep::replace(length, numbered(input, own.unwrap_or(packet), seq))
    }

    fn let_in(self: Box<Self>, ok: &OkPacket) -> Next {
        // The replies to commands sent ahead could not be told apart from those to later ones.
        if self.answers.hold_a_command {
            return Next::Pump;
        }
        let Account {
            server,
            capabilities,
            user,
            database,
            frames,
        } = self.account;
        let mut standing = Standing::new(database);
        standing.observe(ok);
        let ways = (self.agreed, frames);
        let mut commands = Commands::new(server, capabilities, ways, standing, self.limits);
        commands.account = user;
        commands.own_user = self.own_user;
        Next::In(Box::new(commands), frames)
    }
}

#[cfg(test)]
mod tests;
