//! Patterns of LIKE.

/// Compares as LIKE does: `%` matches any characters, `_` matches one, and a backslash escapes the next. Case does not count.
#[must_use]
pub fn is_like(text: &str, pattern: &str) -> bool {
    let lower = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (text, pattern) = (lower(text), lower(pattern));
    // After the last `%`: the pattern's position, and how much of the text it covers. On a mismatch, matching resumes there.
    let (mut at, mut pattern_at, mut last) = (0, 0, None);
    loop {
        match (pattern.get(pattern_at), text.get(at)) {
            (Some('%'), _) => {
                pattern_at += 1;
                last = Some((pattern_at, at));
                continue;
            }
            (Some('_'), Some(_)) => (at, pattern_at) = (at + 1, pattern_at + 1),
            (Some('\\'), Some(letter)) if pattern.get(pattern_at + 1) == Some(letter) => {
                (at, pattern_at) = (at + 1, pattern_at + 2);
            }
            (Some(wanted), Some(letter)) if wanted == letter && *wanted != '\\' => {
                (at, pattern_at) = (at + 1, pattern_at + 1);
            }
            (None, None) => return true,
            _ => match &mut last {
                Some((resume_at, from)) if *from < text.len() => {
                    *from += 1;
                    (at, pattern_at) = (*from, *resume_at);
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
