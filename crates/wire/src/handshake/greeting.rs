//! The server's first packet: its version and capabilities.

use crate::capability::Capabilities;
use crate::cursor::{MalformedPacket, PacketCursor};

/// Protocol version of every server since MySQL 3.22.
const PROTOCOL: u8 = 10;
/// Bytes of the scramble before the flags, in every greeting.
const SCRAMBLE_HEAD: usize = 8;
/// MariaDB 10 and older put this prefix before their version, for old replicas.
const REPLICATION_PREFIX: &[u8] = b"5.5.5-";

/// The greeting (`HandshakeV10`), without its reserved bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerGreeting {
    /// Version as the server writes it, e.g. `9.7.4` or `5.5.5-10.11.19-MariaDB-log`.
    pub server_version: Vec<u8>,
    /// Connection id, as in `KILL`.
    pub thread_id: u32,
    /// The server's capabilities, MariaDB's included.
    pub capabilities: Capabilities,
    /// Id of the default collation, its low byte.
    pub charset: u8,
    /// Status flags.
    pub status: u16,
    /// The scramble, without its final NUL; 20 bytes from every server of today.
    pub scramble: Vec<u8>,
    /// Name of the plugin that made the scramble; empty without PLUGIN_AUTH.
    pub auth_plugin: Vec<u8>,
}

impl ServerGreeting {
    /// Reads a greeting from the payload of the server's first packet.
    ///
    /// # Errors
    /// [`MalformedPacket::Unexpected`] at offset 0 when the payload is no greeting of protocol version 10 (0xFF: the server
    /// refuses with an ERR packet); any other when a field is cut short.
    pub fn parse(payload: &[u8]) -> Result<Self, MalformedPacket> {
        parse_with_flags_offset(payload).map(|(greeting, _)| greeting)
    }

    /// True when the server is MariaDB, by its version or by flags that only MariaDB has.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.server_version
            .windows(7)
            .any(|window| window.eq_ignore_ascii_case(b"mariadb"))
            || self.capabilities.0 >> 32 != 0
    }

    /// The three numbers of the version, without MariaDB's prefix; `None` when the version does not start with them.
    #[must_use]
    pub fn version(&self) -> Option<(u16, u16, u16)> {
        let text = self
            .server_version
            .strip_prefix(REPLICATION_PREFIX)
            .unwrap_or(&self.server_version);
        let mut numbers = text.splitn(3, |byte| *byte == b'.').map(|part| {
            let digits = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(part.get(..digits)?).ok()?.parse().ok()
        });
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    }
}

/// The same greeting with the flags of `mask` replaced by those of `flags`; no other byte changes. For flags of the protocol's 32 bits
/// that no other field depends on.
///
/// # Errors
/// As [`ServerGreeting::parse`]: what is no greeting must be relayed unchanged.
pub fn greeting_with_flags(
    payload: &[u8],
    mask: Capabilities,
    flags: Capabilities,
) -> Result<Vec<u8>, MalformedPacket> {
    let (_, flags_at) = parse_with_flags_offset(payload)?;
    let mut greeting = payload.to_vec();
    // The upper half comes after collation and status, and is missing from servers before 4.1.
    let offsets = [flags_at, flags_at + 1, flags_at + 5, flags_at + 6];
    let bytes = mask.0.to_le_bytes().into_iter().zip(flags.0.to_le_bytes());
    for (offset, (mask, flags)) in offsets.into_iter().zip(bytes) {
        if let Some(byte) = greeting.get_mut(offset) {
            *byte = *byte & !mask | flags & mask;
        }
    }
    Ok(greeting)
}

/// The greeting, and the offset of its flags.
fn parse_with_flags_offset(payload: &[u8]) -> Result<(ServerGreeting, usize), MalformedPacket> {
    let mut cursor = PacketCursor::new(payload);
    let protocol = cursor.u8()?;
    if protocol != PROTOCOL {
        return Err(MalformedPacket::Unexpected {
            at: 0,
            value: protocol.into(),
        });
    }
    let server_version = cursor.nul_bytes()?.to_vec();
    let thread_id = cursor.u32()?;
    let mut scramble = cursor.take(SCRAMBLE_HEAD)?.to_vec();
    cursor.u8()?;
    let flags_at = cursor.position();
    let low = cursor.u16()?;
    let mut greeting = ServerGreeting {
        server_version,
        thread_id,
        capabilities: Capabilities(low.into()),
        charset: 0,
        status: 0,
        scramble: Vec::new(),
        auth_plugin: Vec::new(),
    };
    // The greeting of servers before 4.1 ends here.
    if !cursor.is_empty() {
        greeting.charset = cursor.u8()?;
        greeting.status = cursor.u16()?;
        let high = cursor.u16()?;
        let scramble_bytes = usize::from(cursor.u8()?);
        cursor.take(6)?;
        let mariadb = cursor.u32()?;
        let client = u32::from(low) | u32::from(high) << 16;
        greeting.capabilities = Capabilities::from_parts(client, 0);
        if !greeting.capabilities.contains(Capabilities::LONG_PASSWORD) {
            greeting.capabilities = Capabilities::from_parts(client, mariadb);
        }
        if greeting
            .capabilities
            .intersects(Capabilities::SECURE_CONNECTION.union(Capabilities::PLUGIN_AUTH))
        {
            // At least 12 bytes and a NUL, regardless of the length (manual, HandshakeV10).
            let rest = cursor.take(scramble_bytes.saturating_sub(SCRAMBLE_HEAD).max(13))?;
            scramble.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
        }
        if greeting.capabilities.contains(Capabilities::PLUGIN_AUTH) {
            // Some servers of the 5.5 line omit the NUL.
            let name = cursor.rest();
            greeting.auth_plugin = name.strip_suffix(&[0]).unwrap_or(name).to_vec();
        }
    }
    greeting.scramble = scramble;
    Ok((greeting, flags_at))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn named(version: &str) -> ServerGreeting {
        ServerGreeting {
            server_version: version.into(),
            thread_id: 1,
            capabilities: Capabilities::LONG_PASSWORD,
            charset: 8,
            status: 2,
            scramble: Vec::new(),
            auth_plugin: Vec::new(),
        }
    }

    #[test]
    fn versions_are_three_numbers_whatever_surrounds_them() {
        for (text, version, mariadb) in [
            ("9.7.4", Some((9, 7, 4)), false),
            ("8.0.36-0ubuntu0.22.04.1", Some((8, 0, 36)), false),
            ("5.5.5-10.11.19-MariaDB-log", Some((10, 11, 19)), true),
            ("11.8.9-MariaDB", Some((11, 8, 9)), true),
            ("5.5.5", Some((5, 5, 5)), false),
            ("MySQL", None, false),
            ("8.x.1", None, false),
        ] {
            assert_eq!(named(text).version(), version, "{text}");
            assert_eq!(named(text).is_mariadb(), mariadb, "{text}");
        }
    }
}
