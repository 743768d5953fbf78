//! The bytes that one side of a conversation received, and where two recordings differ.

use std::fmt;

/// Bytes of a packet shown on either side of the difference.
const AROUND: usize = 24;

/// Every byte from a server, by the command before it.
#[derive(Debug, Default)]
pub(super) struct Tape {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    said: String,
    raw: Vec<u8>,
    ended: bool,
}

impl Tape {
    /// `ended`: whether the connection ended after these bytes.
    pub(super) fn heard(&mut self, said: &str, raw: Vec<u8>, ended: bool) {
        self.steps.push(Step {
            said: said.to_owned(),
            raw,
            ended,
        });
    }

    /// The last command.
    pub(super) fn last(&self) -> &str {
        self.steps.last().map_or("nothing", |step| &step.said)
    }

    pub(super) fn packets(&self) -> usize {
        self.steps
            .iter()
            .map(|step| Packets(&step.raw).count())
            .sum()
    }

    /// The first difference between two recordings.
    pub(super) fn differs_from(&self, other: &Tape) -> Option<Difference> {
        for (number, (one, two)) in self.steps.iter().zip(&other.steps).enumerate() {
            if one.said == two.said && one.raw == two.raw && one.ended == two.ended {
                continue;
            }
            let mut difference = Difference {
                step: number,
                said: one.said.clone(),
                packet: 0,
                place: Place::End,
                shown: [
                    format!("ended: {}", one.ended),
                    format!("ended: {}", two.ended),
                ],
            };
            if one.said != two.said {
                difference.place = Place::Said;
                difference.shown = [one.said.clone(), two.said.clone()];
            } else if one.raw != two.raw {
                (difference.packet, difference.place, difference.shown) = part(&one.raw, &two.raw);
            }
            return Some(difference);
        }
        let [one, two] = [self.steps.len(), other.steps.len()];
        (one != two).then(|| Difference {
            step: one.min(two),
            said: "nothing more".to_owned(),
            packet: 0,
            place: Place::Said,
            shown: [format!("{one} steps"), format!("{two} steps")],
        })
    }
}

/// The packets of a reply as they are on the wire, parts of 16 MiB not joined. The last may be truncated.
struct Packets<'a>(&'a [u8]);

impl<'a> Iterator for Packets<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let len = match *self.0 {
            [] => return None,
            [a, b, c, _, ..] => 4 + u32::from_le_bytes([a, b, c, 0]) as usize,
            _ => self.0.len(),
        };
        let (packet, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        Some(packet)
    }
}

/// Where two recordings differ.
#[derive(Debug)]
pub(super) struct Difference {
    /// Counted from the login, which is step 0.
    pub(super) step: usize,
    pub(super) said: String,
    /// Index among the packets received in this step.
    pub(super) packet: usize,
    pub(super) place: Place,
    /// The bytes of both sides.
    pub(super) shown: [String; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The header's length field.
    Length,
    /// The header's sequence number.
    SequenceNumber,
    /// A byte of the payload.
    Payload(usize),
    /// Only one side has this packet.
    Packet,
    /// Only one side's connection ended.
    End,
    /// The scenario itself took another path.
    Said,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            step,
            said,
            packet,
            place,
            shown: [one, two],
        } = self;
        write!(
            f,
            "step {step} ({said}), packet {packet}, {place:?}:\n   one {one}\n other {two}"
        )
    }
}

/// Where the packets of two different replies differ.
fn part(one: &[u8], two: &[u8]) -> (usize, Place, [String; 2]) {
    let (mut ones, mut twos) = (Packets(one), Packets(two));
    let mut number = 0;
    loop {
        let (one, two) = match (ones.next(), twos.next()) {
            (Some(one), Some(two)) if one == two => {
                number += 1;
                continue;
            }
            (Some(one), Some(two)) => (one, two),
            (one, two) => {
                let show = |packet: Option<&[u8]>| packet.map_or("none".into(), |it| shown(it, 0));
                return (number, Place::Packet, [show(one), show(two)]);
            }
        };
        let at = one.iter().zip(two).position(|(one, two)| one != two);
        let place = match at {
            None | Some(0..3) => Place::Length,
            Some(3) => Place::SequenceNumber,
            Some(at) => Place::Payload(at - 4),
        };
        let at = match place {
            // The first different byte says more than the difference in length.
            Place::Length => one[4..].iter().zip(&two[4..]).position(|(a, b)| a != b),
            _ => at.map(|at| at.saturating_sub(4)),
        };
        let at = at.unwrap_or_default();
        return (number, place, [shown(one, at), shown(two, at)]);
    }
}

/// The byte of the payload at `at`, with some context on either side.
fn shown(packet: &[u8], at: usize) -> String {
    let Some((header, payload)) = packet.split_at_checked(4) else {
        return format!("{packet:02x?}");
    };
    let from = at.saturating_sub(AROUND).min(payload.len());
    let to = (at + AROUND).min(payload.len());
    let byte = payload
        .get(at)
        .map_or("none".into(), |byte| format!("{byte:#04x}"));
    format!(
        "#{} of {} bytes, at {at} {byte}, in \"{}\"",
        header[3],
        payload.len(),
        payload[from..to].escape_ascii()
    )
}
