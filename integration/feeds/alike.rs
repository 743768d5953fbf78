//! Pairs of similar texts: Headwater may treat two texts as one statement only if the server's whole replies to both are the same.

use headwater_feed::parser::parse;
use headwater_feed::words::{StatementWords, WordKind};
use headwater_sql::lexer::{Lexer, TokenKind};

use super::app::{SMALL, settings_in};
use super::pair::Pair;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::quota::{Quota, kept_pages};
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::{Answer, WireClient};

/// The number of pairs of texts to draw on each server: `HEADWATER_TEXTS`, or enough for a test.
fn texts() -> u64 {
    how_many("HEADWATER_TEXTS", 1_000)
}

/// The statements that texts are drawn from: a sample of everything that the grammar reads.
const TEXTS: [&str; 28] = [
    "SELECT id, IFNULL(caption, 'none') FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 5",
    "SELECT id, COALESCE(caption,'x'), -5, - 5, 1.5 FROM statuses WHERE profile_id IN (1, 2) ORDER BY id DESC LIMIT 5;",
    "select id, likes as LIKES, `kind` k from statuses where profile_id in (1,2,3) and likes <= 30 order by id desc limit 5",
    "SELECT id, likes FROM statuses WHERE profile_id IN (1, 2, 3) AND likes < 30 AND likes <> 7 AND likes != 8 ORDER BY id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE profile_id = 3 AND likes >= 1 AND likes <= 30 ORDER BY id DESC LIMIT 2, 5",
    "SELECT id FROM statuses WHERE profile_id = 3 AND likes BETWEEN 2 AND 30 ORDER BY id DESC LIMIT 5 OFFSET 2",
    "SELECT s.id, s.caption c FROM statuses s WHERE s.profile_id IN (SELECT f.following_id FROM followers f WHERE f.profile_id = 2) ORDER BY s.id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE EXISTS (SELECT 1 FROM followers f WHERE f.following_id = statuses.profile_id AND f.profile_id = 2 LIMIT 1) ORDER BY id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE profile_id = 3 AND EXISTS (SELECT 1 FROM profiles p WHERE p.id = statuses.profile_id LIMIT 1) ORDER BY id DESC LIMIT 5",
    "SELECT s.id, p.name FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (1, 2) AND p.private = 0 ORDER BY s.id DESC LIMIT 5",
    "SELECT s.id, p.name FROM statuses AS s LEFT JOIN profiles AS p ON (p.id = s.profile_id) WHERE (s.profile_id IN (1, 2)) ORDER BY s.id DESC LIMIT 5",
    "SELECT id, caption FROM statuses WHERE profile_id IN (1, 2) AND caption LIKE '%1%' AND kind IN ('photo', 'text') ORDER BY id DESC LIMIT 5",
    "SELECT id, created_at FROM statuses WHERE profile_id IN (1, 2) AND created_at < NOW() - INTERVAL 7 DAY ORDER BY id DESC LIMIT 5",
    "SELECT id, created_at FROM statuses WHERE profile_id IN (1, 2) AND created_at <= NOW(3) ORDER BY id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND created_at < '2026-01-01 10:00:30' AND created_at <= '2026-01-01 10:00:40.5' ORDER BY id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE (profile_id = 4 OR profile_id = 5) AND NOT (likes = 3 OR kind = 'video') ORDER BY id DESC LIMIT 5",
    "SELECT id, 7, 'seven' AS s, TRUE, NULL FROM statuses WHERE profile_id IN (3, 4) AND deleted_at IS NULL ORDER BY id DESC LIMIT 5",
    "SELECT DISTINCT id, kind FROM statuses WHERE profile_id IN (3, 4) AND id < 2000 AND id <= 1500 ORDER BY id DESC LIMIT 5",
    "SELECT * FROM statuses WHERE profile_id IN (3) AND (likes, id) < (20, 2000) ORDER BY id DESC LIMIT 5",
    "SELECT statuses.*, IFNULL(in_reply_to, 0) FROM statuses WHERE statuses.profile_id IN (3, 5) AND 2000 > id ORDER BY statuses.id DESC LIMIT 5",
    "SELECT d.id FROM (SELECT id, IFNULL(caption, 'none') AS c FROM statuses WHERE profile_id IN (1, 2)) d ORDER BY d.id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE profile_id IN ('1', '2') AND kind NOT IN ('photo') AND visibility = 'public' ORDER BY id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND likes > -1 AND likes < 1.5 ORDER BY id DESC LIMIT 5",
    "SELECT s.id, s.kind FROM statuses s JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = 1 WHERE f.accepted = 1 ORDER BY s.id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1) GROUP BY id ORDER BY id DESC LIMIT 5",
    "SELECT 'id', caption, likes FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 5",
    "SELECT 'likes', id, caption FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY statuses.id DESC LIMIT 5",
    "SELECT COALESCE(deleted_at, created_at, '2026-01-01'), id FROM statuses WHERE profile_id IN (1, 2) ORDER BY id DESC LIMIT 5",
];

