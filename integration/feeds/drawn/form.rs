//! The form of a statement: the statement without its values and its spelling.

use super::world::{Class, Column, World};
use crate::kit::random::Random;

/// A placeholder for a value in a form.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    Authors,
    User,
    Id,
    Moment,
    Limit,
    Offset,
    /// One of these literals.
    Value(Vec<String>),
}

/// A form. In its text `{2}` is the slot with that number.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) slots: Vec<Slot>,
    /// The seed from which spellings and values are repeatedly drawn.
    pub(super) seed: u64,
}

impl Form {
    pub(super) fn draw(number: u64, world: &World, random: &mut Random) -> Form {
        let mut draft = Draft {
            world,
            slots: Vec::new(),
            alias: String::new(),
            joins: String::new(),
            conditions: Vec::new(),
            shown: Vec::new(),
            is_bare: false,
            random,
        };
        let text = draft.statement();
        Form {
            number,
            text,
            seed: draft.random.next(),
            slots: draft.slots,
        }
    }
}

/// A form under construction.
struct Draft<'a> {
    world: &'a World,
    random: &'a mut Random,
    slots: Vec<Slot>,
    alias: String,
    joins: String,
    conditions: Vec<String>,
    /// Columns of other tables that the form may select.
    shown: Vec<&'static str>,
    /// Columns of messages are unqualified.
    is_bare: bool,
}

