//! A simulated client and server with a machine between them, and every way of cutting their bytes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod compressed_legs;
mod login_progress;
mod statement_watch;

use std::num::NonZeroUsize;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::compression_frames::CompressionPolicy;
use crate::tls_policy::{ServerLegTls, TlsPolicy};
use headwater_statement::{StatementClassifier, StatementEffects};
use headwater_timeline::TimelineDefinition;
use headwater_wire::capability::Capabilities;
use headwater_wire::compression::CompressionAlgorithm;
use headwater_wire::handshake::greeting_with_flags;
use headwater_wire::packet::HEADER_BYTES;
use headwater_wire::packet::encode;

pub(crate) const LIMITS: SessionLimits = SessionLimits {
    statement_bytes: 1024,
    in_flight: 4,
    prepared_statements: 2,
};

pub(crate) const WAYS: SessionPolicy = SessionPolicy {
    tls: TlsPolicy::PLAIN,
    redirects: false,
    compression: CompressionPolicy::MIRROR,
    process_user: None,
};

/// AUTOCOMMIT; the same in a transaction.
pub(crate) const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const OK_IN_TRANSACTION: &[u8] = b"\0\0\0\x03\0\0\0";
const ERR: &[u8] = b"\xff\x28\x04#42000You have an error";
pub(crate) const LOGIN_FLAGS: u32 = 0x0108_8200;

/// What a driver does, with vectors for sockets.
struct MachineHarness {
    machine: SessionMachine,
    classes: StatementClassifier,
    client_in: Vec<u8>,
    server_in: Vec<u8>,
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    calls: usize,
    /// Whole packets are held before they are relayed.
    keeps: bool,
    /// A command leaves in this many more frames than it came in.
    more_frames: u8,
}

impl MachineHarness {
    fn new() -> MachineHarness {
        MachineHarness {
            machine: SessionMachine::new(LIMITS, WAYS),
            classes: StatementClassifier::new(
                Arc::new([TimelineDefinition::classic()]),
                NonZeroUsize::MIN,
                LIMITS.statement_bytes,
            ),
            client_in: Vec::new(),
            server_in: Vec::new(),
            to_client: Vec::new(),
            to_server: Vec::new(),
            calls: 0,
            keeps: false,
            more_frames: 0,
        }
    }

    /// After a successful login.
    fn logged_in() -> MachineHarness {
        let mut world = MachineHarness::new();
        world.server_sends(&encoded(0, &greeting()));
        world.client_sends(&encoded(1, &login(LOGIN_FLAGS)));
        world.server_sends(&encoded(2, OK));
        world.to_client.clear();
        world.to_server.clear();
        world
    }

    fn client_sends(&mut self, bytes: &[u8]) {
        let (machine, classes) = (&mut self.machine, &mut self.classes);
        let passed = match self.client_in.is_empty() && !self.keeps {
            true => machine.pass_through(bytes, &mut |text| classes.classify(text, false)),
            false => 0,
        };
        self.to_server.extend(&bytes[..passed]);
        self.client_in.extend(&bytes[passed..]);
        self.turn();
    }

    fn server_sends(&mut self, bytes: &[u8]) {
        self.server_in.extend(bytes);
        self.turn();
    }

    fn turn(&mut self) {
        while self.server_turn() || self.client_turn() {}
    }

    fn server_turn(&mut self) -> bool {
        if let Some(commands) = self.machine.commands()
            && let Some(own) = commands.first_reply_sequence(&self.server_in)
        {
            commands.renumber_reply_from(own, own.wrapping_sub(self.more_frames));
        }
        match self.machine.server(&self.server_in) {
            ServerStep::Need => return false,
            ServerStep::Pass(length) => {
                self.to_client.extend(self.server_in.drain(..length.get()));
            }
            ServerStep::Replace(length, bytes) => {
                self.server_in.drain(..length.get());
                self.to_client.extend(bytes);
            }
            ServerStep::Refuse(error) => panic!("{error:?}"),
        }
        true
    }

