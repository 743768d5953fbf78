//! A blocking client of the MySQL protocol that hides nothing: any capabilities, any packet, and the bytes of every reply.

pub(crate) mod answer;
pub(crate) mod capability;
pub(crate) mod frames;
mod login;
pub(crate) mod packet;
mod reply;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) use self::answer::{Answer, OkPacket, ResultSet, ServerError};
pub(crate) use self::login::{Greeting, Login};
pub(crate) use self::reply::{INFILE_PACKET, Reply};

use self::packet::{Packet, put_bytes, put_lenenc};
use self::stream::Stream;

/// A longer wait means that a reply has no end.
const READ_TIMEOUT: Duration = Duration::from_secs(180);

pub(crate) const COM_QUIT: u8 = 0x01;
pub(crate) const COM_INIT_DB: u8 = 0x02;
pub(crate) const COM_QUERY: u8 = 0x03;
pub(crate) const COM_FIELD_LIST: u8 = 0x04;
pub(crate) const COM_STATISTICS: u8 = 0x09;
pub(crate) const COM_PROCESS_INFO: u8 = 0x0a;
pub(crate) const COM_PROCESS_KILL: u8 = 0x0c;
pub(crate) const COM_DEBUG: u8 = 0x0d;
pub(crate) const COM_PING: u8 = 0x0e;
pub(crate) const COM_CHANGE_USER: u8 = 0x11;
pub(crate) const COM_BINLOG_DUMP: u8 = 0x12;
pub(crate) const COM_STMT_PREPARE: u8 = 0x16;
pub(crate) const COM_STMT_EXECUTE: u8 = 0x17;
pub(crate) const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
pub(crate) const COM_STMT_CLOSE: u8 = 0x19;
pub(crate) const COM_STMT_RESET: u8 = 0x1a;
pub(crate) const COM_SET_OPTION: u8 = 0x1b;
pub(crate) const COM_STMT_FETCH: u8 = 0x1c;
pub(crate) const COM_RESET_CONNECTION: u8 = 0x1f;
pub(crate) const COM_STMT_BULK_EXECUTE: u8 = 0xfa;

/// One logged-in connection.
#[derive(Debug)]
pub(crate) struct WireClient {
    pub(crate) stream: Stream,
    pub(crate) greeting: Greeting,
    /// Every byte that the server sent between the greeting and the first command.
    pub(crate) login_raw: Vec<u8>,
    /// The negotiated capabilities; the upper half is MariaDB's.
    pub(crate) capabilities: u64,
    /// The data that the next LOCAL INFILE sends.
    pub(crate) infile: Vec<u8>,
}

impl WireClient {
    /// Connects as `root` without a database.
    #[track_caller]
    pub(crate) fn connect(addr: SocketAddr) -> WireClient {
        WireClient::login(addr, &Login::default())
    }

    #[track_caller]
    pub(crate) fn login(addr: SocketAddr, login: &Login) -> WireClient {
        match WireClient::try_login(addr, login) {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => panic!("{} may not log in: {error:?}", login.user),
            Err(error) => panic!("no conversation with {addr}: {error}"),
        }
    }

    /// Logs in. The outer error is the connection's, the inner one the server's.
    pub(crate) fn try_login(
        addr: SocketAddr,
        login: &Login,
    ) -> io::Result<Result<WireClient, ServerError>> {
        WireClient::heard_login(addr, login, &mut Vec::new())
    }

