//! Every figure on one server.

use std::time::Duration;

use anyhow::{Context, ensure};
use headwater_lab::private_server::ServerKind;
use indicatif::ProgressBar;
use nix::sys::resource::{Resource, getrlimit};

use crate::contenders::{OTHER_FILES, RelaySetup, RunningContender};
use crate::flags::RelayFlags;
use crate::rounds::{ContenderRounds, RoundTotals, TurnResult};
use crate::score::{Contender, FigureScore, RelayFigure};
use crate::stage::{CheckedStatement, RelayStage};
use crate::{closed_loop, idle, logins, open_loop};

/// A turn of most figures.
const TURN: Duration = Duration::from_millis(250);
/// A turn in which latencies count: a contender is cold when it begins.
const LATENCY_TURN: Duration = Duration::from_secs(1);
/// About what the great result takes: a turn is one of them, however long.
const GIGABYTE_TURN: Duration = Duration::from_secs(1);
/// Connections of most figures.
const CONNECTIONS: usize = 8;
/// Connections of the figure with many.
const MANY_CONNECTIONS: usize = 64;
/// What is read at a time of the great result.
const BUFFER_BYTES: usize = 256 * 1024;
const SERVER_OPTIONS: &[&str] = &[
    "--innodb-buffer-pool-size=256M",
    // The disk is not what is measured.
    "--innodb-flush-log-at-trx-commit=2",
];

/// What was measured on one server, and what has to be known beside it.
#[derive(Debug, Default)]
pub(crate) struct ServerOutcome {
    pub(crate) scores: Vec<FigureScore>,
    pub(crate) notes: Vec<String>,
    pub(crate) version: String,
}

/// Measures everything that the flags name.
pub(crate) fn run(
    kind: ServerKind,
    flags: &RelayFlags,
    bar: &ProgressBar,
) -> anyhow::Result<ServerOutcome> {
    let mut outcome = ServerOutcome::default();
    if flags
        .figures
        .iter()
        .any(|figure| *figure != RelayFigure::Idle)
    {
        bar.set_message(format!("starting {}", kind.name()));
        let stage = RelayStage::start(kind, SERVER_OPTIONS)?;
        stage.server.version().clone_into(&mut outcome.version);
        let setup = setup(&stage, flags)?;
        let field = flags
            .contenders
            .iter()
            .map(|contender| RunningContender::start(*contender, &setup, &stage.account))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let name = kind.name();
        FigureRunner {
            name,
            flags,
            bar,
            stage: &stage,
            field: &field,
        }
        .all(&mut outcome)?;
    }
    if flags.figures.contains(&RelayFigure::Idle) {
        bar.set_message(format!("starting {} for idle sessions", kind.name()));
        let options = idle::options(kind);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let stage = RelayStage::start(kind, &options)?;
        stage.server.version().clone_into(&mut outcome.version);
        let setup = setup(&stage, flags)?;
        let sessions = idle::SESSIONS.min(setup.sessions.saturating_sub(idle::SPARED));
        let say = |contender: Contender| {
            bar.set_message(format!(
                "{}: {sessions} idle sessions, {}",
                kind.name(),
                contender.name()
            ));
        };
        let score = idle::measure(&stage, &setup, &flags.contenders, sessions, say)?;
        outcome.scores.push(score);
        outcome
            .notes
            .push(note_on_idle(sessions, options.join(" "))?);
    }
    Ok(outcome)
}

/// What relays are started with: as many sessions as open files allow, and no more than idle ones need.
fn setup(stage: &RelayStage, flags: &RelayFlags) -> anyhow::Result<RelaySetup> {
    let files = usize::try_from(open_files()?).unwrap_or(usize::MAX);
    let sessions = files.saturating_sub(OTHER_FILES / 2) / 2;
    ensure!(
        sessions > 2 * MANY_CONNECTIONS,
        "only {files} files may be open: too few for {MANY_CONNECTIONS} sessions"
    );
    Ok(RelaySetup {
        upstream: stage.server.addr().to_string(),
        sessions: sessions.min(idle::SESSIONS + 2 * idle::SPARED),
        headwater: flags.headwater(),
    })
}

fn open_files() -> anyhow::Result<u64> {
    let (files, _) =
        getrlimit(Resource::RLIMIT_NOFILE).context("cannot ask for the limit of open files")?;
    Ok(files)
}

fn note_on_idle(sessions: usize, options: String) -> anyhow::Result<String> {
    let fewer = match sessions < idle::SESSIONS {
        true => format!(
            ", and not {}: a relay needs two files for each, and may have {} open here (ulimit -Hn)",
            idle::SESSIONS,
            open_files()?
        ),
        false => String::new(),
    };
    Ok(format!(
        "idle: {sessions} sessions that asked once, then nothing for 5 s{fewer}; a server with {options}"
    ))
}

/// The figures for which everybody stands in front of one server at the same time.
struct FigureRunner<'a> {
    name: &'static str,
    flags: &'a RelayFlags,
    bar: &'a ProgressBar,
    stage: &'a RelayStage,
    field: &'a [RunningContender],
}

