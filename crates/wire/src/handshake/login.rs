//! The client's answer to the greeting: user, database and capabilities.

use crate::capability::Capabilities;
use crate::compression::DEFAULT_ZSTD_LEVEL;
use crate::cursor::{MalformedPacket, PacketCursor};

/// Bytes of an SSLRequest, which is a login that ends before the user.
const SSL_REQUEST_BYTES: usize = 32;
/// Bytes of the flags at its beginning.
const FLAG_BYTES: usize = 4;

/// A client's answer to a greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginRequest<'a> {
    /// A login of the protocol since 4.1.
    Response(LoginResponse<'a>),
    /// The client requests TLS before its login.
    SslRequest(Capabilities),
    /// A login of the protocol before 4.1; nothing after its flags is read.
    Pre41(Capabilities),
}

/// `HandshakeResponse41`, without authentication data and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginResponse<'a> {
    /// The capabilities that the client requests; those used are the intersection with the server's (see [`Capabilities::intersection`]).
    pub capabilities: Capabilities,
    /// The longest packet the client accepts, in bytes.
    pub max_packet: u32,
    /// Id of the collation, its low byte.
    pub charset: u8,
    /// Account name; empty for the anonymous one.
    pub user: &'a [u8],
    /// Database to start in; `None` when none is named.
    pub database: Option<&'a [u8]>,
    /// The zstd level that the client requests, if it supports zstd.
    pub zstd_level: Option<u8>,
    /// Plugin the client used for its first authentication data.
    pub auth_plugin: Option<&'a [u8]>,
}

impl<'a> LoginRequest<'a> {
    /// Reads the payload of the client's first packet.
    ///
    /// # Errors
    /// [`MalformedPacket`] when a field is cut short: such a login is left to the server.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = PacketCursor::new(payload);
        // A login before 4.1 has two bytes of flags before the three of the packet limit.
        let low = Capabilities(cursor.u16()?.into());
        if !low.contains(Capabilities::PROTOCOL_41) {
            return Ok(Self::Pre41(low));
        }
        let mut cursor = PacketCursor::new(payload);
        let client = cursor.u32()?;
        let max_packet = cursor.u32()?;
        let charset = cursor.u8()?;
        cursor.take(19)?;
        let mariadb = cursor.u32()?;
        let mut capabilities = Capabilities::from_parts(client, 0);
        if !capabilities.contains(Capabilities::LONG_PASSWORD) {
            capabilities = Capabilities::from_parts(client, mariadb);
        }
        if payload.len() == SSL_REQUEST_BYTES && capabilities.contains(Capabilities::SSL) {
            return Ok(Self::SslRequest(capabilities));
        }
        let user = cursor.nul_bytes()?;
        skip_auth_data(&mut cursor, capabilities)?;
        let database = optional_field(&mut cursor, capabilities, Capabilities::CONNECT_WITH_DB)?;
        let auth_plugin = optional_field(&mut cursor, capabilities, Capabilities::PLUGIN_AUTH)?;
        let zstd = capabilities.contains(Capabilities::ZSTD_COMPRESSION);
        Ok(Self::Response(LoginResponse {
            zstd_level: payload.last().copied().filter(|_| zstd),
            capabilities,
            max_packet,
            charset,
            user,
            database,
            auth_plugin,
        }))
    }
}

/// The same login, or request for TLS, with the flags of `mask` replaced by those of `flags`, where the server connection differs from
/// the client's. For SSL and compression; the zstd level is added or removed with its flag.
#[must_use]
pub fn login_with_flags(payload: &[u8], mask: Capabilities, flags: Capabilities) -> Vec<u8> {
    let mut login = payload.to_vec();
    let bytes = mask.0.to_le_bytes().into_iter().zip(flags.0.to_le_bytes());
    for (byte, (mask, flags)) in login.iter_mut().take(FLAG_BYTES).zip(bytes) {
        *byte = *byte & !mask | flags & mask;
    }
    let requests_zstd = |login: &[u8]| {
        let flags = login
            .first_chunk()
            .map_or(0, |flags| u32::from_le_bytes(*flags));
        Capabilities::from_parts(flags, 0).contains(Capabilities::ZSTD_COMPRESSION)
    };
    if payload.len() > SSL_REQUEST_BYTES {
        match (requests_zstd(payload), requests_zstd(&login)) {
            (true, false) => drop(login.pop()),
            (false, true) => login.push(DEFAULT_ZSTD_LEVEL),
            _ => {}
        }
    }
    login
}

/// The request for TLS before the login `payload`, or `payload` if it is one; with `flags` as in [`login_with_flags`].
#[must_use]
pub fn ssl_request(payload: &[u8], mask: Capabilities, flags: Capabilities) -> Vec<u8> {
    let head = payload.get(..SSL_REQUEST_BYTES).unwrap_or(payload);
    let (mask, flags) = (
        mask.union(Capabilities::SSL),
        flags.union(Capabilities::SSL),
    );
    login_with_flags(head, mask, flags)
}

fn skip_auth_data(
    cursor: &mut PacketCursor<'_>,
    capabilities: Capabilities,
) -> Result<(), MalformedPacket> {
    if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
        cursor.lenenc_bytes()?;
    } else if capabilities.contains(Capabilities::SECURE_CONNECTION) {
        let length = cursor.u8()?;
        cursor.take(length.into())?;
    } else {
        cursor.nul_bytes()?;
    }
    Ok(())
}

