//! A login without a user: sent to a server in place of a login that was cut off.
//!
//! Servers count a login that ends before it was sent as an error of its host (`max_connect_errors`, MySQL 9.7 and MariaDB 10.11), but not
//! a denied one.

use headwater_wire::capability::Capabilities;
use headwater_wire::packet;

/// An account that does not exist; servers write it to their logs.
pub const ACCOUNT_NAME: &[u8] = b"headwater-cut-login";

const LOGIN_CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH);
/// utf8mb4_general_ci.
const COLLATION: u8 = 45;
const MAX_PACKET: u32 = 1 << 24;
/// As long as the plugin's real responses, but valid for no password.
const AUTH_RESPONSE: &[u8; AUTH_RESPONSE_BYTES as usize] = b"no answer of anybody";
const AUTH_RESPONSE_BYTES: u8 = 20;
const PLUGIN: &[u8] = b"mysql_native_password";

/// The login packet; `in_tls`: a request for TLS preceded it.
#[must_use]
pub fn login(in_tls: bool) -> Vec<u8> {
    let flags = match in_tls {
        true => LOGIN_CAPABILITIES.union(Capabilities::SSL),
        false => LOGIN_CAPABILITIES,
    };
    let mut payload = Vec::new();
    let [a, b, c, d, ..] = flags.0.to_le_bytes();
    payload.extend([a, b, c, d]);
    payload.extend(MAX_PACKET.to_le_bytes());
    payload.push(COLLATION);
    payload.extend([0; 23]);
    payload.extend_from_slice(ACCOUNT_NAME);
    payload.push(0);
    payload.push(AUTH_RESPONSE_BYTES);
    payload.extend_from_slice(AUTH_RESPONSE);
    payload.extend_from_slice(PLUGIN);
    payload.push(0);
    let mut packet = Vec::new();
    packet::encode(1 + u8::from(in_tls), &payload, &mut packet);
    packet
}

/// The response to the server's next packet; `None`: the server has decided.
#[must_use]
pub fn auth_response(packet: &[u8]) -> Option<Vec<u8>> {
    const AUTH_SWITCH_REQUEST: u8 = 0xfe;
    const AUTH_MORE_DATA: u8 = 0x01;
    let payload = packet::complete_payload(packet)?;
    let seq = packet::PacketHeader::parse(packet)?.seq;
    let is_request = matches!(
        payload.first(),
        Some(&(AUTH_SWITCH_REQUEST | AUTH_MORE_DATA))
    );
    is_request.then(|| {
        let mut answer = Vec::new();
        packet::encode(seq.wrapping_add(1), &[], &mut answer);
        answer
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_wire::handshake::LoginRequest;

    #[test]
    fn the_login_has_the_placeholder_account() {
        for (in_tls, seq) in [(false, 1), (true, 2)] {
            let packet = login(in_tls);
            assert_eq!(packet.get(3), Some(&seq));
            let Some(Ok(LoginRequest::Response(response))) =
                packet::complete_payload(&packet).map(LoginRequest::parse)
            else {
                unreachable!("no login: {packet:?}");
            };
            assert_eq!(response.user, ACCOUNT_NAME);
            assert_eq!(response.capabilities.contains(Capabilities::SSL), in_tls);
            assert_eq!(response.auth_plugin, Some(PLUGIN));
        }
    }

    #[test]
    fn questions_are_answered_and_judgements_are_not() {
        assert_eq!(auth_response(b"\x02\0\0\x02\xfea"), Some(vec![0, 0, 0, 3]));
        assert_eq!(
            auth_response(b"\x02\0\0\x04\x01\x04"),
            Some(vec![0, 0, 0, 5])
        );
        assert_eq!(auth_response(b"\x03\0\0\x02\xff\x15\x04"), None);
        assert_eq!(auth_response(b"\x01\0\0\x02\0"), None);
        assert_eq!(auth_response(b"\x09\0\0\x02\xff"), None);
    }
}
