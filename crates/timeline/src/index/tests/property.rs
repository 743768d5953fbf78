//! Whatever happens in whatever order, a page that is answered is the server's at the index's position.

use proptest::prelude::*;

use super::super::Range;
use super::model::{Tables, World, Write};

const READERS: u64 = 3;
const AUTHORS: u64 = 5;
const IDS: u64 = 40;

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Write>),
    FollowLog(usize),
    BeginReader(u64),
    BeginAuthor(u64, Option<u64>, usize),
    /// What a page lacks is begun.
    Begin(u64, Option<u64>, usize),
    Finish(usize, usize, usize, usize),
    GiveUp(usize),
    Clear,
    /// The stream is lost, and goes on where the index stands.
    Resume,
    /// It goes on beside another server, whose rows differ by this.
    Move(Vec<Write>),
    Budget(usize),
}

fn write() -> impl Strategy<Value = Write> {
    let id = || 0..IDS;
    let author = || 0..AUTHORS;
    prop_oneof![
        60 => (id(), author(), any::<bool>())
            .prop_map(|(id, author, named)| Write::Post { id, author, named }),
        30 => (id(), any::<bool>()).prop_map(|(id, named)| Write::Remove { id, named }),
        12 => (0..READERS, author()).prop_map(|(reader, author)| Write::Follow(reader, author)),
        8 => (0..READERS, author()).prop_map(|(reader, author)| Write::Unfollow(reader, author)),
        1 => (1u64..4).prop_map(Write::LoseMessages),
        1 => (1u64..4).prop_map(Write::LoseFollows),
    ]
}

fn bound() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..IDS + 2).prop_map(Some)]
}

fn step() -> impl Strategy<Value = Step> {
    let load = (0usize..8, 0usize..30, 0usize..30, 1usize..8);
    prop_oneof![
        30 => proptest::collection::vec(write(), 0..5).prop_map(Step::Commit),
        30 => (1usize..6).prop_map(Step::FollowLog),
        5 => (0..READERS).prop_map(Step::BeginReader),
        10 => (0..AUTHORS, bound(), 0usize..5).prop_map(|(a, b, n)| Step::BeginAuthor(a, b, n)),
        25 => (0..READERS, bound(), 0usize..5).prop_map(|(r, b, n)| Step::Begin(r, b, n)),
        50 => load.prop_map(|(which, cut, later, limit)| Step::Finish(which, cut, later, limit)),
        4 => (0usize..8).prop_map(Step::GiveUp),
        1 => Just(Step::Clear),
        3 => Just(Step::Resume),
        3 => proptest::collection::vec(write(), 0..4).prop_map(Step::Move),
        1 => prop_oneof![1_500usize..4_000, Just(1 << 20)].prop_map(Step::Budget),
    ]
}

fn tables() -> impl Strategy<Value = Tables> {
    let messages = proptest::collection::btree_map(0..IDS, 0..AUTHORS, 0..40);
    let follows = proptest::collection::btree_set((0..READERS, 0..AUTHORS), 0..15);
    (messages, follows).prop_map(|(messages, follows)| Tables { messages, follows })
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::Commit(writes) => world.commit(&writes),
        Step::FollowLog(steps) => world.follow_log(steps),
        Step::BeginReader(reader) => world.begin_reader(reader),
        Step::BeginAuthor(author, bound, n) => world.begin_author(author, bound, n),
        Step::Begin(reader, bound, n) => {
            if let Err(missing) = world.index.page(reader, bound, n) {
                world.begin(reader, bound, n, &missing);
            }
        }
        Step::Finish(which, cut, later, limit) => world.finish(which, cut, later, limit),
        Step::GiveUp(which) => world.give_up(which),
        Step::Clear => world.index.clear(),
        Step::Resume => {
            let position = world.index.position();
            world.index.resume(position);
        }
        Step::Move(drift) => world.move_to(&drift),
        Step::Budget(bytes) => world.index.budget = bytes,
    }
}

/// Every page that is answered is the right one. Returns how many were.
fn check(world: &World) -> Result<usize, TestCaseError> {
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
fn check_newest(world: &World) -> Result<(), TestCaseError> {
    for authors in [&[0][..], &[1, 3], &[0, 1, 2, 3, 4]] {
        for upper in [None, Some(0), Some(17), Some(31)] {
            for lower in [0, 12] {
                for most in [1, 2, 5, 60] {
                    let range = Range { upper, lower, most };
                    if let Ok(newest) = world.index.newest(authors, range) {
                        let expected = world.now().newest(authors, range);
                        prop_assert_eq!(newest, expected, "{:?}, {:?}", authors, range);
                    }
                }
            }
        }
    }
    Ok(())
}

/// What is asked for is enough in the end.
fn arrives(world: &mut World) -> Result<(), TestCaseError> {
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

/// The same where nobody's follow list is asked for.
fn arrives_for_authors(world: &mut World) -> Result<(), TestCaseError> {
    for (upper, lower, most) in [(None, 0, 3), (Some(25), 0, 60), (Some(33), 12, 60)] {
        let range = Range { upper, lower, most };
        let mut rounds = 0;
        while let Err(missing) = world.index.newest(&[0, 2, 4], range) {
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
        let mut world = World::new(1 << 20, start);
        world.truthful = true;
        for step in steps {
            take(&mut world, step);
        }
        arrives(&mut world)?;
        prop_assert_eq!(world.index.contradictions(), 0);
    }

    #[test]
    fn pages_are_the_servers(
        start in tables(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(1 << 20, start);
        for step in steps {
            take(&mut world, step);
            check(&world)?;
            prop_assert_eq!(world.index.bytes(), world.index.counted(), "bytes");
        }
        arrives(&mut world)?;
    }
}
