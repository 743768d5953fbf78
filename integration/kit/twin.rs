//! Runs the same statements in two sessions, one straight to the server and one through Headwater. Their replies must be equal, packet by
//! packet.

use super::proxy::Proxy;
use super::servers::Server;
use super::wire_client::answer::{answers, ends_rows};
use super::wire_client::packet::{Packet, Values};
use super::wire_client::{
    Answer, COM_CHANGE_USER, COM_INIT_DB, COM_PING, COM_QUERY, COM_RESET_CONNECTION,
    COM_STMT_EXECUTE, Login, Param, Reply, WireClient, capability,
};

/// Status bits that a cursor inside the procedure leaves set: they vary between runs of the same statement on one server.
const NOISE: u16 = 0x40 | 0x80;
/// The flag that no index was used: it depends on the plan.
const NO_INDEX: u16 = 0x20;

/// How many of the last statements a reported difference shows.
const TOLD: usize = 40;

/// Two sessions that run the same statements.
#[derive(Debug)]
pub(crate) struct Twin {
    pub(crate) direct: WireClient,
    pub(crate) proxied: WireClient,
    names: Option<[String; 2]>,
    told: Vec<String>,
    parse_warns: bool,
    /// The status flags that are not compared.
    noise: u16,
}

impl Twin {
    /// Both sessions use the login's database.
    #[track_caller]
    pub(crate) fn new(server: &Server, proxy: &Proxy, login: &Login) -> Twin {
        Twin::of(
            WireClient::login(server.addr(), login),
            proxy.login(login),
            None,
        )
    }

    /// Each session uses its own database, of the same content and with a name of the same length. `{db}` in a statement stands for that
    /// database.
    #[track_caller]
    pub(crate) fn apart(server: &Server, proxy: &Proxy, login: &Login, names: [&str; 2]) -> Twin {
        let [direct, proxied] = names.map(|name| login.clone().database(name));
        assert_eq!(names[0].len(), names[1].len());
        Twin::of(
            WireClient::login(server.addr(), &direct),
            proxy.login(&proxied),
            Some(names.map(str::to_owned)),
        )
    }

    /// Also compares whether an index was used.
    pub(crate) fn of_one_plan(mut self) -> Twin {
        self.noise = NOISE;
        self
    }

    /// Two sessions in one database of a server without other sessions. Also compares the warning counts of calls.
    pub(crate) fn between(direct: WireClient, proxied: WireClient) -> Twin {
        Twin::of(direct, proxied, None).parse_is_silent()
    }

    fn of(direct: WireClient, proxied: WireClient, names: Option<[String; 2]>) -> Twin {
        let parse_warns = !direct.greeting.is_mariadb();
        Twin {
            direct,
            proxied,
            names,
            told: Vec::new(),
            parse_warns,
            noise: NOISE | NO_INDEX,
        }
    }

    /// The procedures' bodies contain nothing that MySQL warns of when it parses them (3719, `utf8`), so the warning counts of calls are
    /// compared as well.
    pub(crate) fn parse_is_silent(mut self) -> Twin {
        self.parse_warns = false;
        self
    }

    /// Runs a text on both sides. Returns the direct side's answers, after a check that the other side's are equal.
    #[track_caller]
    pub(crate) fn run(&mut self, sql: &str) -> Vec<Answer> {
        self.told.push(sql.to_owned());
        let text = self.texts(sql);
        let payloads = [
            self.direct.query_payload(text[0].as_bytes(), &[]),
            self.proxied.query_payload(text[1].as_bytes(), &[]),
        ];
        let masked = self.parses_procedure(sql);
        let reply = self.exchange(payloads, masked, false);
        answers(&reply.packets, self.direct.capabilities)
    }

    /// [`Twin::run`] with rows in any order.
    #[track_caller]
    pub(crate) fn run_unordered(&mut self, sql: &str) {
        self.told.push(sql.to_owned());
        let text = self.texts(sql);
        let payloads = [
            self.direct.query_payload(text[0].as_bytes(), &[]),
            self.proxied.query_payload(text[1].as_bytes(), &[]),
        ];
        self.exchange(payloads, false, true);
    }

    /// Runs a statement that must return one OK.
    #[track_caller]
    pub(crate) fn ok(&mut self, sql: &str) {
        let answers = self.run(sql);
        assert!(
            matches!(answers[..], [Answer::Ok(_)]),
            "{answers:?} to: {sql}"
        );
    }

