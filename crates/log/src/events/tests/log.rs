//! Logs of real servers (`fixtures/log`, see its README), and events made by hand.

use std::fs;
use std::path::Path;

use crate::EventError;
use crate::event::{Event, HEADER, Keep, Reader};
use crate::events::Events;
use crate::evidence::Table;
use crate::routes::{Column, Route, Routes};
use headwater_timeline::definition::IntType;
use headwater_timeline::index::{PlaceId, Position};

/// Bytes of an event that the stories hold at most.
const MOST: usize = 1 << 20;

/// The log of one server, in pieces.
pub(crate) struct Log {
    pub(crate) name: String,
    checked: bool,
    pub(crate) start: Position,
    pub(crate) stories: Vec<Story>,
}

/// What stands in the log behind some statements.
pub(crate) struct Story {
    pub(crate) name: String,
    pub(crate) events: Vec<Vec<u8>>,
    pub(crate) tells: Vec<String>,
    pub(crate) end: Position,
}

impl Log {
    pub(crate) fn all() -> Vec<Log> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/log");
        let mut logs = Vec::new();
        for server in ["mariadb-10.11.19", "mysql-9.7.4"] {
            for form in ["full", "minimal", "compressed"] {
                let text =
                    fs::read_to_string(folder.join(server).join(format!("{form}.txt"))).unwrap();
                logs.push(Log::read(format!("{server} {form}"), &text));
            }
        }
        logs
    }

    fn read(name: String, text: &str) -> Log {
        let mut stories: Vec<Story> = text
            .split("\n\n")
            .filter(|block| block.starts_with("story "))
            .map(Story::read)
            .collect();
        let described = stories.remove(0);
        let mut reader = Reader::new(MOST);
        let format = read(&mut reader, &described.events[0]).unwrap();
        Log {
            name,
            checked: format[0].body.last() == Some(&1),
            start: described.end,
            stories,
        }
    }

    /// True when its events have checksums.
    pub(crate) fn is_checked(&self) -> bool {
        self.checked
    }

    pub(crate) fn follow(&self) -> Events {
        Events::starting_at(self.start, "binlog", 1_000)
    }

    /// An event, and what a compressed transaction holds, as the stream's client hands them on.
    pub(crate) fn handed_on(&self, bytes: &[u8]) -> Result<Vec<Event>, EventError> {
        read(&mut Reader::checked(MOST, self.checked), bytes)
    }

    /// The bytes of an event without a checksum.
    pub(crate) fn bare<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[..bytes.len() - if self.is_checked() { 4 } else { 0 }]
    }
}

impl Story {
    fn read(block: &str) -> Story {
        let mut story = Story {
            name: String::new(),
            events: Vec::new(),
            tells: Vec::new(),
            end: Position::default(),
        };
        for line in block.lines() {
            let (key, value) = line.split_once(' ').unwrap();
            match key {
                "story" => story.name = value.to_owned(),
                "event" => story.events.push(unhex(value)),
                "tells" => story.tells.push(value.to_owned()),
                "at" | "end" => story.end = position(value),
                _ => {}
            }
        }
        story
    }
}

fn position(text: &str) -> Position {
    let (file, offset) = text.split_once(' ').unwrap();
    Position {
        file: file.rsplit_once('.').unwrap().1.parse().unwrap(),
        offset: offset.parse().unwrap(),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// The classic tables in the database `tl`.
pub(crate) fn routes() -> Routes {
    typed(IntType::IntUnsigned, IntType::IntUnsigned)
}

/// The same with other types of ids and users.
pub(crate) fn typed(id: IntType, user: IntType) -> Routes {
    let route = |table, name: &str, columns, first| Route {
        place: PlaceId(0),
        table,
        database: "tl".into(),
        name: name.into(),
        columns: Some(columns),
        first: Column { at: 0, kind: first },
        second: Column { at: 1, kind: user },
        key: None,
    };
    Routes {
        routes: vec![
            route(Table::Message, "message", 3, id),
            route(Table::Follower, "follower", 2, user),
        ],
        caseless: false,
    }
}

/// All events in these bytes, whole.
fn read(reader: &mut Reader, mut bytes: &[u8]) -> Result<Vec<Event>, EventError> {
    let mut events = Vec::new();
    while !bytes.is_empty() || reader.is_busy() {
        let step = reader.step(bytes, &|_, _: &[u8]| Keep::All)?;
        bytes = &bytes[step.taken..];
        events.extend(step.event);
    }
    Ok(events)
}

/// An event without a checksum.
pub(crate) fn event(kind: u8, log_pos: u32, flags: u16, body: &[u8]) -> Event {
    Event {
        kind,
        flags,
        log_pos,
        body: body.to_vec(),
        ..Event::default()
    }
}

/// An event of these bytes, whatever size they say, without a checksum.
pub(crate) fn unchecked(bytes: &[u8]) -> Event {
    let number = |at: usize| bytes[at..at + 4].try_into().map(u32::from_le_bytes);
    let flags = u16::from_le_bytes([bytes[17], bytes[18]]);
    event(bytes[4], number(13).unwrap(), flags, &bytes[HEADER..])
}

/// The bytes of an event with their own size in them.
pub(crate) fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    bytes[9..13].copy_from_slice(&size);
    bytes
}
