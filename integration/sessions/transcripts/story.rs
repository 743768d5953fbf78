//! The scenarios of a file, as consecutive steps: cases and repetitions are unrolled, names are filled in.

use std::collections::BTreeSet;

use super::deed::{Deed, Exchange};
use super::lines::{Fault, Line, fault, read};
use super::text::{is_word, unescaped};
use crate::sessions::stage::TAIL;

#[derive(Debug)]
pub(super) struct Story {
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    /// The cases that the step is part of: `call = CALL fetch_timeline_ids(1)`.
    pub(super) cases: Vec<String>,
    /// All of these must hold.
    pub(super) places: Vec<Place>,
    pub(super) deed: Deed,
}

/// The stages on which a step runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    Mariadb,
    Mysql,
    Service,
    NoService,
}

/// Parses all scenarios of a file; one fault rejects the whole file.
pub(super) fn parse(text: &str) -> Result<Vec<Story>, Fault> {
    let lines = read(text)?;
    let mut unroller = Unroller::default();
    let mut stories: Vec<Story> = Vec::new();
    for line in &lines {
        if let Some(name) = line.behind("story") {
            word(name, line)?;
            if stories.iter().any(|story| story.name == name) {
                return fault(line.number, format!("a second story {name}"));
            }
            let steps = unroller.story(line)?;
            let name = name.to_owned();
            stories.push(Story { name, steps });
        } else if let Some(name) = line.behind("part") {
            unroller.part(name, line)?;
        } else if let Some(name) = line.behind("list") {
            unroller.list(name, line)?;
        } else {
            return fault(line.number, "neither story nor part nor list");
        }
    }
    if stories.is_empty() {
        return fault(1, "no story");
    }
    unroller.all_used()?;
    Ok(stories)
}

type Cases<'a> = (&'a str, Vec<(usize, String)>);

