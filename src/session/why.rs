//! What would become of a statement here and now: it is decided about as if it had come, up to where the server would run something for it.

use std::time::{Duration, Instant};

use super::asked::{Asked, Dress, Wanted};
use super::feed::SharedFeeds;
use super::narrowing::{self, Narrowing, Why};
use super::ownership::{self, Ownership, Source};
use super::reason::Reason;
use super::state::{Ended, Session};
use super::table::{Cell, Table};
use crate::binlog::Likely;
use crate::clock;
use crate::feed::words::Words;
use crate::feeds::Cause;
use crate::statement::Class;
use crate::timeline::check::Verdict as CheckVerdict;
use crate::timeline::definition::DefinitionId;
use crate::wire::command::query_payload;

/// A statement's form is looked at for so long, where it was not met before.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// What would become of it.
#[derive(Debug)]
struct Verdict {
    answered_from: &'static str,
    reason: &'static str,
    means: String,
    cure: String,
}

impl Verdict {
    fn well(answered_from: &'static str, means: &str) -> Verdict {
        Verdict {
            answered_from,
            reason: "",
            means: means.to_owned(),
            cure: String::new(),
        }
    }

    fn relayed((reason, means, cure): (&'static str, &str, &str)) -> Verdict {
        Verdict {
            answered_from: "server",
            reason,
            means: plain(means),
            cure: plain(cure),
        }
    }

    fn caused(cause: Cause) -> Verdict {
        Verdict {
            answered_from: "server",
            reason: cause.reason,
            means: cause.text,
            cure: cause.cure,
        }
    }

    fn table(self, of: Option<String>) -> Table {
        let mut table = Table::of(&[
            "answered_from",
            "reason",
            "means",
            "cure",
            "definition_or_feed",
        ]);
        table.add([
            self.answered_from.into(),
            self.reason.into(),
            self.means.into(),
            self.cure.into(),
            of.map_or(Cell::Null, Cell::from),
        ]);
        table
    }
}

impl Session {
    /// What would become of this statement in this session.
    pub(super) async fn why_for(&mut self, text: &[u8]) -> Result<Table, Ended> {
        let none = self.knows_server();
        let class = self.shared.catalogue.classify(text, none);
        let (verdict, of) = match class {
            Class::Call(call) => self.why_call(Wanted::Call(call), text).await?,
            Class::Unbound(open) if open.parameters() == 0 => {
                self.why_call(Wanted::in_session(open), text).await?
            }
            Class::Feed(_) => self.why_feed(text).await?,
            Class::Tail(_) => (
                Verdict::well(
                    "memory",
                    "it is a tail: behind a call that was answered from memory it is made of rows that are kept, or asked as a SELECT by ids",
                ),
                None,
            ),
            Class::Unbound(_) => (
                Verdict::relayed((
                    "parameters",
                    "it has parameters",
                    "put numbers in their places, and ask again",
                )),
                None,
            ),
            Class::Several(..) | Class::Batch(_) => (
                Verdict::relayed((
                    "several",
                    "there are several statements",
                    "ask for each by itself",
                )),
                None,
            ),
            Class::Dynamic(_) => (
                Verdict::relayed((
                    "dynamic",
                    "it prepares or executes a statement by its name",
                    "ask for that statement itself",
                )),
                None,
            ),
            Class::Own(_) | Class::Other(_) => (self.no_concern(text), None),
        };
        Ok(verdict.table(of))
    }

