//! Whatever happens in whatever order, a page that is answered is the server's at the index's position.

use proptest::prelude::*;

use super::super::MessageRange;
use super::model::{ServerModel, TableWrite, TablesModel};

const READERS: u64 = 3;
const AUTHORS: u64 = 5;
const IDS: u64 = 40;

#[derive(Clone, Debug)]
enum ScenarioStep {
    Commit(Vec<TableWrite>),
    FollowLog(usize),
    BeginReader(u64),
    BeginAuthor(u64, Option<u64>, usize),
    /// Begins the loads that a page lacks.
    Begin(u64, Option<u64>, usize),
    Finish(usize, usize, usize, usize),
    GiveUp(usize),
    Clear,
    /// The stream is lost, and resumes at the index's position.
    Resume,
    /// The index moves to another server, whose rows differ by this.
    Move(Vec<TableWrite>),
    Budget(usize),
}

fn write() -> impl Strategy<Value = TableWrite> {
    let id = || 0..IDS;
    let author = || 0..AUTHORS;
    prop_oneof![
        60 => (id(), author(), any::<bool>())
            .prop_map(|(id, author, named)| TableWrite::Post { id, author, named }),
        30 => (id(), any::<bool>()).prop_map(|(id, named)| TableWrite::Remove { id, named }),
        12 => (0..READERS, author()).prop_map(|(reader, author)| TableWrite::Follow(reader, author)),
        8 => (0..READERS, author()).prop_map(|(reader, author)| TableWrite::Unfollow(reader, author)),
        1 => (1u64..4).prop_map(TableWrite::LoseMessages),
        1 => (author(), 1u64..4).prop_map(|(author, modulus)| TableWrite::LoseMessagesOf(author, modulus)),
        1 => (1u64..4).prop_map(TableWrite::LoseFollows),
    ]
}

fn bound() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..IDS + 2).prop_map(Some)]
}

fn step() -> impl Strategy<Value = ScenarioStep> {
    let load = (0usize..8, 0usize..30, 0usize..30, 1usize..8);
    prop_oneof![
        30 => proptest::collection::vec(write(), 0..5).prop_map(ScenarioStep::Commit),
        30 => (1usize..6).prop_map(ScenarioStep::FollowLog),
        5 => (0..READERS).prop_map(ScenarioStep::BeginReader),
        10 => (0..AUTHORS, bound(), 0usize..5).prop_map(|(a, b, n)| ScenarioStep::BeginAuthor(a, b, n)),
        25 => (0..READERS, bound(), 0usize..5).prop_map(|(r, b, n)| ScenarioStep::Begin(r, b, n)),
        50 => load.prop_map(|(which, cut, later, limit)| ScenarioStep::Finish(which, cut, later, limit)),
        4 => (0usize..8).prop_map(ScenarioStep::GiveUp),
        1 => Just(ScenarioStep::Clear),
        3 => Just(ScenarioStep::Resume),
        3 => proptest::collection::vec(write(), 0..4).prop_map(ScenarioStep::Move),
        1 => prop_oneof![1_500usize..4_000, Just(1 << 20)].prop_map(ScenarioStep::Budget),
    ]
}

fn tables() -> impl Strategy<Value = TablesModel> {
    let messages = proptest::collection::btree_map(0..IDS, 0..AUTHORS, 0..40);
    let follows = proptest::collection::btree_set((0..READERS, 0..AUTHORS), 0..15);
    (messages, follows).prop_map(|(messages, follows)| TablesModel { messages, follows })
}

