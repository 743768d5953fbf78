//! How follow-up SELECTs are rewritten and cached.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::{
    FollowUpForm, FollowUpSelect, StatementClass, StatementClassifier, StatementEffects, classify,
};
use headwater_timeline::TimelineDefinition;

const CLASSIC: &str = "SELECT message.id,user_id,body FROM message\n  INNER JOIN fetch_timeline_tt USING(id)\n  ORDER BY message.id DESC LIMIT 20";

fn parse_follow_up(text: &str) -> FollowUpSelect {
    FollowUpSelect::parse(text.as_bytes(), &[TimelineDefinition::classic()])
        .unwrap_or_else(|| panic!("no tail: {text}"))
}

#[test]
fn a_list_takes_the_place_of_the_join() {
    let plain = parse_follow_up(CLASSIC)
        .rewrite(FollowUpForm::List, &[7, u64::MAX])
        .unwrap();
    assert_eq!(
        plain,
        "SELECT message.id,user_id,body FROM message WHERE message.`id` IN (7,18446744073709551615) ORDER BY message.id DESC LIMIT 20"
    );
    let buffered = parse_follow_up(CLASSIC)
        .rewrite(FollowUpForm::BufferedList, &[7])
        .unwrap();
    assert!(
        buffered.starts_with("SELECT SQL_BUFFER_RESULT message.id,user_id,body FROM message WHERE")
    );
    let aliased = "SELECT m.id a /*x*/ FROM fetch_timeline_tt AS t,`message` m WHERE t.id=m.id ORDER BY m.id DESC LIMIT 5; ";
    let list = parse_follow_up(aliased)
        .rewrite(FollowUpForm::List, &[7])
        .unwrap();
    assert_eq!(
        list,
        "SELECT m.id a /*x*/ FROM `message` AS m WHERE m.`id` IN (7) ORDER BY m.id DESC LIMIT 5; "
    );
}

#[test]
fn no_ids_have_no_form() {
    for form in [FollowUpForm::List, FollowUpForm::BufferedList] {
        assert_eq!(parse_follow_up(CLASSIC).rewrite(form, &[]), None);
    }
}

#[test]
fn a_follow_up_belongs_to_its_definition() {
    let mut other = TimelineDefinition::classic();
    other.result.table = "other_tt".into();
    other.message.id = "mid".into();
    let definitions = [TimelineDefinition::classic(), other];
    let text =
        b"SELECT m.body FROM message m JOIN other_tt t ON t.id = m.mid ORDER BY m.mid DESC LIMIT 3";
    let follow_up = FollowUpSelect::parse(text, &definitions).unwrap();
    assert!(follow_up.belongs_to(&definitions[1]) && !follow_up.belongs_to(&definitions[0]));
    // Its ids have two names, so USING cannot join them.
    assert_eq!(
        FollowUpSelect::parse(
            b"SELECT body FROM message JOIN other_tt USING(id) ORDER BY message.mid DESC LIMIT 3",
            &definitions
        ),
        None
    );
}

#[test]
fn names_that_need_quotes_stay_quoted() {
    let mut definition = TimelineDefinition::classic();
    definition.message.table = "order".into();
    definition.result.table = "a`b".into();
    let text =
        "SELECT `order`.id FROM `order` JOIN `a``b` USING(id) ORDER BY `order`.id DESC LIMIT 3";
    let StatementClass::FollowUp(follow_up) = classify(text.as_bytes(), &[definition], false)
    else {
        panic!("no tail")
    };
    let list = follow_up.rewrite(FollowUpForm::List, &[1]).unwrap();
    assert_eq!(
        list,
        "SELECT `order`.id FROM `order` WHERE `order`.`id` IN (1) ORDER BY `order`.id DESC LIMIT 3"
    );
}

#[test]
fn what_is_remembered_is_what_is_found() {
    let definitions: Arc<[TimelineDefinition]> = Arc::new([TimelineDefinition::classic()]);
    let classes =
        StatementClassifier::new(definitions.clone(), NonZeroUsize::new(2).unwrap(), 1_000);
    let texts = [
        CLASSIC,
        "SELECT 1",
        "CALL fetch_timeline_ids(7)",
        "SELECT id FROM fetch_timeline_tt",
        "SELECT 'fetch_timeline_tt'",
    ];
    for _ in 0..3 {
        for text in texts {
            assert_eq!(
                classes.classify(text.as_bytes(), false),
                classify(text.as_bytes(), &definitions, false),
                "{text}"
            );
        }
    }
}

#[test]
fn a_text_beyond_the_limit_may_do_anything() {
    let definitions: Arc<[TimelineDefinition]> = Arc::new([TimelineDefinition::classic()]);
    let classes = StatementClassifier::new(definitions, NonZeroUsize::MIN, 30);
    assert!(matches!(
        classes.classify(b"CALL fetch_timeline_ids(7)", false),
        StatementClass::Call(_)
    ));
    assert_eq!(
        classes.classify(b"CALL fetch_timeline_ids(7)     ", false),
        StatementClass::Other(StatementEffects::ALL)
    );
}

#[test]
fn without_stored_functions_a_select_of_other_tables_leaves_all_as_it_is() {
    let effects =
        |text: &str| StatementEffects::of(text.as_bytes(), &[TimelineDefinition::classic()], true);
    let spares = StatementEffects {
        is_pure_read: true,
        assumes_no_functions: true,
        ..StatementEffects::NONE
    };
    for text in [
        "SELECT body FROM message WHERE id = 5",
        "SELECT 1 UNION TABLE v",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT a FROM t) UNION ALL (SELECT b FROM u ORDER BY b LIMIT 5) ORDER BY a",
    ] {
        assert_eq!(effects(text), spares, "{text}");
    }
    let aggregates = StatementEffects {
        aggregates: true,
        ..spares
    };
    for text in [
        "SELECT COUNT(*), MAX(id) FROM a JOIN v USING (id) WHERE x IN (1,2) AND (a > 5)",
        "SELECT a FROM t WHERE a > (SELECT min(b) FROM u)",
    ] {
        assert_eq!(effects(text), aggregates, "{text}");
    }
    for text in [
        "SELECT id FROM fetch_timeline_tt",
        "SELECT * FROM max_ids_of_followers",
        "SELECT * FROM information_schema.temporary_tables",
        "SELECT 1; SELECT 2",
        "SELECT 'a\\' FROM t",
        "INSERT INTO message VALUES (1)",
        "WITH a AS (SELECT 1) DELETE FROM t",
        "WITH a AS (SELECT 1) SELECT f() FROM a",
        "(SELECT MD5(a) FROM t)",
        "(DELETE FROM t)",
        "CALL other()",
        "SHOW TABLES",
        "BEGIN",
        "SET @a = (SELECT 1)",
        "SELECT f() FROM t",
        "SELECT `count`(1) FROM t",
        "SELECT GET_LOCK('a', 1)",
        "SELECT @a := 1",
        "SELECT 1 INTO OUTFILE 'x'",
        "SELECT NEXT VALUE FOR s",
        "SELECT ROW_COUNT()",
        "SHOW WARNINGS",
    ] {
        assert!(!effects(text).is_pure_read, "{text}");
    }
}
