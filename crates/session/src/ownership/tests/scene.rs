//! A session in its command phase, what all sessions know, and a driver that fetches what it is told to.

use std::cell::{Cell, RefCell, RefMut};
use std::ops::DerefMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_lookup::hints::Hints;
use headwater_rows::template::KeptRows;
use headwater_sql::NameCase;
use headwater_statement::{Class, Effects, classify};
use headwater_timeline::Form;
use headwater_timeline::check::{Facts, Product, Reason, Verdict};
use headwater_timeline::definition::{Definition, DefinitionId};
use headwater_wire::response::{ErrPacket, OkPacket};
use headwater_wire::resultset::{Answer, told};

use super::super::*;
use crate::asked::{Asked, Dress, Wanted};
use crate::commands::Commands;
use crate::idle;
use crate::probe::Settings;
use crate::rights::{Course, DefinerRight};
use crate::standing::{ExecuteRight, Standing};

pub(super) const IDENTITY: &str = "server";

/// What all sessions know.
pub(super) struct SceneKnowledge {
    definitions: Vec<Definition>,
    pub(super) verdict: RefCell<Option<Arc<Verdict>>>,
    /// The verdict does not count any more.
    pub(super) stale: Cell<bool>,
    pub(super) distrusted: Cell<bool>,
    pub(super) unseen: Cell<usize>,
    pub(super) expired: Cell<usize>,
    pub(super) epoch: Cell<u64>,
    /// Of the definer of the only procedure.
    pub(super) right: RefCell<DefinerRight>,
    ttl: Duration,
    beginning: Instant,
    hints: RefCell<Hints>,
}

impl Knowledge for SceneKnowledge {
    fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    fn verdict(&self, _: DefinitionId, database: &[u8]) -> Option<Arc<Verdict>> {
        let counts = database == b"tl" && !self.stale.get();
        self.verdict.borrow().clone().filter(|_| counts)
    }

    fn last_verdict(&self, _: DefinitionId, database: &[u8]) -> Option<(Arc<Verdict>, bool)> {
        let verdict = self
            .verdict
            .borrow()
            .clone()
            .filter(|_| database == b"tl")?;
        Some((verdict, !self.stale.get()))
    }

    fn record(&self, _: DefinitionId, _: &[u8], verdict: Verdict, _: u64) -> Arc<Verdict> {
        Arc::new(verdict)
    }

    fn unseen(&self, _: DefinitionId, _: &Reason) {
        self.unseen.set(self.unseen.get() + 1);
    }

    fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    fn expire(&self) {
        self.expired.set(self.expired.get() + 1);
    }

    fn distrusts(&self, _: DefinitionId) -> bool {
        self.distrusted.get()
    }

    fn course(&self, _: DefinitionId, _: &[u8], _: Form, now: Instant) -> Course {
        let now = now.duration_since(self.beginning);
        let mut right = self.right.borrow_mut();
        right.call_came(now, self.ttl)
    }

    fn run_succeeded(&self, _: DefinitionId, _: &[u8], _: Form, sent: Instant) {
        let sent = sent.duration_since(self.beginning);
        self.right.borrow_mut().run_succeeded(sent);
    }

    fn run_was_denied(&self, _: DefinitionId, _: &[u8], _: Form) {
        self.right.borrow_mut().run_was_denied(Duration::ZERO);
    }

    fn rows_of(&self, _: &str, _: &str, _: &str) -> Option<Arc<KeptRows>> {
        None
    }

    fn hints(&self) -> impl DerefMut<Target = Hints> {
        RefMut::map(self.hints.borrow_mut(), |hints| hints)
    }
}

/// A session, and what all know.
pub(super) struct Scene {
    pub(super) session: Commands,
    pub(super) known: SceneKnowledge,
    pub(super) policy: Policy,
    pub(super) now: Instant,
    /// The last need, whole.
    pub(super) last: Option<Need>,
    /// While a page is looked for, the log tells of a function.
    pub(super) doubts: bool,
}

