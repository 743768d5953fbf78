//! Procedures dressed otherwise, and procedures that differ by one token.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::definition::IntType;

/// A routine as a server shows it, with `from` changed to `to` (in every place where it is).
fn compared(routine: Routine, from: &str, to: &str) -> Result<Body, String> {
    let definition = Definition::classic();
    let [heads, newest, bounded] = definition.procedures_sql();
    let text = match routine {
        Routine::Newest => newest,
        Routine::Bounded => bounded,
        Routine::Heads => heads,
    };
    let shown = text.replace("CREATE PROCEDURE", "CREATE DEFINER=`root`@`%` PROCEDURE");
    assert!(shown.contains(from), "{from} is not in {shown}");
    compare(&definition, routine, shown.replace(from, to).as_bytes())
        .map_err(|difference| difference.to_string())
}

fn same(routine: Routine, from: &str, to: &str) {
    assert_eq!(
        compared(routine, from, to).map(|body| body.security),
        Ok(Security::Definer),
        "{from} -> {to}"
    );
}

fn differs(routine: Routine, from: &str, to: &str, message: &str) {
    let error = compared(routine, from, to).unwrap_err();
    assert!(error.contains(message), "{from} -> {to}: {error}");
}

#[test]
fn its_own_procedures_are_known_whatever_the_names_and_types() {
    let mut definition = Definition {
        n: 7,
        id_type: IntType::BigIntUnsigned,
        user_type: IntType::Int,
        ..Definition::classic()
    };
    definition.message.id = "a`b".into();
    definition.result.table = "found ones".into();
    for definition in [Definition::classic(), definition] {
        for (routine, text) in [Routine::Heads, Routine::Newest, Routine::Bounded]
            .into_iter()
            .zip(definition.procedures_sql())
        {
            compare(&definition, routine, text.as_bytes()).unwrap();
        }
    }
}

#[test]
fn the_tables_options_are_told_whole() {
    for (to, expected) in [
        ("ENGINE=MEMORY", "ENGINE = MEMORY"),
        (
            "ENGINE=MEMORY DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci",
            "ENGINE = MEMORY DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_unicode_ci",
        ),
        (
            "COLLATE latin1_bin, ENGINE='Memory'",
            "COLLATE latin1_bin , ENGINE = 'Memory'",
        ),
    ] {
        let body = compared(Routine::Newest, "ENGINE=MEMORY", to).unwrap();
        assert_eq!(body.options, expected);
    }
}

#[test]
fn dress_does_not_matter() {
    same(Routine::Newest, "v_author", "FID");
    same(
        Routine::Newest,
        "ENGINE=MEMORY",
        "ENGINE = heap DEFAULT CHARSET=utf8 COLLATE utf8_bin",
    );
    same(
        Routine::Newest,
        "SELECT `id` FROM",
        "select/* x */message . ID from",
    );
    same(Routine::Newest, "`user_id` DESC, `id` DESC", "`id` DESC");
    same(Routine::Heads, "AS newest", "newest");
    same(Routine::Bounded, "int unsigned", "INTEGER(10) UNSIGNED");
    same(Routine::Bounded, "tinyint DEFAULT 0", "bool DEFAULT FALSE");
    same(
        Routine::Bounded,
        "BEGIN\n",
        "  NOT DETERMINISTIC MODIFIES SQL DATA COMMENT 'pages' BEGIN\n",
    );
}

#[test]
fn the_invoker_is_told() {
    let body = compared(Routine::Newest, "BEGIN\n", "SQL SECURITY INVOKER BEGIN\n");
    assert_eq!(body.map(|body| body.security), Ok(Security::Invoker));
}

