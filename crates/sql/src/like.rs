//! Patterns of LIKE.

/// As LIKE compares: `%` stands for any letters, `_` for one; a back slash takes its meaning from the next. Case does not count.
#[must_use]
pub fn is_like(text: &str, pattern: &str) -> bool {
    let lower = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (text, pattern) = (lower(text), lower(pattern));
    // Where the last `%` stands, and how far the text was taken for it: what comes behind may be tried again from there.
    let (mut at, mut of, mut last) = (0, 0, None);
    loop {
        match (pattern.get(of), text.get(at)) {
            (Some('%'), _) => {
                of += 1;
                last = Some((of, at));
                continue;
            }
            (Some('_'), Some(_)) => (at, of) = (at + 1, of + 1),
            (Some('\\'), Some(letter)) if pattern.get(of + 1) == Some(letter) => {
                (at, of) = (at + 1, of + 2);
            }
            (Some(wanted), Some(letter)) if wanted == letter && *wanted != '\\' => {
                (at, of) = (at + 1, of + 1);
            }
            (None, None) => return true,
            _ => match &mut last {
                Some((behind, from)) if *from < text.len() => {
                    *from += 1;
                    (at, of) = (*from, *behind);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_like() {
        for (text, pattern, like) in [
            ("limits.sessions", "limits.%", true),
            ("limits.sessions", "%SESS%", true),
            ("limits.sessions", "limits_sessions", true),
            ("limits.sessions", "limits\\_sessions", false),
            ("a_b", "a\\_b", true),
            ("aab", "%ab", true),
            ("abcbc", "a%bc", true),
            ("abcbd", "a%bc", false),
            ("", "%", true),
            ("", "", true),
            ("a", "", false),
            ("a", "_%", true),
            ("", "_", false),
            ("a", "a\\", false),
        ] {
            assert_eq!(is_like(text, pattern), like, "{text} {pattern}");
        }
    }
}
