//! Values for a form: as text, or as parameters of any wire type.

use super::form::{Form, Slot};
use super::world::{USERS, World};
use crate::kit::random::Random;
use crate::kit::wire_client::Param;
use crate::kit::wire_client::packet::put_bytes;

/// The form's text with a value in each slot.
pub(super) fn filled(form: &Form, world: &World, random: &mut Random) -> String {
    let mut text = form.text.clone();
    let (fixed, mut page) = drawn(form, random);
    for (at, slot) in form.slots.iter().enumerate() {
        let value = literal(slot, world, &mut fixed.clone(), &mut page);
        let value = if random.one_in(80) {
            odd(&value, random)
        } else {
            value
        };
        text = text.replace(&format!("{{{at}}}"), &value);
    }
    text
}

/// The form's text for PREPARE, with parameters in most slots and values in the others, and the slots of the parameters in order.
pub(super) fn prepared(form: &Form, world: &World) -> (String, Vec<usize>) {
    let mut random = Random(form.seed);
    let mut text = form.text.clone();
    let mut is_parameter = Vec::new();
    for (at, slot) in form.slots.iter().enumerate() {
        let place = format!("{{{at}}}");
        let is_inline = random.one_in(5);
        is_parameter.push(!is_inline);
        if is_inline {
            let value = literal(slot, world, &mut Random(form.seed), &mut random);
            text = text.replace(&place, &value);
        } else if matches!(slot, Slot::Authors) {
            let places = vec![place.clone(); 2 + (form.seed % 4) as usize];
            text = text.replace(&place, &places.join(", "));
        }
    }
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (at, _) in is_parameter.iter().enumerate().filter(|(_, is)| **is) {
        let place = format!("{{{at}}}");
        places.extend(text.match_indices(&place).map(|(start, _)| (start, at)));
    }
    places.sort_unstable();
    for (at, _) in form.slots.iter().enumerate() {
        text = text.replace(&format!("{{{at}}}"), "?");
    }
    (text, places.into_iter().map(|(_, at)| at).collect())
}

/// A value for each parameter. The types are the same for all executions with this seed.
pub(super) fn parameters(
    form: &Form,
    slots: &[usize],
    world: &World,
    random: &mut Random,
    types: u64,
) -> Vec<Param> {
    let mut types = Random(types);
    let (fixed, mut page) = drawn(form, random);
    let mut parameters = Vec::new();
    let mut by_slot: Vec<Option<String>> = vec![None; form.slots.len()];
    for at in slots {
        let slot = &form.slots[*at];
        let value = match (slot, &by_slot[*at]) {
            (Slot::Authors, _) => (1 + page.below(USERS)).to_string(),
            (_, Some(value)) => value.clone(),
            (_, None) => literal(slot, world, &mut fixed.clone(), random),
        };
        by_slot[*at] = Some(value.clone());
        parameters.push(parameter(
            &value,
            matches!(slot, Slot::Limit | Slot::Offset),
            &mut types,
            random,
        ));
    }
    parameters
}

/// The random sources of values: mostly those of a few pages, so that pages repeat.
fn drawn(form: &Form, random: &mut Random) -> (Random, Random) {
    let page = match random.one_in(6) {
        true => random.next(),
        false => form.seed.wrapping_add(random.below(5)),
    };
    (Random(form.seed ^ (page & 1)), Random(page))
}

