//! A session up to the server's OK: greeting, TLS on either leg, login, and the plugins' dialogue.
//!
//! The dialogue is the client's and the server's; what changes on the way is named here: the greeting's flags, the login's
//! SSL flag and the numbers of packets where only one leg has TLS, the login's ways to compress where the legs are set apart, and
//! a `redirect_url`, which would lead the client past us.

use super::commands::Commands;
use super::frames::{self, ClientFrames, Compression, Frames};
use super::legs::{Agreed, Legs, refusal};
use super::machine::{ClientStep, Limits, Server, ServerStep};
use super::peer::OwnUser;
use super::standing::Standing;
use headwater_wire::capability::Capabilities;
use headwater_wire::compression::Algorithm;
use headwater_wire::frame::{self, HEADER_BYTES, Header, Splitter};
use headwater_wire::handshake::{Greeting, Login, greeting_with, login_with, ssl_request};
use headwater_wire::reply::{AuthEvent, AuthLoop, Outcome};
use headwater_wire::response::without_redirect;

/// The largest packet that is looked at before the login has ended; real ones have some hundred bytes.
const LOGIN_PACKET_BYTES: usize = 64 * 1024;

/// What becomes of a session that logs in.
#[derive(Debug)]
pub(super) enum Then {
    /// It goes on.
    Stay,
    /// It is in.
    In(Box<Commands>, Frames),
    /// Its bytes are passed on unread from here.
    Pump,
}

/// How far a login has come that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server's greeting has not come.
    BeforeGreeting,
    /// The client has not said who it is.
    BeforeLogin,
    /// It has, and its plugin's dialogue has not ended.
    InDialogue,
}

/// How a session may go between its two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Which sides have TLS.
    pub legs: Legs,
    /// A `redirect_url` goes on to the client.
    pub redirects: bool,
    /// Which sides have compressed frames.
    pub compression: Compression,
    /// Whose accounts are not for this session's client.
    pub own_user: Option<OwnUser>,
}

/// A session that logs in.
#[derive(Debug)]
pub(super) struct LoggingIn {
    ways: Ways,
    limits: Limits,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Greeting,
    Login {
        greeting: Box<Greeting>,
        /// What the client was told that it can use.
        shown: Capabilities,
        /// `None`: the client has not said yet what it wants.
        agreed: Option<Agreed>,
    },
    Dialogue {
        login: Box<Account>,
        agreed: Agreed,
        auth: AuthLoop,
        answers: Answers,
    },
}

#[derive(Debug)]
struct Account {
    server: Server,
    capabilities: Capabilities,
    user: Vec<u8>,
    database: Option<Vec<u8>>,
    frames: Frames,
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

impl LoggingIn {
    pub(super) fn new(ways: Ways, limits: Limits) -> LoggingIn {
        LoggingIn {
            ways,
            limits,
            stage: Stage::Greeting,
        }
    }

    /// How far it has come.
    pub(super) fn cut(&self) -> Cut {
        match self.stage {
            Stage::Greeting => Cut::BeforeGreeting,
            Stage::Login { .. } => Cut::BeforeLogin,
            Stage::Dialogue { .. } => Cut::InDialogue,
        }
    }

    /// True while nothing has been asked of the server.
    pub(super) fn is_at_rest(&self) -> bool {
        !matches!(self.stage, Stage::Dialogue { .. })
    }

    /// Decides about the bytes waiting from the client.
    pub(super) fn client(&mut self, input: &[u8]) -> (ClientStep, Then) {
        let guarded = self.ways.own_user.is_some();
        match &mut self.stage {
            Stage::Greeting => (ClientStep::Hold, Then::Stay),
            Stage::Login { .. } => self.login(input),
            // Commands sent ahead wait until both sides speak as they will.
            Stage::Dialogue { login, .. }
                if (guarded || login.frames.differ()) && is_command(input) =>
            {
                (ClientStep::Hold, Then::Stay)
            }
            Stage::Dialogue {
                agreed,
                answers,
                login,
                ..
            } if guarded || agreed.renumbers() || login.frames.differ() => {
                match frame::whole(input) {
                    Some(packet) => {
                        let length = HEADER_BYTES + packet.len();
                        answers.see(input.get(..length).unwrap_or_default());
                        let seq = |header: Header| agreed.to_server(header.seq);
                        let bytes = numbered(input, packet, seq);
                        (ClientStep::Replace(length, bytes), Then::Stay)
                    }
                    None if may_be_login_packet(input) => (ClientStep::Need, Then::Stay),
                    None if guarded || login.frames.differ() => {
                        let seq = answer_to(input);
                        (ClientStep::Refuse(unreadable(seq)), Then::Stay)
                    }
                    None => (ClientStep::Pass(input.len()), Then::Pump),
                }
            }
            Stage::Dialogue { answers, .. } => {
                answers.see(input);
                (ClientStep::Pass(input.len()), Then::Stay)
            }
        }
    }

