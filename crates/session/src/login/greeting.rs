//! The first state of a login: waits for the server's greeting, and masks what the client cannot use.

use super::packet::{may_be_login_packet, renumbered_packet};
use super::response::ResponseState;
use super::{LoginTransition, SessionPolicy};
use crate::compression_frames::ClientCompression;
use crate::machine_step::{ClientStep, ServerStep, SessionLimits};
use headwater_wire::capability::Capabilities;
use headwater_wire::compression::CompressionAlgorithm;
use headwater_wire::handshake::{ServerGreeting, greeting_with_flags};
use headwater_wire::packet::{self, HEADER_BYTES};

#[derive(Debug)]
pub(crate) struct GreetingState {
    pub(super) policy: SessionPolicy,
    pub(super) limits: SessionLimits,
}

impl GreetingState {
    /// A client that sends first waits.
    pub(super) fn client(self: Box<Self>) -> (ClientStep, LoginTransition) {
        (ClientStep::Hold, self.into())
    }

    pub(super) fn server(self: Box<Self>, input: &[u8]) -> (ServerStep, LoginTransition) {
        let Some(packet) = packet::complete_payload(input) else {
            return match may_be_login_packet(input) {
                true => (ServerStep::Need, self.into()),
                false => (ServerStep::pass(input.len()), LoginTransition::Pump),
            };
        };
        // Anything but a known greeting (an ERR, an older protocol) is relayed unchanged.
        let Some((greeting, masked)) = self.masked_greeting(packet) else {
            return (ServerStep::pass(input.len()), LoginTransition::Pump);
        };
        let shown = match self.policy.compression.clients {
            ClientCompression::Mirror => greeting.capabilities,
            // As far as there was room for it.
            _ => ServerGreeting::parse(&masked)
                .map_or(Capabilities::NONE, |shown| shown.capabilities),
        };
        let bytes = renumbered_packet(input, &masked, |header| header.seq);
        let step = ServerStep::replace(HEADER_BYTES + packet.len(), bytes);
        let GreetingState {
            policy: ways,
            limits,
        } = *self;
        let next = ResponseState::new(ways, limits, greeting, shown);
        (step, Box::new(next).into())
    }

    /// The server's greeting, and the client's version of it: with the TLS and compression flags that it may use here.
    fn masked_greeting(&self, packet: &[u8]) -> Option<(ServerGreeting, Vec<u8>)> {
        let greeting = ServerGreeting::parse(packet).ok()?;
        let compression = self.policy.compression;
        let (mut mask, mut flags) = (Capabilities::SSL, Capabilities::NONE);
        let server_can = greeting.capabilities.contains(Capabilities::SSL);
        if self.policy.tls.offers(server_can) {
            flags = Capabilities::SSL;
        }
        if compression.clients != ClientCompression::Mirror {
            mask = mask.union(CompressionAlgorithm::FLAGS);
            flags = flags.union(compression.offers(greeting.capabilities, greeting.is_mariadb()));
        }
        let masked = greeting_with_flags(packet, mask, flags).ok()?;
        Some((greeting, masked))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::tests::{ExpectedState, ExpectedStep, client, server};
    use super::*;
    use crate::compression_frames::{CompressionPolicy, ServerCompression};
    use crate::machine::tests::{LIMITS, WAYS, encoded, greeting};
    use crate::tls_policy::TlsPolicy;

    fn awaiting(policy: SessionPolicy) -> Box<GreetingState> {
        let limits = LIMITS;
        Box::new(GreetingState { policy, limits })
    }

    #[test]
    fn a_client_that_speaks_first_waits() {
        let row = awaiting(WAYS).client();
        client(
            "a client",
            row,
            (ExpectedStep::Hold, ExpectedState::Greeting),
        );
    }

    #[test]
    fn a_greeting_is_awaited_and_all_else_is_relayed_unread() {
        let whole = encoded(0, &greeting());
        let error = encoded(0, b"\xff\x10\x04Too many connections");
        let old = encoded(0, b"\x09old");
        let need = (ExpectedStep::Need, ExpectedState::Greeting);
        let pumped = |bytes: &[u8]| (ExpectedStep::Pass(bytes.len()), ExpectedState::Pump);
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
        let offered = SessionPolicy {
            tls: TlsPolicy {
                offered: true,
                ..TlsPolicy::PLAIN
            },
            ..WAYS
        };
        let compressed = |clients| SessionPolicy {
            compression: CompressionPolicy {
                clients,
                server: ServerCompression::Mirror,
            },
            ..WAYS
        };
        let both = Capabilities::SSL.union(CompressionAlgorithm::FLAGS);
        for (ways, mask, flags) in [
            (WAYS, Capabilities::SSL, Capabilities::NONE),
            (offered, Capabilities::SSL, Capabilities::SSL),
            (
                compressed(ClientCompression::Offer),
                both,
                CompressionAlgorithm::FLAGS,
            ),
            (
                compressed(ClientCompression::Never),
                both,
                Capabilities::NONE,
            ),
        ] {
            let what = format!("{ways:?}");
            let said = encoded(0, &greeting());
            let shown = encoded(0, &greeting_with_flags(&greeting(), mask, flags).unwrap());
            let expected = (
                ExpectedStep::Replace(said.len(), shown),
                ExpectedState::Response,
            );
            let ahead = [&said[..], b"more"].concat();
            server(&what, awaiting(ways).server(&ahead), expected);
        }
    }
}
