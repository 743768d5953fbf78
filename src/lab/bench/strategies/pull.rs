//! Pull: a message is one row, and a page is put together when it is read; directly, and through Headwater.

use super::Failure;
use super::base::Base;
use super::page::Page;
use super::strategy::{Memory, Session, Strategy};
use super::world::{KEPT, NARROWED, World};
use crate::lab::bench::way::{TAIL, Task};

/// How the page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Join,
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
    through: Option<usize>,
}

const fn pull(name: &'static str, about: &'static str, form: Form) -> Pull {
    Pull {
        name,
        about,
        form,
        through: None,
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
    through: Some(KEPT),
    ..pull(
        "headwater-call",
        "the same CALL and SELECT through Headwater",
        Form::Procedure,
    )
};
/// A feed's SELECT through a Headwater that keeps no rows.
pub const NARROW: Pull = Pull {
    through: Some(NARROWED),
    ..pull(
        "headwater-narrowed",
        "the plain join through Headwater, which narrows it to candidates from memory",
        Form::Join,
    )
};
/// The same through one that does.
pub const KEEP: Pull = Pull {
    through: Some(KEPT),
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
        self.through.map_or(Memory::None, Memory::Headwater)
    }

    fn session(&self, world: &World) -> Result<Box<dyn Session>, Failure> {
        let client = match self.through {
            Some(number) => world.through(number)?,
            None => world.connect()?,
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