fn apply_step(world: &mut ServerModel, step: ScenarioStep) {
    match step {
        ScenarioStep::Commit(writes) => world.commit(&writes),
        ScenarioStep::FollowLog(steps) => world.follow_log(steps),
        ScenarioStep::BeginReader(reader) => world.begin_reader(reader),
        ScenarioStep::BeginAuthor(author, bound, n) => world.begin_author(author, bound, n),
        ScenarioStep::Begin(reader, bound, n) => {
            if let Err(missing) = world.index.page(reader, bound, n) {
                world.begin(reader, bound, n, &missing);
            }
        }
        ScenarioStep::Finish(which, cut, later, limit) => world.finish(which, cut, later, limit),
        ScenarioStep::GiveUp(which) => world.give_up(which),
        ScenarioStep::Clear => world.index.clear(),
        ScenarioStep::Resume => {
            let position = world.index.position();
            world.index.resume(position);
        }
        ScenarioStep::Move(drift) => world.move_to(&drift),
        ScenarioStep::Budget(bytes) => world.index.budget = bytes,
    }
}

/// Every page that is answered is the right one. Returns how many were.
fn check(world: &ServerModel) -> Result<usize, TestCaseError> {
    let mut answered = 0;
    for reader in 0..READERS {
        for bound in [
            None,
            Some(0),
            Some(7),
            Some(15),
            Some(23),
            Some(31),
            Some(38),
        ] {
            for n in [0, 1, 2, 4] {
                if let Ok(page) = world.index.page(reader, bound, n) {
                    let expected = world.now().page(reader, bound, n);
                    prop_assert_eq!(&page, &expected, "reader {}, {:?}, {}", reader, bound, n);
                    answered += 1;
                }
            }
        }
    }
    check_newest(world)?;
    Ok(answered)
}

/// So are the newest messages of any authors.
fn check_newest(world: &ServerModel) -> Result<(), TestCaseError> {
    for authors in [&[0][..], &[1, 3], &[0, 1, 2, 3, 4]] {
        for upper in [None, Some(0), Some(17), Some(31)] {
            for lower in [0, 12] {
                for most in [1, 2, 5, 60] {
                    let range = MessageRange {
                        upper,
                        lower,
                        limit: most,
                    };
                    if let Ok(newest) = world.index.newest_messages(authors, range) {
                        let expected = world.now().newest(authors, range);
                        prop_assert_eq!(newest, expected, "{:?}, {:?}", authors, range);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The requested loads suffice in the end.
fn arrives(world: &mut ServerModel) -> Result<(), TestCaseError> {
    world.index.budget = 1 << 24;
    for reader in 0..READERS {
        for bound in [None, Some(9)] {
            let mut rounds = 0;
            while let Err(missing) = world.index.page(reader, bound, 4) {
                world.begin(reader, bound, 4, &missing);
                while world.loads() > 0 {
                    world.finish(0, rounds, 0, 1 + rounds % 3);
                }
                world.follow_log(usize::MAX);
                rounds += 1;
                prop_assert!(rounds < 80, "{:?}", missing);
            }
        }
    }
    check(world)?;
    arrives_for_authors(world)
}

/// The same without any reader's follow list.
fn arrives_for_authors(world: &mut ServerModel) -> Result<(), TestCaseError> {
    for (upper, lower, most) in [(None, 0, 3), (Some(25), 0, 60), (Some(33), 12, 60)] {
        let range = MessageRange {
            upper,
            lower,
            limit: most,
        };
        let mut rounds = 0;
        while let Err(missing) = world.index.newest_messages(&[0, 2, 4], range) {
            for author in missing {
                world.begin_author(author, upper, most);
            }
            while world.loads() > 0 {
                world.finish(0, rounds, 0, 1 + rounds % 3);
            }
            world.follow_log(usize::MAX);
            rounds += 1;
            prop_assert!(rounds < 80, "{:?}", range);
        }
    }
    check_newest(world)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_can_happen_is_never_called_a_contradiction(
        start in tables(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = ServerModel::new(1 << 20, start);
        world.truthful = true;
        for step in steps {
            apply_step(&mut world, step);
        }
        arrives(&mut world)?;
        prop_assert_eq!(world.index.contradiction_count(), 0);
    }

    #[test]
    fn pages_are_the_servers(
        start in tables(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = ServerModel::new(1 << 20, start);
        for step in steps {
            apply_step(&mut world, step);
            check(&world)?;
            prop_assert_eq!(world.index.bytes(), world.index.counted(), "bytes");
        }
        arrives(&mut world)?;
    }
}
