//! The OK packet, including its forms as the end of a result set.

use super::{EOF, OK};
use crate::capability::Capabilities;
use crate::cursor::{MalformedPacket, PacketCursor, put_lenenc_bytes, put_lenenc_int};
use crate::status;

/// Bytes of the longest classic EOF packet; an OK packet with the same header has at least seven.
const CLASSIC_EOF_BYTES: usize = 5;
/// Type of the session state tracker that carries a system variable: its name and its value.
const TRACK_VARIABLE: u8 = 0x00;
/// Type of the session state tracker that carries the current database.
const TRACK_SCHEMA: u8 = 0x01;
/// By this variable MariaDB sends a client to another server (manual, "Connection Redirection").
const REDIRECT_VARIABLE: &[u8] = b"redirect_url";

/// A server's report of success.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OkPacket {
    /// Rows changed (or found, under FOUND_ROWS).
    pub affected_rows: u64,
    /// The first id of AUTO_INCREMENT, 0 for none.
    pub last_insert_id: u64,
    /// Status flags, see [`crate::status`].
    pub status: u16,
    /// Number of warnings, at most 65535.
    pub warnings: u16,
    /// Text for a human, mostly empty.
    pub info: Vec<u8>,
    /// The current database, if the server reports that it may have changed; empty without one.
    pub schema: Option<Vec<u8>>,
    /// True when the packet was longer than its reader held, or its trackers could not be read: `info` and `schema` may be
    /// missing, so the current database is unknown.
    pub truncated: bool,
}

impl OkPacket {
    /// Reads the payload of an OK packet, header 0x00.
    ///
    /// # Errors
    /// [`MalformedPacket`] when the header is another or a field before `info` is cut short. A fault after these sets
    /// `truncated`.
    pub fn parse(payload: &[u8], capabilities: Capabilities) -> Result<Self, MalformedPacket> {
        read_ok(payload, OK, capabilities)
    }

    /// Reads the end of a list of rows or columns: an OK packet with header 0xFE under DEPRECATE_EOF, else an EOF
    /// packet. The EOF's five bytes are accepted under DEPRECATE_EOF too, as both servers sometimes send them.
    ///
    /// # Errors
    /// As [`OkPacket::parse`].
    pub fn parse_end(payload: &[u8], capabilities: Capabilities) -> Result<Self, MalformedPacket> {
        if capabilities.contains(Capabilities::DEPRECATE_EOF) && payload.len() > CLASSIC_EOF_BYTES {
            return read_ok(payload, EOF, capabilities);
        }
        let mut cursor = expect_header(payload, EOF)?;
        let warnings = cursor.u16()?;
        let status = cursor.u16()?;
        Ok(Self {
            status,
            warnings,
            ..Self::default()
        })
    }

    /// Appends the payload of an OK packet, header 0x00, in the shortest form, as servers do.
    ///
    /// Only `schema` is written as a tracker, and only where SESSION_TRACK was negotiated; the status flag for trackers is set
    /// accordingly.
    pub fn write(&self, capabilities: Capabilities, out: &mut Vec<u8>) {
        let tracks = capabilities.contains(Capabilities::SESSION_TRACK);
        let schema = self.schema.as_ref().filter(|_| tracks);
        let mut status = self.status & !status::SESSION_STATE_CHANGED;
        if schema.is_some() {
            status |= status::SESSION_STATE_CHANGED;
        }
        out.push(OK);
        put_lenenc_int(self.affected_rows, out);
        put_lenenc_int(self.last_insert_id, out);
        out.extend(status.to_le_bytes());
        out.extend(self.warnings.to_le_bytes());
        if schema.is_some() || !self.info.is_empty() {
            put_lenenc_bytes(&self.info, out);
        }
        if let Some(schema) = schema {
            let mut name = Vec::new();
            put_lenenc_bytes(schema, &mut name);
            let mut tracker = vec![TRACK_SCHEMA];
            put_lenenc_bytes(&name, &mut tracker);
            put_lenenc_bytes(&tracker, out);
        }
    }

    /// True when another response follows.
    #[must_use]
    pub fn more_results(&self) -> bool {
        self.status & status::MORE_RESULTS != 0
    }
}

