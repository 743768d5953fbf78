//! The file of `--request`: the statements of one request of an app, a line each.

use std::fmt;

/// The statements of a request, as the file has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFile {
    /// A SELECT of the readers, if the file has one.
    pub readers: Option<String>,
    /// What the app does, in this order.
    pub steps: Vec<RequestStep>,
}

/// One line of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestStep {
    /// Connect and log in anew.
    Connect,
    /// Send a statement with these placeholders.
    Statement(StatementTemplate),
}

/// A statement with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementTemplate {
    parts: Vec<TemplatePart>,
    /// The step whose rows `{ids}` means.
    pub ids_of: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Reader,
    Page,
    /// A column of the rows, from 0 on.
    Ids(usize),
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RequestFileError {
    /// Its number, from 1 on.
    pub line: usize,
    /// What is wrong with it, and the way out.
    pub problem: RequestProblem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestProblem {
    /// A brace that begins no placeholder.
    Placeholder(String),
    /// `{ids}` without a page above it.
    NoPage,
    /// The file has no statement.
    Empty,
    /// There are several lines of readers.
    Readers,
}

impl fmt::Display for RequestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestProblem::Placeholder(found) => write!(
                f,
                "{found} is no placeholder: there are {{reader}}, {{page}}, {{ids}}, and {{ids:2}} for the second column; write {{{{ for a brace"
            ),
            RequestProblem::NoPage => f.write_str(
                "{ids} means the rows of the nearest SELECT with LIMIT above it, and there is none: move it behind the page",
            ),
            RequestProblem::Empty => f.write_str(
                "there is no statement: write one on each line, as the app sends them for one page",
            ),
            RequestProblem::Readers => {
                f.write_str("`readers` stands above already: leave one of the two out")
            }
        }
    }
}

impl RequestFile {
    /// Reads the file's text.
    ///
    /// # Errors
    /// The first line that cannot be read.
    pub fn parse(text: &str) -> Result<RequestFile, RequestFileError> {
        let mut file = RequestFile {
            readers: None,
            steps: Vec::new(),
        };
        let mut page = None;
        for (line, content) in joined_lines(text) {
            let at = |problem| RequestFileError { line, problem };
            let content = content.trim().trim_end_matches(';').trim_end();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if content.eq_ignore_ascii_case("connect") {
                file.steps.push(RequestStep::Connect);
                continue;
            }
            if let Some(select) = after_word(content, "readers") {
                if file.readers.replace(select.to_owned()).is_some() {
                    return Err(at(RequestProblem::Readers));
                }
                continue;
            }
            let parts = template_parts(content).map_err(&at)?;
            let names_ids = parts
                .iter()
                .any(|part| matches!(part, TemplatePart::Ids(_)));
            let ids_of = page.filter(|_| names_ids);
            if names_ids && ids_of.is_none() {
                return Err(at(RequestProblem::NoPage));
            }
            if content.to_ascii_uppercase().contains(" LIMIT ") {
                page = Some(file.steps.len());
            }
            let template = StatementTemplate { parts, ids_of };
            file.steps.push(RequestStep::Statement(template));
        }
        let mut steps = file.steps.iter();
        match steps.any(|step| matches!(step, RequestStep::Statement(_))) {
            true => Ok(file),
            false => Err(RequestFileError {
                line: text.lines().count().max(1),
                problem: RequestProblem::Empty,
            }),
        }
    }
}

impl StatementTemplate {
    /// The statement for a reader and the page after so many rows. `ids`: a column of the rows that `{ids}` means.
    #[must_use]
    pub fn statement(&self, reader: &str, page: u64, ids: impl Fn(usize) -> String) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Reader => reader.to_owned(),
            TemplatePart::Page => page.to_string(),
            TemplatePart::Ids(column) => ids(*column),
        });
        parts.collect()
    }

    /// True if it depends on the reader itself.
    #[must_use]
    pub fn names_reader(&self) -> bool {
        self.parts.contains(&TemplatePart::Reader)
    }
}

impl fmt::Display for StatementTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => f.write_str(text)?,
                TemplatePart::Reader => f.write_str("{reader}")?,
                TemplatePart::Page => f.write_str("{page}")?,
                TemplatePart::Ids(0) => f.write_str("{ids}")?,
                TemplatePart::Ids(column) => write!(f, "{{ids:{}}}", column + 1)?,
            }
        }
        Ok(())
    }
}

