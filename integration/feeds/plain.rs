//! Functions that are narrowed neither fail nor warn, whatever is in the columns: each of them on both servers, over values at every edge.

use std::collections::BTreeSet;

use headwater_feed::plain_functions::{ArgumentKind, PLAIN_FUNCTIONS};

use crate::kit::database::Database;
use crate::kit::servers::on_each_server;

const TEXTS: [&str; 5] = ["varchar_u", "varchar_l", "longtext_u", "enum_c", "char_b"];
const MOMENTS: [&str; 4] = ["date_c", "datetime_c", "datetime_6", "timestamp_3"];
const NUMBERS: [&str; 4] = ["bigint_c", "unsigned_c", "decimal_c", "double_c"];
const MODES: [&str; 3] = [
    "",
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO",
    "ANSI_QUOTES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION,PAD_CHAR_TO_FULL_LENGTH",
];

/// Operands of a kind; `first`: the first argument.
fn operands(kind: ArgumentKind, first: Option<&str>) -> Vec<String> {
    let own = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    match kind {
        ArgumentKind::Text => [own(&TEXTS), own(&["'a,b'", "''"])].concat(),
        ArgumentKind::Number => own(&["0", "1", "385", "-3", "99999999", "TRUE"]),
        ArgumentKind::Pattern => own(&["'%Y-%u %W %j %H:%i:%s.%f'", "','", "''", "'a'"]),
        ArgumentKind::Moment => own(&MOMENTS),
        ArgumentKind::Any => [
            own(&TEXTS),
            own(&MOMENTS),
            own(&NUMBERS),
            own(&["NULL", "7", "'x'"]),
        ]
        .concat(),
        ArgumentKind::Undated => [own(&TEXTS), own(&NUMBERS)].concat(),
        ArgumentKind::Same => {
            let kinds = [&TEXTS[..], &MOMENTS, &NUMBERS];
            let alike = kinds
                .iter()
                .find(|names| first.is_some_and(|first| names.contains(&first)));
            alike.map_or_else(|| own(&["NULL"]), |names| own(names))
        }
    }
}

/// Calls of a function: each operand at each position.
fn calls(name: &str, kinds: &[ArgumentKind]) -> Vec<String> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    for kind in kinds {
        let longer = all.iter().flat_map(|before| {
            let operands = operands(*kind, before.first().map(String::as_str));
            operands
                .into_iter()
                .map(|operand| [&before[..], &[operand]].concat())
        });
        all = longer.collect();
    }
    all.iter()
        .map(|operands| format!("{name}({})", operands.join(", ")))
        .collect()
}

#[test]
fn no_value_makes_a_plain_function_fail_or_warn() {
    on_each_server(|server| {
        let database = Database::empty(server, "feedplain");
        let mut root = database.connect();
        root.ok("SET sql_mode = '', time_zone = '+00:00'");
        root.ok("CREATE TABLE edge (varchar_u VARCHAR(50) CHARACTER SET utf8mb4, varchar_l VARCHAR(50) CHARACTER SET latin1, \
                 longtext_u LONGTEXT CHARACTER SET utf8mb4, enum_c ENUM('a', 'b'), char_b CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, \
                 date_c DATE, datetime_c DATETIME, datetime_6 DATETIME(6), timestamp_3 TIMESTAMP(3) NULL, \
                 bigint_c BIGINT, unsigned_c BIGINT UNSIGNED, decimal_c DECIMAL(65,30), double_c DOUBLE)");
        for row in [
            "('', '', '', 'a', '', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', 0, 0, 0, 0)",
            "('a,b', 'a', REPEAT('\u{1f600}x', 9000), 'b', ' a ', '2026-00-00', '2026-02-00 10:00:00', '0000-00-01', '1970-01-01 00:00:01', \
             -9223372036854775808, 18446744073709551615, -1e34, -1.7976931348623157e308)",
            "('\u{1f600}', '\u{e9}', 'x', 'a', 'Z', '9999-12-31', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999999', \
             '2038-01-19 03:14:07.999', 9223372036854775807, 1, 99999999999999999999999999999999999.5, 4.9e-324)",
            "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
            "('x', 'x', 'x', 'no such member', 'x', '1000-01-01', '1000-01-01', '2026-10-25 02:30:00', '2026-10-25 02:30:00', 1, 1, 1, 1)",
        ] {
            root.ok(&format!("INSERT INTO edge VALUES {row}"));
        }
        let (mut count, mut faults) = (0, BTreeSet::new());
        for mode in MODES {
            root.ok(&format!("SET sql_mode = '{mode}', time_zone = '+05:30'"));
            for function in &PLAIN_FUNCTIONS {
                let longest = function.arguments.len() + usize::from(function.repeats);
                for length in function.required..=longest {
                    let kinds: Vec<_> =
                        (0..length).filter_map(|at| function.argument(at)).collect();
                    let calls = calls(function.name, &kinds);
                    for calls in calls.chunks(20) {
                        let items = calls.join(", ");
                        let rows = root.rows(&format!("SELECT {items} FROM edge"));
                        assert_eq!(rows.len(), 5);
                        let warnings = root.rows("SHOW WARNINGS");
                        if !warnings.is_empty() {
                            faults.insert(format!("{mode}: {items}: {:?}", warnings[0]));
                        }
                        count += calls.len();
                    }
                }
            }
        }
        assert_eq!(faults, BTreeSet::new());
        assert!(count > 3_000, "{count}");
    });
}