    fn client_turn(&mut self) -> bool {
        let (machine, classes) = (&mut self.machine, &mut self.classes);
        let length =
            match machine.client(&self.client_in, &mut |text| classes.classify(text, false)) {
                ClientStep::Need | ClientStep::Hold => return false,
                ClientStep::Pass(length) => length.get(),
                ClientStep::Replace(length, bytes) => {
                    self.client_in.drain(..length.get());
                    self.to_server.extend(bytes);
                    return true;
                }
                ClientStep::Renumber => {
                    self.client_in[3] = 0;
                    return true;
                }
                ClientStep::BeginTls { length, server, .. } => {
                    self.client_in.drain(..length);
                    self.to_server.extend(server.unwrap_or_default());
                    return true;
                }
                // The driver would try to serve it; here the server answers.
                ClientStep::Call(asked) => {
                    self.calls += 1;
                    let payload = &self.client_in[HEADER_BYTES..asked.length];
                    let commands = self.machine.commands().unwrap();
                    if let Some(own) = commands.relay_call(&asked.packet_form, payload, None) {
                        self.client_in.drain(..asked.length);
                        self.to_server.extend(own);
                        return true;
                    }
                    asked.length
                }
                step => panic!("{step:?} without a pending call"),
            };
        self.to_server.extend(self.client_in.drain(..length));
        true
    }
}

pub(crate) fn encoded(seq: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(seq, payload, &mut bytes);
    bytes
}

fn query(sql: &str) -> Vec<u8> {
    encoded(0, &[b"\x03", sql.as_bytes()].concat())
}

/// Offers what the login asks for, TLS and compression.
pub(crate) fn greeting() -> Vec<u8> {
    let mut payload = b"\x0a9.7.4\0\x07\0\0\0scramble\0".to_vec();
    payload.extend(b"\xff\xff\xff\x02\0\xff\x01\x15");
    payload.extend([0; 10]);
    payload.extend(b"scramblescra\0mysql_native_password\0");
    payload
}

pub(crate) fn login(flags: u32) -> Vec<u8> {
    let mut payload = flags.to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 45]);
    payload.extend([0; 23]);
    payload.extend(b"root\0\0mysql_native_password\0");
    payload
}

/// One column, one row; with DEPRECATE_EOF.
fn rows() -> Vec<u8> {
    let definition = b"\x03def\0\0\0\x01a\0\x0c\x2d\0\x04\0\0\0\xfd\0\0\0\0\0";
    [
        encoded(1, &[1]),
        encoded(2, definition),
        encoded(3, b"\x01x"),
        encoded(4, b"\xfe\0\0\x02\0\0\0"),
    ]
    .concat()
}

/// Rounds of a conversation: what the client sends, then what the server sends.
fn conversation() -> Vec<(Vec<u8>, Vec<u8>)> {
    let long = "x".repeat(3_000);
    let file = [encoded(2, b"1\n2\n"), encoded(3, b"")].concat();
    vec![
        (Vec::new(), encoded(0, &greeting())),
        (
            encoded(1, &login(LOGIN_FLAGS)),
            encoded(2, b"\xfemysql_native_password\0scramblescramblescra\0"),
        ),
        (encoded(3, &[7; 20]), encoded(4, OK)),
        (query("SELECT a FROM t"), rows()),
        (query("CALL fetch_timeline_ids(5)"), encoded(1, OK)),
        (query(&format!("SELECT '{long}'")), rows()),
        (query("nonsense"), encoded(1, ERR)),
        (encoded(0, b"\x0e"), encoded(1, OK)),
        (encoded(0, b"\x09"), encoded(1, b"Uptime: 1")),
        (encoded(0, b""), encoded(1, ERR)),
        (encoded(0, b"\x19\x01\0\0\0"), Vec::new()),
        (
            query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"),
            encoded(1, b"\xfbx"),
        ),
        (file, encoded(4, OK)),
        (
            encoded(0, b"\x16SELECT a"),
            encoded(1, b"\0\x01\0\0\0\0\0\0\0\0\0\0"),
        ),
        (query("CALL fetch_timeline_ids2(5, 7)"), encoded(1, OK)),
        (encoded(0, b"\x02tl"), encoded(1, OK)),
    ]
}

/// Holds the conversation with both sides' bytes in pieces as `cut` makes them.
fn hold(cut: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>) -> MachineHarness {
    let mut world = MachineHarness::new();
    let (mut said, mut answered) = (Vec::new(), Vec::new());
    for (client, server) in conversation() {
        for piece in cut(&client) {
            world.client_sends(&piece);
        }
        for piece in cut(&server) {
            world.server_sends(&piece);
        }
        said.extend(client);
        answered.extend(server);
    }
    let masked = greeting_with_flags(&greeting(), Capabilities::SSL, Capabilities::NONE).unwrap();
    answered[HEADER_BYTES..HEADER_BYTES + masked.len()].copy_from_slice(&masked);
    assert_eq!(world.to_server, said);
    assert_eq!(world.to_client, answered);
    assert_eq!(world.calls, 2);
    assert!(world.machine.is_at_rest());
    let commands = world.machine.commands().unwrap();
    assert!(commands.is_idle());
    assert_eq!(commands.state.database(), Some(&b"tl"[..]));
    world
}

