//! A session in its command phase, shared knowledge, and a driver that fetches what it is told to.

use std::cell::{Cell, RefCell, RefMut};
use std::ops::DerefMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_lookup::hints::LookupHints;
use headwater_rows::template::CacheKeyTable;
use headwater_sql::NameCase;
use headwater_statement::{StatementClass, StatementEffects, classify};
use headwater_timeline::ProcedureForm;
use headwater_timeline::check::{DefinitionFacts, DefinitionVerdict, RelayReason, ServerProduct};
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};
use headwater_wire::response::{ErrPacket, OkPacket};
use headwater_wire::resultset::{QueryReply, result_set_of};

use super::super::*;
use crate::call_request::{CallPacketForm, CallRequest, RequestedCall};
use crate::commands::CommandPhase;
use crate::definer_rights::{CallStrategy, DefinerRightProof};
use crate::idle_session;
use crate::session_state::{ExecuteRight, SessionState};
use crate::settings_probe::SessionSettings;

pub(super) const IDENTITY: &str = "server";

/// Shared knowledge.
pub(super) struct ScenarioKnowledge {
    definitions: Vec<TimelineDefinition>,
    pub(super) verdict: RefCell<Option<Arc<DefinitionVerdict>>>,
    /// The verdict does not count any more.
    pub(super) stale: Cell<bool>,
    pub(super) distrusted: Cell<bool>,
    pub(super) unseen: Cell<usize>,
    pub(super) expired: Cell<usize>,
    pub(super) epoch: Cell<u64>,
    /// Of the definer of the only procedure.
    pub(super) right: RefCell<DefinerRightProof>,
    ttl: Duration,
    beginning: Instant,
    hints: RefCell<LookupHints>,
}

impl CallKnowledge for ScenarioKnowledge {
    fn definitions(&self) -> &[TimelineDefinition] {
        &self.definitions
    }

    fn verdict(&self, _: DefinitionId, database: &[u8]) -> Option<Arc<DefinitionVerdict>> {
        let counts = database == b"tl" && !self.stale.get();
        self.verdict.borrow().clone().filter(|_| counts)
    }

    fn last_verdict(
        &self,
        _: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<DefinitionVerdict>, bool)> {
        let verdict = self
            .verdict
            .borrow()
            .clone()
            .filter(|_| database == b"tl")?;
        Some((verdict, !self.stale.get()))
    }

    fn record(
        &self,
        _: DefinitionId,
        _: &[u8],
        verdict: DefinitionVerdict,
        _: u64,
    ) -> Arc<DefinitionVerdict> {
        Arc::new(verdict)
    }

    fn unseen(&self, _: DefinitionId, _: &RelayReason) {
        self.unseen.set(self.unseen.get() + 1);
    }

    fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    fn expire(&self) {
        self.expired.set(self.expired.get() + 1);
    }

    fn is_distrusted(&self, _: DefinitionId) -> bool {
        self.distrusted.get()
    }

    fn strategy(&self, _: DefinitionId, _: &[u8], _: ProcedureForm, now: Instant) -> CallStrategy {
        let now = now.duration_since(self.beginning);
        let mut right = self.right.borrow_mut();
        right.strategy(now, self.ttl)
    }

    fn run_succeeded(&self, _: DefinitionId, _: &[u8], _: ProcedureForm, sent: Instant) {
        let sent = sent.duration_since(self.beginning);
        self.right.borrow_mut().run_succeeded(sent);
    }

    fn run_was_denied(&self, _: DefinitionId, _: &[u8], _: ProcedureForm) {
        self.right.borrow_mut().run_was_denied(Duration::ZERO);
    }

    fn cache_keys(&self, _: &str, _: &str, _: &str) -> Option<Arc<CacheKeyTable>> {
        None
    }

    fn hints(&self) -> impl DerefMut<Target = LookupHints> {
        RefMut::map(self.hints.borrow_mut(), |hints| hints)
    }
}

/// A session, and the shared knowledge.
pub(super) struct CallScenario {
    pub(super) session: CommandPhase,
    pub(super) known: ScenarioKnowledge,
    pub(super) policy: CallPolicy,
    pub(super) now: Instant,
    /// The last need, whole.
    pub(super) last: Option<CallAction>,
    /// While a page is requested, the log contains a function.
    pub(super) doubts: bool,
}

