//! What a SELECT leaves behind that was answered without the server: row counts, and no warnings. Whoever may ask for that has the
//! server get to know of it first.

use super::*;

impl Commands {
    /// A SELECT was answered without the server: it had so many rows.
    pub(crate) fn answered_aside(&mut self, rows: u64) {
        self.aside = Some(rows);
    }

    /// So many rows the last SELECT had, if the server does not know of it: it is to run one that has as many.
    pub fn take_aside(&mut self) -> Option<u64> {
        self.aside.take()
    }

    /// What has to happen before a command goes on; `None` when nothing has to.
    pub(super) fn tell_of_aside(&mut self, effects: Effects) -> Option<ClientStep> {
        self.aside?;
        // It certainly reads, asks for none of it, and leaves its own in its place.
        if effects.spares && !effects.diagnostics && !effects.keeps_counts {
            self.aside = None;
            return None;
        }
        Some(match self.is_idle() {
            true => ClientStep::Settle { diagnostics: true },
            false => ClientStep::Hold,
        })
    }
}

/// A SELECT that has so many rows, and nothing else to it. It reads a table, though one of its own: one that reads none leaves warnings
/// as they are.
#[must_use]
pub fn with_as_many_rows(rows: u64) -> String {
    let count = usize::try_from(rows.max(1)).unwrap_or(usize::MAX);
    let all = vec!["SELECT 1"; count].join(" UNION ALL ");
    let none = if rows == 0 { " WHERE 1=0" } else { "" };
    format!("SELECT 1 FROM ({all}) AS headwater{none}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle;

    #[test]
    fn the_server_is_told_of_it_before_anything_asks() {
        let read = Effects {
            spares: true,
            ..Effects::NONE
        };
        let counts = Effects {
            diagnostics: true,
            ..read
        };
        let mut session = idle::session(true);
        assert!(session.tell_of_aside(counts).is_none());
        session.answered_aside(20);
        assert!(matches!(
            session.tell_of_aside(counts),
            Some(ClientStep::Settle { diagnostics: true })
        ));
        assert_eq!(session.take_aside(), Some(20));
        assert!(session.tell_of_aside(counts).is_none());
        session.answered_aside(20);
        assert!(session.tell_of_aside(read).is_none());
        assert_eq!(session.take_aside(), None);
        session.answered_aside(20);
        // It leaves counts as they are, or its own beside them.
        assert!(session.tell_of_aside(Effects::NONE).is_some());
    }

    #[test]
    fn a_select_has_as_many_rows_as_are_wanted() {
        assert_eq!(
            with_as_many_rows(2),
            "SELECT 1 FROM (SELECT 1 UNION ALL SELECT 1) AS headwater"
        );
        assert!(with_as_many_rows(0).ends_with(" WHERE 1=0"));
    }
}