#[test]
fn a_conversation_is_the_same_however_its_bytes_are_cut() {
    for size in 1..60 {
        hold(&mut |bytes| bytes.chunks(size).map(<[u8]>::to_vec).collect());
    }
    let longest = conversation()
        .iter()
        .map(|(a, b)| a.len().max(b.len()))
        .max()
        .unwrap();
    for at in 0..longest {
        hold(&mut |bytes| {
            let (front, back) = bytes.split_at(at.min(bytes.len()));
            vec![front.to_vec(), back.to_vec()]
        });
    }
}

proptest! {
    #[test]
    fn cut_at_random_it_is_the_same(sizes in prop::collection::vec(1usize..40, 1..50)) {
        let mut sizes = sizes.iter().cycle();
        hold(&mut |mut bytes| {
            let mut pieces = Vec::new();
            while !bytes.is_empty() {
                let (piece, rest) = bytes.split_at((*sizes.next().unwrap()).min(bytes.len()));
                pieces.push(piece.to_vec());
                bytes = rest;
            }
            pieces
        });
    }

    /// Whatever either side sends, all of it is relayed, in order.
    #[test]
    fn nothing_a_server_says_is_kept_back(bytes in prop::collection::vec(any::<u8>(), 0..400), size in 1usize..50) {
        for command in [&b"\x03SELECT 1"[..], b"\x0e", b"\x04t\0", b"\x16DO 1", b"\x1c\0\0\0\0\0\0\0\0", b"\x11root\0\0\0"] {
            let mut world = MachineHarness::logged_in();
            world.client_sends(&encoded(0, command));
            for piece in bytes.chunks(size) {
                world.server_sends(piece);
            }
            prop_assert_eq!(&world.to_client, &bytes);
        }
    }

    #[test]
    fn a_machine_takes_any_bytes_from_the_start(
        server in prop::collection::vec(any::<u8>(), 0..200),
        client in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut world = MachineHarness::new();
        world.server_sends(&server);
        world.client_sends(&client);
        prop_assert!(server.ends_with(&world.server_in) && client.ends_with(&world.client_in));
    }
}

#[test]
fn commands_sent_ahead_are_answered_in_order_and_no_more_than_the_limit_go_on() {
    let mut world = MachineHarness::logged_in();
    let commands: Vec<Vec<u8>> = (0..10).map(|n| query(&format!("SELECT {n}"))).collect();
    world.client_sends(&commands.concat());
    assert_eq!(world.to_server, commands[..LIMITS.in_flight].concat());
    assert!(!world.machine.is_at_rest());
    for _ in 0..10 {
        world.server_sends(&rows());
    }
    assert_eq!(world.to_server, commands.concat());
    assert!(world.machine.commands().unwrap().is_idle());
}

#[test]
fn a_call_waits_for_the_replies_in_flight() {
    let mut world = MachineHarness::logged_in();
    world.client_sends(&[query("SELECT a"), query("CALL fetch_timeline_ids(1)")].concat());
    assert_eq!(world.calls, 0);
    world.server_sends(&rows());
    assert_eq!(world.calls, 1);
}

#[test]
fn frames_begin_after_a_login_that_agrees_on_them() {
    for (flag, agreed) in [(0, None), (1 << 5, Some(CompressionAlgorithm::Zlib))] {
        let mut world = MachineHarness::new();
        world.server_sends(&encoded(0, &greeting()));
        world.client_sends(&encoded(1, &login(LOGIN_FLAGS | flag)));
        assert_eq!(world.machine.take_compression_frames(), None);
        world.server_sends(&encoded(2, OK));
        let agreed = agreed.map(|algorithm| CompressionFrames {
            client: Some(algorithm),
            server: Some(algorithm),
        });
        assert_eq!(world.machine.take_compression_frames(), agreed);
        assert_eq!(world.machine.take_compression_frames(), None);
        assert!(world.machine.commands().is_some());
    }
}

