//! Texts of the documentation as logs and tables show them.

/// A line of the documentation without its markup: `[page](link)` becomes the page's name, back quotes are removed.
#[must_use]
pub fn plain_text(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[']) {
        let (front, after) = rest.split_at(at);
        plain.push_str(front);
        let link = after
            .strip_prefix('[')
            .and_then(|it| it.split_once("]("))
            .and_then(|(name, it)| Some((name, it.split_once(')')?)));
        match link {
            Some((name, (page, after))) => {
                plain.push_str(name);
                plain.push_str(" (docs/");
                plain.push_str(page);
                plain.push(')');
                rest = after;
            }
            None => {
                let (mark, after) = after.split_at(1);
                if mark == "[" {
                    plain.push_str(mark);
                }
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::plain_text;

    #[test]
    fn marks_of_the_documentation_are_left_out() {
        for (text, expected) in [
            ("raise `limits.x`", "raise limits.x"),
            (
                "switch it on: [autocommit](connecting.md#autocommit), please",
                "switch it on: autocommit (docs/connecting.md#autocommit), please",
            ),
            ("a [b", "a [b"),
            ("a [b](c", "a [b](c"),
            ("", ""),
        ] {
            assert_eq!(plain_text(text), expected);
        }
    }
}
