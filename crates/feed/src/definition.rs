//! A feed as the settings describe it.

use std::fmt;

use headwater_sql::NameCase;
use serde::{Deserialize, Serialize};

use crate::authors::FollowNames;
use crate::shape::FeedNames;

/// The index of a feed in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(pub usize);

/// The names of one feed's tables and columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedDefinition {
    /// Its name in logs, counters and pages.
    pub name: String,
    /// The only database that it is served in; `None`: any in which its check passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The order of messages with equal keys.
    #[serde(default, skip_serializing_if = "TieOrder::is_default")]
    pub ties: TieOrder,
    /// The table of messages.
    pub message: MessageDefinition,
    /// The follow table; not needed where statements name the authors themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<FollowDefinition>,
}

/// The order of messages with equal keys, in statements that order by the key alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TieOrder {
    /// The server's choice: a page that shows it is relayed.
    #[default]
    Server,
    /// The larger id first.
    Id,
}

impl TieOrder {
    fn is_default(&self) -> bool {
        *self == TieOrder::default()
    }
}

/// The table of messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageDefinition {
    /// Its name.
    pub table: String,
    /// Its primary key.
    #[serde(default = "id")]
    pub id: String,
    /// The column of the author, or of whatever readers follow. The id, if they follow messages themselves: topics, by their last post.
    pub author: String,
    /// The columns that order pages, newest first: the id, or another column and then the id. Empty: the id.
    #[serde(default)]
    pub order: Vec<String>,
}

fn id() -> String {
    "id".into()
}

/// The follow table: who follows whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowDefinition {
    /// Its name.
    pub table: String,
    /// The column of the follower.
    pub reader: String,
    /// The column of the followed author.
    pub author: String,
}

/// The definition cannot be served; the message names the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedError {
    key: &'static str,
    problem: String,
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.problem)
    }
}

impl std::error::Error for FeedError {}

/// The longest name of a table or column, in characters.
const NAME: usize = 64;