#[derive(Default)]
struct Unroller<'a> {
    lists: Vec<(&'a str, &'a Line)>,
    parts: Vec<(&'a str, &'a Line)>,
    /// Names and values of the current cases, each with the line that introduced it.
    values: Vec<(&'a str, String, usize)>,
    /// Names with the lines that introduced them: those that are used, and all.
    used: BTreeSet<(usize, &'a str)>,
    known: BTreeSet<(usize, &'a str)>,
    repetitions: Vec<String>,
    places: Vec<Place>,
    has_account: bool,
    depth: usize,
    steps: Vec<Step>,
}

impl<'a> Unroller<'a> {
    fn story(&mut self, line: &'a Line) -> Result<Vec<Step>, Fault> {
        self.has_account = false;
        let lists = self.lists.len();
        self.block(line)?;
        self.lists.truncate(lists);
        let steps = std::mem::take(&mut self.steps);
        if !steps.iter().any(|step| step.deed.is_played()) {
            return fault(line.number, "this story plays no statement");
        }
        Ok(steps)
    }

    fn list(&mut self, name: &'a str, line: &'a Line) -> Result<(), Fault> {
        self.new_name(name, line)?;
        self.lists.push((name, line));
        Ok(())
    }

    fn part(&mut self, name: &'a str, line: &'a Line) -> Result<(), Fault> {
        self.new_name(name, line)?;
        self.parts.push((name, line));
        Ok(())
    }

    fn new_name(&mut self, name: &'a str, line: &Line) -> Result<(), Fault> {
        word(name, line)?;
        let mut all = self.lists.iter().chain(&self.parts);
        if all.any(|(other, _)| *other == name) {
            return fault(line.number, format!("a second {name}"));
        }
        if line.below.is_empty() {
            return fault(line.number, format!("nothing is in {name}"));
        }
        self.known.insert((line.number, name));
        Ok(())
    }

    fn all_used(&self) -> Result<(), Fault> {
        match self.known.difference(&self.used).next() {
            Some((line, name)) => fault(*line, format!("nobody uses {name}")),
            None => Ok(()),
        }
    }

    /// Unrolls the lines below a line.
    fn block(&mut self, line: &'a Line) -> Result<(), Fault> {
        if line.below.is_empty() {
            return fault(line.number, "nothing is below this");
        }
        line.below.iter().try_for_each(|line| self.line(line))
    }

    fn line(&mut self, line: &'a Line) -> Result<(), Fault> {
        if let Some(name) = line.behind("list") {
            self.list(name, line)
        } else if let Some(cases) = line.behind("each") {
            self.each(cases, line)
        } else if let Some(times) = line.behind("times") {
            self.times(times, line)
        } else if let Some(place) = line.behind("where") {
            self.places.push(self::place(place, line)?);
            self.block(line)?;
            self.places.pop();
            Ok(())
        } else if let Some(name) = line.behind("play") {
            self.play(name, line)
        } else {
            self.step(line)
        }
    }

    /// `a | b in LIST`, or `a of this | that`.
    fn each(&mut self, cases: &'a str, line: &'a Line) -> Result<(), Fault> {
        let (names, items) = self.cases(cases, line)?;
        let names: Vec<&str> = names.split(" | ").collect();
        for name in &names {
            word(name, line)?;
            let mut taken = self.values.iter().map(|(name, ..)| *name);
            if ["tail", "empty", "db", "user"].contains(name) || taken.any(|other| other == *name) {
                return fault(line.number, format!("a second {name}"));
            }
            self.known.insert((line.number, *name));
        }
        for (number, item) in items {
            self.case(&names, number, &item, line)?;
        }
        Ok(())
    }

    /// The names, and the items that they stand for, each with its line.
    fn cases(&mut self, cases: &'a str, line: &Line) -> Result<Cases<'a>, Fault> {
        let inline = cases.split_once(" of ");
        if let Some((name, items)) = inline.filter(|(name, _)| is_word(name)) {
            let items = items.split(" | ");
            let items = items.map(|item| (line.number, item.to_owned()));
            return Ok((name, items.collect()));
        }
        let Some((names, list)) = cases.split_once(" in ") else {
            return fault(line.number, "each NAME in LIST, or each NAME of A | B");
        };
        let Some((_, found)) = self.lists.iter().find(|(name, _)| *name == list) else {
            return fault(line.number, format!("no list {list}"));
        };
        self.used.insert((found.number, list));
        let items = found.below.iter();
        let items = items.map(|item| Ok((item.number, item.alone()?.to_owned())));
        Ok((names, items.collect::<Result<_, _>>()?))
    }

    fn case(
        &mut self,
        names: &[&'a str],
        number: usize,
        item: &str,
        line: &'a Line,
    ) -> Result<(), Fault> {
        let values: Vec<&str> = match names.len() {
            1 => vec![item],
            _ => item.split(" | ").collect(),
        };
        if values.len() != names.len() {
            return fault(number, format!("{} values for {names:?}", values.len()));
        }
        let mut filled = Vec::new();
        for (name, value) in names.iter().zip(values) {
            filled.push((*name, self.filled(value, number)?, line.number));
        }
        let outside = self.values.len();
        self.values.extend(filled);
        self.block(line)?;
        self.values.truncate(outside);
        Ok(())
    }

    fn times(&mut self, times: &str, line: &'a Line) -> Result<(), Fault> {
        let times = match times.parse() {
            Ok(times @ 2..=1000) => times,
            _ => return fault(line.number, "2 to 1000 times"),
        };
        for time in 1..=times {
            self.repetitions.push(format!("time {time} of {times}"));
            self.block(line)?;
            self.repetitions.pop();
        }
        Ok(())
    }

    fn play(&mut self, name: &str, line: &'a Line) -> Result<(), Fault> {
        line.alone()?;
        let Some(&(name, part)) = self.parts.iter().find(|(other, _)| *other == name) else {
            return fault(line.number, format!("no part {name}"));
        };
        // A part that plays itself would never end.
        if self.depth == 9 {
            return fault(line.number, "parts within parts, too deep");
        }
        self.used.insert((part.number, name));
        self.depth += 1;
        self.block(part)?;
        self.depth -= 1;
        Ok(())
    }

    fn step(&mut self, line: &'a Line) -> Result<(), Fault> {
        let text = self.filled(line.alone()?, line.number)?;
        let at = |what| Fault {
            line: line.number,
            what,
        };
        let text = unescaped(&text).map_err(at)?;
        let deed = match line.text.starts_with(':') {
            true => Deed::parse(&text[1..]).map_err(at)?,
            false => Deed::Exchange(Exchange::Statement(text)),
        };
        self.has_account |= matches!(deed, Deed::Account(_));
        let values = self.values.iter();
        let cases = values.map(|(name, value, _)| format!("{name} = {value}"));
        self.steps.push(Step {
            line: line.number,
            cases: cases.chain(self.repetitions.iter().cloned()).collect(),
            places: self.places.clone(),
            deed,
        });
        Ok(())
    }

    /// The text with its names filled in, except those that only the stage knows.
    fn filled(&mut self, text: &str, line: usize) -> Result<String, Fault> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            let name = behind
                .split_once('}')
                .filter(|(name, _)| !name.contains(' '));
            let Some((name, behind)) = name else {
                filled.push('{');
                rest = behind;
                continue;
            };
            match name {
                "tail" => filled.push_str(TAIL),
                "empty" => {}
                "db" => filled.push_str("{db}"),
                "user" if self.has_account => filled.push_str("{user}"),
                name => match self.values.iter().find(|(other, ..)| *other == name) {
                    Some((name, value, from)) => {
                        self.used.insert((*from, *name));
                        filled.push_str(value);
                    }
                    None => return fault(line, format!("nothing is named {{{name}}} here")),
                },
            }
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

fn word(text: &str, line: &Line) -> Result<(), Fault> {
    match is_word(text) {
        true => Ok(()),
        false => fault(line.number, format!("{text:?} is no name")),
    }
}

fn place(text: &str, line: &Line) -> Result<Place, Fault> {
    match text {
        "mariadb" => Ok(Place::Mariadb),
        "mysql" => Ok(Place::Mysql),
        "service" => Ok(Place::Service),
        "no service" => Ok(Place::NoService),
        other => fault(line.number, format!("no stage is known as {other:?}")),
    }
}
