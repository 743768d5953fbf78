//! Messages ordered by a key and the id: whatever happens in whatever order, what is named is the server's at the index's position.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::maintenance::SweepPace;
use super::*;

const AUTHORS: u64 = 4;
const IDS: u64 = 30;
/// Few, so that many messages have the same one; 0 is NULL.
const KEYS: u64 = 6;

/// A message's author and key, by its id.
type MessageRows = BTreeMap<u64, (u64, u64)>;

#[derive(Clone, Debug)]
enum KeyedWrite {
    /// A new message; or, if there is one with this id, it gets this author and key.
    Put {
        id: u64,
        author: u64,
        key: u64,
        named: bool,
    },
    /// One that is there gets another key, and no other author.
    Rekey {
        id: u64,
        key: u64,
        named: bool,
    },
    Remove {
        id: u64,
        named: bool,
    },
    /// All with these keys are gone, out of sight; `author`: of one author.
    Lose {
        author: Option<u64>,
        modulus: u64,
    },
}

#[derive(Clone, Debug)]
enum KeyedStep {
    Commit(Vec<KeyedWrite>),
    FollowLog(usize),
    Begin(Vec<u64>, MessageRange<KeyedMessage>),
    Finish(usize, usize, usize, usize),
    GiveUp(usize),
    Clear,
    Budget(usize),
}

fn write() -> impl Strategy<Value = KeyedWrite> {
    let (id, author, key) = (|| 0..IDS, 0..AUTHORS, || 0..KEYS);
    let named = || prop::bool::weighted(0.7);
    prop_oneof![
        50 => (id(), author, key(), named())
            .prop_map(|(id, author, key, named)| KeyedWrite::Put { id, author, key, named }),
        30 => (id(), key(), named()).prop_map(|(id, key, named)| KeyedWrite::Rekey { id, key, named }),
        25 => (id(), named()).prop_map(|(id, named)| KeyedWrite::Remove { id, named }),
        2 => (prop::option::of(0..AUTHORS), 1u64..4).prop_map(|(author, modulus)| KeyedWrite::Lose { author, modulus }),
    ]
}

fn keyed() -> impl Strategy<Value = KeyedMessage> {
    (0..KEYS + 1, prop_oneof![0..IDS, Just(u64::MAX)])
        .prop_map(|(key, id)| KeyedMessage { key, id })
}

fn range() -> impl Strategy<Value = MessageRange<KeyedMessage>> {
    let lower = prop_oneof![2 => Just(KeyedMessage::LEAST), 1 => keyed()];
    (proptest::option::of(keyed()), lower, 1usize..9).prop_map(|(upper, lower, most)| {
        MessageRange {
            upper,
            lower,
            limit: most,
        }
    })
}

fn authors() -> impl Strategy<Value = Vec<u64>> {
    let some = proptest::collection::btree_set(0..AUTHORS, 1..4);
    some.prop_map(|some| some.into_iter().collect())
}

fn step() -> impl Strategy<Value = KeyedStep> {
    let load = (0usize..8, 0usize..30, 0usize..30, 1usize..8);
    prop_oneof![
        30 => proptest::collection::vec(write(), 0..5).prop_map(KeyedStep::Commit),
        30 => (1usize..6).prop_map(KeyedStep::FollowLog),
        30 => (authors(), range()).prop_map(|(authors, range)| KeyedStep::Begin(authors, range)),
        50 => load.prop_map(|(which, cut, later, limit)| KeyedStep::Finish(which, cut, later, limit)),
        4 => (0usize..8).prop_map(KeyedStep::GiveUp),
        1 => Just(KeyedStep::Clear),
        1 => prop_oneof![1_500usize..4_000, Just(1 << 20)].prop_map(KeyedStep::Budget),
    ]
}

fn of(messages: &MessageRows, author: u64, below: Option<KeyedMessage>) -> Vec<KeyedMessage> {
    let own = messages.iter().filter(|(_, (of, _))| *of == author);
    let mut all: Vec<KeyedMessage> = own
        .map(|(id, (_, key))| KeyedMessage::from_key_and_id(*key, *id))
        .collect();
    all.retain(|item| below.is_none_or(|below| *item < below));
    all.sort_unstable_by(|a, b| b.cmp(a));
    all
}