impl FeedDefinition {
    /// The column that orders pages, if it is not the id.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        let first = self.message.order.first()?;
        (!first.eq_ignore_ascii_case(&self.message.id)).then_some(first)
    }

    /// The definition with names folded as the server folds them.
    #[must_use]
    pub fn folded(&self, case: NameCase) -> FeedDefinition {
        let mut folded = self.clone();
        let tables = [
            Some(&mut folded.message.table),
            folded.follow.as_mut().map(|follow| &mut follow.table),
            folded.database.as_mut(),
        ];
        for name in tables.into_iter().flatten() {
            case.fold_text(name);
        }
        folded
    }

    /// True if this feed serves the statements of another definition, which was found in a database.
    #[must_use]
    pub fn serves(&self, discovered: &FeedDefinition, database: &str) -> bool {
        let (message, other) = (&self.message, &discovered.message);
        let same = message.table == other.table
            && message.id.eq_ignore_ascii_case(&other.id)
            && message.author.eq_ignore_ascii_case(&other.author)
            && self.key().map(str::to_ascii_lowercase)
                == discovered.key().map(str::to_ascii_lowercase);
        let follows = discovered.follow.is_none() || discovered.follow == self.follow;
        same && follows && self.database.as_deref().is_none_or(|only| only == database)
    }

    /// Makes the name unique: keeps it, or appends the first number that is free.
    pub fn assign_free_name(&mut self, is_free: impl Fn(&str) -> bool) {
        let numbered = (2..).map(|number| format!("{}_{number}", self.name));
        let mut names = std::iter::once(self.name.clone()).chain(numbered);
        if let Some(name) = names.find(|name| is_free(name)) {
            self.name = name;
        }
    }

    /// Its section of the settings file.
    #[must_use]
    pub fn section(&self) -> String {
        #[derive(Serialize)]
        struct SettingsFragment<'a> {
            feed: [&'a FeedDefinition; 1],
        }
        // Texts alone always serialize.
        let section = toml::to_string(&SettingsFragment { feed: [self] }).unwrap_or_default();
        // A name with a line break would become lines, one of which could pass for another's.
        match ["\"\"\"", "'''"]
            .iter()
            .any(|lines| section.contains(lines))
        {
            true => "# its names hold line breaks: it is to be named by hand\n".to_owned(),
            false => section,
        }
    }

    /// The names that statements are compared with.
    #[must_use]
    pub fn feed_names(&self, database: &str) -> FeedNames {
        FeedNames {
            database: Some(database.to_owned()),
            message: self.message.table.clone(),
            id: self.message.id.clone(),
            author: self.message.author.clone(),
            key: self.key().map(str::to_owned),
            ties: self.ties,
            follow: self.follow.as_ref().map(|follow| FollowNames {
                table: follow.table.clone(),
                reader: follow.reader.clone(),
                author: follow.author.clone(),
            }),
        }
    }

    /// Checks whether the definition can be served.
    ///
    /// # Errors
    /// The first wrong key, and its fault.
    pub fn validate(&self) -> Result<(), FeedError> {
        let names = [
            ("message.table", &self.message.table),
            ("message.id", &self.message.id),
            ("message.author", &self.message.author),
        ];
        let follow = self.follow.iter().flat_map(|follow| {
            [
                ("follow.table", &follow.table),
                ("follow.reader", &follow.reader),
                ("follow.author", &follow.author),
            ]
        });
        let order = self
            .message
            .order
            .iter()
            .map(|name| ("message.order", name));
        let database = self.database.iter().map(|name| ("database", name));
        let own = &self.name;
        if own.trim().is_empty() || own.contains(char::is_control) {
            let problem = format!(
                "= {own:?}: the log, metrics and SHOW HEADWATER FEEDS call a feed by its name: give it a printable one"
            );
            return Err(FeedError {
                key: "name",
                problem,
            });
        }
        for (key, name) in names.into_iter().chain(follow).chain(order).chain(database) {
            is_name(key, name)?;
        }
        let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        let message = &self.message;
        let fault = |key, problem: String| Err(FeedError { key, problem });
        if let Some(follow) = &self.follow
            && same(&follow.reader, &follow.author)
        {
            let problem = format!("and follow.author are both {:?}", follow.reader);
            return fault("follow.reader", problem);
        }
        let by_id = |name: &String| same(name, &message.id);
        let fits = match message.order.as_slice() {
            [] => true,
            [only] => by_id(only),
            [key, last] => !by_id(key) && by_id(last) && !same(key, &message.author),
            _ => false,
        };
        if !fits {
            let id = &message.id;
            return fault(
                "message.order",
                format!(
                    "is [{id:?}], or another column and the id behind it: [\"created_at\", {id:?}]"
                ),
            );
        }
        Ok(())
    }
}

