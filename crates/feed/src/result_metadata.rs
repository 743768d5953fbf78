//! What the server says of a template's columns, as it said it itself: learned from statements that were asked directly.
//!
//! Key flags in column definitions depend on the plan, and the plan on the statement. So those of a narrowed answer are put back to
//! what the server gave for the same template and about as many authors. Where anything else differs, nothing is put back. Where plans change
//! more than key flags ([`crate::plan_dependence`]), only what was learned under the very plan is told.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::cost::AuthorCountBucket;

/// NOT_NULL, BINARY and the like stay as they are; these follow the plan: PRI_KEY, UNIQUE_KEY, MULTIPLE_KEY, AUTO_INCREMENT,
/// TIMESTAMP, ON_UPDATE_NOW, PART_KEY.
pub const KEY_FLAGS: u16 = 0x660e;

/// What else descriptions of columns follow: the session's settings and what its client can read, as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlanSettings(pub u64);

/// The columns of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnFingerprint {
    /// All definitions, their key flags taken out, as one number.
    definitions_hash: u64,
    /// The key flags of each.
    key_flags: Vec<u16>,
}

/// Status flags that follow the plan: no index, no good index. They are told behind the columns, where an EOF stands there, and at
/// the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanStatusFlags {
    /// Behind the columns.
    pub after_columns: u16,
    /// At the end.
    pub at_end: u16,
}

impl PlanStatusFlags {
    /// SERVER_QUERY_NO_GOOD_INDEX_USED and SERVER_QUERY_NO_INDEX_USED. That a statement was slow is never learned.
    pub const FLAGS: u16 = 0x30;
}

/// One way in which the server has answered: its key flags, and the status flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMetadata {
    /// All definitions, their key flags taken out, as one number.
    definitions_hash: u64,
    /// Key flags of each column.
    key_flags: Vec<u16>,
    /// Status flags, those of the plan alone.
    pub status_flags: PlanStatusFlags,
}

/// What is known under one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanMetadata {
    metadata: SampledMetadata,
    /// A narrowed answer is described alike where it comes through a temporary table.
    buffered: bool,
}

/// How the server goes about a statement, as it says itself, without its estimates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerPlan(Vec<u8>);

impl ServerPlan {
    /// What the server said.
    #[must_use]
    pub fn new(said: Vec<u8>) -> ServerPlan {
        ServerPlan(said)
    }
}

/// What is known of columns under a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKnowledge {
    /// How they are described.
    Known,
    /// Nothing.
    Unknown,
    /// They were described in different ways under it.
    Differs,
}

/// More plans are not remembered of one template.
const MOST_PLANS: usize = 64;

/// What was learned of one template.
#[derive(Clone, Debug, Default)]
pub struct TemplateMetadata {
    by_author_count: [Option<SampledMetadata>; AuthorCountBucket::COUNT],
    /// `None`: it was not always the same, or a narrowed answer is never described alike.
    by_plan: BTreeMap<ServerPlan, Option<PlanMetadata>>,
}

/// What was learned of one template under each of the settings that sessions have: the latest last, and no more than
/// [`Self::MOST_SETTINGS`].
#[derive(Clone, Debug, Default)]
pub struct SettingsMetadata(Vec<(PlanSettings, TemplateMetadata)>);

impl SettingsMetadata {
    /// Under so many settings something is remembered.
    pub const MOST_SETTINGS: usize = 8;

    /// What was learned under these.
    #[must_use]
    pub fn for_settings(&self, under: PlanSettings) -> Option<&TemplateMetadata> {
        let own = self.0.iter().find(|(own, _)| *own == under);
        own.map(|(_, variants)| variants)
    }

    /// Changes that. Where there is nothing yet, what was changed longest ago makes room.
    pub fn update<T>(
        &mut self,
        under: PlanSettings,
        change: impl FnOnce(&mut TemplateMetadata) -> T,
    ) -> T {
        let own = self.0.iter().position(|(own, _)| *own == under);
        let mut variants = own.map(|at| self.0.remove(at).1).unwrap_or_default();
        let changed = change(&mut variants);
        if self.0.len() == Self::MOST_SETTINGS {
            self.0.remove(0);
        }
        self.0.push((under, variants));
        changed
    }
}

/// Where the flags stand in the payload of a column definition: behind them come the decimals and two bytes of nothing.
#[must_use]
pub fn flags_at(definition: &[u8]) -> Option<usize> {
    definition.len().checked_sub(5)
}

