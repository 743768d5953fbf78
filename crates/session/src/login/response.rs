//! The second state of a login: the client is to say who it is, perhaps behind a request for TLS.

use super::authentication::{AuthenticationState, LoginAccount};
use super::packet::{answer_sequence, may_be_login_packet, renumbered_packet, unreadable_login};
use super::{LoginTransition, SessionPolicy};
use crate::compression_frames::{CompressionFrames, CompressionPolicy};
use crate::machine_step::{ClientStep, ServerFlavor, ServerStep, SessionLimits};
use crate::tls_policy::{NegotiatedTls, refusal};
use headwater_wire::capability::Capabilities;
use headwater_wire::compression::CompressionAlgorithm;
use headwater_wire::handshake::{
    LoginRequest, LoginResponse, ServerGreeting, login_with_flags, ssl_request,
};
use headwater_wire::packet::{self, HEADER_BYTES, PacketHeader};

/// The client has the greeting.
#[derive(Debug)]
pub(crate) struct ResponseState {
    policy: SessionPolicy,
    limits: SessionLimits,
    greeting: ServerGreeting,
    /// What the client was told that it can use.
    shown_capabilities: Capabilities,
    /// `None`: the client has not said yet what it wants.
    agreed: Option<NegotiatedTls>,
}

/// How the legs of a client that asks for certain capabilities may be compressed.
struct CompressionRequest {
    /// The ways that the client's leg may use.
    client: Capabilities,
    /// The flags of the login that are said anew to the server; where nothing is set, none.
    mask: Capabilities,
    /// Those of them that the server is asked for.
    server: Capabilities,
}

impl ResponseState {
    /// The number of this session at the server.
    pub(super) fn thread_id(&self) -> u32 {
        self.greeting.thread_id
    }

    pub(super) fn new(
        ways: SessionPolicy,
        limits: SessionLimits,
        greeting: ServerGreeting,
        shown: Capabilities,
    ) -> ResponseState {
        ResponseState {
            policy: ways,
            limits,
            greeting,
            shown_capabilities: shown,
            agreed: None,
        }
    }

    /// A server that goes on unasked is the client's to understand.
    pub(super) fn server(self: Box<Self>, input: &[u8]) -> (ServerStep, LoginTransition) {
        (ServerStep::pass(input.len()), self.into())
    }

    pub(super) fn client(self: Box<Self>, input: &[u8]) -> (ClientStep, LoginTransition) {
        let Some(packet) = packet::complete_payload(input) else {
            return match may_be_login_packet(input) {
                true => (ClientStep::Need, self.into()),
                false => self.pass_unread(input, input.len()),
            };
        };
        match LoginRequest::parse(packet) {
            Ok(LoginRequest::SslRequest(flags)) if self.may_begin_tls() => {
                self.begin_tls(input, packet, flags)
            }
            Ok(LoginRequest::Response(response)) if self.is_followed(&response) => {
                self.respond(input, packet, &response)
            }
            // The server will say what is wrong with TLS that was never offered, or a second time, and with protocols older
            // than 4.1.
            login => self.pass_unfollowed(input, packet, login.ok().as_ref()),
        }
    }

    fn server_can_tls(&self) -> bool {
        self.greeting.capabilities.contains(Capabilities::SSL)
    }

    fn may_begin_tls(&self) -> bool {
        let legs = &self.policy.tls;
        !legs.passthrough && self.agreed.is_none() && legs.offers(self.server_can_tls())
    }

    /// False where TLS was not offered and is used nevertheless: from here on packets cannot be read.
    fn is_followed(&self, response: &LoginResponse<'_>) -> bool {
        let used = response
            .capabilities
            .intersection(self.greeting.capabilities);
        let enciphered = self.agreed.is_some_and(|agreed| agreed.client);
        !used.contains(Capabilities::SSL) || enciphered
    }

    fn compression_request(&self, flags: Capabilities) -> CompressionRequest {
        let of_client = flags
            .intersection(self.shown_capabilities)
            .intersection(CompressionAlgorithm::FLAGS);
        let compression = self.policy.compression;
        if compression == CompressionPolicy::MIRROR {
            return CompressionRequest {
                client: of_client,
                mask: Capabilities::NONE,
                server: Capabilities::NONE,
            };
        }
        let mut can = self.greeting.capabilities;
        if self.greeting.is_mariadb() {
            can = can.without(Capabilities::ZSTD_COMPRESSION);
        }
        CompressionRequest {
            client: of_client,
            mask: CompressionAlgorithm::FLAGS,
            server: compression.agree(of_client, can),
        }
    }

    /// The client's request for TLS.
    fn begin_tls(
        self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        flags: Capabilities,
    ) -> (ClientStep, LoginTransition) {
        match self.policy.tls.agree(true, self.server_can_tls()) {
            Ok(agreed) => {
                let length = HEADER_BYTES + packet.len();
                self.begin_agreed_tls(input, packet, length, flags, agreed)
            }
            Err(why) => self.refuse(input, why),
        }
    }

    /// The client's login; TLS with the server may have to begin before it.
    fn respond(
        self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        response: &LoginResponse<'_>,
    ) -> (ClientStep, LoginTransition) {
        if let Some(agreed) = self.agreed {
            return self.log_in(input, packet, response, agreed);
        }
        match self.policy.tls.agree(false, self.server_can_tls()) {
            Ok(agreed) if agreed.server => {
                self.begin_agreed_tls(input, packet, 0, response.capabilities, agreed)
            }
            Ok(agreed) => self.log_in(input, packet, response, agreed),
            Err(why) => self.refuse(input, why),
        }
    }

