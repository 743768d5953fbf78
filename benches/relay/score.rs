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
pub(crate) enum RelayFigure {
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
pub(crate) enum FigureAim {
    /// Headwater's figure by HAProxy's is this or more.
    RatioAtLeast(f64),
    /// Headwater's figure by HAProxy's is this or less.
    RatioAtMost(f64),
    /// Headwater's figure is this or less.
    AtMost(f64),
}

impl RelayFigure {
    pub(crate) const ALL: [RelayFigure; 9] = [
        RelayFigure::Points8,
        RelayFigure::Points64,
        RelayFigure::Rows20,
        RelayFigure::Inserts,
        RelayFigure::Gigabyte,
        RelayFigure::P99,
        RelayFigure::Cpu,
        RelayFigure::Logins,
        RelayFigure::Idle,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            RelayFigure::Points8 => "DO 1 a second, 8 connections",
            RelayFigure::Points64 => "DO 1 a second, 64 connections",
            RelayFigure::Rows20 => "20 rows by key a second, 8 connections",
            RelayFigure::Inserts => "INSERT of a message a second, 8 connections",
            RelayFigure::Gigabyte => "one 1 GiB result, MB/s",
            RelayFigure::P99 => "p99 at half of HAProxy's rate, us",
            RelayFigure::Cpu => "CPU seconds a million DO 1",
            RelayFigure::Logins => "connect, login, quit a second",
            RelayFigure::Idle => "idle session, resident KiB",
        }
    }

    pub(crate) fn aim(self) -> FigureAim {
        match self {
            RelayFigure::P99 | RelayFigure::Cpu => FigureAim::RatioAtMost(1.0),
            RelayFigure::Idle => FigureAim::AtMost(20.0),
            _ => FigureAim::RatioAtLeast(1.0),
        }
    }

    /// Digits behind the point.
    pub(crate) fn decimals(self) -> usize {
        match self {
            RelayFigure::Cpu | RelayFigure::Idle => 1,
            _ => 0,
        }
    }
}

/// One figure of everybody, a value for each round.
#[derive(Clone, Debug)]
pub(crate) struct FigureScore {
    pub(crate) figure: RelayFigure,
    values: Vec<(Contender, Vec<f64>)>,
}

/// The median of some values, and between which two they all lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueSpread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl FigureScore {
    pub(crate) fn new(figure: RelayFigure) -> FigureScore {
        FigureScore {
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
    pub(crate) fn median_of(&self, contender: Contender) -> Option<f64> {
        Some(spread(self.rounds(contender).to_vec())?.median)
    }

    /// Headwater's figure by HAProxy's, each round's apart: what disturbs a round disturbs both.
    pub(crate) fn ratio(&self) -> Option<ValueSpread> {
        let own = self.rounds(Contender::Headwater).iter();
        let by = self.rounds(Contender::Haproxy).iter();
        spread(own.zip(by).map(|(own, by)| own / by).collect())
    }

    /// Whether what is aimed at was reached; `None` where it was not measured.
    pub(crate) fn is_met(&self) -> Option<bool> {
        Some(match self.figure.aim() {
            FigureAim::RatioAtLeast(least) => self.ratio()?.median >= least,
            FigureAim::RatioAtMost(most) => self.ratio()?.median <= most,
            FigureAim::AtMost(most) => self.median_of(Contender::Headwater)? <= most,
        })
    }

    fn rounds(&self, contender: Contender) -> &[f64] {
        let of = self.values.iter().find(|(of, _)| *of == contender);
        of.map_or(&[], |(_, values)| values)
    }
}

/// `None` of none.
pub(crate) fn spread(mut values: Vec<f64>) -> Option<ValueSpread> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let (&least, &most) = (values.first()?, values.last()?);
    let middle = |place: usize| values.get(place).copied().unwrap_or(least);
    let median = (middle((values.len() - 1) / 2) + middle(values.len() / 2)) / 2.0;
    Some(ValueSpread {
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
