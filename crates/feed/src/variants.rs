//! What the server says of a template's columns, as it said it itself: learned from statements that were asked directly.
//!
//! Key flags in column definitions depend on the plan, and the plan on the statement. So those of a narrowed answer are put back to
//! what the server gave for the same template and about as many authors. Where anything else differs, nothing is put back. Where plans change
//! more than key flags ([`crate::described`]), only what was learned under the very plan is told.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::cost::Crowd;

/// NOT_NULL, BINARY and the like stay as they are; these follow the plan: PRI_KEY, UNIQUE_KEY, MULTIPLE_KEY, AUTO_INCREMENT,
/// TIMESTAMP, ON_UPDATE_NOW, PART_KEY.
pub const KEY_FLAGS: u16 = 0x660e;

/// What else descriptions of columns follow: the session's settings and what its client can read, as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Under(pub u64);

/// The columns of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// All definitions, their key flags taken out, as one number.
    common: u64,
    /// The key flags of each.
    flags: Vec<u16>,
}

/// Status flags that follow the plan: no index, no good index. They are told behind the columns, where an EOF stands there, and at
/// the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Behind the columns.
    pub columns: u16,
    /// At the end.
    pub last: u16,
}

impl Ends {
    /// SERVER_QUERY_NO_GOOD_INDEX_USED and SERVER_QUERY_NO_INDEX_USED. That a statement was slow is never learned.
    pub const FLAGS: u16 = 0x30;
}

/// One way in which the server has answered: its key flags, and the status flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// All definitions, their key flags taken out, as one number.
    common: u64,
    /// Key flags of each column.
    flags: Vec<u16>,
    /// Status flags, those of the plan alone.
    pub ends: Ends,
}

/// What is known under one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnderPlan {
    variant: Variant,
    /// A narrowed answer is described alike where it comes through a temporary table.
    buffered: bool,
}

/// How the server goes about a statement, as it says itself, without its estimates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plan(Vec<u8>);

impl Plan {
    /// What the server said.
    #[must_use]
    pub fn new(said: Vec<u8>) -> Plan {
        Plan(said)
    }
}

/// What is known of columns under a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
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
pub struct Variants {
    of_crowd: [Option<Variant>; Crowd::COUNT],
    /// `None`: it was not always the same, or a narrowed answer is never described alike.
    of_plan: BTreeMap<Plan, Option<UnderPlan>>,
}

/// What was learned of one template under each of the settings that sessions have: the latest last, and no more than
/// [`Self::MOST`].
#[derive(Clone, Debug, Default)]
pub struct Learned(Vec<(Under, Variants)>);

impl Learned {
    /// Under so many settings something is remembered.
    pub const MOST: usize = 8;

    /// What was learned under these.
    #[must_use]
    pub fn under(&self, under: Under) -> Option<&Variants> {
        let own = self.0.iter().find(|(own, _)| *own == under);
        own.map(|(_, variants)| variants)
    }