/// A NUL-terminated field that is present with `flag`; an empty name is `None`.
fn optional_field<'a>(
    cursor: &mut PacketCursor<'a>,
    capabilities: Capabilities,
    flag: Capabilities,
) -> Result<Option<&'a [u8]>, MalformedPacket> {
    if !capabilities.contains(flag) {
        return Ok(None);
    }
    let name = cursor.nul_bytes()?;
    Ok((!name.is_empty()).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSIC: u32 = 0x0000_0200 | 0x8000 | 0x8 | 1;

    fn login(client: u32, mariadb: u32, rest: &[u8]) -> Vec<u8> {
        let mut payload = client.to_le_bytes().to_vec();
        payload.extend(0x0100_0000_u32.to_le_bytes());
        payload.push(45);
        payload.extend([0; 19]);
        payload.extend(mariadb.to_le_bytes());
        payload.extend_from_slice(rest);
        payload
    }

    fn response(payload: &[u8]) -> Option<LoginResponse<'_>> {
        match LoginRequest::parse(payload) {
            Ok(LoginRequest::Response(response)) => Some(response),
            _ => None,
        }
    }

    #[test]
    fn reads_user_and_database_after_authentication_data_of_each_coding() {
        for (extra, auth) in [(0, &b"\x03a\0b"[..]), (1 << 21, b"\xfc\x03\x00a\0b")] {
            let mut rest = b"root\0".to_vec();
            rest.extend_from_slice(auth);
            rest.extend_from_slice(b"tl\0");
            let payload = login(CLASSIC | extra, 0, &rest);
            let read = response(&payload);
            assert_eq!(read.as_ref().map(|login| login.user), Some(&b"root"[..]));
            assert_eq!(read.and_then(|login| login.database), Some(&b"tl"[..]));
        }
    }

    #[test]
    fn mariadb_flags_count_only_without_the_mysql_bit() {
        for (client, expected) in [(CLASSIC, false), (CLASSIC & !1, true)] {
            let payload = login(client, 0x10, b"u\0\0tl\0");
            let capabilities = response(&payload).map(|login| login.capabilities);
            let cached = capabilities.map(|all| all.contains(Capabilities::MARIADB_CACHE_METADATA));
            assert_eq!(cached, Some(expected));
        }
    }

    #[test]
    fn the_level_of_zstd_is_the_last_field() {
        for (flag, level) in [(0, None), (1 << 26, Some(7))] {
            let asking = login(CLASSIC | flag, 0, b"root\0\0tl\0\x07");
            assert_eq!(response(&asking).and_then(|login| login.zstd_level), level);
        }
    }

    #[test]
    fn a_request_for_tls_is_a_logins_head() {
        let plain = login(CLASSIC, 0, b"root\0\0tl\0");
        const NONE: Capabilities = Capabilities::NONE;
        let request = ssl_request(&plain, NONE, NONE);
        assert!(matches!(
            LoginRequest::parse(&request),
            Ok(LoginRequest::SslRequest(_))
        ));
        let enciphered = login_with_flags(&plain, Capabilities::SSL, Capabilities::SSL);
        let capabilities = response(&enciphered).map(|login| login.capabilities);
        assert!(capabilities.is_some_and(|all| all.contains(Capabilities::SSL)));
        assert_eq!(ssl_request(&enciphered, NONE, NONE), request);
        assert_eq!(
            login_with_flags(&enciphered, Capabilities::SSL, NONE),
            plain
        );
        assert!(login_with_flags(b"", Capabilities::SSL, Capabilities::SSL).is_empty());
    }

    #[test]
    fn ways_to_compress_are_put_in_and_taken_out_with_the_level() {
        let (zlib, zstd) = (Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION);
        let both = zlib.union(zstd);
        let plain = login(CLASSIC, 0, b"root\0\0tl\0");
        let leveled = login(CLASSIC | 1 << 26, 0, b"root\0\0tl\0\x07");
        let asked = |payload: &[u8]| {
            let read = response(payload)?;
            Some((read.capabilities.intersection(both), read.zstd_level))
        };
        for (from, to, level) in [
            (&plain, zlib, None),
            (&plain, zstd, Some(3)),
            (&leveled, zstd, Some(7)),
            (&leveled, both, Some(7)),
            (&leveled, zlib, None),
        ] {
            let changed = login_with_flags(from, both, to);
            assert_eq!(asked(&changed), Some((to, level)));
            assert_eq!(login_with_flags(&changed, both, Capabilities::NONE), plain);
            let request = ssl_request(from, both, to);
            assert_eq!(request.len(), SSL_REQUEST_BYTES);
            assert_eq!(request, ssl_request(&changed, Capabilities::NONE, to));
        }
    }

    #[test]
    fn an_ssl_request_and_an_old_login_are_distinguished() {
        assert!(matches!(
            LoginRequest::parse(&login(CLASSIC | 0x800, 0, b"")),
            Ok(LoginRequest::SslRequest(_))
        ));
        assert!(matches!(
            LoginRequest::parse(b"\x05\x24\x00\x00\x00root\0pass"),
            Ok(LoginRequest::Pre41(_))
        ));
        assert!(LoginRequest::parse(&login(CLASSIC, 0, b"")).is_err());
    }
}
