//! The same bytes are relayed and the machine ends in the same state, in whatever pieces the bytes come, and whether they are passed
//! through or held first.

use super::*;
use crate::compression_frames::{ClientCompression, ServerCompression};
use crate::tls_policy::ServerLegTls;

const ZLIB: u32 = 1 << 5;

/// A session with legs of one kind, what is said in it, and how it ends.
struct LoginScenario {
    what: &'static str,
    ways: SessionPolicy,
    turns: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a scene comes to.
#[derive(PartialEq, Eq)]
struct LoginScenarioOutcome {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    calls: usize,
    frames: Option<CompressionFrames>,
    machine: String,
}

fn compressed(clients: ClientCompression, server: ServerCompression) -> SessionPolicy {
    let compression = CompressionPolicy { clients, server };
    SessionPolicy {
        compression,
        ..WAYS
    }
}

/// The conversation, whose client also requests these flags, and more rounds after it.
fn scene(
    what: &'static str,
    ways: SessionPolicy,
    flags: u32,
    more: &[(Vec<u8>, Vec<u8>)],
) -> LoginScenario {
    let mut turns = conversation();
    turns[1].0 = encoded(1, &login(LOGIN_FLAGS | flags));
    turns.extend(more.iter().cloned());
    LoginScenario { what, ways, turns }
}

fn scenes() -> Vec<LoginScenario> {
    let to_server = TlsPolicy {
        server: ServerLegTls::Always,
        ..TlsPolicy::PLAIN
    };
    let guarded = SessionPolicy {
        process_user: Some(ProcessUser::named("hw")),
        ..WAYS
    };
    let ahead = [
        query("DO 1"),
        encoded(0, b"\x0e"),
        query("CALL fetch_timeline_ids(6)"),
        query("SELECT a FROM t"),
    ];
    let change = [
        (
            encoded(0, b"\x11bob\0\0tl\0"),
            encoded(1, b"\xfemysql_native_password\0scramblescramblescra\0"),
        ),
        (encoded(2, &[3; 20]), encoded(3, OK)),
        // The call waits for the replies before it.
        (ahead.concat(), [encoded(1, OK), encoded(1, OK)].concat()),
        (Vec::new(), [encoded(1, OK), rows()].concat()),
    ];
    let dump = [(
        encoded(0, b"\x12\x04\0\0\0\0\0\x01\0\0\0binlog.000001"),
        [
            encoded(1, b"\0\0\0\0\0event"),
            encoded(2, b"\0\0\0\0\0event"),
        ]
        .concat(),
    )];
    let mirror = ClientCompression::Mirror;
    let server_alone = || compressed(mirror, ServerCompression::WhereOffered);
    let client_alone = || compressed(mirror, ServerCompression::Never);
    vec![
        scene("alike", WAYS, 0, &change),
        scene("alike, in frames", WAYS, ZLIB, &change),
        scene(
            "TLS to the server",
            SessionPolicy {
                tls: to_server,
                ..WAYS
            },
            0,
            &change,
        ),
        scene("guarded", guarded, 0, &change),
        scene("frames to the server", server_alone(), 0, &change),
        scene("frames to the client", client_alone(), ZLIB, &change),
        scene("a binary log", WAYS, 0, &dump),
        scene("a binary log from frames", server_alone(), 0, &dump),
        scene("a binary log to frames", client_alone(), ZLIB, &dump),
    ]
}

fn play(
    scene: &LoginScenario,
    keeps: bool,
    cut: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>,
) -> LoginScenarioOutcome {
    let mut world = MachineHarness::new();
    world.machine = SessionMachine::new(LIMITS, scene.ways.clone());
    world.keeps = keeps;
    for (client, server) in &scene.turns {
        for piece in cut(client) {
            world.client_sends(&piece);
        }
        for piece in cut(server) {
            world.server_sends(&piece);
        }
    }
    assert!(world.client_in.is_empty() && world.server_in.is_empty());
    LoginScenarioOutcome {
        to_server: world.to_server,
        to_client: world.to_client,
        calls: world.calls,
        frames: world.machine.take_compression_frames(),
        machine: format!("{:?}", world.machine),
    }
}

proptest! {
    #[test]
    fn the_same_goes_on_and_the_machine_ends_in_the_same_state(
        sizes in prop::collection::vec(prop_oneof![1usize..8, 1usize..60, 1usize..4_000], 1..40),
        keeps in any::<bool>(),
    ) {
        for scene in scenes() {
            let whole = play(&scene, true, &mut |bytes| vec![bytes.to_vec()]);
            let mut sizes = sizes.iter().cycle();
            let cut = play(&scene, keeps, &mut |mut bytes| {
                let mut pieces = Vec::new();
                while !bytes.is_empty() {
                    let (piece, rest) = bytes.split_at((*sizes.next().unwrap()).min(bytes.len()));
                    pieces.push(piece.to_vec());
                    bytes = rest;
                }
                pieces
            });
            prop_assert!(cut == whole, "{}: {} instead of {}", scene.what, cut.machine, whole.machine);
        }
    }
}

/// The step after bytes that were passed through is returned once, however late it is requested.
#[test]
fn the_step_after_passed_through_bytes_is_returned_once() {
    let mut world = MachineHarness::logged_in();
    let close = encoded(0, b"\x19\x01\0\0\0");
    let call = query("CALL fetch_timeline_ids(5)");
    let bytes = [&close[..], &call, b"\x01"].concat();
    let classes = &mut world.classes;
    let mut asked = 0;
    let mut classify = |text: &[u8]| {
        asked += 1;
        classes.classify(text, false)
    };
    assert_eq!(
        world.machine.pass_through(&bytes, &mut classify),
        close.len()
    );
    let step = world.machine.client(&bytes[close.len()..], &mut classify);
    assert!(matches!(step, ClientStep::Call(call_asked) if call_asked.length == call.len()));
    assert_eq!(asked, 1);
}
