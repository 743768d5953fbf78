//! Two sessions that run the same statements, one directly on the server and one through Headwater. Rows, warnings and errors are equal.
//! Column metadata is what the server has sent for the same template.

use std::collections::{HashMap, HashSet};

use crate::kit::wire_client::answer::{answers, ends_rows, terminator};
use crate::kit::wire_client::packet::Values;
use crate::kit::wire_client::{
    Answer, COM_STMT_CLOSE, Param, Reply, ResultSet, WireClient, capability,
};

/// PRI_KEY, UNIQUE_KEY, MULTIPLE_KEY, AUTO_INCREMENT, TIMESTAMP, ON_UPDATE_NOW, PART_KEY.
const KEY_FLAGS: u16 = 0x660e;
/// No index, no good index.
const PLAN: u16 = 0x30;

/// Key flags of each column, and the plan's status flags.
type Variant = (Vec<u16>, u16);

pub(super) struct Pair {
    direct: WireClient,
    proxied: WireClient,
    /// Variants that the server has sent, by template.
    said: HashMap<u64, HashSet<Variant>>,
    /// The column metadata that each side received last for a statement.
    columns: [HashMap<u32, Vec<Vec<u8>>>; 2],
}

impl Pair {
    pub(super) fn new(direct: WireClient, proxied: WireClient) -> Pair {
        Pair {
            direct,
            proxied,
            said: HashMap::new(),
            columns: [HashMap::new(), HashMap::new()],
        }
    }

    pub(super) fn direct(&mut self) -> &mut WireClient {
        &mut self.direct
    }

    pub(super) fn proxied(&mut self) -> &mut WireClient {
        &mut self.proxied
    }

    /// Sends the query on both sides.
    #[track_caller]
    pub(super) fn ask(&mut self, template: u64, statement: &str) {
        let direct = self.direct.query(statement);
        let proxied = self.proxied.query(statement);
        self.compare(template, statement, direct, proxied, |pair| {
            pair.direct.query(statement)
        });
    }

    /// Sends the query on both sides. Answers are equal in the whole protocol, including the plan's key flags and status flags.
    #[track_caller]
    pub(super) fn ask_exactly(&mut self, statement: &str) {
        let direct = self.direct.query(statement);
        let proxied = self.proxied.query(statement);
        assert!(
            direct == proxied,
            "to: {statement}\n direct {direct:02x?}\nproxied {proxied:02x?}"
        );
    }

    /// Sends several statements in one command, each with its own template.
    #[track_caller]
    pub(super) fn ask_several(&mut self, statements: &[(u64, String)]) {
        let texts: Vec<&str> = statements.iter().map(|(_, text)| &**text).collect();
        let text = texts.join(";");
        let direct = self.direct.query(&text);
        let proxied = self.proxied.query(&text);
        assert_eq!(direct.len(), proxied.len(), "answers to: {text}");
        let answers = direct.into_iter().zip(proxied);
        for (at, (direct, proxied)) in answers.enumerate() {
            let template = statements[at].0;
            self.compare(template, &text, vec![direct], vec![proxied], |pair| {
                vec![pair.direct.query(&text).remove(at)]
            });
        }
    }

    /// Sends a text that returns no rows on both sides.
    pub(super) fn run(&mut self, text: &str) {
        self.direct.ok(text);
        self.proxied.ok(text);
    }

    /// Prepares on both sides.
    #[track_caller]
    pub(super) fn prepare(&mut self, text: &str) -> [u32; 2] {
        let prepared = [&mut self.direct, &mut self.proxied].map(|it| it.prepare_described(text));
        let [(direct, of_direct), (proxied, of_proxied)] = prepared;
        assert_eq!(of_direct, of_proxied, "{text}");
        let statement = [direct, proxied];
        for (columns, (id, told)) in self
            .columns
            .iter_mut()
            .zip(statement.into_iter().zip([of_direct, of_proxied]))
        {
            columns.insert(id, told);
        }
        statement
    }

    /// Closes on both sides.
    pub(super) fn close(&mut self, statement: [u32; 2]) {
        for (client, id) in [&mut self.direct, &mut self.proxied]
            .into_iter()
            .zip(statement)
        {
            let close = [&[COM_STMT_CLOSE][..], &id.to_le_bytes()].concat();
            client.send(&close).unwrap();
        }
    }

    /// Executes on both sides; `types`: the parameter types are sent along.
    #[track_caller]
    pub(super) fn execute(
        &mut self,
        template: u64,
        text: &str,
        statement: [u32; 2],
        params: &[Param],
        types: bool,
    ) {
        let direct = self.executed(0, statement[0], params, types);
        let proxied = self.executed(1, statement[1], params, types);
        let story = format!("{text} with {params:02x?}, types: {types}");
        self.compare(template, &story, direct, proxied, |pair| {
            // A new statement: a client that caches columns does not receive those of an older statement again.
            let (id, told) = pair.direct.prepare_described(text);
            pair.columns[0].insert(id, told);
            pair.executed(0, id, params, true)
        });
    }

