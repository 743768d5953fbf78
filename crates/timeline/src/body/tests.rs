//! Procedures dressed otherwise, and procedures that differ by one token.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::definition::IdType;

/// A routine as a server shows it, with `from` changed to `to` (in every place where it is).
fn compared(routine: TimelineRoutine, from: &str, to: &str) -> Result<ProcedureBody, String> {
    let definition = TimelineDefinition::classic();
    let [heads, newest, bounded] = definition.procedures_sql();
    let text = match routine {
        TimelineRoutine::Newest => newest,
        TimelineRoutine::Bounded => bounded,
        TimelineRoutine::Heads => heads,
    };
    let shown = text.replace("CREATE PROCEDURE", "CREATE DEFINER=`root`@`%` PROCEDURE");
    assert!(shown.contains(from), "{from} is not in {shown}");
    compare(&definition, routine, shown.replace(from, to).as_bytes())
        .map_err(|difference| difference.to_string())
}

fn same(routine: TimelineRoutine, from: &str, to: &str) {
    assert_eq!(
        compared(routine, from, to).map(|body| body.security),
        Ok(SqlSecurity::Definer),
        "{from} -> {to}"
    );
}

fn differs(routine: TimelineRoutine, from: &str, to: &str, message: &str) {
    let error = compared(routine, from, to).unwrap_err();
    assert!(error.contains(message), "{from} -> {to}: {error}");
}

#[test]
fn its_own_procedures_are_known_whatever_the_names_and_types() {
    let mut definition = TimelineDefinition {
        n: 7,
        id_type: IdType::BigIntUnsigned,
        user_type: IdType::Int,
        ..TimelineDefinition::classic()
    };
    definition.message.id = "a`b".into();
    definition.result.table = "found ones".into();
    for definition in [TimelineDefinition::classic(), definition] {
        for (routine, text) in [
            TimelineRoutine::Heads,
            TimelineRoutine::Newest,
            TimelineRoutine::Bounded,
        ]
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
        let body = compared(TimelineRoutine::Newest, "ENGINE=MEMORY", to).unwrap();
        assert_eq!(body.table_options, expected);
    }
}

#[test]
fn dress_does_not_matter() {
    same(TimelineRoutine::Newest, "v_author", "FID");
    same(
        TimelineRoutine::Newest,
        "ENGINE=MEMORY",
        "ENGINE = heap DEFAULT CHARSET=utf8 COLLATE utf8_bin",
    );
    same(
        TimelineRoutine::Newest,
        "SELECT `id` FROM",
        "select/* x */message . ID from",
    );
    same(
        TimelineRoutine::Newest,
        "`user_id` DESC, `id` DESC",
        "`id` DESC",
    );
    same(TimelineRoutine::Heads, "AS newest", "newest");
    same(
        TimelineRoutine::Bounded,
        "int unsigned",
        "INTEGER(10) UNSIGNED",
    );
    same(
        TimelineRoutine::Bounded,
        "tinyint DEFAULT 0",
        "bool DEFAULT FALSE",
    );
    same(
        TimelineRoutine::Bounded,
        "BEGIN\n",
        "  NOT DETERMINISTIC MODIFIES SQL DATA COMMENT 'pages' BEGIN\n",
    );
}

#[test]
fn the_invoker_is_told() {
    let body = compared(
        TimelineRoutine::Newest,
        "BEGIN\n",
        "SQL SECURITY INVOKER BEGIN\n",
    );
    assert_eq!(body.map(|body| body.security), Ok(SqlSecurity::Invoker));
}

