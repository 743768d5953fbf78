//! How tails are rewritten and remembered.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::{Class, Classes, Effects, Tail, TailForm, classify};
use headwater_timeline::Definition;

const CLASSIC: &str = "SELECT message.id,user_id,body FROM message\n  INNER JOIN fetch_timeline_tt USING(id)\n  ORDER BY message.id DESC LIMIT 20";

fn tail(text: &str) -> Tail {
    Tail::parse(text.as_bytes(), &[Definition::classic()])
        .unwrap_or_else(|| panic!("no tail: {text}"))
}

#[test]
fn a_list_takes_the_place_of_the_join() {
    let plain = tail(CLASSIC)
        .rewrite(TailForm::List, &[7, u64::MAX])
        .unwrap();
    assert_eq!(
        plain,
        "SELECT message.id,user_id,body FROM message WHERE message.`id` IN (7,18446744073709551615) ORDER BY message.id DESC LIMIT 20"
    );
    let buffered = tail(CLASSIC).rewrite(TailForm::BufferedList, &[7]).unwrap();
    assert!(
        buffered.starts_with("SELECT SQL_BUFFER_RESULT message.id,user_id,body FROM message WHERE")
    );
    let aliased = "SELECT m.id a /*x*/ FROM fetch_timeline_tt AS t,`message` m WHERE t.id=m.id ORDER BY m.id DESC LIMIT 5; ";
    let list = tail(aliased).rewrite(TailForm::List, &[7]).unwrap();
    assert_eq!(
        list,
        "SELECT m.id a /*x*/ FROM `message` AS m WHERE m.`id` IN (7) ORDER BY m.id DESC LIMIT 5; "
    );
}

#[test]
fn no_ids_have_no_form() {
    for form in [TailForm::List, TailForm::BufferedList] {
        assert_eq!(tail(CLASSIC).rewrite(form, &[]), None);
    }
}

#[test]
fn a_tail_is_its_definitions_own() {
    let mut other = Definition::classic();
    other.result.table = "other_tt".into();
    other.message.id = "mid".into();
    let definitions = [Definition::classic(), other];
    let text =
        b"SELECT m.body FROM message m JOIN other_tt t ON t.id = m.mid ORDER BY m.mid DESC LIMIT 3";
    let found = Tail::parse(text, &definitions).unwrap();
    assert!(found.fits(&definitions[1]) && !found.fits(&definitions[0]));
    // Its ids have two names, so USING cannot join them.
    assert_eq!(
        Tail::parse(
            b"SELECT body FROM message JOIN other_tt USING(id) ORDER BY message.mid DESC LIMIT 3",
            &definitions
        ),
        None
    );
}

#[test]
fn names_that_need_quotes_stay_quoted() {
    let mut definition = Definition::classic();
    definition.message.table = "order".into();
    definition.result.table = "a`b".into();
    let text =
        "SELECT `order`.id FROM `order` JOIN `a``b` USING(id) ORDER BY `order`.id DESC LIMIT 3";
    let Class::Tail(tail) = classify(text.as_bytes(), &[definition], false) else {
        panic!("no tail")
    };
    let list = tail.rewrite(TailForm::List, &[1]).unwrap();
    assert_eq!(
        list,
        "SELECT `order`.id FROM `order` WHERE `order`.`id` IN (1) ORDER BY `order`.id DESC LIMIT 3"
    );
}

#[test]
fn what_is_remembered_is_what_is_found() {
    let definitions: Arc<[Definition]> = Arc::new([Definition::classic()]);
    let classes = Classes::new(definitions.clone(), NonZeroUsize::new(2).unwrap(), 1_000);
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
    let definitions: Arc<[Definition]> = Arc::new([Definition::classic()]);
    let classes = Classes::new(definitions, NonZeroUsize::MIN, 30);
    assert!(matches!(
        classes.classify(b"CALL fetch_timeline_ids(7)", false),
        Class::Call(_)
    ));
    assert_eq!(
        classes.classify(b"CALL fetch_timeline_ids(7)     ", false),
        Class::Other(Effects::ALL)
    );
}

#[test]
fn without_stored_functions_a_select_of_other_tables_leaves_all_as_it_is() {
    let effects = |text: &str| Effects::of(text.as_bytes(), &[Definition::classic()], true);
    let spares = Effects {
        spares: true,
        trusts: true,
        ..Effects::NONE
    };
    for text in [
        "SELECT body FROM message WHERE id = 5",
        "SELECT COUNT(*), MAX(id) FROM a JOIN v USING (id) WHERE x IN (1,2) AND (a > 5)",
        "SELECT 1 UNION TABLE v",
    ] {
        assert_eq!(effects(text), spares, "{text}");
    }
    for text in [
        "SELECT id FROM fetch_timeline_tt",
        "SELECT * FROM max_ids_of_followers",
        "SELECT * FROM information_schema.temporary_tables",
        "SELECT 1; SELECT 2",
        "SELECT 'a\\' FROM t",
        "INSERT INTO message VALUES (1)",
        "WITH a AS (SELECT 1) DELETE FROM t",
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
        assert!(!effects(text).spares, "{text}");
    }
}
