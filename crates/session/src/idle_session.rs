//! A session between two commands, for tests of decisions.

use std::sync::Arc;
use std::time::Duration;

use headwater_timeline::{DefinitionId, ProcedureForm};
use headwater_wire::capability::Capabilities;

use crate::commands::CommandPhase;
use crate::compression_frames::CompressionFrames;
use crate::machine_step::{ServerFlavor, SessionLimits};
use crate::result_table::{PendingIds, TableRowCount};
use crate::session_state::SessionState;
use crate::settings_probe::SessionSettings;
use crate::tls_policy::TlsPolicy;

/// A session of which only this is known: it is in database `tl`, and has no result tables.
pub(crate) fn session(mariadb: bool) -> CommandPhase {
    let limits = SessionLimits {
        statement_bytes: 1024,
        in_flight: 4,
        prepared_statements: 2,
    };
    let capabilities = Capabilities::PROTOCOL_41.union(Capabilities::DEPRECATE_EOF);
    let agreed = (
        TlsPolicy::PLAIN.agree(false, false).unwrap(),
        CompressionFrames::NONE,
    );
    let state = SessionState::new(Some(b"tl".to_vec()));
    let mut session = CommandPhase::new(
        ServerFlavor { mariadb },
        capabilities,
        agreed,
        state,
        limits,
    );
    session.tables.result = TableRowCount::Absent;
    session.tables.heads = TableRowCount::Absent;
    session
}

/// Settings that bar nothing, in database `tl`.
pub(crate) fn settings() -> SessionSettings {
    SessionSettings {
        database: Some(b"tl".to_vec()),
        server: b"one".to_vec(),
        wait_timeout: Duration::MAX,
        reads_lock: false,
        utc_offset: None,
        plan_settings: 7,
        has_own_plan_settings: false,
        bars_calls: false,
        quotes_names: false,
        tracks_state: false,
        tracks_transactions: false,
        row_settings: Some(b"utf8mb4".to_vec()),
        account: b"app@one".to_vec(),
    }
}

/// Ids of a call for the newest page that are not on the server.
pub(crate) fn pending(definition: DefinitionId, ids: Vec<u64>) -> PendingIds {
    PendingIds {
        definition,
        options: Arc::default(),
        form: ProcedureForm::Newest,
        call: Vec::new(),
        ids: Some(ids),
        heads: None,
        earlier_calls: Vec::new(),
        follow_up: None,
        replayable: Vec::new(),
        warnings: 0,
        count_reset: None,
    }
}