/// The OK packet of a login without its `redirect_url`; `None` where it has none, or an empty one.
#[must_use]
pub fn without_redirect(payload: &[u8], capabilities: Capabilities) -> Option<Vec<u8>> {
    if !capabilities.contains(Capabilities::SESSION_TRACK) {
        return None;
    }
    let mut cursor = expect_header(payload, OK).ok()?;
    cursor.lenenc_int().ok()?;
    cursor.lenenc_int().ok()?;
    let status_at = cursor.position();
    let status = cursor.u16().ok()?;
    let warnings = cursor.u16().ok()?;
    if status & status::SESSION_STATE_CHANGED == 0 {
        return None;
    }
    let info = cursor.lenenc_bytes().ok()?;
    let mut trackers = PacketCursor::new(cursor.lenenc_bytes().ok()?);
    let (mut remaining, mut removed) = (Vec::new(), false);
    while !trackers.is_empty() {
        let kind = trackers.u8().ok()?;
        let mut value = trackers.lenenc_bytes().ok()?.to_vec();
        if kind == TRACK_VARIABLE {
            let others = without_variable(&value, REDIRECT_VARIABLE).ok()?;
            removed |= others.len() < value.len();
            value = others;
        }
        if !value.is_empty() {
            remaining.push(kind);
            put_lenenc_bytes(&value, &mut remaining);
        }
    }
    if !removed {
        return None;
    }
    let mut packet = payload.get(..status_at)?.to_vec();
    let status = if remaining.is_empty() {
        status & !status::SESSION_STATE_CHANGED
    } else {
        status
    };
    packet.extend(status.to_le_bytes());
    packet.extend(warnings.to_le_bytes());
    if !remaining.is_empty() || !info.is_empty() {
        put_lenenc_bytes(info, &mut packet);
    }
    if !remaining.is_empty() {
        put_lenenc_bytes(&remaining, &mut packet);
    }
    packet.extend_from_slice(cursor.rest());
    Some(packet)
}

/// The pairs of name and value, without those of `name` whose value is not empty.
fn without_variable(pairs: &[u8], name: &[u8]) -> Result<Vec<u8>, MalformedPacket> {
    let mut cursor = PacketCursor::new(pairs);
    let mut remaining = Vec::new();
    while !cursor.is_empty() {
        let (one, value) = (cursor.lenenc_bytes()?, cursor.lenenc_bytes()?);
        if one != name || value.is_empty() {
            put_lenenc_bytes(one, &mut remaining);
            put_lenenc_bytes(value, &mut remaining);
        }
    }
    Ok(remaining)
}

fn expect_header(payload: &[u8], wanted: u8) -> Result<PacketCursor<'_>, MalformedPacket> {
    let mut cursor = PacketCursor::new(payload);
    let header = cursor.u8()?;
    if header == wanted {
        Ok(cursor)
    } else {
        Err(MalformedPacket::Unexpected {
            at: 0,
            value: header.into(),
        })
    }
}

fn read_ok(
    payload: &[u8],
    wanted: u8,
    capabilities: Capabilities,
) -> Result<OkPacket, MalformedPacket> {
    let mut cursor = expect_header(payload, wanted)?;
    let mut packet = OkPacket {
        affected_rows: cursor.lenenc_int()?,
        last_insert_id: cursor.lenenc_int()?,
        status: cursor.u16()?,
        warnings: cursor.u16()?,
        ..OkPacket::default()
    };
    packet.truncated = read_trailer(&mut cursor, capabilities, &mut packet).is_err();
    Ok(packet)
}