impl ColumnFingerprint {
    /// Of the payloads of column definitions. `None`: one of them is too short to be one.
    #[must_use]
    pub fn read<'a>(definitions: impl IntoIterator<Item = &'a [u8]>) -> Option<ColumnFingerprint> {
        let mut flags = Vec::new();
        let mut common = DefaultHasher::new();
        for definition in definitions {
            let (before, from_flags) = definition.split_at_checked(flags_at(definition)?)?;
            let (own, behind) = from_flags.split_first_chunk()?;
            let own = u16::from_le_bytes(*own);
            (before, own & !KEY_FLAGS, behind).hash(&mut common);
            flags.push(own & KEY_FLAGS);
        }
        flags.len().hash(&mut common);
        Some(ColumnFingerprint {
            definitions_hash: common.finish(),
            key_flags: flags,
        })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.key_flags.len()
    }

    /// Puts the key flags of column definitions to these; each is the payload of one.
    pub fn restore_key_flags(&self, definitions: &mut [&mut [u8]]) {
        for (definition, flags) in definitions.iter_mut().zip(&self.key_flags) {
            let at = flags_at(definition);
            if let Some([low, high]) = at.and_then(|at| definition.get_mut(at..at + 2)) {
                let own = u16::from_le_bytes([*low, *high]);
                [*low, *high] = (own & !KEY_FLAGS | flags).to_le_bytes();
            }
        }
    }
}

impl TemplateMetadata {
    /// The server has answered a direct statement so, by that plan if it was asked.
    pub fn record_sample(
        &mut self,
        crowd: AuthorCountBucket,
        plan: Option<ServerPlan>,
        columns: ColumnFingerprint,
        ends: PlanStatusFlags,
    ) {
        let mut known = self.by_author_count.iter().flatten();
        if plan.is_none() && known.any(|known| known.definitions_hash != columns.definitions_hash) {
            // The tables have changed: what was learned before says nothing any more.
            self.forget();
        }
        let seen = SampledMetadata {
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
                Some(known) => *known = known.take().filter(|known| known.metadata == seen),
                None if has_room => {
                    let known = PlanMetadata {
                        metadata: seen.clone(),
                        buffered: false,
                    };
                    self.by_plan.insert(plan, Some(known));
                }
                None => {}
            }
        }
        if let Some(variant) = self.by_author_count.get_mut(crowd.number()) {
            *variant = Some(seen);
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

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        *self = TemplateMetadata::default();
    }

    /// What the server gives by a plan, or for so many authors where none was asked for, if it is known.
    #[must_use]
    pub fn sample(
        &self,
        crowd: AuthorCountBucket,
        plan: Option<&ServerPlan>,
    ) -> Option<&SampledMetadata> {
        match plan {
            Some(plan) => self
                .by_plan
                .get(plan)?
                .as_ref()
                .map(|known| &known.metadata),
            None => self.by_author_count.get(crowd.number())?.as_ref(),
        }
    }

    /// The columns that the server gives directly. `None`: they are not known, or others than these in more than key flags.
    #[must_use]
    pub fn restored_columns(
        &self,
        crowd: AuthorCountBucket,
        plan: Option<&ServerPlan>,
        own: &ColumnFingerprint,
    ) -> Option<ColumnFingerprint> {
        let variant = self.sample(crowd, plan)?;
        (own.definitions_hash == variant.definitions_hash).then(|| ColumnFingerprint {
            definitions_hash: variant.definitions_hash,
            key_flags: variant.key_flags.clone(),
        })
    }

    /// True where a narrowed answer is to come through a temporary table, to be described as under this plan.
    #[must_use]
    pub fn is_buffered(&self, plan: &ServerPlan) -> bool {
        let known = self.by_plan.get(plan).and_then(Option::as_ref);
        known.is_some_and(|known| known.buffered)
    }

    /// A narrowed answer is described in another way than is known under this plan: the next one comes through a temporary table, and behind that
    /// none.
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