impl CallScenario {
    /// A session of which all is proven, in database `tl`, whose account may execute everything that it calls.
    pub(super) fn proven(product: ServerProduct) -> CallScenario {
        let mariadb = product == ServerProduct::Mariadb;
        let now = Instant::now();
        let mut standing = SessionState::new(Some(b"tl".to_vec()));
        standing.settings_proved(settings_for(Duration::MAX));
        standing.execute_right_proved(ExecuteRight {
            of: (DefinitionId(0), ProcedureForm::Newest),
            at: now,
            epoch: 0,
        });
        let mut session = idle_session::session(mariadb);
        session.state = standing;
        let known = ScenarioKnowledge {
            definitions: vec![TimelineDefinition::classic()],
            verdict: RefCell::new(Some(accelerate(product))),
            stale: Cell::new(false),
            distrusted: Cell::new(false),
            unseen: Cell::new(0),
            expired: Cell::new(0),
            epoch: Cell::new(0),
            right: RefCell::new(DefinerRightProof::Proved {
                at: Duration::ZERO,
                renewing: None,
            }),
            ttl: Duration::from_secs(1_000),
            beginning: now,
            hints: RefCell::new(LookupHints::new(100, 100)),
        };
        let policy = CallPolicy {
            accelerate: true,
            pending_ids: 100,
            privileges_ttl: Duration::from_secs(1),
            recheck: Duration::from_secs(10),
            case: NameCase::Sensitive,
        };
        let mut scene = CallScenario {
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
    pub(super) fn relayed(&mut self, change: impl Fn(&mut StatementEffects)) {
        let mut effects = StatementEffects::NONE;
        change(&mut effects);
        self.session.state.command_relayed(effects);
    }

    /// The right to execute is that to another procedure.
    pub(super) fn executed_another(&mut self) {
        self.session.state.execute_right_proved(ExecuteRight {
            of: (DefinitionId(9), ProcedureForm::Heads),
            at: self.now,
            epoch: 0,
        });
    }

    /// The status flags that the last reply carried.
    pub(super) fn flags(&mut self, status: u16) {
        self.session.state.observe(&OkPacket {
            status,
            ..OkPacket::default()
        });
    }

    pub(super) fn later(&mut self, time: Duration) {
        self.now += time;
    }

    /// Changes what the check found.
    pub(super) fn facts(&mut self, change: impl FnOnce(&mut DefinitionFacts)) {
        let verdict = self.known.verdict.borrow().clone().unwrap();
        let DefinitionVerdict::Accelerate(facts) = &*verdict else {
            panic!("relayed");
        };
        let mut facts = DefinitionFacts::clone(facts);
        change(&mut facts);
        *self.known.verdict.borrow_mut() =
            Some(Arc::new(DefinitionVerdict::Accelerate(Arc::new(facts))));
    }

    /// Ids of another call that are not on the server yet.
    pub(super) fn pending(&mut self, definition: DefinitionId, ids: Vec<u64>) {
        self.session.tables.pending = Some(Box::new(idle_session::pending(definition, ids)));
    }

    pub(super) fn asked(&self, text: &str) -> CallRequest {
        let class = classify(text.as_bytes(), &self.known.definitions, true);
        let (wanted, dress) = match class {
            StatementClass::Call(call) => (RequestedCall::Call(call), CallPacketForm::Text),
            StatementClass::UnboundCall(open) => {
                (RequestedCall::in_session(open), CallPacketForm::Indirect)
            }
            other => panic!("{other:?}"),
        };
        CallRequest {
            length: text.len() + 5,
            call: wanted,
            packet_form: dress,
        }
    }

    /// Passes these inputs to the decision; returns its actions as text.
    pub(super) fn play(&mut self, text: &str, inputs: Vec<CallInput>) -> Vec<String> {
        self.play_asked(self.asked(text), inputs)
    }

    pub(super) fn play_asked(&mut self, asked: CallRequest, inputs: Vec<CallInput>) -> Vec<String> {
        let mut decision = CallDecision::new(asked, b"\x03CALL".to_vec(), self.policy);
        let inputs = std::iter::once(CallInput::Begin).chain(inputs);
        let mut told = Vec::new();
        for input in inputs {
            if self.doubts && matches!(input, CallInput::Page(None)) {
                self.session.doubt_functions();
                self.doubts = false;
            }
            let need = decision.next(input, &mut self.session, &self.known, self.now);
            told.push(said(&need));
            let ends = matches!(
                need,
                CallAction::Relay(_) | CallAction::Interrupted(_) | CallAction::Answer(_)
            );
            self.last = Some(need);
            if ends {
                break;
            }
        }
        told
    }

    /// The answer that the last decision came to.
    pub(super) fn answer(&self) -> &AnsweredCall {
        match &self.last {
            Some(CallAction::Answer(answered)) => answered,
            other => panic!("{other:?}"),
        }
    }
}

fn said(need: &CallAction) -> String {
    match need {
        CallAction::Query(ask) => format!("ask {}", ask.queries.join("; ")),
        CallAction::Flush => "settle".into(),
        CallAction::Check { database, .. } => {
            format!("check {}", String::from_utf8_lossy(database))
        }
        CallAction::ProbeMemory(want) if want.wants_page => format!("memory {}", want.reader),
        CallAction::ProbeMemory(want) => format!("memory {}, not now", want.reader),
        CallAction::Page => "page".into(),
        CallAction::Relay(reason) => format!("relay {}", reason.label()),
        CallAction::Interrupted(error) => format!("interrupted {}", error.code),
        CallAction::Answer(answered) => format!("answer {:?}", answered.source).to_lowercase(),
    }
}

/// Settings under which calls may be served, with this `wait_timeout`.
pub(super) fn settings_for(wait_timeout: Duration) -> SessionSettings {
    SessionSettings {
        server: IDENTITY.into(),
        wait_timeout,
        ..idle_session::settings()
    }
}

/// A server that has the known procedures.
pub(super) fn accelerate(product: ServerProduct) -> Arc<DefinitionVerdict> {
    Arc::new(DefinitionVerdict::Accelerate(Arc::new(
        DefinitionFacts::known(product),
    )))
}

pub(super) fn no_helper() -> RelayReason {
    RelayReason::NoHelper {
        procedure: "build_max_ids_of_followers".into(),
    }
}

/// A server that has something else.
pub(super) fn relay() -> Arc<DefinitionVerdict> {
    Arc::new(DefinitionVerdict::Relay(no_helper()))
}

/// Rows as a server sends them.
pub(super) fn rows(rows: &[&[Option<&str>]]) -> QueryReply {
    let row = |row: &&[Option<&str>]| row.iter().map(|cell| cell.map(str::to_owned)).collect();
    let rows: Vec<Vec<Option<String>>> = rows.iter().map(row).collect();
    QueryReply::Rows(result_set_of(&rows))
}

/// A result set without a row.
pub(super) fn nothing() -> QueryReply {
    rows(&[])
}

pub(super) fn ok(warnings: u16) -> QueryReply {
    QueryReply::Ok(OkPacket {
        status: 2,
        warnings,
        ..OkPacket::default()
    })
}

pub(super) fn error(code: u16) -> QueryReply {
    QueryReply::Err(ErrPacket {
        code,
        sqlstate: None,
        message: Vec::new(),
    })
}

/// The answer of a MariaDB session in this database, whose settings are at their defaults.
pub(crate) fn settings(database: Option<&str>) -> QueryReply {
    settings_with(database, &[])
}

/// The same with other values of some.
pub(super) fn settings_with(database: Option<&str>, other: &[(&str, &str)]) -> QueryReply {
    let query =
        crate::settings_probe::settings_query(crate::settings_probe::ProbedServer::of(true));
    // The identity's own expression has commas and variables in it, as do the two digests of settings that plans depend on.
    let (front, _) = query.split_once(",CRC32(").unwrap();
    let (_, back) = query.rsplit_once(",@@sql_mode").unwrap();
    let front = front.split(",@@");
    let names = front
        .skip_while(|name| *name != "wait_timeout")
        .chain(["plans", "plans_as_all", "rows", "account", "sql_mode"])
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
