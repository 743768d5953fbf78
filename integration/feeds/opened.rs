//! A statement with parameters in place of its literals. Their values have every type that drivers send.

use crate::kit::random::Random;
use crate::kit::wire_client::Param;

pub(super) struct Opened {
    pub(super) text: String,
    pub(super) params: Vec<Param>,
}

const UNSIGNED: u8 = 0x80;

impl Opened {
    /// `how` is seeded alike for all statements of one template. `values` draws the types of each statement.
    pub(super) fn of(statement: &str, how: &mut Random, values: &mut Random) -> Opened {
        // Some statements leave the numbers of LIMIT, or the strings, as literals.
        let (limits, strings) = (!how.one_in(3), !how.one_in(3));
        let mut opened = Opened {
            text: String::new(),
            params: Vec::new(),
        };
        let (body, limit) = statement.rsplit_once("LIMIT").unwrap();
        opened.open(body, strings, |number| number_of_any_type(number, values));
        opened.text.push_str("LIMIT");
        match limits {
            true => opened.open(limit, strings, integer),
            false => opened.text.push_str(limit),
        }
        opened
    }

    fn open(&mut self, part: &str, strings: bool, mut number: impl FnMut(u64) -> Param) {
        let mut rest = part;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '\'' => 2 + rest[1..].find('\'').unwrap(),
                '0'..='9' => rest.chars().take_while(char::is_ascii_digit).count(),
                'a'..='z' | 'A'..='Z' | '_' => rest
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                    .count(),
                _ => first.len_utf8(),
            };
            let (word, behind) = rest.split_at(length);
            rest = behind;
            let param = match first {
                '0'..='9' => Some(number(word.parse().unwrap())),
                '\'' if strings => Some(Param::text(Some(&word[1..length - 1]))),
                _ => None,
            };
            match param {
                Some(param) => {
                    self.text.push('?');
                    self.params.push(param);
                }
                None => self.text.push_str(word),
            }
        }
    }
}

/// LONG or LONGLONG.
fn integer(number: u64) -> Param {
    match number % 2 {
        0 => Param::new(8, UNSIGNED, &number.to_le_bytes()),
        _ => Param::new(3, 0, &u32::try_from(number).unwrap().to_le_bytes()),
    }
}

fn number_of_any_type(number: u64, values: &mut Random) -> Param {
    let sign = *values.pick(&[0, UNSIGNED]);
    let bytes = number.to_le_bytes();
    match values.below(40) {
        0 if number < 128 => Param::new(1, sign, &bytes[..1]),
        0..=4 if number < 32_768 => Param::new(2, sign, &bytes[..2]),
        5..=9 => Param::new(3, sign, &bytes[..4]),
        10..=14 => Param::new(5, 0, &(number as f64).to_le_bytes()),
        15..=20 => Param::text(Some(&number.to_string())),
        // Not a plain number of this type.
        21 => Param::text(Some(&format!("{number}.0"))),
        22 if values.one_in(3) => Param::text(None),
        23 if values.one_in(3) => Param::new(5, 0, &(number as f64 + 0.5).to_le_bytes()),
        _ => Param::new(8, sign, &bytes),
    }
}
