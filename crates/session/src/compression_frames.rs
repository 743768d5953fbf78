//! Which of a session's two connections use compressed frames: the client's leg and the server's leg.
//!
//! In frames, servers number a reply's packets from the frame number, again after each flush, and ignore the client's numbers; clients in
//! frames ignore numbers, too. Without frames both count, and end the session on an unexpected number. So where only one leg uses frames,
//! Headwater rewrites the numbers for the other. Where both do, a command may arrive in fewer frames than it leaves in, and the reply's
//! numbers are shifted by the difference.

use serde::{Deserialize, Serialize};

use super::tls_policy::error_bytes;
use headwater_wire::capability::Capabilities;
use headwater_wire::compression::CompressionAlgorithm;
use headwater_wire::response::ErrPacket;

/// ER_NOT_SUPPORTED_YET.
const UNSUPPORTED: u16 = 1235;
/// ER_NET_PACKETS_OUT_OF_ORDER.
const OUT_OF_ORDER: u16 = 1156;

/// Which compression algorithms clients are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientCompression {
    /// Those of the server.
    #[default]
    Mirror,
    /// All that a server of this product can have.
    Offer,
    /// None.
    Never,
}

/// When the server's leg is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerCompression {
    /// As the client's is, where the server can do the same.
    #[default]
    Mirror,
    /// Never.
    Never,
    /// Wherever the server can: with the client's algorithm if possible, else with zlib, else with zstd.
    WhereOffered,
}

/// Compression on either leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompressionPolicy {
    /// What clients are offered.
    pub clients: ClientCompression,
    /// When the server's leg is compressed.
    pub server: ServerCompression,
}

impl CompressionPolicy {
    /// Each leg mirrors the other.
    pub const MIRROR: CompressionPolicy = CompressionPolicy {
        clients: ClientCompression::Mirror,
        server: ServerCompression::Mirror,
    };

    /// The algorithms that a client is offered, given the server's. MariaDB has no zstd.
    #[must_use]
    pub fn offers(self, server: Capabilities, mariadb: bool) -> Capabilities {
        match self.clients {
            ClientCompression::Mirror => server.intersection(CompressionAlgorithm::FLAGS),
            ClientCompression::Offer if mariadb => Capabilities::COMPRESS,
            ClientCompression::Offer => CompressionAlgorithm::FLAGS,
            ClientCompression::Never => Capabilities::NONE,
        }
    }

    /// The algorithms to request from the server, given those that the client's leg may use and the server's own.
    #[must_use]
    pub fn agree(self, client: Capabilities, server: Capabilities) -> Capabilities {
        let can = server.intersection(CompressionAlgorithm::FLAGS);
        let alike = client.intersection(can);
        match self.server {
            ServerCompression::Never => Capabilities::NONE,
            ServerCompression::Mirror => alike,
            ServerCompression::WhereOffered if alike != Capabilities::NONE => alike,
            ServerCompression::WhereOffered if can.contains(Capabilities::COMPRESS) => {
                Capabilities::COMPRESS
            }
            ServerCompression::WhereOffered => can,
        }
    }
}

/// What each leg uses after the login: compressed frames, or plain packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionFrames {
    /// The client's leg.
    pub client: Option<CompressionAlgorithm>,
    /// The server's.
    pub server: Option<CompressionAlgorithm>,
}

/// Whose packets get other sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenumberedSide {
    /// Neither: both sides count alike.
    Neither,
    /// The server's: it counts frames, the client packets.
    Server,
    /// The client's: it counts frames, the server packets.
    Client,
}

impl CompressionFrames {
    /// Plain packets on both legs.
    pub const NONE: CompressionFrames = CompressionFrames {
        client: None,
        server: None,
    };

    /// True when the bytes of one leg cannot go to the other unchanged.
    #[must_use]
    pub fn differ(self) -> bool {
        self.client != self.server
    }

    /// True where both legs use frames: the server numbers a reply from the frames that it read, which are not the client's.
    #[must_use]
    pub fn both_compressed(self) -> bool {
        self.client.is_some() && self.server.is_some()
    }