    /// Runs a statement that must fail. Returns the error code of both sides.
    #[track_caller]
    pub(crate) fn error(&mut self, sql: &str) -> u16 {
        match self.run(sql).pop() {
            Some(Answer::Err(error)) => error.code,
            other => panic!("no error but {other:?} to: {sql}"),
        }
    }

    /// Runs a statement. Returns the rows of both sides.
    #[track_caller]
    pub(crate) fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        match self.run(sql).pop() {
            Some(Answer::Rows(rows)) => rows.rows,
            other => panic!("no rows but {other:?} to: {sql}"),
        }
    }

    /// Sends any command, the same bytes to both.
    #[track_caller]
    pub(crate) fn command(&mut self, payload: &[u8]) -> Reply {
        self.told.push(format!("command {payload:02x?}"));
        // A ping repeats the warning count of the previous statement.
        let masked = self.parse_warns && payload == [COM_PING];
        self.exchange([payload.to_vec(), payload.to_vec()], masked, false)
    }

    /// COM_CHANGE_USER to `root` without a password and without a database.
    #[track_caller]
    pub(crate) fn change_to_root(&mut self) {
        self.told.push("change user".to_owned());
        let mut ends = Vec::new();
        for client in [&mut self.direct, &mut self.proxied] {
            let mut change = vec![COM_CHANGE_USER];
            change.extend(b"root\0\0\0\x2d\0");
            change.extend(client.greeting.plugin.as_bytes());
            change.push(0);
            client.send(&change).unwrap();
            let mut packet = client.read_packet().unwrap();
            // The server asks again, with a scramble that only this side has.
            while packet.first_byte() == Some(0xfe) {
                client.send_packet(packet.seq + 1, &[]).unwrap();
                packet = client.read_packet().unwrap();
            }
            ends.push((packet.seq, packet.payload));
        }
        assert_eq!(ends[0], ends[1], "{}", self.story());
    }

    /// Runs a text with query attributes.
    #[track_caller]
    pub(crate) fn attributed(&mut self, sql: &str, attributes: &[(&str, &str)]) -> Reply {
        self.told.push(format!("{sql} with {attributes:?}"));
        let text = self.texts(sql);
        let payloads = [
            self.direct.query_payload(text[0].as_bytes(), attributes),
            self.proxied.query_payload(text[1].as_bytes(), attributes),
        ];
        let masked = self.parses_procedure(sql);
        self.exchange(payloads, masked, false)
    }

    /// Prepares a statement on both sides.
    #[track_caller]
    pub(crate) fn prepare(&mut self, sql: &str) -> [u32; 2] {
        self.told.push(format!("prepare {sql}"));
        let text = self.texts(sql);
        [
            self.direct.prepare(&text[0]),
            self.proxied.prepare(&text[1]),
        ]
    }

    /// Executes what [`Twin::prepare`] returned.
    #[track_caller]
    pub(crate) fn execute(&mut self, statement: [u32; 2], params: &[Option<&str>]) -> Reply {
        self.told.push(format!("execute {statement:?} {params:?}"));
        let payloads = [
            self.direct.execute_payload(statement[0], params, 0),
            self.proxied.execute_payload(statement[1], params, 0),
        ];
        self.exchange(payloads, self.parse_warns, false)
    }

    /// Executes with parameters of any type. `types`: the types are sent along.
    #[track_caller]
    pub(crate) fn execute_with(
        &mut self,
        statement: [u32; 2],
        params: &[Param],
        cursor: u8,
        types: bool,
    ) -> Reply {
        self.told
            .push(format!("execute {statement:?} {params:?} {cursor} {types}"));
        let payloads = [
            self.direct.execution(statement[0], params, cursor, types),
            self.proxied.execution(statement[1], params, cursor, types),
        ];
        self.exchange(payloads, self.parse_warns, false)
    }

    /// Sends a command that begins with a statement's id. It has no reply, except COM_STMT_RESET and COM_STMT_FETCH.
    #[track_caller]
    pub(crate) fn of_statement(&mut self, command: u8, statement: [u32; 2], rest: &[u8]) -> Reply {
        self.told
            .push(format!("command {command:02x} {statement:?} {rest:02x?}"));
        let payload = |id: u32| [&[command][..], &id.to_le_bytes(), rest].concat();
        self.exchange([payload(statement[0]), payload(statement[1])], false, false)
    }

    /// Runs a statement for each side's server on another connection, outside the comparison.
    #[track_caller]
    pub(crate) fn aside(&mut self, client: &mut WireClient, sql: &str) {
        self.told.push(format!("meanwhile {sql}"));
        for text in self.texts(sql) {
            client.query(&text);
        }
    }

    /// The last statements, for the report of a failure.
    pub(crate) fn story(&self) -> String {
        let from = self.told.len().saturating_sub(TOLD);
        self.told[from..].join(";\n")
    }

    fn texts(&self, sql: &str) -> [String; 2] {
        match &self.names {
            Some([direct, proxied]) => [sql.replace("{db}", direct), sql.replace("{db}", proxied)],
            None => [sql.to_owned(), sql.to_owned()],
        }
    }

    #[track_caller]
    fn exchange(
        &mut self,
        payloads: [Vec<u8>; 2],
        warnings_masked: bool,
        unordered: bool,
    ) -> Reply {
        let [first, second] = payloads;
        let command = first.first().copied().unwrap_or_default();
        let direct = self.direct.command(&first);
        let proxied = self.proxied.command(&second);
        let (direct, mut proxied) = match (direct, proxied) {
            (Ok(mut direct), Ok(mut proxied)) => {
                unnumber_row(&mut direct);
                unnumber_row(&mut proxied);
                (direct, proxied)
            }
            (Err(_), Err(_)) => return Reply::default(),
            (direct, proxied) => panic!(
                "the connection ended on one side alone\ndirect {direct:?}\nproxied {proxied:?}\nafter:\n{}",
                self.story()
            ),
        };
        if let Some([name, other]) = &self.names {
            for packet in &mut proxied.packets {
                replace(&mut packet.payload, other.as_bytes(), name.as_bytes());
            }
        }
        let capabilities = self.direct.capabilities;
        let mask = Mask {
            command,
            capabilities,
            warnings_masked,
            unordered,
            noise: self.noise,
        };
        let (expected, found) = (mask.apply(&direct), mask.apply(&proxied));
        if expected != found {
            let place = expected.iter().zip(&found).position(|(a, b)| a != b);
            let place = place.unwrap_or(expected.len().min(found.len()));
            let show = |packets: &[Packet]| packets.get(place).map(shown);
            panic!(
                "packet {place} differs ({} and {} packets)\n direct {:?}\nproxied {:?}\n\
                 as told: direct {}\n        proxied {}\nafter:\n{}",
                expected.len(),
                found.len(),
                show(&expected),
                show(&found),
                described(command, &direct, capabilities),
                described(command, &proxied, capabilities),
                self.story()
            );
        }
        direct
    }

    /// MySQL parses a body at a session's first call, and again after any procedure is created or dropped on the server. It warns only
    /// then, which a session cannot predict.
    fn parses_procedure(&self, sql: &str) -> bool {
        let sql = sql.to_ascii_lowercase();
        let names = ["fetch_timeline_ids", "build_max_ids_of_followers"];
        self.parse_warns && sql.contains("call") && names.iter().any(|name| sql.contains(name))
    }
}