fn is_name(key: &'static str, name: &str) -> Result<(), FeedError> {
    let printable = name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let fits = (1..=NAME).contains(&name.len()) && printable && !name.ends_with(' ');
    match fits {
        true => Ok(()),
        false => Err(FeedError {
            key,
            problem: format!(
                "= {name:?}: a name is 1 to {NAME} printable ASCII characters and does not end in a space"
            ),
        }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> FeedDefinition {
        toml::from_str(text).unwrap()
    }

    const HOME: &str = r#"
        name = "home"
        [message]
        table = "statuses"
        id = "id"
        author = "profile_id"
        order = ["created_at", "id"]
        [follow]
        table = "followers"
        reader = "profile_id"
        author = "following_id"
    "#;

    #[test]
    fn a_feed_is_read_as_it_is_written() {
        let home = read(HOME);
        assert_eq!(home.validate(), Ok(()));
        assert_eq!(home.key(), Some("created_at"));
        assert_eq!(
            toml::from_str(&toml::to_string(&home).unwrap()),
            Ok(home.clone())
        );
        let feed = home.feed_names("app");
        assert_eq!(feed.message, "statuses");
        assert_eq!(feed.follow.unwrap().author, "following_id");
    }

    #[test]
    fn its_section_is_one_of_the_settings_file() {
        let section = read(HOME).section();
        assert!(
            section.starts_with("[[feed]]\nname = \"home\"\n"),
            "{section}"
        );
        assert!(section.contains("[feed.follow]"), "{section}");
    }

    #[test]
    fn a_section_has_no_lines_of_somebody_elses() {
        for forged in ["a\n2026 ERROR", "a\r\n'", "\n\"\"\"\n[[feed]]"] {
            let mut home = read(HOME);
            home.message.table = forged.to_owned();
            let section = home.section();
            assert_eq!(section.lines().count(), 1, "{section}");
            assert!(section.starts_with('#'), "{section}");
        }
    }

    #[test]
    fn the_id_alone_orders_by_default() {
        let short = read("name = 'a'\n[message]\ntable = 'm'\nauthor = 'u'");
        assert_eq!(short.validate(), Ok(()));
        assert_eq!((short.key(), short.message.id.as_str()), (None, "id"));
        let id = read("name = 'a'\n[message]\ntable = 'm'\nauthor = 'u'\norder = ['ID']");
        assert_eq!((id.validate(), id.key()), (Ok(()), None));
    }

    #[test]
    fn messages_themselves_may_be_followed() {
        let topics = read(&HOME.replace("author = \"profile_id\"", "author = \"ID\""));
        assert_eq!(topics.validate(), Ok(()));
    }

    #[test]
    fn a_feed_serves_what_needs_no_more_than_it_has() {
        let home = read(HOME);
        let mut discovered = home.clone();
        discovered.name = "statuses".into();
        discovered.message.author = "PROFILE_ID".into();
        assert!(home.serves(&discovered, "app"));
        let alone = FeedDefinition {
            follow: None,
            ..discovered.clone()
        };
        assert!(home.serves(&alone, "app") && !alone.serves(&discovered, "app"));
        discovered.message.order.clear();
        assert!(!home.serves(&discovered, "app"));
        let elsewhere = FeedDefinition {
            database: Some("b".into()),
            ..home.clone()
        };
        assert!(!elsewhere.serves(&home, "app") && elsewhere.serves(&home, "b"));
    }

    #[test]
    fn ties_are_ordered_by_the_server_unless_the_section_says_by_the_id() {
        let by_id = |text: &str| read(&text.replacen("name", "ties = \"id\"\n        name", 1));
        assert_eq!(read(HOME).ties, TieOrder::Server);
        assert!(!read(HOME).section().contains("ties"));
        let home = by_id(HOME);
        assert_eq!((home.ties, home.validate()), (TieOrder::Id, Ok(())));
        assert!(home.section().contains("\nties = \"id\"\n"));
        let without_key = by_id(&HOME.replace("\"created_at\", ", ""));
        assert_eq!(without_key.validate(), Ok(()));
        assert!(
            toml::from_str::<FeedDefinition>(&HOME.replacen("name", "ties = 'time'\nname", 1))
                .is_err()
        );
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let mut home = read(HOME);
        home.assign_free_name(|name| name != "a");
        assert_eq!(home.name, "home");
        home.assign_free_name(|name| !["home", "home_2"].contains(&name));
        assert_eq!(home.name, "home_3");
    }

    #[test]
    fn an_invalid_feed_is_reported_by_its_key() {
        for (from, to, expected) in [
            ("\"statuses\"", "\"\"", "message.table"),
            (
                "\"following_id\"",
                "\"profile_id\"",
                "follow.reader and follow.author",
            ),
            (
                "[\"created_at\", \"id\"]",
                "[\"created_at\"]",
                "message.order is",
            ),
            (
                "[\"created_at\", \"id\"]",
                "[\"id\", \"created_at\"]",
                "message.order is",
            ),
            (
                "[\"created_at\", \"id\"]",
                "[\"profile_id\", \"id\"]",
                "message.order is",
            ),
        ] {
            let text = HOME.replacen(from, to, 1);
            let error = read(&text).validate().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(toml::from_str::<FeedDefinition>(&HOME.replace("reader", "user")).is_err());
    }
}
