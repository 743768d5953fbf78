//! The book's page of settings: headwater.example.toml, whose values a test compares with the defaults, beside the flags of `serve`.

use std::fmt::Write as _;

const EXAMPLE_SETTINGS: &str = include_str!("../../../headwater.example.toml");

const PAGE_HEAD: &str = "\
# Settings

Every key of the settings file of `headwater serve --config FILE`, with its default and its flag. The flag's environment variable is `HEADWATER_` and the
flag's name in capitals: `HEADWATER_TLS_OWN_FILE` for `--tls-own-file`. Flags override the environment, which overrides the file. Unknown keys and wrong
types are errors. `headwater check` takes the same settings. `headwater reload` and SIGHUP read the file again, with certificates and keys;
[some settings need a restart](operations.md#change-settings).

`make settings` writes this page from the code.
";

/// Flags whose name differs from their key.
const RENAMED_FLAGS: &[(&str, &str)] = &[
    ("accelerate", "relay-only"),
    ("index.preload", "preload"),
    ("freshness.mode", "freshness"),
    ("shadow.rate", "shadow"),
    ("upstream_tls.mode", "upstream-tls"),
];

/// A section of the example file.
#[derive(Debug, Default)]
struct SettingsSection {
    /// With brackets; empty for the keys above all sections.
    heading: String,
    comment: Vec<String>,
    keys: Vec<SettingsKey>,
}

#[derive(Debug)]
struct SettingsKey {
    name: String,
    value: String,
    /// The key is not set by default; the example shows a value.
    shown_only: bool,
    comment: Vec<String>,
}

/// The page, with the flags of this subcommand.
pub(super) fn page(serve: &clap::Command) -> String {
    let mut page = PAGE_HEAD.to_owned();
    let mut documented = Vec::new();
    for section in sections(EXAMPLE_SETTINGS) {
        section.write(&mut page, serve, &mut documented);
    }
    page.push_str("\n## Flags without a key\n\n| flag | effect |\n|---|---|\n");
    for flag in serve.get_arguments() {
        let Some(name) = flag
            .get_long()
            .filter(|name| !documented.contains(&(*name).to_owned()))
        else {
            continue;
        };
        let text = flag.get_help().map(ToString::to_string);
        let _ = writeln!(
            page,
            "| `--{name}` | {} |",
            table_cell(&text.unwrap_or_default())
        );
    }
    page
}

impl SettingsSection {
    /// `limits` for `[limits]`; empty above all sections.
    fn name(&self) -> &str {
        self.heading.trim_matches(['[', ']'])
    }

    fn write(&self, page: &mut String, serve: &clap::Command, documented: &mut Vec<String>) {
        match self.heading.as_str() {
            "" => page.push_str("\n## Above all sections\n\n"),
            heading => {
                let _ = write!(page, "\n## {heading}\n\n");
            }
        }
        // Prose, then possibly an example, which begins after the first empty line.
        let example = self.comment.iter().position(String::is_empty);
        let (text, example) = self.comment.split_at(example.unwrap_or(self.comment.len()));
        if !text.is_empty() {
            let _ = writeln!(page, "{}\n", sentences(text));
        }
        if let Some((_, example)) = example.split_first() {
            let _ = writeln!(page, "```toml\n{}\n```", example.join("\n"));
        }
        if self.keys.is_empty() {
            return;
        }
        page.push_str("| key | default | flag | meaning |\n|---|---|---|---|\n");
        let mut before: Option<&SettingsKey> = None;
        for key in &self.keys {
            let name = match self.name() {
                "" => key.name.clone(),
                section => format!("{section}.{}", key.name),
            };
            let flag = flag(serve, &name);
            documented.extend(flag.and_then(clap::Arg::get_long).map(str::to_owned));
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                key.name,
                key.default(),
                flag.and_then(clap::Arg::get_long)
                    .map_or_else(String::new, |flag| format!("`--{flag}`")),
                key.text(before, flag),
            );
            before = Some(key);
        }
    }
}

impl SettingsKey {
    fn default(&self) -> String {
        match self.shown_only {
            true => format!("none; such as `{}`", self.value),
            false => format!("`{}`", self.value),
        }
    }

    /// Adjacent keys share one text, at the first of them; keys that the section explains have their flag's text.
    fn text(&self, before: Option<&SettingsKey>, flag: Option<&clap::Arg>) -> String {
        let before = before.filter(|before| !before.comment.is_empty());
        let help = flag.and_then(clap::Arg::get_help);
        match (before, help) {
            _ if !self.comment.is_empty() => table_cell(&sentences(&self.comment)),
            (Some(before), _) => format!("with `{}`", before.name),
            (None, Some(help)) => table_cell(&help.to_string()),
            (None, None) => String::new(),
        }
    }
}

