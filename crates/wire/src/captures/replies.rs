//! Every captured reply ends at the right byte, however it is split.

use mysql_common::io::ParseBuf;
use mysql_common::packets::Column;

use super::{SERVERS, WireScenario};
use crate::command::{Command, query_text_range};
use crate::reply::{ReplyEvent, ReplyFollower, ReplyOutcome};
use crate::resultset::{CollectError, CollectLimits, QueryReply, ReplyCollector};

/// Feeds pieces; returns the events and the bytes consumed.
fn follow<'a>(
    reply: &mut ReplyFollower,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ReplyEvent>, usize) {
    let mut events = Vec::new();
    let mut total = 0;
    for piece in pieces {
        let mut consumed = 0;
        loop {
            let step = reply.feed(&piece[consumed..]);
            consumed += step.consumed;
            match step.event {
                Some(event) => events.push(event),
                None => break,
            }
        }
        total += consumed;
    }
    (events, total)
}

pub(super) fn describe(event: Option<&ReplyEvent>) -> String {
    match event {
        Some(ReplyEvent::Done(ReplyOutcome::Ok(packet))) => format!("ok 0x{:04x}", packet.status),
        Some(ReplyEvent::Done(ReplyOutcome::Err(packet))) => format!("err {}", packet.code),
        Some(ReplyEvent::Done(ReplyOutcome::Prepared(head))) => {
            format!("prepared {} {}", head.columns, head.parameters)
        }
        Some(ReplyEvent::Done(ReplyOutcome::Text)) => "text".to_owned(),
        Some(ReplyEvent::Done(ReplyOutcome::Silent)) => "silent".to_owned(),
        Some(ReplyEvent::Unfollowable) => "unfollowable".to_owned(),
        Some(ReplyEvent::ClientData | ReplyEvent::ClientAuth) | None => format!("{event:?}"),
    }
}

pub(super) fn replies(folder: &str) -> impl Iterator<Item = WireScenario> {
    WireScenario::load_all(folder)
        .into_iter()
        .filter(|story| story.get("sent").is_some())
}

/// Follows a scenario whole, split in two at every byte, and byte by byte.
pub(super) fn check(story: &WireScenario) {
    let place = &story.location;
    let bytes = story.bytes("server");
    let command = Command::from_byte(story.bytes("sent")[0]);
    let reply = ReplyFollower::new(command, story.capabilities());

    let mut whole = reply.clone();
    let (events, consumed) = follow(&mut whole, [&bytes[..]]);
    assert_eq!(consumed, bytes.len(), "{place}: {events:?}");
    assert_eq!(
        describe(events.last()),
        story.get("ends").unwrap(),
        "{place}"
    );
    assert_eq!(
        events.len() as u64,
        story.number("asks") + 1,
        "{place}: {events:?}"
    );
    assert_eq!(whole.rows(), story.number("rows"), "{place}");
    assert_eq!(
        u64::from(whole.results()),
        story.number("results"),
        "{place}"
    );

    for cut in 0..bytes.len() {
        let (front, back) = bytes.split_at(cut);
        assert_eq!(
            follow(&mut reply.clone(), [front, back]),
            (events.clone(), bytes.len()),
            "{place} at {cut}"
        );
    }
    // A command without reply is done before its first byte.
    let pieces = bytes.chunks(1).chain([&[][..]]);
    let bytewise = follow(&mut reply.clone(), pieces);
    assert_eq!(bytewise, (events, bytes.len()), "{place}");
}

#[test]
fn replies_of_real_servers_end_where_they_ended() {
    for server in SERVERS {
        let mut stories = 0;
        for story in replies(server) {
            check(&story);
            stories += 1;
        }
        assert!(stories > 80, "{server}: {stories} stories");
    }
}

#[test]
fn the_text_of_a_statement_is_found_in_its_command() {
    let mut with_attributes = 0;
    for story in SERVERS.into_iter().flat_map(replies) {
        let sent = story.bytes("sent");
        with_attributes += usize::from(sent.starts_with(&[3, 18, 1]));
        if let Some(range) = query_text_range(&sent, story.capabilities()) {
            assert_eq!(
                Some(std::str::from_utf8(&sent[range]).unwrap()),
                story.get("says"),
                "{}",
                story.location
            );
        } else {
            assert!(!matches!(sent[0], 0x03 | 0x16), "{}", story.location);
        }
    }
    assert_eq!(with_attributes, 1);
}

#[test]
fn text_replies_of_real_servers_are_collected() {
    for story in SERVERS.into_iter().flat_map(replies) {
        if story.bytes("sent")[0] != Command::Query.byte() {
            continue;
        }
        let place = &story.location;
        let bytes = story.bytes("server");
        let limits = CollectLimits {
            max_rows: 100,
            max_bytes: 10_000,
        };
        let mut collector = ReplyCollector::new(story.capabilities(), limits);
        if story.number("asks") > 0 {
            assert_eq!(
                collector.feed(&bytes),
                Err(CollectError::LocalInfile),
                "{place}"
            );
            continue;
        }
        assert!(collector.feed(&bytes).unwrap().done, "{place}");
        match collector.finish() {
            Ok(QueryReply::Rows(rows)) => {
                assert_eq!(rows.len() as u64, story.number("rows"), "{place}");
                for column in rows.columns() {
                    let column = ParseBuf(column).parse::<Column>(()).unwrap();
                    assert!(!column.name_ref().is_empty(), "{place}");
                }
            }
            Ok(QueryReply::Ok(_)) => assert_eq!(story.number("results"), 0, "{place}"),
            Ok(QueryReply::Err(packet)) => {
                assert_eq!(story.get("ends"), Some(&*format!("err {}", packet.code)))
            }
            Err(error) => {
                assert_eq!(error, CollectError::SeveralResults, "{place}");
                assert!(
                    place.contains("several") || place.contains("call"),
                    "{place}"
                );
            }
        }
    }
}
