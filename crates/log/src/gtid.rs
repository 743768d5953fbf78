//! Global transaction ids (GTIDs): their sources, sets of them, and a server's history as a set.
//!
//! MySQL numbers the transactions of each server, or group, without gaps. MariaDB numbers those of a domain in ascending order, and
//! reports the last number of each server in a domain: all lower numbers of that server precede it in the log.

use std::collections::BTreeMap;
use std::fmt;

/// Who assigns GTIDs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GtidSource {
    /// A MySQL server or group: its UUID, and a tag, which is usually empty.
    Uuid([u8; 16], String),
    /// A MariaDB server within a domain.
    Domain {
        /// The domain id.
        domain: u32,
        /// The server id.
        server: u32,
    },
}

/// A global transaction id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gtid {
    /// Who assigned it.
    pub source: GtidSource,
    /// Counts from 1.
    pub number: u64,
}

/// A GTID with its commit time on the originating server: after a log reset, numbers are assigned again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedGtid {
    /// The GTID.
    pub gtid: Gtid,
    /// Microseconds (MySQL) or seconds (MariaDB) since 1970.
    pub committed_at: u64,
}

/// A set of GTIDs. Each source's ranges (first and last number) are ascending and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    ranges: BTreeMap<GtidSource, Vec<(u64, u64)>>,
    /// The last transaction of each domain (MariaDB): server id and number.
    last: BTreeMap<u32, (u32, u64)>,
}

impl fmt::Display for GtidSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GtidSource::Domain { domain, server } => write!(f, "{domain}-{server}"),
            GtidSource::Uuid(bytes, tag) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                if tag.is_empty() {
                    return Ok(());
                }
                write!(f, ":{tag}")
            }
        }
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gtid { source, number } = self;
        match source {
            GtidSource::Domain { .. } => write!(f, "{source}-{number}"),
            GtidSource::Uuid(..) => write!(f, "{source}:{number}"),
        }
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (source, ranges)) in self.ranges.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            if let (GtidSource::Domain { .. }, Some((_, last))) = (source, ranges.last()) {
                write!(f, "{source}-{last}")?;
                continue;
            }
            write!(f, "{source}")?;
            for (first, last) in ranges {
                match first == last {
                    true => write!(f, ":{first}")?,
                    false => write!(f, ":{first}-{last}")?,
                }
            }
        }
        Ok(())
    }
}

