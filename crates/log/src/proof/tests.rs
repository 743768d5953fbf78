//! Proofs in a scripted world: a server that logs before it commits, a stream that lags, proofs in each other's way. Time passes
//! where the script says so.

use std::collections::VecDeque;
use std::time::Duration;

use headwater_timeline::index::{Change, PlaceId};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::edits::Edits;
use crate::evidence::{Message, State, Table};
use crate::queue::Cut;
use crate::routes::{Column, Route, Routes};
use crate::script::{Act, PLACE, Rows, act, all_found};

/// What readers can be told: a message without an author is on nobody's page.
fn readable(rows: &Rows) -> Rows {
    let told = rows.iter().filter(|(_, author)| author.is_some());
    told.map(|(key, author)| (*key, *author)).collect()
}

fn route() -> Route {
    let column = Column {
        at: 0,
        kind: headwater_timeline::definition::Definition::classic().id_type,
    };
    Route {
        place: PLACE,
        table: Table::Message,
        database: "tl".into(),
        name: "message".into(),
        columns: Some(3),
        first: column,
        second: column,
        key: None,
    }
}

/// A proof under way, and what it waits for.
struct Running {
    proof: Proof,
    /// So many transactions could be read when it was begun.
    begun: usize,
    waits: Waits,
}

enum Waits {
    /// The rows are not looked at yet.
    Rows(Question),
    /// They were; the end of the log is not asked for yet.
    End(Question, Option<Found>),
    Receive(Position),
    Progress(Position),
    /// Until it is run again.
    Turn,
}

struct World {
    minimal: bool,
    now: Instant,
    /// Each transaction that was logged, and the rows behind it.
    logged: Vec<Vec<(PlaceId, Change)>>,
    states: Vec<Rows>,
    readable: usize,
    delivered: usize,
    following: Following,
    generation: Generation,
    /// What the index holds.
    applied: Rows,
    /// Transactions that are released once they can be read: up to a number of the stream, which is this one of the log.
    releasing: Option<(u64, usize)>,
    begun_at: usize,
    running: VecDeque<Running>,
    proved: usize,
}

/// Two of them are as much as a proof waits for.
const LONG: u64 = FAR / 2;

fn end_of(transactions: usize) -> Position {
    Position {
        file: 1,
        offset: 4 + transactions as u64 * LONG,
    }
}

/// The script's clock counts from here.
#[allow(clippy::disallowed_methods)]
fn start() -> Instant {
    Instant::now()
}

impl World {
    fn new(minimal: bool) -> World {
        let mut following = Following::new(true);
        following.add_place(route().place, [route()]);
        let mut world = World {
            minimal,
            now: start(),
            logged: Vec::new(),
            states: vec![Rows::new()],
            readable: 0,
            delivered: 0,
            generation: following.generation(),
            following,
            applied: Rows::new(),
            releasing: None,
            begun_at: 0,
            running: VecDeque::new(),
            proved: 0,
        };
        world.begin();
        world
    }

    /// The stream begins at the end of the log, some of which may not be readable yet.
    fn begin(&mut self) {
        self.following.step_aside();
        let routes = Routes {
            routes: vec![route()],
            caseless: false,
        };
        let start = end_of(self.logged.len());
        self.generation = self.following.begin(start, routes);
        self.following.adopt_routes();
        self.delivered = self.logged.len();
        self.begun_at = self.logged.len();
        // A load brings in what could be read once the beginning is.
        self.applied = readable(&self.states[self.begun_at]);
        self.releasing = None;
    }

    /// A row that is locked is not changed: servers give it back with the commit that makes the change readable.
    fn log(&mut self, what: Act) {
        let mut open = self.logged[self.readable..].iter().flatten();
        if open.any(|change| Key::of(change) == Some(what.row())) {
            return;
        }
        let mut rows = self.states.last().unwrap().clone();
        let mut changes = Vec::new();
        act(&what, self.minimal, &mut rows, &mut changes);
        if changes.is_empty() {
            // The log does not tell of it.
            *self.states.last_mut().unwrap() = rows;
            return;
        }
        self.logged.push(changes);
        self.states.push(rows);
    }

    /// The next transaction can be read.
    fn commit(&mut self) {
        self.readable = (self.readable + 1).min(self.logged.len());
    }

    /// The stream tells of the next one.
    fn deliver(&mut self) {
        if let Some(changes) = self.logged.get(self.delivered) {
            self.delivered += 1;
            self.following
                .push(end_of(self.delivered), changes.clone(), &Edits::default());
        }
    }

