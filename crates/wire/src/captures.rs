//! Replays the bytes in `fixtures/wire` (see its README): captures of real servers, and malformed packets.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

mod logins;
mod malformed;
mod replies;

use std::fs;
use std::path::Path;

use crate::capability::Capabilities;

/// The servers whose bytes are in the folder.
const SERVERS: [&str; 2] = ["mariadb-10.11.19", "mysql-9.7.4"];

/// One scenario of a fixture file: its lines as keys and values.
struct WireScenario {
    /// Folder, file and name.
    location: String,
    lines: Vec<(String, String)>,
}

impl WireScenario {
    /// All scenarios of a folder.
    fn load_all(folder: &str) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures/wire")
            .join(folder);
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        files.iter().flat_map(|file| Self::read(file)).collect()
    }

    fn read(file: &Path) -> Vec<Self> {
        let text = fs::read_to_string(file).unwrap();
        let stories = text.split("\n\n").map(|block| {
            let lines = block.lines().filter(|line| !line.starts_with('#'));
            let lines: Vec<_> = lines
                .map(|line| line.split_once(' ').unwrap_or((line, "")))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            let story = Self {
                location: file.display().to_string(),
                lines,
            };
            let location = format!(
                "{}: {}",
                story.location,
                story.get("story").unwrap_or_default()
            );
            Self { location, ..story }
        });
        stories
            .filter(|story| story.get("story").is_some())
            .collect()
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.lines
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> u64 {
        self.get(key).map_or(0, |value| value.parse().unwrap())
    }

    fn capabilities(&self) -> Capabilities {
        let value = self
            .get("capabilities")
            .and_then(|value| value.strip_prefix("0x"));
        Capabilities(u64::from_str_radix(value.unwrap_or("0"), 16).unwrap())
    }

    /// The bytes of every line with this key, concatenated.
    fn bytes(&self, key: &str) -> Vec<u8> {
        let values = self.lines.iter().filter(|(name, _)| name == key);
        values.flat_map(|(_, value)| unhex(value)).collect()
    }

    /// The payload of the packet in the line with this key.
    fn payload(&self, key: &str) -> Option<Vec<u8>> {
        self.get(key).map(|value| unhex(value)[4..].to_vec())
    }
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn no_fuzz_target_fails_on_captured_bytes() {
    use crate::fuzzing;
    for story in SERVERS
        .into_iter()
        .chain(["malformed"])
        .flat_map(WireScenario::load_all)
    {
        let capabilities = story.capabilities().0.to_le_bytes();
        let server = story.bytes("server");
        let command = story.bytes("sent").first().copied().unwrap_or(0x03);
        for size in [1, 3, 255] {
            fuzzing::frame(&[&[size][..], &server].concat());
            fuzzing::reply(&[&capabilities[..], &[command, size], &server].concat());
            fuzzing::collector(&[&capabilities[..], &[5, 20, size], &server].concat());
        }
        for key in ["greeting", "login", "query", "server"] {
            let payload = story.payload(key).unwrap_or_default();
            fuzzing::handshake(&[&capabilities[..], &payload].concat());
        }
        for payload in [story.bytes("payload"), story.bytes("sent")] {
            fuzzing::handshake(&[&capabilities[..], &payload].concat());
        }
    }
}