/// Parses a UUID, with or without hyphens.
#[must_use]
pub fn parse_uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl GtidSet {
    /// Parses a set as servers write it: `UUID:1-5:7:tag:1,UUID:3` (MySQL), or the last of each server, `0-1-17,0-2-20` (MariaDB; may be
    /// in brackets). `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<GtidSet> {
        let text = text.trim().trim_start_matches('[').trim_end_matches(']');
        let mut all = GtidSet::default();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            match part.contains(':') {
                true => all.parse_uuid(part)?,
                false => all.parse_domain(part)?,
            }
        }
        Some(all)
    }

    fn parse_domain(&mut self, part: &str) -> Option<()> {
        let mut numbers = part.split('-').map(|number| number.trim().parse::<u64>());
        let [domain, server, number] = [
            numbers.next()?.ok()?,
            numbers.next()?.ok()?,
            numbers.next()?.ok()?,
        ];
        if numbers.next().is_some() {
            return None;
        }
        let source = GtidSource::Domain {
            domain: u32::try_from(domain).ok()?,
            server: u32::try_from(server).ok()?,
        };
        self.add(&Gtid { source, number });
        Some(())
    }

    fn parse_uuid(&mut self, part: &str) -> Option<()> {
        let mut parts = part.split(':').map(str::trim);
        let uuid = parse_uuid_bytes(parts.next()?)?;
        let mut source = GtidSource::Uuid(uuid, String::new());
        for part in parts {
            if !part.starts_with(|first: char| first.is_ascii_digit()) {
                source = GtidSource::Uuid(uuid, part.to_owned());
                continue;
            }
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first == 0 || last < first {
                return None;
            }
            self.add_range(&source, first, last);
        }
        Some(())
    }

    /// Adds one GTID.
    pub fn add(&mut self, gtid: &Gtid) {
        match gtid.source {
            GtidSource::Uuid(..) => self.add_range(&gtid.source, gtid.number, gtid.number),
            GtidSource::Domain { domain, server } => {
                self.last.insert(domain, (server, gtid.number));
                self.add_range(&gtid.source, 1, gtid.number);
            }
        }
    }

    fn add_range(&mut self, source: &GtidSource, first: u64, last: u64) {
        if first > last {
            return;
        }
        let ranges = match self.ranges.get_mut(source) {
            Some(ranges) => ranges,
            None => self.ranges.entry(source.clone()).or_default(),
        };
        // Usually it follows the last range.
        if let Some((_, end)) = ranges
            .last_mut()
            .filter(|(_, end)| end.checked_add(1) == Some(first))
        {
            *end = last;
            return;
        }
        let from = ranges.partition_point(|(_, end)| end.saturating_add(1) < first);
        let to = ranges.partition_point(|(begin, _)| *begin <= last.saturating_add(1));
        let touched = ranges.get(from..to).unwrap_or_default();
        let first = touched
            .first()
            .map_or(first, |(begin, _)| first.min(*begin));
        let last = touched.last().map_or(last, |(_, end)| last.max(*end));
        ranges.splice(from..to, [(first, last)]);
    }

    /// Adds all GTIDs of a later set; its last transaction of a domain becomes the last.
    pub fn add_all(&mut self, later: &GtidSet) {
        for (source, ranges) in &later.ranges {
            for (first, last) in ranges {
                self.add_range(source, *first, *last);
            }
        }
        self.last.extend(&later.last);
    }

    /// Removes one GTID.
    pub fn remove(&mut self, gtid: &Gtid) {
        let Some(ranges) = self.ranges.get_mut(&gtid.source) else {
            return;
        };
        let number = gtid.number;
        let at = ranges.partition_point(|(_, end)| *end < number);
        let Some((first, last)) = ranges
            .get(at)
            .copied()
            .filter(|(first, _)| *first <= number)
        else {
            return;
        };
        let before = (first < number).then(|| (first, number - 1));
        let after = (number < last).then(|| (number + 1, last));
        ranges.splice(at..=at, before.into_iter().chain(after));
        if ranges.is_empty() {
            self.ranges.remove(&gtid.source);
        }
    }

    /// True if the set contains it.
    #[must_use]
    pub fn contains(&self, gtid: &Gtid) -> bool {
        self.covers(&gtid.source, gtid.number, gtid.number)
    }

    fn covers(&self, source: &GtidSource, first: u64, last: u64) -> bool {
        let ranges = self
            .ranges
            .get(source)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let at = ranges.partition_point(|(_, end)| *end < first);
        ranges
            .get(at)
            .is_some_and(|(begin, end)| *begin <= first && last <= *end)
    }

    /// True if another set contains all of this one.
    #[must_use]
    pub fn is_subset(&self, other: &GtidSet) -> bool {
        let mut all = self.ranges.iter().flat_map(|(source, ranges)| {
            ranges
                .iter()
                .map(move |(first, last)| (source, *first, *last))
        });
        all.all(|(source, first, last)| other.covers(source, first, last))
    }

    /// The GTIDs that another set lacks; for MariaDB, the last transaction of each domain that it lacks.
    #[must_use]
    pub fn difference(&self, other: &GtidSet) -> GtidSet {
        let mut missing = GtidSet::default();
        for (source, ranges) in &self.ranges {
            if let GtidSource::Domain { .. } = source {
                continue;
            }
            let taken = other
                .ranges
                .get(source)
                .map(Vec::as_slice)
                .unwrap_or_default();
            for (first, last) in ranges {
                let mut from = *first;
                for (begin, end) in taken.iter().filter(|(_, end)| *end >= *first) {
                    if *begin > *last || from > *last {
                        break;
                    }
                    if *begin > from {
                        missing.add_range(source, from, begin - 1);
                    }
                    from = end.saturating_add(1).max(from);
                }
                missing.add_range(source, from, *last);
            }
        }
        for (domain, (server, number)) in &self.last {
            let source = GtidSource::Domain {
                domain: *domain,
                server: *server,
            };
            if !other.covers(&source, *number, *number) {
                missing.add_range(&source, *number, *number);
            }
        }
        missing
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ONE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const TWO: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> GtidSet {
        GtidSet::parse(text).unwrap()
    }

    fn mysql(number: u64) -> Gtid {
        let source = GtidSource::Uuid(parse_uuid_bytes(ONE).unwrap(), String::new());
        Gtid { source, number }
    }

    #[test]
    fn sets_are_read_as_servers_write_them() {
        let text = format!("{ONE}:1-3:5:7-9,\n{TWO}:4:blue:1-2");
        assert_eq!(
            set(&text).to_string(),
            format!("{ONE}:1-3:5:7-9,{TWO}:4,{TWO}:blue:1-2")
        );
        assert_eq!(
            set("[0-1-100,0-2-120,7-1-3]").to_string(),
            "0-1-100,0-2-120,7-1-3"
        );
        assert!(set("").is_empty() && set("[]").is_empty());
        for wrong in [
            "0-1",
            "0-1-2-3",
            "a-b-c",
            "x:1",
            &format!("{ONE}:5-3"),
            &format!("{ONE}:0"),
        ] {
            assert_eq!(GtidSet::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn mariadb_reports_the_last_of_each_server_and_of_each_domain() {
        let mut one = set("0-1-100,0-2-120,7-1-3");
        assert!(set("0-1-99,0-2-120").is_subset(&one));
        assert!(!set("0-3-1").is_subset(&one) && !set("0-2-121").is_subset(&one));
        // The other set may lack an old server of the domain: only the domain's last transaction must be in it.
        assert!(one.difference(&set("0-2-130,7-1-3")).is_empty());
        assert_eq!(one.difference(&set("0-1-200,7-1-3")).to_string(), "0-2-120");
        one.add_all(&set("0-1-130"));
        assert_eq!(one.difference(&set("0-2-120,7-1-3")).to_string(), "0-1-130");
    }

    proptest! {
        #[test]
        fn sets_do_what_sets_do(steps in proptest::collection::vec((1u64..40, any::<bool>()), 0..80), others in proptest::collection::btree_set(1u64..40, 0..30)) {
            let (mut own, mut model) = (GtidSet::default(), BTreeSet::new());
            for (number, add) in steps {
                if add {
                    own.add(&mysql(number));
                    model.insert(number);
                } else {
                    own.remove(&mysql(number));
                    model.remove(&number);
                }
            }
            let mut other = GtidSet::default();
            others.iter().for_each(|number| other.add(&mysql(*number)));
            for number in 0..41 {
                prop_assert_eq!(own.contains(&mysql(number)), model.contains(&number));
            }
            prop_assert_eq!(own.is_subset(&other), model.is_subset(&others));
            let left: BTreeSet<u64> = model.difference(&others).copied().collect();
            let without = own.difference(&other);
            for number in 0..41 {
                prop_assert_eq!(without.contains(&mysql(number)), left.contains(&number));
            }
            prop_assert_eq!(without.is_empty(), left.is_empty());
            prop_assert_eq!(GtidSet::parse(&own.to_string()), Some(own.clone()));
            let mut both = own;
            both.add_all(&other);
            for number in 0..41 {
                prop_assert_eq!(both.contains(&mysql(number)), model.contains(&number) || others.contains(&number));
            }
        }
    }
}
