//! The last state of a login: the dialogue of the authentication plugins, up to the server's OK.

use super::packet::{
    answer_sequence, is_command, may_be_login_packet, renumbered_packet, unreadable_login,
};
use super::{LoginTransition, SessionPolicy};
use crate::commands::CommandPhase;
use crate::compression_frames::CompressionFrames;
use crate::machine_step::{ClientStep, ServerFlavor, ServerStep, SessionLimits};
use crate::process_user::ProcessUser;
use crate::session_state::SessionState;
use crate::tls_policy::{NegotiatedTls, refusal};
use headwater_wire::capability::Capabilities;
use headwater_wire::packet::{self, HEADER_BYTES, PacketHeader, PacketSplitter};
use headwater_wire::reply::{AuthEvent, AuthFollower, ReplyOutcome};
use headwater_wire::response::{OkPacket, without_redirect};

/// The server has the client's login.
#[derive(Debug)]
pub(crate) struct AuthenticationState {
    limits: SessionLimits,
    /// A `redirect_url` goes on to the client.
    redirects: bool,
    process_user: Option<ProcessUser>,
    account: LoginAccount,
    agreed: NegotiatedTls,
    auth: AuthFollower,
    answers: AuthenticationAnswers,
}

/// What a client has logged in to, and how.
#[derive(Debug)]
pub(super) struct LoginAccount {
    pub(super) server: ServerFlavor,
    pub(super) capabilities: Capabilities,
    pub(super) user: Vec<u8>,
    pub(super) database: Option<Vec<u8>>,
    pub(super) compression_frames: CompressionFrames,
}

/// The client's side of the dialogue behind its login.
#[derive(Debug, Default)]
struct AuthenticationAnswers {
    splitter: PacketSplitter,
    /// One of the packets was no answer: only commands have sequence number 0 there.
    contain_a_command: bool,
}

impl AuthenticationAnswers {
    fn observe(&mut self, input: &[u8]) {
        let mut seen = 0;
        while let Some(rest) = input.get(seen..).filter(|rest| !rest.is_empty()) {
            let part = self.splitter.next(rest);
            seen += part.consumed;
            self.contain_a_command |= part.start.is_some_and(|header| header.seq == 0);
        }
    }
}

impl AuthenticationState {
    pub(super) fn new(
        ways: SessionPolicy,
        limits: SessionLimits,
        account: LoginAccount,
        agreed: NegotiatedTls,
    ) -> AuthenticationState {
        AuthenticationState {
            limits,
            redirects: ways.redirects,
            process_user: ways.process_user,
            auth: AuthFollower::new(account.capabilities),
            account,
            agreed,
            answers: AuthenticationAnswers::default(),
        }
    }

    /// The client answers a plugin, or says more before it is asked.
    pub(super) fn client(mut self: Box<Self>, input: &[u8]) -> (ClientStep, LoginTransition) {
        // Each packet has to be read: it must not make the client the own user, and the other leg may speak otherwise.
        let strict = self.process_user.is_some() || self.account.compression_frames.differ();
        // Commands sent ahead wait until both sides speak as they will.
        if strict && is_command(input) {
            return (ClientStep::Hold, self.into());
        }
        if !strict && !self.agreed.renumbers() {
            self.answers.observe(input);
            return (ClientStep::pass(input.len()), self.into());
        }
        let agreed = self.agreed;
        let seq = |header: PacketHeader| agreed.to_server(header.seq);
        match packet::complete_payload(input) {
            Some(packet) => {
                let length = HEADER_BYTES + packet.len();
                let step = ClientStep::replace(length, renumbered_packet(input, packet, seq));
                self.answers
                    .observe(input.get(..length).unwrap_or_default());
                (step, self.into())
            }
            None if may_be_login_packet(input) => (ClientStep::Need, self.into()),
            None if strict => {
                let error = unreadable_login(answer_sequence(input));
                (ClientStep::Refuse(error), self.into())
            }
            None => (ClientStep::pass(input.len()), LoginTransition::Pump),
        }
    }

    /// The server asks, lets the client in, or does not.
    pub(super) fn server(mut self: Box<Self>, input: &[u8]) -> (ServerStep, LoginTransition) {
        let Some(packet) = packet::complete_payload(input) else {
            return match may_be_login_packet(input) {
                true => (ServerStep::Need, self.into()),
                false if self.account.compression_frames.differ() => (
                    ServerStep::Refuse(unreadable_login(self.client_sequence(input))),
                    LoginTransition::Pump,
                ),
                false => (ServerStep::pass(input.len()), LoginTransition::Pump),
            };
        };
        if let Some(why) = self.agreed.obstacle(packet) {
            let error = refusal(self.client_sequence(input), why);
            return (ServerStep::Refuse(error), self.into());
        }
        let length = HEADER_BYTES + packet.len();
        match self
            .auth
            .feed(input.get(..length).unwrap_or_default())
            .event
        {
            Some(AuthEvent::Done(ReplyOutcome::Ok(ok))) => {
                let own = match self.redirects {
                    true => None,
                    false => without_redirect(packet, self.account.capabilities),
                };
                let step = self.packet_for_client(input, packet, own.as_deref());
                (step, self.logged_in(&ok))
            }
            Some(AuthEvent::Unfollowable) if self.account.compression_frames.differ() => {
                let error = unreadable_login(self.client_sequence(input));
                (ServerStep::Refuse(error), self.into())
            }
            Some(AuthEvent::Done(_) | AuthEvent::Unfollowable) => (
                self.packet_for_client(input, packet, None),
                LoginTransition::Pump,
            ),
            Some(AuthEvent::AwaitClient | AuthEvent::AwaitServer) | None => {
                (self.packet_for_client(input, packet, None), self.into())
            }
        }
    }

    /// The number that the client expects on the packet that `input` starts with.
    fn client_sequence(&self, input: &[u8]) -> u8 {
        PacketHeader::parse(input).map_or(2, |header| self.agreed.to_client(header.seq))
    }

    /// The packet that `input` starts with goes on: as it is, or with its own number, or with `own` in its place.
    fn packet_for_client(&self, input: &[u8], packet: &[u8], own: Option<&[u8]>) -> ServerStep {
        let length = HEADER_BYTES + packet.len();
        if own.is_none() && !self.agreed.renumbers() {
            return ServerStep::pass(length);
        }
        let seq = |header: PacketHeader| self.agreed.to_client(header.seq);
        ServerStep::replace(length, renumbered_packet(input, own.unwrap_or(packet), seq))
    }

    fn logged_in(self: Box<Self>, ok: &OkPacket) -> LoginTransition {
        // The replies to commands sent ahead could not be told apart from those to later ones.
        if self.answers.contain_a_command {
            return LoginTransition::Pump;
        }
        let LoginAccount {
            server,
            capabilities,
            user,
            database,
            compression_frames: frames,
        } = self.account;
        let mut standing = SessionState::new(database);
        standing.observe(ok);
        let ways = (self.agreed, frames);
        let mut commands = CommandPhase::new(server, capabilities, ways, standing, self.limits);
        commands.account = user;
        commands.process_user = self.process_user;
        LoginTransition::LoggedIn(Box::new(commands), frames)
    }
}

#[cfg(test)]
mod tests;
