//! The second state of a login: the client is to say who it is, perhaps behind a request for TLS.

use super::authentication::{Account, Authenticating};
use super::packet::{answer_to, may_be_login_packet, numbered, unreadable};
use super::{Next, Ways};
use crate::frames::{Compression, Frames};
use crate::legs::{Agreed, refusal};
use crate::step::{ClientStep, Limits, Server, ServerStep};
use headwater_wire::capability::Capabilities;
use headwater_wire::compression::Algorithm;
use headwater_wire::frame::{self, HEADER_BYTES, Header};
use headwater_wire::handshake::{Greeting, Login, LoginResponse, login_with, ssl_request};

/// The client has the greeting.
#[derive(Debug)]
pub(crate) struct AwaitingResponse {
    ways: Ways,
    limits: Limits,
    greeting: Greeting,
    /// What the client was told that it can use.
    shown: Capabilities,
    /// `None`: the client has not said yet what it wants.
    agreed: Option<Agreed>,
}

/// How the legs of a client that asks for certain capabilities may be compressed.
struct Asked {
    /// The ways that the client's leg may use.
    of_client: Capabilities,
    /// The flags of the login that are said anew to the server; where nothing is set, none.
    mask: Capabilities,
    /// Those of them that the server is asked for.
    of_server: Capabilities,
}

impl AwaitingResponse {
    /// The number of this session at the server.
    pub(super) fn thread_id(&self) -> u32 {
        self.greeting.thread_id
    }

    pub(super) fn new(
        ways: Ways,
        limits: Limits,
        greeting: Greeting,
        shown: Capabilities,
    ) -> AwaitingResponse {
        AwaitingResponse {
            ways,
            limits,
            greeting,
            shown,
            agreed: None,
        }
    }

    /// A server that goes on unasked is the client's to understand.
    pub(super) fn server(self: Box<Self>, input: &[u8]) -> (ServerStep, Next) {
        (ServerStep::pass(input.len()), self.into())
    }

    pub(super) fn client(self: Box<Self>, input: &[u8]) -> (ClientStep, Next) {
        let Some(packet) = frame::whole(input) else {
            return match may_be_login_packet(input) {
                true => (ClientStep::Need, self.into()),
                false => self.unread(input, input.len()),
            };
        };
        match Login::parse(packet) {
            Ok(Login::SslRequest(flags)) if self.may_begin_tls() => {
                self.begin_tls(input, packet, flags)
            }
            Ok(Login::Response(response)) if self.is_followed(&response) => {
                self.respond(input, packet, &response)
            }
            // The server will say what is wrong with TLS that was never offered, or a second time, and with protocols older
            // than 4.1.
            login => self.unfollowed(input, packet, login.ok().as_ref()),
        }
    }

    fn server_can_tls(&self) -> bool {
        self.greeting.capabilities.contains(Capabilities::SSL)
    }

