//! Compares two replies, packet by packet. Only this module lists permitted differences: key flags of columns, NUM and two status
//! flags, which follow the plan, if the server itself sent them for the same form (docs/limits.md); and a prepared statement's id.

use std::collections::{HashMap, HashSet};

use crate::kit::wire_client::answer::ends_rows;
use crate::kit::wire_client::packet::{Packet, Values};
use crate::kit::wire_client::{COM_QUERY, COM_STMT_EXECUTE, COM_STMT_PREPARE, Reply, capability};

/// PRI_KEY, UNIQUE_KEY, MULTIPLE_KEY, AUTO_INCREMENT, TIMESTAMP, ON_UPDATE_NOW, PART_KEY.
const KEY_FLAGS: u16 = 0x660e;
/// On MariaDB the plan decides which columns are flagged as numbers.
const NUM_FLAG: u16 = 0x8000;
/// SERVER_QUERY_NO_INDEX_USED, SERVER_QUERY_WAS_SLOW.
const PLAN_STATUS: u16 = 0x0820;
const MORE_RESULTS: u16 = 0x0008;

/// Plan-dependent flags that the server has sent for each form.
pub(super) type Said = HashMap<u64, HashSet<Vec<u16>>>;

/// A difference: its kind, and its full text.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) kind: String,
    pub(super) detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count,
    Column,
    Row,
    /// The end of definitions or rows, with the offset of its status flags.
    End(usize),
    Ok(usize),
    Error,
    Prepared,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    kind: Kind,
    /// The index of the result in the reply.
    result: usize,
    seq: u8,
    bytes: Vec<u8>,
}

/// Compares the replies to one command, whose results have these forms. The plan decides which rows come where no LIMIT bounds them
/// and no order is certain.
pub(super) fn difference(
    (command, is_ordered): (u8, bool),
    capabilities: u64,
    forms: &[u64],
    replies: [&Reply; 2],
    said: &mut Said,
) -> Option<Difference> {
    let [mut direct, mut proxied] = replies.map(|reply| parts(command, capabilities, reply));
    let results = direct.last().map_or(0, |part| part.result + 1);
    let (of_direct, of_proxied) = (plans(&mut direct), plans(&mut proxied));
    if !is_ordered {
        unorder(&mut direct);
        unorder(&mut proxied);
    }
    for (result, plan) in of_direct.iter().enumerate().take(results) {
        let form = forms.get(result).copied().unwrap_or_default();
        said.entry(form).or_default().insert(plan.clone());
    }
    if direct != proxied {
        return Some(described(&direct, &proxied));
    }
    for (result, plan) in of_proxied.iter().enumerate() {
        let form = forms.get(result).copied().unwrap_or_default();
        let said = said.entry(form).or_default();
        if !said.contains(plan) {
            return Some(Difference {
                kind: "key flags as never sent".to_owned(),
                detail: format!("{plan:04x?}, but the server sent {said:04x?}"),
            });
        }
    }
    None
}

fn unorder(parts: &mut [Part]) {
    let rows = |part: &&mut Part| part.kind == Kind::Row;
    let mut bytes: Vec<Vec<u8>> = parts
        .iter_mut()
        .filter(rows)
        .map(|part| std::mem::take(&mut part.bytes))
        .collect();
    bytes.sort();
    for (part, bytes) in parts.iter_mut().filter(rows).zip(bytes) {
        part.bytes = bytes;
    }
}

/// Removes the plan-dependent flags from each result, and returns them.
fn plans(parts: &mut [Part]) -> Vec<Vec<u16>> {
    let mut plans: Vec<Vec<u16>> = Vec::new();
    for part in parts {
        plans.resize(plans.len().max(part.result + 1), Vec::new());
        let (at, mask) = match part.kind {
            Kind::Column => {
                let at = part.bytes.len() - 5;
                (at, KEY_FLAGS | NUM_FLAG)
            }
            Kind::End(at) => (at, PLAN_STATUS),
            _ => continue,
        };
        let flags = u16::from_le_bytes([part.bytes[at], part.bytes[at + 1]]);
        part.bytes[at..at + 2].copy_from_slice(&(flags & !mask).to_le_bytes());
        plans[part.result].push(flags & mask);
    }
    plans
}

