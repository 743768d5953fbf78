//! What a SELECT that was served without the server leaves: row counts, and no warnings. Before a command that may ask for those, the
//! server runs a SELECT that leaves the same.

use super::*;

impl CommandPhase {
    /// A SELECT was served without the server: `FOUND_ROWS()` returns this number after it.
    pub(crate) fn set_found_rows(&mut self, rows: u64) {
        self.unseen_found_rows = Some(rows);
    }

    /// What `FOUND_ROWS()` returns after the last SELECT, if the server has not seen it: the server must run one that leaves the same.
    pub fn take_found_rows(&mut self) -> Option<u64> {
        self.unseen_found_rows.take()
    }

    /// The step that must precede a command; `None` when it needs none.
    pub(super) fn restore_found_rows(&mut self, effects: StatementEffects) -> Option<ClientStep> {
        self.unseen_found_rows?;
        // It certainly reads, uses no earlier count and replaces it; except where it reads no table and the server may still hold
        // conditions of older statements.
        let replaces =
            effects.is_pure_read && !effects.diagnostics && !effects.preserves_row_counts;
        if replaces && !self.may_leave_older_conditions() {
            self.unseen_found_rows = None;
            return None;
        }
        Some(match self.is_idle() {
            true => ClientStep::Flush { diagnostics: true },
            false => ClientStep::Hold,
        })
    }
}

/// A SELECT after which `FOUND_ROWS()` returns this number, without other effects. It reads tables, though only derived ones: a SELECT
/// without tables would keep earlier warnings.
#[must_use]
pub fn found_rows_query(rows: u64) -> String {
    let ten = ["SELECT 1"; 10].join(" UNION ALL ");
    let mut tables = format!("({ten}) AS headwater");
    let (mut most, mut next) = (10_u64, 1);
    while most < rows {
        tables.push_str(&format!(", ({ten}) AS headwater{next}"));
        (most, next) = (most.saturating_mul(10), next + 1);
    }
    match rows {
        0 => format!("SELECT 1 FROM {tables} WHERE 1=0"),
        _ => format!("SELECT 1 FROM {tables} LIMIT {rows}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle_session;
    use headwater_wire::response::OkPacket;
    use headwater_wire::status;

    #[test]
    fn the_server_learns_the_row_count_before_it_is_read() {
        let read = StatementEffects {
            is_pure_read: true,
            ..StatementEffects::NONE
        };
        let counts = StatementEffects {
            diagnostics: true,
            ..read
        };
        let mut session = idle_session::session(true);
        assert!(session.restore_found_rows(counts).is_none());
        session.set_found_rows(20);
        assert!(matches!(
            session.restore_found_rows(counts),
            Some(ClientStep::Flush { diagnostics: true })
        ));
        assert_eq!(session.take_found_rows(), Some(20));
        assert!(session.restore_found_rows(counts).is_none());
        session.set_found_rows(20);
        assert!(session.restore_found_rows(read).is_none());
        assert_eq!(session.take_found_rows(), None);
        session.set_found_rows(20);
        // It keeps counts, or adds its own.
        assert!(session.restore_found_rows(StatementEffects::NONE).is_some());
    }

    /// MariaDB keeps earlier conditions where a SELECT reads no table: conditions that a page would have cleared must be cleared.
    #[test]
    fn earlier_conditions_are_cleared_after_a_page_and_not_later() {
        let read = StatementEffects::of(b"SELECT 1", &[], false);
        let warns = OkPacket {
            status: status::AUTOCOMMIT,
            warnings: 1,
            ..OkPacket::default()
        };
        let silent = OkPacket {
            warnings: 0,
            ..warns.clone()
        };
        for (mariadb, error) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut session = idle_session::session(mariadb);
            match error {
                false => session.state.observe(&warns),
                true => session.state.observe_error(),
            }
            // It reads no table.
            session.state.observe(&silent);
            session.set_found_rows(20);
            session.state.observe(&silent);
            assert_eq!(session.restore_found_rows(read).is_some(), mariadb);
            assert_eq!(session.take_found_rows(), mariadb.then_some(20));
            session.state.clear_older_conditions();
            session.set_found_rows(20);
            assert!(session.restore_found_rows(read).is_none());
        }
    }

    #[test]
    fn a_select_finds_as_many_rows_as_are_wanted() {
        let tables = |rows| found_rows_query(rows).matches(" AS headwater").count();
        assert_eq!(
            [0, 1, 10, 11, 100, 101, 5_000].map(tables),
            [1, 1, 1, 2, 2, 3, 4]
        );
        assert!(found_rows_query(11).ends_with(" AS headwater1 LIMIT 11"));
        assert!(found_rows_query(0).ends_with(" AS headwater WHERE 1=0"));
    }
}