impl Draft<'_> {
    fn statement(&mut self) -> String {
        let World {
            message,
            id,
            author,
            ..
        } = self.world;
        self.alias = (*self.random.pick(&["m", "s", "p0", "Msg", "x1"])).to_owned();
        let named = self.random.pick(&["", "AS "]);
        let mut from = format!("{message} {named}{}", self.alias);
        let kind = self.random.below(11);
        if matches!(kind, 0..=4) && self.random.one_in(3) {
            self.is_bare = true;
            if self.random.one_in(2) {
                self.alias = (*message).to_owned();
                from = (*message).to_owned();
            }
        }
        let who = self.column(author);
        let leading = self.authors(kind, &who);
        if !self.is_bare {
            self.joined(&who);
        }
        for _ in 0..self.random.below(3) {
            let condition = self.condition();
            self.conditions.push(condition);
        }
        let by_key = self.random.one_in(3);
        if self.random.one_in(3) {
            let cursor = self.cursor(by_key);
            self.conditions.push(cursor);
        }
        self.random.shuffle(&mut self.conditions);
        let (id, key) = (self.column(id), self.column(self.world.key));
        let order = match (by_key, self.random.below(150)) {
            (_, 0) => format!("{id} ASC"),
            (true, _) => format!("{key} DESC, {id} DESC"),
            (false, _) => format!("{id} DESC"),
        };
        let select = self.select();
        let front = match self.random.below(400) {
            0 => "DISTINCT ",
            1 => "SQL_NO_CACHE ",
            2 => "SQL_CALC_FOUND_ROWS ",
            3 => "HIGH_PRIORITY ",
            _ => "",
        };
        let table = match leading {
            Some(leading) => format!("{leading} JOIN {from} ON f.{} = {who}", self.world.followed),
            None => from,
        };
        let joins = self.joins.clone();
        let conditions = self.conditions.join(" AND ");
        let body = format!("FROM {table}{joins} WHERE {conditions}");
        let limit = self.limit();
        if self.random.one_in(25) && !self.is_bare {
            return format!(
                "SELECT DISTINCT d.{0} FROM (SELECT {1}.{0} {body}) d ORDER BY d.{0} DESC {limit}",
                self.world.id, self.alias
            );
        }
        format!("SELECT {front}{select} {body} ORDER BY {order} {limit}")
    }

    /// Adds the condition on authors. Returns the table that precedes the messages in FROM, if there is one.
    fn authors(&mut self, kind: u64, who: &str) -> Option<String> {
        let World {
            follow,
            reader,
            followed,
            ..
        } = self.world;
        let (follow, reader, followed) = (*follow, *reader, *followed);
        let edge = match self.random.below(8) {
            0 => " AND f.accepted = 1",
            1 => " AND f.accepted",
            2 => " AND f.since IS NULL",
            _ => "",
        };
        let user = self.slot(Slot::User);
        let said = match kind {
            0 | 1 => {
                let authors = self.slot(Slot::Authors);
                format!("{who} IN ({authors})")
            }
            2 => format!("{who} = {user}"),
            3 | 4 => match self.random.below(3) {
                0 => format!("{who} IN (SELECT {followed} FROM {follow} WHERE {reader} = {user})"),
                1 => format!(
                    "{who} IN (SELECT f.{followed} FROM {follow} AS f WHERE f.{reader} = {user}{edge})"
                ),
                _ => format!(
                    "{who} IN (SELECT f.{followed} FROM {follow} f WHERE {user} = f.{reader}{edge})"
                ),
            },
            5 | 6 => {
                let limit = match self.random.below(12) {
                    0 => " LIMIT 1",
                    1 => " LIMIT 0",
                    _ => "",
                };
                let shown = self.random.pick(&["1", "*", "f.accepted"]);
                format!(
                    "EXISTS (SELECT {shown} FROM {follow} f WHERE f.{followed} = {who} AND f.{reader} = {user}{edge}{limit})"
                )
            }
            7 => {
                self.joins = format!(" JOIN {follow} f ON f.{followed} = {who}");
                format!("f.{reader} = {user}{edge}")
            }
            8 => {
                self.joins = format!(
                    " INNER JOIN {follow} f ON {who} = f.{followed} AND f.{reader} = {user}{edge}"
                );
                self.conditions.push(format!("{who} IS NOT NULL"));
                return None;
            }
            9 => {
                self.conditions.push(format!("f.{reader} = {user}{edge}"));
                return Some(format!("{follow} f"));
            }
            _ => {
                self.joins = format!(
                    " JOIN users u ON u.uid = {who} JOIN {follow} f ON f.{followed} = u.uid"
                );
                self.shown.extend(["u.name", "u.bio"]);
                format!("f.{reader} = {user}{edge}")
            }
        };
        let said = match matches!(kind, 0..=6) && self.random.one_in(4) {
            true => {
                let me = self.slot(Slot::User);
                format!("({said} OR {who} = {me})")
            }
            false => said,
        };
        self.conditions.push(said);
        None
    }

    /// Joins other tables, and excludes blocked authors.
    fn joined(&mut self, who: &str) {
        let has_users = self.joins.contains("users u");
        if !has_users && self.random.one_in(3) {
            let join = self
                .random
                .pick(&["JOIN", "LEFT JOIN", "INNER JOIN", "LEFT OUTER JOIN"]);
            let alias = self.random.pick(&["u", "AS u"]);
            self.joins += &format!(" {join} users {alias} ON u.uid = {who}");
            self.shown.extend(["u.name", "u.bio", "u.closed", "u.uid"]);
            if self.random.one_in(4) {
                self.conditions.push("u.closed = 0".to_owned());
            }
        }
        let topic = self.column("topic");
        if self.random.one_in(6) {
            self.joins += &format!(" LEFT JOIN topics t ON t.tid = {topic}");
            self.shown.extend(["t.title", "t.hidden"]);
        }
        let id = self.column(self.world.id);
        if self.random.one_in(12) {
            let user = self.slot(Slot::User);
            self.joins += &format!(" LEFT JOIN hearts h ON h.mid = {id} AND h.uid = {user}");
            self.shown.push("h.uid");
        }
        if self.random.one_in(7) {
            let user = self.slot(Slot::User);
            let blocked = match self.random.below(3) {
                0 => format!("{who} NOT IN (SELECT whom FROM blocks WHERE who = {user})"),
                1 => format!(
                    "NOT EXISTS (SELECT 1 FROM blocks b WHERE b.whom = {who} AND b.who = {user})"
                ),
                _ => {
                    self.joins +=
                        &format!(" LEFT JOIN blocks b ON b.whom = {who} AND b.who = {user}");
                    "b.whom IS NULL".to_owned()
                }
            };
            self.conditions.push(blocked);
        }
    }

    fn condition(&mut self) -> String {
        let world = self.world;
        let mut column = self.random.pick(&world.columns).clone();
        if column.class == Class::Other && !self.random.one_in(8) {
            column = self.random.pick(&world.columns).clone();
        }
        let name = self.named(&column);
        let values = column
            .values
            .iter()
            .filter(|value| **value != "NULL" && !value.contains('('));
        let values: Vec<String> = values.map(|value| (*value).to_owned()).collect();
        let simple = |draft: &mut Self| draft.slot(Slot::Value(values.clone()));
        match (self.random.below(12), column.class) {
            (0, _) => format!("{name} IS NULL"),
            (1, _) => format!("{name} IS NOT NULL"),
            (2, Class::Text) => format!(
                "{name} LIKE '{}'",
                self.random.pick(&["o%", "%e", "_ne", "%", "A%"])
            ),
            (3, Class::Number) => format!("{name} BETWEEN {} AND {}", simple(self), simple(self)),
            (4, _) => format!("({name} = {} OR {name} IS NULL)", simple(self)),
            (5, Class::Number | Class::Text) => {
                format!("{name} IN ({}, {})", simple(self), simple(self))
            }
            (6, _) => format!("NOT ({name} = {})", simple(self)),
            (7, Class::Number) => name,
            (8, _) if self.random.one_in(16) => {
                let limit = self
                    .random
                    .pick(&["", " LIMIT 0", " LIMIT 1", " LIMIT 0, 1"]);
                format!(
                    "EXISTS (SELECT 1 FROM tags g WHERE g.mid = {} AND g.tag = 'a'{limit})",
                    self.column(world.id)
                )
            }
            (9, _) => format!(
                "{} <> {}",
                self.column("topic"),
                self.slot(Slot::Value(vec!["3".into(), "0".into(), "5".into()]))
            ),
            _ => {
                let sign = *self
                    .random
                    .pick(&["=", "<>", "!=", "<=", ">=", "<", ">", "<=>"]);
                match self.random.one_in(6) {
                    true => format!("{} {sign} {name}", simple(self)),
                    false => format!("{name} {sign} {}", simple(self)),
                }
            }
        }
    }

    fn cursor(&mut self, by_key: bool) -> String {
        let (id, key) = (self.column(self.world.id), self.column(self.world.key));
        if !by_key {
            let (bound, other) = (self.slot(Slot::Id), self.random.below(6));
            return match other {
                0 => format!("{id} <= {bound}"),
                1 => format!("{bound} > {id}"),
                2 => format!("{id} > {bound}"),
                3 => format!("{id} BETWEEN {} AND {bound}", self.slot(Slot::Id)),
                _ => format!("{id} < {bound}"),
            };
        }
        let (moment, bound) = (self.slot(Slot::Moment), self.slot(Slot::Id));
        match self.random.below(7) {
            0 => format!("({key}, {id}) < ({moment}, {bound})"),
            1 => format!("({key} < {moment} OR ({key} = {moment} AND {id} < {bound}))"),
            2 => format!("{key} <= {moment}"),
            3 => format!("{key} BETWEEN {} AND {moment}", self.slot(Slot::Moment)),
            4 => {
                format!("{key} < {moment} AND {key} <= {}", self.slot(Slot::Moment))
            }
            5 => format!("{moment} >= {key} AND {id} < {bound}"),
            _ => format!("{key} < {moment}"),
        }
    }

    fn limit(&mut self) -> String {
        let kind = self.random.below(16);
        match kind {
            0 | 1 => format!(
                "LIMIT {} OFFSET {}",
                self.slot(Slot::Limit),
                self.slot(Slot::Offset)
            ),
            2 => format!(
                "LIMIT {}, {}",
                self.slot(Slot::Offset),
                self.slot(Slot::Limit)
            ),
            9 if self.random.one_in(6) => match self.random.below(4) {
                0 => String::new(),
                1 => "LIMIT 5 FOR UPDATE".to_owned(),
                2 => "OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY".to_owned(),
                _ => "LIMIT 3 LOCK IN SHARE MODE".to_owned(),
            },
            _ => format!("LIMIT {}", self.slot(Slot::Limit)),
        }
    }

    fn select(&mut self) -> String {
        let id = self.column(self.world.id);
        match self.random.below(9) {
            0 if self.joins.is_empty() && !self.conditions.is_empty() => return "*".to_owned(),
            1 => return format!("{}.*", self.alias),
            2 if !self.shown.is_empty() => return format!("{}.*, {}", self.alias, self.shown[0]),
            _ => {}
        }
        let mut items = Vec::new();
        if !self.random.one_in(6) {
            items.push(id);
        }
        // A row joined by a column other than the author's is cached only if the statement also selects that column.
        if self.joins.contains("topics") && !self.random.one_in(12) {
            items.push(self.column("topic"));
        }
        for _ in 0..1 + self.random.below(4) {
            let item = self.item();
            items.push(item);
        }
        items.join(", ")
    }

    fn item(&mut self) -> String {
        let world = self.world;
        let column = self.random.pick(&world.columns).clone();
        let name = self.named(&column);
        if !self.shown.is_empty() && self.random.one_in(2) {
            let shown = *self.random.pick(&self.shown);
            return match self.random.below(5) {
                0 => format!("{shown} AS `by`"),
                1 => format!("\u{ab}CONCAT({shown}, '!')\u{bb}"),
                _ => shown.to_owned(),
            };
        }
        let drawn = match self.random.below(30) {
            0..=5 => self.random.below(5),
            6 if self.random.one_in(3) => 5 + self.random.below(15),
            _ => 20 + self.random.below(11),
        };
        let expression = match drawn {
            0 => format!("IFNULL({name}, 'none')"),
            1 => format!("COALESCE({name}, 'none', 5)"),
            2 => {
                format!("COALESCE({name}, {})", self.named(&world.columns[0]))
            }
            19 => format!("({name})"),
            4 => (*self
                .random
                .pick(&["-5", "- 5", "1", "1.50", "NULL", "'text'", "'a' 'b'", "(7)"]))
            .to_owned(),
            5 => format!("{name} IS NULL"),
            6 => (*self.random.pick(&[
                "1e1",
                "TRUE",
                "x'41'",
                "_latin1'x'",
                "N'y'",
                "0x41",
                "+3",
                ".5",
            ]))
            .to_owned(),
            7 => format!("CASE WHEN {name} IS NULL THEN 'nothing' ELSE 'it' END"),
            8 => format!("CASE {name} WHEN 1 THEN 'one' END"),
            9 => format!("CONCAT({name}, ' ', {})", self.column(world.id)),
            10 => format!("NULLIF({name}, 'x')"),
            11 => format!("{name} = 1"),
            12 => format!("LENGTH({name})"),
            13 => format!("UPPER({name})"),
            14 => format!("{} + 1", self.column(world.id)),
            15 => format!("IF({name} IS NULL, 0, 1)"),
            16 => format!("CAST({name} AS CHAR)"),
            17 => format!("LEFT({name}, 3)"),
            18 => format!("GREATEST({}, 3)", self.column(world.id)),
            20 => return self.column(world.key),
            21 => return self.column("topic"),
            22 => return self.column(world.author),
            _ => {
                return match self.random.below(90) {
                    0 => format!("{name} AS '\u{e9}tiquette'"),
                    1..=5 => format!("{name} AS `it's`"),
                    6..=12 => format!("{name} shown"),
                    _ => name,
                };
            }
        };
        match self.random.one_in(2) {
            true => format!("{expression} AS e{}", self.random.below(3)),
            false => format!("\u{ab}{expression}\u{bb}"),
        }
    }

    fn named(&self, column: &Column) -> String {
        match column.name {
            "order" => self.column("`order`"),
            name => self.column(name),
        }
    }

    /// A column of messages.
    fn column(&self, name: &str) -> String {
        match self.is_bare {
            true => name.to_owned(),
            false => format!("{}.{name}", self.alias),
        }
    }

    fn slot(&mut self, slot: Slot) -> String {
        self.slots.push(slot);
        format!("{{{}}}", self.slots.len() - 1)
    }
}
