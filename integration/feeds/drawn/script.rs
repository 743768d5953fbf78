//! Scripts for two sessions: repeated pages of a form, with other statements before, between and after them.

use super::form::Form;
use super::settings::{HEAVY, OTHERS, PROBES, capabilities, setting};
use super::spelling::{UNNAMED, plain, spelled};
use super::talk::{Report, Step, Talk};
use super::values::{filled, parameters, prepared};
use super::world::World;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::Server;
use crate::kit::wire_client::{COM_PING, COM_RESET_CONNECTION, Login, WireClient};

const SESSIONS: usize = 2;
/// The number of forms in use at a time.
const FORMS: usize = 5;
const STATEMENTS: usize = 4;
/// The number of consecutive scripts of a form without a page of cached rows before another form replaces it.
const PATIENCE: u32 = 3;

/// Plays scripts on sessions of one app.
pub(super) struct Player<'a> {
    server: &'a Server,
    proxy: &'a Proxy,
    database: &'a Database,
    world: &'a World,
    random: Random,
    forms: Vec<Form>,
    /// For each form, the number of consecutive scripts without a page of cached rows.
    vain: [u32; FORMS],
    numbers: u64,
    sessions: Vec<Session>,
    writers: [WireClient; 2],
}

/// Two synchronized sessions, and their prepared statements.
struct Session {
    talk: Talk,
    statements: Vec<Statement>,
    next: u32,
    /// Statements other than pages were sent.
    is_odd: bool,
}