    fn may_begin_tls(&self) -> bool {
        let legs = &self.ways.legs;
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

    fn asked(&self, flags: Capabilities) -> Asked {
        let of_client = flags
            .intersection(self.shown)
            .intersection(Algorithm::FLAGS);
        let compression = self.ways.compression;
        if compression == Compression::MIRROR {
            return Asked {
                of_client,
                mask: Capabilities::NONE,
                of_server: Capabilities::NONE,
            };
        }
        let mut can = self.greeting.capabilities;
        if self.greeting.is_mariadb() {
            can = can.without(Capabilities::ZSTD_COMPRESSION);
        }
        Asked {
            of_client,
            mask: Algorithm::FLAGS,
            of_server: compression.agree(of_client, can),
        }
    }

    /// The client's request for TLS.
    fn begin_tls(
        self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        flags: Capabilities,
    ) -> (ClientStep, Next) {
        match self.ways.legs.agree(true, self.server_can_tls()) {
            Ok(agreed) => {
                let length = HEADER_BYTES + packet.len();
                self.secure(input, packet, length, flags, agreed)
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
    ) -> (ClientStep, Next) {
        if let Some(agreed) = self.agreed {
            return self.log_in(input, packet, response, agreed);
        }
        match self.ways.legs.agree(false, self.server_can_tls()) {
            Ok(agreed) if agreed.server => {
                self.secure(input, packet, 0, response.capabilities, agreed)
            }
            Ok(agreed) => self.log_in(input, packet, response, agreed),
            Err(why) => self.refuse(input, why),
        }
    }

    /// TLS begins where it was agreed on, and so many bytes have been read; what follows is the login.
    fn secure(
        mut self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        length: usize,
        flags: Capabilities,
        agreed: Agreed,
    ) -> (ClientStep, Next) {
        let Asked {
            mask, of_server, ..
        } = self.asked(flags);
        let request = agreed
            .server
            .then(|| numbered(input, &ssl_request(packet, mask, of_server), |_| 1));
        self.agreed = Some(agreed);
        let step = ClientStep::Secure {
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
        agreed: Agreed,
    ) -> (ClientStep, Next) {
        let own_user = self.ways.own_user.as_ref();
        let seq = answer_to(input);
        if let Some(refusal) = own_user.and_then(|own| own.refuses(response.user, seq)) {
            return (ClientStep::Refuse(refusal), self.into());
        }
        let asked = self.asked(response.capabilities);
        let client = Algorithm::agreed(asked.of_client, response.zstd_level);
        let account = Account {
            server: Server {
                mariadb: self.greeting.is_mariadb(),
            },
            capabilities: response
                .capabilities
                .intersection(self.greeting.capabilities),
            user: response.user.to_vec(),
            database: response.database.map(<[u8]>::to_vec),
            frames: Frames {
                client,
                server: match asked.mask {
                    Capabilities::NONE => client,
                    _ => Algorithm::agreed(asked.of_server, response.zstd_level),
                },
            },
        };
        let step = said_to_server(input, packet, response.capabilities, &asked, agreed);
        let AwaitingResponse { ways, limits, .. } = *self;
        let next = Authenticating::new(ways, limits, account, agreed);
        (step, Box::new(next).into())
    }

    /// What is no login that could be followed.
    fn unfollowed(
        self: Box<Self>,
        input: &[u8],
        packet: &[u8],
        login: Option<&Login<'_>>,
    ) -> (ClientStep, Next) {
        let compressed = match login {
            Some(Login::Response(LoginResponse { capabilities, .. }))
            | Some(Login::SslRequest(capabilities) | Login::Pre41(capabilities)) => {
                capabilities.intersects(Capabilities::COMPRESS)
            }
            None => {
                let flags = packet.first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
                Capabilities::from_parts(flags, 0).intersects(Algorithm::FLAGS)
            }
        };
        // What it was shown need not be what the server can do.
        if compressed && self.ways.compression != Compression::MIRROR {
            let error = unreadable(answer_to(input));
            return (ClientStep::Refuse(error), self.into());
        }
        self.unread(input, HEADER_BYTES + packet.len())
    }

    /// So many bytes, and all behind them, go on unread, unless that would evade TLS that has to be.
    fn unread(self: Box<Self>, input: &[u8], length: usize) -> (ClientStep, Next) {
        if let Some(own_user) = &self.ways.own_user {
            let error = own_user.refusal(answer_to(input));
            return (ClientStep::Refuse(error), self.into());
        }
        let pass = (ClientStep::pass(length), Next::Pump);
        if self.agreed.is_some() || self.ways.legs.passthrough {
            return pass;
        }
        match self.ways.legs.agree(false, self.server_can_tls()) {
            Ok(agreed) if !agreed.server => pass,
            Ok(_) => self.refuse(
                input,
                "Headwater's upstream_tls.mode wants TLS to the server, and this is no login that could go there",
            ),
            Err(why) => self.refuse(input, why),
        }
    }

    fn refuse(self: Box<Self>, input: &[u8], why: &str) -> (ClientStep, Next) {
        let error = refusal(answer_to(input), why);
        (ClientStep::Refuse(error), self.into())
    }
}

/// The login that goes on: as it is, or with the flags and the number that it has on a leg of another kind.
fn said_to_server(
    input: &[u8],
    packet: &[u8],
    flags: Capabilities,
    asked: &Asked,
    agreed: Agreed,
) -> ClientStep {
    let length = HEADER_BYTES + packet.len();
    let asks_alike =
        asked.mask == Capabilities::NONE || flags.intersection(asked.mask) == asked.of_server;
    if asks_alike && !agreed.renumbers() {
        return ClientStep::pass(length);
    }
    let (mut mask, mut flags) = (asked.mask, asked.of_server);
    if agreed.renumbers() {
        mask = mask.union(Capabilities::SSL);
    }
    if agreed.server {
        flags = flags.union(Capabilities::SSL);
    }
    let login = login_with(packet, mask, flags);
    let seq = |header: Header| agreed.to_server(header.seq);
    ClientStep::replace(length, numbered(input, &login, seq))
}

#[cfg(test)]
mod tests;