    /// Decides about the bytes waiting from the server.
    pub(super) fn server(&mut self, input: &[u8]) -> (ServerStep, Then) {
        let packet = match &self.stage {
            Stage::Login { .. } => None,
            Stage::Greeting | Stage::Dialogue { .. } => match frame::whole(input) {
                Some(packet) => Some(packet),
                None if may_be_login_packet(input) => return (ServerStep::Need, Then::Stay),
                None => return (self.unfollowable(input), Then::Pump),
            },
        };
        match packet {
            None => (ServerStep::Pass(input.len()), Then::Stay),
            Some(packet) if matches!(self.stage, Stage::Greeting) => self.greeting(input, packet),
            Some(packet) => self.dialogue(input, packet),
        }
    }

    /// From here on bytes would be passed on unread.
    fn unfollowable(&self, input: &[u8]) -> ServerStep {
        match &self.stage {
            Stage::Dialogue { login, agreed, .. } if login.frames.differ() => {
                let seq = Header::parse(input).map_or(2, |header| agreed.to_client(header.seq));
                ServerStep::Refuse(unreadable(seq))
            }
            _ => ServerStep::Pass(input.len()),
        }
    }

    fn greeting(&mut self, input: &[u8], packet: &[u8]) -> (ServerStep, Then) {
        let greeting = Greeting::parse(packet);
        let compression = self.ways.compression;
        let offers = |greeting: &Greeting| {
            let server_can = greeting.capabilities.contains(Capabilities::SSL);
            self.ways.legs.offers(server_can)
        };
        let masked = greeting.as_ref().ok().and_then(|greeting| {
            let (mut mask, mut flags) = (Capabilities::SSL, Capabilities::NONE);
            if offers(greeting) {
                flags = Capabilities::SSL;
            }
            if compression.clients != ClientFrames::Mirror {
                mask = mask.union(Algorithm::FLAGS);
                let ways = compression.offers(greeting.capabilities, greeting.is_mariadb());
                flags = flags.union(ways);
            }
            greeting_with(packet, mask, flags).ok()
        });
        // Anything but a greeting we know (an ERR, an older protocol) goes on as it is.
        let (Ok(greeting), Some(masked)) = (greeting, masked) else {
            return (ServerStep::Pass(input.len()), Then::Pump);
        };
        let shown = match compression.clients {
            ClientFrames::Mirror => greeting.capabilities,
            // As far as there was room for it.
            _ => Greeting::parse(&masked).map_or(Capabilities::NONE, |shown| shown.capabilities),
        };
        self.stage = Stage::Login {
            greeting: Box::new(greeting),
            shown,
            agreed: None,
        };
        let bytes = numbered(input, &masked, |header| header.seq);
        let length = HEADER_BYTES + packet.len();
        (ServerStep::Replace(length, bytes), Then::Stay)
    }

