//! The last state of a login: the authentication plugins' dialogue, up to the server's OK.

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

/// The server has received the client's login.
#[derive(Debug)]
pub(crate) struct AuthenticationState {
    limits: SessionLimits,
    /// A `redirect_url` is relayed to the client.
    redirects: bool,
    process_user: Option<ProcessUser>,
    account: LoginAccount,
    agreed: NegotiatedTls,
    auth: AuthFollower,
    answers: AuthenticationAnswers,
}

#[derive(Debug)]
pub(super) struct LoginAccount {
    pub(super) server: ServerFlavor,
    pub(super) capabilities: Capabilities,
    pub(super) user: Vec<u8>,
    pub(super) database: Option<Vec<u8>>,
    pub(super) compression_frames: CompressionFrames,
}

#[derive(Debug, Default)]
struct AuthenticationAnswers {
    splitter: PacketSplitter,
    /// One of the packets was a command: only commands have sequence number 0 there.
    contain_a_command: bool,
}

impl AuthenticationAnswers {
    fn observe(&mut self, input: &[u8]) {
        let mut position = 0;
        while let Some(rest) = input.get(position..).filter(|rest| !rest.is_empty()) {
            let part = self.splitter.next(rest);
            position += part.consumed;
            self.contain_a_command |= part.start.is_some_and(|header| header.seq == 0);
        }
    }
}

impl AuthenticationState {
    pub(super) fn new(
        policy: SessionPolicy,
        limits: SessionLimits,
        account: LoginAccount,
        agreed: NegotiatedTls,
    ) -> AuthenticationState {
        AuthenticationState {
            limits,
            redirects: policy.redirects,
            process_user: policy.process_user,
            auth: AuthFollower::new(account.capabilities),
            account,
            agreed,
            answers: AuthenticationAnswers::default(),
        }
    }

    /// The client answers a plugin, or sends commands ahead.
    pub(super) fn client(mut self: Box<Self>, input: &[u8]) -> (ClientStep, LoginTransition) {
        // Each packet must be read: it must not log the client in as the process user, and the other leg may use other frames or numbers.
        let strict = self.process_user.is_some() || self.account.compression_frames.differ();
        // Commands sent ahead wait until both legs use their final format.
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

    /// The server's plugin sends data, or the server accepts or refuses the login.
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
        if let Some(reason) = self.agreed.obstacle(packet) {
            let error = refusal(self.client_sequence(input), reason);
            return (ServerStep::Refuse(error), self.into());
        }
        let length = HEADER_BYTES + packet.len();
        match self
            .auth
            .feed(input.get(..length).unwrap_or_default())
            .event
        {
            Some(AuthEvent::Done(ReplyOutcome::Ok(ok))) => {
                let masked = match self.redirects {
                    true => None,
                    false => without_redirect(packet, self.account.capabilities),
                };
                let step = self.packet_for_client(input, packet, masked.as_deref());
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

    /// The number that the client expects on the packet at the start of `input`.
    fn client_sequence(&self, input: &[u8]) -> u8 {
        PacketHeader::parse(input).map_or(2, |header| self.agreed.to_client(header.seq))
    }

    /// Relays the packet at the start of `input`: unchanged, renumbered, or replaced.
    fn packet_for_client(
        &self,
        input: &[u8],
        packet: &[u8],
        replacement: Option<&[u8]>,
    ) -> ServerStep {
        let length = HEADER_BYTES + packet.len();
        if replacement.is_none() && !self.agreed.renumbers() {
            return ServerStep::pass(length);
        }
        let seq = |header: PacketHeader| self.agreed.to_client(header.seq);
        ServerStep::replace(
            length,
            renumbered_packet(input, replacement.unwrap_or(packet), seq),
        )
    }

    fn logged_in(self: Box<Self>, ok: &OkPacket) -> LoginTransition {
        // Replies to commands sent ahead could not be distinguished from replies to later ones.
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
        let mut state = SessionState::new(database);
        state.observe(ok);
        let ways = (self.agreed, frames);
        let mut commands = CommandPhase::new(server, capabilities, ways, state, self.limits);
        commands.account = user;
        commands.process_user = self.process_user;
        LoginTransition::LoggedIn(Box::new(commands), frames)
    }
}

#[cfg(test)]
mod tests;
