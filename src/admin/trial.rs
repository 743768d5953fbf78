//! *Try a reader*: a page from memory as a session would get it, beside what the server's procedure says. One at a time.

use std::time::Duration;

use serde::Serialize;

use super::Seen;
use crate::account::{AccountError, Conn, Purpose};
use crate::binlog::right::Right;
use crate::binlog::{Binlog, Likely, Place};
use crate::clock;
use crate::session::shared::Shared;
use crate::shadow::real;
use crate::source::lookup::Found;
use crate::timeline::check::Verdict;
use crate::timeline::definition::{Definition, Form};

/// Pairs of answers that are taken until no change fell between them.
const PAIRS: usize = 10;
/// A routine may not be run.
const EXECUTE_DENIED: u16 = 1370;
/// All together may take so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whose page.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    definition: String,
    database: String,
    reader: u64,
    bound: Option<u64>,
}

/// What became of it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Tried {
    call: String,
    /// The ids from memory; `None`: memory has not got the page.
    memory: Option<Ids>,
    server: Option<Ids>,
    equal: Option<bool>,
    /// Answers that were taken until no change fell between the two.
    pairs: usize,
    /// Where one of them is missing, or nothing can be said: why.
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Ids {
    ids: Vec<u64>,
    took_ms: f64,
    /// `memory`; `loaded`: memory asked the server for what it lacked; `procedure`.
    from: &'static str,
}

impl Asked {
    /// By a request's query.
    pub(super) fn by(query: &str) -> Result<Asked, String> {
        let mut asked = Asked::default();
        let mut reader = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value).ok_or_else(|| format!("{key}: this is no UTF-8"))?;
            let number = || {
                let number = value.parse::<u64>();
                number.map_err(|_| format!("{key} has to be a whole number"))
            };
            match key {
                "definition" => asked.definition = value,
                "database" => asked.database = value,
                "reader" => reader = Some(number()?),
                "bound" if value.is_empty() => {}
                "bound" => asked.bound = Some(number()?),
                _ => {
                    return Err(format!(
                        "{key} is not known: definition, database, reader, bound"
                    ));
                }
            }
        }
        asked.reader = reader.ok_or("whose page? reader=NUMBER")?;
        Ok(asked)
    }
}

