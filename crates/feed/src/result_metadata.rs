//! Column metadata of a template, sampled from the server's direct replies.
//!
//! Key flags in column definitions depend on the plan, and the plan on the statement. So a narrowed reply's key flags are restored to those
//! that the server sent for the same template and about as many authors. Nothing is restored where anything else differs. Where plans
//! change more than key flags ([`crate::plan_dependence`]), only samples of the same plan are used.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::cost::AuthorCountBucket;

/// Flags that depend on the plan: PRI_KEY, UNIQUE_KEY, MULTIPLE_KEY, AUTO_INCREMENT, TIMESTAMP, ON_UPDATE_NOW, PART_KEY. NOT_NULL, BINARY
/// and the like do not.
pub const KEY_FLAGS: u16 = 0x660e;

/// What else column definitions depend on: the session's settings and the client's capabilities, as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlanSettings(pub u64);

/// The columns of one reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnFingerprint {
    /// Hash of all definitions without their key flags.
    definitions_hash: u64,
    /// The key flags of each column.
    key_flags: Vec<u16>,
}

/// Status flags that depend on the plan: no index, no good index. They are sent after the columns, where an EOF stands there, and at the
/// end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanStatusFlags {
    /// After the columns.
    pub after_columns: u16,
    /// At the end.
    pub at_end: u16,
}

impl PlanStatusFlags {
    /// SERVER_QUERY_NO_GOOD_INDEX_USED and SERVER_QUERY_NO_INDEX_USED. The flag of a slow statement is never sampled.
    pub const FLAGS: u16 = 0x30;
}

/// A sample of a reply: its key flags and its status flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMetadata {
    /// Hash of all definitions without their key flags.
    definitions_hash: u64,
    /// The key flags of each column.
    key_flags: Vec<u16>,
    /// The status flags that depend on the plan.
    pub status_flags: PlanStatusFlags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanMetadata {
    metadata: SampledMetadata,
    /// A narrowed reply matches if it goes through a temporary table.
    buffered: bool,
}

/// The server's plan of a statement, as the server reports it, without estimates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerPlan(Vec<u8>);

impl ServerPlan {
    /// The plan that the server reported.
    #[must_use]
    pub fn new(description: Vec<u8>) -> ServerPlan {
        ServerPlan(description)
    }
}

/// What is known of the columns under a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKnowledge {
    /// Their definitions.
    Known,
    /// Nothing.
    Unknown,
    /// Samples under this plan differ.
    Differs,
}

/// Most plans that are remembered per template.
const MOST_PLANS: usize = 64;

/// The samples of one template.
#[derive(Clone, Debug, Default)]
pub struct TemplateMetadata {
    by_author_count: [Option<SampledMetadata>; AuthorCountBucket::COUNT],
    /// `None`: samples differed, or a narrowed reply never matches.
    by_plan: BTreeMap<ServerPlan, Option<PlanMetadata>>,
}

/// The samples of one template for each of the sessions' settings: the latest last, at most [`Self::MOST_SETTINGS`].
#[derive(Clone, Debug, Default)]
pub struct SettingsMetadata(Vec<(PlanSettings, TemplateMetadata)>);

impl SettingsMetadata {
    /// Most settings with samples.
    pub const MOST_SETTINGS: usize = 8;

    /// The samples under these settings.
    #[must_use]
    pub fn for_settings(&self, settings: PlanSettings) -> Option<&TemplateMetadata> {
        let entry = self.0.iter().find(|(own, _)| *own == settings);
        entry.map(|(_, metadata)| metadata)
    }

    /// Changes these samples. New settings evict those whose samples changed longest ago.
    pub fn update<T>(
        &mut self,
        settings: PlanSettings,
        change: impl FnOnce(&mut TemplateMetadata) -> T,
    ) -> T {
        let position = self.0.iter().position(|(own, _)| *own == settings);
        let mut metadata = position.map(|at| self.0.remove(at).1).unwrap_or_default();
        let changed = change(&mut metadata);
        if self.0.len() == Self::MOST_SETTINGS {
            self.0.remove(0);
        }
        self.0.push((settings, metadata));
        changed
    }
}

/// The offset of the flags in the payload of a column definition. The decimals and two filler bytes follow them.
#[must_use]
pub fn flags_at(definition: &[u8]) -> Option<usize> {
    definition.len().checked_sub(5)
}