    async fn why_call(
        &mut self,
        wanted: Wanted,
        text: &[u8],
    ) -> Result<(Verdict, Option<String>), Ended> {
        let asked = Asked {
            length: 0,
            wanted,
            dress: Dress::Indirect,
        };
        let number = self.definition_of(&asked);
        let definitions = self.shared.catalogue.definitions();
        let of = number.and_then(|number| Some(number.of(definitions)?.name.clone()));
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Ok((Verdict::relayed(UNFOLLOWED), of));
        };
        let payload = query_payload(text, capabilities);
        let mut decision = Ownership::new(asked, payload, self.policy());
        let mut input = ownership::Input::Begin;
        let mut memory = Likely::No;
        let verdict = loop {
            let Some(need) = self.decide(&mut decision, input) else {
                break Verdict::relayed(UNFOLLOWED);
            };
            input = match need {
                ownership::Need::Ask(ask) if ask.queries.iter().any(|it| runs(it)) => {
                    break Verdict::well(
                        "memory",
                        "first the server runs the procedure once, which proves what its definer may do; that is done each privileges.ttl_s",
                    );
                }
                ownership::Need::Ask(ask) => ownership::Input::Answers(self.ask_aside(&ask).await?),
                ownership::Need::Settle => {
                    self.settle(false).await?;
                    ownership::Input::Settled
                }
                ownership::Need::Check {
                    definition,
                    database,
                } => ownership::Input::Checked(self.check(definition, &database).await),
                ownership::Need::Memory(want) => {
                    let (likely, _) = self.look(want).await;
                    memory = likely;
                    ownership::Input::Likely {
                        likely: likely != Likely::No,
                        compared: false,
                    }
                }
                ownership::Need::Page => ownership::Input::Page(self.page(memory).await),
                ownership::Need::Relay(reason) => {
                    break Verdict::caused(self.cause_of_call(reason, number));
                }
                ownership::Need::Interrupted(_) => {
                    break Verdict::relayed(Reason::LookupFailed.explained());
                }
                ownership::Need::Answer(answered) => {
                    break match answered.source {
                        Source::Memory => Verdict::well(
                            "memory",
                            "the page is in memory, which was proved to be fresh",
                        ),
                        Source::Lookups => self.by_lookups(),
                        Source::Procedure => Verdict::well("server", "the procedure runs"),
                    };
                }
            };
        };
        Ok((verdict, of))
    }

