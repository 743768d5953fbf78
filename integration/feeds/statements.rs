//! Random statements of feeds, in all shapes that apps write.

use super::app::App;
use super::keys::Key;
use crate::kit::random::Random;

pub(super) struct Statement {
    pub(super) text: String,
    /// Where the key alone orders: the same statement with several orders for messages of one key. Of three such messages, the middle one
    /// is the same by ascending and by descending ids.
    pub(super) either: Option<[String; 4]>,
}

/// Draws statements: their form and their values.
pub(super) struct Drawn<'a> {
    /// Seeded alike for all statements of one template.
    pub(super) random: Random,
    pub(super) values: &'a mut Random,
    pub(super) app: &'a App,
    /// The column that orders pages before the id.
    pub(super) key: Option<&'a Key>,
}

impl Drawn<'_> {
    fn user(&mut self) -> u64 {
        // Some users do not exist.
        1 + self.values.below(self.app.users + 2)
    }

    fn id(&mut self) -> u64 {
        self.values.below(self.app.messages + 10)
    }

    fn list(&mut self) -> String {
        let count = match self.values.below(4) {
            0 => 1,
            1 => 2 + self.values.below(5),
            2 => 10 + self.values.below(40),
            _ => 2 + self.values.below(20),
        };
        let quote = self.quote();
        let users: Vec<String> = (0..count)
            .map(|_| format!("{quote}{}{quote}", self.user()))
            .collect();
        format!("({})", users.join(self.pick(&[",", ", "])))
    }

    /// Some statements write numbers as strings.
    fn quote(&mut self) -> &'static str {
        self.pick(&["", "", "", "", "'"])
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        self.random.pick::<&'static str>(from)
    }

    pub(super) fn statement(&mut self) -> Statement {
        let quoted = self.random.one_in(2);
        let name = |name: &str| match quoted {
            true => format!("`{name}`"),
            false => name.to_owned(),
        };
        let alias = match self.random.below(3) {
            0 => None,
            1 => Some("s"),
            _ => Some("status"),
        };
        let statuses = name("statuses");
        let me = alias.map_or_else(|| statuses.clone(), name);
        let column = |column: &str| format!("{me}.{}", name(column));
        let quote = self.quote();
        let reader = format!("{quote}{}{quote}", self.user());
        let mut from = match alias {
            Some(alias) => format!("{statuses}{}{}", self.pick(&[" ", " AS "]), name(alias)),
            None => statuses.clone(),
        };
        let mut conditions = Vec::new();
        let author = column("profile_id");
        let mut distinct = false;
        let shape = self.random.below(11);
        match shape {
            0 | 1 => conditions.push(format!("{author} IN {}", self.list())),
            2 => conditions.push(format!(
                "{author} IN (SELECT following_id FROM followers WHERE profile_id = {reader}{})",
                self.pick(&["", " AND accepted = 1"])
            )),
            3 => {
                let on = format!("{author} = {}", name("f") + ".following_id");
                let own = format!("f.{} = {reader}", name("profile_id"));
                let join = self.pick(&["JOIN", "INNER JOIN", "join"]);
                from = format!("{from} {join} {} f ON {on}", name("followers"));
                match self.random.one_in(2) {
                    true => conditions.push(own),
                    false => from = format!("{from} AND {own}"),
                }
            }
            4 => conditions.push(format!(
                "EXISTS (SELECT {} FROM followers WHERE followers.following_id = {author} AND followers.profile_id = {reader})",
                self.pick(&["1", "*"])
            )),
            // ORMs write this form.
            5 => conditions.push(format!(
                "{author} IN (SELECT U0.`id` FROM `profiles` U0 INNER JOIN `followers` U1 ON (U0.`id` = U1.`following_id`) WHERE U1.`profile_id` = {reader})"
            )),
            6 => conditions.push(format!(
                "EXISTS(SELECT 1 AS `a` FROM followers U0 WHERE (U0.following_id = ({author}) AND U0.profile_id IN ({reader})) LIMIT 1)"
            )),
            7 => conditions.push(format!(
                "(EXISTS (SELECT 1 FROM profiles WHERE profiles.id = {author} AND (EXISTS (SELECT 1 FROM profiles AS p_1, followers AS f_1 \
                 WHERE profiles.id = f_1.following_id AND p_1.id = f_1.profile_id AND p_1.id = {reader}))))"
            )),
            8 => conditions.push(format!(
                "{author} IN (SELECT f2_.following_id AS sclr_7 FROM followers f2_ WHERE f2_.profile_id IN ({reader}, {reader}))"
            )),
            9 => conditions.push(format!(
                "({author} IN (SELECT following_id FROM followers WHERE profile_id = {reader}) OR {author} = {reader})"
            )),
            _ => conditions.push(format!("{author} = {reader}")),
        }
        if self.random.one_in(3) {
            from = match self.random.one_in(3) {
                true => format!("({from} INNER JOIN profiles p ON (p.id = {author}))"),
                false => format!("{from} JOIN profiles p ON p.id = {author}"),
            };
            if self.random.one_in(2) {
                conditions.push("p.private = 0".into());
            }
        }
        let filters = self.random.below(3);
        for _ in 0..filters {
            let filter = match self.random.below(9) {
                0 => format!("{} IS NULL", column("deleted_at")),
                1 => format!("{} IN ('photo', 'video')", column("kind")),
                2 => format!("{} = 'public'", column("visibility")),
                3 => format!("{} IS NULL", column("in_reply_to")),
                4 => format!("{} > {}", column("likes"), self.values.below(60)),
                5 => format!("{} LIKE '%{}%'", column("caption"), self.values.below(10)),
                6 => format!(
                    "{author} NOT IN (SELECT blocked_id FROM blocks WHERE blocks.profile_id = {reader})"
                ),
                7 => format!("{} <> 'text'", column("kind")),
                _ => format!(
                    "({} = 'public' OR {} > 10)",
                    column("visibility"),
                    column("likes")
                ),
            };
            conditions.push(filter);
        }
        let id = column("id");
        conditions.extend(match self.key {
            Some(key) => self.cursor(key, &column(key.name), &id),
            None => self.id_cursor(&id),
        });
        self.random.shuffle(&mut conditions);
        let mut called = None;
        let columns = match self.random.below(6) {
            5 => {
                let first = self.key.map_or_else(|| id.clone(), |key| column(key.name));
                called = Some("sorted_by");
                format!("{id}, {first} AS sorted_by, {}", column("caption"))
            }
            0 => format!("{me}.*"),
            1 if from == statuses => "*".to_owned(),
            2 => {
                distinct = self.random.one_in(2);
                id.clone()
            }
            3 => format!("{id}, {author}, {} AS what", column("caption")),
            _ => format!(
                "{id} AS id, {author} AS author, {}, {}",
                column("caption"),
                column("created_at")
            ),
        };
        let and = self.pick(&[" AND ", " and ", "\n  AND "]);
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(and)),
        };
        let rows = 1 + self.values.below(30);
        let limit = match self.random.below(5) {
            0 => format!("LIMIT {}, {rows}", self.values.below(40)),
            1 => format!("LIMIT {rows} OFFSET {}", self.values.below(40)),
            _ => format!("LIMIT {rows}"),
        };
        let select = match distinct {
            true => "SELECT DISTINCT",
            false => self.pick(&["SELECT", "select"]),
        };
        // ORMs that load several rows for each message select the ids of a page this way.
        let derived = called.is_none() && !distinct && self.random.one_in(8);
        let own = self.key.map_or_else(|| id.clone(), |key| column(key.name));
        let inner = format!(
            "SELECT {id} AS d_id, {own} AS d_key, {} AS d_caption FROM {from}{filter}",
            column("caption")
        );
        let (first, id) = match derived {
            true => ("d.d_key", "d.d_id"),
            false => (called.unwrap_or(&own), &*id),
        };
        let order = match self.key {
            None => format!("{} DESC", called.unwrap_or(id)),
            Some(_) => {
                let behind = self
                    .pick(&["", ", id"])
                    .replace("id", &format!("{id} DESC"));
                format!("{first} DESC{behind}")
            }
        };
        let ordered = |order: &str| match derived {
            true => format!(
                "SELECT DISTINCT d.d_id AS ids, d.d_key FROM ({inner}) d ORDER BY {order} {limit}"
            ),
            false => format!("{select} {columns} FROM {from}{filter} ORDER BY {order} {limit}"),
        };
        let alone = self.key.is_some() && !order.contains(',');
        Statement {
            text: ordered(&order),
            either: alone.then(|| {
                [
                    "{id} DESC",
                    "{id} ASC",
                    "{id} % 3, {id} DESC",
                    "{id} % 5 DESC, {id}",
                ]
                .map(|behind| ordered(&format!("{order}, {}", behind.replace("{id}", id))))
            }),
        }
    }

    fn id_cursor(&mut self, id: &str) -> Option<String> {
        match self.random.below(6) {
            0 => Some(format!("{id} < {}", self.id())),
            1 => Some(format!("{id} <= {}", self.id())),
            2 => Some(format!("{id} > {}", self.id())),
            3 => {
                let (a, b) = (self.id(), self.id());
                Some(format!("{id} BETWEEN {} AND {}", a.min(b), a.max(b)))
            }
            _ => None,
        }
    }

    fn cursor(&mut self, key: &Key, at: &str, id: &str) -> Option<String> {
        let (a, b) = (key.literal(self.values), key.literal(self.values));
        let number = self.id();
        let (less, inner) = match self.random.below(4) {
            0 => ("<", "<"),
            1 => ("<", "<="),
            2 => (">", ">"),
            _ => (">", ">="),
        };
        Some(match self.random.below(12) {
            0 => format!("{at} < {a}"),
            1 => format!("{at} <= {a}"),
            2 => format!("{at} > {a}"),
            3 => format!("{a} > {at}"),
            4 => format!("{at} BETWEEN {b} AND {a}"),
            5 => format!("({at}, {id}) {inner} ({a}, {number})"),
            6 => format!("({at} {less} {a} OR ({at} = {a} AND {id} {inner} {number}))"),
            7 => format!("({at} {less} {a} OR ({at} = {b} AND {id} {inner} {number}))"),
            8 => format!("{at} < {a} AND {at} >= {b}"),
            9 => format!("{id} < {number}"),
            _ => return None,
        })
    }
}
