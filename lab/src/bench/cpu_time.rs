//! The server's processor time for each answer, as the operating system counts it (for a server on this machine).

use std::time::Duration;

/// The resolution of /proc/PID/stat.
const TICK: Duration = Duration::from_millis(10);

/// Processor time, summed over several slices.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime(Option<Duration>);

impl ProcessorTime {
    /// Adds the difference between two readings.
    pub fn add(&mut self, before: Option<Duration>, after: Option<Duration>) {
        if let (Some(before), Some(after)) = (before, after) {
            *self.0.get_or_insert_default() += after.saturating_sub(before);
        }
    }

    /// The time for each of so many answers, in microseconds.
    #[must_use]
    pub fn per_answer_us(self, answers: u64) -> Option<f64> {
        let spent = self.0.filter(|_| answers > 0)?;
        Some(spent.as_secs_f64() * 1e6 / answers as f64)
    }
}

/// The time that a process has spent so far, in user and kernel mode.
#[must_use]
pub fn processor_time(pid: u32) -> Option<Duration> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&line)
}

fn parse_stat(line: &str) -> Option<Duration> {
    // The second field is the process's name, which may contain any character.
    let (_, behind) = line.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * ticks()? + TICK * ticks()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn both_times_are_added_whatever_the_name_is() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 3 4 20 0";
        assert_eq!(parse_stat(line), Some(Duration::from_secs(2)));
        assert_eq!(parse_stat("7 a"), None);
        assert!(processor_time(std::process::id()).is_some());
    }

    #[test]
    fn what_was_not_looked_at_is_not_known() {
        let mut spent = ProcessorTime::default();
        spent.add(None, Some(TICK));
        assert_eq!(spent.per_answer_us(10), None);
        spent.add(Some(TICK), Some(TICK * 3));
        assert_eq!(spent.per_answer_us(10), Some(2_000.0));
        assert_eq!(spent.per_answer_us(0), None);
    }
}