/// Every permitted difference between two replies is listed here.
struct Mask {
    command: u8,
    capabilities: u64,
    warnings_masked: bool,
    unordered: bool,
    noise: u16,
}

impl Mask {
    fn apply(&self, reply: &Reply) -> Vec<Packet> {
        let mut packets = reply.packets.clone();
        match self.command {
            COM_QUERY | COM_STMT_EXECUTE => self.results(&mut packets),
            COM_PING | COM_INIT_DB | COM_RESET_CONNECTION | COM_CHANGE_USER => {
                packets.iter_mut().for_each(|packet| self.ok(packet));
            }
            _ => {}
        }
        packets
    }

    fn results(&self, packets: &mut [Packet]) {
        let deprecate_eof = self.capabilities & capability::DEPRECATE_EOF != 0;
        let mut at = 0;
        while at < packets.len() {
            if matches!(packets[at].first_byte(), Some(0x00 | 0xff | 0xfb)) {
                self.ok(&mut packets[at]);
                at += 1;
                continue;
            }
            let mut values = Values(&packets[at].payload);
            let columns = values.lenenc() as usize;
            at += 1 + if values.0.first() == Some(&0) {
                0
            } else {
                columns
            };
            if !deprecate_eof {
                self.end(&mut packets[at]);
                at += 1;
                // COM_STMT_FETCH reads the rows of a cursor.
                if at == packets.len() {
                    break;
                }
            }
            let rows = at;
            while packets[at].first_byte() != Some(0xff)
                && !ends_rows(&packets[at], self.capabilities)
            {
                at += 1;
            }
            if self.unordered {
                let mut sorted: Vec<Vec<u8>> = packets[rows..at]
                    .iter()
                    .map(|row| row.payload.clone())
                    .collect();
                sorted.sort();
                for (packet, row) in packets[rows..at].iter_mut().zip(sorted) {
                    packet.first_part = row.len();
                    packet.payload = row;
                }
            }
            self.end(&mut packets[at]);
            at += 1;
        }
    }