impl FigureRunner<'_> {
    fn all(&self, outcome: &mut ServerOutcome) -> anyhow::Result<()> {
        let wants = |figure| self.flags.figures.contains(&figure);
        let scores = &mut outcome.scores;
        // The rate of arrivals is half of what comes out of these.
        let mut peak = None;
        if wants(RelayFigure::Points8) || wants(RelayFigure::Cpu) || wants(RelayFigure::P99) {
            let rounds = self.closed("DO 1, 8 connections", CONNECTIONS, &self.stage.point)?;
            let rates = rounds.score(RelayFigure::Points8, RoundTotals::rate);
            peak = rates.median_of(Contender::Haproxy);
            scores.push(rates);
            scores.push(rounds.score(RelayFigure::Cpu, RoundTotals::cpu_a_million));
        }
        if wants(RelayFigure::Points64) {
            let rounds =
                self.closed("DO 1, 64 connections", MANY_CONNECTIONS, &self.stage.point)?;
            scores.push(rounds.score(RelayFigure::Points64, RoundTotals::rate));
        }
        if wants(RelayFigure::Rows20) {
            let rounds = self.closed("20 rows, 8 connections", CONNECTIONS, &self.stage.rows)?;
            scores.push(rounds.score(RelayFigure::Rows20, RoundTotals::rate));
        }
        if wants(RelayFigure::Inserts) {
            let rounds = self.closed("INSERT, 8 connections", CONNECTIONS, &self.stage.inserts)?;
            scores.push(rounds.score(RelayFigure::Inserts, RoundTotals::rate));
        }
        if wants(RelayFigure::Gigabyte) {
            scores.push(self.gigabyte()?);
        }
        if wants(RelayFigure::P99) {
            let peak = peak.context(
                "p99 is taken at half of HAProxy's rate: it has to be among --contenders",
            )?;
            scores.push(self.p99(peak / 2.0)?);
            outcome.notes.push(format!(
                "p99: {:.0} DO 1 arrive a second, half of HAProxy's {peak:.0}, on {CONNECTIONS} connections; each counts from when it was due",
                peak / 2.0
            ));
        }
        if wants(RelayFigure::Logins) {
            scores.push(self.logins()?);
        }
        outcome.scores.sort_by_key(|score| {
            RelayFigure::ALL
                .iter()
                .position(|figure| *figure == score.figure)
        });
        Ok(())
    }

    fn closed(
        &self,
        what: &str,
        connections: usize,
        statements: &[CheckedStatement],
    ) -> anyhow::Result<ContenderRounds<'_>> {
        let mut teams = self
            .field
            .iter()
            .map(|running| running.connect(&self.stage.account, connections))
            .collect::<anyhow::Result<Vec<_>>>()?;
        self.play(what, TURN, |place, running| {
            let team = teams.get_mut(place).context("no team")?;
            let answers = closed_loop::run_turn(team, statements, TURN)?;
            let (wrong, name) = (answers.wrong, running.contender.name());
            ensure!(
                wrong == 0,
                "{wrong} answers through {name} are not the server's own"
            );
            Ok((answers.right, Vec::new()))
        })
    }

    fn gigabyte(&self) -> anyhow::Result<FigureScore> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let rounds = self.play("1 GiB", GIGABYTE_TURN, |_, running| {
            let mut clients = running.connect(&self.stage.account, 1)?;
            let client = clients.first_mut().context("no client")?;
            Ok((self.stage.ask_gigabyte(client, &mut buffer)?, Vec::new()))
        })?;
        let megabytes = |sum: &RoundTotals| Some(sum.rate()? / 1e6);
        Ok(rounds.score(RelayFigure::Gigabyte, megabytes))
    }

    fn p99(&self, rate: f64) -> anyhow::Result<FigureScore> {
        let statement = self.stage.point.first().context("no statement")?;
        let mut teams = self
            .field
            .iter()
            .map(|running| running.connect(&self.stage.account, CONNECTIONS))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let rounds = self.play("p99, 8 connections", LATENCY_TURN, |place, _| {
            let team = teams.get_mut(place).context("no team")?;
            let latencies = open_loop::run_turn(team, statement, rate, LATENCY_TURN)?;
            Ok((latencies.len() as u64, latencies))
        })?;
        Ok(rounds.score(RelayFigure::P99, RoundTotals::p99_us))
    }

    fn logins(&self) -> anyhow::Result<FigureScore> {
        let rounds = self.play("logins", TURN, |_, running| {
            let sessions = logins::turn(&running.address, &self.stage.account, TURN)?;
            Ok((sessions, Vec::new()))
        })?;
        Ok(rounds.score(RelayFigure::Logins, RoundTotals::rate))
    }

    /// As many turns of a length as fill the time of a round.
    fn play(
        &self,
        what: &str,
        length: Duration,
        mut turn: impl FnMut(usize, &RunningContender) -> anyhow::Result<TurnResult>,
    ) -> anyhow::Result<ContenderRounds<'_>> {
        let turns = self.flags.turns(length);
        self.bar
            .set_length((self.flags.rounds * turns * self.field.len()) as u64);
        self.bar.set_position(0);
        self.bar.set_message(format!("{}: {what}", self.name));
        let named = |place, running: &RunningContender| {
            turn(place, running).with_context(|| format!("{what} by {}", running.contender.name()))
        };
        ContenderRounds::play(self.field, self.flags.rounds, turns, named, || {
            self.bar.inc(1)
        })
    }
}
