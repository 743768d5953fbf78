//! The first state of a login: the server's greeting is to come, and tells the client what it can use.

use super::packet::{may_be_login_packet, numbered};
use super::response::AwaitingResponse;
use super::{Next, Ways};
use crate::frames::ClientFrames;
use crate::step::{ClientStep, Limits, ServerStep};
use headwater_wire::capability::Capabilities;
use headwater_wire::compression::Algorithm;
use headwater_wire::frame::{self, HEADER_BYTES};
use headwater_wire::handshake::{Greeting, greeting_with};

/// Neither side has said anything yet.
#[derive(Debug)]
pub(crate) struct AwaitingGreeting {
    pub(super) ways: Ways,
    pub(super) limits: Limits,
}

impl AwaitingGreeting {
    /// A client that speaks first waits.
    pub(super) fn client(self: Box<Self>) -> (ClientStep, Next) {
        (ClientStep::Hold, self.into())
    }

    pub(super) fn server(self: Box<Self>, input: &[u8]) -> (ServerStep, Next) {
        let Some(packet) = frame::whole(input) else {
            return match may_be_login_packet(input) {
                true => (ServerStep::Need, self.into()),
                false => (ServerStep::pass(input.len()), Next::Pump),
            };
        };
        // Anything but a greeting we know (an ERR, an older protocol) goes on as it is.
        let Some((greeting, masked)) = self.masked(packet) else {
            return (ServerStep::pass(input.len()), Next::Pump);
        };
        let shown = match self.ways.compression.clients {
            ClientFrames::Mirror => greeting.capabilities,
            // As far as there was room for it.
            _ => Greeting::parse(&masked).map_or(Capabilities::NONE, |shown| shown.capabilities),
        };
        let bytes = numbered(input, &masked, |header| header.seq);
        let step = ServerStep::replace(HEADER_BYTES + packet.len(), bytes);
        let AwaitingGreeting { ways, limits } = *self;
        let next = AwaitingResponse::new(ways, limits, greeting, shown);
        (step, Box::new(next).into())
    }

    /// The server's greeting, and the one that the client gets: with the TLS and the ways to compress that it may use here.
    fn masked(&self, packet: &[u8]) -> Option<(Greeting, Vec<u8>)> {
        let greeting = Greeting::parse(packet).ok()?;
        let compression = self.ways.compression;
        let (mut mask, mut flags) = (Capabilities::SSL, Capabilities::NONE);
        let server_can = greeting.capabilities.contains(Capabilities::SSL);
        if self.ways.legs.offers(server_can) {
            flags = Capabilities::SSL;
        }
        if compression.clients != ClientFrames::Mirror {
            mask = mask.union(Algorithm::FLAGS);
            flags = flags.union(compression.offers(greeting.capabilities, greeting.is_mariadb()));
        }
        let masked = greeting_with(packet, mask, flags).ok()?;
        Some((greeting, masked))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::tests::{State, Told, client, server};
    use super::*;
    use crate::frames::{Compression, ServerFrames};
    use crate::legs::Legs;
    use crate::machine::tests::{LIMITS, WAYS, encoded, greeting};

    fn awaiting(ways: Ways) -> Box<AwaitingGreeting> {
        let limits = LIMITS;
        Box::new(AwaitingGreeting { ways, limits })
    }

    #[test]
    fn a_client_that_speaks_first_waits() {
        let row = awaiting(WAYS).client();
        client("a client", row, (Told::Hold, State::Greeting));
    }

    #[test]
    fn a_greeting_is_waited_for_and_all_else_goes_on_unread() {
        let whole = encoded(0, &greeting());
        let error = encoded(0, b"\xff\x10\x04Too many connections");
        let old = encoded(0, b"\x09old");
        let need = (Told::Need, State::Greeting);
        let pumped = |bytes: &[u8]| (Told::Pass(bytes.len()), State::Pump);
        for (what, input, expected) in [
            ("a part of a header", &whole[..3], need.clone()),
            ("a part of a greeting", &whole[..40], need),
            ("an error", &error, pumped(&error)),
            ("an older protocol", &old, pumped(&old)),
            ("no packet", b"SSH-2.0", pumped(b"SSH-2.0")),
        ] {
            server(what, awaiting(WAYS).server(input), expected);
        }
    }

    #[test]
    fn the_client_is_shown_what_it_may_use() {
        let offered = Ways {
            legs: Legs {
                offered: true,
                ..Legs::PLAIN
            },
            ..WAYS
        };
        let compressed = |clients| Ways {
            compression: Compression {
                clients,
                server: ServerFrames::Mirror,
            },
            ..WAYS
        };
        let both = Capabilities::SSL.union(Algorithm::FLAGS);
        for (ways, mask, flags) in [
            (WAYS, Capabilities::SSL, Capabilities::NONE),
            (offered, Capabilities::SSL, Capabilities::SSL),
            (compressed(ClientFrames::Offer), both, Algorithm::FLAGS),
            (compressed(ClientFrames::Never), both, Capabilities::NONE),
        ] {
            let what = format!("{ways:?}");
            let said = encoded(0, &greeting());
            let shown = encoded(0, &greeting_with(&greeting(), mask, flags).unwrap());
            let expected = (Told::Replace(said.len(), shown), State::Response);
            let ahead = [&said[..], b"more"].concat();
            server(&what, awaiting(ways).server(&ahead), expected);
        }
    }
}
