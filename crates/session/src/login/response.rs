//! The second state of a login: waits for the client's login, perhaps after a request for TLS.

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

#[derive(Debug)]
pub(crate) struct ResponseState {
    policy: SessionPolicy,
    limits: SessionLimits,
    greeting: ServerGreeting,
    /// The capabilities in the client's greeting.
    shown_capabilities: Capabilities,
    /// `None`: the client has not requested anything yet.
    agreed: Option<NegotiatedTls>,
}

/// How the legs may be compressed, for a client with certain capabilities.
struct CompressionRequest {
    /// The algorithms that the client's leg may use.
    client: Capabilities,
    /// The login's flags that are rewritten for the server; empty: none.
    mask: Capabilities,
    /// Those of them that are requested of the server.
    server: Capabilities,
}

impl ResponseState {
    pub(super) fn thread_id(&self) -> u32 {
        self.greeting.thread_id
    }

    pub(super) fn new(
        policy: SessionPolicy,
        limits: SessionLimits,
        greeting: ServerGreeting,
        shown: Capabilities,
    ) -> ResponseState {
        ResponseState {
            policy,
            limits,
            greeting,
            shown_capabilities: shown,
            agreed: None,
        }
    }

    /// Relays what a server sends unexpectedly: the client has to understand it.
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
            // The server itself reports TLS that was never offered, or requested twice, and protocols older than 4.1.
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

    /// False where TLS was not offered but is used: packets cannot be read from here on.
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
            Err(reason) => self.refuse(input, reason),
        }
    }

    /// Handles the client's login; TLS with the server may have to begin before it.
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
            Err(reason) => self.refuse(input, reason),
        }
    }

    /// Begins the agreed TLS after this many bytes; the login follows.
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
        let process_user = self.policy.process_user.as_ref();
        let seq = answer_sequence(input);
        if let Some(refusal) = process_user.and_then(|user| user.refuses(response.user, seq)) {
            return (ClientStep::Refuse(refusal), self.into());
        }
        let request = self.compression_request(response.capabilities);
        let client = CompressionAlgorithm::negotiated(request.client, response.zstd_level);
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
                server: match request.mask {
                    Capabilities::NONE => client,
                    _ => CompressionAlgorithm::negotiated(request.server, response.zstd_level),
                },
            },
        };
        let step = login_for_server(input, packet, response.capabilities, &request, agreed);
        let ResponseState {
            policy: ways,
            limits,
            ..
        } = *self;
        let next = AuthenticationState::new(ways, limits, account, agreed);
        (step, Box::new(next).into())
    }

    /// Handles a packet that is no login which Headwater can follow.
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
        // The server's capabilities may differ from those in the client's greeting.
        if compressed && self.policy.compression != CompressionPolicy::MIRROR {
            let error = unreadable_login(answer_sequence(input));
            return (ClientStep::Refuse(error), self.into());
        }
        self.pass_unread(input, HEADER_BYTES + packet.len())
    }

    /// Relays these bytes and all later ones unread, unless that would evade required TLS.
    fn pass_unread(self: Box<Self>, input: &[u8], length: usize) -> (ClientStep, LoginTransition) {
        if let Some(process_user) = &self.policy.process_user {
            let error = process_user.refusal(answer_sequence(input));
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
            Err(reason) => self.refuse(input, reason),
        }
    }

    fn refuse(self: Box<Self>, input: &[u8], reason: &str) -> (ClientStep, LoginTransition) {
        let error = refusal(answer_sequence(input), reason);
        (ClientStep::Refuse(error), self.into())
    }
}

/// The login for the server: unchanged, or with the flags and the number for its leg.
fn login_for_server(
    input: &[u8],
    packet: &[u8],
    flags: Capabilities,
    request: &CompressionRequest,
    agreed: NegotiatedTls,
) -> ClientStep {
    let length = HEADER_BYTES + packet.len();
    let asks_alike =
        request.mask == Capabilities::NONE || flags.intersection(request.mask) == request.server;
    if asks_alike && !agreed.renumbers() {
        return ClientStep::pass(length);
    }
    let (mut mask, mut flags) = (request.mask, request.server);
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
