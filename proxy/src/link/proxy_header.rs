//! The PROXY protocol: a header before everything else, by which a load balancer reports the client's address.

use std::io;
use std::net::{IpAddr, SocketAddr};

use ppp::{HeaderResult, PartialResult, v1, v2};
use serde::{Deserialize, Serialize};

use super::NetworkLink;

/// Longest header: addresses take 52 bytes, the rest is for extensions.
const MAX_HEADER_BYTES: usize = 4 * 1024;

/// The version of the header that the server is sent (`proxy_protocol.send`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyHeaderVersion {
    /// No header: the server sees Headwater's address.
    #[default]
    None,
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Waits for a header; returns the client's address (`None`: the balancer itself) and the bytes after the header.
///
/// # Errors
/// `InvalidData` if it is no header; others if the connection fails.
pub async fn read(link: &mut NetworkLink) -> io::Result<(Option<SocketAddr>, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if link.read_more(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((source, length)) = parse(&bytes)? {
            return Ok((source, bytes.split_off(length.min(bytes.len()))));
        }
    }
}

/// Parses a header: the client's address, and the header's length. `None`: incomplete.
///
/// # Errors
/// `InvalidData` if it is no header, or too long.
pub fn parse(bytes: &[u8]) -> io::Result<Option<(Option<SocketAddr>, usize)>> {
    let header = HeaderResult::parse(bytes);
    if header.is_incomplete() && bytes.len() < MAX_HEADER_BYTES {
        return Ok(None);
    }
    match header {
        HeaderResult::V1(Ok(header)) => {
            Ok(Some((source_v1(header.addresses), header.header.len())))
        }
        HeaderResult::V2(Ok(header)) => Ok(Some((source_v2(&header), header.len()))),
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => {
            let what = "no PROXY header from an address of proxy_protocol.trusted";
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        }
    }
}

/// Body of the fuzz target `proxy_header`: any bytes are a header, the start of one, or refused; the result does not depend on the bytes
/// after it.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    if let Ok(Some((source, length))) = parse(data) {
        assert!(length <= data.len());
        let alone = data.get(..length).unwrap_or_default();
        assert!(matches!(parse(alone), Ok(Some(again)) if again == (source, length)));
    }
}

fn source_v1(addresses: v1::Addresses) -> Option<SocketAddr> {
    match addresses {
        v1::Addresses::Tcp4(ends) => Some((ends.source_address, ends.source_port).into()),
        v1::Addresses::Tcp6(ends) => Some((ends.source_address, ends.source_port).into()),
        v1::Addresses::Unknown => None,
    }
}

fn source_v2(header: &v2::Header<'_>) -> Option<SocketAddr> {
    match header.addresses {
        _ if header.command == v2::Command::Local => None,
        v2::Addresses::IPv4(ends) => Some((ends.source_address, ends.source_port).into()),
        v2::Addresses::IPv6(ends) => Some((ends.source_address, ends.source_port).into()),
        v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
    }
}

/// The header for a server: the client's address, and the address it connected to; `None`: unknown.
#[must_use]
pub fn header(send: ProxyHeaderVersion, ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let ends = ends.map(|(source, destination)| same_family(source, destination));
    match send {
        ProxyHeaderVersion::None => Vec::new(),
        ProxyHeaderVersion::V1 => {
            let addresses = ends.map_or(v1::Addresses::Unknown, Into::into);
            addresses.to_string().into_bytes()
        }
        ProxyHeaderVersion::V2 => {
            let (command, protocol) = match ends {
                Some(_) => (v2::Command::Proxy, v2::Protocol::Stream),
                None => (v2::Command::Local, v2::Protocol::Unspecified),
            };
            let addresses: v2::Addresses = ends.map_or(v2::Addresses::Unspecified, Into::into);
            v2::Builder::with_addresses(v2::Version::Two | command, protocol, addresses)
                .build()
                .unwrap_or_default()
        }
    }
}

/// Converts two addresses to one family.
fn same_family(source: SocketAddr, destination: SocketAddr) -> (SocketAddr, SocketAddr) {
    let [one, other] = [source, destination]
        .map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()));
    if one.is_ipv4() == other.is_ipv4() {
        return (one, other);
    }
    let mapped = |address: SocketAddr| {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        SocketAddr::new(ip.into(), address.port())
    };
    (mapped(one), mapped(other))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_says_who_the_client_is() {
        let ends = |source: &str, destination: &str| {
            Some((source.parse().unwrap(), destination.parse().unwrap()))
        };
        let four = ends("192.0.2.7:4000", "127.0.0.1:3307");
        assert_eq!(
            header(ProxyHeaderVersion::V1, four),
            b"PROXY TCP4 192.0.2.7 127.0.0.1 4000 3307\r\n"
        );
        let mixed = ends("[::ffff:192.0.2.7]:4000", "127.0.0.1:3307");
        assert_eq!(
            header(ProxyHeaderVersion::V1, mixed),
            header(ProxyHeaderVersion::V1, four)
        );
        assert_eq!(header(ProxyHeaderVersion::V1, None), b"PROXY UNKNOWN\r\n");
        assert_eq!(header(ProxyHeaderVersion::None, four), b"");
        for known in [four, ends("[2001:db8::7]:4000", "127.0.0.1:3307")] {
            let header = header(ProxyHeaderVersion::V2, known);
            let read = v2::Header::try_from(&header[..]).unwrap();
            assert_eq!(source_v2(&read), known.map(|(source, _)| source));
        }
        let local = header(ProxyHeaderVersion::V2, None);
        let read = v2::Header::try_from(&local[..]).unwrap();
        assert_eq!((source_v2(&read), read.len()), (None, 16));
    }

    proptest! {
        #[test]
        fn the_fuzz_target_holds_for_headers_that_are_nearly_right(
            form in prop::sample::select(&[ProxyHeaderVersion::V1, ProxyHeaderVersion::V2][..]),
            known in any::<bool>(),
            begun in prop::collection::vec(any::<u8>(), 0..40),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let ends = ("192.0.2.7:4000".parse().unwrap(), "127.0.0.1:3307".parse().unwrap());
            let mut data = header(form, known.then_some(ends));
            let length = data.len();
            data.extend(begun);
            prop_assert_eq!(parse(&data).unwrap(), Some((known.then_some(ends.0), length)));
            if let Some(changed) = data.get_mut(at.index(length)) {
                *changed = byte;
            }
            fuzz(&data);
        }
    }
}