impl ColumnFingerprint {
    /// Reads payloads of column definitions. `None`: one is too short.
    #[must_use]
    pub fn read<'a>(definitions: impl IntoIterator<Item = &'a [u8]>) -> Option<ColumnFingerprint> {
        let mut flags = Vec::new();
        let mut common = DefaultHasher::new();
        for definition in definitions {
            let (before, from_flags) = definition.split_at_checked(flags_at(definition)?)?;
            let (flag_bytes, after) = from_flags.split_first_chunk()?;
            let column_flags = u16::from_le_bytes(*flag_bytes);
            (before, column_flags & !KEY_FLAGS, after).hash(&mut common);
            flags.push(column_flags & KEY_FLAGS);
        }
        flags.len().hash(&mut common);
        Some(ColumnFingerprint {
            definitions_hash: common.finish(),
            key_flags: flags,
        })
    }

    /// The number of columns.
    #[must_use]
    pub fn count(&self) -> usize {
        self.key_flags.len()
    }

    /// Restores the key flags in the payloads of column definitions.
    pub fn restore_key_flags(&self, definitions: &mut [&mut [u8]]) {
        for (definition, flags) in definitions.iter_mut().zip(&self.key_flags) {
            let at = flags_at(definition);
            if let Some([low, high]) = at.and_then(|at| definition.get_mut(at..at + 2)) {
                let current = u16::from_le_bytes([*low, *high]);
                [*low, *high] = (current & !KEY_FLAGS | flags).to_le_bytes();
            }
        }
    }
}

impl TemplateMetadata {
    /// Records a direct reply, with its plan if that was requested.
    pub fn record_sample(
        &mut self,
        bucket: AuthorCountBucket,
        plan: Option<ServerPlan>,
        columns: ColumnFingerprint,
        ends: PlanStatusFlags,
    ) {
        let mut known = self.by_author_count.iter().flatten();
        if plan.is_none() && known.any(|known| known.definitions_hash != columns.definitions_hash) {
            // The tables have changed: earlier samples are void.
            self.forget();
        }
        let sample = SampledMetadata {
            definitions_hash: columns.definitions_hash,
            key_flags: columns.key_flags,
            status_flags: PlanStatusFlags {
                after_columns: ends.after_columns & PlanStatusFlags::FLAGS,
                at_end: ends.at_end & PlanStatusFlags::FLAGS,
            },
        };
        if let Some(plan) = plan {
            let has_room = self.by_plan.len() < MOST_PLANS;
            match self.by_plan.get_mut(&plan) {
                Some(known) => *known = known.take().filter(|known| known.metadata == sample),
                None if has_room => {
                    let known = PlanMetadata {
                        metadata: sample.clone(),
                        buffered: false,
                    };
                    self.by_plan.insert(plan, Some(known));
                }
                None => {}
            }
        }
        if let Some(slot) = self.by_author_count.get_mut(bucket.number()) {
            *slot = Some(sample);
        }
    }

    /// What is known under a plan.
    #[must_use]
    pub fn plan_knowledge(&self, plan: &ServerPlan) -> PlanKnowledge {
        match self.by_plan.get(plan) {
            Some(Some(_)) => PlanKnowledge::Known,
            Some(None) => PlanKnowledge::Differs,
            None => PlanKnowledge::Unknown,
        }
    }

    /// Drops all samples.
    pub fn forget(&mut self) {
        *self = TemplateMetadata::default();
    }

    /// The sample of a plan, or without a plan that of the author-count bucket.
    #[must_use]
    pub fn sample(
        &self,
        bucket: AuthorCountBucket,
        plan: Option<&ServerPlan>,
    ) -> Option<&SampledMetadata> {
        match plan {
            Some(plan) => self
                .by_plan
                .get(plan)?
                .as_ref()
                .map(|known| &known.metadata),
            None => self.by_author_count.get(bucket.number())?.as_ref(),
        }
    }

    /// The columns as the server sends them directly. `None`: unknown, or different from these in more than key flags.
    #[must_use]
    pub fn restored_columns(
        &self,
        bucket: AuthorCountBucket,
        plan: Option<&ServerPlan>,
        columns: &ColumnFingerprint,
    ) -> Option<ColumnFingerprint> {
        let sample = self.sample(bucket, plan)?;
        (columns.definitions_hash == sample.definitions_hash).then(|| ColumnFingerprint {
            definitions_hash: sample.definitions_hash,
            key_flags: sample.key_flags.clone(),
        })
    }

