//! Splits a file of SQL statements as the command line clients do, so that the same file works
//! there and here.

/// The statements of `text` without their separators. A statement ends with the line that ends with the delimiter: `;`, until a
/// `DELIMITER` line names another one. A comment between statements stays with the statement after it; comments at the end are left out.
pub fn statements(text: &str) -> Vec<String> {
    let mut delimiter = ";";
    let mut statements = Vec::new();
    let mut statement = String::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("DELIMITER"))
        {
            delimiter = words.next().unwrap_or(";");
            continue;
        }
        match line.trim_end().strip_suffix(delimiter) {
            Some(last_line) => {
                statement.push_str(last_line);
                let finished = std::mem::take(&mut statement);
                if !finished.trim().is_empty() {
                    statements.push(finished.trim().to_owned());
                }
            }
            None => {
                statement.push_str(line);
                statement.push('\n');
            }
        }
    }
    if statement
        .lines()
        .any(|line| !line.trim().is_empty() && !line.trim().starts_with("--"))
    {
        statements.push(statement.trim().to_owned());
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::statements;

    #[test]
    fn a_statement_ends_at_its_delimiter() {
        let text = "-- tables\nCREATE TABLE a (\n  id int\n);\n\nDROP TABLE a;\n";
        let expected = ["-- tables\nCREATE TABLE a (\n  id int\n)", "DROP TABLE a"];
        assert_eq!(statements(text), expected);
    }

    #[test]
    fn a_body_keeps_its_semicolons_under_another_delimiter() {
        let text = "delimiter //\nCREATE PROCEDURE p()\nBEGIN\n  DO 1;\nEND//\nDO 2\n//\n\
                    DELIMITER ;\nDO 3;\n-- the end\n";
        let expected = ["CREATE PROCEDURE p()\nBEGIN\n  DO 1;\nEND", "DO 2", "DO 3"];
        assert_eq!(statements(text), expected);
    }

    #[test]
    fn the_last_statement_needs_no_delimiter() {
        assert_eq!(statements("DO 1;\nDO 2"), ["DO 1", "DO 2"]);
        assert_eq!(statements(""), [""; 0]);
    }
}
