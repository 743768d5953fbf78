//! Pull: a message is one row, and a page is composed when it is read; directly, and through Headwater.

use super::StrategyError;
use super::base_tables::BaseTables;
use super::page::MessagePage;
use super::servers::StrategyServers;
use super::strategy::{AppSession, MemoryOwner, TimelineStrategy};
use crate::query_path::{FOLLOW_UP_SELECT, PageTask};

/// A condition that is true for every message.
const TIME_CONDITION: &str = " AND NOW()>'2000-01-01'";

/// The form of the page's query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PullForm {
    Join,
    /// A join with a condition that depends on the current time.
    JoinNow,
    List,
    Lateral,
    Procedure,
}

/// A pull strategy.
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

/// By one plain join.
pub const JOIN: PullStrategy = pull(
    "sql-join",
    "one join of messages and follows",
    PullForm::Join,
);
/// By a list of authors.
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
/// A feed's SELECT through Headwater, whose rows cannot be cached.
pub const HEADWATER_NARROWED: PullStrategy = PullStrategy {
    through_headwater: true,
    ..pull(
        "headwater-narrowed",
        "the plain join and a condition on NOW() through Headwater, which narrows it to candidates from memory and keeps no row of it",
        PullForm::JoinNow,
    )
};
/// A feed's SELECT whose rows are cached.
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

    fn session(&self, servers: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError> {
        let client = match self.through_headwater {
            true => servers.through_headwater()?,
            false => servers.connect()?,
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