    /// True if a narrowed reply has to go through a temporary table to match this plan's sample.
    #[must_use]
    pub fn is_buffered(&self, plan: &ServerPlan) -> bool {
        let known = self.by_plan.get(plan).and_then(Option::as_ref);
        known.is_some_and(|known| known.buffered)
    }

    /// A narrowed reply differs from this plan's sample: the next one goes through a temporary table, and none after that.
    pub fn record_difference(&mut self, plan: &ServerPlan) {
        if let Some(known) = self.by_plan.get_mut(plan) {
            let other = known.take().filter(|known| !known.buffered);
            *known = other.map(|known| PlanMetadata {
                buffered: true,
                ..known
            });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The end of a definition with these flags, after a name.
    fn definition(name: &str, flags: u16) -> Vec<u8> {
        let mut bytes = name.as_bytes().to_vec();
        bytes.extend_from_slice(&[0x0c, 63, 0, 11, 0, 0, 0, 3]);
        bytes.extend_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(&[0, 0, 0]);
        bytes
    }

    fn columns(flags: [u16; 2]) -> [Vec<u8>; 2] {
        let [id, body] = flags;
        [definition("id", id), definition("body", body)]
    }

    fn read(columns: &[Vec<u8>]) -> ColumnFingerprint {
        ColumnFingerprint::read(columns.iter().map(Vec::as_slice)).unwrap()
    }

    fn put_back(
        metadata: &TemplateMetadata,
        bucket: AuthorCountBucket,
        columns: &mut [Vec<u8>],
    ) -> bool {
        let Some(restored) = metadata.restored_columns(bucket, None, &read(columns)) else {
            return false;
        };
        let mut all: Vec<&mut [u8]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
        restored.restore_key_flags(&mut all);
        true
    }

    fn ends(last: u16) -> PlanStatusFlags {
        PlanStatusFlags {
            after_columns: 0,
            at_end: last,
        }
    }

    const FEW: usize = 5;
    const MANY: usize = 60;

    #[test]
    fn key_flags_are_put_back_to_what_the_server_gave() {
        let mut metadata = TemplateMetadata::default();
        metadata.record_sample(
            AuthorCountBucket::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(0x22),
        );
        let mut narrowed = columns([0x0001, 0x1001]);
        assert!(put_back(
            &metadata,
            AuthorCountBucket::of(MANY),
            &mut narrowed
        ));
        assert_eq!(narrowed, columns([0x4203, 0x1001]));
        assert_eq!(
            metadata
                .sample(AuthorCountBucket::of(MANY), None)
                .map(|variant| variant.status_flags),
            Some(ends(0x20))
        );
        // And the other way round.
        metadata.record_sample(
            AuthorCountBucket::of(FEW),
            None,
            read(&columns([0x0001, 0x1001])),
            ends(2),
        );
        assert!(put_back(
            &metadata,
            AuthorCountBucket::of(FEW),
            &mut narrowed
        ));
        assert_eq!(narrowed, columns([0x0001, 0x1001]));
    }

    #[test]
    fn unknown_or_different_columns_are_unchanged() {
        let mut metadata = TemplateMetadata::default();
        let mut direct = columns([0x4203, 0x1001]);
        assert!(!put_back(
            &metadata,
            AuthorCountBucket::of(MANY),
            &mut direct
        ));
        metadata.record_sample(
            AuthorCountBucket::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(2),
        );
        assert!(!put_back(
            &metadata,
            AuthorCountBucket::of(FEW),
            &mut direct
        ));
        // NOT_NULL is no key flag.
        let mut nullable = columns([0x4202, 0x1001]);
        assert!(!put_back(
            &metadata,
            AuthorCountBucket::of(MANY),
            &mut nullable
        ));
        assert_eq!(nullable, columns([0x4202, 0x1001]));
        let mut fewer = vec![definition("id", 0x4203)];
        assert!(!put_back(
            &metadata,
            AuthorCountBucket::of(MANY),
            &mut fewer
        ));
        assert_eq!(ColumnFingerprint::read([&b"abc"[..]]), None);
    }

    #[test]
    fn samples_belong_to_their_settings() {
        let mut metadata = SettingsMetadata::default();
        let record = |template: &mut TemplateMetadata| {
            template.record_sample(
                AuthorCountBucket::of(MANY),
                None,
                read(&columns([0x4203, 0x1001])),
                ends(2),
            );
        };
        for settings in 1..=8 {
            metadata.update(PlanSettings(settings), record);
        }
        assert!(
            metadata.for_settings(PlanSettings(1)).is_some()
                && metadata.for_settings(PlanSettings(9)).is_none()
        );
        // The latest eight.
        metadata.update(PlanSettings(1), |_| ());
        metadata.update(PlanSettings(9), record);
        let known = |settings: &u64| metadata.for_settings(PlanSettings(*settings)).is_some();
        let known: Vec<u64> = (0..=12).filter(known).collect();
        assert_eq!(known, [1, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_changed_table_voids_all_samples() {
        let mut metadata = TemplateMetadata::default();
        metadata.record_sample(
            AuthorCountBucket::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(2),
        );
        metadata.record_sample(
            AuthorCountBucket::of(FEW),
            None,
            read(&[definition("id", 0x4203)]),
            ends(2),
        );
        assert_eq!(metadata.sample(AuthorCountBucket::of(MANY), None), None);
        assert!(metadata.sample(AuthorCountBucket::of(FEW), None).is_some());
        metadata.forget();
        assert_eq!(metadata.sample(AuthorCountBucket::of(FEW), None), None);
    }

    #[test]
    fn other_differences_are_restored_under_the_same_plan_only() {
        let (plain, buffered) = (ServerPlan::new(vec![1]), ServerPlan::new(vec![2]));
        let (made, stored) = ([definition("", 0x0081)], [definition("x", 0x0001)]);
        let few = AuthorCountBucket::of(FEW);
        let mut metadata = TemplateMetadata::default();
        metadata.record_sample(few, Some(plain.clone()), read(&made), ends(2));
        metadata.record_sample(few, Some(buffered.clone()), read(&stored), ends(2));
        let restores = |variants: &TemplateMetadata, plan, own: &[Vec<u8>]| {
            variants
                .restored_columns(few, Some(plan), &read(own))
                .is_some()
        };
        assert!(restores(&metadata, &plain, &made) && !restores(&metadata, &plain, &stored));
        assert!(restores(&metadata, &buffered, &stored) && !restores(&metadata, &buffered, &made));
        // The next one goes through a temporary table. If that does not help either, no more are tried.
        assert!(!metadata.is_buffered(&buffered));
        metadata.record_difference(&buffered);
        assert!(metadata.is_buffered(&buffered) && !metadata.is_buffered(&plain));
        assert_eq!(metadata.plan_knowledge(&buffered), PlanKnowledge::Known);
        metadata.record_difference(&buffered);
        assert_eq!(metadata.plan_knowledge(&buffered), PlanKnowledge::Differs);
        assert_eq!(metadata.plan_knowledge(&plain), PlanKnowledge::Known);
    }

    #[test]
    fn what_a_plan_gives_is_known_until_it_gives_something_else() {
        let (one, other) = (ServerPlan::new(vec![1]), ServerPlan::new(vec![2]));
        let (keys, none) = (columns([0x4203, 0x1001]), columns([0x0001, 0x1001]));
        let few = AuthorCountBucket::of(FEW);
        let mut metadata = TemplateMetadata::default();
        metadata.record_sample(few, Some(one.clone()), read(&keys), ends(2));
        metadata.record_sample(few, Some(other.clone()), read(&none), ends(2));
        assert_eq!(metadata.plan_knowledge(&one), PlanKnowledge::Known);
        assert_eq!(
            metadata.sample(few, Some(&one)).map(|it| &it.key_flags[..]),
            Some(&[0x4202, 0][..])
        );
        metadata.record_sample(few, Some(one.clone()), read(&none), ends(2));
        assert_eq!(metadata.plan_knowledge(&one), PlanKnowledge::Differs);
        assert_eq!(metadata.sample(few, Some(&one)), None);
        assert_eq!(metadata.plan_knowledge(&other), PlanKnowledge::Known);
        for number in 3..200 {
            metadata.record_sample(
                few,
                Some(ServerPlan::new(vec![number])),
                read(&none),
                ends(2),
            );
        }
        assert_eq!(
            metadata.plan_knowledge(&ServerPlan::new(vec![199])),
            PlanKnowledge::Unknown
        );
    }
}
