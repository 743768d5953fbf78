//! Repeats measurements that articles reported: the article's figures beside today's.

use std::fmt::Write as _;

use clap::ValueEnum;

use super::figures::{EngineDataset, StrategiesReport, StrategyFigures};
use crate::bench::table::thousands;
use crate::demo::dataset::DatasetSize;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArticleRun {
    /// Push and pull with 10,000 users and 1,000,000 messages (2008, MySQL 5.1): room, messages and timelines a second
    Classic,
    /// Fan-out into Redis and pull by SQL (a Rails app, PostgreSQL then): time for a page
    Rails,
}

impl ArticleRun {
    /// The size of the article's data set.
    #[must_use]
    pub fn size(self) -> DatasetSize {
        match self {
            ArticleRun::Classic => DatasetSize::CLASSIC,
            // The article gives "10 and some" follows and a hundred pages, but neither users nor messages.
            ArticleRun::Rails => DatasetSize {
                users: 1_000,
                messages: 100_000,
                mean_follows: 15.0,
                ..DatasetSize::CLASSIC
            },
        }
    }

    /// The strategies that the article compared, and Headwater's.
    #[must_use]
    pub fn strategies(self) -> &'static [&'static str] {
        match self {
            ArticleRun::Classic => &[
                "procedure",
                "push-mailbox",
                "headwater-call",
                "headwater-kept",
            ],
            ArticleRun::Rails => &["sql-join", "redis-push", "headwater-kept"],
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The article's source and subject.
    fn article_text(self) -> &'static str {
        match self {
            ArticleRun::Classic => {
                "Push and pull of timelines, measured in 2008 with MySQL 5.1: 10,000 users, 429,000 follows, 1,000,000 messages. Pull is the \
                 procedure `fetch_timeline_ids`, push a row in a table for each follower."
            }
            ArticleRun::Rails => {
                "The timeline of a Rails app, whose page took 30.6 ms by a join in PostgreSQL, and 11.84 ms from Redis, where messages were \
                 pushed. It says that a reader followed ten and some, and no more of the data. Now: the mean time of a page on all \
                 connections, by push from sorted sets in Redis, by pull by a join of this server."
            }
        }
    }

    /// The strategy of the Headwater column.
    fn headwater(self) -> &'static str {
        match self {
            ArticleRun::Classic => "CALL and SELECT through Headwater",
            ArticleRun::Rails => "join through Headwater",
        }
    }

    /// The article's figures and today's, for the terminal.
    #[must_use]
    pub fn comparison(self, figures: &StrategiesReport) -> String {
        let mut text = String::new();
        for engine in &figures.engines {
            let _ = writeln!(text, "\n{} {}\n", engine.engine, engine.version);
            for line in self.lines(figures, engine) {
                let _ = writeln!(text, "{}", line.text());
            }
        }
        text
    }

    /// The same as a Markdown page.
    #[must_use]
    pub fn report(self, figures: &StrategiesReport) -> String {
        let name = self.name();
        let mut text = format!(
            "# Then and now: {}\n\n{}\n\nWritten by `headwater bench strategies --run {} --report FOLDER`; every figure is in `{}.json`. {} \
             connections; {} cores, shared by servers, Headwater and clients. A ratio names the one whose figure is greater, and how many times the other it is.\n",
            name,
            self.article_text(),
            name,
            name,
            figures.connections,
            figures.cores,
        );
        for engine in &figures.engines {
            let _ = writeln!(
                text,
                "\n## {}\n\n\
                 | | push then | pull then | ratio then | push now | pull now | ratio now | {} |\n|---|--:|--:|--:|--:|--:|--:|--:|",
                engine.description(),
                self.headwater()
            );
            for line in self.lines(figures, engine) {
                let _ = writeln!(text, "{}", line.markdown_row());
            }
        }
        text
    }

    fn lines(self, figures: &StrategiesReport, engine: &EngineDataset) -> Vec<ArticleLine> {
        let of = |name: &str| {
            let mut all = figures.strategies.iter();
            all.find(|it| it.engine == engine.engine && it.name == name)
        };
        let lines = match self {
            ArticleRun::Classic => classic(of),
            ArticleRun::Rails => rails(of, figures.connections),
        };
        lines.unwrap_or_default()
    }
}