fn parameter(literal: &str, is_limit: bool, types: &mut Random, random: &mut Random) -> Param {
    let kind = types.below(12);
    if let Ok(number) = literal.parse::<i64>() {
        let is_short = (0..=127).contains(&number);
        return match kind {
            0 if is_short => Param::new(1, 0, &[number as u8]),
            1 if (0..=32_767).contains(&number) => {
                Param::new(2, 0x80, &(number as u16).to_le_bytes())
            }
            2 | 3 if i32::try_from(number).is_ok() => {
                Param::new(3, 0, &(number as i32).to_le_bytes())
            }
            4 if !is_limit => Param::text(Some(literal)),
            5 if !is_limit => texted(0xfd, literal),
            6 if !is_limit => Param::new(5, 0, &(number as f64).to_le_bytes()),
            7 if !is_limit => texted(0xf6, literal),
            8 if random.one_in(9) => Param {
                value: None,
                ..Param::text(None)
            },
            _ => Param::new(
                8,
                if number >= 0 && kind > 9 { 0x80 } else { 0 },
                &number.to_le_bytes(),
            ),
        };
    }
    let text = literal.trim_matches('\'').to_owned();
    if let (Some(moment), 0..=5) = (Moment::read(&text), kind) {
        return moment.parameter(kind);
    }
    match kind {
        0..=2 => texted(0xfd, &text),
        3 => texted(0xfc, &text),
        4 => texted(0x0f, &text),
        _ => Param::text(Some(&text)),
    }
}

fn texted(code: u8, text: &str) -> Param {
    let mut value = Vec::new();
    put_bytes(&mut value, text.as_bytes());
    Param::new(code, 0, &value)
}

/// A date with a time, as the protocol encodes it.
struct Moment {
    numbers: Vec<u32>,
}

impl Moment {
    fn read(text: &str) -> Option<Moment> {
        let parts = text.split(['-', ' ', ':', '.']);
        let numbers: Vec<u32> = parts.map_while(|part| part.parse().ok()).collect();
        (text.starts_with("20") && numbers.len() >= 6).then_some(Moment { numbers })
    }

    fn parameter(&self, kind: u64) -> Param {
        let [year, month, day, hour, minute, second] = self.numbers[..6] else {
            unreachable!()
        };
        let micros = self.numbers.get(6).map_or(0, |tenths| tenths * 100_000);
        let mut value = (year as u16).to_le_bytes().to_vec();
        value.extend([month, day, hour, minute, second].map(|number| number as u8));
        if micros > 0 {
            value.extend(micros.to_le_bytes());
        }
        value.insert(0, value.len() as u8);
        // DATETIME, TIMESTAMP, DATE.
        Param::new([12, 12, 7, 7, 10, 10][kind as usize], 0, &value)
    }
}

/// A value as SQL text. Values that decide the rows come from a small set.
fn literal(slot: &Slot, world: &World, fixed: &mut Random, random: &mut Random) -> String {
    match slot {
        Slot::Authors => {
            let count = *random.pick(&[1, 2, 3, 4, 5, 8, 9]);
            let from = random.below(USERS);
            let authors = (0..count).map(|at| (1 + (from + at * 5) % USERS).to_string());
            authors.collect::<Vec<_>>().join(", ")
        }
        Slot::User => (1 + random.below(USERS + 1)).to_string(),
        Slot::Id => World::id_of(random).to_string(),
        Slot::Moment => world.moment(random),
        Slot::Limit => random
            .pick(&[
                "1", "2", "3", "4", "5", "5", "6", "7", "8", "10", "12", "20", "0",
            ])
            .to_string(),
        Slot::Offset => random.pick(&["0", "1", "2", "3", "5", "20"]).to_string(),
        Slot::Value(values) if values.is_empty() => "0".to_owned(),
        Slot::Value(values) => fixed.pick(values).clone(),
    }
}

/// The same value, or a similar one, in another spelling.
fn odd(value: &str, random: &mut Random) -> String {
    if value.parse::<u64>().is_err() {
        return value.to_owned();
    }
    match random.below(10) {
        0 => format!("'{value}'"),
        1 => format!("0{value}"),
        2 => format!("{value}.0"),
        3 => format!("{value}e0"),
        4 => format!("+{value}"),
        5 => format!("-{value}"),
        6 => format!("({value})"),
        7 => "NULL".to_owned(),
        8 => format!("'{value}x'"),
        _ => "18446744073709551615".to_owned(),
    }
}
