//! Two sessions with the same history: one direct to the server, one through Headwater.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use super::difference::{Difference, Said, difference};
use crate::kit::wire_client::{
    COM_QUERY, COM_RESET_CONNECTION, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_PREPARE, Login,
    Param, Reply, WireClient,
};

/// The number of preceding commands that a report of a difference shows.
const TOLD: usize = 16;
/// The number of differences of each kind that are reported in full.
const IN_FULL: u64 = 2;

/// A command for both sides.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The kind, the text, and the forms of the results.
    Text(&'static str, String, Vec<u64>),
    /// A statement number of the session, and its text.
    Prepare(u32, String),
    Execute {
        statement: u32,
        parameters: Vec<Param>,
        types: bool,
        form: u64,
    },
    Close(u32),
    Command(u8),
}

impl Step {
    pub(super) fn probe(text: &str) -> Step {
        Step::Text("probe", text.to_owned(), vec![])
    }
}

/// The number of comparisons, and the differences.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) compared: u64,
    pub(super) differences: BTreeMap<String, u64>,
    said: Said,
}

impl Report {
    /// Forgets the forms, because new tables have new forms.
    pub(super) fn forget_forms(&mut self) {
        self.said.clear();
    }
}

/// Two synchronized sessions.
#[derive(Debug)]
pub(super) struct Talk {
    sides: [WireClient; 2],
    statements: [HashMap<u32, u32>; 2],
    told: VecDeque<String>,
    /// The last SELECT that did not fail is a page.
    behind_page: bool,
    /// A page, or a statement after one, failed, and no SELECT came since.
    failed: bool,
}

impl Talk {
    pub(super) fn begin(server: SocketAddr, proxy: SocketAddr, login: &Login) -> Talk {
        Talk {
            sides: [server, proxy].map(|addr| WireClient::login(addr, login)),
            statements: [HashMap::new(), HashMap::new()],
            told: VecDeque::from([format!(
                "login {:x} {}",
                login.capabilities, login.collation
            )]),
            behind_page: false,
            failed: false,
        }
    }

    /// Sends all steps to one side, then to the other, and compares the replies. False: both sides have ended.
    pub(super) fn play(&mut self, steps: &[Step], report: &mut Report) -> bool {
        let direct = self.said_to(0, steps);
        let proxied = self.said_to(1, steps);
        for (at, step) in steps.iter().enumerate() {
            let [one, other] = [&direct, &proxied].map(|replies| replies.get(at));
            let packets = one.and_then(Option::as_ref).map(|it| it.packets.len());
            self.told.push_back(match packets {
                Some(packets) => format!("{} ({packets} packets)", told(step)),
                None => told(step),
            });
            match (one, other) {
                // The session state differs after an error and after rows, so the comparison ends.
                (Some(Some(one)), Some(Some(other))) if is_text_for_limit(step, one, other) => {
                    return false;
                }
                (Some(Some(one)), Some(Some(other))) => {
                    report.compared += 1;
                    self.compare(step, one, other, report);
                }
                (None, None) => return false,
                (Some(None), Some(None)) => {}
                _ => {
                    let detail = format!("direct {one:?}\n proxied {other:?}");
                    self.report(
                        step,
                        Difference {
                            kind: "one side ended".to_owned(),
                            detail,
                        },
                        report,
                    );
                    return false;
                }
            }
        }
        while self.told.len() > TOLD {
            self.told.pop_front();
        }
        true
    }

    /// The replies of one side: `None` for a command without a reply; fewer if the side ended.
    fn said_to(&mut self, side: usize, steps: &[Step]) -> Vec<Option<Reply>> {
        let (client, statements) = (&mut self.sides[side], &mut self.statements[side]);
        let mut replies = Vec::new();
        for step in steps {
            let payload = match step {
                Step::Text(_, text, _) => client.query_payload(text.as_bytes(), &[]),
                Step::Prepare(_, text) => [&[COM_STMT_PREPARE], text.as_bytes()].concat(),
                Step::Execute {
                    statement,
                    parameters,
                    types,
                    ..
                } => match statements.get(statement) {
                    Some(id) => client.execution(*id, parameters, 0, *types),
                    None => {
                        replies.push(None);
                        continue;
                    }
                },
                Step::Close(statement) => {
                    if let Some(id) = statements.remove(statement) {
                        let close = [&[COM_STMT_CLOSE][..], &id.to_le_bytes()].concat();
                        let _ = client.send(&close);
                    }
                    replies.push(None);
                    continue;
                }
                Step::Command(command) => {
                    if *command == COM_RESET_CONNECTION {
                        statements.clear();
                    }
                    vec![*command]
                }
            };
            let Ok(reply) = client.command(&payload) else {
                return replies;
            };
            if let (Step::Prepare(statement, _), Some([0, a, b, c, d, ..])) =
                (step, reply.packets.first().map(|first| &first.payload[..]))
            {
                statements.insert(*statement, u32::from_le_bytes([*a, *b, *c, *d]));
            }
            replies.push(Some(reply));
        }
        replies
    }

