//! Which of a session's two connections use TLS: the client's leg and the server's leg.
//!
//! Authentication is end to end, and some plugins send a password in clear where their own side has TLS (or a local socket) and encrypted
//! where it has not. If only one leg is secure, client and server disagree about that; so the server's leg mirrors the client's unless the
//! settings say otherwise.

use headwater_wire::packet;
use headwater_wire::response::ErrPacket;

/// ER_SECURE_TRANSPORT_REQUIRED.
const INSECURE: u16 = 3159;

/// When the server's leg uses TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLegTls {
    /// Exactly when the client's has (`upstream_tls.mirror`).
    Mirror,
    /// Never (`upstream_tls.mode = "disabled"`).
    Never,
    /// Where the server has it (`preferred`).
    IfOffered,
    /// Always (`required` and stricter).
    Always,
}

/// What is possible on a session's legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsPolicy {
    /// There is a certificate to show to clients (`tls.cert`, `tls.own`, `tls.self_signed`).
    pub offered: bool,
    /// No setting requests it (`tls.own`).
    pub implicit: bool,
    /// Clients without TLS are refused, except on a local socket (`tls.required`).
    pub client_required: bool,
    /// Servers without TLS are refused (`upstream_tls.mode`).
    pub server_required: bool,
    /// When the server's leg uses TLS.
    pub server: ServerLegTls,
    /// Client and server negotiate TLS themselves (`tls.passthrough`).
    pub passthrough: bool,
    /// The client came over a local socket: secure without TLS.
    pub local_client: bool,
    /// The server is on a local socket.
    pub local_server: bool,
}

impl TlsPolicy {
    /// No TLS on either leg.
    pub const PLAIN: TlsPolicy = TlsPolicy {
        offered: false,
        implicit: false,
        client_required: false,
        server_required: false,
        server: ServerLegTls::Mirror,
        passthrough: false,
        local_client: false,
        local_server: false,
    };

    /// Whether the client's greeting offers TLS, given whether the server can do it.
    #[must_use]
    pub fn offers(&self, server_can: bool) -> bool {
        match self.server {
            _ if self.passthrough => server_can,
            ServerLegTls::Mirror => self.offered && server_can,
            _ => self.offered,
        }
    }

    /// True where TLS is offered only as a service to clients, and may be left out.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.implicit && !self.client_required && !self.server_required
    }

    /// True where no session may reach the server without TLS.
    #[must_use]
    pub fn requires_server_tls(&self) -> bool {
        let mirrored = self.server == ServerLegTls::Mirror && self.client_required;
        !self.passthrough && (mirrored || self.server_required)
    }

    /// The settings that have no effect with a server that has TLS, or has not, and the cures; `None` where all have effect.
    #[must_use]
    pub fn voided_settings(&self, server_has: bool) -> Option<&'static str> {
        let mirrored = self.server == ServerLegTls::Mirror && self.offered;
        match () {
            () if server_has || self.passthrough => None,
            () if self.server_required => Some(
                "the server has no TLS, and upstream_tls.mode wants it: every client will be refused. Switch TLS on at the server \
                 (ssl_cert, ssl_key), or set upstream_tls.mode = \"preferred\"",
            ),
            () if mirrored && self.client_required => Some(
                "the server has no TLS, so clients are offered none, and tls.required has them refused for lack of it. Switch TLS on at \
                 the server (ssl_cert, ssl_key), or set upstream_tls.mirror = false, which has TLS end at Headwater",
            ),
            () if mirrored && !self.implicit => Some(
                "the server has no TLS, so clients are offered none, though a certificate is set (tls.cert, tls.self_signed). Switch TLS \
                 on at the server (ssl_cert, ssl_key), or set upstream_tls.mirror = false, which has TLS end at Headwater",
            ),
            () => None,
        }
    }

    /// The state of both legs for a client that requests TLS, or does not.
    ///
    /// # Errors
    /// Text for the client: the setting that prevents it, and the cure.
    pub fn agree(&self, client: bool, server_can: bool) -> Result<NegotiatedTls, &'static str> {
        if !client && !self.local_client && self.client_required {
            return Err(
                "Connections using insecure transport are prohibited while Headwater's tls.required = true: log in with TLS",
            );
        }
        let server = match self.server {
            ServerLegTls::Mirror => client,
            ServerLegTls::Never => false,
            ServerLegTls::IfOffered => server_can,
            ServerLegTls::Always => true,
        };
        if server && !server_can {
            return Err(
                "The server behind Headwater offers no TLS, and upstream_tls.mode wants it: have the server offer it, or set \
                 upstream_tls.mode = \"preferred\"",
            );
        }
        if self.server_required && !server {
            return Err(
                "Headwater's upstream_tls.mode wants TLS to the server, which has it only where the client has it: log in with \
                 TLS, or set upstream_tls.mirror = false",
            );
        }
        Ok(NegotiatedTls {
            client,
            server,
            secure_client: client || self.local_client,
            secure_server: server || self.local_server,
        })
    }
}

/// The TLS state of a session's legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiatedTls {
    /// The client's leg has TLS.
    pub client: bool,
    /// The server's leg has TLS.
    pub server: bool,
    secure_client: bool,
    secure_server: bool,
}

impl NegotiatedTls {
    /// A client's packet number on the server's leg: TLS takes one number before the login.
    #[must_use]
    pub fn to_server(self, seq: u8) -> u8 {
        seq.wrapping_add(u8::from(self.server))
            .wrapping_sub(u8::from(self.client))
    }

    /// A server's packet number on the client's leg.
    #[must_use]
    pub fn to_client(self, seq: u8) -> u8 {
        seq.wrapping_add(u8::from(self.client))
            .wrapping_sub(u8::from(self.server))
    }