fn parts(command: u8, capabilities: u64, reply: &Reply) -> Vec<Part> {
    let mut reader = Reader {
        packets: &reply.packets,
        capabilities,
        parts: Vec::new(),
        at: 0,
    };
    match command {
        COM_QUERY | COM_STMT_EXECUTE => reader.results(),
        COM_STMT_PREPARE => {
            while let Some(packet) = reply.packets.get(reader.at) {
                let is_first = reader.at == 0 && packet.first_byte() == Some(0);
                reader.push(
                    if is_first {
                        Kind::Prepared
                    } else {
                        Kind::Other
                    },
                    0,
                );
            }
            // The prepared statement's id.
            if let Some(first) = reader
                .parts
                .first_mut()
                .filter(|part| part.kind == Kind::Prepared)
            {
                first.bytes[1..5].fill(0);
            }
        }
        _ => {
            while reader.at < reply.packets.len() {
                reader.push(Kind::Other, 0);
            }
        }
    }
    reader.parts
}

struct Reader<'a> {
    packets: &'a [Packet],
    capabilities: u64,
    parts: Vec<Part>,
    at: usize,
}

impl Reader<'_> {
    fn push(&mut self, kind: Kind, result: usize) {
        let packet = &self.packets[self.at];
        self.parts.push(Part {
            kind,
            result,
            seq: packet.seq,
            bytes: packet.payload.clone(),
        });
        self.at += 1;
    }

    fn results(&mut self) {
        let mut result = 0;
        while self.at < self.packets.len() {
            let status = self.result(result);
            if status.is_none_or(|status| status & MORE_RESULTS == 0) {
                break;
            }
            result += 1;
        }
    }

    /// Reads a result. Returns its final status flags, if it has any.
    fn result(&mut self, result: usize) -> Option<u16> {
        let first = &self.packets[self.at];
        match first.first_byte() {
            Some(0xff) => {
                self.push(Kind::Error, result);
                return None;
            }
            Some(0x00) => {
                let at = status_place(&first.payload, true);
                self.push(Kind::Ok(at), result);
                return self.status();
            }
            _ => {}
        }
        let mut values = Values(&first.payload);
        let columns = values.lenenc();
        let is_described = values.0.first() != Some(&0);
        let is_eof = self.capabilities & capability::DEPRECATE_EOF == 0;
        self.push(Kind::Count, result);
        for _ in 0..if is_described { columns } else { 0 } {
            self.push(Kind::Column, result);
        }
        if is_eof {
            self.push(Kind::End(3), result);
        }
        loop {
            let packet = &self.packets[self.at];
            if packet.first_byte() == Some(0xff) {
                self.push(Kind::Error, result);
                return None;
            }
            if ends_rows(packet, self.capabilities) {
                let at = status_place(&packet.payload, !is_eof);
                self.push(Kind::End(at), result);
                return self.status();
            }
            self.push(Kind::Row, result);
        }
    }

    fn status(&self) -> Option<u16> {
        let last = self.parts.last()?;
        match last.kind {
            Kind::End(at) | Kind::Ok(at) => {
                Some(u16::from_le_bytes([last.bytes[at], last.bytes[at + 1]]))
            }
            _ => None,
        }
    }
}

fn status_place(payload: &[u8], is_ok: bool) -> usize {
    if !is_ok {
        return 3;
    }
    let mut values = Values(&payload[1..]);
    values.lenenc();
    values.lenenc();
    payload.len() - values.0.len()
}

