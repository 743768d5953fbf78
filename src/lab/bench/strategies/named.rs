//! Measurements that articles have reported, made again: what was told then, beside what is measured now.

use std::fmt::Write as _;

use clap::ValueEnum;

use super::figures::{Figures, Measured};
use crate::lab::bench::table::thousands;
use crate::lab::demo::dataset::Size;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Run {
    /// Push and pull with 10,000 users and 1,000,000 messages (2008, MySQL 5.1): room, messages and timelines a second
    Classic,
    /// Fan-out into Redis and pull by SQL (a Rails app, PostgreSQL then): time for a page
    Rails,
}

impl Run {
    /// The data: what the article says of it.
    #[must_use]
    pub fn size(self) -> Size {
        match self {
            Run::Classic => Size::CLASSIC,
            // It says "10 and some" follows, and a hundred pages; neither users nor messages.
            Run::Rails => Size {
                users: 1_000,
                messages: 100_000,
                mean_follows: 15.0,
                ..Size::CLASSIC
            },
        }
    }

    /// The strategies that it compared, and Headwater's.
    #[must_use]
    pub fn only(self) -> &'static [&'static str] {
        match self {
            Run::Classic => &[
                "procedure",
                "push-mailbox",
                "headwater-call",
                "headwater-kept",
            ],
            Run::Rails => &["sql-join", "redis-push", "headwater-kept"],
        }
    }

    /// What was told then, and what is measured now.
    #[must_use]
    pub fn beside(self, figures: &Figures) -> String {
        let mut text = String::new();
        for engine in &figures.engines {
            let of = |name: &str| {
                let mut all = figures.strategies.iter();
                all.find(|it| it.engine == engine.engine && it.name == name)
            };
            let _ = writeln!(text, "\n{} {}\n", engine.engine, engine.version);
            match self {
                Run::Classic => classic(of, &mut text),
                Run::Rails => rails(of, figures.connections, &mut text),
            }
        }
        text
    }
}

/// A line: push and pull then, and how many times the greater one is the other; the same now, and Headwater's.
struct Line<'a> {
    what: &'a str,
    then: [&'a str; 3],
    push: f64,
    pull: f64,
    headwater: f64,
    unit: &'a str,
}

impl Line<'_> {
    fn write(&self, text: &mut String) {
        let ratio = match self.push > self.pull {
            true => self.push / self.pull,
            false => self.pull / self.push,
        };
        let told = |number: f64| format!("{}{}", short(number), self.unit);
        let [push, pull, then] = self.then;
        let _ = writeln!(
            text,
            "{:<24} then {push} push, {pull} pull ({then}x); now {} push, {} pull ({ratio:.1}x), {} Headwater",
            self.what,
            told(self.push),
            told(self.pull),
            told(self.headwater),
        );
    }
}

fn short(number: f64) -> String {
    match number < 100.0 {
        true => format!("{number:.2}"),
        false => thousands(number),
    }
}

fn classic<'a>(of: impl Fn(&str) -> Option<&'a Measured>, text: &mut String) {
    let (Some(push), Some(pull), Some(headwater)) =
        (of("push-mailbox"), of("procedure"), of("headwater-call"))
    else {
        return;
    };
    let megabytes = |it: &Measured| it.bytes as f64 / 1e6;
    let lines = [
        Line {
            what: "room",
            then: ["2.0 GB", "130 MB", "15.4"],
            push: megabytes(push),
            pull: megabytes(pull),
            headwater: megabytes(headwater),
            unit: " MB",
        },
        Line {
            what: "messages a second",
            then: ["560", "6,700", "12.0"],
            push: push.messages_per_s,
            pull: pull.messages_per_s,
            headwater: headwater.messages_per_s,
            unit: "",
        },
        Line {
            what: "timelines a second",
            then: ["1,300", "120", "10.8"],
            push: push.pages_per_s,
            pull: pull.pages_per_s,
            headwater: headwater.pages_per_s,
            unit: "",
        },
    ];
    for line in lines {
        line.write(text);
    }
}

fn rails<'a>(of: impl Fn(&str) -> Option<&'a Measured>, connections: usize, text: &mut String) {
    let (Some(push), Some(pull), Some(headwater)) =
        (of("redis-push"), of("sql-join"), of("headwater-kept"))
    else {
        return;
    };
    let mean = |it: &Measured| connections as f64 * 1_000.0 / it.pages_per_s;
    Line {
        what: "time for a page",
        then: ["11.84 ms", "30.6 ms", "2.6"],
        push: mean(push),
        pull: mean(pull),
        headwater: mean(headwater),
        unit: " ms",
    }
    .write(text);
}

#[cfg(test)]
mod tests {
    use super::super::figures::Engine;
    use super::*;

    #[test]
    fn what_was_told_then_stands_beside_what_is_measured_now() {
        let of = |name, pages_per_s, messages_per_s, bytes| Measured {
            name,
            pages_per_s,
            messages_per_s,
            bytes,
            ..Measured::empty()
        };
        let figures = Figures {
            headwater: "",
            cores: 2,
            connections: 1,
            seconds: 1.0,
            engines: vec![Engine::empty()],
            strategies: vec![
                of("procedure", 500.0, 6_000.0, 200_000_000),
                of("push-mailbox", 5_000.0, 1_000.0, 2_000_000_000),
                of("headwater-call", 10_000.0, 5_500.0, 250_000_000),
            ],
        };
        let text = Run::Classic.beside(&figures);
        assert!(
            text.contains("then 560 push, 6,700 pull (12.0x); now 1,000 push, 6,000 pull (6.0x), 5,500 Headwater"),
            "{text}"
        );
        assert!(
            text.contains("now 2,000 MB push, 200 MB pull (10.0x), 250 MB Headwater"),
            "{text}"
        );
    }
}