    fn login(&mut self, input: &[u8]) -> (ClientStep, Then) {
        let Some(packet) = frame::whole(input) else {
            if may_be_login_packet(input) {
                return (ClientStep::Need, Then::Stay);
            }
            return self.unread(input, input.len());
        };
        let length = HEADER_BYTES + packet.len();
        let legs = self.ways.legs;
        let compression = self.ways.compression;
        let Stage::Login {
            greeting,
            shown,
            agreed,
        } = &mut self.stage
        else {
            return (ClientStep::Pass(length), Then::Pump);
        };
        let server_can = greeting.capabilities.contains(Capabilities::SSL);
        let login = Login::parse(packet);
        let asked = match &login {
            Ok(Login::Response(response)) => response.capabilities,
            Ok(Login::SslRequest(flags) | Login::Pre41(flags)) => *flags,
            Err(_) => Capabilities::NONE,
        };
        // The ways that the client's leg may use, and those that the server's will; where nothing is set, what the login says.
        let of_client = asked.intersection(*shown).intersection(Algorithm::FLAGS);
        let (mask, of_server) = if compression == Compression::MIRROR {
            (Capabilities::NONE, Capabilities::NONE)
        } else {
            let mut can = greeting.capabilities;
            if greeting.is_mariadb() {
                can = can.without(Capabilities::ZSTD_COMPRESSION);
            }
            (Algorithm::FLAGS, compression.agree(of_client, can))
        };
        let wants_tls = matches!(login, Ok(Login::SslRequest(_)));
        // TLS that was never offered, or a second time: the server will say so. So it will of protocols older than 4.1.
        let pump = match &login {
            Ok(Login::SslRequest(_)) => {
                legs.passthrough || agreed.is_some() || !legs.offers(server_can)
            }
            // What was not offered and is used nevertheless: from here on packets cannot be read.
            Ok(Login::Response(response)) => {
                let used = response.capabilities.intersection(greeting.capabilities);
                let enciphered = agreed.is_some_and(|agreed| agreed.client);
                used.contains(Capabilities::SSL) && !enciphered
            }
            _ => true,
        };
        if pump {
            let in_frames = match &login {
                Ok(_) => asked.intersects(Capabilities::COMPRESS),
                Err(_) => {
                    let flags = packet.first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
                    Capabilities::from_parts(flags, 0).intersects(Algorithm::FLAGS)
                }
            };
            // What it was shown need not be what the server can do.
            if in_frames && compression != Compression::MIRROR {
                let seq = answer_to(input);
                return (ClientStep::Refuse(unreadable(seq)), Then::Stay);
            }
            return self.unread(input, length);
        }
        let legs = match agreed {
            Some(agreed) => *agreed,
            None => match legs.agree(wants_tls, server_can) {
                Ok(settled) => {
                    *agreed = Some(settled);
                    if settled.client || settled.server {
                        let request = settled.server.then(|| ssl_request(packet, mask, of_server));
                        let step = ClientStep::Secure {
                            length: if wants_tls { length } else { 0 },
                            client: settled.client,
                            server: request.map(|request| numbered(input, &request, |_| 1)),
                        };
                        return (step, Then::Stay);
                    }
                    settled
                }
                Err(why) => {
                    let seq = answer_to(input);
                    return (ClientStep::Refuse(refusal(seq, why)), Then::Stay);
                }
            },
        };
        let Ok(Login::Response(response)) = login else {
            return (ClientStep::Pass(length), Then::Pump);
        };
        let seq = answer_to(input);
        let own_user = self.ways.own_user.as_ref();
        if let Some(refusal) = own_user.and_then(|own| own.refuses(response.user, seq)) {
            return (ClientStep::Refuse(refusal), Then::Stay);
        }
        let capabilities = response.capabilities.intersection(greeting.capabilities);
        let level = response.zstd_level;
        let client = Algorithm::agreed(of_client, level);
        let frames = Frames {
            client,
            server: match mask {
                Capabilities::NONE => client,
                _ => Algorithm::agreed(of_server, level),
            },
        };
        let account = Account {
            server: Server {
                mariadb: greeting.is_mariadb(),
            },
            capabilities,
            user: response.user.to_vec(),
            database: response.database.map(<[u8]>::to_vec),
            frames,
        };
        let asks_alike = mask == Capabilities::NONE || asked.intersection(mask) == of_server;
        let step = if legs.renumbers() || !asks_alike {
            let mut flags = of_server;
            if legs.server {
                flags = flags.union(Capabilities::SSL);
            }
            let mask = match legs.renumbers() {
                true => mask.union(Capabilities::SSL),
                false => mask,
            };
            let login = login_with(packet, mask, flags);
            let seq = |header: Header| legs.to_server(header.seq);
            ClientStep::Replace(length, numbered(input, &login, seq))
        } else {
            ClientStep::Pass(length)
        };
        self.stage = Stage::Dialogue {
            auth: AuthLoop::new(account.capabilities),
            login: Box::new(account),
            agreed: legs,
            answers: Answers::default(),
        };
        (step, Then::Stay)
    }