struct Statement {
    number: u32,
    form: Form,
    slots: Vec<usize>,
    /// The parameter types that were sent last.
    types: Vec<(u8, u8)>,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        server: &'a Server,
        proxy: &'a Proxy,
        database: &'a Database,
        world: &'a World,
        random: Random,
    ) -> Player<'a> {
        let mut writers = [database.connect(), proxy.login(&database.login())];
        for writer in &mut writers {
            writer.ok("SET NAMES utf8mb4");
            writer.ok("SET time_zone = '+00:00'");
            writer.ok("SET innodb_lock_wait_timeout = 2");
            writer.ok("SET sql_mode = ''");
        }
        let mut player = Player {
            server,
            proxy,
            database,
            world,
            random,
            forms: Vec::new(),
            vain: [0; FORMS],
            numbers: 0,
            sessions: Vec::new(),
            writers,
        };
        for at in 0..FORMS {
            player.draw_form(at);
        }
        player
    }

    /// Plays one script on one of the sessions.
    pub(super) fn play(&mut self, report: &mut Report) {
        if self.random.one_in(14) {
            let change = self.world.change(&mut self.random);
            let writer = usize::from(self.random.one_in(2));
            self.writers[writer].query(&change);
        }
        if self.random.one_in(90) {
            let at = self.place();
            self.draw_form(at);
        }
        if self.sessions.len() < SESSIONS {
            self.open();
        }
        let at = self.random.below(self.sessions.len() as u64) as usize;
        let mut session = self.sessions.swap_remove(at);
        let (steps, form) = self.script(&mut session);
        let before = form.map(|_| self.kept());
        let goes_on = session.talk.play(&steps, report);
        if let (Some(at), Some(before)) = (form, before) {
            let kept = self.kept() > before;
            self.judge(at, kept);
        }
        if goes_on && !self.random.one_in(500) {
            self.sessions.push(session);
        }
    }

    /// A random index into the forms.
    fn place(&mut self) -> usize {
        self.random.below(FORMS as u64) as usize
    }

    fn draw_form(&mut self, at: usize) {
        self.numbers += 1;
        let form = Form::draw(self.numbers, self.world, &mut self.random);
        self.vain[at] = 0;
        match self.forms.get_mut(at) {
            Some(place) => *place = form,
            None => self.forms.push(form),
        }
    }

    /// Replaces a form that yields no cached rows, because most comparisons must be of cached pages.
    fn judge(&mut self, at: usize, kept: bool) {
        self.vain[at] = if kept { 0 } else { self.vain[at] + 1 };
        if self.vain[at] == PATIENCE {
            self.draw_form(at);
        }
    }

    /// The number of pages that Headwater answered from cached rows.
    fn kept(&mut self) -> u64 {
        let kept = "SHOW HEADWATER STATUS LIKE '%statements_total%\"kept\"%'";
        let rows = self.writers[1].rows(kept).into_iter();
        rows.filter_map(|row| row[1].as_deref()?.parse::<u64>().ok())
            .sum()
    }

    fn open(&mut self) {
        let mut login: Login = self.database.login();
        login.capabilities = capabilities(&mut self.random);
        login.collation = *self.random.pick(&[45, 45, 45, 8, 33, 46, 63]);
        let talk = Talk::begin(self.server.addr(), self.proxy.addr(), &login);
        self.sessions.push(Session {
            talk,
            statements: Vec::new(),
            next: 0,
            is_odd: false,
        });
    }

    /// A script, and the index of its form if it has only one.
    fn script(&mut self, session: &mut Session) -> (Vec<Step>, Option<usize>) {
        let mut steps = Vec::new();
        // A statement that Headwater does not read may set something for the next transaction: COMMIT ends this uncertainty.
        if session.is_odd || !self.random.one_in(6) {
            steps.push(Step::Text("other", "COMMIT".to_owned(), vec![]));
            session.is_odd = false;
        }
        let drawn = self.random.below(240);
        session.is_odd = matches!(drawn, 0..=27);
        match drawn {
            0..=2 => self.set(session, &mut steps),
            3 | 4 => {
                steps.push(Step::Command(COM_RESET_CONNECTION));
                session.statements.clear();
            }
            5..=8 => self.transaction(&mut steps),
            9..=12 => self.several(&mut steps),
            13..=20 => self.odd(&mut steps),
            21..=25 => self.named(&mut steps),
            26 | 27 => self.heavy(&mut steps),
            28..=75 => self.executions(session, &mut steps),
            _ => {
                let at = self.place();
                self.pages(at, &mut steps);
                return (steps, Some(at));
            }
        }
        (steps, None)
    }

    /// Adds a few pages of a random form.
    fn any_pages(&mut self, steps: &mut Vec<Step>) {
        let at = self.place();
        self.pages(at, steps);
    }

    /// Adds a few pages of the form with this index.
    fn pages(&mut self, at: usize, steps: &mut Vec<Step>) {
        let form = self.forms[at].clone();
        for _ in 0..5 + self.random.below(26) {
            if self.random.one_in(18) {
                steps.push(self.other());
            }
            let page = self.page(&form);
            steps.push(page);
            self.probe(steps);
        }
    }

    fn page(&mut self, form: &Form) -> Step {
        let text = filled(form, self.world, &mut self.random);
        let among = if form.text.contains(UNNAMED) { 9 } else { 30 };
        let text = match self.random.below(among) {
            0 => spelled(&text, &mut self.random),
            1..=3 => spelled(
                &text,
                &mut Random(form.seed.wrapping_add(self.random.below(6) / 4)),
            ),
            _ => plain(&text),
        };
        Step::Text("page", text, vec![form.number])
    }

    fn other(&mut self) -> Step {
        Step::Text("other", (*self.random.pick(&OTHERS)).to_owned(), vec![])
    }

    /// Sometimes adds a statement that reports on the one before.
    fn probe(&mut self, steps: &mut Vec<Step>) {
        if !self.random.one_in(12) {
            return;
        }
        match self.random.below(8) {
            0 => steps.push(Step::Command(COM_PING)),
            1 => {
                let other = self.other();
                steps.push(other);
            }
            _ => {}
        }
        for _ in 0..1 + self.random.below(2) {
            let probe = *self.random.pick(&PROBES);
            steps.push(Step::probe(probe));
        }
        if self.random.one_in(2) {
            steps.push(Step::Text("other", "COMMIT".to_owned(), vec![]));
        }
    }

    fn executions(&mut self, session: &mut Session, steps: &mut Vec<Step>) {
        if session.statements.len() < STATEMENTS || self.random.one_in(25) {
            if session.statements.len() >= STATEMENTS {
                steps.push(Step::Close(session.statements.remove(0).number));
            }
            let form = self.random.pick(&self.forms).clone();
            let (text, slots) = prepared(&form, self.world);
            let text = match self.random.one_in(3) {
                true => spelled(&text, &mut Random(form.seed)),
                false => plain(&text),
            };
            session.next += 1;
            steps.push(Step::Prepare(session.next, text));
            session.statements.push(Statement {
                number: session.next,
                form,
                slots,
                types: Vec::new(),
            });
        }
        let at = self.random.below(session.statements.len() as u64) as usize;
        let statement = &mut session.statements[at];
        let form = statement.form.clone();
        let mut types = form.seed;
        for _ in 0..4 + self.random.below(14) {
            if self.random.one_in(40) {
                types = self.random.next();
            }
            let parameters =
                parameters(&form, &statement.slots, self.world, &mut self.random, types);
            let sent: Vec<_> = parameters.iter().map(|one| (one.code, one.sign)).collect();
            // docs/limits.md describes how MySQL treats an execution without types after it refused one with types.
            let may_be_refused = !self.server.is_mariadb();
            let types_come = sent != statement.types || may_be_refused || self.random.one_in(4);
            statement.types = sent;
            steps.push(Step::Execute {
                statement: statement.number,
                parameters,
                types: types_come,
                form: form.number << 32 | 1,
            });
            if self.random.one_in(9) {
                let probe = *self.random.pick(&PROBES);
                steps.push(Step::probe(probe));
            }
        }
    }

    /// Adds pages under a setting that may have all of them relayed.
    fn heavy(&mut self, steps: &mut Vec<Step>) {
        let (name, value) = *self.random.pick(&HEAVY);
        steps.push(Step::Text(
            "setting",
            format!("SET SESSION {name} = {value}"),
            vec![],
        ));
        self.any_pages(steps);
        steps.push(Step::Text(
            "setting",
            format!("SET SESSION {name} = DEFAULT"),
            vec![],
        ));
    }

    fn set(&mut self, session: &mut Session, steps: &mut Vec<Step>) {
        let setting = setting(self.server.is_mariadb(), &mut self.random);
        // docs/limits.md describes the meaning of text without types after a change of the character set.
        if ["NAMES", "character_set", "collation"]
            .iter()
            .any(|name| setting.contains(name))
        {
            for statement in &mut session.statements {
                statement.types.clear();
            }
        }
        steps.push(Step::Text("setting", setting, vec![]));
    }

    fn transaction(&mut self, steps: &mut Vec<Step>) {
        let text = |text: &str| Step::Text("transaction", text.to_owned(), vec![]);
        let ways = [
            ["BEGIN", "COMMIT", ""],
            ["START TRANSACTION READ ONLY", "ROLLBACK", ""],
            ["START TRANSACTION WITH CONSISTENT SNAPSHOT", "COMMIT", ""],
            ["SET autocommit = 0", "COMMIT", "SET autocommit = 1"],
            ["SET autocommit = 0", "SET autocommit = 1", ""],
        ];
        let [first, last, then] = *self.random.pick(&ways);
        steps.push(text(first));
        self.any_pages(steps);
        if self.random.one_in(3) {
            let World {
                message,
                id,
                author,
                ..
            } = self.world;
            let number = 1_700 + self.random.below(100);
            steps.push(text(&format!(
                "UPDATE {message} SET {author} = 1 + {author} MOD 20 WHERE {id} = {number}"
            )));
            self.any_pages(steps);
            steps.push(text("ROLLBACK"));
        }
        // Both sides execute a commit, so a change inside would be committed twice.
        steps.retain(|step| !matches!(step, Step::Text("other", text, _) if text == "COMMIT"));
        steps.push(text(last));
        self.any_pages(steps);
        if !then.is_empty() {
            steps.push(text(then));
        }
    }

    /// Adds several statements in one command.
    fn several(&mut self, steps: &mut Vec<Step>) {
        let mut texts = Vec::new();
        let mut forms = Vec::new();
        for _ in 0..2 + self.random.below(2) {
            if self.random.one_in(4) {
                texts.push(
                    (*self.random.pick(&[
                        "SELECT 1",
                        "SELECT uid FROM users LIMIT 1",
                        "SET @a = 1",
                        "SELECT nothing",
                        "",
                    ]))
                    .to_owned(),
                );
                forms.push(1 << 40);
                continue;
            }
            let form = self.random.pick(&self.forms).clone();
            if let Step::Text(_, text, _) = self.page(&form) {
                texts.push(text);
                forms.push(form.number);
            }
        }
        // A single-line comment would swallow the next statement, hence the line break.
        steps.push(Step::Text("several", texts.join("\n;"), forms));
        self.probe(steps);
    }

    /// Adds a text with an error in it, and the correct one.
    fn odd(&mut self, steps: &mut Vec<Step>) {
        let form = self.random.pick(&self.forms).clone();
        let Step::Text(_, text, _) = self.page(&form) else {
            return;
        };
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = *self.random.pick(&places);
        let (front, back) = text.split_at(at);
        let odd = match self.random.below(12) {
            0 => format!("{front}{}", back.chars().skip(1).collect::<String>()),
            1 => front.to_owned(),
            2 => format!(
                "{front}{}{back}",
                self.random
                    .pick(&[",", "(", ")", "'", ";", "`", ".", "1", "\0", "*", "\\"])
            ),
            3 => text.replacen(" AND ", " OR ", 1),
            4 => text.replacen("SELECT ", "SELECT DISTINCT ", 1),
            5 => text
                .replace("<=", "< =")
                .replace("!=", "! =")
                .replace("<>", "< >"),
            6 => format!("{text};"),
            7 => format!("({text})"),
            8 => format!("/*!50000 {text} */"),
            9 => text.replacen("LIMIT", "LIMIT ALL", 1),
            10 => text.replace("DESC", ""),
            _ => format!("{front} {back}"),
        };
        steps.push(Step::Text("odd", odd, vec![form.number]));
        self.probe(steps);
        let page = self.page(&form);
        steps.push(page);
    }

    /// Adds statements prepared by SQL text.
    fn named(&mut self, steps: &mut Vec<Step>) {
        let form = self.random.pick(&self.forms).clone();
        let (text, slots) = prepared(&form, self.world);
        let text = plain(&text).replace('\\', "\\\\").replace('\'', "''");
        steps.push(Step::Text(
            "by name",
            format!("PREPARE page FROM '{text}'"),
            vec![],
        ));
        for _ in 0..1 + self.random.below(4) {
            let mut variables = Vec::new();
            for (at, slot) in slots.iter().enumerate() {
                let one = Form {
                    text: "{0}".to_owned(),
                    slots: vec![form.slots[*slot].clone()],
                    ..form.clone()
                };
                let value = filled(&one, self.world, &mut self.random);
                let value = value.split(',').next().unwrap_or_default().to_owned();
                steps.push(Step::Text(
                    "by name",
                    format!("SET @v{at} = {value}"),
                    vec![],
                ));
                variables.push(format!("@v{at}"));
            }
            let using = if variables.is_empty() {
                String::new()
            } else {
                format!(" USING {}", variables.join(", "))
            };
            steps.push(Step::Text(
                "execution by name",
                format!("EXECUTE page{using}"),
                vec![form.number << 32 | 2],
            ));
            self.probe(steps);
        }
    }
}