    /// True when numbers differ between the legs.
    #[must_use]
    pub fn renumbers(self) -> bool {
        self.client != self.server
    }

    /// True when a secret would be sent in clear by one side and expected enciphered by the other.
    #[must_use]
    pub fn is_mixed(self) -> bool {
        self.secure_client != self.secure_server
    }

    /// The error for the client in place of a login packet from the server that requests such a secret.
    #[must_use]
    pub fn obstacle(self, packet: &[u8]) -> Option<&'static str> {
        let full = packet == [0x01, 0x04];
        let sha256 = packet.starts_with(b"\xfesha256_password\0");
        (self.is_mixed() && (full || sha256)).then_some(if full {
            "caching_sha2_password cannot send this password through Headwater while one side has TLS or a socket of the \
             machine and the other has neither: set upstream_tls.mirror = true, or log in once directly (until the server forgets it)"
        } else {
            "sha256_password cannot log in through Headwater while one side has TLS or a socket of the machine and the other has \
             neither: set upstream_tls.mirror = true"
        })
    }
}

/// An ERR packet for the client: why its legs cannot be in the required state.
#[must_use]
pub fn refusal(seq: u8, reason: &str) -> Vec<u8> {
    let error = ErrPacket {
        code: INSECURE,
        sqlstate: Some(*b"08S01"),
        message: reason.as_bytes().to_vec(),
    };
    error_bytes(seq, &error)
}

pub(super) fn error_bytes(seq: u8, error: &ErrPacket) -> Vec<u8> {
    let (mut payload, mut bytes) = (Vec::new(), Vec::new());
    error.write(&mut payload);
    packet::encode(seq, &payload, &mut bytes);
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_leg_is_as_the_settings_say() {
        for (server, client, can, expected) in [
            (ServerLegTls::Mirror, false, true, Some(false)),
            (ServerLegTls::Mirror, true, true, Some(true)),
            (ServerLegTls::Never, true, true, Some(false)),
            (ServerLegTls::IfOffered, false, true, Some(true)),
            (ServerLegTls::IfOffered, true, false, Some(false)),
            (ServerLegTls::Always, false, true, Some(true)),
            (ServerLegTls::Always, false, false, None),
        ] {
            let legs = TlsPolicy {
                offered: true,
                server,
                ..TlsPolicy::PLAIN
            };
            let agreed = legs.agree(client, can).ok();
            assert_eq!(agreed.map(|agreed| agreed.server), expected, "{server:?}");
        }
    }

    #[test]
    fn what_a_server_without_tls_makes_void_is_named_with_two_ways_out() {
        let mirrored = TlsPolicy {
            offered: true,
            ..TlsPolicy::PLAIN
        };
        let required = TlsPolicy {
            client_required: true,
            ..mirrored
        };
        let strict = TlsPolicy {
            server_required: true,
            ..mirrored
        };
        for (legs, named) in [
            (mirrored, "tls.self_signed"),
            (required, "tls.required"),
            (strict, "upstream_tls.mode"),
        ] {
            let void = legs.voided_settings(false).unwrap_or_default();
            assert!(void.contains(named) && void.contains("ssl_cert"), "{void}");
            assert_eq!(legs.voided_settings(true), None);
        }
        let ended = TlsPolicy {
            server: ServerLegTls::IfOffered,
            ..required
        };
        let passed = TlsPolicy {
            passthrough: true,
            ..TlsPolicy::PLAIN
        };
        for legs in [ended, passed, TlsPolicy::PLAIN] {
            assert_eq!(legs.voided_settings(false), None);
        }
    }

    #[test]
    fn a_refusal_names_the_setting() {
        let strict = TlsPolicy {
            offered: true,
            client_required: true,
            ..TlsPolicy::PLAIN
        };
        assert!(strict.agree(true, true).is_ok());
        let told = strict.agree(false, true).unwrap_err();
        assert!(told.contains("tls.required"), "{told}");
        let local = TlsPolicy {
            local_client: true,
            ..strict
        };
        assert!(local.agree(false, true).is_ok());
        let verified = TlsPolicy {
            server_required: true,
            ..TlsPolicy::PLAIN
        };
        let told = verified.agree(false, true).unwrap_err();
        assert!(told.contains("upstream_tls.mirror"), "{told}");
    }

    #[test]
    fn tls_is_offered_where_both_legs_can_have_what_they_should() {
        let plain = TlsPolicy::PLAIN;
        assert!(!plain.offers(true));
        let mirror = TlsPolicy {
            offered: true,
            ..plain
        };
        assert!(mirror.offers(true) && !mirror.offers(false));
        let never = TlsPolicy {
            server: ServerLegTls::Never,
            ..mirror
        };
        assert!(never.offers(false));
        let passing = TlsPolicy {
            passthrough: true,
            ..plain
        };
        assert!(passing.offers(true) && !passing.offers(false));
    }

    #[test]
    fn numbers_are_one_apart_where_one_leg_has_tls() {
        let legs = TlsPolicy {
            offered: true,
            server: ServerLegTls::Never,
            ..TlsPolicy::PLAIN
        };
        let agreed = legs.agree(true, true).unwrap();
        assert_eq!((agreed.to_server(2), agreed.to_client(2)), (1, 3));
        assert!(agreed.renumbers() && agreed.is_mixed());
        assert!(agreed.obstacle(b"\x01\x04").is_some());
        assert!(agreed.obstacle(b"\x01\x03").is_none());
        let local = TlsPolicy {
            local_server: true,
            ..legs
        };
        assert!(!local.agree(true, true).unwrap().is_mixed());
    }
}
