//! Logs of real servers (`fixtures/log`, see its README), and events made by hand.

use std::fs;
use std::path::Path;

use crate::EventError;
use crate::assembler::TransactionAssembler;
use crate::event_reader::{BodyRetention, EventReader, HEADER_BYTES, LogEvent};
use crate::evidence::TableRole;
use crate::routes::{ColumnPosition, TableRoute, TableRoutes};
use headwater_timeline::definition::IdType;
use headwater_timeline::index::{BinlogPosition, TimelineId};

/// Limit of an event in the captured scenarios.
const MOST: usize = 1 << 20;

/// The log of one server, in pieces.
pub(crate) struct CapturedLog {
    pub(crate) name: String,
    checked: bool,
    pub(crate) start: BinlogPosition,
    pub(crate) scenarios: Vec<CapturedScenario>,
}

/// The part of the log after some statements.
pub(crate) struct CapturedScenario {
    pub(crate) name: String,
    pub(crate) events: Vec<Vec<u8>>,
    pub(crate) expected_changes: Vec<String>,
    pub(crate) end: BinlogPosition,
}

impl CapturedLog {
    pub(crate) fn all() -> Vec<CapturedLog> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/log");
        let mut logs = Vec::new();
        for server in ["mariadb-10.11.19", "mysql-9.7.4"] {
            for form in ["full", "minimal", "compressed"] {
                let text =
                    fs::read_to_string(folder.join(server).join(format!("{form}.txt"))).unwrap();
                logs.push(CapturedLog::read(format!("{server} {form}"), &text));
            }
        }
        logs
    }

    fn read(name: String, text: &str) -> CapturedLog {
        let mut stories: Vec<CapturedScenario> = text
            .split("\n\n")
            .filter(|block| block.starts_with("story "))
            .map(CapturedScenario::read)
            .collect();
        let described = stories.remove(0);
        let mut reader = EventReader::new(MOST);
        let format = read_all(&mut reader, &described.events[0]).unwrap();
        CapturedLog {
            name,
            checked: format[0].body.last() == Some(&1),
            start: described.end,
            scenarios: stories,
        }
    }

    /// True when its events have checksums.
    pub(crate) fn is_checked(&self) -> bool {
        self.checked
    }

    pub(crate) fn assembler(&self) -> TransactionAssembler {
        TransactionAssembler::starting_at(self.start, "binlog", 1_000)
    }

    /// Parses events and what compressed transactions contain, as the stream's client does.
    pub(crate) fn read_events(&self, bytes: &[u8]) -> Result<Vec<LogEvent>, EventError> {
        read_all(&mut EventReader::with_checksums(MOST, self.checked), bytes)
    }

    /// The bytes of an event without a checksum.
    pub(crate) fn without_checksum<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[..bytes.len() - if self.is_checked() { 4 } else { 0 }]
    }
}

impl CapturedScenario {
    fn read(block: &str) -> CapturedScenario {
        let mut scenario = CapturedScenario {
            name: String::new(),
            events: Vec::new(),
            expected_changes: Vec::new(),
            end: BinlogPosition::default(),
        };
        for line in block.lines() {
            let (key, value) = line.split_once(' ').unwrap();
            match key {
                "story" => scenario.name = value.to_owned(),
                "event" => scenario.events.push(unhex(value)),
                "tells" => scenario.expected_changes.push(value.to_owned()),
                "at" | "end" => scenario.end = position(value),
                _ => {}
            }
        }
        scenario
    }
}

fn position(text: &str) -> BinlogPosition {
    let (file, offset) = text.split_once(' ').unwrap();
    BinlogPosition {
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
pub(crate) fn routes() -> TableRoutes {
    routes_with_types(IdType::IntUnsigned, IdType::IntUnsigned)
}

/// The same with other types of ids and users.
pub(crate) fn routes_with_types(id: IdType, user: IdType) -> TableRoutes {
    let route = |table, name: &str, columns, first| TableRoute {
        table_id: TimelineId(0).into(),
        table,
        database: "tl".into(),
        name: name.into(),
        columns: Some(columns),
        first: ColumnPosition { at: 0, kind: first },
        second: ColumnPosition { at: 1, kind: user },
        has_copies: false,
        has_mixed_signs: false,
        key: None,
    };
    TableRoutes {
        routes: vec![
            route(TableRole::Message, "message", 3, id),
            route(TableRole::Follower, "follower", 2, user),
        ],
        caseless: false,
    }
}

/// Parses all events in these bytes, whole.
fn read_all(reader: &mut EventReader, mut bytes: &[u8]) -> Result<Vec<LogEvent>, EventError> {
    let mut events = Vec::new();
    while !bytes.is_empty() || reader.is_busy() {
        let step = reader.step(bytes, &|_, _: &[u8]| BodyRetention::All)?;
        bytes = &bytes[step.taken..];
        events.extend(step.event);
    }
    Ok(events)
}

/// An event without a checksum.
pub(crate) fn event(kind: u8, log_pos: u32, flags: u16, body: &[u8]) -> LogEvent {
    LogEvent {
        event_type: kind,
        flags,
        log_pos,
        body: body.to_vec(),
        ..LogEvent::default()
    }
}

/// An event of these bytes, whatever their length field, without a checksum.
pub(crate) fn unchecked(bytes: &[u8]) -> LogEvent {
    let number = |at: usize| bytes[at..at + 4].try_into().map(u32::from_le_bytes);
    let flags = u16::from_le_bytes([bytes[17], bytes[18]]);
    event(bytes[4], number(13).unwrap(), flags, &bytes[HEADER_BYTES..])
}

/// The bytes of an event with their own size in the length field.
pub(crate) fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    bytes[9..13].copy_from_slice(&size);
    bytes
}