/// `%` and two digits is a byte, `+` a space.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Tries it on the runtime where proofs are made.
pub(super) async fn tried(seen: &Seen, asked: Asked) -> Result<Tried, String> {
    let shared = seen.shared();
    let trial = seen.runtime.spawn(async move {
        tokio::time::timeout(PATIENCE, run(&shared, &asked))
            .await
            .unwrap_or_else(|_| Err(format!("it took longer than {} s", PATIENCE.as_secs())))
    });
    trial.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn run(shared: &Shared, asked: &Asked) -> Result<Tried, String> {
    let mut in_use = shared.catalogue.in_use();
    let named = in_use.find(|(_, own)| own.name == asked.definition);
    let (number, definition) = named.ok_or("there is no definition of that name")?;
    let service = shared.catalogue.service.as_ref();
    let account = service
        .ok_or("there is no service account: set service.user")?
        .account();
    // No memory is set apart for what is not answered anyway.
    let verdict = shared
        .catalogue
        .check_due(number, asked.database.as_bytes())
        .await;
    match verdict.map_err(|error| error.to_string())?.as_ref() {
        Verdict::Accelerate(_) => {}
        Verdict::Relay(reason) => return Err(format!("it is relayed in this database: {reason}")),
    }
    let binlog = shared.binlog.as_ref();
    let binlog = binlog.ok_or("there is no memory: set index.memory_bytes above 0")?;
    let place = binlog.place_of(definition, &asked.database);
    let place = place.ok_or("there is no more room for timelines in memory")?;
    let mut conn = real::connect(account, Purpose::Trials)
        .await
        .map_err(said)?;
    // While the log is not followed there is nothing to compare with.
    if binlog.aside().is_none() && !binlog.is_of(&mut conn).await.map_err(said)? {
        return Err("the address leads to several servers, and this time not to the one that memory is of: try again".to_owned());
    }
    Ok(compared(binlog, definition, &place, asked, &mut conn).await)
}

/// The right that is missing, where that is why.
fn denied(
    error: &AccountError,
    definition: &Definition,
    place: &Place,
    form: Form,
) -> Option<String> {
    let execute = Right::Execute {
        database: place.database().to_owned(),
        procedure: definition.procedure(form).to_owned(),
    };
    (error.code() == Some(EXECUTE_DENIED)).then(|| {
        format!("the service account may not run the procedure, to compare; a right that is missing: {}", execute.named())
    })
}

fn said(error: AccountError) -> String {
    format!("the server's own answer: {error}")
}

/// Both answers, anew where a change fell between them.
async fn compared(
    binlog: &Binlog,
    definition: &Definition,
    place: &Place,
    asked: &Asked,
    conn: &mut Conn,
) -> Tried {
    let form = match asked.bound {
        Some(_) => Form::Bounded,
        None => Form::Newest,
    };
    let who = (asked.reader, asked.bound);
    let mut tried = Tried {
        call: real::call(definition, form, asked.reader, asked.bound),
        ..Tried::default()
    };
    for pair in 1..=PAIRS {
        let mark = binlog.mark();
        let begun = clock::now();
        let n = usize::try_from(definition.n).unwrap_or(usize::MAX);
        let wanted = (asked.reader, asked.bound, n);
        let likely = binlog.may_have(place, None, wanted).await;
        let page = binlog.page(place, None, wanted, true, likely).await;
        let own = page.map(|page| Found::from_page(page, form));
        let from = if likely == Likely::Resident {
            "memory"
        } else {
            "loaded"
        };
        let took = clock::since(begun);
        let begun = clock::now();
        let real = real::answer(definition, place, form, who, conn).await;
        tried.pairs = pair;
        tried.memory = own.as_ref().map(|own| ids(own, took, from));
        let real = match real {
            Ok(real) => real,
            Err(error) => {
                (tried.server, tried.equal) = (None, None);
                tried.why =
                    Some(denied(&error, definition, place, form).unwrap_or_else(|| said(error)));
                return tried;
            }
        };
        let same = own.as_ref().map(|own| real::same(form, own, &real));
        tried.server = Some(ids(&real, clock::since(begun), "procedure"));
        tried.equal = same;
        match (same, mark) {
            (Some(true), _) => return tried,
            (None, _) => {
                let aside = binlog.aside().map(|aside| aside.text);
                tried.why = Some(aside.unwrap_or_else(|| {
                    "memory has not got this page, or not in time: a session's call would be answered by lookups. Try again".to_owned()
                }));
                return tried;
            }
            (Some(false), Some(mark)) if binlog.spared(place, mark, asked.reader).await => {
                tried.why = Some(
                    "they differ, and no change in the server's log tells why: look for sql_log_bin = 0, or report it".to_owned(),
                );
                return tried;
            }
            (Some(false), _) => {}
        }
    }
    tried.equal = None;
    tried.why = Some(
        "this timeline changes all the time: a change fell between each pair of answers".to_owned(),
    );
    tried
}

/// In the order of a page: the newest first.
fn ids(found: &Found, took: Duration, from: &'static str) -> Ids {
    let mut ids = found.ids.clone();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    let microseconds = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
    Ids {
        ids,
        took_ms: f64::from(microseconds) / 1e3,
        from,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_whose_page() {
        let asked = Asked::by("definition=a%3Cb+c&database=tl&reader=7&bound=").unwrap();
        assert_eq!((&*asked.definition, &*asked.database), ("a<b c", "tl"));
        assert_eq!((asked.reader, asked.bound), (7, None));
        assert_eq!(Asked::by("reader=7&bound=9").unwrap().bound, Some(9));
        for wrong in [
            "",
            "reader=",
            "reader=-1",
            "reader=1&x=2",
            "reader=1&database=%f",
            "reader=1&database=%ff",
        ] {
            assert!(Asked::by(wrong).is_err(), "{wrong}");
        }
    }
}