    /// Changes that. Where there is nothing yet, what was changed longest ago makes room.
    pub fn change<T>(&mut self, under: Under, change: impl FnOnce(&mut Variants) -> T) -> T {
        let own = self.0.iter().position(|(own, _)| *own == under);
        let mut variants = own.map(|at| self.0.remove(at).1).unwrap_or_default();
        let changed = change(&mut variants);
        if self.0.len() == Self::MOST {
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

impl Columns {
    /// Of the payloads of column definitions. `None`: one of them is too short to be one.
    #[must_use]
    pub fn read<'a>(definitions: impl IntoIterator<Item = &'a [u8]>) -> Option<Columns> {
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
        Some(Columns {
            common: common.finish(),
            flags,
        })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.flags.len()
    }

    /// Puts the key flags of column definitions to these; each is the payload of one.
    pub fn put(&self, definitions: &mut [&mut [u8]]) {
        for (definition, flags) in definitions.iter_mut().zip(&self.flags) {
            let at = flags_at(definition);
            if let Some([low, high]) = at.and_then(|at| definition.get_mut(at..at + 2)) {
                let own = u16::from_le_bytes([*low, *high]);
                [*low, *high] = (own & !KEY_FLAGS | flags).to_le_bytes();
            }
        }
    }
}

impl Variants {
    /// The server has answered a direct statement so, by that plan if it was asked.
    pub fn learn(&mut self, crowd: Crowd, plan: Option<Plan>, columns: Columns, ends: Ends) {
        let mut known = self.of_crowd.iter().flatten();
        if plan.is_none() && known.any(|known| known.common != columns.common) {
            // The tables have changed: what was learned before says nothing any more.
            self.forget();
        }
        let seen = Variant {
            common: columns.common,
            flags: columns.flags,
            ends: Ends {
                columns: ends.columns & Ends::FLAGS,
                last: ends.last & Ends::FLAGS,
            },
        };
        if let Some(plan) = plan {
            let has_room = self.of_plan.len() < MOST_PLANS;
            match self.of_plan.get_mut(&plan) {
                Some(known) => *known = known.take().filter(|known| known.variant == seen),
                None if has_room => {
                    let known = UnderPlan {
                        variant: seen.clone(),
                        buffered: false,
                    };
                    self.of_plan.insert(plan, Some(known));
                }
                None => {}
            }
        }
        if let Some(variant) = self.of_crowd.get_mut(crowd.number()) {
            *variant = Some(seen);
        }
    }

    /// What is known under a plan.
    #[must_use]
    pub fn planned(&self, plan: &Plan) -> Planned {
        match self.of_plan.get(plan) {
            Some(Some(_)) => Planned::Known,
            Some(None) => Planned::Differs,
            None => Planned::Unknown,
        }
    }

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        *self = Variants::default();
    }

    /// What the server gives by a plan, or for so many authors where none was asked for, if it is known.
    #[must_use]
    pub fn of(&self, crowd: Crowd, plan: Option<&Plan>) -> Option<&Variant> {
        match plan {
            Some(plan) => self.of_plan.get(plan)?.as_ref().map(|known| &known.variant),
            None => self.of_crowd.get(crowd.number())?.as_ref(),
        }
    }

    /// The columns that the server gives directly. `None`: they are not known, or others than these in more than key flags.
    #[must_use]
    pub fn told(&self, crowd: Crowd, plan: Option<&Plan>, own: &Columns) -> Option<Columns> {
        let variant = self.of(crowd, plan)?;
        (own.common == variant.common).then(|| Columns {
            common: variant.common,
            flags: variant.flags.clone(),
        })
    }

    /// True where a narrowed answer is to come through a temporary table, to be described as under this plan.
    #[must_use]
    pub fn is_buffered(&self, plan: &Plan) -> bool {
        let known = self.of_plan.get(plan).and_then(Option::as_ref);
        known.is_some_and(|known| known.buffered)
    }

    /// A narrowed answer is described in another way than is known under this plan: the next one comes through a temporary table, and behind that
    /// none.
    pub fn differs(&mut self, plan: &Plan) {
        if let Some(known) = self.of_plan.get_mut(plan) {
            let other = known.take().filter(|known| !known.buffered);
            *known = other.map(|known| UnderPlan {
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

    fn read(columns: &[Vec<u8>]) -> Columns {
        Columns::read(columns.iter().map(Vec::as_slice)).unwrap()
    }

    fn put_back(variants: &Variants, crowd: Crowd, columns: &mut [Vec<u8>]) -> bool {
        let Some(told) = variants.told(crowd, None, &read(columns)) else {
            return false;
        };
        let mut all: Vec<&mut [u8]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
        told.put(&mut all);
        true
    }

    fn ends(last: u16) -> Ends {
        Ends { columns: 0, last }
    }

    const FEW: usize = 5;
    const MANY: usize = 60;

    #[test]
    fn key_flags_are_put_back_to_what_the_server_gave() {
        let mut variants = Variants::default();
        variants.learn(
            Crowd::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(0x22),
        );
        let mut narrowed = columns([0x0001, 0x1001]);
        assert!(put_back(&variants, Crowd::of(MANY), &mut narrowed));
        assert_eq!(narrowed, columns([0x4203, 0x1001]));
        assert_eq!(
            variants
                .of(Crowd::of(MANY), None)
                .map(|variant| variant.ends),
            Some(ends(0x20))
        );
        // And the other way round.
        variants.learn(
            Crowd::of(FEW),
            None,
            read(&columns([0x0001, 0x1001])),
            ends(2),
        );
        assert!(put_back(&variants, Crowd::of(FEW), &mut narrowed));
        assert_eq!(narrowed, columns([0x0001, 0x1001]));
    }

    #[test]
    fn what_is_not_known_or_differs_is_left() {
        let mut variants = Variants::default();
        let mut own = columns([0x4203, 0x1001]);
        assert!(!put_back(&variants, Crowd::of(MANY), &mut own));
        variants.learn(
            Crowd::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(2),
        );
        assert!(!put_back(&variants, Crowd::of(FEW), &mut own));
        // NOT_NULL is no key flag.
        let mut nullable = columns([0x4202, 0x1001]);
        assert!(!put_back(&variants, Crowd::of(MANY), &mut nullable));
        assert_eq!(nullable, columns([0x4202, 0x1001]));
        let mut fewer = vec![definition("id", 0x4203)];
        assert!(!put_back(&variants, Crowd::of(MANY), &mut fewer));
        assert_eq!(Columns::read([&b"abc"[..]]), None);
    }

    #[test]
    fn what_is_learned_under_some_settings_says_nothing_of_others() {
        let mut learned = Learned::default();
        let learn = |variants: &mut Variants| {
            variants.learn(
                Crowd::of(MANY),
                None,
                read(&columns([0x4203, 0x1001])),
                ends(2),
            );
        };
        for settings in 1..=8 {
            learned.change(Under(settings), learn);
        }
        assert!(learned.under(Under(1)).is_some() && learned.under(Under(9)).is_none());
        // The latest eight.
        learned.change(Under(1), |_| ());
        learned.change(Under(9), learn);
        let known = |settings: &u64| learned.under(Under(*settings)).is_some();
        let known: Vec<u64> = (0..=12).filter(known).collect();
        assert_eq!(known, [1, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn another_table_makes_all_be_learned_anew() {
        let mut variants = Variants::default();
        variants.learn(
            Crowd::of(MANY),
            None,
            read(&columns([0x4203, 0x1001])),
            ends(2),
        );
        variants.learn(
            Crowd::of(FEW),
            None,
            read(&[definition("id", 0x4203)]),
            ends(2),
        );
        assert_eq!(variants.of(Crowd::of(MANY), None), None);
        assert!(variants.of(Crowd::of(FEW), None).is_some());
        variants.forget();
        assert_eq!(variants.of(Crowd::of(FEW), None), None);
    }

    #[test]
    fn what_plans_change_beside_key_flags_is_told_under_the_very_plan_alone() {
        let (plain, buffered) = (Plan::new(vec![1]), Plan::new(vec![2]));
        let (made, stored) = ([definition("", 0x0081)], [definition("x", 0x0001)]);
        let few = Crowd::of(FEW);
        let mut variants = Variants::default();
        variants.learn(few, Some(plain.clone()), read(&made), ends(2));
        variants.learn(few, Some(buffered.clone()), read(&stored), ends(2));
        let told = |variants: &Variants, plan, own: &[Vec<u8>]| {
            variants.told(few, Some(plan), &read(own)).is_some()
        };
        assert!(told(&variants, &plain, &made) && !told(&variants, &plain, &stored));
        assert!(told(&variants, &buffered, &stored) && !told(&variants, &buffered, &made));
        // It is asked for through a temporary table then, and where that does not help either not any more.
        assert!(!variants.is_buffered(&buffered));
        variants.differs(&buffered);
        assert!(variants.is_buffered(&buffered) && !variants.is_buffered(&plain));
        assert_eq!(variants.planned(&buffered), Planned::Known);
        variants.differs(&buffered);
        assert_eq!(variants.planned(&buffered), Planned::Differs);
        assert_eq!(variants.planned(&plain), Planned::Known);
    }

    #[test]
    fn what_a_plan_gives_is_known_until_it_gives_something_else() {
        let (one, other) = (Plan::new(vec![1]), Plan::new(vec![2]));
        let (keys, none) = (columns([0x4203, 0x1001]), columns([0x0001, 0x1001]));
        let few = Crowd::of(FEW);
        let mut variants = Variants::default();
        variants.learn(few, Some(one.clone()), read(&keys), ends(2));
        variants.learn(few, Some(other.clone()), read(&none), ends(2));
        assert_eq!(variants.planned(&one), Planned::Known);
        assert_eq!(
            variants.of(few, Some(&one)).map(|it| &it.flags[..]),
            Some(&[0x4202, 0][..])
        );
        variants.learn(few, Some(one.clone()), read(&none), ends(2));
        assert_eq!(variants.planned(&one), Planned::Differs);
        assert_eq!(variants.of(few, Some(&one)), None);
        assert_eq!(variants.planned(&other), Planned::Known);
        for number in 3..200 {
            variants.learn(few, Some(Plan::new(vec![number])), read(&none), ends(2));
        }
        assert_eq!(variants.planned(&Plan::new(vec![199])), Planned::Unknown);
    }
}
