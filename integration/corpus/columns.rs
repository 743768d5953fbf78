//! Columns of more than a hundred types, each with its minimum, its maximum and edge cases.

use super::column::{Column, column};
use super::texts::{bytes, charsets, sets, shapes, strings};

/// Columns of one family of types.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
}

/// All families that a server supports.
pub(super) fn families(mariadb: bool) -> Vec<Family> {
    let mut families = vec![
        Family {
            name: "integers",
            columns: integers(),
        },
        Family {
            name: "fractions",
            columns: fractions(),
        },
        Family {
            name: "times",
            columns: times(),
        },
        Family {
            name: "strings",
            columns: strings(),
        },
        Family {
            name: "charsets",
            columns: charsets(),
        },
        Family {
            name: "bytes",
            columns: bytes(),
        },
        Family {
            name: "sets",
            columns: sets(),
        },
        Family {
            name: "bits",
            columns: bits(),
        },
        Family {
            name: "shapes",
            columns: shapes(),
        },
        Family {
            name: "attributes",
            columns: attributes(),
        },
    ];
    families.push(if mariadb { of_mariadb() } else { of_mysql() });
    families
}

/// MariaDB has vectors since 11.7.
pub(super) fn vectors_of_mariadb() -> Family {
    let long = format!("VEC_FromText('[{}0.5]')", "1,".repeat(299));
    Family {
        name: "vectors",
        columns: vec![
            column("vector(2)", &["VEC_FromText('[1,2]')"]),
            column("vector(300)", &[&long, "REPEAT(x'0000803f', 300)"]),
            column("vector(1) NOT NULL DEFAULT x'0000803f'", &["x'00000000'"]),
        ],
    }
}

fn integers() -> Vec<Column> {
    let mut columns = Vec::new();
    for (kind, bits) in [
        ("tinyint", 8),
        ("smallint", 16),
        ("mediumint", 24),
        ("int", 32),
        ("bigint", 64),
    ] {
        let (most, half) = ((1_u128 << bits) - 1, 1_i128 << (bits - 1));
        let signed = [
            format!("{}", -half),
            format!("{}", half - 1),
            "0".into(),
            "-1".into(),
        ];
        let unsigned = [format!("{most}"), "0".into(), "7".into(), format!("{half}")];
        columns.push(Column {
            definition: kind.into(),
            values: signed.to_vec(),
        });
        for attribute in ["unsigned", "zerofill"] {
            let definition = format!("{kind} {attribute}");
            columns.push(Column {
                definition,
                values: unsigned.to_vec(),
            });
        }
        columns.push(column(format!("{kind}(3)"), &["1", "-1", "100"]));
    }
    columns.push(column("bool", &["true", "false", "5"]));
    columns
}

fn fractions() -> Vec<Column> {
    let mut columns = Vec::new();
    for (digits, scale) in [
        (1, 0),
        (5, 2),
        (10, 0),
        (10, 10),
        (18, 9),
        (30, 30),
        (38, 4),
        (65, 0),
        (65, 30),
    ] {
        let most = format!("{}.{}", "9".repeat(digits - scale), "9".repeat(scale));
        let values = [format!("-{most}"), most.clone(), "0".into(), "-0.5".into()];
        let sound = |values: &[String]| values[..if digits == scale { 4 } else { 3 }].to_vec();
        columns.push(Column {
            definition: format!("decimal({digits},{scale})"),
            values: sound(&values),
        });
        let definition = format!("decimal({digits},{scale}) unsigned zerofill");
        columns.push(Column {
            definition,
            values: vec![most, "0".into()],
        });
    }
    let odd = ["0", "-0.0", "1e-30", "3.4e38", "-3.4e38", "0.1", "16777217"];
    for kind in [
        "float",
        "float unsigned",
        "float(7,3)",
        "float(24)",
        "float(53)",
    ] {
        let most = match kind {
            "float unsigned" => &["0", "1e-30", "3.4e38"][..],
            "float(7,3)" => &["9999.999", "-9999.999", "0.0005"],
            _ => &odd,
        };
        columns.push(column(kind, most));
    }
    columns.push(column(
        "double",
        &[
            "1.7976931348623157e308",
            "-1.7976931348623157e308",
            "5e-324",
            "0.1",
            "1e15",
            "1e16",
        ],
    ));
    columns.push(column("double(20,10)", &["1234567890.0123456789", "-0.1"]));
    columns.push(column("double unsigned zerofill", &["0", "12.5"]));
    columns
}

