//! Captured logs give the changes that happened.

use super::captured_log::{CapturedLog, routes};
use crate::EventError;
use crate::assembler::{EventOutcome, LogStreamError, TransactionAssembler};
use headwater_timeline::index::{BinlogPosition, TimelineChange, TimelineId};

pub(crate) fn describe_changes(changes: &[(TimelineId, TimelineChange)]) -> Vec<String> {
    let texts = changes.iter().map(|(_, change)| match *change {
        TimelineChange::Posted { author, id, .. } => format!("posted {author} {id}"),
        TimelineChange::Removed {
            author: None, id, ..
        } => format!("removed ? {id}"),
        TimelineChange::Removed {
            author: Some(author),
            id,
            ..
        } => format!("removed {author} {id}"),
        TimelineChange::Followed { reader, author } => format!("followed {reader} {author}"),
        TimelineChange::Unfollowed { reader, author } => format!("unfollowed {reader} {author}"),
        TimelineChange::MessagesOfAuthorLost { author } => format!("messages of {author} lost"),
        TimelineChange::MessagesLost => "messages lost".to_owned(),
        TimelineChange::FollowsLost => "follows lost".to_owned(),
        TimelineChange::FollowsChanged { reader } => format!("follows of {reader} changed"),
    });
    texts.collect()
}

fn describe_error(lost: &LogStreamError) -> String {
    match lost {
        LogStreamError::Xa => "lost xa".to_owned(),
        LogStreamError::Schema(_) => "lost schema".to_owned(),
        lost => format!("lost: {lost}"),
    }
}

/// The outcomes of the events, and their last position.
fn replay(
    events: &mut TransactionAssembler,
    log: &CapturedLog,
    story: &[Vec<u8>],
) -> (Vec<String>, Option<BinlogPosition>) {
    let (mut tells, mut at) = (Vec::new(), None);
    for bytes in story {
        for event in log.read_events(bytes).unwrap() {
            match events.process(&event, &routes()) {
                Ok(EventOutcome::Nothing | EventOutcome::Unfinished) => {}
                Ok(EventOutcome::Passed(to)) => at = Some(to),
                Ok(EventOutcome::Transaction(to, changes, _)) => {
                    at = Some(to);
                    tells.extend(describe_changes(&changes));
                }
                Err(error) => {
                    tells.push(describe_error(&error));
                    return (tells, None);
                }
            }
        }
    }
    (tells, at)
}

#[test]
fn captured_logs_give_the_changes_that_happened() {
    for log in CapturedLog::all() {
        let mut events = log.assembler();
        for scenario in &log.scenarios {
            let (outcomes, at) = replay(&mut events, &log, &scenario.events);
            assert_eq!(
                outcomes, scenario.expected_changes,
                "{}: {}",
                log.name, scenario.name
            );
            if outcomes.iter().any(|tells| tells.starts_with("lost")) {
                // As a new stream starts.
                events = TransactionAssembler::starting_at(scenario.end, "binlog", 1_000);
            } else if !scenario.events.is_empty() {
                assert_eq!(at, Some(scenario.end), "{}: {}", log.name, scenario.name);
            }
        }
    }
}

/// A stream that begins between XA PREPARE and XA COMMIT cannot know what becomes readable.
#[test]
fn a_two_phase_transaction_prepared_out_of_sight_is_lost_when_it_is_committed() {
    for log in CapturedLog::all() {
        let story = |name: &str| log.scenarios.iter().find(|story| story.name == name);
        let prepared = story("a two-phase transaction of another table").unwrap();
        let committed = story("it is committed").unwrap();
        let mut events = TransactionAssembler::starting_at(prepared.end, "binlog", 1_000);
        let (outcomes, _) = replay(&mut events, &log, &committed.events);
        assert_eq!(outcomes, ["lost xa"], "{}", log.name);
    }
}

#[test]
fn a_transaction_of_too_many_rows_is_lost() {
    for log in CapturedLog::all() {
        let story = log.scenarios.iter().find(|story| story.name == "messages");
        let mut events = TransactionAssembler::starting_at(log.start, "binlog", 1);
        let (outcomes, _) = replay(&mut events, &log, &story.unwrap().events);
        let said = format!("lost: {}", LogStreamError::TooLarge(1));
        assert_eq!(outcomes, [said], "{}", log.name);
    }
}

#[test]
fn an_event_without_its_checksum_is_lost() {
    for log in CapturedLog::all()
        .into_iter()
        .filter(CapturedLog::is_checked)
    {
        for scenario in &log.scenarios {
            let mut bytes = scenario.events.last().cloned().unwrap_or_default();
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
                let read = log.read_events(&bytes);
                let lost = matches!(read, Err(EventError::Checksum));
                assert!(lost, "{}: {}: {read:?}", log.name, scenario.name);
            }
        }
    }
}
