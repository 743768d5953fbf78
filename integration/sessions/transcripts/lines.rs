//! The lines of a file, each with the further indented lines below it.

use std::fmt;
use std::iter::Peekable;

/// An error in a file, and its line.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.line, self.what)
    }
}

/// Returns a fault in place of the expected value.
pub(super) fn fault<T>(line: usize, what: impl Into<String>) -> Result<T, Fault> {
    let what = what.into();
    Err(Fault { line, what })
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) below: Vec<Line>,
}

impl Line {
    /// What follows `:word`; `None` for another word, or a statement.
    pub(super) fn behind(&self, word: &str) -> Option<&str> {
        let rest = self.text.strip_prefix(':')?.strip_prefix(word)?;
        match rest.strip_prefix(' ') {
            Some(rest) => Some(rest.trim_start()),
            None => rest.is_empty().then_some(""),
        }
    }

    /// The text of a line that must not have lines below it.
    pub(super) fn alone(&self) -> Result<&str, Fault> {
        match self.below.first() {
            Some(line) => fault(line.number, "this is below a line that takes nothing"),
            None => Ok(&self.text),
        }
    }
}

/// All lines but comments and empty ones; a line that ends in ` \` continues in the next.
pub(super) fn read(text: &str) -> Result<Vec<Line>, Fault> {
    let mut lines: Vec<(usize, usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let text = line.trim();
        let (text, more) = match text.strip_suffix(" \\") {
            Some(text) => (text, true),
            None => (text, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(_) if text.is_empty() => return fault(number, "the line before goes on nowhere"),
            Some((.., whole)) => {
                whole.push(' ');
                whole.push_str(text);
            }
            None if text.is_empty() || text.starts_with('#') => continue,
            None => {
                let indent = line.len() - line.trim_start().len();
                lines.push((number, indent, text.to_owned()));
            }
        }
        goes_on = more;
    }
    if goes_on {
        return fault(text.lines().count(), "this goes on nowhere");
    }
    level(&mut lines.into_iter().peekable(), 0)
}

fn level(
    lines: &mut Peekable<impl Iterator<Item = (usize, usize, String)>>,
    indent: usize,
) -> Result<Vec<Line>, Fault> {
    let mut found = Vec::new();
    while let Some((number, own, text)) = lines.next_if(|(_, own, _)| *own >= indent) {
        if own > indent {
            return fault(number, "stands between two indentations");
        }
        let below = match lines.peek() {
            Some(&(_, deeper, _)) if deeper > indent => level(lines, deeper)?,
            _ => Vec::new(),
        };
        found.push(Line {
            number,
            text,
            below,
        });
    }
    Ok(found)
}
