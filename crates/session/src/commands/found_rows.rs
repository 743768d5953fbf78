//! What a SELECT that was served without the server leaves: row counts, and no warnings. Before a command that may ask for those, the
//! server runs a SELECT that leaves the same.

use super::*;

/// A SELECT that was served without the server, by what `FOUND_ROWS()` returns after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnseenSelect {
    /// This number.
    FoundRows(u64),
    /// As the server's plan of this text has it: a number of its own, or the one of before.
    Planned(String),
}

/// So many may have to run before a command that asks for counts.
const MAX_UNSEEN_SELECTS: usize = 4;

impl UnseenSelect {
    /// A SELECT that leaves the same on the server.
    #[must_use]
    pub fn query(self) -> String {
        match self {
            UnseenSelect::FoundRows(rows) => found_rows_query(rows),
            UnseenSelect::Planned(text) => text,
        }
    }
}

impl CommandPhase {
    /// A SELECT was served without the server.
    pub(crate) fn set_unseen_select(&mut self, select: UnseenSelect) {
        self.unseen_selects = match select {
            UnseenSelect::FoundRows(_) => Vec::new(),
            UnseenSelect::Planned(_) => std::mem::take(&mut self.earlier_selects),
        };
        if !self.unseen_selects.contains(&select) {
            self.unseen_selects.push(select);
        }
    }

    /// A feed's statement is relayed: true if SELECTs before it must run first, since it may preserve their `FOUND_ROWS()`.
    pub fn recall_earlier_selects(&mut self, effects: StatementEffects) -> bool {
        let recalls = self.server.mariadb && effects.aggregates;
        if recalls && !self.earlier_selects.is_empty() {
            self.unseen_selects = std::mem::take(&mut self.earlier_selects);
        }
        recalls && !self.unseen_selects.is_empty()
    }

    /// True where the server may be left without another SELECT whose plan decides.
    pub(crate) fn may_leave_unseen(&self) -> bool {
        self.earlier_selects.len() < MAX_UNSEEN_SELECTS
    }

    /// The last SELECTs, if the server has not seen them: it must run some that leave the same.
    pub fn take_unseen_selects(&mut self) -> Vec<UnseenSelect> {
        std::mem::take(&mut self.unseen_selects)
    }

    /// The step that must precede a command; `None` when it needs none.
    pub(super) fn restore_found_rows(&mut self, effects: StatementEffects) -> Option<ClientStep> {
        self.earlier_selects.clear();
        if self.unseen_selects.is_empty() {
            return None;
        }
        // It certainly reads, uses no earlier count and replaces it; except where it reads no table and the server may still hold
        // conditions of older statements.
        let replaces =
            effects.is_pure_read && !effects.diagnostics && !effects.preserves_row_counts;
        // MariaDB preserves the number behind an aggregate of nothing.
        let replaces = replaces && !(self.server.mariadb && effects.aggregates);
        if replaces && !self.may_leave_older_conditions() {
            self.earlier_selects = std::mem::take(&mut self.unseen_selects);
            return None;
        }
        Some(self.flush_counts())
    }

    pub(super) fn flush_counts(&self) -> ClientStep {
        match self.is_idle() {
            true => ClientStep::Flush { diagnostics: true },
            false => ClientStep::Hold,
        }
    }
}

/// A SELECT after which `FOUND_ROWS()` returns this number, without other effects. It reads tables, though only derived ones: a SELECT
/// without tables would keep earlier warnings.
#[must_use]
fn found_rows_query(rows: u64) -> String {
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
        session.set_unseen_select(UnseenSelect::FoundRows(20));
        assert!(matches!(
            session.restore_found_rows(counts),
            Some(ClientStep::Flush { diagnostics: true })
        ));
        assert_eq!(session.take_unseen_selects(), [UnseenSelect::FoundRows(20)]);
        assert!(session.restore_found_rows(counts).is_none());
        session.set_unseen_select(UnseenSelect::FoundRows(20));
        assert!(session.restore_found_rows(read).is_none());
        assert_eq!(session.take_unseen_selects(), []);
        session.set_unseen_select(UnseenSelect::FoundRows(20));
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
            session.set_unseen_select(UnseenSelect::FoundRows(20));
            session.state.observe(&silent);
            assert_eq!(session.restore_found_rows(read).is_some(), mariadb);
            assert_eq!(session.take_unseen_selects().len(), usize::from(mariadb));
            session.state.clear_older_conditions();
            session.set_unseen_select(UnseenSelect::FoundRows(20));
            assert!(session.restore_found_rows(read).is_none());
        }
    }

    /// MariaDB leaves the earlier number after some counts of nothing: what came before them is restored first.
    #[test]
    fn a_select_whose_plan_decides_keeps_what_was_before() {
        let planned = |text: &str| UnseenSelect::Planned(text.to_owned());
        let read = StatementEffects {
            is_pure_read: true,
            ..StatementEffects::NONE
        };
        let mut session = idle_session::session(true);
        session.set_unseen_select(UnseenSelect::FoundRows(7));
        session.set_unseen_select(UnseenSelect::FoundRows(20));
        for text in ["a", "b", "a", "c"] {
            assert!(session.restore_found_rows(read).is_none());
            assert!(session.may_leave_unseen());
            session.set_unseen_select(planned(text));
        }
        assert!(session.restore_found_rows(read).is_none());
        assert!(!session.may_leave_unseen());
        session.set_unseen_select(planned("a"));
        let all = session.take_unseen_selects();
        let first = UnseenSelect::FoundRows(20);
        assert_eq!(all, [first, planned("a"), planned("b"), planned("c")]);
        // Without one before, the server has the number of before itself.
        assert!(session.restore_found_rows(read).is_none());
        session.set_unseen_select(planned("d"));
        assert_eq!(session.take_unseen_selects(), [planned("d")]);
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
