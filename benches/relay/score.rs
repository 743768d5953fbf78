//! What is measured of whom, what is aimed at, and whether it was reached.

use clap::ValueEnum;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contender {
    /// The server itself, for reference
    Direct,
    /// HAProxy in TCP mode
    Haproxy,
    /// MySQL Router
    Router,
    /// Headwater
    Headwater,
}

impl Contender {
    pub(crate) const ALL: [Contender; 4] = [
        Contender::Direct,
        Contender::Haproxy,
        Contender::Router,
        Contender::Headwater,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Contender::Direct => "direct",
            Contender::Haproxy => "HAProxy",
            Contender::Router => "Router",
            Contender::Headwater => "Headwater",
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Figure {
    /// DO 1 a second on 8 connections
    #[value(name = "points-8")]
    Points8,
    /// DO 1 a second on 64 connections
    #[value(name = "points-64")]
    Points64,
    /// 20 rows by primary key, on 8 connections
    #[value(name = "rows-20")]
    Rows20,
    /// A message written, on 8 connections
    Inserts,
    /// One result of 1 GiB
    Gigabyte,
    /// p99 of DO 1 at half of HAProxy's greatest rate
    P99,
    /// Processor time for each statement
    Cpu,
    /// Connect, log in, quit
    Logins,
    /// Memory of idle sessions
    Idle,
}

/// What is aimed at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    /// Headwater's figure by HAProxy's is this or more.
    RatioAtLeast(f64),
    /// Headwater's figure by HAProxy's is this or less.
    RatioAtMost(f64),
    /// Headwater's figure is this or less.
    AtMost(f64),
}

impl Figure {
    pub(crate) const ALL: [Figure; 9] = [
        Figure::Points8,
        Figure::Points64,
        Figure::Rows20,
        Figure::Inserts,
        Figure::Gigabyte,
        Figure::P99,
        Figure::Cpu,
        Figure::Logins,
        Figure::Idle,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Figure::Points8 => "DO 1 a second, 8 connections",
            Figure::Points64 => "DO 1 a second, 64 connections",
            Figure::Rows20 => "20 rows by key a second, 8 connections",
            Figure::Inserts => "INSERT of a message a second, 8 connections",
            Figure::Gigabyte => "one 1 GiB result, MB/s",
            Figure::P99 => "p99 at half of HAProxy's rate, us",
            Figure::Cpu => "CPU seconds a million DO 1",
            Figure::Logins => "connect, login, quit a second",
            Figure::Idle => "idle session, resident KiB",
        }
    }

    pub(crate) fn aim(self) -> Aim {
        match self {
            Figure::P99 | Figure::Cpu => Aim::RatioAtMost(1.0),
            Figure::Idle => Aim::AtMost(20.0),
            _ => Aim::RatioAtLeast(1.0),
        }
    }

    /// Digits behind the point.
    pub(crate) fn decimals(self) -> usize {
        match self {
            Figure::Cpu | Figure::Idle => 1,
            _ => 0,
        }
    }
}

/// One figure of everybody, a value for each round.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    pub(crate) figure: Figure,
    values: Vec<(Contender, Vec<f64>)>,
}

/// The median of some values, and between which two they all lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Score {
    pub(crate) fn new(figure: Figure) -> Score {
        Score {
            figure,
            values: Vec::new(),
        }
    }

    /// Adds the value of the next round.
    pub(crate) fn add(&mut self, contender: Contender, value: f64) {
        match self.values.iter_mut().find(|(of, _)| *of == contender) {
            Some((_, values)) => values.push(value),
            None => self.values.push((contender, vec![value])),
        }
    }

    /// A contender's figure.
    pub(crate) fn of(&self, contender: Contender) -> Option<f64> {
        Some(spread(self.rounds(contender).to_vec())?.median)
    }

    /// Headwater's figure by HAProxy's, each round's apart: what disturbs a round disturbs both.
    pub(crate) fn ratio(&self) -> Option<Spread> {
        let own = self.rounds(Contender::Headwater).iter();
        let by = self.rounds(Contender::Haproxy).iter();
        spread(own.zip(by).map(|(own, by)| own / by).collect())
    }

    /// Whether what is aimed at was reached; `None` where it was not measured.
    pub(crate) fn met(&self) -> Option<bool> {
        Some(match self.figure.aim() {
            Aim::RatioAtLeast(least) => self.ratio()?.median >= least,
            Aim::RatioAtMost(most) => self.ratio()?.median <= most,
            Aim::AtMost(most) => self.of(Contender::Headwater)? <= most,
        })
    }

    fn rounds(&self, contender: Contender) -> &[f64] {
        let of = self.values.iter().find(|(of, _)| *of == contender);
        of.map_or(&[], |(_, values)| values)
    }
}

/// `None` of none.
pub(crate) fn spread(mut values: Vec<f64>) -> Option<Spread> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let (&least, &most) = (values.first()?, values.last()?);
    let middle = |place: usize| values.get(place).copied().unwrap_or(least);
    let median = (middle((values.len() - 1) / 2) + middle(values.len() / 2)) / 2.0;
    Some(Spread {
        median,
        least,
        most,
    })
}

/// In which order so many take their turns: everybody is as often before as behind everybody else.
pub(crate) fn order(turn: usize, contenders: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..contenders).collect();
    places.rotate_left(turn / 2 % contenders.max(1));
    if turn % 2 == 1 {
        places.reverse();
    }
    places
}