#[test]
fn texts_of_one_key_are_answered_alike_and_others_by_their_own() {
    on_each_server(|server| {
        let database = Database::empty(server, "feedalike");
        SMALL.make(&mut database.connect(), &mut Random(5));
        let proxy = served(server, &database, "home", &settings_in(&database));
        let mut direct = database.connect();
        let mut pair = Pair::new(database.connect(), proxy.login(&database.login()));
        let mut random = Random(20_261_127);
        let (mut alike, mut well) = (0, 0);
        let quota = Quota::new(&proxy, texts(), texts() / 8, kept_pages);
        while quota.take().is_some() {
            let number = random.below(TEXTS.len() as u64);
            let mut text = Text::of(TEXTS[number as usize]);
            let first = text.changed(&mut random).written();
            let second = match random.one_in(2) {
                // The second text is another change of the original, or a change of the first text.
                true => text.changed(&mut random).written(),
                false => Text::of(&first).changed(&mut random).written(),
            };
            if are_one(&first, &second) {
                alike += 1;
                well += u64::from(same(&mut direct, &first, &second));
            }
            // The first text warms the memory, but not for the second one unless both are one statement.
            for text in [&first, &first, &second] {
                pair.ask(number, text);
                if !is_read(text) {
                    // Headwater must assume that an unread statement sets something for the next transaction. COMMIT ends that.
                    pair.run("COMMIT");
                }
            }
        }
        let counts = proxy.counts();
        println!("{alike} alike, {well} answered: {counts:?}");
        assert!(alike * 8 > texts() && well * 2 > alike, "{alike} {well}");
    });
}

fn is_read(text: &str) -> bool {
    let words = StatementWords::read(text.as_bytes());
    words.is_some_and(|words| parse(text.as_bytes(), &words).is_ok())
}

/// True if both texts have the same template, and the same literal values in it.
fn are_one(first: &str, second: &str) -> bool {
    let [one, other] = [first, second].map(|text| StatementWords::read(text.as_bytes()));
    let (Some(one), Some(other)) = (one, other) else {
        return false;
    };
    let values = |words: &StatementWords, text: &str| -> Vec<String> {
        let literals = words.words.iter().enumerate();
        let literals = literals.filter(|(_, word)| word.kind.is_literal() && !word.is_verbatim);
        literals
            .flat_map(|(at, _)| words.literals(at, text.as_bytes()))
            .map(|token| match token.kind {
                TokenKind::Number => String::from_utf8_lossy(token.text)
                    .trim_start_matches('0')
                    .to_owned(),
                _ => String::from_utf8_lossy(token.text).into_owned(),
            })
            .collect()
    };
    if one.key != other.key {
        return false;
    }
    // The text that comes first decides for both, so the grammar must read both or neither.
    assert_eq!(is_read(first), is_read(second), "{first}\n{second}");
    is_read(first)
        && values(&one, first) == values(&other, second)
        && one.words.len() == other.words.len()
        && one
            .words
            .iter()
            .all(|word| word.kind != WordKind::Parameter)
}

/// Asserts that the server's replies to both are equal, byte by byte. Errors may quote the text. True: the replies have rows.
fn same(client: &mut WireClient, first: &str, second: &str) -> bool {
    let [one, other] = [first, second].map(|text| client.query_reply(text).unwrap());
    if one.raw == other.raw {
        return matches!(client.query(first)[..], [Answer::Rows(_)]);
    }
    let [one, other] = [first, second].map(|text| client.query(text));
    match (&one[..], &other[..]) {
        ([Answer::Err(one)], [Answer::Err(other)]) => {
            assert_eq!(one.code, other.code, "{first}\n{second}");
            false
        }
        _ => panic!("one key:\n{first}\n{second}\n{one:02x?}\n{other:02x?}"),
    }
}