#[test]
fn one_changed_token_is_a_difference_and_is_named() {
    differs(
        Routine::Newest,
        "LIMIT 20;\n    END",
        "LIMIT 21;\n    END",
        "line 28: expected 20, found 21",
    );
    differs(
        Routine::Newest,
        "newest DESC",
        "newest ASC",
        "expected DESC, found ASC",
    );
    differs(
        Routine::Newest,
        "`user_id` = v_author",
        "`user_id` = v_head",
        "expected `v_author`, found v_head",
    );
    differs(
        Routine::Newest,
        "`user_id` = v_author",
        "`user_id` = v_author AND hidden = 0",
        "expected ORDER, found AND",
    );
    differs(
        Routine::Newest,
        "PRIMARY KEY",
        "UNIQUE",
        "expected PRIMARY, found UNIQUE",
    );
    differs(
        Routine::Newest,
        "ENGINE=MEMORY",
        "ENGINE=InnoDB",
        "expected MEMORY, found InnoDB",
    );
    differs(
        Routine::Newest,
        "ENGINE=MEMORY",
        "",
        "expected ENGINE, found ;",
    );
    differs(
        Routine::Newest,
        "  DELETE FROM `fetch_timeline_tt`;\n",
        "",
        "expected DELETE, found OPEN",
    );
    differs(
        Routine::Newest,
        "FROM `message`",
        "FROM `messages`",
        "expected `message`, found `messages`",
    );
    differs(
        Routine::Newest,
        "FROM `message`",
        "FROM `Message`",
        "expected `message`, found `Message`",
    );
    differs(
        Routine::Newest,
        "int unsigned",
        "int",
        "expected int unsigned, found int",
    );
    differs(
        Routine::Newest,
        "int unsigned NOT",
        "int unsigned zerofill NOT",
        "expected NOT, found zerofill",
    );
    differs(
        Routine::Newest,
        "IN p_reader",
        "OUT p_reader",
        "expected int unsigned, found p_reader",
    );
    differs(
        Routine::Heads,
        "<= p_bound",
        "< p_bound",
        "expected <=, found <",
    );
    differs(Routine::Heads, "MAX(", "MIN(", "expected MAX, found MIN");
    differs(
        Routine::Bounded,
        "(p_reader, p_bound)",
        "(p_bound, p_reader)",
        "expected `p_reader`, found p_bound",
    );
    differs(
        Routine::Bounded,
        "END REPEAT",
        "END /*! REPEAT */",
        "expected REPEAT, found /*!",
    );
    differs(
        Routine::Bounded,
        "CLOSE authors;\nEND",
        "CLOSE authors;\n SELECT 1; END",
        "expected END, found SELECT",
    );
    differs(
        Routine::Bounded,
        "CLOSE authors;\nEND",
        "CLOSE authors;\nEND; DROP TABLE x",
        "expected the end, found DROP",
    );
}

#[test]
fn a_variable_that_hides_a_column_is_a_difference() {
    differs(
        Routine::Newest,
        "v_author",
        "follower_id",
        "found the variable `follower_id`",
    );
    differs(
        Routine::Newest,
        "p_reader",
        "user_id",
        "found the variable `user_id`",
    );
    differs(
        Routine::Bounded,
        "p_bound",
        "Max_Id",
        "found the variable `Max_Id`",
    );
    differs(
        Routine::Newest,
        "newest",
        "v_head",
        "expected an alias that is no variable's",
    );
    differs(
        Routine::Newest,
        "newest",
        "follower_id",
        "expected an alias that is no variable's",
    );
}

#[test]
fn two_roles_need_two_variables() {
    differs(
        Routine::Newest,
        "v_head",
        "v_author",
        "expected a variable of its own of type int unsigned",
    );
    differs(
        Routine::Newest,
        "DEFAULT 0",
        "",
        "expected a variable of its own that starts as 0",
    );
    differs(
        Routine::Newest,
        "DEFAULT 0",
        "DEFAULT 1",
        "expected 0, found 1",
    );
}

#[test]
fn no_text_at_all_is_a_difference() {
    let difference = compare(&Definition::classic(), Routine::Newest, b"").unwrap_err();
    assert_eq!(
        difference.to_string(),
        "procedure fetch_timeline_ids, line 1: expected CREATE, found the end"
    );
}
