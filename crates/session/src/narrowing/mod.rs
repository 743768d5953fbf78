//! The decision to narrow a feed's statement: one machine, asked until it has an end.
//!
//! ```text
//! session -> template -> proofs -> values -> candidates -> the server's answer -> nothing has changed -> answer
//! ```
//!
//! Candidates come from memory as it is, without a proof that it is up to date. That comes last: if nothing about these authors and
//! readers has changed from the look into memory to a moment behind the server's answer, memory was right all the while, and the
//! answer is that of one moment.

mod answered;
mod execution;
mod explained;
mod heeded;
mod kept;
mod lesson;
pub mod lessons;
mod lists;
mod named;
mod places;
mod proofs;
mod reply;
mod subject;
mod why;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use headwater_feed::bind::{Asked, Statement};
use headwater_feed::cost::Crowd;
use headwater_feed::narrow::{Candidates as Among, Form};
use headwater_feed::template::{Choice, Tallies};
use headwater_feed::variants::{Plan, Under};
use headwater_feed::{Refused, Template};
use headwater_rows::template::Frame;
use headwater_timeline::KeyType;
use headwater_timeline::index::{Keyed, Range};
use headwater_wire::capability::Capabilities;
use headwater_wire::command;
use headwater_wire::reply::Outcome;
use headwater_wire::resultset::Answer;

pub use execution::Prepare;
use execution::ToExecute;
pub use heeded::{Feeds, Known, Policy};
use kept::Keeping;
pub use kept::PageWant;
pub use lesson::Lesson;
use lessons::{Awaits, Of};
pub use lists::List;
use named::Named;
use places::{numbers, range};
use proofs::Unproved;
use subject::Subject;
pub use why::Why;

use crate::commands::Commands;
use crate::kept::{Fill, Paged};
use crate::lists::Authors;
use crate::ownership::{ASK_LIMITS, Ask, INTERRUPTED};
use crate::prepared::{Executed, ExecutedByName, PreparedFeed};

/// What a statement needs next.
#[derive(Debug)]
pub enum Need {
    /// Ask these on the client's own connection: [`Input::Answers`].
    Ask(Ask),
    /// Have memory name candidates: [`Input::Candidates`].
    Candidates(Want),
    /// Make a page of rows that are kept: [`Input::Paged`].
    Page(Box<PageWant>),
    /// Send this payload in the statement's place, and keep the whole reply: [`Input::Reply`].
    Run(Vec<u8>),
    /// Prepare a narrowed text in the session: [`Input::Reply`].
    Prepare(Prepare),
    /// Say whether nothing has changed about the candidates since they were named: [`Input::Unchanged`].
    Unchanged,
    /// Wait while this awaits something: [`Input::Awaited`].
    Await(Awaits),
    /// The end: this reply is the statement's.
    Tell(Told),
    /// The end: the statement goes on as it is.
    Relay(Why),
    /// The end: the execution goes on as it is, and is learned from.
    Teach(Lesson),
}

/// What the driver has fetched.
#[derive(Debug)]
pub enum Input {
    /// Nothing yet.
    Begin,
    /// See [`Need::Ask`].
    Answers(Vec<Answer>),
    /// See [`Need::Candidates`], or why there are none.
    Candidates(Result<Found, Why>),
    /// See [`Need::Page`]; `None`: not all of it is kept, or memory is not up to date in time.
    Paged(Option<Paged>),
    /// See [`Need::Run`] and [`Need::Prepare`].
    Reply(Reply),
    /// See [`Need::Unchanged`].
    Unchanged(bool),
    /// See [`Need::Await`].
    Awaited,
}

/// Candidates that are wanted.
#[derive(Clone, Debug)]
pub struct Want {
    /// Of which template.
    pub template: Arc<Template>,
    /// Whom these follow.
    pub readers: Vec<u64>,
    /// And these, ascending.
    pub authors: Vec<u64>,
    /// Which messages. Where the id alone orders, keys are 0.
    pub range: Range<Keyed>,
    /// The key alone orders them: none that share one may be among them.
    pub untied: bool,
    /// Lists of authors beside those whom the readers follow.
    pub lists: Vec<List>,
}