#[test]
fn one_changed_token_is_a_difference_and_is_named() {
    differs(
        TimelineRoutine::Newest,
        "LIMIT 20;\n    END",
        "LIMIT 21;\n    END",
        "line 28: expected 20, found 21",
    );
    differs(
        TimelineRoutine::Newest,
        "newest DESC",
        "newest ASC",
        "expected DESC, found ASC",
    );
    differs(
        TimelineRoutine::Newest,
        "`user_id` = v_author",
        "`user_id` = v_head",
        "expected `v_author`, found v_head",
    );
    differs(
        TimelineRoutine::Newest,
        "`user_id` = v_author",
        "`user_id` = v_author AND hidden = 0",
        "expected ORDER, found AND",
    );
    differs(
        TimelineRoutine::Newest,
        "PRIMARY KEY",
        "UNIQUE",
        "expected PRIMARY, found UNIQUE",
    );
    differs(
        TimelineRoutine::Newest,
        "ENGINE=MEMORY",
        "ENGINE=InnoDB",
        "expected MEMORY, found InnoDB",
    );
    differs(
        TimelineRoutine::Newest,
        "ENGINE=MEMORY",
        "",
        "expected ENGINE, found ;",
    );
    differs(
        TimelineRoutine::Newest,
        "  DELETE FROM `fetch_timeline_tt`;\n",
        "",
        "expected DELETE, found OPEN",
    );
    differs(
        TimelineRoutine::Newest,
        "FROM `message`",
        "FROM `messages`",
        "expected `message`, found `messages`",
    );
    differs(
        TimelineRoutine::Newest,
        "FROM `message`",
        "FROM `Message`",
        "expected `message`, found `Message`",
    );
    differs(
        TimelineRoutine::Newest,
        "int unsigned",
        "int",
        "expected int unsigned, found int",
    );
    differs(
        TimelineRoutine::Newest,
        "int unsigned NOT",
        "int unsigned zerofill NOT",
        "expected NOT, found zerofill",
    );
    differs(
        TimelineRoutine::Newest,
        "IN p_reader",
        "OUT p_reader",
        "expected int unsigned, found p_reader",
    );
    differs(
        TimelineRoutine::Heads,
        "<= p_bound",
        "< p_bound",
        "expected <=, found <",
    );
    differs(
        TimelineRoutine::Heads,
        "MAX(",
        "MIN(",
        "expected MAX, found MIN",
    );
    differs(
        TimelineRoutine::Bounded,
        "(p_reader, p_bound)",
        "(p_bound, p_reader)",
        "expected `p_reader`, found p_bound",
    );
    differs(
        TimelineRoutine::Bounded,
        "END REPEAT",
        "END /*! REPEAT */",
        "expected REPEAT, found /*!",
    );
    differs(
        TimelineRoutine::Bounded,
        "CLOSE authors;\nEND",
        "CLOSE authors;\n SELECT 1; END",
        "expected END, found SELECT",
    );
    differs(
        TimelineRoutine::Bounded,
        "CLOSE authors;\nEND",
        "CLOSE authors;\nEND; DROP TABLE x",
        "expected the end, found DROP",
    );
}

#[test]
fn a_variable_that_hides_a_column_is_a_difference() {
    differs(
        TimelineRoutine::Newest,
        "v_author",
        "follower_id",
        "found the variable `follower_id`",
    );
    differs(
        TimelineRoutine::Newest,
        "p_reader",
        "user_id",
        "found the variable `user_id`",
    );
    differs(
        TimelineRoutine::Bounded,
        "p_bound",
        "Max_Id",
        "found the variable `Max_Id`",
    );
    differs(
        TimelineRoutine::Newest,
        "newest",
        "v_head",
        "expected an alias that is no variable's",
    );
    differs(
        TimelineRoutine::Newest,
        "newest",
        "follower_id",
        "expected an alias that is no variable's",
    );
}

#[test]
fn two_roles_need_two_variables() {
    differs(
        TimelineRoutine::Newest,
        "v_head",
        "v_author",
        "expected a variable of its own of type int unsigned",
    );
    differs(
        TimelineRoutine::Newest,
        "DEFAULT 0",
        "",
        "expected a variable of its own that starts as 0",
    );
    differs(
        TimelineRoutine::Newest,
        "DEFAULT 0",
        "DEFAULT 1",
        "expected 0, found 1",
    );
}

#[test]
fn no_text_at_all_is_a_difference() {
    let difference =
        compare(&TimelineDefinition::classic(), TimelineRoutine::Newest, b"").unwrap_err();
    assert_eq!(
        difference.to_string(),
        "procedure fetch_timeline_ids, line 1: expected CREATE, found the end"
    );
}
