//! Every captured login is read as its client meant it, and its dialogue ends at the right byte.

use mysql_common::io::ParseBuf;
use mysql_common::packets::HandshakePacket;

use super::{SERVERS, WireScenario};
use crate::capability::Capabilities;
use crate::command::query_text_range;
use crate::handshake::{LoginRequest, LoginResponse, ServerGreeting, greeting_with_flags};
use crate::reply::{AuthEvent, AuthFollower, ReplyOutcome};

fn logins() -> impl Iterator<Item = WireScenario> {
    SERVERS
        .into_iter()
        .flat_map(WireScenario::load_all)
        .filter(|story| story.get("login").is_some())
}

fn response(payload: &[u8]) -> LoginResponse<'_> {
    match LoginRequest::parse(payload) {
        Ok(LoginRequest::Response(response)) => response,
        other => unreachable!("{other:?}"),
    }
}

fn negotiated(story: &WireScenario) -> Capabilities {
    let greeting = ServerGreeting::parse(&story.payload("greeting").unwrap()).unwrap();
    response(&story.payload("login").unwrap())
        .capabilities
        .intersection(greeting.capabilities)
}

#[test]
fn greetings_are_read_as_mysql_common_reads_them() {
    for story in logins() {
        let payload = story.payload("greeting").unwrap();
        let greeting = ServerGreeting::parse(&payload).unwrap();
        let theirs = ParseBuf(&payload).parse::<HandshakePacket<'_>>(()).unwrap();
        assert_eq!(greeting.server_version, theirs.server_version_ref());
        assert_eq!(greeting.thread_id, theirs.connection_id());
        assert_eq!(greeting.charset, theirs.default_collation());
        assert_eq!(greeting.status, theirs.status_flags().bits());
        assert_eq!(greeting.auth_plugin, theirs.auth_plugin_name_ref().unwrap());
        assert_eq!(greeting.scramble, theirs.nonce());
        let client = theirs.capabilities().bits();
        assert_eq!(
            greeting.capabilities.0 & u64::from(client),
            u64::from(client)
        );
        assert_eq!(
            greeting.capabilities.0 >> 32,
            u64::from(theirs.mariadb_ext_capabilities().bits())
        );
        let mariadb = story.location.contains("mariadb-10.11.19/");
        assert_eq!(greeting.is_mariadb(), mariadb);
        assert_eq!(
            greeting.version(),
            Some(if mariadb { (10, 11, 19) } else { (9, 7, 4) })
        );
    }
}

#[test]
fn a_greeting_has_or_lacks_tls_and_is_otherwise_the_same() {
    for story in logins() {
        let payload = story.payload("greeting").unwrap();
        for ssl in [false, true] {
            let flag = if ssl {
                Capabilities::SSL
            } else {
                Capabilities::NONE
            };
            let masked = greeting_with_flags(&payload, Capabilities::SSL, flag).unwrap();
            let (before, after) = (
                ServerGreeting::parse(&payload).unwrap(),
                ServerGreeting::parse(&masked).unwrap(),
            );
            let mut capabilities = before.capabilities.without(Capabilities::SSL);
            if ssl {
                capabilities = capabilities.union(Capabilities::SSL);
            }
            assert_eq!(
                after,
                ServerGreeting {
                    capabilities,
                    ..before
                }
            );
            let changed = payload
                .iter()
                .zip(&masked)
                .filter(|(old, new)| old != new)
                .count();
            assert!(
                changed <= 1 && payload.len() == masked.len(),
                "{changed} bytes"
            );
            assert_eq!(
                greeting_with_flags(&masked, Capabilities::SSL, flag).unwrap(),
                masked
            );
        }
    }
}

#[test]
fn logins_name_user_and_database() {
    for story in logins() {
        let payload = story.payload("login").unwrap();
        let login = response(&payload);
        assert_eq!(
            Some(login.user),
            story.get("user").map(str::as_bytes),
            "{}",
            story.location
        );
        assert_eq!(
            login.database,
            story.get("database").map(str::as_bytes),
            "{}",
            story.location
        );
        assert!(
            login
                .auth_plugin
                .is_some_and(|plugin| plugin.ends_with(b"_password"))
        );
        assert!(
            negotiated(&story)
                .contains(Capabilities::PROTOCOL_41.union(Capabilities::SESSION_TRACK))
        );
    }
}

#[test]
fn dialogues_end_with_ok_or_err_however_they_are_cut() {
    for story in logins() {
        let place = &story.location;
        let bytes = story.bytes("server");
        for size in [1, 7, bytes.len()] {
            let mut auth = AuthFollower::new(negotiated(&story));
            let mut turns = Vec::new();
            let mut end = String::new();
            for mut piece in bytes.chunks(size) {
                while !piece.is_empty() {
                    assert_eq!(end, "", "{place}: more behind the end");
                    let step = auth.feed(piece);
                    piece = &piece[step.consumed..];
                    match step.event {
                        Some(AuthEvent::AwaitClient) => turns.push("client"),
                        Some(AuthEvent::AwaitServer) => turns.push("again"),
                        Some(AuthEvent::Done(ReplyOutcome::Ok(_))) => end = "ok".to_owned(),
                        Some(AuthEvent::Done(ReplyOutcome::Err(packet))) => {
                            end = format!("err {}", packet.code)
                        }
                        Some(other) => unreachable!("{place}: {other:?}"),
                        None => {}
                    }
                }
            }
            assert_eq!(
                turns.join(" "),
                story.get("turns").unwrap_or_default(),
                "{place}"
            );
            assert_eq!(Some(&*end), story.get("ends"), "{place}");
        }
    }
}

#[test]
fn the_text_of_a_stock_clients_query_follows_its_attributes() {
    let mut with_attributes = 0;
    for story in logins() {
        let Some(payload) = story.payload("query") else {
            continue;
        };
        let capabilities = negotiated(&story);
        with_attributes += usize::from(capabilities.contains(Capabilities::QUERY_ATTRIBUTES));
        let range = query_text_range(&payload, capabilities).unwrap();
        assert_eq!(&payload[range], b"select 1", "{}", story.location);
    }
    assert!(with_attributes > 2);
}