/// Lines with their numbers; one that ends with a backslash goes on in the next.
fn joined_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let (own, more) = match line.trim_end().strip_suffix('\\') {
            Some(own) => (own, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, last)) => {
                last.push(' ');
                last.push_str(own.trim());
            }
            None => lines.push((number, own.to_owned())),
        }
        goes_on = more;
    }
    lines
}

fn after_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (first, rest) = line.split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case(word).then(|| rest.trim())
}

fn template_parts(line: &str) -> Result<Vec<TemplatePart>, RequestProblem> {
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), line);
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        if let Some(behind) = after.strip_prefix('{') {
            text.push('{');
            rest = behind;
            continue;
        }
        let closed = after.split_once('}');
        let (name, behind) =
            closed.ok_or_else(|| RequestProblem::Placeholder(format!("{{{after}")))?;
        let part = match name.split_once(':') {
            Some(("ids", number)) => {
                let number: Option<usize> = number.parse().ok();
                number
                    .and_then(|it| it.checked_sub(1))
                    .map(TemplatePart::Ids)
            }
            None if name == "ids" => Some(TemplatePart::Ids(0)),
            None if name == "reader" => Some(TemplatePart::Reader),
            None if name == "page" => Some(TemplatePart::Page),
            _ => None,
        };
        let part = part.ok_or_else(|| RequestProblem::Placeholder(format!("{{{name}}}")))?;
        if !text.is_empty() {
            parts.push(TemplatePart::Text(std::mem::take(&mut text)));
        }
        parts.push(part);
        rest = behind;
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(TemplatePart::Text(text));
    }
    Ok(parts)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FILE: &str = "# A page of the app.\n\
        readers SELECT DISTINCT reader FROM follows\n\
        \n\
        connect\n\
        SET NAMES utf8mb4;\n\
        SELECT id, author FROM posts WHERE author IN (SELECT author FROM follows WHERE reader = {reader}) \\\n\
           ORDER BY id DESC LIMIT 20 OFFSET {page}\n\
        SELECT COUNT(*) FROM posts WHERE author = {reader}\n\
        SELECT * FROM users WHERE id IN ({ids:2}) AND '{{' = '{{'\n\
        SELECT * FROM likes WHERE post IN ({ids})\n";

    #[test]
    fn statements_are_read_with_their_placeholders() {
        let file = RequestFile::parse(FILE).unwrap();
        assert_eq!(
            file.readers.as_deref(),
            Some("SELECT DISTINCT reader FROM follows")
        );
        assert_eq!(file.steps.len(), 6);
        assert_eq!(file.steps.first(), Some(&RequestStep::Connect));
        let texts: Vec<String> = file
            .steps
            .iter()
            .filter_map(|step| match step {
                RequestStep::Connect => None,
                RequestStep::Statement(template) => {
                    Some(template.statement("7", 40, |column| format!("c{column}")))
                }
            })
            .collect();
        assert_eq!(
            texts,
            [
                "SET NAMES utf8mb4",
                "SELECT id, author FROM posts WHERE author IN (SELECT author FROM follows WHERE reader = 7)  ORDER BY id DESC LIMIT 20 OFFSET 40",
                "SELECT COUNT(*) FROM posts WHERE author = 7",
                "SELECT * FROM users WHERE id IN (c1) AND '{' = '{'",
                "SELECT * FROM likes WHERE post IN (c0)",
            ]
        );
        let last = file.steps.last().unwrap();
        let shown = match last {
            RequestStep::Connect => None,
            RequestStep::Statement(template) => Some((
                template.ids_of,
                template.names_reader(),
                template.to_string(),
            )),
        };
        let text = "SELECT * FROM likes WHERE post IN ({ids})".to_owned();
        assert_eq!(shown, Some((Some(2), false, text)));
    }

    #[test]
    fn errors_name_the_line_and_the_way_out() {
        for (text, line, part) in [
            ("SELECT {raeder}", 1, "{reader}"),
            ("\nSELECT {reader", 2, "no placeholder"),
            ("SELECT {ids:0}", 1, "no placeholder"),
            ("connect\n\nSELECT * FROM a WHERE id IN ({ids})", 3, "LIMIT"),
            ("# nothing\nconnect", 2, "no statement"),
            ("", 1, "no statement"),
            (
                "readers SELECT 1\nreaders SELECT 2\nSELECT 1",
                2,
                "leave one",
            ),
        ] {
            let error = RequestFile::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains(part), "{error}");
        }
        // A brace that is none.
        assert!(RequestFile::parse("SELECT '{{reader}'").is_ok());
    }
}
