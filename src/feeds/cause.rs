//! Why statements are not answered from memory: one source for the log, `SHOW HEADWATER`, the admin port and `check`.
//!
//! Of several causes the nearest is told, which has to be mended first: the server's log, what the service account may see, the feed's
//! check; then the session, and the statement itself, which [`Why`] explains.

use super::database::Served;
use crate::binlog::Aside;
use crate::feed::check::{Obstacle, right_to_see};
use crate::session::narrowing::Why;
use crate::session::reason::Reason;
use crate::session::why::plain;
use crate::sql::quoted;

/// A cause, with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The name that counters have for it.
    pub reason: &'static str,
    /// What it is here and now.
    pub text: String,
    /// What mends it: statements, where there are such.
    pub cure: String,
}

/// Who is to be given a right: only `headwater check` asks the server for the host.
pub(super) fn grantee(user: &str) -> String {
    format!("{}@`HOST`", quoted(user))
}

impl Cause {
    /// What its name means, in general.
    #[must_use]
    pub fn of(why: Why) -> Cause {
        let (reason, means, cure) = why.explained();
        Cause {
            reason,
            text: plain(means),
            cure: plain(cure),
        }
    }

    /// The same of what keeps calls from being answered.
    #[must_use]
    pub fn of_reason(reason: Reason) -> Cause {
        let (reason, means, cure) = reason.explained();
        Cause {
            reason,
            text: plain(means),
            cure: plain(cure),
        }
    }

    /// The same, as it is here and now.
    #[must_use]
    pub fn with(self, text: String) -> Cause {
        Cause { text, ..self }
    }

    /// There is none, by the settings.
    #[must_use]
    pub fn no_memory() -> Cause {
        Cause {
            reason: "no_memory",
            text: "there is no memory".to_owned(),
            cure: "set service.user, and index.memory_bytes above 0".to_owned(),
        }
    }

    /// The server's log is not followed.
    #[must_use]
    pub fn of_log(aside: Aside) -> Cause {
        let general = Cause::of(Why::Aside);
        Cause {
            text: aside.text,
            cure: aside.cure.unwrap_or(general.cure),
            ..general
        }
    }

    /// The service account cannot look at tables.
    pub(super) fn of_account(error: &str) -> Cause {
        Cause {
            text: format!("the tables of feeds cannot be looked at: {error}"),
            ..Cause::of(Why::Unchecked)
        }
    }

    /// These tables cannot be seen.
    pub(super) fn unseen(database: &str, tables: &[String], user: &str) -> Cause {
        let named: Vec<String> = tables.iter().map(|table| quoted(table)).collect();
        let grants = tables.iter();
        let grants = grants.map(|table| right_to_see(database, table, &grantee(user)));
        Cause {
            text: format!(
                "no such table (correct its name), or the service account may not see it: {}",
                named.join(", ")
            ),
            cure: grants.collect::<Vec<_>>().join("; "),
            ..Cause::of(Why::Unseen)
        }
    }

    /// What the check has found in a database; `None`: the feed is served.
    pub(super) fn of_check(served: &Served, database: &str, user: &str) -> Option<Cause> {
        let general = Cause::of(Why::Refused);
        match served {
            Served::Elsewhere => None,
            Served::Yes {
                place: Some(place), ..
            } => place.bar().map(|bar| Cause {
                text: bar.text,
                cure: bar.cure.unwrap_or_else(|| general.cure.clone()),
                ..general
            }),
            Served::Yes { place: None, .. } => Some(Cause {
                text: "as many timelines are in memory as can be".to_owned(),
                cure: "a Headwater of its own for some of the databases (`database` in `[[feed]]`)"
                    .to_owned(),
                ..general
            }),
            Served::No(found) => {
                let cures = found
                    .iter()
                    .filter_map(|own| own.cure(database, &grantee(user)));
                let cures: Vec<String> = cures.collect();
                Some(Cause {
                    text: in_one_line(found),
                    cure: match cures.is_empty() {
                        true => general.cure,
                        false => cures.join("; "),
                    },
                    ..general
                })
            }
        }
    }
}

/// All that is in the way.
pub(super) fn in_one_line(found: &[Obstacle]) -> String {
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    found.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cure_is_the_statement_that_mends_it_where_there_is_one() {
        let aside = |cure: Option<&str>| Aside {
            reason: "setting",
            text: "log_bin is off".to_owned(),
            cure: cure.map(str::to_owned),
        };
        let log = Cause::of_log(aside(Some("SET GLOBAL x = 1")));
        assert_eq!(log.reason, "log_not_followed");
        assert_eq!(log.text, "log_bin is off");
        assert_eq!(log.cure, "SET GLOBAL x = 1");
        assert!(Cause::of_log(aside(None)).cure.contains("headwater check"));
        let unseen = Cause::unseen("app", &["a`b".to_owned()], "me");
        assert_eq!(unseen.cure, "GRANT SELECT ON `app`.`a``b` TO `me`@`HOST`");
        let no_index = Served::No(vec![Obstacle::NoIndex {
            table: "m".to_owned(),
            columns: vec!["author".to_owned()],
        }]);
        let check = Cause::of_check(&no_index, "app", "me");
        let check = check.map(|it| (it.reason, it.cure));
        let mends = "ALTER TABLE `m` ADD INDEX (`author`)".to_owned();
        assert_eq!(check, Some(("feed_refused", mends)));
        let kind = Served::No(vec![Obstacle::Kind {
            table: "m".to_owned(),
            kind: "VIEW".to_owned(),
        }]);
        let cure = Cause::of_check(&kind, "app", "me").map(|it| it.cure);
        assert!(cure.is_some_and(|cure| !cure.is_empty() && !cure.contains("GRANT")));
    }
}