    /// What is no login goes on unread, unless that would evade TLS that has to be.
    fn unread(&self, input: &[u8], length: usize) -> (ClientStep, Then) {
        if let Some(own_user) = &self.ways.own_user {
            let seq = answer_to(input);
            return (ClientStep::Refuse(own_user.refusal(seq)), Then::Stay);
        }
        let pass = (ClientStep::Pass(length), Then::Pump);
        let Stage::Login {
            greeting,
            agreed: None,
            ..
        } = &self.stage
        else {
            return pass;
        };
        if self.ways.legs.passthrough {
            return pass;
        }
        let server_can = greeting.capabilities.contains(Capabilities::SSL);
        let why = match self.ways.legs.agree(false, server_can) {
            Ok(agreed) if !agreed.server => return pass,
            Ok(_) => {
                "Headwater's upstream_tls.mode wants TLS to the server, and this is no login that could go there"
            }
            Err(why) => why,
        };
        let seq = answer_to(input);
        (ClientStep::Refuse(refusal(seq, why)), Then::Stay)
    }

    fn dialogue(&mut self, input: &[u8], packet: &[u8]) -> (ServerStep, Then) {
        let length = HEADER_BYTES + packet.len();
        let Stage::Dialogue {
            login,
            agreed,
            auth,
            answers,
        } = &mut self.stage
        else {
            return (ServerStep::Pass(length), Then::Stay);
        };
        let seq = |header: Header| agreed.to_client(header.seq);
        if let Some(why) = agreed.obstacle(packet) {
            let seq = Header::parse(input).map_or(2, seq);
            return (ServerStep::Refuse(refusal(seq, why)), Then::Stay);
        }
        let event = auth.feed(input.get(..length).unwrap_or_default()).event;
        let differ = login.frames.differ();
        let mut replaced = None;
        let then = match event {
            Some(AuthEvent::Done(Outcome::Ok(ok))) => {
                if !self.ways.redirects {
                    replaced = without_redirect(packet, login.capabilities);
                }
                // The replies to commands sent ahead could not be told apart from those to later ones.
                if answers.hold_a_command {
                    Then::Pump
                } else {
                    let mut standing = Standing::new(login.database.take());
                    standing.observe(&ok);
                    let (server, capabilities) = (login.server.clone(), login.capabilities);
                    let ways = (*agreed, login.frames);
                    let mut commands =
                        Commands::new(server, capabilities, ways, standing, self.limits);
                    commands.account = std::mem::take(&mut login.user);
                    commands.own_user = self.ways.own_user.clone();
                    Then::In(Box::new(commands), login.frames)
                }
            }
            Some(AuthEvent::Unfollowable) if differ => {
                let seq = Header::parse(input).map_or(2, seq);
                return (ServerStep::Refuse(unreadable(seq)), Then::Stay);
            }
            Some(AuthEvent::Done(_) | AuthEvent::Unfollowable) => Then::Pump,
            Some(AuthEvent::ClientTurn | AuthEvent::ServerAgain) | None => Then::Stay,
        };
        let step = if replaced.is_some() || agreed.renumbers() {
            let bytes = numbered(input, replaced.as_deref().unwrap_or(packet), seq);
            ServerStep::Replace(length, bytes)
        } else {
            ServerStep::Pass(length)
        };
        (step, then)
    }
}

/// A packet in place of the one that `input` starts with.
fn numbered(input: &[u8], payload: &[u8], seq: impl Fn(Header) -> u8) -> Vec<u8> {
    let header = Header::parse(input).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    frame::encode(seq(header), payload, &mut bytes);
    bytes
}

/// The number of an answer to the packet that `input` starts with; where its header is not all there, that of the answer to a login.
fn answer_to(input: &[u8]) -> u8 {
    Header::parse(input).map_or(2, |header| header.seq.wrapping_add(1))
}

/// Only commands have sequence number 0 behind a login.
fn is_command(input: &[u8]) -> bool {
    Header::parse(input).is_some_and(|header| header.seq == 0)
}

fn unreadable(seq: u8) -> Vec<u8> {
    frames::refusal(seq, "A login that cannot be read")
}

/// False for the start of a packet that no greeting and no login begins with: it is not waited for.
fn may_be_login_packet(input: &[u8]) -> bool {
    Header::parse(input).is_none_or(|header| header.len <= LOGIN_PACKET_BYTES)
}
