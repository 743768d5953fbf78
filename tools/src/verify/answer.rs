//! A statement's answer, as far as clients can tell answers apart, and where two of them differ.

use headwater_feed::result_metadata::{KEY_FLAGS, flags_at};
use headwater_wire::resultset;

const NO_PROCEDURE: u16 = 1305;
/// A missing privilege: on a database, a routine, a table or column, or a global one.
const DENIED: [u16; 8] = [1044, 1045, 1142, 1143, 1227, 1370, 1410, 1449];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ComparableAnswer {
    /// Success without rows. Affected rows are left out: MariaDB counts those of the previous call, whose table this one empties.
    Done {
        last_insert_id: u64,
        warnings: u16,
    },
    Refused {
        code: u16,
        message: String,
    },
    Rows {
        /// Column definitions, without the key flags: the server sets these by its plan.
        columns: Vec<Vec<u8>>,
        rows: Vec<AnswerRow>,
        warnings: u16,
    },
}

pub(super) type AnswerRow = Vec<Option<Vec<u8>>>;

impl From<resultset::QueryReply> for ComparableAnswer {
    fn from(answer: resultset::QueryReply) -> ComparableAnswer {
        match answer {
            resultset::QueryReply::Ok(ok) => ComparableAnswer::Done {
                last_insert_id: ok.last_insert_id,
                warnings: ok.warnings,
            },
            resultset::QueryReply::Err(error) => ComparableAnswer::Refused {
                code: error.code,
                message: String::from_utf8_lossy(&error.message).into_owned(),
            },
            resultset::QueryReply::Rows(rows) => ComparableAnswer::Rows {
                columns: rows
                    .columns()
                    .iter()
                    .map(|column| without_keys(column))
                    .collect(),
                rows: rows.cells(),
                warnings: rows.end().warnings,
            },
        }
    }
}

/// A column definition without what depends on the plan.
fn without_keys(definition: &[u8]) -> Vec<u8> {
    let mut definition = definition.to_vec();
    let flags = flags_at(&definition).and_then(|at| definition.get_mut(at..)?.first_chunk_mut());
    if let Some(flags) = flags {
        *flags = (u16::from_le_bytes(*flags) & !KEY_FLAGS).to_le_bytes();
    }
    definition
}

impl ComparableAnswer {
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, ComparableAnswer::Refused { .. })
    }

    pub(super) fn lacks_procedure(&self) -> bool {
        matches!(self, ComparableAnswer::Refused { code, .. } if *code == NO_PROCEDURE)
    }

    pub(super) fn is_denial(&self) -> bool {
        matches!(self, ComparableAnswer::Refused { code, .. } if DENIED.contains(code))
    }

    pub(super) fn rows(&self) -> &[AnswerRow] {
        match self {
            ComparableAnswer::Rows { rows, .. } => rows,
            ComparableAnswer::Done { .. } | ComparableAnswer::Refused { .. } => &[],
        }
    }

    /// In one line.
    pub(super) fn summary(&self) -> String {
        let with = |warnings: u16| match warnings {
            0 => String::new(),
            warnings => format!(", warnings: {warnings}"),
        };
        match self {
            ComparableAnswer::Done { warnings, .. } => format!("done{}", with(*warnings)),
            ComparableAnswer::Refused { code, message } => format!("ERROR {code}: {message}"),
            ComparableAnswer::Rows {
                columns,
                rows,
                warnings,
            } => format!(
                "{} {} of {} {}{}",
                rows.len(),
                if rows.len() == 1 { "row" } else { "rows" },
                columns.len(),
                if columns.len() == 1 {
                    "column"
                } else {
                    "columns"
                },
                with(*warnings)
            ),
        }
    }
}

/// The last row's first cell, as a number.
pub(super) fn last_id(answer: &ComparableAnswer) -> Option<u64> {
    let cell = answer.rows().last()?.first()?.as_deref()?;
    std::str::from_utf8(cell).ok()?.parse().ok()
}

/// The index of the first row in which two answers differ, or at which one of them ends.
pub(super) fn first_difference(
    one: Option<&ComparableAnswer>,
    other: Option<&ComparableAnswer>,
) -> usize {
    let (Some(one), Some(other)) = (one, other) else {
        return 0;
    };
    let (one, other) = (one.rows(), other.rows());
    let differ = one.iter().zip(other).position(|(one, other)| one != other);
    differ.unwrap_or(one.len().min(other.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ids: &[&str]) -> ComparableAnswer {
        let cell = |id: &&str| vec![Some(id.as_bytes().to_vec()), None];
        ComparableAnswer::Rows {
            columns: vec![Vec::new(); 2],
            rows: ids.iter().map(cell).collect(),
            warnings: 0,
        }
    }

    const DONE: ComparableAnswer = ComparableAnswer::Done {
        last_insert_id: 0,
        warnings: 0,
    };

    #[test]
    fn the_first_row_that_differs_is_found() {
        let one = rows(&["3", "2", "1"]);
        let differ = |other: &ComparableAnswer| first_difference(Some(&one), Some(other));
        assert_eq!(differ(&rows(&["3", "1"])), 1);
        assert_eq!(differ(&rows(&["3", "2"])), 2);
        assert_eq!(differ(&DONE), 0);
        assert_eq!(first_difference(Some(&one), None), 0);
    }

    #[test]
    fn the_last_id_is_the_bound_of_the_next_page() {
        assert_eq!(last_id(&rows(&["3", "2"])), Some(2));
        assert_eq!(last_id(&rows(&[])), None);
        assert_eq!(last_id(&DONE), None);
    }

    #[test]
    fn a_definition_is_the_same_under_every_plan_and_no_other_one_is() {
        let definition = |flags: u16| {
            let mut definition = b"\x03def\x01a".to_vec();
            definition.extend(flags.to_le_bytes());
            definition.extend([0; 3]);
            definition
        };
        // NOT NULL, which is no key flag, and PRI_KEY, which is one.
        let (plain, keyed) = (definition(0x0001), definition(0x0003));
        assert_eq!(without_keys(&plain), without_keys(&keyed));
        assert_ne!(without_keys(&plain), without_keys(&definition(0x0000)));
        assert_eq!(without_keys(b"ab"), b"ab");
    }

    #[test]
    fn it_is_told_in_a_line() {
        assert_eq!(rows(&["1"]).summary(), "1 row of 2 columns");
        assert_eq!(DONE.summary(), "done");
    }
}