fn newest(
    messages: &MessageRows,
    authors: &[u64],
    range: MessageRange<KeyedMessage>,
) -> NewestMessages<KeyedMessage> {
    let own = |author: &u64| {
        let author = *author;
        let items = of(messages, author, None).into_iter();
        items.map(move |item| (item, author))
    };
    let mut found: Vec<(KeyedMessage, u64)> = authors
        .iter()
        .flat_map(own)
        .filter(|(item, _)| *item >= range.lower && range.upper.is_none_or(|upper| *item <= upper))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    let all = found.len() < range.limit;
    found.truncate(range.limit);
    let (items, authors) = found.into_iter().unzip();
    NewestMessages {
        items,
        authors,
        complete: all,
    }
}

/// Performs the write, and appends the changes that the log contains.
fn perform(messages: &mut MessageRows, write: &KeyedWrite, changes: &mut Vec<TimelineChange>) {
    let removed = |id: u64, old: Option<(u64, u64)>, named: bool| match old {
        Some((author, key)) if named => Some(TimelineChange::Removed {
            author: Some(author),
            key,
            id,
        }),
        Some(_) => Some(TimelineChange::Removed {
            author: None,
            key: 0,
            id,
        }),
        None => None,
    };
    let mut put = |messages: &mut MessageRows, id: u64, new: (u64, u64), named: bool| {
        let old = messages.insert(id, new);
        if old == Some(new) {
            return;
        }
        changes.extend(removed(id, old, named));
        let (author, key) = new;
        changes.push(TimelineChange::Posted { author, key, id });
    };
    match *write {
        KeyedWrite::Put {
            id,
            author,
            key,
            named,
        } => put(messages, id, (author, key), named),
        KeyedWrite::Rekey { id, key, named } => {
            if let Some((author, _)) = messages.get(&id).copied() {
                put(messages, id, (author, key), named);
            }
        }
        KeyedWrite::Remove { id, named } => {
            let old = messages.remove(&id);
            changes.extend(removed(id, old, named));
        }
        KeyedWrite::Lose { author, modulus } => {
            messages.retain(|_, (owner, key)| {
                author.is_some_and(|author| author != *owner) || *key % modulus != 0
            });
            changes.push(match author {
                Some(author) => TimelineChange::MessagesOfAuthorLost { author },
                None => TimelineChange::MessagesLost,
            });
        }
    }
}

/// A server that is ahead of an index.
struct KeyedServer {
    index: TimelineIndex<KeyedMessage>,
    /// What the table held at each position, and the changes that led there.
    history: Vec<(MessageRows, Vec<TimelineChange>)>,
    reached: usize,
    asked: Vec<(AuthorLoadRequest<KeyedMessage>, usize)>,
}

impl KeyedServer {
    fn new(start: MessageRows) -> KeyedServer {
        let mut index = TimelineIndex::new(1 << 20);
        index.sweep_pace = SweepPace {
            max_tombstones: 3,
            sweep_within: 6,
            sweep_work: 4,
        };
        KeyedServer {
            index,
            history: vec![(start, Vec::new())],
            reached: 0,
            asked: Vec::new(),
        }
    }

    fn latest(&self) -> usize {
        self.history.len() - 1
    }

    fn follow_log(&mut self, steps: usize) {
        for _ in 0..steps.min(self.latest() - self.reached) {
            self.reached += 1;
            let changes = &self.history[self.reached].1;
            self.index.apply(changes, at(self.reached));
        }
    }

    fn begin(&mut self, authors: &[u64], range: MessageRange<KeyedMessage>) {
        let missing = self.index.newest_messages(authors, range).err();
        for author in missing.into_iter().flatten() {
            if let Some(ask) = self
                .index
                .begin_author_load(author, range.upper, range.limit)
            {
                self.asked.push((ask, self.reached));
            }
        }
    }

    /// A load ends, having read the table somewhere between its beginning and now.
    fn finish(&mut self, which: usize, cut: usize, later: usize, limit: usize) {
        if self.asked.is_empty() {
            return;
        }
        let (ask, since) = self.asked.remove(which % self.asked.len());
        let cut = since + cut % (self.latest() - since + 1);
        let valid_from = at(cut + later % (self.latest() - cut + 1));
        let mut rows = of(&self.history[cut].0, ask.author, ask.below);
        // The more are in memory, the more are requested.
        let limit = limit.max(ask.above);
        let down_to = (rows.len() < limit).then_some(KeyedMessage::LEAST);
        rows.truncate(limit);
        self.index
            .accept_author_rows(ask.ticket, rows, down_to, valid_from);
    }