    fn compare(&mut self, step: &Step, direct: &Reply, proxied: &Reply, report: &mut Report) {
        let (command, forms) = match step {
            Step::Text(_, _, forms) => (COM_QUERY, forms.clone()),
            Step::Prepare(..) => (COM_STMT_PREPARE, vec![]),
            Step::Execute { form, .. } => (COM_STMT_EXECUTE, vec![*form]),
            Step::Close(_) => return,
            Step::Command(command) => (*command, vec![]),
        };
        if self.is_named(step, direct) {
            return;
        }
        if direct.raw == proxied.raw && forms.is_empty() {
            return;
        }
        let capabilities = self.sides[0].capabilities;
        let is_ordered = match step {
            Step::Text("odd", text, _) => text.to_uppercase().contains("LIMIT"),
            _ => true,
        };
        if let Some(found) = difference(
            (command, is_ordered),
            capabilities,
            &forms,
            [direct, proxied],
            &mut report.said,
        ) {
            self.report(step, found, report);
        }
    }

    /// True for a difference that docs/limits.md describes: `FOUND_ROWS()` after a SELECT that failed, if it or the one before is a page.
    fn is_named(&mut self, step: &Step, direct: &Reply) -> bool {
        let text = match step {
            Step::Text(_, text, _) => text.to_uppercase(),
            _ => String::new(),
        };
        let is_named = self.failed && text.contains("FOUND_ROWS");
        // An error ends the reply, also of several statements.
        let last = direct.packets.last();
        let failed = last.and_then(|packet| packet.first_byte()) == Some(0xff);
        let is_page = matches!(
            step,
            Step::Text("page" | "odd" | "several" | "execution by name", ..) | Step::Execute { .. }
        );
        let is_select = is_page || text.trim_start().starts_with("SELECT");
        self.failed = match failed {
            true => self.failed || self.behind_page || is_page,
            false => self.failed && !is_select,
        };
        // Statements other than SELECT do not change the count.
        if is_select && !failed {
            self.behind_page = is_page;
        }
        is_named
    }

    fn report(&self, step: &Step, found: Difference, report: &mut Report) {
        let what = match step {
            Step::Text("probe" | "other", text, _) => text.chars().take(40).collect::<String>(),
            Step::Text(what, ..) => (*what).to_owned(),
            Step::Prepare(..) => "prepare".to_owned(),
            Step::Execute { .. } => "execute".to_owned(),
            Step::Close(_) => "close".to_owned(),
            Step::Command(command) => format!("command {command:02x}"),
        };
        let kind = format!("{what}: {}", found.kind);
        let count = report.differences.entry(kind.clone()).or_default();
        *count += 1;
        if *count <= IN_FULL {
            let story: Vec<&str> = self.told.iter().map(String::as_str).collect();
            println!(
                "DIFFERENCE {kind}\n{}\nto {}\nbehind\n  {}\n",
                found.detail,
                told(step),
                story.join("\n  ")
            );
        }
    }
}

/// True for a difference that docs/limits.md describes: for text as `LIMIT`, MySQL may prepare the statement anew on the direct side.
fn is_text_for_limit(step: &Step, direct: &Reply, proxied: &Reply) -> bool {
    let is_refused = |reply: &Reply| {
        let first = reply.packets.first();
        first.is_some_and(|packet| packet.payload.starts_with(&[0xff, 0xba, 0x04]))
    };
    matches!(step, Step::Text("execution by name", ..))
        && is_refused(proxied)
        && !is_refused(direct)
}

fn told(step: &Step) -> String {
    match step {
        Step::Text(what, text, forms) => format!("{what} {forms:?} {text:?}"),
        Step::Execute {
            statement,
            parameters,
            types,
            form,
        } => {
            let shown: Vec<String> = parameters
                .iter()
                .map(|one| {
                    format!(
                        "{:02x}/{:02x}:{}",
                        one.code,
                        one.sign,
                        one.value
                            .as_ref()
                            .map_or("NULL".to_owned(), |value| value.escape_ascii().to_string())
                    )
                })
                .collect();
            format!(
                "execute {statement} [{form}] types {types} {}",
                shown.join(" | ")
            )
        }
        other => format!("{other:?}"),
    }
}
