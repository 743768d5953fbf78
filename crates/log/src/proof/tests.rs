//! Proofs in a scripted world: a server that logs before it commits, a stream that lags, concurrent proofs. Time passes only when
//! the script advances it.

use std::collections::VecDeque;
use std::time::Duration;

use headwater_timeline::index::{TimelineChange, TimelineId};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::edits::RowEdits;
use crate::evidence::{MessageAttributes, RowState, TableRole};
use crate::queue::CommitWatermark;
use crate::routes::{ColumnPosition, TableRoute, TableRoutes};
use crate::transaction_script::{ScriptedChange, ScriptedRows, TIMELINE, execute, observe};

/// The rows that can be served: a message without an author is on no page.
fn readable(rows: &ScriptedRows) -> ScriptedRows {
    let served = rows.iter().filter(|(_, author)| author.is_some());
    served.map(|(key, author)| (*key, *author)).collect()
}

fn route() -> TableRoute {
    let column = ColumnPosition {
        at: 0,
        kind: headwater_timeline::definition::TimelineDefinition::classic().id_type,
    };
    TableRoute {
        table_id: TIMELINE.into(),
        table: TableRole::Message,
        database: "tl".into(),
        name: "message".into(),
        columns: Some(3),
        first: column,
        second: column,
        has_copies: false,
        has_mixed_signs: false,
        key: None,
    }
}

/// A running proof, and what it waits for.
struct RunningProof {
    proof: FreshnessProof,
    /// The number of readable transactions when it began.
    begun: usize,
    waiting_for: ProofWait,
}

enum ProofWait {
    /// The rows are not read yet.
    Rows(RowProbe),
    /// The rows are read; the end of the log is not.
    End(RowProbe, Option<ObservedRows>),
    Receive(BinlogPosition),
    Progress(BinlogPosition),
    /// Until it is run again.
    Turn,
}

struct ProofWorld {
    minimal: bool,
    now: Instant,
    /// Each logged transaction's changes.
    logged: Vec<Vec<(TimelineId, TimelineChange)>>,
    states: Vec<ScriptedRows>,
    readable: usize,
    delivered: usize,
    following: ReplicationState,
    generation: StreamGeneration,
    /// What the index holds.
    applied: ScriptedRows,
    /// A running release: up to this number of the stream, which is the second number in the log.
    releasing: Option<(u64, usize)>,
    begun_at: usize,
    running: VecDeque<RunningProof>,
    proved: usize,
}

/// Two of them are the most that a proof waits for.
const LONG: u64 = MAX_LAG_BYTES / 2;

fn end_of(transactions: usize) -> BinlogPosition {
    BinlogPosition {
        file: 1,
        offset: 4 + transactions as u64 * LONG,
    }
}

/// The script's clock counts from here.
#[allow(clippy::disallowed_methods)]
fn start() -> Instant {
    Instant::now()
}

