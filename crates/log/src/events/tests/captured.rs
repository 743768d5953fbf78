//! What servers logged is told as it happened.

use super::log::{Log, routes};
use crate::EventError;
use crate::events::{Events, Heard, Lost};
use headwater_timeline::index::{Change, PlaceId, Position};

pub(crate) fn told(changes: &[(PlaceId, Change)]) -> Vec<String> {
    let told = changes.iter().map(|(_, change)| match *change {
        Change::Posted { author, id, .. } => format!("posted {author} {id}"),
        Change::Removed {
            author: None, id, ..
        } => format!("removed ? {id}"),
        Change::Removed {
            author: Some(author),
            id,
            ..
        } => format!("removed {author} {id}"),
        Change::Followed { reader, author } => format!("followed {reader} {author}"),
        Change::Unfollowed { reader, author } => format!("unfollowed {reader} {author}"),
        Change::MessagesLost => "messages lost".to_owned(),
        Change::FollowsLost => "follows lost".to_owned(),
    });
    told.collect()
}

fn lost(lost: &Lost) -> String {
    match lost {
        Lost::Xa => "lost xa".to_owned(),
        Lost::Schema(_) => "lost schema".to_owned(),
        lost => format!("lost: {lost}"),
    }
}

/// What the events tell, and the last position that they name.
fn tell(events: &mut Events, log: &Log, story: &[Vec<u8>]) -> (Vec<String>, Option<Position>) {
    let (mut tells, mut at) = (Vec::new(), None);
    for bytes in story {
        for event in log.handed_on(bytes).unwrap() {
            match events.take(&event, &routes()) {
                Ok(Heard::Nothing | Heard::Unfinished) => {}
                Ok(Heard::Passed(to)) => at = Some(to),
                Ok(Heard::Transaction(to, changes, _)) => {
                    at = Some(to);
                    tells.extend(told(&changes));
                }
                Err(error) => {
                    tells.push(lost(&error));
                    return (tells, None);
                }
            }
        }
    }
    (tells, at)
}

#[test]
fn what_servers_logged_is_told_as_it_happened() {
    for log in Log::all() {
        let mut events = log.follow();
        for story in &log.stories {
            let (tells, at) = tell(&mut events, &log, &story.events);
            assert_eq!(tells, story.tells, "{}: {}", log.name, story.name);
            if tells.iter().any(|tells| tells.starts_with("lost")) {
                // As a new stream begins.
                events = Events::starting_at(story.end, "binlog", 1_000);
            } else if !story.events.is_empty() {
                assert_eq!(at, Some(story.end), "{}: {}", log.name, story.name);
            }
        }
    }
}

/// A stream that begins between XA PREPARE and XA COMMIT cannot know what becomes readable.
#[test]
fn a_two_phase_transaction_prepared_out_of_sight_is_lost_when_it_is_committed() {
    for log in Log::all() {
        let story = |name: &str| log.stories.iter().find(|story| story.name == name);
        let prepared = story("a two-phase transaction of another table").unwrap();
        let committed = story("it is committed").unwrap();
        let mut events = Events::starting_at(prepared.end, "binlog", 1_000);
        let (tells, _) = tell(&mut events, &log, &committed.events);
        assert_eq!(tells, ["lost xa"], "{}", log.name);
    }
}

#[test]
fn a_transaction_of_too_many_rows_is_lost() {
    for log in Log::all() {
        let story = log.stories.iter().find(|story| story.name == "messages");
        let mut events = Events::starting_at(log.start, "binlog", 1);
        let (tells, _) = tell(&mut events, &log, &story.unwrap().events);
        let said = format!("lost: {}", Lost::TooLarge(1));
        assert_eq!(tells, [said], "{}", log.name);
    }
}

#[test]
fn an_event_without_its_checksum_is_lost() {
    for log in Log::all().into_iter().filter(Log::is_checked) {
        for story in &log.stories {
            let mut bytes = story.events.last().cloned().unwrap_or_default();
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
                let read = log.handed_on(&bytes);
                let lost = matches!(read, Err(EventError::Checksum));
                assert!(lost, "{}: {}: {read:?}", log.name, story.name);
            }
        }
    }
}