    fn take(&mut self, step: KeyedStep) {
        match step {
            KeyedStep::Commit(writes) => {
                let mut messages = self.history[self.latest()].0.clone();
                let mut changes = Vec::new();
                for write in &writes {
                    perform(&mut messages, write, &mut changes);
                }
                self.history.push((messages, changes));
            }
            KeyedStep::FollowLog(steps) => self.follow_log(steps),
            KeyedStep::Begin(authors, range) => self.begin(&authors, range),
            KeyedStep::Finish(which, cut, later, limit) => self.finish(which, cut, later, limit),
            KeyedStep::GiveUp(which) => {
                if !self.asked.is_empty() {
                    let (ask, _) = self.asked.remove(which % self.asked.len());
                    self.index.abandon_load(ask.ticket);
                }
            }
            KeyedStep::Clear => self.index.clear(),
            KeyedStep::Budget(bytes) => self.index.budget = bytes,
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let at = |key, id| KeyedMessage { key, id };
        for authors in [&[0][..], &[1, 3], &[0, 1, 2, 3]] {
            for upper in [None, Some(at(0, 17)), Some(at(2, u64::MAX)), Some(at(4, 9))] {
                for lower in [KeyedMessage::LEAST, at(1, 0), at(3, 12)] {
                    for most in [1, 2, 5, 60] {
                        let range = MessageRange {
                            upper,
                            lower,
                            limit: most,
                        };
                        if let Ok(found) = self.index.newest_messages(authors, range) {
                            let expected = newest(&self.history[self.reached].0, authors, range);
                            prop_assert_eq!(found, expected, "{:?}, {:?}", authors, range);
                        }
                    }
                }
            }
        }
        prop_assert_eq!(self.index.contradiction_count(), 0);
        Ok(())
    }

    /// The requested loads suffice in the end.
    fn arrives(&mut self) -> Result<(), TestCaseError> {
        self.index.budget = 1 << 24;
        for (upper, most) in [(None, 3), (Some(KeyedMessage { key: 2, id: 9 }), 60)] {
            let range = MessageRange {
                upper,
                lower: KeyedMessage::LEAST,
                limit: most,
            };
            let mut rounds = 0;
            while self.index.newest_messages(&[0, 2, 3], range).is_err() {
                self.begin(&[0, 2, 3], range);
                while !self.asked.is_empty() {
                    self.finish(0, rounds, 0, 1);
                }
                self.follow_log(usize::MAX);
                rounds += 1;
                prop_assert!(rounds < 60, "{:?}", range);
            }
        }
        self.check()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn messages_are_the_servers_in_the_order_of_their_keys(
        start in proptest::collection::btree_map(0..IDS, (0..AUTHORS, 0..KEYS), 0..30),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = KeyedServer::new(start);
        for step in steps {
            world.take(step);
            world.check()?;
            prop_assert_eq!(world.index.bytes(), world.index.counted(), "bytes");
        }
        world.arrives()?;
    }
}

/// Bytes of each message, of authors with 100 each that came one after the other.
fn bytes<I: WindowItem>() -> f64 {
    let mut index: TimelineIndex<I> = TimelineIndex::new(1 << 24);
    for author in 0..1_000 {
        let ask = index.begin_author_load(author, None, 20).unwrap();
        let items = (0..50).map(|number| I::from_key_and_id(number * 7, number * 1_000 + author));
        index.accept_author_rows(ask.ticket, items.collect(), Some(I::LEAST), at(0));
        for number in 50..100 {
            let (key, id) = (number * 7, number * 1_000 + author);
            index.apply(&[TimelineChange::Posted { author, key, id }], at(1));
        }
    }
    assert_eq!(index.message_count(), 100_000);
    index.bytes() as f64 / 100_000.0
}

#[test]
fn a_key_costs_ten_bytes_more() {
    let (ids, keyed) = (bytes::<u64>(), bytes::<KeyedMessage>());
    println!("an id {ids:.1} bytes, with a key {keyed:.1}");
    assert!(ids < 12.0 && keyed < 22.0, "{ids} {keyed}");
}