fn times() -> Vec<Column> {
    let mut columns = vec![
        column(
            "date",
            &[
                "'1000-01-01'",
                "'9999-12-31'",
                "'0000-00-00'",
                "'2020-00-00'",
                "'2020-02-29'",
            ],
        ),
        column("year", &["1901", "2155", "0000", "'70'"]),
    ];
    for digits in 0..=6 {
        let rest = "999999".get(..digits).unwrap_or_default();
        let with = |text: &str| match digits {
            0 => format!("'{text}'"),
            _ => format!("'{text}.{rest}'"),
        };
        let plain = |text: &str| format!("'{text}'");
        let days = vec![
            with("9999-12-31 23:59:59"),
            plain("1000-01-01 00:00:00"),
            plain("0000-00-00 00:00:00"),
            with("2020-02-29 12:34:56"),
        ];
        columns.push(Column {
            definition: format!("datetime({digits})"),
            values: days,
        });
        let stamps = vec![
            plain("1970-01-02 00:00:01"),
            with("2038-01-18 03:14:07"),
            plain("0000-00-00 00:00:00"),
        ];
        columns.push(Column {
            definition: format!("timestamp({digits}) NULL"),
            values: stamps,
        });
        let hours = vec![
            plain("838:59:59"),
            plain("-838:59:59"),
            plain("00:00:00"),
            with("-00:00:01"),
            with("23:59:59"),
        ];
        columns.push(Column {
            definition: format!("time({digits})"),
            values: hours,
        });
    }
    columns
}

fn bits() -> Vec<Column> {
    [1, 2, 7, 8, 9, 16, 31, 32, 33, 63, 64]
        .map(|bits| {
            let most = (1_u128 << bits) - 1;
            Column {
                definition: format!("bit({bits})"),
                values: vec![format!("{most}"), "0".into(), "1".into()],
            }
        })
        .into()
}

fn attributes() -> Vec<Column> {
    vec![
        column("int NOT NULL DEFAULT 5", &["1"]),
        column("int AUTO_INCREMENT UNIQUE KEY", &["1000"]),
        column("varchar(9) DEFAULT 'd' COMMENT 'said'", &["'x'"]),
        column("varchar(9) NOT NULL DEFAULT ''", &["'y'"]),
        column("text DEFAULT ('an expression')", &["'z'"]),
        column("int INVISIBLE DEFAULT 3", &["4"]),
        column(
            "timestamp DEFAULT '2020-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP",
            &["'2021-01-01'"],
        ),
        column(
            "int GENERATED ALWAYS AS (LENGTH('generated')) VIRTUAL",
            &["DEFAULT"],
        ),
        column(
            "varchar(20) GENERATED ALWAYS AS (CONCAT('a', 'b')) STORED",
            &["DEFAULT"],
        ),
        column("int UNIQUE", &["7"]),
        column("serial", &["18446744073709551613"]),
        column("national varchar(7)", &["'n'"]),
    ]
}

fn of_mariadb() -> Family {
    let columns = vec![
        column("inet4", &["'0.0.0.0'", "'255.255.255.255'"]),
        column(
            "inet6",
            &["'::'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.128'"],
        ),
        column(
            "uuid",
            &[
                "'00000000-0000-0000-0000-000000000000'",
                "'123e4567-e89b-12d3-a456-426614174000'",
            ],
        ),
        column("varchar(50) COMPRESSED", &["REPEAT('c', 50)", "''"]),
        column("blob COMPRESSED", &["REPEAT('c', 5000)"]),
        column("int WITHOUT SYSTEM VERSIONING", &["1"]),
        column(
            "varchar(9) CHARACTER SET utf8mb4 COLLATE uca1400_ai_ci",
            &["'u'"],
        ),
        column("long varchar", &["'l'"]),
    ];
    Family {
        name: "own",
        columns,
    }
}

fn of_mysql() -> Family {
    let columns = vec![
        column("vector(2)", &["TO_VECTOR('[1,2]')"]),
        column("vector(300)", &["REPEAT(x'0000803f', 300)"]),
        column(
            "point SRID 4326",
            &["ST_GeomFromText('POINT(10 20)', 4326)"],
        ),
        column("varchar(9) COLLATE utf8mb4_ja_0900_as_cs_ks", &["'j'"]),
        column("json DEFAULT (JSON_ARRAY(1))", &["'[]'"]),
        column(
            "varbinary(16) DEFAULT (UUID_TO_BIN('123e4567-e89b-12d3-a456-426614174000'))",
            &["x'00'"],
        ),
        column("long varchar", &["'l'"]),
    ];
    Family {
        name: "own",
        columns,
    }
}