    /// The list of open transactions tells what it can tell.
    fn look_at_list(&mut self) {
        if self.readable >= self.begun_at {
            self.following.begin_is_readable(self.generation);
        }
        if let Some((end, of)) = self.releasing
            && self.readable >= of
        {
            self.releasing = None;
            let release = self.following.learn(self.generation, Cut::readable(end));
            self.apply(release.unwrap());
            self.following.end_release(self.generation);
        }
    }

    fn apply(&mut self, release: Release) {
        for (_, change) in release.transactions.iter().flat_map(|it| &it.changes) {
            match *change {
                Change::Posted { author, key, id } => {
                    let message = Message { author, key };
                    self.applied.insert(Key::message(PLACE, id), Some(message));
                }
                Change::Removed { id, .. } => {
                    self.applied.remove(&Key::message(PLACE, id));
                }
                Change::Followed { reader, author } => {
                    let key = Key::follow(PLACE, reader, author);
                    self.applied.insert(key, Some(Message { author, key: 0 }));
                }
                Change::Unfollowed { reader, author } => {
                    self.applied.remove(&Key::follow(PLACE, reader, author));
                }
                Change::MessagesLost => self.applied.clear(),
                Change::FollowsLost => unreachable!("no table of follows is lost here"),
            }
        }
    }

    fn prove(&mut self) {
        let untold = self.now + Duration::from_millis(20);
        self.running.push_back(Running {
            proof: Proof::new(self.generation, untold),
            begun: self.readable,
            waits: Waits::Turn,
        });
        let running = self.running.pop_back().unwrap();
        self.step(running, Input::Begin);
    }

    /// Lets one of the proofs go on by a step, if what it waits for has come.
    fn go_on(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let mut running = self.running.remove(which % self.running.len()).unwrap();
        let input = match running.waits {
            Waits::Rows(question) => {
                let found = (!question.is_empty())
                    .then(|| all_found(&self.states[self.readable], question.keys()));
                running.waits = Waits::End(question, found);
                return self.running.push_back(running);
            }
            Waits::End(question, found) => {
                let end = end_of(self.logged.len());
                Input::Seen(Seen::new(&question, found.as_ref(), end))
            }
            Waits::Receive(end)
                if self.following.is_current(running_generation(&running))
                    && self.following.received() < end =>
            {
                running.waits = Waits::Receive(end);
                return self.running.push_back(running);
            }
            Waits::Progress(end)
                if !self.following.is_applied(running_generation(&running), end) =>
            {
                running.waits = Waits::Progress(end);
                return self.running.push_back(running);
            }
            _ => Input::Went,
        };
        running.waits = Waits::Turn;
        self.step(running, input);
    }

    fn step(&mut self, mut running: Running, input: Input) {
        let (need, learned) = running.proof.next(input, &mut self.following, self.now);
        assert_eq!(learned.contradiction, None, "rows and log go together here");
        if let Some(release) = learned.release {
            self.apply(release);
        }
        running.waits = match need {
            Need::Look(question) => Waits::Rows(question),
            Need::Receive(end) => Waits::Receive(end),
            Need::Progress(end) => Waits::Progress(end),
            Need::Pause => Waits::Turn,
            Need::Release => {
                let generation = running_generation(&running);
                if let Some(end) = self.following.begin_release(generation) {
                    self.releasing = Some((end, self.delivered));
                }
                Waits::Turn
            }
            Need::Done(true) => return self.check(running.begun),
            Need::Done(false) => {
                let void = !self.following.is_current(running_generation(&running));
                let far = self.logged.len() > self.delivered + 2;
                assert!(void || far, "it can be proved while the log is followed");
                return;
            }
            Need::Reset => panic!("the log was not begun anew"),
        };
        self.running.push_back(running);
    }

    /// The index is as the server was at a moment since the proof was begun.
    fn check(&mut self, begun: usize) {
        let moments = &self.states[begun..=self.readable];
        assert!(
            moments.iter().any(|rows| readable(rows) == self.applied),
            "{:?} is nothing that could be read since: {moments:?}",
            self.applied
        );
        self.proved += 1;
    }
}

fn running_generation(running: &Running) -> Generation {
    running.proof.generation
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Log(Act),
    Commit,
    Deliver,
    List,
    Prove,
    GoOn(usize),
    Later,
    Anew,
}