    /// TLS begins where it was agreed on, and so many bytes have been read; what follows is the login.
    fn begin_agreed_tls(
        mut self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        length: usize,
        flags: Capabilities,
        agreed: NegotiatedTls,
    ) -> (ClientStep, LoginTransition) {
        let CompressionRequest {
            mask,
            server: of_server,
            ..
        } = self.compression_request(flags);
        let request = agreed
            .server
            .then(|| renumbered_packet(input, &ssl_request(packet, mask, of_server), |_| 1));
        self.agreed = Some(agreed);
        let step = ClientStep::BeginTls {
            length,
            client: agreed.client,
            server: request,
        };
        (step, self.into())
    }

    fn log_in(
        self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        response: &LoginResponse<'_>,
        agreed: NegotiatedTls,
    ) -> (ClientStep, LoginTransition) {
        let own_user = self.policy.process_user.as_ref();
        let seq = answer_sequence(input);
        if let Some(refusal) = own_user.and_then(|own| own.refuses(response.user, seq)) {
            return (ClientStep::Refuse(refusal), self.into());
        }
        let asked = self.compression_request(response.capabilities);
        let client = CompressionAlgorithm::negotiated(asked.client, response.zstd_level);
        let account = LoginAccount {
            server: ServerFlavor {
                mariadb: self.greeting.is_mariadb(),
            },
            capabilities: response
                .capabilities
                .intersection(self.greeting.capabilities),
            user: response.user.to_vec(),
            database: response.database.map(<[u8]>::to_vec),
            compression_frames: CompressionFrames {
                client,
                server: match asked.mask {
                    Capabilities::NONE => client,
                    _ => CompressionAlgorithm::negotiated(asked.server, response.zstd_level),
                },
            },
        };
        let step = login_for_server(input, packet, response.capabilities, &asked, agreed);
        let ResponseState {
            policy: ways,
            limits,
            ..
        } = *self;
        let next = AuthenticationState::new(ways, limits, account, agreed);
        (step, Box::new(next).into())
    }

    /// What is no login that could be followed.
    fn pass_unfollowed(
        self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        login: Option<&LoginRequest<'_>>,
    ) -> (ClientStep, LoginTransition) {
        let compressed = match login {
            Some(LoginRequest::Response(LoginResponse { capabilities, .. }))
            | Some(LoginRequest::SslRequest(capabilities) | LoginRequest::Pre41(capabilities)) => {
                capabilities.intersects(Capabilities::COMPRESS)
            }
            None => {
                let flags = packet.first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
                Capabilities::from_parts(flags, 0).intersects(CompressionAlgorithm::FLAGS)
            }
        };
        // What it was shown need not be what the server can do.
        if compressed && self.policy.compression != CompressionPolicy::MIRROR {
            let error = unreadable_login(answer_sequence(input));
            return (ClientStep::Refuse(error), self.into());
        }
        self.pass_unread(input, HEADER_BYTES + packet.len())
    }

    /// So many bytes, and all behind them, go on unread, unless that would evade TLS that has to be.
    fn pass_unread(self: Box<Self>, input: &[u8], length: usize) -> (ClientStep, LoginTransition) {
        if let Some(own_user) = &self.policy.process_user {
            let error = own_user.refusal(answer_sequence(input));
            return (ClientStep::Refuse(error), self.into());
        }
        let pass = (ClientStep::pass(length), LoginTransition::Pump);
        if self.agreed.is_some() || self.policy.tls.passthrough {
            return pass;
        }
        match self.policy.tls.agree(false, self.server_can_tls()) {
            Ok(agreed) if !agreed.server => pass,
            Ok(_) => self.refuse(
                input,
                "Headwater's upstream_tls.mode wants TLS to the server, and this is no login that could go there",
            ),
            Err(why) => self.refuse(input, why),
        }
    }

    fn refuse(self: Box<Self>, input: &[u8], why: &str) -> (ClientStep, LoginTransition) {
        let error = refusal(answer_sequence(input), why);
        (ClientStep::Refuse(error), self.into())
    }
}

/// The login that goes on: as it is, or with the flags and the number that it has on a leg of another kind.
fn login_for_server(
    input: &[u8],
    packet: &[u8],
    flags: Capabilities,
    asked: &CompressionRequest,
    agreed: NegotiatedTls,
) -> ClientStep {
    let length = HEADER_BYTES + packet.len();
    let asks_alike =
        asked.mask == Capabilities::NONE || flags.intersection(asked.mask) == asked.server;
    if asks_alike && !agreed.renumbers() {
        return ClientStep::pass(length);
    }
    let (mut mask, mut flags) = (asked.mask, asked.server);
    if agreed.renumbers() {
        mask = mask.union(Capabilities::SSL);
    }
    if agreed.server {
        flags = flags.union(Capabilities::SSL);
    }
    let login = login_with_flags(packet, mask, flags);
    let seq = |header: PacketHeader| agreed.to_server(header.seq);
    ClientStep::replace(length, renumbered_packet(input, &login, seq))
}

#[cfg(test)]
mod tests;