    fn end(&self, packet: &mut Packet) {
        if self.capabilities & capability::DEPRECATE_EOF != 0 {
            self.ok(packet);
        } else if packet.first_byte() == Some(0xfe) {
            packet.payload[3] &= !(self.noise as u8);
        }
    }

    fn ok(&self, packet: &mut Packet) {
        if !matches!(packet.first_byte(), Some(0x00 | 0xfe)) {
            return;
        }
        let mut values = Values(&packet.payload[1..]);
        values.lenenc();
        values.lenenc();
        let status = packet.payload.len() - values.0.len();
        packet.payload[status] &= !(self.noise as u8);
        if self.warnings_masked {
            packet.payload[status + 2..status + 4].fill(0);
        }
    }
}

/// Replaces a name by one of the same length, so that no length prefix changes.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while at + from.len() <= bytes.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
        at += 1;
    }
}

fn shown(packet: &Packet) -> String {
    let bytes = &packet.payload[..packet.payload.len().min(200)];
    format!("#{} {}", packet.seq, bytes.escape_ascii())
}

fn described(command: u8, reply: &Reply, capabilities: u64) -> String {
    match command {
        COM_QUERY => {
            let text = format!("{:?}", answers(&reply.packets, capabilities));
            text.chars().take(1_500).collect()
        }
        _ => format!("{} packets", reply.packets.len()),
    }
}

/// Removes an error's row number. On MariaDB an error at a call's argument counts rows from the session's earlier statements, unless the
/// server has just read the procedure again after another was created. That can happen between the two sides. SHOW WARNINGS repeats it.
fn unnumber_row(reply: &mut Reply) {
    for packet in &mut reply.packets {
        let payload = &mut packet.payload;
        let end = if payload.first() == Some(&0xff) {
            without_row(payload).len()
        } else if let Some((start, message)) = last_of_three(payload) {
            let kept = without_row(message).len();
            payload[start] = kept as u8;
            start + 1 + kept
        } else {
            continue;
        };
        if end < payload.len() {
            payload.truncate(end);
            packet.first_part = end;
        }
    }
}

/// A text without the row number at its end.
fn without_row(text: &[u8]) -> &[u8] {
    const ROW: &[u8] = b" at row ";
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let (before, _) = text.split_at(text.len() - digits.count());
    if before.ends_with(ROW) { before } else { text }
}

/// The last of three short texts in a row, and the offset of its length.
fn last_of_three(row: &[u8]) -> Option<(usize, &[u8])> {
    let mut start = 0;
    for column in 0..3 {
        let length = usize::from(*row.get(start).filter(|length| **length < 0xfb)?);
        let text = row.get(start + 1..)?.get(..length)?;
        let end = start + 1 + length;
        if column == 2 {
            return (end == row.len()).then_some((start, text));
        }
        start = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unnumbered(payload: &[u8]) -> Packet {
        let mut reply = Reply::default();
        reply.packets.push(Packet {
            seq: 1,
            first_part: payload.len(),
            payload: payload.to_vec(),
        });
        unnumber_row(&mut reply);
        reply.packets.remove(0)
    }

    #[test]
    fn the_number_of_a_row_is_left_out_of_errors_and_of_what_show_warnings_repeats() {
        let error = |row: &str| unnumbered(&[&b"\xffbad at row "[..], row.as_bytes()].concat());
        assert_eq!(error("91"), error("0"));
        let warning = |text: &str| {
            let length = [u8::try_from(text.len()).unwrap()];
            unnumbered(&[b"\x05Error\x041264", &length[..], text.as_bytes()].concat())
        };
        assert_eq!(warning("bad at row 91"), warning("bad at row 0"));
        assert_ne!(warning("bad at row 91"), warning("worse at row 91"));
        assert_ne!(warning("bad in row 91"), warning("bad in row 92"));
    }
}