impl ProofWorld {
    fn new(minimal: bool) -> ProofWorld {
        let mut following = ReplicationState::new(true);
        following.add_routes([route()]);
        let mut world = ProofWorld {
            minimal,
            now: start(),
            logged: Vec::new(),
            states: vec![ScriptedRows::new()],
            readable: 0,
            delivered: 0,
            generation: following.generation(),
            following,
            applied: ScriptedRows::new(),
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
        self.following.discard();
        let routes = TableRoutes {
            routes: vec![route()],
            caseless: false,
        };
        let start = end_of(self.logged.len());
        self.generation = self.following.begin(start, routes);
        self.following.adopt_routes();
        self.delivered = self.logged.len();
        self.begun_at = self.logged.len();
        // A load brings in what is readable once the start is proven.
        self.applied = readable(&self.states[self.begun_at]);
        self.releasing = None;
    }

    /// A locked row is not changed: servers unlock it with the commit that makes the change readable.
    fn log(&mut self, what: ScriptedChange) {
        let mut open = self.logged[self.readable..].iter().flatten();
        if open.any(|change| TableRowKey::changed_by(change) == Some(what.row())) {
            return;
        }
        let mut rows = self.states.last().unwrap().clone();
        let mut changes = Vec::new();
        execute(&what, self.minimal, &mut rows, &mut changes);
        if changes.is_empty() {
            // The log does not contain it.
            *self.states.last_mut().unwrap() = rows;
            return;
        }
        self.logged.push(changes);
        self.states.push(rows);
    }

    /// Makes the next transaction readable.
    fn commit(&mut self) {
        self.readable = (self.readable + 1).min(self.logged.len());
    }

    /// Delivers the next transaction to the stream.
    fn deliver(&mut self) {
        if let Some(changes) = self.logged.get(self.delivered) {
            self.delivered += 1;
            self.following.push(
                end_of(self.delivered),
                changes.clone(),
                &RowEdits::default(),
            );
        }
    }

    /// Reads the list of open transactions.
    fn read_open_transactions(&mut self) {
        if self.readable >= self.begun_at {
            self.following.confirm_start(self.generation);
        }
        if let Some((end, of)) = self.releasing
            && self.readable >= of
        {
            self.releasing = None;
            let release = self
                .following
                .apply_watermark(self.generation, CommitWatermark::readable(end));
            self.apply(release.unwrap());
            self.following.end_release(self.generation);
        }
    }

    fn apply(&mut self, release: TransactionRelease) {
        for (_, change) in release.transactions.iter().flat_map(|it| &it.changes) {
            match *change {
                TimelineChange::Posted { author, key, id } => {
                    let message = MessageAttributes { author, key };
                    self.applied
                        .insert(TableRowKey::message(TIMELINE, id), Some(message));
                }
                TimelineChange::Removed { id, .. } => {
                    self.applied.remove(&TableRowKey::message(TIMELINE, id));
                }
                TimelineChange::Followed { reader, author } => {
                    let key = TableRowKey::follow(TIMELINE, reader, author);
                    self.applied
                        .insert(key, Some(MessageAttributes { author, key: 0 }));
                }
                TimelineChange::Unfollowed { reader, author } => {
                    self.applied
                        .remove(&TableRowKey::follow(TIMELINE, reader, author));
                }
                TimelineChange::MessagesLost => self.applied.clear(),
                TimelineChange::MessagesOfAuthorLost { .. }
                | TimelineChange::FollowsChanged { .. }
                | TimelineChange::FollowsLost => {
                    unreachable!("no author's messages and no follows are lost here")
                }
            }
        }
    }

    fn prove(&mut self) {
        let untold = self.now + Duration::from_millis(20);
        self.running.push_back(RunningProof {
            proof: FreshnessProof::new(self.generation, untold),
            begun: self.readable,
            waiting_for: ProofWait::Turn,
        });
        let running = self.running.pop_back().unwrap();
        self.step(running, ProofInput::Begin);
    }

    /// Advances one of the proofs by a step, if what it waits for has happened.
    fn advance(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let mut running = self.running.remove(which % self.running.len()).unwrap();
        let input = match running.waiting_for {
            ProofWait::Rows(probe) => {
                let observed =
                    (!probe.is_empty()).then(|| observe(&self.states[self.readable], probe.keys()));
                running.waiting_for = ProofWait::End(probe, observed);
                return self.running.push_back(running);
            }
            ProofWait::End(probe, observed) => {
                let end = end_of(self.logged.len());
                ProofInput::Probed(ProbeResult::new(&probe, observed.as_ref(), end))
            }
            ProofWait::Receive(end)
                if self.following.is_current(running_generation(&running))
                    && self.following.received() < end =>
            {
                running.waiting_for = ProofWait::Receive(end);
                return self.running.push_back(running);
            }
            ProofWait::Progress(end)
                if !self.following.is_applied(running_generation(&running), end) =>
            {
                running.waiting_for = ProofWait::Progress(end);
                return self.running.push_back(running);
            }
            _ => ProofInput::Completed,
        };
        running.waiting_for = ProofWait::Turn;
        self.step(running, input);
    }

    fn step(&mut self, mut running: RunningProof, input: ProofInput) {
        let (need, learned) = running.proof.next(input, &mut self.following, self.now);
        assert_eq!(learned.contradiction, None, "rows and log go together here");
        if let Some(release) = learned.release {
            self.apply(release);
        }
        running.waiting_for = match need {
            ProofStep::Probe(probe) => ProofWait::Rows(probe),
            ProofStep::Receive(end) => ProofWait::Receive(end),
            ProofStep::Progress(end) => ProofWait::Progress(end),
            ProofStep::Pause => ProofWait::Turn,
            ProofStep::Release => {
                let generation = running_generation(&running);
                if let Some(end) = self.following.begin_release(generation) {
                    self.releasing = Some((end, self.delivered));
                }
                ProofWait::Turn
            }
            ProofStep::Done(true) => return self.check(running.begun),
            ProofStep::Done(false) => {
                let void = !self.following.is_current(running_generation(&running));
                let far = self.logged.len() > self.delivered + 2;
                assert!(void || far, "it can be proved while the log is followed");
                return;
            }
            ProofStep::Reset => panic!("the log was not begun anew"),
        };
        self.running.push_back(running);
    }

    /// Checks that the index is as the server was at a moment since the proof began.
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

fn running_generation(running: &RunningProof) -> StreamGeneration {
    running.proof.generation
}

#[derive(Clone, Copy, Debug)]
enum WorldEvent {
    Log(ScriptedChange),
    Commit,
    Deliver,
    List,
    Prove,
    GoOn(usize),
    Later,
    Anew,
}

fn events() -> impl Strategy<Value = WorldEvent> {
    let act = prop_oneof![
        (0u64..3, option::of(0u64..3)).prop_map(|(id, author)| ScriptedChange::Toggle(id, author)),
        (0u64..3, option::of(0u64..3)).prop_map(|(id, author)| ScriptedChange::Move(id, author)),
        (0u64..2).prop_map(ScriptedChange::ToggleFollow),
        (0u64..3).prop_map(ScriptedChange::Nothing),
    ];
    prop_oneof![
        4 => act.prop_map(WorldEvent::Log),
        4 => Just(WorldEvent::Commit),
        4 => Just(WorldEvent::Deliver),
        1 => Just(WorldEvent::List),
        2 => Just(WorldEvent::Prove),
        12 => (0usize..4).prop_map(WorldEvent::GoOn),
        1 => Just(WorldEvent::Later),
        1 => Just(WorldEvent::Anew),
    ]
}

fn play(world: &mut ProofWorld, event: WorldEvent) {
    match event {
        WorldEvent::Log(what) => world.log(what),
        WorldEvent::Commit => world.commit(),
        WorldEvent::Deliver => world.deliver(),
        WorldEvent::List => world.read_open_transactions(),
        WorldEvent::Prove => world.prove(),
        WorldEvent::GoOn(which) => world.advance(which),
        WorldEvent::Later => world.now += Duration::from_millis(15),
        WorldEvent::Anew => world.begin(),
    }
}

/// Commits and delivers everything, and runs all proofs to their end.
fn run_to_completion(world: &mut ProofWorld) {
    for _ in 0..200 {
        world.commit();
        world.deliver();
        world.read_open_transactions();
        world.now += Duration::from_millis(1);
        for _ in 0..world.running.len() {
            world.advance(0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// In any order of events: what is proved is exact, and everything is proved in the end.
    #[test]
    fn what_is_proved_is_as_the_server_was_since_the_proof_was_begun(
        minimal: bool,
        events in proptest::collection::vec(events(), 0..120),
    ) {
        let mut world = ProofWorld::new(minimal);
        for event in events {
            play(&mut world, event);
        }
        run_to_completion(&mut world);
        world.prove();
        run_to_completion(&mut world);
        prop_assert!(world.running.is_empty(), "a proof has no end");
        prop_assert!(world.proved > 0);
        prop_assert_eq!(&world.applied, &readable(world.states.last().unwrap()));
    }
}

/// Runs a script, and returns what the proof then needs.
fn needs(script: &[WorldEvent]) -> Vec<&'static str> {
    let mut world = ProofWorld::new(false);
    let mut steps = Vec::new();
    for event in script {
        play(&mut world, *event);
        steps.push(
            match world.running.back().map(|running| &running.waiting_for) {
                None => "none",
                Some(ProofWait::Rows(question)) if question.is_empty() => "end",
                Some(ProofWait::Rows(_)) => "rows",
                Some(ProofWait::End(..)) => "end",
                Some(ProofWait::Receive(_)) => "receive",
                Some(ProofWait::Progress(_)) => "progress",
                Some(ProofWait::Turn) => "turn",
            },
        );
    }
    steps
}

const POST: WorldEvent = WorldEvent::Log(ScriptedChange::Toggle(1, Some(1)));
const STEP: WorldEvent = WorldEvent::GoOn(0);

#[test]
fn where_nothing_happens_one_round_trip_is_a_proof() {
    let steps = needs(&[WorldEvent::List, WorldEvent::Prove, STEP, STEP]);
    assert_eq!(steps, ["none", "end", "end", "none"]);
}

#[test]
fn a_received_and_readable_transaction_is_proved_by_its_row() {
    let steps = needs(&[
        WorldEvent::List,
        POST,
        WorldEvent::Deliver,
        WorldEvent::Commit,
        WorldEvent::Prove,
        STEP,
        STEP,
    ]);
    assert_eq!(steps[4..], ["rows", "end", "none"]);
}

#[test]
fn a_received_and_unreadable_transaction_does_not_prevent_a_proof() {
    let steps = needs(&[
        WorldEvent::List,
        POST,
        WorldEvent::Deliver,
        WorldEvent::Prove,
        STEP,
        STEP,
    ]);
    assert_eq!(steps[3..], ["rows", "end", "none"]);
}

#[test]
fn a_proof_waits_for_what_the_stream_has_not_received() {
    let script = [
        WorldEvent::List,
        POST,
        WorldEvent::Commit,
        WorldEvent::Prove,
        STEP,
        STEP,
        STEP,
        WorldEvent::Deliver,
        STEP,
        STEP,
        STEP,
    ];
    let steps = needs(&script);
    assert_eq!(
        steps[3..],
        [
            "end", "end", "receive", "receive", "receive", "rows", "end", "none"
        ]
    );
}

#[test]
fn a_proof_does_not_wait_for_a_stream_that_is_far_behind() {
    let other = |id| WorldEvent::Log(ScriptedChange::Toggle(id, Some(1)));
    let posts = [POST, other(2), other(3)];
    let proof = [WorldEvent::Prove, STEP, STEP];
    let after = |posts: &[WorldEvent]| needs(&[&[WorldEvent::List], posts, &proof].concat());
    assert_eq!(after(&posts[..2])[3..], ["end", "end", "receive"]);
    assert_eq!(after(&posts)[4..], ["end", "end", "none"]);
}

#[test]
fn what_no_row_proves_is_released_by_the_list_of_open_transactions() {
    let mut world = ProofWorld::new(false);
    world.read_open_transactions();
    // A statement in place of rows.
    world
        .logged
        .push(vec![(TIMELINE, TimelineChange::MessagesLost)]);
    world.states.push(ScriptedRows::new());
    world.deliver();
    world.prove();
    for _ in 0..3 {
        world.advance(0);
    }
    assert!(matches!(
        world.running[0].waiting_for,
        ProofWait::Progress(_)
    ));
    assert!(world.releasing.is_some());
    world.read_open_transactions();
    world.advance(0);
    assert_eq!(world.proved, 0, "it is still open");
    world.commit();
    world.read_open_transactions();
    world.advance(0);
    assert_eq!((world.proved, world.running.len()), (1, 0));
}

/// Otherwise a proof that waits for the start reads the list again and again, as fast as the server answers.
#[test]
fn a_beginning_that_is_open_releases_nothing() {
    let mut world = ProofWorld::new(false);
    world.deliver();
    let generation = world.generation;
    assert!(world.following.is_unproven(generation));
    assert_eq!(world.following.begin_release(generation), None);
}

#[test]
fn a_proof_of_a_stream_that_is_lost_proves_nothing() {
    let steps = needs(&[
        WorldEvent::List,
        POST,
        WorldEvent::Prove,
        STEP,
        WorldEvent::Anew,
        STEP,
    ]);
    assert_eq!(steps[2..], ["end", "end", "end", "none"]);
}

#[test]
fn a_row_in_an_impossible_state_is_reported() {
    let mut following = ReplicationState::new(false);
    following.add_routes([route()]);
    let generation = following.begin(end_of(0), TableRoutes::default());
    following.confirm_start(generation);
    following.push(
        end_of(1),
        vec![(
            TIMELINE,
            TimelineChange::Posted {
                author: 1,
                key: 0,
                id: 5,
            },
        )],
        &RowEdits::default(),
    );
    let now = start();
    let mut proof = FreshnessProof::new(generation, now);
    let (need, _) = proof.next(ProofInput::Begin, &mut following, now);
    let ProofStep::Probe(probe) = need else {
        panic!("{need:?}");
    };
    let found = ObservedRows::from([(
        TableRowKey::message(TIMELINE, 5),
        RowState::Present(Some(MessageAttributes { author: 9, key: 0 })),
    )]);
    let seen = ProofInput::Probed(ProbeResult::new(&probe, Some(&found), end_of(1)));
    let (_, learned) = proof.next(seen, &mut following, now);
    assert_eq!(
        learned.contradiction,
        Some(TableRowKey::message(TIMELINE, 5))
    );
}

#[test]
fn a_log_that_ends_before_what_was_received_was_reset() {
    let mut following = ReplicationState::new(false);
    let generation = following.begin(end_of(9), TableRoutes::default());
    let now = start();
    let mut proof = FreshnessProof::new(generation, now);
    proof.next(ProofInput::Begin, &mut following, now);
    let seen = ProbeResult::new(&following.row_probe(generation), None, end_of(3));
    let seen = ProofInput::Probed(seen);
    let (need, _) = proof.next(seen, &mut following, now);
    assert!(matches!(need, ProofStep::Reset));
}

#[test]
fn freshness_is_of_its_stream_and_of_its_time() {
    let mut following = ReplicationState::new(true);
    following.add_routes([route()]);
    let generation = following.begin(
        end_of(0),
        TableRoutes {
            routes: vec![route()],
            caseless: false,
        },
    );
    following.adopt_routes();
    assert!(
        !following.is_proven_for(TIMELINE),
        "nothing is known of what was before"
    );
    assert!(following.confirm_start(generation));
    assert!(following.is_proven_for(TIMELINE) && !following.is_proven_for(TimelineId(1)));
    let now = start();
    assert!(following.record_proof(generation, now, false));
    assert!(!following.is_proven_for(TIMELINE), "the last proof failed");
    assert!(following.record_proof(generation, now, true));
    assert!(following.was_fresh(Duration::from_secs(1), now + Duration::from_millis(900)));
    assert!(!following.was_fresh(Duration::from_secs(1), now + Duration::from_millis(1_100)));
    let mark = following.mark().unwrap();
    assert!(following.leaves_unchanged(mark, TIMELINE, &[1], None));
    following.discard();
    assert!(
        !following.record_proof(generation, now, true),
        "it is about another stream"
    );
    assert!(!following.leaves_unchanged(mark, TIMELINE, &[1], None));
    assert_eq!(following.last_proof(), None);
    assert_eq!(
        RowState::Absent,
        RowState::before(&TimelineChange::Posted {
            author: 1,
            key: 0,
            id: 1
        })
    );
}
