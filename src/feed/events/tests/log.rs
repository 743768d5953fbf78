//! Logs of real servers (`fixtures/log`, see its README), and events made by hand.

use std::fs;
use std::path::Path;

use mysql_common::binlog::consts::BinlogChecksumAlg;
use mysql_common::binlog::consts::BinlogVersion::Version4;
use mysql_common::binlog::events::{
    BinlogEventFooter, BinlogEventHeader, Event, FormatDescriptionEvent,
};

use crate::feed::events::Events;
use crate::feed::evidence::Table;
use crate::feed::routes::{Column, Route, Routes};
use crate::index::Position;
use crate::timeline::definition::IntType;

/// The length of an event's header, and where its size stands in it.
pub(super) const HEADER: usize = BinlogEventHeader::LEN;
const SIZE: usize = 9;

/// The log of one server, in pieces.
pub(super) struct Log {
    pub(super) name: String,
    pub(super) format: FormatDescriptionEvent<'static>,
    pub(super) start: Position,
    pub(super) stories: Vec<Story>,
}

/// What stands in the log behind some statements.
pub(super) struct Story {
    pub(super) name: String,
    pub(super) events: Vec<Vec<u8>>,
    pub(super) tells: Vec<String>,
    pub(super) end: Position,
}

impl Log {
    pub(super) fn all() -> Vec<Log> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/log");
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
        let event = Event::read(
            &FormatDescriptionEvent::new(Version4),
            &*described.events[0],
        )
        .unwrap();
        let format: FormatDescriptionEvent<'_> = event.read_event().unwrap();
        Log {
            name,
            format: format.into_owned().with_footer(event.footer()),
            start: described.end,
            stories,
        }
    }

    /// True when its events have checksums.
    pub(super) fn is_checked(&self) -> bool {
        self.format.footer() == BinlogEventFooter::new(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_CRC32)
    }

    pub(super) fn follow(&self) -> Events {
        Events::starting_at(self.start, "binlog", 1_000)
    }

    pub(super) fn event(&self, bytes: &[u8]) -> Event {
        Event::read(&self.format, bytes).unwrap()
    }

    /// The bytes of an event without a checksum.
    pub(super) fn bare<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
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
pub(in crate::feed) fn routes() -> Routes {
    typed(IntType::IntUnsigned, IntType::IntUnsigned)
}

/// The same with other types of ids and users.
pub(super) fn typed(id: IntType, user: IntType) -> Routes {
    let route = |table, name: &str, columns, first| Route {
        place: 0,
        table,
        database: "tl".into(),
        name: name.into(),
        columns: Some(columns),
        first: Column { at: 0, kind: first },
        second: Column { at: 1, kind: user },
    };
    Routes {
        routes: vec![
            route(Table::Message, "message", 3, id),
            route(Table::Follower, "follower", 2, user),
        ],
        caseless: false,
    }
}

/// An event with a header of its own, without a checksum.
pub(super) fn event(kind: u8, log_pos: u32, flags: u16, body: &[u8]) -> Event {
    let mut bytes = vec![0; HEADER];
    bytes[4] = kind;
    bytes[13..17].copy_from_slice(&log_pos.to_le_bytes());
    bytes[17..19].copy_from_slice(&flags.to_le_bytes());
    bytes.extend(body);
    unchecked(&bytes)
}

/// An event of these bytes, whatever size they say, without a checksum.
pub(super) fn unchecked(bytes: &[u8]) -> Event {
    let footer = BinlogEventFooter::new(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_OFF);
    let format = FormatDescriptionEvent::new(Version4).with_footer(footer);
    Event::read(&format, &*sized(bytes)).unwrap()
}

/// The bytes of an event with their own size in them: what else it says is for the stream's client to refuse.
pub(super) fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    bytes[SIZE..SIZE + 4].copy_from_slice(&size);
    bytes
}