    /// Executes on one side; 0 is the direct one.
    fn executed(&mut self, side: usize, id: u32, params: &[Param], types: bool) -> Vec<Answer> {
        let client = match side {
            0 => &mut self.direct,
            _ => &mut self.proxied,
        };
        let columns = &mut self.columns[side];
        let payload = client.execution(id, params, 0, types);
        let reply = client.command(&payload).unwrap();
        let mut answers = binary(&reply, client.capabilities);
        if let [Answer::Rows(rows)] = &mut answers[..] {
            match rows.columns.is_empty() {
                true => rows.columns.clone_from(&columns[&id]),
                false => drop(columns.insert(id, rows.columns.clone())),
            }
        }
        answers
    }

    /// `again` repeats the direct query, because the server may choose another plan at any time, also between the two queries.
    #[track_caller]
    fn compare(
        &mut self,
        template: u64,
        statement: &str,
        direct: Vec<Answer>,
        proxied: Vec<Answer>,
        again: impl FnOnce(&mut Pair) -> Vec<Answer>,
    ) {
        let (direct, variant) = plain(direct);
        let (proxied, found) = plain(proxied);
        if direct != proxied {
            let [direct, proxied] = [direct, proxied].map(|answer| {
                let text = format!("{answer:?}");
                text.chars().take(3_000).collect::<String>()
            });
            panic!("to: {statement}\n direct {direct}\nproxied {proxied}");
        }
        self.said.entry(template).or_default().extend(variant);
        let is_said = |pair: &Pair| {
            let said = &pair.said[&template];
            found.as_ref().is_none_or(|found| said.contains(found))
        };
        if !is_said(self) {
            let (_, variant) = plain(again(self));
            self.said.entry(template).or_default().extend(variant);
        }
        let said = &self.said[&template];
        assert!(
            is_said(self),
            "columns as never said: {found:x?}\nbut {said:x?}\nto: {statement}"
        );
    }

    /// The same for a statement that leaves the order of some rows to the server, which may choose anew each time. `either` is the query
    /// in several orders. Where these differ, `narrowed` must not count the statement.
    #[track_caller]
    pub(super) fn ask_untied(
        &mut self,
        template: u64,
        statement: &str,
        either: &[String; 4],
        narrowed: impl Fn() -> u64,
    ) {
        let [first, second, rest @ ..] = either;
        let first = rows(self.direct.query(first));
        if rows(self.direct.query(second)) == first {
            let before = narrowed();
            let proxied = self.proxied.query(statement);
            let is_narrowed = narrowed() > before;
            let direct = self.direct.query(statement);
            let as_first = [&direct, &proxied].map(|answers| rows(answers.clone()) == first);
            // The page may show the middle one of several messages with one key.
            let is_free = as_first != [true; 2]
                && rest
                    .iter()
                    .any(|order| rows(self.direct.query(order)) != first);
            assert!(!(is_free && is_narrowed), "narrowed with ties: {statement}");
            if !is_free {
                self.compare(template, statement, direct, proxied, |pair| {
                    pair.direct.query(statement)
                });
            }
            return;
        }
        // Headwater may sample column metadata from this query.
        let (_, variant) = plain(self.direct.query(statement));
        self.said.entry(template).or_default().extend(variant);
        let before = narrowed();
        self.proxied.query(statement);
        assert_eq!(narrowed(), before, "narrowed with ties: {statement}");
    }
}

fn rows(mut answers: Vec<Answer>) -> Vec<Vec<Option<String>>> {
    match answers.pop() {
        Some(Answer::Rows(rows)) => rows.rows,
        _ => Vec::new(),
    }
}

/// The answers to an execution. Each row is one cell with the bytes of the packet. A client that caches the columns does not
/// receive them.
fn binary(reply: &Reply, capabilities: u64) -> Vec<Answer> {
    let packets = &reply.packets;
    if matches!(packets[0].first_byte(), Some(0x00 | 0xff)) {
        return answers(packets, capabilities);
    }
    let left_out = capabilities & capability::MARIADB_CACHE_METADATA != 0
        && packets[0].payload.last() == Some(&0);
    let columns = match left_out {
        true => 1,
        false => 1 + Values(&packets[0].payload).lenenc() as usize,
    };
    let rows = match capabilities & capability::DEPRECATE_EOF {
        0 => columns + 1,
        _ => columns,
    };
    let (last, before) = packets.split_last().unwrap();
    assert!(ends_rows(last, capabilities), "{last:?}");
    let (status, warnings) = terminator(last, capabilities);
    let cell = |row: &[u8]| vec![Some(row.escape_ascii().to_string())];
    vec![Answer::Rows(ResultSet {
        columns: before[1..columns]
            .iter()
            .map(|packet| packet.payload.clone())
            .collect(),
        rows: before[rows..]
            .iter()
            .map(|packet| cell(&packet.payload))
            .collect(),
        status,
        warnings,
    })]
}

/// Splits an answer into the part that does not depend on the plan, and the flags that do.
fn plain(mut answers: Vec<Answer>) -> (Vec<Answer>, Option<Variant>) {
    let mut variant = None;
    for answer in &mut answers {
        if let Answer::Rows(rows) = answer {
            let flags = rows.columns.iter_mut().map(|column| {
                let at = column.len() - 5;
                let flags = u16::from_le_bytes([column[at], column[at + 1]]);
                column[at..at + 2].copy_from_slice(&(flags & !KEY_FLAGS).to_le_bytes());
                flags & KEY_FLAGS
            });
            variant = Some((flags.collect(), rows.status & PLAN));
            rows.status &= !PLAN;
        }
    }
    (answers, variant)
}
