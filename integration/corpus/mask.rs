//! Bytes in which two plays of one conversation may differ.

use crate::kit::wire_client::packet::Values;

/// Masks a reply in place.
pub(super) type Mask = fn(&mut Vec<u8>);

pub(super) fn none(_: &mut Vec<u8>) {}

/// Masks thread id and scramble in the greeting, the scramble of an AuthSwitchRequest, and the proof that MariaDB 11.8 derives from
/// scramble, password and certificate in the OK.
pub(super) fn login(raw: &mut [u8]) {
    if raw.get(4) == Some(&10) {
        let mut values = Values(&raw[5..]);
        values.until_nul();
        let id = raw.len() - values.0.len();
        // The thread id and the scramble's first 8 bytes; the other 12 follow 19 bytes later.
        raw[id..id + 12].fill(0);
        raw[id + 31..id + 43].fill(0);
    }
    switch(raw);
}

/// Masks the scramble of each AuthSwitchRequest and the proof in each OK.
fn switch(raw: &mut [u8]) {
    let mut at = 0;
    while at + 4 < raw.len() {
        let end = at + 4 + Values(&raw[at..]).int(3) as usize;
        let packet = &mut raw[at..end];
        if packet[4] == 0xfe && packet.len() > 5 {
            let name = packet[5..].iter().position(|&byte| byte == 0);
            packet[5 + name.unwrap_or_default()..].fill(0);
        }
        // The message holds its length, 1, then SHA-256 in hexadecimal.
        if packet[4] == 0
            && let Some([65, 1, proof @ ..]) = packet.get_mut(11..)
        {
            proof[..64].fill(0);
        }
        at = end;
    }
}

/// Masks the numbers of COM_STATISTICS, and thus its length.
pub(super) fn numbers(raw: &mut Vec<u8>) {
    let mut masked = vec![0; 3];
    for &byte in &raw[3..] {
        if !byte.is_ascii_digit() {
            masked.push(byte);
        } else if masked.last() != Some(&b'0') {
            masked.push(b'0');
        }
    }
    *raw = masked;
}

/// Masks the rows: they list other sessions and times. The first packet and the column definitions remain.
pub(super) fn rows(raw: &mut Vec<u8>) {
    if raw.get(4) == Some(&0xff) {
        return;
    }
    let mut end = 0;
    for _ in 0..=raw[4] {
        end += 4 + Values(&raw[end..]).int(3) as usize;
    }
    raw.truncate(end);
}