impl Scene {
    /// A session of which all is proven, in database `tl`, whose account may execute everything that it calls.
    pub(super) fn proven(product: Product) -> Scene {
        let mariadb = product == Product::Mariadb;
        let now = Instant::now();
        let mut standing = Standing::new(Some(b"tl".to_vec()));
        standing.settings_proved(settings_for(Duration::MAX));
        standing.execute_proved(ExecuteRight {
            of: (DefinitionId(0), Form::Newest),
            at: now,
            epoch: 0,
        });
        let mut session = idle::session(mariadb);
        session.standing = standing;
        let known = SceneKnowledge {
            definitions: vec![Definition::classic()],
            verdict: RefCell::new(Some(accelerate(product))),
            stale: Cell::new(false),
            distrusted: Cell::new(false),
            unseen: Cell::new(0),
            expired: Cell::new(0),
            epoch: Cell::new(0),
            right: RefCell::new(DefinerRight::Proved {
                at: Duration::ZERO,
                renewing: None,
            }),
            ttl: Duration::from_secs(1_000),
            beginning: now,
            hints: RefCell::new(Hints::new(100, 100)),
        };
        let policy = Policy {
            accelerate: true,
            pending_ids: 100,
            privileges_ttl: Duration::from_secs(1),
            recheck: Duration::from_secs(10),
            case: NameCase::Kept,
        };
        let mut scene = Scene {
            session,
            known,
            policy,
            now,
            last: None,
            doubts: false,
        };
        scene.flags(2);
        scene
    }

    /// A command was relayed that had these effects.
    pub(super) fn relayed(&mut self, change: impl Fn(&mut Effects)) {
        let mut effects = Effects::NONE;
        change(&mut effects);
        self.session.standing.command_relayed(effects);
    }

    /// The right to execute is that to another procedure.
    pub(super) fn executed_another(&mut self) {
        self.session.standing.execute_proved(ExecuteRight {
            of: (DefinitionId(9), Form::Heads),
            at: self.now,
            epoch: 0,
        });
    }

    /// The status flags that the last reply carried.
    pub(super) fn flags(&mut self, status: u16) {
        self.session.standing.observe(&OkPacket {
            status,
            ..OkPacket::default()
        });
    }

    pub(super) fn later(&mut self, time: Duration) {
        self.now += time;
    }

    /// Changes what the check found.
    pub(super) fn facts(&mut self, change: impl FnOnce(&mut Facts)) {
        let verdict = self.known.verdict.borrow().clone().unwrap();
        let Verdict::Accelerate(facts) = &*verdict else {
            panic!("relayed");
        };
        let mut facts = Facts::clone(facts);
        change(&mut facts);
        *self.known.verdict.borrow_mut() = Some(Arc::new(Verdict::Accelerate(Arc::new(facts))));
    }

    /// Ids of another call that are not on the server yet.
    pub(super) fn pending(&mut self, definition: DefinitionId, ids: Vec<u64>) {
        self.session.tables.pending = Some(Box::new(idle::pending(definition, ids)));
    }

    pub(super) fn asked(&self, text: &str) -> Asked {
        let class = classify(text.as_bytes(), &self.known.definitions, true);
        let (wanted, dress) = match class {
            Class::Call(call) => (Wanted::Call(call), Dress::Text),
            Class::Unbound(open) => (Wanted::in_session(open), Dress::Indirect),
            other => panic!("{other:?}"),
        };
        Asked {
            length: text.len() + 5,
            wanted,
            dress,
        }
    }

    /// Has the decision take these in, one behind the other; what it needed, in words.
    pub(super) fn play(&mut self, text: &str, inputs: Vec<Input>) -> Vec<String> {
        self.play_asked(self.asked(text), inputs)
    }

    pub(super) fn play_asked(&mut self, asked: Asked, inputs: Vec<Input>) -> Vec<String> {
        let mut decision = Ownership::new(asked, b"\x03CALL".to_vec(), self.policy);
        let inputs = std::iter::once(Input::Begin).chain(inputs);
        let mut told = Vec::new();
        for input in inputs {
            if self.doubts && matches!(input, Input::Page(None)) {
                self.session.doubt_functions();
                self.doubts = false;
            }
            let need = decision.next(input, &mut self.session, &self.known, self.now);
            told.push(said(&need));
            let ends = matches!(
                need,
                Need::Relay(_) | Need::Interrupted(_) | Need::Answer(_)
            );
            self.last = Some(need);
            if ends {
                break;
            }
        }
        told
    }