/// A text's tokens, each with the gap before it.
struct Text {
    tokens: Vec<(String, String)>,
    front: &'static str,
    end: &'static str,
}

/// Gaps between two words.
const GAPS: [&str; 14] = [
    "",
    "",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u{b}",
    "/**/",
    "/* x */",
    " -- x\n",
    "#x\n",
    "/* ' */",
    " /* 1 */ ",
];
/// What may precede or follow a text.
const FRONTS: [&str; 5] = ["", " ", "\n", "/* x */", "-- x\n"];
const ENDS: [&str; 10] = [
    "",
    ";",
    " ;",
    "; ",
    " ",
    "/* x */",
    " -- x",
    "#x",
    " /* x */ ;",
    ";\n",
];

impl Text {
    fn of(text: &str) -> Text {
        let mut end = 0;
        let mut tokens = Vec::new();
        for token in Lexer::new(text.as_bytes()) {
            let before = text[end..token.at].to_owned();
            end = token.at + token.text.len();
            tokens.push((before, text[token.at..end].to_owned()));
        }
        Text {
            tokens,
            front: "",
            end: "",
        }
    }

    fn written(&self) -> String {
        let tokens = self.tokens.iter().flat_map(|(gap, token)| [&**gap, token]);
        let text: Vec<&str> = tokens.collect();
        format!("{}{}{}", self.front, text.concat(), self.end)
    }

    /// Changes the spelling or the meaning of a few tokens.
    fn changed(&mut self, random: &mut Random) -> &Text {
        for _ in 0..random.below(4) {
            self.change(random);
        }
        self
    }

    fn change(&mut self, random: &mut Random) {
        let count = self.tokens.len() as u64;
        let at = random.below(count) as usize;
        let other = random.below(count) as usize;
        match random.below(20) {
            0..=8 => self.tokens[at].0 = (*random.pick(&GAPS)).to_owned(),
            9 => self.front = random.pick::<&'static str>(&FRONTS),
            10 => self.end = random.pick::<&'static str>(&ENDS),
            11 => {
                let word = &mut self.tokens[at].1;
                *word = match random.one_in(2) {
                    true => word.to_uppercase(),
                    false => word.to_lowercase(),
                };
            }
            12 => {
                let word = &mut self.tokens[at].1;
                *word = match word.strip_prefix('`') {
                    Some(plain) => plain.trim_end_matches('`').to_owned(),
                    None => format!("`{word}`"),
                };
            }
            13 => {
                let word = &mut self.tokens[at].1;
                *word = format!("({word})");
            }
            14 => self.literal(at, random),
            15 => {
                // Two words change places; sometimes these are two literals of one kind.
                let is_literal = |at: usize| {
                    self.tokens[at]
                        .1
                        .starts_with(|first: char| first == '\'' || first.is_ascii_digit())
                };
                if is_literal(at) == is_literal(other) {
                    let word = self.tokens[at].1.clone();
                    self.tokens[at].1 = std::mem::replace(&mut self.tokens[other].1, word);
                }
            }
            16 => drop(self.tokens.remove(at)),
            17 => {
                let token = self.tokens[at].clone();
                self.tokens.insert(at, token);
            }
            _ => {
                // The next literal, if there is one.
                let behind = (at..self.tokens.len()).find(|at| {
                    let word = &self.tokens[*at].1;
                    word.starts_with(|first: char| first == '\'' || first.is_ascii_digit())
                });
                if let Some(at) = behind {
                    self.literal(at, random);
                }
            }
        }
    }

    /// Writes the literal in another way, or replaces it.
    fn literal(&mut self, at: usize, random: &mut Random) {
        let word = self.tokens[at].1.clone();
        let inner = word.trim_matches('\'').to_owned();
        self.tokens[at].1 = match random.below(12) {
            0 => format!("0{word}"),
            1 => format!("00{word}"),
            2 => format!("'{inner}'"),
            3 => inner,
            4 => format!("-{word}"),
            5 => format!("+{word}"),
            6 => format!("{word}.0"),
            7 => format!("{word}e0"),
            8 => "0".to_owned(),
            9 => format!("\"{inner}\""),
            10 => format!("{word} '{inner}'"),
            _ => random.below(40).to_string(),
        };
    }
}
