//! A user's own follows and messages, from files: who follows whom, and each message's author, order and length. Bodies are not needed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::demo::dataset::{DatasetSize, MessageRow};

/// Maximum length of a message's body, as of the column.
const MAX_BODY_BYTES: usize = 255;
/// The length of a message if the file does not contain it.
const DEFAULT_BODY_BYTES: usize = 140;
const WORDS: &str = "as long as the message that somebody wrote, and of other words ";

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserDataError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line has another form than expected.
    #[error(
        "{path}, line {line}: {wanted}, with a tab, a comma or spaces between, and no heading; this is {found:?}"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number, counted from 1.
        line: usize,
        /// The expected form.
        wanted: &'static str,
        /// The line's text.
        found: String,
    },
    /// The file has too few or too many entries.
    #[error("{path}: {found} {what}; the bench takes from {least} to {most}")]
    Count {
        /// The file.
        path: PathBuf,
        /// The counted entries.
        what: &'static str,
        /// The number of entries.
        found: usize,
        /// The least allowed number.
        least: usize,
        /// The greatest allowed number.
        most: usize,
    },
}

/// The files' data, renumbered: users from 1, messages from 1 in the order of their ids.
#[derive(Debug)]
pub struct UserData {
    /// Reader and author.
    follows: Vec<(u32, u32)>,
    /// Author and length.
    messages: Vec<(u32, usize)>,
    users: u32,
}

impl UserData {
    /// Reads who follows whom (reader, author) and who wrote what (id, author, and bytes if they are known).
    ///
    /// # Errors
    /// Fails if a file cannot be read, or a line has another form.
    pub fn read(follows: &Path, messages: &Path) -> Result<UserData, UserDataError> {
        let mut users = UserNumbers::default();
        let mut pairs = Vec::new();
        each_line(follows, "a reader and an author", &mut |fields| {
            let [reader, author] = fields else {
                return None;
            };
            pairs.push((users.number(reader), users.number(author)));
            Some(())
        })?;
        pairs.sort_unstable();
        pairs.dedup();
        let mut written = Vec::new();
        let expected = "a message's id (a number that grows with time) and its author, then its length in bytes if it is known";
        each_line(messages, expected, &mut |fields| {
            let (id, author, bytes) = match fields {
                [id, author] => (id, author, DEFAULT_BODY_BYTES),
                [id, author, bytes] => (id, author, bytes.parse().ok()?),
                _ => return None,
            };
            let id: u64 = id.parse().ok()?;
            written.push((id, users.number(author), bytes));
            Some(())
        })?;
        written.sort_unstable();
        written.dedup_by_key(|(id, ..)| *id);
        let count =
            |path: &Path, what, entries, least, most| match (least..=most).contains(&entries) {
                true => Ok(()),
                false => Err(UserDataError::Count {
                    path: path.to_owned(),
                    what,
                    found: entries,
                    least,
                    most,
                }),
            };
        count(follows, "follows", pairs.len(), 1, 1_000_000_000)?;
        count(messages, "messages", written.len(), 1, 1_000_000_000)?;
        Ok(UserData {
            follows: pairs,
            messages: written
                .into_iter()
                .map(|(_, author, bytes)| (author, bytes))
                .collect(),
            users: users.count(),
        })
    }

    /// The size of the data set.
    #[must_use]
    pub fn size(&self) -> DatasetSize {
        DatasetSize {
            users: self.users,
            messages: self.messages.len() as u64,
            mean_follows: self.follows.len() as f64 / f64::from(self.users.max(1)),
            ..DatasetSize::CLASSIC
        }
    }

    /// Reader and author, in the order of the file.
    pub fn follows(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.follows.iter().copied()
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> impl Iterator<Item = MessageRow> + '_ {
        let all = (1..).zip(&self.messages);
        all.map(|(id, (author, bytes))| MessageRow {
            id,
            author: *author,
            body: WORDS
                .chars()
                .cycle()
                .take(*bytes.min(&MAX_BODY_BYTES))
                .collect(),
        })
    }
}

/// Numbers of users by name.
#[derive(Default)]
struct UserNumbers(HashMap<Box<str>, u32>);

impl UserNumbers {
    fn number(&mut self, name: &str) -> u32 {
        let next = self.count() + 1;
        match self.0.get(name) {
            Some(number) => *number,
            None => *self.0.entry(name.into()).or_insert(next),
        }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// Passes each line's fields to a function, except empty lines; `None` from it means that the line has another form.
fn each_line(
    path: &Path,
    expected: &'static str,
    each: &mut dyn FnMut(&[&str]) -> Option<()>,
) -> Result<(), UserDataError> {
    let read = |source| UserDataError::Read {
        path: path.to_owned(),
        source,
    };
    let mut lines = BufReader::new(File::open(path).map_err(read)?);
    let (mut text, mut line) = (String::new(), 0);
    loop {
        text.clear();
        if lines.read_line(&mut text).map_err(read)? == 0 {
            return Ok(());
        }
        line += 1;
        let parts = text.split(|sign: char| sign == ',' || sign.is_whitespace());
        let fields: Vec<&str> = parts.filter(|field| !field.is_empty()).collect();
        if !fields.is_empty() && each(&fields).is_none() {
            return Err(UserDataError::Line {
                path: path.to_owned(),
                line,
                wanted: expected,
                found: text.trim_end().chars().take(60).collect(),
            });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(follows: &str, messages: &str) -> Result<UserData, UserDataError> {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["follows", "messages"].map(|name| folder.path().join(name));
        for (path, text) in paths.iter().zip([follows, messages]) {
            std::fs::write(path, text).unwrap();
        }
        let [follows, messages] = &paths;
        UserData::read(follows, messages)
    }

    #[test]
    fn users_and_messages_get_numbers_of_the_benchs_own() {
        let own = read(
            "anna\tben\nben,anna\n\nanna ben\r\nanna carl\n",
            "9000000000000000001\tben\t300\n17,carl\n18 dora 0\n",
        )
        .unwrap();
        let follows: Vec<_> = own.follows().collect();
        assert_eq!(follows, [(1, 2), (1, 3), (2, 1)]);
        let messages: Vec<_> = own.messages().collect();
        let parsed: Vec<_> = messages
            .iter()
            .map(|it| (it.id, it.author, it.body.len()))
            .collect();
        assert_eq!(parsed, [(1, 3, 140), (2, 4, 0), (3, 2, 255)]);
        let size = own.size();
        assert_eq!((size.users, size.messages, size.follows()), (4, 3, 3));
    }

    #[test]
    fn a_line_that_is_none_is_named_with_what_it_has_to_be() {
        for (follows, messages, parsed) in [
            (
                "1 2\n1\n",
                "1 1\n",
                "line 2: a reader and an author, with a tab, a comma or spaces between, and no heading; this is \"1\"",
            ),
            ("1 2\n", "id\tuser_id\n", "line 1: a message's id (a number"),
            ("1 2\n", "1 1 x\n", "line 1: a message's id"),
            ("", "1 1\n", "0 follows; the bench takes from 1 to"),
            ("1 2\n", "\n", "0 messages; the bench takes from 1 to"),
        ] {
            let error = read(follows, messages).unwrap_err().to_string();
            assert!(error.contains(parsed), "{error}");
        }
        let error = UserData::read(Path::new("/nowhere/at all"), Path::new("")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /nowhere/at all");
    }
}