    /// The answer that the last decision came to.
    pub(super) fn answer(&self) -> &Answered {
        match &self.last {
            Some(Need::Answer(answered)) => answered,
            other => panic!("{other:?}"),
        }
    }
}

fn said(need: &Need) -> String {
    match need {
        Need::Ask(ask) => format!("ask {}", ask.queries.join("; ")),
        Need::Settle => "settle".into(),
        Need::Check { database, .. } => format!("check {}", String::from_utf8_lossy(database)),
        Need::Memory(want) if want.now => format!("memory {}", want.reader),
        Need::Memory(want) => format!("memory {}, not now", want.reader),
        Need::Page => "page".into(),
        Need::Relay(reason) => format!("relay {}", reason.label()),
        Need::Interrupted(error) => format!("interrupted {}", error.code),
        Need::Answer(answered) => format!("answer {:?}", answered.source).to_lowercase(),
    }
}

/// Settings under which calls may be owned, of a session that idles for so long at most.
pub(super) fn settings_for(wait_timeout: Duration) -> Settings {
    Settings {
        server: IDENTITY.into(),
        wait_timeout,
        ..idle::settings()
    }
}

/// A server that has the known procedures.
pub(super) fn accelerate(product: Product) -> Arc<Verdict> {
    Arc::new(Verdict::Accelerate(Arc::new(Facts::known(product))))
}

pub(super) fn no_helper() -> Reason {
    Reason::NoHelper {
        procedure: "build_max_ids_of_followers".into(),
    }
}

/// A server that has something else.
pub(super) fn relay() -> Arc<Verdict> {
    Arc::new(Verdict::Relay(no_helper()))
}

/// Rows as a server sends them.
pub(super) fn rows(rows: &[&[Option<&str>]]) -> Answer {
    let row = |row: &&[Option<&str>]| row.iter().map(|cell| cell.map(str::to_owned)).collect();
    let rows: Vec<Vec<Option<String>>> = rows.iter().map(row).collect();
    Answer::Rows(told(&rows))
}

/// A result set without a row.
pub(super) fn nothing() -> Answer {
    rows(&[])
}

pub(super) fn ok(warnings: u16) -> Answer {
    Answer::Ok(OkPacket {
        status: 2,
        warnings,
        ..OkPacket::default()
    })
}

pub(super) fn error(code: u16) -> Answer {
    Answer::Err(ErrPacket {
        code,
        sqlstate: None,
        message: Vec::new(),
    })
}

/// The answer of a MariaDB session in this database, whose settings are at their defaults.
pub(super) fn settings(database: Option<&str>) -> Answer {
    settings_with(database, &[])
}

/// The same with other values of some.
pub(super) fn settings_with(database: Option<&str>, other: &[(&str, &str)]) -> Answer {
    let query = crate::probe::settings_query(crate::probe::Asked::of(true));
    // The identity's own expression has commas and variables in it, and so have the two that stand for what plans follow.
    let (front, _) = query.split_once(",CRC32(").unwrap();
    let (_, back) = query.rsplit_once(",@@sql_mode").unwrap();
    let front = front.split(",@@");
    let names = front
        .skip_while(|name| *name != "wait_timeout")
        .chain(["plans", "plans_as_all", "rows", "sql_mode"])
        .chain(back.split(",@@").skip(1));
    let values = names.map(|name| {
        let changed = other.iter().find(|(changed, _)| *changed == name);
        changed.map_or_else(|| default_of(name), |(_, value)| value)
    });
    let mut row = vec![database, Some(IDENTITY)];
    row.extend(values.map(Some));
    rows(&[&row])
}

fn default_of(name: &str) -> &'static str {
    match name {
        "wait_timeout" => "28800",
        "time_zone" => "SYSTEM",
        "sql_mode" => "STRICT_TRANS_TABLES",
        "binlog_format" => "ROW",
        "max_heap_table_size" | "max_session_mem_used" => "67108864",
        "sql_select_limit" => "18446744073709551615",
        "sql_big_selects" | "plans_as_all" => "1",
        "enforce_storage_engine" => "MEMORY",
        "in_predicate_conversion_threshold" => "1000",
        _ => "0",
    }
}