/// Candidates that were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Descending.
    pub ids: Vec<u64>,
    /// There are no others.
    pub all: bool,
    /// They end in front of messages that share a key, where the key alone orders.
    pub tied: bool,
    /// How many authors there are.
    pub authors: usize,
    /// Whose the messages are, one by one.
    pub written_by: Vec<u64>,
    /// The authors of each list: `None`: it is not known; `Some(None)`: it cannot be kept, as there are too many.
    pub listed: Vec<Option<Option<Authors>>>,
    /// In which stream of the log they were named.
    pub generation: u64,
}

/// The reply to a statement of ours.
#[derive(Debug)]
pub struct Reply {
    /// Its bytes, where they are not too many to be kept.
    pub bytes: Option<Vec<u8>>,
    /// How many rows it has.
    pub rows: u64,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

/// A reply that the client is told.
#[derive(Debug)]
pub struct Told {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it ends.
    pub outcome: Outcome,
    /// The statement that was sent was a narrowed one.
    pub narrowed: bool,
    /// None was sent: the rows were kept.
    pub kept: bool,
    /// What may be kept of it, if nothing has changed since candidates were named.
    pub fill: Option<Box<Fill>>,
}

impl Told {
    /// The reply to a narrowed statement, of which nothing is kept.
    fn narrowed(bytes: Vec<u8>, outcome: Outcome) -> Told {
        Told {
            bytes,
            outcome,
            narrowed: true,
            kept: false,
            fill: None,
        }
    }
}

/// More candidates are not listed, but all messages from the oldest one on: on MariaDB 600 took 4.4 ms as a list and 2.9 ms so.
const LISTED: usize = 400;

/// The decision about one statement.
#[derive(Debug)]
pub struct Narrowing {
    payload: Vec<u8>,
    /// It is no text, but an execution of one.
    executed: Option<Executed>,
    /// It is an execution by a name.
    named: Option<Named>,
    policy: Policy,
    stage: Stage,
    begun: Option<Instant>,
    plain: bool,
    template: Option<Arc<Template>>,
    /// Where it is counted, while it has no template that is served.
    tallies: Option<Tallies>,
}

/// Where a decision stands.
#[derive(Debug)]
enum Stage {
    Begin,
    /// The session is asked for its settings; it was taken to be in this database.
    Settings(Subject, Vec<u8>),
    /// The session is asked for the rest.
    Proving(Subject, Unproved),
    /// The session is asked for the values of variables.
    Valuing(Subject),
    /// Memory is asked.
    Looking(Subject, Wishes),
    /// A page is made of kept rows.
    Paging(Subject, Wishes, Found, Arc<Frame>),
    /// The server says how it would go about the statement.
    Explaining(Subject, Wishes, Found, Choice),
    /// The statement itself runs, to be learned from.
    Learning(Subject, Crowd, Option<Plan>),
    /// The narrowed one is prepared.
    Preparing(Subject, Wishes, Candidates, ToExecute),
    /// It is asked for lists of authors.
    Listing(Subject, Wishes, Found, Choice),
    /// The narrowed one runs.
    Running(Subject, Wishes, Candidates),
    /// Another one of its kind is on its way, from which is learned what this one needs.
    Awaiting(Subject, Wishes),
    /// It is asked whether anything has changed.
    Waiting(Subject, Wishes, Candidates, Told),
    Ended,
}

/// What a statement asks for, and how often candidates were taken for it.
#[derive(Debug)]
struct Wishes {
    asked: Asked,
    wanted: usize,
    range: Range<Keyed>,
    anew: u32,
    /// How the server would go about it, where that has been asked.
    plan: Option<Plan>,
    /// Candidates did not suffice at first.
    short: bool,
    /// Under what rows are kept, if they may be.
    keeping: Option<Box<Keeping>>,
    /// What the server said of each list, where it was asked.
    told: Vec<Option<crate::kept::Told>>,
}

impl Wishes {
    fn want(&self, subject: &Subject) -> Want {
        Want {
            template: Arc::clone(&subject.template),
            readers: self.asked.readers.clone(),
            authors: self.asked.authors.clone(),
            range: self.range,
            untied: subject.template.shape.ties,
            lists: self
                .keeping
                .as_ref()
                .map_or(Vec::new(), |it| it.lists.clone()),
        }
    }
}

/// Candidates in use.
#[derive(Debug)]
struct Candidates {
    crowd: Crowd,
    count: usize,
    all: bool,
    tied: bool,
    /// The statement of Headwater's own that is executed with them.
    own: Option<u32>,
    /// Which they are, where rows may be kept.
    found: Option<Found>,
}

type Turn = Result<(Stage, Need), Why>;

/// What a stage looks at.
struct World<'a, K> {
    payload: &'a [u8],
    executed: Option<&'a Executed>,
    named: Option<&'a mut Named>,
    policy: Policy,
    begun: &'a mut Option<Instant>,
    plain: &'a mut bool,
    template: &'a mut Option<Arc<Template>>,
    tallies: &'a mut Option<Tallies>,
    session: &'a mut Commands,
    known: &'a K,
    now: Instant,
}