/// A line of the comparison: push and pull in the article and their ratio; the same today, and Headwater's.
struct ArticleLine {
    what: &'static str,
    then: [&'static str; 3],
    push: f64,
    pull: f64,
    headwater: f64,
    unit: &'static str,
}

impl ArticleLine {
    fn measured_texts(&self) -> [String; 4] {
        let (greater, ratio) = match self.push > self.pull {
            true => ("push", self.push / self.pull),
            false => ("pull", self.pull / self.push),
        };
        let with_unit = |number: f64| format!("{}{}", short_number(number), self.unit);
        [
            with_unit(self.push),
            with_unit(self.pull),
            format!("{greater} {ratio:.1}"),
            with_unit(self.headwater),
        ]
    }

    fn text(&self) -> String {
        let ([push, pull, then], [push_now, pull_now, now, headwater]) =
            (self.then, self.measured_texts());
        format!(
            "{:<24} then {push} push, {pull} pull ({then}x); now {push_now} push, {pull_now} pull ({now}x), {headwater} Headwater",
            self.what,
        )
    }

    fn markdown_row(&self) -> String {
        format!(
            "| {} | {} | {} |",
            self.what,
            self.then.join(" | "),
            self.measured_texts().join(" | ")
        )
    }
}

fn short_number(number: f64) -> String {
    match number < 100.0 {
        true => format!("{number:.2}"),
        false => thousands(number),
    }
}

fn classic<'a>(of: impl Fn(&str) -> Option<&'a StrategyFigures>) -> Option<Vec<ArticleLine>> {
    let (push, pull, headwater) = (of("push-mailbox")?, of("procedure")?, of("headwater-call")?);
    let line = |what, then, figure: fn(&StrategyFigures) -> f64, unit| ArticleLine {
        what,
        then,
        push: figure(push),
        pull: figure(pull),
        headwater: figure(headwater),
        unit,
    };
    let megabytes = |it: &StrategyFigures| it.bytes as f64 / 1e6;
    Some(vec![
        line("room", ["2.0 GB", "130 MB", "push 15.4"], megabytes, " MB"),
        line(
            "messages a second",
            ["560", "6,700", "pull 12.0"],
            |it| it.messages_per_s,
            "",
        ),
        line(
            "timelines a second",
            ["1,300", "120", "push 10.8"],
            |it| it.pages_per_s,
            "",
        ),
    ])
}

fn rails<'a>(
    of: impl Fn(&str) -> Option<&'a StrategyFigures>,
    connections: usize,
) -> Option<Vec<ArticleLine>> {
    let mean = |it: &StrategyFigures| connections as f64 * 1_000.0 / it.pages_per_s;
    Some(vec![ArticleLine {
        what: "time for a page",
        then: ["11.84 ms", "30.6 ms", "pull 2.6"],
        push: mean(of("redis-push")?),
        pull: mean(of("sql-join")?),
        headwater: mean(of("headwater-kept")?),
        unit: " ms",
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn article_figures_are_shown_beside_todays() {
        let of = |name, pages_per_s, messages_per_s, bytes| StrategyFigures {
            name,
            pages_per_s,
            messages_per_s,
            bytes,
            ..StrategyFigures::empty()
        };
        let figures = StrategiesReport {
            headwater: "",
            cores: 2,
            connections: 1,
            seconds: 1.0,
            engines: vec![EngineDataset::empty()],
            strategies: vec![
                of("procedure", 500.0, 6_000.0, 200_000_000),
                of("push-mailbox", 5_000.0, 1_000.0, 2_000_000_000),
                of("headwater-call", 10_000.0, 5_500.0, 250_000_000),
            ],
        };
        let text = ArticleRun::Classic.comparison(&figures);
        assert!(
            text.contains("then 560 push, 6,700 pull (pull 12.0x); now 1,000 push, 6,000 pull (pull 6.0x), 5,500 Headwater"),
            "{text}"
        );
        assert!(
            text.contains("now 2,000 MB push, 200 MB pull (push 10.0x), 250 MB Headwater"),
            "{text}"
        );
        let page = ArticleRun::Classic.report(&figures);
        let row = "| room | 2.0 GB | 130 MB | push 15.4 | 2,000 MB | 200 MB | push 10.0 | 250 MB |";
        assert!(page.contains(row), "{page}");
    }
}