    /// [`WireClient::try_login`] that also copies every byte of the server to `heard`, even where the login fails.
    pub(crate) fn heard_login(
        addr: SocketAddr,
        login: &Login,
        heard: &mut Vec<u8>,
    ) -> io::Result<Result<WireClient, ServerError>> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let mut stream = Stream::new(stream);
        stream.write_packet(&login.header)?;
        let mut raw = Vec::new();
        Packet::read(&mut stream, &mut raw)?;
        heard.extend(&raw);
        let greeting = match Greeting::parse(raw) {
            Ok(greeting) => greeting,
            Err(error) => return Ok(Err(error)),
        };
        let mut client = WireClient {
            stream,
            greeting,
            login_raw: Vec::new(),
            capabilities: 0,
            infile: Vec::new(),
        };
        let authenticated = client.authenticate(login);
        heard.extend(&client.login_raw);
        let authenticated = authenticated?;
        if client.capabilities & (capability::COMPRESS | capability::ZSTD_COMPRESSION) != 0 {
            let zlib = client.capabilities & capability::COMPRESS != 0;
            client.stream.compress(!zlib);
        }
        Ok(authenticated.map(|()| client))
    }

    /// The answers to a text that may hold several statements.
    #[track_caller]
    pub(crate) fn query(&mut self, sql: &str) -> Vec<Answer> {
        match self.query_reply(sql) {
            Ok(reply) => answer::answers(&reply.packets, self.capabilities),
            Err(error) => panic!("connection lost ({error}) in: {sql}"),
        }
    }

    /// The OK of the last statement.
    #[track_caller]
    pub(crate) fn ok(&mut self, sql: &str) -> OkPacket {
        match self.query(sql).pop() {
            Some(Answer::Ok(ok)) => ok,
            other => panic!("no OK but {other:?} for: {sql}"),
        }
    }

    #[track_caller]
    pub(crate) fn result_set(&mut self, sql: &str) -> ResultSet {
        match self.query(sql).pop() {
            Some(Answer::Rows(rows)) => rows,
            other => panic!("no rows but {other:?} for: {sql}"),
        }
    }

    #[track_caller]
    pub(crate) fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.result_set(sql).rows
    }

    /// The first column, without NULLs.
    #[track_caller]
    pub(crate) fn column(&mut self, sql: &str) -> Vec<String> {
        self.rows(sql)
            .into_iter()
            .filter_map(|row| row.into_iter().next()?)
            .collect()
    }

    #[track_caller]
    pub(crate) fn error(&mut self, sql: &str) -> ServerError {
        match self.query(sql).pop() {
            Some(Answer::Err(error)) => error,
            other => panic!("no error but {other:?} for: {sql}"),
        }
    }

    pub(crate) fn query_reply(&mut self, sql: &str) -> io::Result<Reply> {
        self.command(&self.query_payload(sql.as_bytes(), &[]))
    }

    /// COM_QUERY with query attributes (strings), where they were negotiated.
    pub(crate) fn query_payload(&self, sql: &[u8], attributes: &[(&str, &str)]) -> Vec<u8> {
        let mut payload = vec![COM_QUERY];
        if self.capabilities & capability::QUERY_ATTRIBUTES != 0 {
            put_lenenc(&mut payload, attributes.len());
            put_lenenc(&mut payload, 1);
            if !attributes.is_empty() {
                payload.extend(vec![0; attributes.len().div_ceil(8)]);
                payload.push(1);
                for (name, _) in attributes {
                    payload.extend([0xfe, 0]);
                    put_bytes(&mut payload, name.as_bytes());
                }
                for (_, value) in attributes {
                    put_bytes(&mut payload, value.as_bytes());
                }
            }
        }
        payload.extend(sql);
        payload
    }

    /// Sends any command and reads its reply.
    pub(crate) fn command(&mut self, payload: &[u8]) -> io::Result<Reply> {
        self.send(payload)?;
        self.reply(payload.first().copied().unwrap_or_default())
    }

    /// Sends a command without waiting. [`WireClient::reply`] reads the reply.
    pub(crate) fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        self.stream.begin_command();
        self.send_packet(0, payload)
    }

    pub(crate) fn send_packet(&mut self, seq: u8, payload: &[u8]) -> io::Result<()> {
        self.stream.write_packet(&packet::encode(seq, payload))
    }

    pub(crate) fn read_packet(&mut self) -> io::Result<Packet> {
        Packet::read(&mut self.stream, &mut Vec::new())
    }

    /// Prepares a statement. Returns its id.
    #[track_caller]
    pub(crate) fn prepare(&mut self, sql: &str) -> u32 {
        self.prepare_described(sql).0
    }

    /// Prepares a statement. Returns its id and its column definitions.
    pub(crate) fn prepare_described(&mut self, sql: &str) -> (u32, Vec<Vec<u8>>) {
        let payload = [&[COM_STMT_PREPARE], sql.as_bytes()].concat();
        let reply = self.command(&payload).expect("connection lost");
        let first = &reply.packets[0].payload;
        assert_eq!(first[0], 0, "not prepared: {:?}", ServerError::parse(first));
        let number = u32::from_le_bytes([first[1], first[2], first[3], first[4]]);
        let columns = usize::from(u16::from_le_bytes([first[5], first[6]]));
        let eof = usize::from(self.capabilities & capability::DEPRECATE_EOF == 0);
        let end = reply.packets.len() - eof;
        let defined = reply.packets[..end].iter().skip(end - columns);
        let payloads = defined.map(|packet| packet.payload.clone());
        (number, payloads.collect())
    }

    /// Executes with parameters sent as strings; `cursor` is the flags byte.
    pub(crate) fn execute(
        &mut self,
        statement: u32,
        params: &[Option<&str>],
        cursor: u8,
    ) -> io::Result<Reply> {
        self.command(&self.execute_payload(statement, params, cursor))
    }

    pub(crate) fn execute_payload(
        &self,
        statement: u32,
        params: &[Option<&str>],
        cursor: u8,
    ) -> Vec<u8> {
        let params: Vec<_> = params.iter().map(|text| Param::text(*text)).collect();
        self.execution(statement, &params, cursor, true)
    }

    /// The payload that executes with parameters of any type; `types`: the types are sent along.
    pub(crate) fn execution(
        &self,
        statement: u32,
        params: &[Param],
        cursor: u8,
        types: bool,
    ) -> Vec<u8> {
        let mut payload = vec![COM_STMT_EXECUTE];
        payload.extend(statement.to_le_bytes());
        payload.push(cursor);
        payload.extend(1_u32.to_le_bytes());
        if params.is_empty() {
            return payload;
        }
        // With query attributes a count comes first, and each parameter has a name (here empty).
        let named = self.capabilities & capability::QUERY_ATTRIBUTES != 0;
        if named {
            put_lenenc(&mut payload, params.len());
        }
        let mut nulls = vec![0_u8; params.len().div_ceil(8)];
        for (index, param) in params.iter().enumerate() {
            nulls[index / 8] |= u8::from(param.value.is_none()) << (index % 8);
        }
        payload.extend(nulls);
        payload.push(u8::from(types));
        for param in params.iter().filter(|_| types) {
            payload.extend([param.code, param.sign]);
            payload.extend(named.then_some(0));
        }
        for value in params.iter().filter_map(|param| param.value.as_ref()) {
            payload.extend(value);
        }
        payload
    }
}

/// A parameter of a prepared statement, in wire format.
#[derive(Debug, Clone)]
pub(crate) struct Param {
    pub(crate) code: u8,
    /// 0x80: unsigned.
    pub(crate) sign: u8,
    /// `None` is NULL, or a value sent before as long data.
    pub(crate) value: Option<Vec<u8>>,
}

impl Param {
    pub(crate) fn new(code: u8, sign: u8, value: &[u8]) -> Param {
        Param {
            code,
            sign,
            value: Some(value.to_vec()),
        }
    }

    /// A string parameter.
    pub(crate) fn text(text: Option<&str>) -> Param {
        let value = text.map(|text| {
            let mut value = Vec::new();
            put_bytes(&mut value, text.as_bytes());
            value
        });
        Param {
            code: 0xfe,
            sign: 0,
            value,
        }
    }

    pub(crate) fn long(value: i32) -> Param {
        Param::new(3, 0, &value.to_le_bytes())
    }
}