/// Reads info and trackers. Both servers write info as a length-encoded string even without SESSION_TRACK, where the
/// manual has it as the rest of the packet.
fn read_trailer(
    cursor: &mut PacketCursor<'_>,
    capabilities: Capabilities,
    packet: &mut OkPacket,
) -> Result<(), MalformedPacket> {
    let tracked = capabilities.contains(Capabilities::SESSION_TRACK)
        && packet.status & status::SESSION_STATE_CHANGED != 0;
    if cursor.is_empty() && !tracked {
        return Ok(());
    }
    packet.info = cursor.lenenc_bytes()?.to_vec();
    if tracked {
        let mut trackers = PacketCursor::new(cursor.lenenc_bytes()?);
        while !trackers.is_empty() {
            let kind = trackers.u8()?;
            let value = trackers.lenenc_bytes()?;
            if kind == TRACK_SCHEMA {
                packet.schema = Some(PacketCursor::new(value).lenenc_bytes()?.to_vec());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use mysql_common::constants::CapabilityFlags;
    use mysql_common::io::ParseBuf;
    use mysql_common::packets::{CommonOkPacket, OkPacketDeserializer};
    use proptest::prelude::*;

    const TRACK: Capabilities = Capabilities::SESSION_TRACK;

    fn written(packet: &OkPacket, capabilities: Capabilities) -> Vec<u8> {
        let mut out = Vec::new();
        packet.write(capabilities, &mut out);
        out
    }

    #[test]
    fn mysql_9_7_answers_a_call_in_seven_bytes() {
        let payload = b"\0\0\0\xe2\0\x01\0";
        let packet = OkPacket::parse(payload, TRACK).unwrap();
        assert_eq!(
            (packet.affected_rows, packet.status, packet.warnings),
            (0, 0xE2, 1)
        );
        assert_eq!(written(&packet, TRACK), payload);
    }

    #[test]
    fn use_reports_the_current_database() {
        let payload = b"\0\0\0\x02\x40\0\0\0\x05\x01\x03\x02tl";
        let packet = OkPacket::parse(payload, TRACK).unwrap();
        assert_eq!(packet.schema.as_deref(), Some(&b"tl"[..]));
        assert!(!packet.truncated);
        assert_eq!(written(&packet, TRACK), payload);
        assert_eq!(written(&packet, Capabilities::NONE), b"\0\0\0\x02\0\0\0");
    }

    #[test]
    fn a_redirect_is_left_out_and_nothing_else() {
        let redirect = b"\x00\x18\x0credirect_url\x0amysql://a/";
        let other = b"\x00\x0f\x0aautocommit\x03OFF";
        let schema = b"\x01\x03\x02tl";
        let packet = |trackers: &[&[u8]], info: &[u8]| {
            let trackers = trackers.concat();
            let tracked = if trackers.is_empty() { 0 } else { 0x40 };
            let mut packet = [b"\0\x05\x06\x02", &[tracked][..], b"\x07\0"].concat();
            if !trackers.is_empty() || !info.is_empty() {
                put_lenenc_bytes(info, &mut packet);
            }
            if !trackers.is_empty() {
                put_lenenc_bytes(&trackers, &mut packet);
            }
            packet
        };
        for (with, without) in [
            (vec![&redirect[..]], vec![]),
            (vec![&other[..], redirect, schema], vec![&other[..], schema]),
        ] {
            for info in [&b""[..], b"info"] {
                let result = without_redirect(&packet(&with, info), TRACK);
                assert_eq!(result, Some(packet(&without, info)));
            }
        }
        let both = [&redirect[2..], &other[2..]].concat();
        let tracker = [b"\x00\x27", &both[..]].concat();
        let result = without_redirect(&packet(&[&tracker], b""), TRACK);
        assert_eq!(result, Some(packet(&[other], b"")));
        // MariaDB 11.8 sends it at each login, set or not.
        let unset = b"\x00\x0e\x0credirect_url\x00";
        for untouched in [
            vec![],
            vec![&other[..]],
            vec![&schema[..]],
            vec![&unset[..]],
        ] {
            assert_eq!(without_redirect(&packet(&untouched, b"x"), TRACK), None);
        }
        let mut cut = packet(&[redirect], b"");
        cut.pop();
        assert_eq!(without_redirect(&cut, TRACK), None);
        assert_eq!(
            without_redirect(&packet(&[redirect], b""), Capabilities::NONE),
            None
        );
    }

    #[test]
    fn trackers_that_are_cut_off_leave_the_database_unknown() {
        let packet = OkPacket::parse(b"\0\0\0\x02\x40\0\0\0\x05\x01\x03", TRACK).unwrap();
        assert!(packet.truncated);
        assert_eq!(packet.schema, None);
    }

    #[test]
    fn an_end_is_a_classic_eof_or_an_ok_packet() {
        let classic = OkPacket::parse_end(b"\xfe\x01\0\x22\0", Capabilities::NONE).unwrap();
        let new =
            OkPacket::parse_end(b"\xfe\0\0\x22\0\x01\0", Capabilities::DEPRECATE_EOF).unwrap();
        assert_eq!(classic, new);
        assert_eq!(
            OkPacket::parse_end(b"\xfe\x01\0\x22\0", Capabilities::DEPRECATE_EOF),
            Ok(classic)
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again_and_by_mysql_common_alike(
            affected_rows: u64, last_insert_id: u64, status: u16, warnings: u16,
            info in prop::collection::vec(any::<u8>(), 0..300),
            schema in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
            track: bool,
        ) {
            // Bit 2 has no name, and mysql_common refuses it.
            let status = status & !status::SESSION_STATE_CHANGED & !4;
            let caps = if track { TRACK } else { Capabilities::NONE };
            let schema = schema.filter(|_| track);
            let mut packet =
                OkPacket { affected_rows, last_insert_id, status, warnings, info, schema, truncated: false };
            let bytes = written(&packet, caps);
            if packet.schema.is_some() {
                packet.status |= status::SESSION_STATE_CHANGED;
            }
            prop_assert_eq!(OkPacket::parse(&bytes, caps).unwrap(), packet.clone());

            let theirs_caps = CapabilityFlags::from_bits_truncate(u32::try_from(caps.0).unwrap());
            let theirs = ParseBuf(&bytes)
                .parse::<OkPacketDeserializer<'_, CommonOkPacket>>(theirs_caps).unwrap().into_inner();
            prop_assert_eq!(theirs.affected_rows(), affected_rows);
            prop_assert_eq!(theirs.status_flags().bits(), packet.status);
            prop_assert_eq!(theirs.info_ref().unwrap_or_default(), &packet.info[..]);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), caps: u64) {
            let caps = Capabilities(caps);
            let _ = OkPacket::parse(&bytes, caps);
            let _ = OkPacket::parse_end(&bytes, caps);
        }
    }
}