/// What is relayed unread would be sent in clear.
#[test]
fn what_is_no_login_does_not_evade_tls() {
    let plain = TlsPolicy {
        offered: true,
        ..TlsPolicy::PLAIN
    };
    let strict = TlsPolicy {
        client_required: true,
        ..plain
    };
    let apart = TlsPolicy {
        server: ServerLegTls::Always,
        ..plain
    };
    for (legs, refused) in [(plain, false), (strict, true), (apart, true)] {
        for first in [
            encoded(1, b"\x05\0\0\0\0root\0\0"),
            encoded(1, &login(LOGIN_FLAGS | 1 << 11)),
            vec![0xff; 600],
        ] {
            let mut machine = SessionMachine::new(LIMITS, SessionPolicy { tls: legs, ..WAYS });
            machine.server(&encoded(0, &greeting()));
            let step = machine.client(&first, &mut |_| unreachable!("no statement"));
            assert_eq!(matches!(step, ClientStep::Refuse(_)), refused, "{step:?}");
        }
    }
}

/// Before a server's socket: see `session::process_user`.
#[test]
fn an_unfollowed_client_cannot_become_the_process_user() {
    let own_user = || ProcessUser::named("hw");
    let guarded = || {
        let own_user = Some(own_user());
        let mut machine = SessionMachine::new(
            LIMITS,
            SessionPolicy {
                process_user: own_user,
                ..WAYS
            },
        );
        machine.server(&encoded(0, &greeting()));
        machine
    };
    let ask = |machine: &mut SessionMachine, bytes: &[u8]| {
        machine.client(bytes, &mut |_| StatementClass::Other(StatementEffects::ALL))
    };
    let passed = |step: &ClientStep| match step {
        ClientStep::Pass(length) => Some(length.get()),
        _ => None,
    };
    let refused = |step: &ClientStep| matches!(step, ClientStep::Refuse(_));
    for first in [encoded(1, b"\x05\0\0\0\0hw\0\0"), vec![0xff; 600]] {
        assert!(refused(&ask(&mut guarded(), &first)));
    }

    let mut machine = guarded();
    let login = encoded(1, &login(LOGIN_FLAGS));
    assert_eq!(passed(&ask(&mut machine, &login)), Some(login.len()));
    // Commands sent ahead wait for the login's end.
    let change = |name: &[u8]| encoded(0, &[b"\x11", name, b"\0\0\0"].concat());
    assert!(matches!(
        ask(&mut machine, &change(b"hw")),
        ClientStep::Hold
    ));
    machine.server(&encoded(2, OK));
    for name in [&b"hw"[..], b"'hw'", b"\xffhw"] {
        assert!(refused(&ask(&mut machine, &change(name))));
    }
    assert!(refused(&ask(&mut machine, &encoded(0, b"\x11hw"))));
    assert!(refused(&ask(&mut machine, &encoded(2, b"a file's row"))));

    // A file sent ahead of the server's request for it, and what follows it.
    let load = encoded(0, b"\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE t");
    assert_eq!(passed(&ask(&mut machine, &load)), Some(load.len()));
    assert!(matches!(
        ask(&mut machine, &encoded(2, b"1\n")),
        ClientStep::Hold
    ));
    machine.server(&encoded(1, b"\xfbx"));
    let row = encoded(2, b"1\n");
    assert_eq!(passed(&ask(&mut machine, &row)), Some(row.len()));
    let end = encoded(3, b"");
    assert_eq!(passed(&ask(&mut machine, &end)), Some(end.len()));
    assert!(matches!(
        ask(&mut machine, &change(b"hw")),
        ClientStep::Hold
    ));
    machine.server(&encoded(4, OK));
    assert!(refused(&ask(&mut machine, &change(b"hw"))));
    let other = ask(&mut machine, &change(b"bob"));
    assert!(!refused(&other), "{other:?}");

    let acknowledgement = encoded(
        1,
        &[&b"\xef\x04\0\0\0\0\0\0\0"[..], b"binlog.000001"].concat(),
    );
    let length = acknowledgement.len();
    let two = [&acknowledgement[..], &acknowledgement].concat();
    let unfollowed = |input: &[u8]| super::unfollowed_client(input, &own_user());
    assert_eq!(passed(&unfollowed(&acknowledgement)), Some(length));
    assert_eq!(passed(&unfollowed(&two)), Some(length));
    for cut in [1, 4, 5, length - 1] {
        assert!(matches!(
            unfollowed(&acknowledgement[..cut]),
            ClientStep::Need
        ));
    }
    assert_eq!(passed(&unfollowed(&encoded(0, b"\x01"))), Some(5));
    assert!(refused(&unfollowed(&change(b"bob"))));
}