impl Narrowing {
    /// Begins with a statement whose packet waits.
    #[must_use]
    pub fn new(payload: Vec<u8>, policy: Policy) -> Narrowing {
        Narrowing {
            payload,
            executed: None,
            named: None,
            policy,
            stage: Stage::Begin,
            begun: None,
            plain: false,
            template: None,
            tallies: None,
        }
    }

    /// The same with an execution of a statement that was prepared.
    #[must_use]
    pub fn of_execution(payload: Vec<u8>, executed: Executed, policy: Policy) -> Narrowing {
        Narrowing {
            executed: Some(executed),
            ..Narrowing::new(payload, policy)
        }
    }

    /// The same with an execution by a name.
    #[must_use]
    pub fn of_named(payload: Vec<u8>, executed: ExecutedByName, policy: Policy) -> Narrowing {
        Narrowing {
            named: Some(Named::new(executed)),
            ..Narrowing::new(payload, policy)
        }
    }

    /// The client's statement that is executed, if it is an execution.
    #[must_use]
    pub fn statement(&self) -> Option<u32> {
        self.executed.as_ref().map(|executed| executed.statement)
    }

    /// True where the server's own answer is awaited, to be learned from.
    #[must_use]
    pub fn is_learning(&self) -> bool {
        matches!(self.stage, Stage::Learning(..))
    }

    /// The statement's text.
    #[must_use]
    pub fn text(&self, capabilities: Capabilities) -> Option<&[u8]> {
        let prepared = prepared(self.executed.as_ref(), self.named.as_ref());
        text(&self.payload, prepared, capabilities)
    }

    /// Its template, once that is known.
    #[must_use]
    pub fn template(&self) -> Option<&Template> {
        self.template.as_deref()
    }

    /// Counts what became of it, for its template and its feed.
    pub fn count(&self, what: &'static str) {
        match (&self.template, &self.tallies) {
            (Some(template), _) => template.count(what),
            (None, Some(tallies)) => tallies.add(what),
            (None, None) => {}
        }
    }

    /// True once it is proved that the statement reads rows of plain tables and does nothing else, so that it leaves nothing in its
    /// session but what each SELECT does.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Takes in what was needed, and says what is needed next.
    pub fn next(
        &mut self,
        input: Input,
        session: &mut Commands,
        known: &impl Feeds,
        now: Instant,
    ) -> Need {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        let mut world = World {
            payload: &self.payload,
            executed: self.executed.as_ref(),
            named: self.named.as_mut(),
            policy: self.policy,
            begun: &mut self.begun,
            plain: &mut self.plain,
            template: &mut self.template,
            tallies: &mut self.tallies,
            session,
            known,
            now,
        };
        match stage.handle(input, &mut world) {
            Ok((stage, need)) => {
                self.stage = stage;
                need
            }
            Err(why) => Need::Relay(why),
        }
    }
}