    /// The end of a definition with these flags, behind a name.
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
        variants: &TemplateMetadata,
        crowd: AuthorCountBucket,
        columns: &mut [Vec<u8>],
    ) -> bool {
        let Some(told) = variants.restored_columns(crowd, None, &read(columns)) else {
            return false;
        };
        let mut all: Vec<&mut [u8]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
        told.restore_key_flags(&mut all);
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
        let mut variants = TemplateMetadata::default();
        variants.record_sample(
            AuthorCountBucket::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(0x22),
        );
        let mut narrowed = columns([0x0001, 0x1001]);
        assert!(put_back(
            &variants,
            AuthorCountBucket::of(MANY),
            &mut narrowed
        ));
        assert_eq!(narrowed, columns([0x4203, 0x1001]));
        assert_eq!(
            variants
                .sample(AuthorCountBucket::of(MANY), None)
                .map(|variant| variant.status_flags),
            Some(ends(0x20))
        );
        // And the other way round.
        variants.record_sample(
            AuthorCountBucket::of(FEW),
            None,
            read(&columns([0x0001, 0x1001])),
            ends(2),
        );
        assert!(put_back(
            &variants,
            AuthorCountBucket::of(FEW),
            &mut narrowed
        ));
        assert_eq!(narrowed, columns([0x0001, 0x1001]));
    }

    #[test]
    fn what_is_not_known_or_differs_is_left() {
        let mut variants = TemplateMetadata::default();
        let mut own = columns([0x4203, 0x1001]);
        assert!(!put_back(&variants, AuthorCountBucket::of(MANY), &mut own));
        variants.record_sample(
            AuthorCountBucket::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(2),
        );
        assert!(!put_back(&variants, AuthorCountBucket::of(FEW), &mut own));
        // NOT_NULL is no key flag.
        let mut nullable = columns([0x4202, 0x1001]);
        assert!(!put_back(
            &variants,
            AuthorCountBucket::of(MANY),
            &mut nullable
        ));
        assert_eq!(nullable, columns([0x4202, 0x1001]));
        let mut fewer = vec![definition("id", 0x4203)];
        assert!(!put_back(
            &variants,
            AuthorCountBucket::of(MANY),
            &mut fewer
        ));
        assert_eq!(ColumnFingerprint::read([&b"abc"[..]]), None);
    }

    #[test]
    fn what_is_learned_under_some_settings_says_nothing_of_others() {
        let mut learned = SettingsMetadata::default();
        let learn = |variants: &mut TemplateMetadata| {
            variants.record_sample(
                AuthorCountBucket::of(MANY),
                None,
                read(&columns([0x4203, 0x1001])),
                ends(2),
            );
        };
        for settings in 1..=8 {
            learned.update(PlanSettings(settings), learn);
        }
        assert!(
            learned.for_settings(PlanSettings(1)).is_some()
                && learned.for_settings(PlanSettings(9)).is_none()
        );
        // The latest eight.
        learned.update(PlanSettings(1), |_| ());
        learned.update(PlanSettings(9), learn);
        let known = |settings: &u64| learned.for_settings(PlanSettings(*settings)).is_some();
        let known: Vec<u64> = (0..=12).filter(known).collect();
        assert_eq!(known, [1, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn another_table_makes_all_be_learned_anew() {
        let mut variants = TemplateMetadata::default();
        variants.record_sample(
            AuthorCountBucket::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(2),
        );
        variants.record_sample(
            AuthorCountBucket::of(FEW),
            None,
            read(&[definition("id", 0x4203)]),
            ends(2),
        );
        assert_eq!(variants.sample(AuthorCountBucket::of(MANY), None), None);
        assert!(variants.sample(AuthorCountBucket::of(FEW), None).is_some());
        variants.forget();
        assert_eq!(variants.sample(AuthorCountBucket::of(FEW), None), None);
    }

    #[test]
    fn what_plans_change_beside_key_flags_is_told_under_the_very_plan_alone() {
        let (plain, buffered) = (ServerPlan::new(vec![1]), ServerPlan::new(vec![2]));
        let (made, stored) = ([definition("", 0x0081)], [definition("x", 0x0001)]);
        let few = AuthorCountBucket::of(FEW);
        let mut variants = TemplateMetadata::default();
        variants.record_sample(few, Some(plain.clone()), read(&made), ends(2));
        variants.record_sample(few, Some(buffered.clone()), read(&stored), ends(2));
        let told = |variants: &TemplateMetadata, plan, own: &[Vec<u8>]| {
            variants
                .restored_columns(few, Some(plan), &read(own))
                .is_some()
        };
        assert!(told(&variants, &plain, &made) && !told(&variants, &plain, &stored));
        assert!(told(&variants, &buffered, &stored) && !told(&variants, &buffered, &made));
        // It is asked for through a temporary table then, and where that does not help either not any more.
        assert!(!variants.is_buffered(&buffered));
        variants.record_difference(&buffered);
        assert!(variants.is_buffered(&buffered) && !variants.is_buffered(&plain));
        assert_eq!(variants.plan_knowledge(&buffered), PlanKnowledge::Known);
        variants.record_difference(&buffered);
        assert_eq!(variants.plan_knowledge(&buffered), PlanKnowledge::Differs);
        assert_eq!(variants.plan_knowledge(&plain), PlanKnowledge::Known);
    }

    #[test]
    fn what_a_plan_gives_is_known_until_it_gives_something_else() {
        let (one, other) = (ServerPlan::new(vec![1]), ServerPlan::new(vec![2]));
        let (keys, none) = (columns([0x4203, 0x1001]), columns([0x0001, 0x1001]));
        let few = AuthorCountBucket::of(FEW);
        let mut variants = TemplateMetadata::default();
        variants.record_sample(few, Some(one.clone()), read(&keys), ends(2));
        variants.record_sample(few, Some(other.clone()), read(&none), ends(2));
        assert_eq!(variants.plan_knowledge(&one), PlanKnowledge::Known);
        assert_eq!(
            variants.sample(few, Some(&one)).map(|it| &it.key_flags[..]),
            Some(&[0x4202, 0][..])
        );
        variants.record_sample(few, Some(one.clone()), read(&none), ends(2));
        assert_eq!(variants.plan_knowledge(&one), PlanKnowledge::Differs);
        assert_eq!(variants.sample(few, Some(&one)), None);
        assert_eq!(variants.plan_knowledge(&other), PlanKnowledge::Known);
        for number in 3..200 {
            variants.record_sample(
                few,
                Some(ServerPlan::new(vec![number])),
                read(&none),
                ends(2),
            );
        }
        assert_eq!(
            variants.plan_knowledge(&ServerPlan::new(vec![199])),
            PlanKnowledge::Unknown
        );
    }
}