    /// Whose numbers are rewritten here.
    #[must_use]
    pub fn renumbered_side(self) -> RenumberedSide {
        match (self.client, self.server) {
            (None, Some(_)) => RenumberedSide::Server,
            (Some(_), None) => RenumberedSide::Client,
            _ => RenumberedSide::Neither,
        }
    }
}

/// An ERR packet for the client: what cannot be relayed between the legs.
#[must_use]
pub fn refusal(seq: u8, what: &str) -> Vec<u8> {
    let message = format!(
        "{what} cannot go through Headwater while one side is compressed otherwise than the other: set compression.clients and \
         compression.server to \"mirror\""
    );
    let error = ErrPacket {
        code: UNSUPPORTED,
        sqlstate: Some(*b"42000"),
        message: message.into_bytes(),
    };
    error_bytes(seq, &error)
}

/// The servers' error to a client whose command does not begin with number 0; it always has number 0 itself.
#[must_use]
pub fn out_of_order() -> Vec<u8> {
    let error = ErrPacket {
        code: OUT_OF_ORDER,
        sqlstate: Some(*b"08S01"),
        message: b"Got packets out of order".to_vec(),
    };
    error_bytes(0, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Capabilities = Capabilities::NONE;
    const ZLIB: Capabilities = Capabilities::COMPRESS;
    const ZSTD: Capabilities = Capabilities::ZSTD_COMPRESSION;

    fn compression(clients: ClientCompression, server: ServerCompression) -> CompressionPolicy {
        CompressionPolicy { clients, server }
    }

    #[test]
    fn clients_are_offered_what_the_setting_allows() {
        for (clients, mariadb, server, offered) in [
            (ClientCompression::Mirror, false, ZSTD, ZSTD),
            (ClientCompression::Mirror, true, NONE, NONE),
            (ClientCompression::Offer, false, NONE, ZLIB.union(ZSTD)),
            (ClientCompression::Offer, true, NONE, ZLIB),
            (ClientCompression::Never, false, ZLIB.union(ZSTD), NONE),
        ] {
            let setting = compression(clients, ServerCompression::Mirror);
            // Other flags do not matter.
            let server = server.union(Capabilities::SSL);
            assert_eq!(setting.offers(server, mariadb), offered, "{clients:?}");
        }
    }

    #[test]
    fn the_servers_leg_follows_the_setting_and_its_capabilities() {
        let both = ZLIB.union(ZSTD);
        for (server, client, can, asked) in [
            (ServerCompression::Mirror, both, both, both),
            (ServerCompression::Mirror, ZSTD, both, ZSTD),
            (ServerCompression::Mirror, ZLIB, ZSTD, NONE),
            (ServerCompression::Mirror, NONE, both, NONE),
            (ServerCompression::Never, both, both, NONE),
            (ServerCompression::WhereOffered, NONE, both, ZLIB),
            (ServerCompression::WhereOffered, NONE, ZSTD, ZSTD),
            (ServerCompression::WhereOffered, ZSTD, both, ZSTD),
            (ServerCompression::WhereOffered, ZLIB, ZSTD, ZSTD),
            (ServerCompression::WhereOffered, ZLIB, NONE, NONE),
        ] {
            let setting = compression(ClientCompression::Offer, server);
            let can = can.union(Capabilities::SSL);
            assert_eq!(setting.agree(client, can), asked, "{server:?}, {client:?}");
        }
    }

    #[test]
    fn numbers_are_made_for_the_side_that_counts_packets() {
        let (zlib, zstd) = (
            Some(CompressionAlgorithm::Zlib),
            Some(CompressionAlgorithm::Zstd(3)),
        );
        for (client, server, differ, renumbered) in [
            (None, None, false, RenumberedSide::Neither),
            (zlib, zlib, false, RenumberedSide::Neither),
            (zlib, zstd, true, RenumberedSide::Neither),
            (None, zstd, true, RenumberedSide::Server),
            (zlib, None, true, RenumberedSide::Client),
        ] {
            let frames = CompressionFrames { client, server };
            assert_eq!(
                (frames.differ(), frames.renumbered_side()),
                (differ, renumbered)
            );
        }
    }
}