impl Stage {
    fn handle<K: Feeds>(self, input: Input, world: &mut World<'_, K>) -> Turn {
        match (self, input) {
            (Stage::Begin, Input::Begin) => world.begin(),
            (Stage::Settings(subject, database), Input::Answers(answers)) => {
                world.take_settings(answers.first())?;
                world.is_in(&database)?;
                world.prove(subject)
            }
            (Stage::Proving(subject, unproved), Input::Answers(answers)) => {
                world.take_proofs(&subject, unproved, answers)?;
                world.value(subject)
            }
            (Stage::Valuing(subject), Input::Answers(answers)) => {
                world.take_values(&subject, answers.first())?;
                world.look(subject)
            }
            (Stage::Looking(subject, wishes), Input::Candidates(found)) => {
                world.choose(subject, wishes, found?)
            }
            (Stage::Paging(subject, wishes, found, frame), Input::Paged(paged)) => {
                world.paged(subject, wishes, found, &frame, paged)
            }
            (Stage::Listing(subject, mut wishes, found, choice), Input::Answers(answers)) => {
                wishes.take_lists(&found, answers);
                world.carry_out(subject, wishes, found, choice)
            }
            (Stage::Explaining(subject, wishes, found, choice), Input::Answers(answers)) => {
                world.explained(subject, wishes, found, choice, answers)
            }
            (Stage::Learning(subject, crowd, plan), Input::Reply(reply)) => {
                let turn = world.learned(&subject, crowd, plan, reply);
                if let Some(lessons) = world.known.lessons() {
                    let (template, under) = (&subject.template, world.under());
                    let has_taught = template.has_learned(crowd, under);
                    lessons.end(Of::new(template, crowd, under), has_taught, world.now);
                }
                turn
            }
            // What it would teach is not certain to be of this table.
            (Stage::Learning(subject, crowd, _), Input::Unchanged(_)) => {
                if let Some(lessons) = world.known.lessons() {
                    let of = Of::new(&subject.template, crowd, world.under());
                    lessons.end(of, false, world.now);
                }
                if let Some(executed) = world.executed {
                    world.session.statements().not_sent(executed.statement);
                }
                Err(Why::Changed)
            }
            (Stage::Preparing(subject, wishes, candidates, plan), Input::Reply(reply)) => {
                world.prepared(subject, wishes, candidates, plan, reply)
            }
            (Stage::Running(subject, wishes, candidates), Input::Reply(reply)) => {
                world.ran(subject, wishes, candidates, reply)
            }
            (Stage::Awaiting(subject, wishes), Input::Awaited) => {
                // The time is no cost of this way.
                *world.begun = None;
                Ok(wish(subject, wishes))
            }
            (Stage::Waiting(subject, wishes, candidates, told), Input::Unchanged(unchanged)) => {
                world.waited(subject, wishes, &candidates, told, unchanged)
            }
            // Only a driver that fetches something else than what is needed gets here.
            _ => Err(Why::Failed),
        }
    }
}

/// A statement's text: that of its packet, or the one that was prepared.
fn text<'a>(
    payload: &'a [u8],
    prepared: Option<&'a PreparedFeed>,
    capabilities: Capabilities,
) -> Option<&'a [u8]> {
    if let Some(prepared) = prepared {
        return Some(prepared.text());
    }
    payload.get(command::query_text(payload, capabilities)?)
}

/// What was prepared, where that is executed.
fn prepared<'a>(
    executed: Option<&'a Executed>,
    named: Option<&'a Named>,
) -> Option<&'a PreparedFeed> {
    let of_named = named.map(|named| &*named.executed.feed);
    executed.map(|executed| &*executed.feed).or(of_named)
}

