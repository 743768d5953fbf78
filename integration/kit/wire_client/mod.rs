//! A blocking client of the MySQL protocol that hides nothing: any capabilities, any packet, and
//! the bytes of every reply.

pub(crate) mod answer;
pub(crate) mod capability;
mod frames;
mod login;
pub(crate) mod packet;
mod reply;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) use self::answer::{Answer, OkPacket, ResultSet, ServerError};
pub(crate) use self::login::{Greeting, Login};
pub(crate) use self::reply::Reply;

use self::packet::{Packet, put_bytes, put_lenenc};
use self::stream::Stream;

/// A story that waits longer has found a reply without an end.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) const COM_QUIT: u8 = 0x01;
pub(crate) const COM_INIT_DB: u8 = 0x02;
pub(crate) const COM_QUERY: u8 = 0x03;
pub(crate) const COM_PING: u8 = 0x0e;
pub(crate) const COM_CHANGE_USER: u8 = 0x11;
pub(crate) const COM_STMT_PREPARE: u8 = 0x16;
pub(crate) const COM_STMT_EXECUTE: u8 = 0x17;
pub(crate) const COM_STMT_CLOSE: u8 = 0x19;
pub(crate) const COM_RESET_CONNECTION: u8 = 0x1f;

/// One logged-in connection.
#[derive(Debug)]
pub(crate) struct WireClient {
    pub(crate) stream: Stream,
    pub(crate) greeting: Greeting,
    /// Every byte of the server between greeting and first command.
    pub(crate) login_raw: Vec<u8>,
    /// As agreed with the server; the upper half is MariaDB's.
    pub(crate) capabilities: u64,
    /// What the next LOCAL INFILE sends.
    pub(crate) infile: Vec<u8>,
}

impl WireClient {
    /// `root` without a database.
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

    /// The outer error is the connection's, the inner one the server's.
    pub(crate) fn try_login(
        addr: SocketAddr,
        login: &Login,
    ) -> io::Result<Result<WireClient, ServerError>> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let mut stream = Stream::new(stream);
        stream.write_packet(&login.header)?;
        let mut raw = Vec::new();
        Packet::read(&mut stream, &mut raw)?;
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
        let authenticated = client.authenticate(login)?;
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

    /// The OK of the last of the statements.
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

    /// The first column, NULLs left out.
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

    /// COM_QUERY with query attributes (strings), where they were agreed.
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

    /// Sends a command without waiting; read with [`WireClient::reply`].
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

    /// The statement's id.
    #[track_caller]
    pub(crate) fn prepare(&mut self, sql: &str) -> u32 {
        let payload = [&[COM_STMT_PREPARE], sql.as_bytes()].concat();
        let reply = self.command(&payload).expect("connection lost");
        let first = &reply.packets[0].payload;
        assert_eq!(first[0], 0, "not prepared: {:?}", ServerError::parse(first));
        u32::from_le_bytes([first[1], first[2], first[3], first[4]])
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
        let mut payload = vec![COM_STMT_EXECUTE];
        payload.extend(statement.to_le_bytes());
        payload.push(cursor);
        payload.extend(1_u32.to_le_bytes());
        if !params.is_empty() {
            // With query attributes a count comes first and each parameter has a name, here none.
            let named = self.capabilities & capability::QUERY_ATTRIBUTES != 0;
            if named {
                put_lenenc(&mut payload, params.len());
            }
            let mut nulls = vec![0_u8; params.len().div_ceil(8)];
            for (index, _) in params
                .iter()
                .enumerate()
                .filter(|(_, param)| param.is_none())
            {
                nulls[index / 8] |= 1 << (index % 8);
            }
            payload.extend(nulls);
            payload.push(1);
            let type_and_name: &[u8] = if named { &[0xfe, 0, 0] } else { &[0xfe, 0] };
            payload.extend(type_and_name.repeat(params.len()));
            for param in params.iter().flatten() {
                put_bytes(&mut payload, param.as_bytes());
            }
        }
        payload
    }
}
