//! Why statements are not served from memory: one source for the log, `SHOW HEADWATER`, the admin port and `check`.
//!
//! Of several causes the nearest is reported, which must be fixed first: the server's log, the service account's visibility, the feed's
//! check; then the session, and the statement itself, which [`FeedRelayReason`] explains.

use super::feed_database::FeedAvailability;
use crate::binlog::MemorySuspension;
use headwater_feed::table_check::{FeedObstacle, select_grant};
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_session::feed_decision::FeedRelayReason;
use headwater_session::plain_text::plain_text;
use headwater_sql::quoted;

/// A cause, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayCause {
    /// The counter's name.
    pub reason: &'static str,
    /// The cause in this case.
    pub text: String,
    /// The remedy: statements, if there are any.
    pub cure: String,
}

/// The account to grant to: only `headwater check` queries its host.
pub(super) fn grantee(user: &str) -> String {
    format!("{}@`HOST`", quoted(user))
}

impl RelayCause {
    /// The general explanation of a reason.
    #[must_use]
    pub fn of_explanation(why: FeedRelayReason) -> RelayCause {
        let (reason, means, cure) = why.explanation();
        RelayCause {
            reason,
            text: plain_text(means),
            cure: plain_text(cure),
        }
    }

    /// The same for a call's reason.
    #[must_use]
    pub fn of_reason(reason: CallRelayReason) -> RelayCause {
        let (reason, means, cure) = reason.explanation();
        RelayCause {
            reason,
            text: plain_text(means),
            cure: plain_text(cure),
        }
    }

    /// The same cause with a specific text.
    #[must_use]
    pub fn with_text(self, text: String) -> RelayCause {
        RelayCause { text, ..self }
    }

    /// The settings provide no memory.
    #[must_use]
    pub fn no_memory() -> RelayCause {
        RelayCause {
            reason: "no_memory",
            text: "there is no memory".to_owned(),
            cure: "set service.user, and index.memory_bytes above 0".to_owned(),
        }
    }

    /// The server's log is not followed.
    #[must_use]
    pub fn log_suspended(suspension: MemorySuspension) -> RelayCause {
        let general = RelayCause::of_explanation(FeedRelayReason::LogSuspended);
        RelayCause {
            text: suspension.text,
            cure: suspension.cure.unwrap_or(general.cure),
            ..general
        }
    }

    /// The service account cannot read the tables.
    pub(super) fn of_account(error: &str) -> RelayCause {
        RelayCause {
            text: format!("the tables of feeds cannot be looked at: {error}"),
            ..RelayCause::of_explanation(FeedRelayReason::Unchecked)
        }
    }

    /// These tables are not visible.
    pub(super) fn unseen_tables(database: &str, tables: &[String], user: &str) -> RelayCause {
        let named: Vec<String> = tables.iter().map(|table| quoted(table)).collect();
        let grants = tables.iter();
        let grants = grants.map(|table| select_grant(database, table, &grantee(user)));
        RelayCause {
            text: format!(
                "no such table (correct its name), or the service account may not see it: {}",
                named.join(", ")
            ),
            cure: grants.collect::<Vec<_>>().join("; "),
            ..RelayCause::of_explanation(FeedRelayReason::Unseen)
        }
    }

    /// The findings of a feed's check in a database; `None`: the feed is served.
    pub(super) fn of_check(
        served: &FeedAvailability,
        database: &str,
        user: &str,
    ) -> Option<RelayCause> {
        let general = RelayCause::of_explanation(FeedRelayReason::Refused);
        match served {
            FeedAvailability::Elsewhere => None,
            FeedAvailability::Available {
                timeline: Some(place),
                ..
            } => place.block_reason().map(|block| RelayCause {
                text: block.text,
                cure: block.cure.unwrap_or_else(|| general.cure.clone()),
                ..general
            }),
            FeedAvailability::Available { timeline: None, .. } => Some(RelayCause {
                text: "as many timelines are in memory as can be".to_owned(),
                cure: "a Headwater of its own for some of the databases (`database` in `[[feed]]`)"
                    .to_owned(),
                ..general
            }),
            FeedAvailability::Obstructed(obstacles) => {
                let cures = obstacles
                    .iter()
                    .filter_map(|obstacle| obstacle.remedy(database, &grantee(user)));
                let cures: Vec<String> = cures.collect();
                Some(RelayCause {
                    text: in_one_line(obstacles),
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

pub(super) fn in_one_line(obstacles: &[FeedObstacle]) -> String {
    let texts: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cure_is_the_statement_that_mends_it_where_there_is_one() {
        let aside = |cure: Option<&str>| MemorySuspension {
            reason: "setting",
            text: "log_bin is off".to_owned(),
            cure: cure.map(str::to_owned),
        };
        let log = RelayCause::log_suspended(aside(Some("SET GLOBAL x = 1")));
        assert_eq!(log.reason, "log_not_followed");
        assert_eq!(log.text, "log_bin is off");
        assert_eq!(log.cure, "SET GLOBAL x = 1");
        assert!(
            RelayCause::log_suspended(aside(None))
                .cure
                .contains("headwater check")
        );
        let unseen = RelayCause::unseen_tables("app", &["a`b".to_owned()], "me");
        assert_eq!(unseen.cure, "GRANT SELECT ON `app`.`a``b` TO `me`@`HOST`");
        let no_index = FeedAvailability::Obstructed(vec![FeedObstacle::NoIndex {
            table: "m".to_owned(),
            columns: vec!["author".to_owned()],
        }]);
        let check = RelayCause::of_check(&no_index, "app", "me");
        let check = check.map(|it| (it.reason, it.cure));
        let mends = "ALTER TABLE `m` ADD INDEX (`author`)".to_owned();
        assert_eq!(check, Some(("feed_refused", mends)));
        let kind = FeedAvailability::Obstructed(vec![FeedObstacle::Kind {
            table: "m".to_owned(),
            kind: "VIEW".to_owned(),
        }]);
        let cure = RelayCause::of_check(&kind, "app", "me").map(|it| it.cure);
        assert!(cure.is_some_and(|cure| !cure.is_empty() && !cure.contains("GRANT")));
    }
}
