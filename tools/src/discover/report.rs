//! The report: plain text, with settings sections to paste.

use std::path::Path;
use std::time::Duration;

use super::classification::DiscoverySummary;
use super::feed_groups::DiscoveredFeed;
use crate::check::ProposedFeedCheck;
use headwater_feed::FeedDefinition;
use headwater_feed::normalization::shortened;
use headwater_feed::tally::StatementStats;
use headwater_server::config::ServeSettings;
use headwater_server::report::ReportWriter;

/// The most statements listed of one kind.
const MOST: usize = 20;

#[derive(Debug)]
pub(super) struct DiscoverReport<'a> {
    text: &'a mut String,
}

impl<'a> DiscoverReport<'a> {
    pub(super) fn new(text: &'a mut String) -> Self {
        DiscoverReport { text }
    }

    pub(super) fn write(
        &mut self,
        settings: &ServeSettings,
        server: &ProposedFeedCheck,
        about: &[String],
        summary: &DiscoverySummary,
    ) {
        self.server(&server.named, settings.upstream.first());
        self.part("Statements");
        for line in about {
            self.item(line);
        }
        if summary.databases_left_out > 0 {
            let left_out = summary.databases_left_out;
            self.item(&format!(
                "those of {left_out} more databases were not looked at (limits.databases)"
            ));
        }
        let every = server.common_obstacles();
        if !every.is_empty() {
            self.part("In the way of every feed");
            for line in every {
                self.item(&line);
            }
        }
        for feed in &summary.feeds {
            self.feed(feed);
        }
        self.refused(&summary.refused);
        self.summary(summary);
    }

    /// What the app asks for one page is in this file, or there is no such page.
    pub(super) fn request(&mut self, path: &Path, written: bool) {
        let path = path.display();
        self.part(&match written {
            true => format!(
                "A request of the app is in {path}. docs/performance.md says how to play it, and to see what is left to wait for."
            ),
            false => format!(
                "{path} was not written: no feed of a table of follows went by, so that nobody knows who reads"
            ),
        });
    }

    fn summary(&mut self, judged: &DiscoverySummary) {
        let (feeds, refused) = (&judged.feeds, judged.refused.len());
        if feeds.is_empty() && refused == 0 {
            return self.part("No statement was found that looks like one of a feed.");
        }
        let count = |is: fn(&DiscoveredFeed) -> bool| feeds.iter().filter(|feed| is(feed)).count();
        let already = count(|feed| feed.existing_name.is_some());
        let ready = count(|feed| feed.existing_name.is_none() && feed.obstacles.is_empty());
        self.part(&format!(
            "Feeds found: {}. Ready to be pasted: {ready}; with something in the way: {}; in the settings already: {already}. \
             Statements that look like ones of feeds and would be relayed: {refused}. Nothing was changed.",
            feeds.len(),
            feeds.len() - ready - already
        ));
    }

    fn feed(&mut self, feed: &DiscoveredFeed) {
        let databases: Vec<&str> = feed.databases.iter().map(String::as_str).collect();
        let databases = match databases.as_slice() {
            [one] => format!("database {one}"),
            several => format!("databases {}", several.join(", ")),
        };
        let name = &feed.definition.name;
        match (&feed.existing_name, feed.obstacles.is_empty()) {
            (Some(own), _) => self.part(&format!("Feed {own} of the settings, {databases}")),
            (None, true) => self.part(&format!("Feed {name}, {databases}: paste this into the settings file")),
            (None, false) => self.part(&format!(
                "Feed {name}, {databases}: mend what stands in the way, then paste this into the settings file"
            )),
        }
        if feed.existing_name.is_none() {
            self.section(&feed.definition);
        }
        if !feed.obstacles.is_empty() {
            self.part("    What stands in the way");
            for line in &feed.obstacles {
                self.item(&format!("    {line}"));
            }
        }
        self.part("    Its statements");
        for (shape, stats) in feed.statements.iter().take(MOST) {
            let own = stats.database.as_ref().filter(|_| feed.databases.len() > 1);
            let own = own.map(|name| format!(" (database {name})"));
            self.statement(&format!("{shape}{}", own.unwrap_or_default()), stats);
        }
        self.more(feed.statements.len());
    }

    fn section(&mut self, definition: &FeedDefinition) {
        let section = definition.section();
        for line in section.lines().filter(|line| !line.is_empty()) {
            self.item(line);
        }
    }

    fn statement(&mut self, what: &str, stats: &StatementStats) {
        self.item(&format!("    {what}"));
        self.item(&format!("        {}", shortened(&stats.normalized_text)));
        self.item(&format!("        {}", cost(stats)));
    }

    fn refused(&mut self, refused: &[(StatementStats, String)]) {
        if refused.is_empty() {
            return;
        }
        self.part("Statements that look like ones of feeds and would be relayed as they are");
        for (stats, why) in refused.iter().take(MOST) {
            self.item(&shortened(&stats.normalized_text));
            let database = stats
                .database
                .as_ref()
                .map(|name| format!("database {name}, "));
            self.item(&format!(
                "    {}{}",
                database.unwrap_or_default(),
                cost(stats)
            ));
            self.item(&format!("    why: {why}"));
        }
        self.more(refused.len());
    }

    fn more(&mut self, all: usize) {
        if let Some(more @ 1..) = all.checked_sub(MOST) {
            self.item(&format!("and {more} more that took less time"));
        }
    }
}

impl ReportWriter for DiscoverReport<'_> {
    fn text(&mut self) -> &mut String {
        self.text
    }
}

/// The number of executions, their time, and the rows read.
fn cost(stats: &StatementStats) -> String {
    let times = match stats.times {
        1 => "seen once".to_owned(),
        times => format!("seen {times} times"),
    };
    let prepared = match stats.prepared {
        true => ", as a prepared statement",
        false => "",
    };
    let read = match (stats.rows_read, stats.rows_sent) {
        (None, _) => "rows read: not known".to_owned(),
        (Some(_), 0) => "no rows sent".to_owned(),
        (Some(read), sent) => format!("{} rows read for each row sent", tenths(read, sent)),
    };
    format!(
        "{times}{prepared}, {} on average, {} in all; {read}",
        time(stats.mean()),
        time(stats.total)
    )
}

/// A quotient with one decimal.
fn tenths(a: u64, b: u64) -> String {
    let tenths = u128::from(a) * 10 / u128::from(b.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn time(time: Duration) -> String {
    let us = time.as_micros();
    match us {
        0..1_000_000 => format!("{}.{:02} ms", us / 1_000, us % 1_000 / 10),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_told_in_words() {
        let seen = StatementStats {
            times: 3,
            total: Duration::from_micros(4_500_000),
            rows_read: Some(955),
            rows_sent: 30,
            ..StatementStats::default()
        };
        assert_eq!(
            cost(&seen),
            "seen 3 times, 1.5 s on average, 4.5 s in all; 31.8 rows read for each row sent"
        );
        let heard = StatementStats {
            times: 1,
            total: Duration::from_micros(1_234),
            ..StatementStats::default()
        };
        assert_eq!(
            cost(&heard),
            "seen once, 1.23 ms on average, 1.23 ms in all; rows read: not known"
        );
    }
}