fn events() -> impl Strategy<Value = Event> {
    let act = prop_oneof![
        (0u64..3, option::of(0u64..3)).prop_map(|(id, author)| Act::Toggle(id, author)),
        (0u64..3, option::of(0u64..3)).prop_map(|(id, author)| Act::Move(id, author)),
        (0u64..2).prop_map(Act::Edge),
        (0u64..3).prop_map(Act::Nothing),
    ];
    prop_oneof![
        4 => act.prop_map(Event::Log),
        4 => Just(Event::Commit),
        4 => Just(Event::Deliver),
        1 => Just(Event::List),
        2 => Just(Event::Prove),
        12 => (0usize..4).prop_map(Event::GoOn),
        1 => Just(Event::Later),
        1 => Just(Event::Anew),
    ]
}

fn play(world: &mut World, event: Event) {
    match event {
        Event::Log(what) => world.log(what),
        Event::Commit => world.commit(),
        Event::Deliver => world.deliver(),
        Event::List => world.look_at_list(),
        Event::Prove => world.prove(),
        Event::GoOn(which) => world.go_on(which),
        Event::Later => world.now += Duration::from_millis(15),
        Event::Anew => world.begin(),
    }
}

/// Everything is committed and told, and everybody goes on.
fn settle(world: &mut World) {
    for _ in 0..200 {
        world.commit();
        world.deliver();
        world.look_at_list();
        world.now += Duration::from_millis(1);
        for _ in 0..world.running.len() {
            world.go_on(0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever the order of things is: what is proved is exact, and everything is proved in the end.
    #[test]
    fn what_is_proved_is_as_the_server_was_since_the_proof_was_begun(
        minimal: bool,
        events in proptest::collection::vec(events(), 0..120),
    ) {
        let mut world = World::new(minimal);
        for event in events {
            play(&mut world, event);
        }
        settle(&mut world);
        world.prove();
        settle(&mut world);
        prop_assert!(world.running.is_empty(), "a proof has no end");
        prop_assert!(world.proved > 0);
        prop_assert_eq!(&world.applied, &readable(world.states.last().unwrap()));
    }
}

/// A table of how a proof goes on: what is done in the world, and what the proof then needs.
fn needs(script: &[Event]) -> Vec<&'static str> {
    let mut world = World::new(false);
    let mut told = Vec::new();
    for event in script {
        play(&mut world, *event);
        told.push(match world.running.back().map(|running| &running.waits) {
            None => "none",
            Some(Waits::Rows(question)) if question.is_empty() => "end",
            Some(Waits::Rows(_)) => "rows",
            Some(Waits::End(..)) => "end",
            Some(Waits::Receive(_)) => "receive",
            Some(Waits::Progress(_)) => "progress",
            Some(Waits::Turn) => "turn",
        });
    }
    told
}

const POST: Event = Event::Log(Act::Toggle(1, Some(1)));
const STEP: Event = Event::GoOn(0);

#[test]
fn where_nothing_happens_one_round_trip_is_a_proof() {
    let told = needs(&[Event::List, Event::Prove, STEP, STEP]);
    assert_eq!(told, ["none", "end", "end", "none"]);
}

#[test]
fn what_was_told_and_can_be_read_is_proved_by_its_row() {
    let told = needs(&[
        Event::List,
        POST,
        Event::Deliver,
        Event::Commit,
        Event::Prove,
        STEP,
        STEP,
    ]);
    assert_eq!(told[4..], ["rows", "end", "none"]);
}

#[test]
fn what_was_told_and_cannot_be_read_is_not_in_the_way() {
    let told = needs(&[Event::List, POST, Event::Deliver, Event::Prove, STEP, STEP]);
    assert_eq!(told[3..], ["rows", "end", "none"]);
}

#[test]
fn what_the_log_holds_and_the_stream_has_not_told_is_waited_for() {
    let script = [
        Event::List,
        POST,
        Event::Commit,
        Event::Prove,
        STEP,
        STEP,
        STEP,
        Event::Deliver,
        STEP,
        STEP,
        STEP,
    ];
    let told = needs(&script);
    assert_eq!(
        told[3..],
        [
            "end", "end", "receive", "receive", "receive", "rows", "end", "none"
        ]
    );
}

#[test]
fn a_proof_does_not_wait_for_a_stream_that_is_far_behind() {
    let other = |id| Event::Log(Act::Toggle(id, Some(1)));
    let posts = [POST, other(2), other(3)];
    let proof = [Event::Prove, STEP, STEP];
    let after = |posts: &[Event]| needs(&[&[Event::List], posts, &proof].concat());
    assert_eq!(after(&posts[..2])[3..], ["end", "end", "receive"]);
    assert_eq!(after(&posts)[4..], ["end", "end", "none"]);
}

#[test]
fn what_no_row_tells_is_asked_of_the_list_of_open_transactions() {
    let mut world = World::new(false);
    world.look_at_list();
    // A statement in place of rows.
    world.logged.push(vec![(PLACE, Change::MessagesLost)]);
    world.states.push(Rows::new());
    world.deliver();
    world.prove();
    for _ in 0..3 {
        world.go_on(0);
    }
    assert!(matches!(world.running[0].waits, Waits::Progress(_)));
    assert!(world.releasing.is_some());
    world.look_at_list();
    world.go_on(0);
    assert_eq!(world.proved, 0, "it is still open");
    world.commit();
    world.look_at_list();
    world.go_on(0);
    assert_eq!((world.proved, world.running.len()), (1, 0));
}

/// Else a proof that waits for the beginning has the list asked for again and again, as fast as the server answers.
#[test]
fn a_beginning_that_is_open_releases_nothing() {
    let mut world = World::new(false);
    world.deliver();
    let generation = world.generation;
    assert!(world.following.begin_is_open(generation));
    assert_eq!(world.following.begin_release(generation), None);
}

#[test]
fn a_proof_of_a_stream_that_is_lost_proves_nothing() {
    let told = needs(&[Event::List, POST, Event::Prove, STEP, Event::Anew, STEP]);
    assert_eq!(told[2..], ["end", "end", "end", "none"]);
}

#[test]
fn a_row_that_is_as_it_cannot_be_is_told() {
    let mut following = Following::new(false);
    following.add_place(route().place, [route()]);
    let generation = following.begin(end_of(0), Routes::default());
    following.begin_is_readable(generation);
    following.push(
        end_of(1),
        vec![(
            PLACE,
            Change::Posted {
                author: 1,
                key: 0,
                id: 5,
            },
        )],
        &Edits::default(),
    );
    let now = start();
    let mut proof = Proof::new(generation, now);
    let (need, _) = proof.next(Input::Begin, &mut following, now);
    let Need::Look(question) = need else {
        panic!("{need:?}");
    };
    let found = Found::from([(
        Key::message(PLACE, 5),
        State::Present(Some(Message { author: 9, key: 0 })),
    )]);
    let seen = Input::Seen(Seen::new(&question, Some(&found), end_of(1)));
    let (_, learned) = proof.next(seen, &mut following, now);
    assert_eq!(learned.contradiction, Some(Key::message(PLACE, 5)));
}

#[test]
fn a_log_that_ends_before_what_it_has_told_was_begun_anew() {
    let mut following = Following::new(false);
    let generation = following.begin(end_of(9), Routes::default());
    let now = start();
    let mut proof = Proof::new(generation, now);
    proof.next(Input::Begin, &mut following, now);
    let seen = Seen::new(&following.question(generation), None, end_of(3));
    let seen = Input::Seen(seen);
    let (need, _) = proof.next(seen, &mut following, now);
    assert!(matches!(need, Need::Reset));
}

#[test]
fn freshness_is_of_its_stream_and_of_its_time() {
    let mut following = Following::new(true);
    following.add_place(route().place, [route()]);
    let generation = following.begin(
        end_of(0),
        Routes {
            routes: vec![route()],
            caseless: false,
        },
    );
    following.adopt_routes();
    assert!(
        !following.may_answer(PLACE),
        "nothing is known of what was before"
    );
    assert!(following.begin_is_readable(generation));
    assert!(following.may_answer(PLACE) && !following.may_answer(PlaceId(1)));
    let now = start();
    assert!(following.proof_ended(generation, now, false));
    assert!(!following.may_answer(PLACE), "the last proof failed");
    assert!(following.proof_ended(generation, now, true));
    assert!(following.was_fresh(Duration::from_secs(1), now + Duration::from_millis(900)));
    assert!(!following.was_fresh(Duration::from_secs(1), now + Duration::from_millis(1_100)));
    let mark = following.mark().unwrap();
    assert!(following.spared(mark, PLACE, &[1], None));
    following.step_aside();
    assert!(
        !following.proof_ended(generation, now, true),
        "it is about another stream"
    );
    assert!(!following.spared(mark, PLACE, &[1], None));
    assert_eq!(following.fresh(), None);
    assert_eq!(
        State::Absent,
        State::before(&Change::Posted {
            author: 1,
            key: 0,
            id: 1
        })
    );
}