impl<K: Feeds> World<'_, K> {
    fn text(&self) -> Option<&[u8]> {
        let prepared = prepared(self.executed, self.named.as_deref());
        text(self.payload, prepared, self.session.capabilities)
    }

    /// Reads the statement's values, and asks memory.
    fn look(&mut self, subject: Subject) -> Turn {
        *self.plain = true;
        let text = self.text().ok_or(Why::Failed)?;
        let template = &subject.template;
        let ahead = self.session.standing.ahead();
        // MySQL may sort by the time that the session is told, and both servers compare that by row, but UTC by index: in the hour that
        // comes twice order and answer are the plan's.
        if is_zoned(template) && ahead.is_none() {
            return Err(Why::TimeZone);
        }
        if self.is_planned(template) && !self.can_be_explained(template) {
            return Err(Why::ColumnsUnsure);
        }
        // How columns of a SELECT in FROM are described depends on how often it was executed.
        if template.shape.derived && (self.executed.is_some() || self.named.is_some()) {
            return Err(Why::Execution);
        }
        let statement = Statement {
            text,
            words: &subject.words,
            parameters: &self.parameters(&subject)?,
            types: &self.parameter_types()?,
            ahead,
        };
        let asked = template.shape.bind(statement, template.types)?;
        // MySQL goes on comparing a parameter as what it has been: a variable in an execution that nobody may have looked at.
        let is_mysql = !self.session.asked(false).mariadb;
        let unknown = self.named.as_deref().filter(|_| is_mysql);
        let has_turned = self.executed.is_some_and(|executed| executed.turned);
        let may_have_turned = has_turned || unknown.is_some();
        if may_have_turned && template.shape.compares_text(statement)
            || unknown.is_some_and(Named::has_great)
        {
            return Err(Why::Execution);
        }
        let rows = asked.limit.saturating_add(asked.offset);
        let wanted = usize::try_from(rows).unwrap_or(usize::MAX);
        let named = asked.authors.len() + asked.readers.len();
        if wanted > self.policy.candidates || named > self.policy.list_authors {
            return Err(Why::TooMany);
        }
        let most = template.candidates(wanted, self.policy.candidates);
        let range = range(&asked, template, most)?;
        let keeping = self.keeping(template, statement);
        let keeping = keeping.and_then(|it| it.with_lists(template, statement, &asked));
        let asked = Asked {
            readers: numbers(&asked.readers, template)?,
            authors: numbers(&asked.authors, template)?,
            ..asked
        };
        let wishes = Wishes {
            asked,
            wanted,
            range,
            anew: 0,
            plan: None,
            short: false,
            keeping: keeping.map(Box::new),
            told: Vec::new(),
        };
        Ok(wish(subject, wishes))
    }

    /// What was proved of the session still holds. Where it is doubted since, which happens once in a statement, all is proved anew.
    fn is_certain(&self) -> bool {
        self.session.standing.are_settings_proven()
    }

    fn choose(&mut self, subject: Subject, wishes: Wishes, found: Found) -> Turn {
        // Which of those that share a key come first is the server's own choice.
        if found.tied && found.ids.len() < wishes.wanted {
            return Err(Why::Ties);
        }
        // What was missing in memory was loaded once and for all: that is no cost of this way.
        self.begun.get_or_insert(self.now);
        if let Some(want) = self.page_want(&subject, &wishes, &found) {
            let frame = Arc::clone(&want.frame);
            let paging = Stage::Paging(subject, wishes, found, frame);
            return Ok((paging, Need::Page(Box::new(want))));
        }
        self.go_to_server(subject, wishes, found)
    }

    /// Has the server be asked.
    fn go_to_server(&mut self, subject: Subject, wishes: Wishes, found: Found) -> Turn {
        if !self.is_certain() {
            return self.begin();
        }
        self.session.standing.is_heard(self.now);
        let crowd = Crowd::of(found.authors);
        let of = Of::new(&subject.template, crowd, self.under());
        // What goes on as it is, and is learned from by the way, may teach nothing: nobody waits for that.
        if let Some(lessons) = self.known.lessons()
            && !self.keeps_columns()
            && !subject.template.has_learned(crowd, self.under())
            && !lessons.begin(of, self.now)
        {
            let template = Arc::clone(&subject.template);
            let awaits = Awaits { template, of };
            return Ok((Stage::Awaiting(subject, wishes), Need::Await(awaits)));
        }
        let choice = subject
            .template
            .choose(crowd, self.under(), self.policy.always);
        let goes_on = matches!(choice, Choice::Learn | Choice::Narrowed { .. });
        let is_planned = self.is_planned(&subject.template);
        match goes_on && is_planned && wishes.plan.is_none() {
            true => self.explain(subject, wishes, found, choice),
            false => self.carry_out(subject, wishes, found, choice),
        }
    }

    /// Has the server be asked in the way that was chosen.
    fn carry_out(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        found: Found,
        choice: Choice,
    ) -> Turn {
        let crowd = Crowd::of(found.authors);
        let template = &subject.template;
        let buffered = match choice {
            Choice::Narrowed { buffered } if self.knows_columns(template, crowd) => buffered,
            Choice::Narrowed { .. } | Choice::Learn if self.keeps_columns() => {
                let of = Arc::clone(template);
                let lesson = Lesson::new(of, crowd, self.under(), self.now);
                return Ok((Stage::Ended, Need::Teach(lesson)));
            }
            Choice::Narrowed { .. } | Choice::Learn => {
                let payload = self.as_it_is();
                *self.begun = Some(self.now);
                let learning = Stage::Learning(subject, crowd, wishes.plan);
                return Ok((learning, Need::Run(payload)));
            }
            Choice::Direct => return Err(Why::Cheaper),
            Choice::Retired(retired) => return Err(Why::Retired(retired)),
        };
        let buffered = match &wishes.plan {
            Some(plan) => template.is_buffered(self.under(), plan),
            None => buffered,
        };
        let queries = wishes.asks(template, &found);
        if !queries.is_empty() {
            let listing = Stage::Listing(subject, wishes, found, choice);
            return Ok((listing, ask(queries)));
        }
        let replaces_list = template.shape.list.is_some() && found.ids.len() > 1;
        let form = Form {
            replaces_list,
            buffered,
        };
        let ids = padded(&found.ids);
        let candidates = Candidates {
            crowd,
            count: found.ids.len(),
            all: found.all,
            tied: found.tied,
            own: None,
            found: wishes.keeping.is_some().then(|| found.clone()),
        };
        if let Some(executed) = self.executed {
            return self.run_prepared(executed, subject, wishes, candidates, ids, form);
        }
        let text = self.text().ok_or(Why::Failed)?;
        let (shape, words, names) = (&template.shape, &subject.words, &template.names);
        if let Some(named) = self.named.as_deref() {
            let open = shape.narrow_open(text, words, names, ids.len(), form);
            let narrowed = open.and_then(|open| named.with_values(&open, &ids));
            let payload = self.query(&narrowed.ok_or(Refused::NotUnderstood)?)?;
            let running = Stage::Running(subject, wishes, candidates);
            return Ok((running, Need::Run(payload)));
        }
        let oldest = found.ids.last().filter(|_| {
            // A list of authors that stays costs more.
            ids.len() > LISTED && !replaces_list && names.key.is_none()
        });
        let among = oldest.map_or(Among::Ids(&ids), |oldest| Among::From(*oldest));
        let narrowed = shape.narrow(text, words, names, among, form);
        let narrowed = narrowed.ok_or(Refused::NotUnderstood)?;
        let payload = self.query(&narrowed)?;
        Ok((
            Stage::Running(subject, wishes, candidates),
            Need::Run(payload),
        ))
    }

    /// The client's query with another text.
    fn query(&self, text: &[u8]) -> Result<Vec<u8>, Why> {
        let payload = command::with_text(self.payload, self.session.capabilities, text);
        payload.ok_or(Why::Failed)
    }

    /// What the server's descriptions of columns follow in this session.
    fn under(&self) -> Under {
        const READ: [Capabilities; 3] = [
            Capabilities::DEPRECATE_EOF,
            Capabilities::OPTIONAL_RESULTSET_METADATA,
            Capabilities::MARIADB_EXTENDED_METADATA,
        ];
        let plans = self.session.standing.plans();
        let read = READ.iter().fold(0, |read, one| {
            read << 1 | u64::from(self.session.capabilities.contains(*one))
        });
        Under(plans << READ.len() | read)
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean of times")]
    fn microseconds(&self) -> f64 {
        let begun = self.begun.unwrap_or(self.now);
        self.now.saturating_duration_since(begun).as_micros() as f64
    }
}

/// Its rows, or their order, follow the session's time zone.
fn is_zoned(template: &Template) -> bool {
    matches!(template.types.key, Some(KeyType::Timestamp(_))) || template.shape.zoned
}

fn wish(subject: Subject, mut wishes: Wishes) -> (Stage, Need) {
    // What was said of lists was said in front of the moment to which candidates belong now.
    wishes.told.clear();
    let want = wishes.want(&subject);
    (Stage::Looking(subject, wishes), Need::Candidates(want))
}

/// Two different ids at least: with one, or none, the server plans otherwise. The conditions of the statement stand beside them, so one
/// too many takes nothing away.
fn padded(ids: &[u64]) -> Vec<u64> {
    let mut padded = ids.to_vec();
    for id in [0, 1] {
        if padded.len() < 2 && !padded.contains(&id) {
            padded.push(id);
        }
    }
    padded
}

fn ask(queries: Vec<String>) -> Need {
    Need::Ask(Ask {
        queries,
        limits: ASK_LIMITS,
        reads: false,
    })
}