    async fn why_feed(&mut self, text: &[u8]) -> Result<(Verdict, Option<String>), Ended> {
        let named = self
            .shared
            .feeds
            .as_ref()
            .is_some_and(|feeds| feeds.are_named(text));
        let begun = clock::now();
        if !named {
            return Ok((self.judge(text, begun).await, None));
        }
        let until = begun + PATIENCE;
        loop {
            let (verdict, of) = self.decide_feed(text).await?;
            let waits = [Why::New, Why::Unchecked].map(Why::label);
            if !waits.contains(&verdict.reason) || clock::now() > until {
                return Ok((verdict, of));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Why a call is relayed.
    fn cause_of_call(&mut self, reason: Reason, number: Option<DefinitionId>) -> Cause {
        let cause = Cause::of_reason(reason);
        let commands = self.machine.commands();
        let database = commands.and_then(|it| it.standing.database());
        let known = number.zip(database).and_then(|(number, database)| {
            let (verdict, _) = self.shared.catalogue.last_verdict(number, database)?;
            Some(verdict)
        });
        match (reason, known.as_deref()) {
            (Reason::Definition, Some(CheckVerdict::Relay(found))) => cause.with(found.to_string()),
            _ => cause,
        }
    }

    /// A call that memory does not answer, and why.
    fn by_lookups(&self) -> Verdict {
        let binlog = self.shared.binlog.as_ref();
        match binlog.and_then(|binlog| binlog.aside()) {
            Some(aside) => Verdict {
                answered_from: "lookups",
                ..Verdict::caused(Cause::of_log(aside))
            },
            None => Verdict::well(
                "lookups",
                "the page is not in memory, or not in time: it is found by lookups on this connection; memory begins to keep it",
            ),
        }
    }

    /// Whether a text that names no feed's messages is one of a feed that nobody named.
    async fn judge(&mut self, text: &[u8], begun: Instant) -> Verdict {
        let commands = self.machine.commands();
        let database = commands.and_then(|it| Some(it.standing.database()?.to_vec()));
        if let (Some(feeds), Some(database)) = (self.shared.feeds.clone(), database) {
            while clock::since(begun) < PATIENCE {
                if let Some(met) = feeds.judged(&database, text, begun) {
                    let cause = feeds.cause_of_stranger(&database, &met);
                    return cause.map_or_else(|| self.no_concern(text), Verdict::caused);
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        self.no_concern(text)
    }

    /// Why a feed's statement is relayed, and whose it is, as far as that is known.
    fn cause(&mut self, text: &[u8], why: Why) -> (Cause, Option<String>) {
        let commands = self.machine.commands();
        let database = commands.and_then(|it| it.standing.database());
        let known = self.shared.feeds.as_ref().zip(database);
        match (known, Words::read(text)) {
            (Some((feeds, database)), Some(words)) => feeds.cause(database, &words, why),
            _ => (Cause::of(why), None),
        }
    }

    async fn decide_feed(&mut self, text: &[u8]) -> Result<(Verdict, Option<String>), Ended> {
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Ok((Verdict::relayed(UNFOLLOWED), None));
        };
        let payload = query_payload(text, capabilities);
        let mut decision = Narrowing::new(payload.clone(), self.narrowing_policy());
        let mut input = narrowing::Input::Begin;
        let verdict = loop {
            let need = {
                let Some(commands) = self.machine.commands() else {
                    break Verdict::relayed(UNFOLLOWED);
                };
                let feeds = SharedFeeds {
                    shared: &self.shared,
                    came: false,
                };
                decision.next(input, commands, &feeds, clock::now())
            };
            input = match need {
                narrowing::Need::Ask(ask) => narrowing::Input::Answers(self.ask_aside(&ask).await?),
                narrowing::Need::Candidates(want) => {
                    narrowing::Input::Candidates(self.candidates(&want).await)
                }
                narrowing::Need::Page(want) => match self.kept_page(&want).await {
                    Some(_) => {
                        break Verdict::well(
                            "memory",
                            "all rows of the page are kept, and memory was proved to be fresh",
                        );
                    }
                    None => narrowing::Input::Paged(None),
                },
                narrowing::Need::Run(own) if own == payload => {
                    break Verdict::well(
                        "server",
                        "it runs as it is, and Headwater learns from the reply how long it takes and how its columns are described; the next ones of its form are narrowed",
                    );
                }
                narrowing::Need::Run(_) => {
                    break Verdict::well(
                        "memory and server",
                        "memory names the messages, and the server shows them: it is asked by their ids",
                    );
                }
                narrowing::Need::Relay(why) => {
                    let (cause, of) = self.cause(text, why);
                    return Ok((Verdict::caused(cause), of));
                }
                // Executions alone.
                narrowing::Need::Prepare(_)
                | narrowing::Need::Teach(_)
                | narrowing::Need::Unchanged
                | narrowing::Need::Await(_)
                | narrowing::Need::Tell(_) => break Verdict::relayed(Why::Execution.explained()),
            };
        };
        let of = decision.template().and_then(|template| {
            let feeds = self.shared.feeds.as_ref()?;
            feeds.name_of(template.feed)
        });
        Ok((verdict, of))
    }

    /// A statement that is none of a definition's or a feed's.
    fn no_concern(&self, text: &[u8]) -> Verdict {
        let feeds = self.shared.feeds.as_ref();
        let verb = text.get(..6).unwrap_or_default();
        if text
            .get(..4)
            .is_some_and(|verb| verb.eq_ignore_ascii_case(b"CALL"))
        {
            return Verdict::relayed((
                "no_definition",
                "it calls no procedure of a definition, or passes something else than whole numbers and user variables",
                "SHOW HEADWATER FEEDS names the definitions; pass whole numbers",
            ));
        }
        if feeds.is_some_and(|feeds| feeds.are_named(text)) && verb.eq_ignore_ascii_case(b"SELECT")
        {
            return Verdict::relayed((
                "no_page",
                "it reads a feed's messages, and is no page of them: a feed's SELECT has ORDER BY ... DESC and LIMIT",
                "nothing, if it is meant so",
            ));
        }
        Verdict::relayed((
            "no_feed",
            "it is neither a call of a definition nor a SELECT of a feed's messages",
            "if it is a page of the newest messages of several authors: `headwater discover` prints the section for the settings file",
        ))
    }
}

const UNFOLLOWED: (&str, &str, &str) = (
    "not_followed",
    "what this session does is not followed",
    "connect anew",
);

/// It has the procedure run. One without arguments only tells who may execute it.
fn runs(query: &str) -> bool {
    query.starts_with("CALL ") && !query.ends_with("()")
}

/// A line of the documentation without its marks: `[page](link)` is the page's name, back quotes are left out.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[']) {
        let (front, behind) = rest.split_at(at);
        plain.push_str(front);
        let link = behind
            .strip_prefix('[')
            .and_then(|it| it.split_once("]("))
            .and_then(|(name, it)| Some((name, it.split_once(')')?)));
        match link {
            Some((name, (page, behind))) => {
                plain.push_str(name);
                plain.push_str(" (docs/");
                plain.push_str(page);
                plain.push(')');
                rest = behind;
            }
            None => {
                let (mark, behind) = behind.split_at(1);
                if mark == "[" {
                    plain.push_str(mark);
                }
                rest = behind;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn marks_of_the_documentation_are_left_out() {
        for (text, expected) in [
            ("raise `limits.x`", "raise limits.x"),
            (
                "switch it on: [autocommit](connecting.md#autocommit), please",
                "switch it on: autocommit (docs/connecting.md#autocommit), please",
            ),
            ("a [b", "a [b"),
            ("a [b](c", "a [b](c"),
            ("", ""),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