/// Describes the first difference between the replies.
fn described(direct: &[Part], proxied: &[Part]) -> Difference {
    let place = direct
        .iter()
        .zip(proxied)
        .position(|(one, other)| one != other);
    let place = place.unwrap_or(direct.len().min(proxied.len()));
    let (one, other) = (direct.get(place), proxied.get(place));
    let kind = match (one, other) {
        (Some(one), Some(other)) if one.kind == Kind::Column && other.kind == Kind::Column => {
            format!("column: {}", field(&one.bytes, &other.bytes))
        }
        (Some(one), Some(other)) if one.kind == Kind::Error && other.kind != Kind::Error => {
            format!("error {}, and {:?}", code(one), other.kind)
        }
        (Some(one), Some(other)) if other.kind == Kind::Error => {
            format!("{:?}, and error {}", one.kind, code(other))
        }
        (Some(one), Some(other)) => match (one.kind, other.kind) {
            (Kind::End(at), Kind::End(_)) | (Kind::Ok(at), Kind::Ok(_)) => format!(
                "{}: {}",
                if matches!(one.kind, Kind::End(_)) {
                    "end"
                } else {
                    "OK"
                },
                ending(&one.bytes, &other.bytes, at)
            ),
            (one, other) => format!("{one:?}, and {other:?}"),
        },
        (one, other) => format!(
            "{:?}, and {:?}",
            one.map(|part| part.kind),
            other.map(|part| part.kind)
        ),
    };
    let shown = |part: Option<&Part>| {
        part.map_or("nothing".to_owned(), |part| {
            let bytes = &part.bytes[..part.bytes.len().min(300)];
            format!(
                "{:?} #{} of result {}: {}",
                part.kind,
                part.seq,
                part.result,
                bytes.escape_ascii()
            )
        })
    };
    let count = |parts: &[Part]| parts.iter().filter(|part| part.kind == Kind::Row).count();
    Difference {
        kind,
        detail: format!(
            "packet {place}; rows: {} and {}\n  direct {}\n proxied {}",
            count(direct),
            count(proxied),
            shown(one),
            shown(other)
        ),
    }
}

fn code(part: &Part) -> u16 {
    u16::from_le_bytes([part.bytes[1], part.bytes[2]])
}

/// The names of a column's fields that differ.
fn field(one: &[u8], other: &[u8]) -> String {
    let mut fields = Vec::new();
    let (mut first, mut second) = (Values(one), Values(other));
    for name in [
        "catalog",
        "schema",
        "table",
        "org_table",
        "name",
        "org_name",
    ] {
        if first.bytes() != second.bytes() {
            fields.push(name.to_owned());
        }
    }
    let (first, second) = (&one[one.len() - 12..], &other[other.len() - 12..]);
    for (name, range) in [
        ("charset", 0..2),
        ("length", 2..6),
        ("type", 6..7),
        ("decimals", 9..10),
    ] {
        if first[range.clone()] != second[range] {
            fields.push(name.to_owned());
        }
    }
    let flags = |tail: &[u8]| u16::from_le_bytes([tail[7], tail[8]]);
    let flags = flags(first) ^ flags(second);
    if flags != 0 {
        fields.push(format!("flags {flags:04x}"));
    }
    fields.join(", ")
}

fn ending(one: &[u8], other: &[u8], at: usize) -> String {
    let number = |bytes: &[u8], at: usize| match bytes.get(at..at + 2) {
        Some(bytes) => u16::from_le_bytes([bytes[0], bytes[1]]),
        None => 0,
    };
    let flags = number(one, at) ^ number(other, at);
    let warnings = if at == 3 && one.len() == 5 { 1 } else { at + 2 };
    let mut fields = Vec::new();
    if flags != 0 {
        fields.push(format!("status {flags:04x}"));
    }
    if number(one, warnings) != number(other, warnings) {
        fields.push("warnings".to_owned());
    }
    if fields.is_empty() {
        "something else".to_owned()
    } else {
        fields.join(", ")
    }
}
