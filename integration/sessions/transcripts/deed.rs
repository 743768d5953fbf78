//! One action of a scenario, parsed from the text of its line.

use crate::kit::proxy::is_counter;
use crate::kit::wire_client::{
    COM_INIT_DB, COM_PING, COM_RESET_CONNECTION, COM_SET_OPTION, Param, capability,
};

#[derive(Debug)]
pub(super) enum Deed {
    Exchange(Exchange),
    /// The statements that follow belong to a new session.
    Session(Capabilities),
    /// An account with these privileges; the sessions that follow use it.
    Account(String),
    /// A statement of `root`, directly on the server.
    Aside(String),
    /// The sum of some counters.
    Count(Vec<String>, Expected),
    WaitMs(u64),
}

/// What both sides receive; the replies must be equal.
#[derive(Debug)]
pub(super) enum Exchange {
    Statement(String),
    /// Rows in any order.
    Unordered(String),
    /// An error of this code.
    Error(u16, String),
    /// Rows, the first of which begins with this text.
    Value(String, String),
    Look,
    Prepare(String, String),
    Execute(Execution),
    Command(Vec<u8>),
    ChangeUser,
}

#[derive(Debug)]
pub(super) struct Execution {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    pub(super) cursor: bool,
    pub(super) types: bool,
}

/// Capabilities in addition to the usual ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Capabilities {
    pub(super) with: u64,
    pub(super) without: u64,
}

#[derive(Debug, PartialEq)]
pub(super) enum Expected {
    Exactly(u64),
    AtLeast(u64),
}

impl Deed {
    /// Parses a line that begins with a colon; `text` does not contain the colon.
    pub(super) fn parse(text: &str) -> Result<Deed, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim_start();
        match word {
            "session" => Ok(Deed::Session(capabilities(rest)?)),
            "account" => Ok(Deed::Account(some(rest)?)),
            "aside" => Ok(Deed::Aside(some(rest)?)),
            "owned" => Ok(Deed::Count(vec!["calls_owned".to_owned()], expected(rest)?)),
            "count" => {
                let (names, count) = two(rest)?;
                let names = names.split('+').map(counter).collect::<Result<_, _>>()?;
                Ok(Deed::Count(names, expected(&count)?))
            }
            "wait_ms" => Ok(Deed::WaitMs(number(rest)?)),
            _ => Exchange::parse(word, rest).map(Deed::Exchange),
        }
    }

    /// Whether the action shows the session's state.
    pub(super) fn is_played(&self) -> bool {
        use Exchange::{ChangeUser, Command, Prepare};
        match self {
            Deed::Exchange(Prepare(..) | Command(_) | ChangeUser) => false,
            Deed::Exchange(_) => true,
            _ => false,
        }
    }
}

impl Exchange {
    fn parse(word: &str, rest: &str) -> Result<Exchange, String> {
        let alone = |exchange| match rest {
            "" => Ok(exchange),
            more => Err(format!(":{word} takes nothing, not {more:?}")),
        };
        match word {
            "unordered" => Ok(Exchange::Unordered(some(rest)?)),
            "error" => {
                let (code, sql) = two(rest)?;
                Ok(Exchange::Error(number(code)?, sql))
            }
            "value" => {
                let (value, sql) = two(rest)?;
                Ok(Exchange::Value(value.to_owned(), sql))
            }
            "look" => alone(Exchange::Look),
            "prepare" => {
                let (name, sql) = two(rest)?;
                Ok(Exchange::Prepare(name.to_owned(), sql))
            }
            "execute" => execution(rest).map(Exchange::Execute),
            "ping" => alone(Exchange::Command(vec![COM_PING])),
            "reset" => alone(Exchange::Command(vec![COM_RESET_CONNECTION])),
            "init_db" => {
                let command = [&[COM_INIT_DB], some(rest)?.as_bytes()].concat();
                Ok(Exchange::Command(command))
            }
            "set_option" => Ok(Exchange::Command(vec![COM_SET_OPTION, number(rest)?, 0])),
            "change_user" => alone(Exchange::ChangeUser),
            _ => Err(format!("nothing is known of :{word}")),
        }
    }
}

fn some(rest: &str) -> Result<String, String> {
    match rest {
        "" => Err("something is missing at the end".to_owned()),
        rest => Ok(rest.to_owned()),
    }
}

fn two(rest: &str) -> Result<(&str, String), String> {
    let (first, second) = rest.split_once(' ').ok_or("two things are wanted")?;
    Ok((first, some(second.trim_start())?))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no number that fits"))
}

fn counter(name: &str) -> Result<String, String> {
    match is_counter(name) {
        true => Ok(name.to_owned()),
        false => Err(format!("no counter is known as {name}")),
    }
}

fn expected(text: &str) -> Result<Expected, String> {
    match text.strip_prefix("at least ") {
        Some(least) => number(least).map(Expected::AtLeast),
        None => number(text).map(Expected::Exactly),
    }
}

/// `with SESSION_TRACK without DEPRECATE_EOF`
fn capabilities(text: &str) -> Result<Capabilities, String> {
    let mut found = Capabilities::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let bit = match words.next() {
            Some("DEPRECATE_EOF") => capability::DEPRECATE_EOF,
            Some("MULTI_STATEMENTS") => capability::MULTI_STATEMENTS,
            Some("SESSION_TRACK") => capability::SESSION_TRACK,
            other => return Err(format!("no capability is known as {other:?}")),
        };
        match word {
            "with" => found.with |= bit,
            "without" => found.without |= bit,
            other => return Err(format!("with or without, not {other:?}")),
        }
    }
    Ok(found)
}

/// `NAME (1, 'text', NULL)`, then ` with cursor` or ` without types`.
fn execution(text: &str) -> Result<Execution, String> {
    let (name, rest) = text.split_once(" (").ok_or("values in brackets?")?;
    let (values, how) = rest.rsplit_once(')').ok_or("where do the values end?")?;
    let values = values.split(", ").filter(|value| !value.is_empty());
    let (cursor, types) = match how.trim_start() {
        "" => (false, true),
        "with cursor" => (true, true),
        "without types" => (false, false),
        other => return Err(format!("executed how: {other:?}")),
    };
    Ok(Execution {
        name: name.to_owned(),
        params: values.map(param).collect::<Result<_, _>>()?,
        cursor,
        types,
    })
}

fn param(text: &str) -> Result<Param, String> {
    let quoted = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    match (text, quoted) {
        ("NULL", _) => Ok(Param::text(None)),
        (_, Some(string)) => Ok(Param::text(Some(string))),
        _ => number(text).map(Param::long),
    }
}
