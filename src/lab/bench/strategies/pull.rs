//! Pull: a message is one row, and a page is put together when it is read; directly, and through Headwater.

use super::StrategyError;
use super::base_tables::BaseTables;
use super::page::MessagePage;
use super::servers::StrategyServers;
use super::strategy::{AppSession, MemoryOwner, TimelineStrategy};
use crate::lab::bench::query_path::{FOLLOW_UP_SELECT, PageTask};

/// True for every message.
const TIME_CONDITION: &str = " AND NOW()>'2000-01-01'";

/// How the page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PullForm {
    Join,
    /// The same with a condition that changes with the time.
    JoinNow,
    List,
    Lateral,
    Procedure,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct PullStrategy {
    name: &'static str,
    about: &'static str,
    form: PullForm,
    through_headwater: bool,
}

const fn pull(name: &'static str, about: &'static str, form: PullForm) -> PullStrategy {
    PullStrategy {
        name,
        about,
        form,
        through_headwater: false,
    }
}

/// The page in one plain join.
pub const JOIN: PullStrategy = pull(
    "sql-join",
    "one join of messages and follows",
    PullForm::Join,
);
/// By a list.
pub const LIST: PullStrategy = pull(
    "sql-list",
    "the app reads whom the reader follows, then asks with IN (list)",
    PullForm::List,
);
/// By LATERAL: MySQL only.
pub const LATERAL: PullStrategy = pull(
    "sql-lateral",
    "the newest of each followed author by LATERAL",
    PullForm::Lateral,
);
/// By the procedures.
pub const PROCEDURE: PullStrategy = pull(
    "procedure",
    "CALL fetch_timeline_ids and the SELECT behind it",
    PullForm::Procedure,
);
/// The same through Headwater.
pub const HEADWATER_CALL: PullStrategy = PullStrategy {
    through_headwater: true,
    ..pull(
        "headwater-call",
        "the same CALL and SELECT through Headwater",
        PullForm::Procedure,
    )
};
/// A feed's SELECT through Headwater, whose rows cannot be kept.
pub const HEADWATER_NARROWED: PullStrategy = PullStrategy {
    through_headwater: true,
    ..pull(
        "headwater-narrowed",
        "the plain join and a condition on NOW() through Headwater, which narrows it to candidates from memory and keeps no row of it",
        PullForm::JoinNow,
    )
};
/// One whose rows are kept.
pub const HEADWATER_CACHED: PullStrategy = PullStrategy {
    through_headwater: true,
    ..pull(
        "headwater-kept",
        "the plain join through Headwater, which tells the page from kept rows",
        PullForm::Join,
    )
};

impl TimelineStrategy for PullStrategy {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn memory(&self) -> MemoryOwner {
        match self.through_headwater {
            true => MemoryOwner::Headwater,
            false => MemoryOwner::None,
        }
    }

    fn session(&self, world: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError> {
        let client = match self.through_headwater {
            true => world.through_headwater()?,
            false => world.connect()?,
        };
        let (base, form) = (BaseTables(client), self.form);
        Ok(Box::new(PullSession { base, form }))
    }
}

struct PullSession {
    base: BaseTables,
    form: PullForm,
}

impl AppSession for PullSession {
    fn page(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        let task = PageTask { reader, bound };
        let client = &mut self.base.0;
        match self.form {
            PullForm::Join => page.query(client, &task.join()),
            PullForm::JoinNow => {
                let join = task.join();
                let order = " ORDER BY ";
                page.query(
                    client,
                    &join.replacen(order, &format!("{TIME_CONDITION}{order}"), 1),
                )
            }
            PullForm::Lateral => page.query(client, &task.lateral()),
            PullForm::List => {
                let authors = client.query_numbers(&task.follows_select())?;
                page.query(client, &task.list(&authors))
            }
            PullForm::Procedure => {
                client.execute(&task.call())?;
                page.query(client, FOLLOW_UP_SELECT)
            }
        }
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError> {
        self.base.post(id, author, body)
    }

    fn delete(&mut self, id: u64, _: u64) -> Result<(), StrategyError> {
        self.base.delete(id)
    }

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.follow(reader, author)
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.unfollow(reader, author)
    }
}