/// The example's sections in order. A comment belongs to the key or section after it.
fn sections(example: &str) -> Vec<SettingsSection> {
    let mut sections = vec![SettingsSection::default()];
    let mut comment: Vec<String> = Vec::new();
    for line in example.lines() {
        let commented = line.strip_prefix('#');
        let shown_only = commented.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(' '));
        if let Some(text) = commented.filter(|_| !shown_only) {
            comment.push(text.strip_prefix(' ').unwrap_or(text).to_owned());
            continue;
        }
        let line = if shown_only {
            line.trim_start_matches('#')
        } else {
            line
        };
        let text = std::mem::take(&mut comment);
        // The file's head comment belongs to no key.
        if line.is_empty() {
            continue;
        } else if line.starts_with('[') {
            sections.push(SettingsSection {
                heading: line.to_owned(),
                comment: text,
                ..SettingsSection::default()
            });
        } else if let Some((name, value)) = line.split_once(" = ")
            && let Some(section) = sections.last_mut()
        {
            section.keys.push(SettingsKey {
                name: name.to_owned(),
                value: value.to_owned(),
                shown_only,
                comment: text,
            });
        }
    }
    // The commented section at the end does not exist by default.
    let heading = comment.iter().find(|line| line.starts_with("[["));
    if let Some(heading) = heading.cloned() {
        sections.push(SettingsSection {
            heading,
            comment,
            ..SettingsSection::default()
        });
    }
    sections
}

fn flag<'a>(serve: &'a clap::Command, key: &str) -> Option<&'a clap::Arg> {
    let otherwise = RENAMED_FLAGS.iter().find(|(name, _)| *name == key);
    let named = otherwise.map_or_else(|| key.replace(['.', '_'], "-"), |(_, flag)| (*flag).into());
    serve
        .get_arguments()
        .find(|flag| flag.get_long() == Some(&named))
}

/// One paragraph, without the flag and variable in brackets.
fn sentences(lines: &[String]) -> String {
    let mut text = lines.join(" ");
    while let Some(begin) = text.find(" (--") {
        let Some(length) = text.get(begin..).and_then(|rest| rest.find(')')) else {
            break;
        };
        text.replace_range(begin..=begin + length, "");
    }
    text
}

fn table_cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use clap::Args as _;

    use super::*;
    use headwater_server::config::{ServeFlags, ServeSettings};

    fn serve() -> clap::Command {
        ServeFlags::augment_args(clap::Command::new("serve"))
    }

    #[test]
    fn every_setting_and_every_flag_is_on_the_page() {
        let page = page(&serve());
        let keys: Vec<String> = sections(EXAMPLE_SETTINGS)
            .iter()
            .flat_map(|section| {
                let keys = section.keys.iter();
                keys.map(|key| format!("{}.{}", section.name(), key.name))
            })
            .map(|key| key.trim_start_matches('.').to_owned())
            .collect();
        let settings = ServeSettings::load(&ServeFlags::default())
            .unwrap()
            .setting_values();
        for (name, _) in settings {
            let of_a_list = name.starts_with("definition.");
            assert!(
                of_a_list || keys.contains(&name),
                "{name} is not in headwater.example.toml"
            );
        }
        for flag in serve().get_arguments().filter_map(clap::Arg::get_long) {
            let rows = page.matches(&format!("| `--{flag}` |")).count();
            assert_eq!(rows, 1, "--{flag} has {rows} rows");
        }
        for flag in serve().get_arguments() {
            if let (Some(flag), Some(variable)) = (flag.get_long(), flag.get_env()) {
                let expected = format!("HEADWATER_{}", flag.to_uppercase().replace('-', "_"));
                assert_eq!(variable.to_str(), Some(&*expected));
            }
        }
        for (key, flag) in RENAMED_FLAGS {
            assert!(keys.contains(&(*key).to_owned()), "{key}");
            let there = serve()
                .get_arguments()
                .any(|it| it.get_long() == Some(*flag));
            assert!(there, "--{flag}");
        }
    }

    #[test]
    fn a_row_has_the_default_the_flag_and_the_text() {
        let page = page(&serve());
        for row in [
            "| `listen` | `\"127.0.0.1:3307\"` | `--listen` | Address on which MySQL clients connect. |",
            "| `accelerate` | `true` | `--relay-only` | ",
            "| `user` | none; such as `\"headwater\"` | `--service-user` | Account with which",
            "| `drain_ms` | `10000` |  | Time for ",
            "| `wait_ms` | `50` |  | Time that a call waits for memory to catch up",
        ] {
            assert!(page.contains(row), "no {row} in {page}");
        }
        let (_, feed) = page.split_once("\n## [[feed]]\n").unwrap();
        assert!(
            feed.contains("```toml\n[[feed]]\nname = \"home\""),
            "{feed}"
        );
        assert!(!page.contains("(--"), "flags have a column of their own");
    }

    #[test]
    fn a_comment_belongs_to_the_next_key_or_section() {
        let text = "# The head.\n\n# One.\n# More (--a, B).\na = 1\n\n# A section.\n#[b]\n#c = \"x\"\nd_ms = 2\n";
        let read = sections(text);
        assert_eq!(read.len(), 2);
        assert_eq!(sentences(&read[0].keys[0].comment), "One. More.");
        assert_eq!(
            (read[1].name(), read[1].comment.as_slice()),
            ("b", &["A section.".to_owned()][..])
        );
        assert!(read[1].keys[0].shown_only && !read[1].keys[1].shown_only);
    }
}
