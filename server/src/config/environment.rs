//! Environment variables that look like settings and are not.

use super::ConfigError;

const PREFIX: &str = "HEADWATER_";
/// Two names that differ by this many letters or fewer count as one name, misspelt.
const MAX_MISSPELT_LETTERS: usize = 3;
/// Endings of the variables that Kubernetes sets in every container for a service that is named headwater.
const KUBERNETES_SUFFIXES: [&str; 3] = ["SERVICE_HOST", "SERVICE_PORT", "PORT"];
/// Read by a build (build.rs); it may still be set where the program is tried.
const BUILD_VARIABLE: &str = "HEADWATER_COMMIT";

/// Returns a warning for each `HEADWATER_` variable that is set and not read.
///
/// # Errors
/// When a variable is surely a misspelt setting: its value would be lost.
pub fn unknown_variables(
    known: &[&str],
    set: impl Iterator<Item = String>,
) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    let unknown = set.filter(|name| {
        let known = name == BUILD_VARIABLE || known.contains(&name.as_str());
        name.starts_with(PREFIX) && !known && !is_of_kubernetes(name)
    });
    for variable in unknown {
        let distances = known.iter().map(|name| (distance(&variable, name), *name));
        match distances.min() {
            Some((letters, nearest)) if letters <= MAX_MISSPELT_LETTERS => {
                return Err(ConfigError::Variable {
                    variable,
                    nearest: nearest.to_owned(),
                });
            }
            Some((_, nearest)) => warnings.push(format!(
                "the environment variable {variable} is no setting, and nobody reads it; the nearest one is {nearest}"
            )),
            None => {}
        }
    }
    Ok(warnings)
}

fn is_of_kubernetes(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    KUBERNETES_SUFFIXES.iter().any(|ending| {
        let suffix = rest.strip_prefix(ending);
        suffix.is_some_and(|behind| behind.is_empty() || behind.starts_with('_'))
    })
}

/// Levenshtein distance: letters changed, added or left out.
fn distance(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (before, byte) in one.bytes().enumerate() {
        let mut left = before + 1;
        let mut next = vec![left];
        for ((above_left, above), own) in row.iter().zip(row.iter().skip(1)).zip(other) {
            let changed = above_left + usize::from(byte != *own);
            left = changed.min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = [
        "HEADWATER_UPSTREAM",
        "HEADWATER_LISTEN",
        "HEADWATER_SERVICE_USER",
    ];

    fn judged(name: &str) -> Result<Vec<String>, ConfigError> {
        unknown_variables(&KNOWN, [name.to_owned()].into_iter())
    }

    #[test]
    fn the_distance_is_the_number_of_letters() {
        for (one, other, letters) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3)] {
            assert_eq!(distance(one, other), letters);
            assert_eq!(distance(other, one), letters);
        }
    }

    #[test]
    fn a_setting_that_was_misspelt_is_an_error_that_names_it() {
        for name in [
            "HEADWATER_UPSTREEM",
            "HEADWATER_LISTN",
            "HEADWATER_SERVICEUSER",
        ] {
            let error = judged(name).unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains("the setting is called"),
                "{error}"
            );
        }
    }

    #[test]
    fn another_variable_is_warned_of_and_one_of_kubernetes_is_not() {
        let warnings = judged("HEADWATER_FEED_EVENT_BYTES").unwrap();
        assert_eq!(warnings.len(), 1);
        for name in [
            "HEADWATER_LISTEN",
            "HEADWATER_SERVICE_HOST",
            "HEADWATER_SERVICE_PORT_MYSQL",
            "HEADWATER_PORT",
            "HEADWATER_PORT_3307_TCP_ADDR",
            "HEADWATER_COMMIT",
            "PATH",
        ] {
            assert!(judged(name).unwrap().is_empty(), "{name}");
        }
    }
}