#[test]
fn what_cannot_be_followed_is_pumped() {
    let tls: u32 = 1 << 11;
    for (what, first, answer) in [
        (
            "a TLS request",
            encoded(1, &login(LOGIN_FLAGS | tls)[..32]),
            None,
        ),
        (
            "a login before 4.1",
            encoded(1, b"\x05\0\0\0\0root\0\0"),
            None,
        ),
        ("half a login", encoded(1, &login(LOGIN_FLAGS)[..20]), None),
        (
            "a command behind the login",
            [encoded(1, &login(LOGIN_FLAGS)), query("SELECT 1")].concat(),
            Some(OK),
        ),
        (
            "a packet that is no login by its length",
            vec![0xff; 600],
            None,
        ),
    ] {
        let mut world = MachineHarness::new();
        world.server_sends(&encoded(0, &greeting()));
        world.client_sends(&first);
        if let Some(answer) = answer {
            world.server_sends(&encoded(2, answer));
        }
        assert!(matches!(world.machine.phase, SessionPhase::Pump), "{what}");
        assert_eq!(world.to_server, first, "{what}");
    }
}

#[test]
fn a_first_packet_that_is_no_greeting_is_pumped_at_once() {
    for first in [
        encoded(0, b"\xff\x10\x04Too many connections"),
        encoded(0, b"\x09old"),
        encoded(0, b""),
        b"SSH-2.0".to_vec(),
    ] {
        let mut world = MachineHarness::new();
        world.server_sends(&first);
        assert_eq!(world.to_client, first);
        assert!(matches!(world.machine.phase, SessionPhase::Pump));
    }
}

#[test]
fn an_open_transaction_is_not_at_rest_and_an_error_does_not_end_it() {
    let mut world = MachineHarness::logged_in();
    assert!(world.machine.is_at_rest());
    world.client_sends(&query("BEGIN"));
    world.server_sends(&encoded(1, OK_IN_TRANSACTION));
    assert!(!world.machine.is_at_rest());
    world.client_sends(&query("nonsense"));
    world.server_sends(&encoded(1, ERR));
    assert!(!world.machine.is_at_rest());
    world.client_sends(&query("COMMIT"));
    world.server_sends(&encoded(1, OK));
    assert!(world.machine.is_at_rest());
}

#[test]
fn what_a_new_session_would_lack_is_there_until_the_session_is_reset() {
    for text in [
        "SET @a = 1",
        "SELECT 1 INTO @a",
        "SET NAMES latin1",
        "USE tl",
        "SELECT GET_LOCK('a', 0)",
        "CREATE TEMPORARY TABLE t (a int)",
        "LOCK TABLES t READ",
        "PREPARE s FROM 'SELECT 1'",
        "CALL another_procedure()",
        "SELECT 1; SELECT 2",
    ] {
        let mut world = MachineHarness::logged_in();
        world.client_sends(&query(text));
        world.server_sends(&encoded(1, OK));
        assert!(
            world.machine.has_session_state() && world.machine.is_at_rest(),
            "{text}"
        );
        world.client_sends(&encoded(0, &[0x1f]));
        world.server_sends(&encoded(1, OK));
        assert!(!world.machine.has_session_state(), "{text}");
    }
    let mut world = MachineHarness::logged_in();
    for text in [
        "SELECT a FROM t WHERE b = f(3)",
        "INSERT INTO t SELECT 1",
        "UPDATE t SET a = 1",
        "BEGIN",
        "COMMIT",
        "SHOW TABLES",
    ] {
        world.client_sends(&query(text));
        world.server_sends(&encoded(1, OK));
        assert!(!world.machine.has_session_state(), "{text}");
    }
}

#[test]
fn a_binary_log_is_pumped_for_good() {
    let mut world = MachineHarness::logged_in();
    world.client_sends(&encoded(0, b"\x12\x04\0\0\0\0\0\x01\0\0\0binlog.000001"));
    world.server_sends(&encoded(1, b"\0an event"));
    assert!(world.machine.commands().is_none());
    world.client_sends(&query("CALL fetch_timeline_ids(1)"));
    assert_eq!(world.calls, 0);
}

#[test]
fn a_session_continues_after_a_failed_change_of_user() {
    let mut world = MachineHarness::logged_in();
    world.client_sends(&encoded(0, b"\x11bob\0\0tl\0"));
    world.server_sends(&encoded(
        1,
        b"\xfemysql_native_password\0scramblescramblescra\0",
    ));
    // Its length and sequence number alone do not make it a command.
    world.client_sends(&encoded(2, &[3; 20]));
    world.server_sends(&encoded(3, b"\xff\x15\x04#28000Access denied"));
    world.client_sends(&query("CALL fetch_timeline_ids(1)"));
    assert_eq!(world.calls, 1);
}
