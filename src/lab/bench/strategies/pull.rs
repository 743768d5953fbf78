//! Pull: a message is one row, and a page is put together when it is read; directly, and through Headwater.

use super::Failure;
use super::base::Base;
use super::page::Page;
use super::strategy::{Memory, Session, Strategy};
use super::world::World;
use crate::lab::bench::way::{TAIL, Task};

/// True for every message.
const SINCE: &str = " AND NOW()>'2000-01-01'";

/// How the page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Join,
    /// The same with a condition that changes with the time.
    JoinNow,
    List,
    Lateral,
    Procedure,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Pull {
    name: &'static str,
    about: &'static str,
    form: Form,
    through_headwater: bool,
}

const fn pull(name: &'static str, about: &'static str, form: Form) -> Pull {
    Pull {
        name,
        about,
        form,
        through_headwater: false,
    }
}

/// The page in one plain join.
pub const JOIN: Pull = pull("sql-join", "one join of messages and follows", Form::Join);
/// By a list.
pub const LIST: Pull = pull(
    "sql-list",
    "the app reads whom the reader follows, then asks with IN (list)",
    Form::List,
);
/// By LATERAL: MySQL only.
pub const LATERAL: Pull = pull(
    "sql-lateral",
    "the newest of each followed author by LATERAL",
    Form::Lateral,
);
/// By the procedures.
pub const PROCEDURE: Pull = pull(
    "procedure",
    "CALL fetch_timeline_ids and the SELECT behind it",
    Form::Procedure,
);
/// The same through Headwater.
pub const CALLS: Pull = Pull {
    through_headwater: true,
    ..pull(
        "headwater-call",
        "the same CALL and SELECT through Headwater",
        Form::Procedure,
    )
};
/// A feed's SELECT through Headwater, whose rows cannot be kept.
pub const NARROW: Pull = Pull {
    through_headwater: true,
    ..pull(
        "headwater-narrowed",
        "the plain join and a condition on NOW() through Headwater, which narrows it to candidates from memory and keeps no row of it",
        Form::JoinNow,
    )
};
/// One whose rows are kept.
pub const KEEP: Pull = Pull {
    through_headwater: true,
    ..pull(
        "headwater-kept",
        "the plain join through Headwater, which tells the page from kept rows",
        Form::Join,
    )
};

impl Strategy for Pull {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn memory(&self) -> Memory {
        match self.through_headwater {
            true => Memory::Headwater,
            false => Memory::None,
        }
    }

    fn session(&self, world: &World) -> Result<Box<dyn Session>, Failure> {
        let client = match self.through_headwater {
            true => world.through_headwater()?,
            false => world.connect()?,
        };
        let (base, form) = (Base(client), self.form);
        Ok(Box::new(Puller { base, form }))
    }
}

struct Puller {
    base: Base,
    form: Form,
}

impl Session for Puller {
    fn page(&mut self, reader: u64, bound: Option<u64>, page: &mut Page) -> Result<(), Failure> {
        let task = Task { reader, bound };
        let client = &mut self.base.0;
        match self.form {
            Form::Join => page.ask(client, &task.join()),
            Form::JoinNow => {
                let join = task.join();
                let order = " ORDER BY ";
                page.ask(client, &join.replacen(order, &format!("{SINCE}{order}"), 1))
            }
            Form::Lateral => page.ask(client, &task.lateral()),
            Form::List => {
                let authors = client.numbers(&task.follows())?;
                page.ask(client, &task.list(&authors))
            }
            Form::Procedure => {
                client.run(&task.call())?;
                page.ask(client, TAIL)
            }
        }
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), Failure> {
        self.base.post(id, author, body)
    }

    fn delete(&mut self, id: u64, _: u64) -> Result<(), Failure> {
        self.base.delete(id)
    }

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.base.follow(reader, author)
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.base.unfollow(reader, author)
    }
}
