//! Reduces a failing world: leaves out every part without which it still fails.

use crate::arguments::{number, value_after};
use crate::pages::AuthorNames;
use crate::plan::{STEPS, WorldPlan};
use crate::run;

/// The parts that a world leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanReduction {
    /// Parts of its plan, by name.
    pub(crate) without: Vec<String>,
    /// The number of apps' steps.
    pub(crate) steps: Option<usize>,
}

type PlanPart = (&'static str, fn(&mut WorldPlan));

/// The parts that can be left out.
const PARTS: &[PlanPart] = &[
    ("late", |plan| plan.weather.late = 0),
    ("pieces", |plan| plan.weather.pieces = None),
    ("breaks", |plan| plan.weather.breaks = None),
    ("silences", |plan| plan.weather.silences = None),
    ("deaf", |plan| plan.weather.deaf = None),
    ("app-writes", |plan| plan.app_writes = false),
    ("transactions", |plan| plan.transactions = false),
    ("executions", |plan| plan.executions = false),
    ("lists", |plan| plan.lists = false),
    ("counts", |plan| plan.counts = None),
    ("names", |plan| plan.names = AuthorNames::Absent),
    ("bounds", |plan| plan.bounds = false),
    ("offset", |plan| plan.offset = 0),
    ("blocks", |plan| plan.blocks = false),
    ("truncations", |plan| plan.truncations = false),
    ("alterations", |plan| plan.alterations = false),
    ("flushes", |plan| plan.flushes = false),
    ("purges", |plan| plan.purges = false),
    ("refusals", |plan| plan.refusals = None),
    ("restarts", |plan| plan.restarts = None),
    ("kills", |plan| plan.kills = false),
    ("rights", |plan| plan.rights = false),
    ("beside", |plan| plan.beside = false),
    ("successions", |plan| plan.successions = false),
    ("reloads", |plan| plan.reloads = false),
    ("bound", |plan| plan.index_bytes = None),
    ("messages", |plan| plan.messages = 1),
    ("others", |plan| plan.writers = 0),
];

impl PlanReduction {
    /// Reads `--without A,B --steps N`.
    pub(crate) fn from_arguments(arguments: &[String]) -> Result<PlanReduction, String> {
        let without = value_after(arguments, "--without")
            .unwrap_or_default()
            .split(',');
        let without: Vec<String> = without
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect();
        let is_part = |name: &String| PARTS.iter().any(|(part, _)| part == name);
        if let Some(name) = without.iter().find(|name| !is_part(name)) {
            let all: Vec<&str> = PARTS.iter().map(|(part, _)| *part).collect();
            return Err(format!(
                "--without takes some of {}, not {name}",
                all.join(",")
            ));
        }
        let steps = number(arguments, "--steps", 10)?;
        Ok(PlanReduction {
            without,
            steps: steps.map(|steps| steps as usize),
        })
    }

    pub(crate) fn apply(&self, plan: &mut WorldPlan) {
        for (name, leave_out) in PARTS {
            if self.without.iter().any(|it| it == name) {
                leave_out(plan);
            }
        }
        if let Some(steps) = self.steps {
            plan.steps = steps;
        }
    }

    /// As the program's arguments.
    pub(crate) fn as_arguments(&self) -> String {
        let mut text = String::new();
        if !self.without.is_empty() {
            text.push_str(&format!(" --without {}", self.without.join(",")));
        }
        if let Some(steps) = self.steps {
            text.push_str(&format!(" --steps {steps}"));
        }
        text
    }
}

/// Leaves out parts and steps while the world fails; returns the smallest failing world found, and its failure.
pub(crate) fn shrink(seed: u64, fault: String) -> (PlanReduction, String) {
    let mut best = (PlanReduction::default(), fault);
    let fails = |reduction: &PlanReduction| run::run(seed, reduction, false).outcome.err();
    for (name, _) in PARTS {
        let mut reduction = best.0.clone();
        reduction.without.push((*name).to_owned());
        if let Some(fault) = fails(&reduction) {
            best = (reduction, fault);
        }
    }
    let (mut most, mut least) = (STEPS, 1);
    while least < most {
        let steps = least.midpoint(most);
        let reduction = PlanReduction {
            steps: Some(steps),
            ..best.0.clone()
        };
        match fails(&reduction) {
            Some(fault) => {
                best = (reduction, fault);
                most = steps;
            }
            None => least = steps + 1,
        }
    }
    best
}
