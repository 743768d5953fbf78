//! A session between two commands, for tests of what is decided then.

use std::sync::Arc;
use std::time::Duration;

use headwater_timeline::{DefinitionId, Form};
use headwater_wire::capability::Capabilities;

use crate::commands::Commands;
use crate::frames::Frames;
use crate::legs::Legs;
use crate::probe::Settings;
use crate::result_table::{Pending, Rows};
use crate::standing::Standing;
use crate::step::{Limits, Server};

/// Of which nothing is known but that it is in database `tl`, and has no result tables.
pub(crate) fn session(mariadb: bool) -> Commands {
    let limits = Limits {
        statement_bytes: 1024,
        in_flight: 4,
        prepared_statements: 2,
    };
    let capabilities = Capabilities::PROTOCOL_41.union(Capabilities::DEPRECATE_EOF);
    let agreed = (Legs::PLAIN.agree(false, false).unwrap(), Frames::NONE);
    let standing = Standing::new(Some(b"tl".to_vec()));
    let mut session = Commands::new(Server { mariadb }, capabilities, agreed, standing, limits);
    session.tables.result = Rows::Absent;
    session.tables.heads = Rows::Absent;
    session
}

/// Settings under which all may be answered, in database `tl`.
pub(crate) fn settings() -> Settings {
    Settings {
        database: Some(b"tl".to_vec()),
        server: b"one".to_vec(),
        wait_timeout: Duration::MAX,
        reads_lock: false,
        ahead: None,
        plans: 7,
        steers: false,
        no_calls: false,
        tells_state: false,
        tells_transactions: false,
        rows: Some(b"utf8mb4".to_vec()),
    }
}

/// Ids of a call for the newest page, which are not on the server.
pub(crate) fn pending(definition: DefinitionId, ids: Vec<u64>) -> Pending {
    Pending {
        definition,
        options: Arc::default(),
        form: Form::Newest,
        call: Vec::new(),
        ids: Some(ids),
        heads: None,
        before: Vec::new(),
        tail: None,
        spared: Vec::new(),
        warnings: 0,
        aside: None,
    }
}
