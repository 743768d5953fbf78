//! Columns of text, binary, ENUM, SET and spatial types.

use super::column::{Column, column};

pub(super) fn strings() -> Vec<Column> {
    let long = [
        "''",
        "'a'",
        "' spaces '",
        "REPEAT('x', 250)",
        "REPEAT('y', 251)",
        "REPEAT('\u{e9}', 255)",
    ];
    let mut columns: Vec<_> = ["char(1)", "char(0)", "varchar(1)"]
        .map(|kind| column(kind, &["''"]))
        .into();
    columns.extend(
        [
            "char(255)",
            "varchar(255)",
            "varchar(256)",
            "varchar(4000)",
            "tinytext",
            "text",
            "text(300)",
            "mediumtext",
            "longtext",
        ]
        .map(|kind| {
            column(
                kind,
                if kind == "tinytext" {
                    &long[..4]
                } else {
                    &long
                },
            )
        }),
    );
    columns.push(column(
        "json",
        &[
            "'{}'",
            "'[1, 2.5, null, \"\u{e9}\"]'",
            "'\"text\"'",
            "'7'",
            "'{\"b\": 1, \"a\": {\"c\": []}}'",
        ],
    ));
    columns
}

pub(super) fn charsets() -> Vec<Column> {
    let mut columns = Vec::new();
    for charset in [
        "latin1", "utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32", "ascii", "binary",
        "sjis", "gbk", "big5", "euckr", "cp1251", "koi8r",
    ] {
        let values = if matches!(
            charset,
            "latin1" | "utf8mb3" | "utf8mb4" | "ucs2" | "utf16" | "utf16le" | "utf32" | "binary"
        ) {
            &["''", "'plain'", "'\u{e9}\u{df}'"]
        } else {
            &["''", "'plain'", "'~'"]
        };
        columns.push(column(
            format!("varchar(20) CHARACTER SET {charset}"),
            values,
        ));
        columns.push(column(format!("text CHARACTER SET {charset}"), values));
    }
    columns.push(column(
        "char(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        &["'\u{1f980}'"],
    ));
    columns.push(column(
        "enum('a','\u{e9}') CHARACTER SET latin1",
        &["'\u{e9}'"],
    ));
    columns
}

pub(super) fn bytes() -> Vec<Column> {
    let values = [
        "''",
        "x'00'",
        "x'ff00fe'",
        "REPEAT(x'fb', 250)",
        "REPEAT(x'fe', 255)",
    ];
    let mut columns = vec![
        column("binary(1)", &["''", "x'ff'"]),
        column("binary(0)", &["''"]),
    ];
    columns.extend(
        [
            "binary(255)",
            "varbinary(255)",
            "varbinary(3000)",
            "tinyblob",
            "blob",
            "blob(400)",
            "mediumblob",
            "longblob",
        ]
        .map(|kind| column(kind, &values)),
    );
    columns.push(column(
        "longblob",
        &["REPEAT(x'00', 65535)", "REPEAT(x'00', 65536)"],
    ));
    columns
}

pub(super) fn sets() -> Vec<Column> {
    let members = |count: usize| {
        (0..count)
            .map(|n| format!("'m{n}'"))
            .collect::<Vec<_>>()
            .join(",")
    };
    vec![
        column("enum('')", &["''"]),
        column("enum('a','B','it''s')", &["'a'", "2", "'it''s'"]),
        column(format!("enum({})", members(300)), &["'m0'", "300"]),
        column("set('a')", &["''", "'a'"]),
        column("set('a','b','c')", &["'c,a'", "7"]),
        column(
            format!("set({})", members(64)),
            &["18446744073709551615", "'m63'"],
        ),
    ]
}

pub(super) fn shapes() -> Vec<Column> {
    let from = |text: &str| format!("ST_GeomFromText('{text}')");
    let of = |kind: &str, texts: &[&str]| Column {
        definition: kind.into(),
        values: texts.iter().map(|text| from(text)).collect(),
    };
    vec![
        of("geometry", &["POINT(1 2)", "LINESTRING(0 0,1 1)"]),
        of("point", &["POINT(0 0)", "POINT(-1.5 1e10)"]),
        of("linestring", &["LINESTRING(0 0,1 1,2 0)"]),
        of("polygon", &["POLYGON((0 0,1 0,1 1,0 0))"]),
        of("multipoint", &["MULTIPOINT(1 1,2 2)"]),
        of("multilinestring", &["MULTILINESTRING((0 0,1 1),(2 2,3 3))"]),
        of("multipolygon", &["MULTIPOLYGON(((0 0,1 0,1 1,0 0)))"]),
        of(
            "geometrycollection",
            &[
                "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))",
                "GEOMETRYCOLLECTION EMPTY",
            ],
        ),
    ]
}
