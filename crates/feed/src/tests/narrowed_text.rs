//! The narrowed text is the client's own with one more condition.

use super::{app, feed, read, shaped};
use crate::definition::TieOrder;
use crate::narrowed_text::{CandidateCondition, NarrowingForm};
use crate::query::{ConditionKind, FeedSelect};
use crate::shape::{FeedNames, shape};

fn narrow(text: &str, ids: &[u64], form: NarrowingForm) -> Option<String> {
    let shape = shaped(text, false).unwrap();
    let (words, _) = read(text);
    let ids = CandidateCondition::Ids(ids);
    let narrowed = shape.narrow(text.as_bytes(), &words, &feed(false), (ids, None), form);
    narrowed.map(|text| String::from_utf8(text).unwrap())
}

const PLAIN: NarrowingForm = NarrowingForm {
    replaces_list: false,
    buffered: false,
};

#[test]
fn the_condition_follows_the_clients_own() {
    assert_eq!(
        narrow("SELECT m.id FROM message m WHERE m.user_id = 1 OR m.user_id = 2 ORDER BY m.id DESC LIMIT 9", &[7, 5], PLAIN).unwrap(),
        "SELECT m.id FROM message m WHERE ( m.user_id = 1 OR m.user_id = 2 ) AND m.`id` IN (7,5) ORDER BY m.id DESC LIMIT 9"
    );
    assert_eq!(
        narrow(
            "SELECT `message`.* FROM `message` JOIN follower f ON f.author = user_id AND f.reader = 3 -- so\n ORDER BY `message`.id DESC LIMIT 9;",
            &[7, 5],
            PLAIN
        )
        .unwrap(),
        "SELECT `message`.* FROM `message` JOIN follower f ON f.author = user_id AND f.reader = 3 -- so\n  WHERE `message`.`id` IN (7,5) ORDER BY `message`.id DESC LIMIT 9;"
    );
}

/// The id is the last key of the order where the feed says so, and the statement does not.
#[test]
fn the_id_breaks_ties_where_the_feed_orders_them() {
    let by_id = FeedNames {
        ties: TieOrder::Id,
        ..feed(true)
    };
    let narrow = |text: &str, form| {
        let (words, query) = read(text);
        let shape = shape(&query.unwrap(), &words, &by_id, &app()).unwrap();
        assert!(!shape.ties);
        let ids = CandidateCondition::Ids(&[7, 5]);
        let narrowed = shape.narrow(text.as_bytes(), &words, &by_id, (ids, None), form);
        let ordered = shape.with_tie_break(text.as_bytes(), &words, &by_id);
        (
            String::from_utf8(narrowed.unwrap()).unwrap(),
            ordered.map(|text| String::from_utf8(text).unwrap()),
        )
    };
    let page = "SELECT m.id FROM message m WHERE user_id IN (1,2) ORDER BY created_at DESC";
    let (narrowed, ordered) = narrow(&format!("{page} -- newest\n LIMIT 9"), PLAIN);
    assert_eq!(
        narrowed,
        "SELECT m.id FROM message m WHERE ( user_id IN (1,2) ) AND m.`id` IN (7,5) ORDER BY created_at DESC, m.`id` DESC -- newest\n LIMIT 9"
    );
    assert_eq!(
        ordered.unwrap(),
        format!("{page}, m.`id` DESC -- newest\n LIMIT 9")
    );
    let replaced = NarrowingForm {
        replaces_list: true,
        buffered: false,
    };
    assert_eq!(
        narrow(&format!("{page} LIMIT 9, 5"), replaced).0,
        "SELECT m.id FROM message m WHERE m.`id` IN (7,5) ORDER BY created_at DESC, m.`id` DESC LIMIT 9, 5"
    );
    assert_eq!(narrow(&format!("{page}, id DESC LIMIT 9"), PLAIN).1, None);
}

#[test]
fn ids_in_the_place_of_a_list_in_parentheses_are_words_of_their_own() {
    let form = NarrowingForm {
        replaces_list: true,
        buffered: false,
    };
    for (before, behind) in [
        ("WHERE", "ORDER"),
        ("WHERE body = ''AND", "AND hidden = 0 ORDER"),
    ] {
        assert_eq!(
            narrow(
                &format!(
                    "SELECT id FROM message {before}(user_id IN (1,2)){behind} BY id DESC LIMIT 9"
                ),
                &[7, 5],
                form
            )
            .unwrap(),
            format!(
                "SELECT id FROM message {before} message.`id` IN (7,5){behind} BY id DESC LIMIT 9"
            )
        );
    }
}

#[test]
fn it_goes_into_a_select_in_from() {
    let inner = "SELECT DISTINCT `d`.`m_id` AS `ids_m_id` FROM (SELECT `m`.`id` AS `m_id`, `u`.`name` AS `u_name` FROM `message` `m` INNER JOIN `users` `u` ON `u`.`id`=`m`.`user_id`";
    let outer = "`d` ORDER BY `d`.`m_id` DESC, `m_id` ASC LIMIT 20 OFFSET 20";
    let form = NarrowingForm {
        replaces_list: true,
        buffered: true,
    };
    assert_eq!(
        narrow(
            &format!("{inner} WHERE (m.user_id IN (1,2)) AND (m.deleted_at IS NULL)) {outer}"),
            &[7, 5],
            PLAIN
        )
        .unwrap(),
        format!(
            "{inner} WHERE ( (m.user_id IN (1,2)) AND (m.deleted_at IS NULL)) AND `m`.`id` IN (7,5) ) {outer}"
        )
    );
    assert_eq!(
        narrow(
            &format!("{inner} AND m.user_id = 1) {outer}"),
            &[7, 5],
            PLAIN
        )
        .unwrap(),
        format!("{inner} AND m.user_id = 1 WHERE `m`.`id` IN (7,5) ) {outer}")
    );
    let buffered = inner.replacen("SELECT", "SELECT SQL_BUFFER_RESULT", 1);
    assert_eq!(
        narrow(
            &format!("{inner} WHERE m.user_id IN (1,2) AND m.hidden = 0) {outer}"),
            &[7, 5],
            form
        )
        .unwrap(),
        format!("{buffered} WHERE `m`.`id` IN (7,5) AND m.hidden = 0) {outer}")
    );
}

#[test]
fn it_takes_the_place_of_a_list_and_goes_through_a_buffer() {
    let text =
        "SELECT id FROM message WHERE hidden = 0 AND user_id IN (1, 2,3) ORDER BY id DESC LIMIT 9";
    let form = NarrowingForm {
        replaces_list: true,
        buffered: true,
    };
    assert_eq!(
        narrow(text, &[7, 5], form).unwrap(),
        "SELECT SQL_BUFFER_RESULT id FROM message WHERE hidden = 0 AND message.`id` IN (7,5) ORDER BY id DESC LIMIT 9"
    );
    let either = "SELECT id FROM message WHERE hidden = 0 AND (user_id IN (1,2) OR user_id = 5) ORDER BY id DESC LIMIT 9";
    assert_eq!(narrow(either, &[7, 5], form), None);
    // After what WITH names.
    let named = "WITH a AS (SELECT author FROM follower WHERE reader = 7) SELECT id FROM message WHERE user_id IN (SELECT a.author FROM a)";
    let buffered = NarrowingForm {
        replaces_list: false,
        ..form
    };
    assert_eq!(
        narrow(
            &format!("{named} ORDER BY id DESC LIMIT 9"),
            &[7, 5],
            buffered
        )
        .unwrap(),
        format!(
            "{} ) AND message.`id` IN (7,5) ORDER BY id DESC LIMIT 9",
            named
                .replace("SELECT id", "SELECT SQL_BUFFER_RESULT id")
                .replace("WHERE user_id", "WHERE ( user_id")
        )
    );
}

/// Which of the client's parameters stay, and where the ids stand among them.
#[test]
fn ids_may_be_parameters_of_their_own() {
    let text = "SELECT id FROM message WHERE kind = ? AND user_id IN (?, ?,?) AND id < ? ORDER BY id DESC LIMIT ?";
    let shape = shaped(text, false).unwrap();
    let (words, _) = read(text);
    let open = |count, replaces_list| {
        let form = NarrowingForm {
            replaces_list,
            buffered: false,
        };
        let open = shape.narrow_prepared(text.as_bytes(), &words, &feed(false), count, form)?;
        Some((
            String::from_utf8(open.text).unwrap(),
            open.parameters_before,
            open.parameters_replaced,
        ))
    };
    assert_eq!(
        open(2, true).unwrap(),
        (
            "SELECT id FROM message WHERE kind = ? AND message.`id` IN (?,?) AND id < ? ORDER BY id DESC LIMIT ?".into(),
            1,
            3
        )
    );
    assert_eq!(
        open(3, false).unwrap(),
        (
            "SELECT id FROM message WHERE ( kind = ? AND user_id IN (?, ?,?) AND id < ? ) AND message.`id` IN (?,?,?) ORDER BY id DESC LIMIT ?".into(),
            5,
            0
        )
    );
    assert_eq!(open(1, true), None);
}

#[test]
fn many_ids_are_several_lists_or_the_oldest_one() {
    let text = "SELECT id FROM message WHERE user_id IN (1) ORDER BY id DESC LIMIT 9";
    let ids: Vec<u64> = (1..=1_801).rev().collect();
    let narrowed = narrow(text, &ids, PLAIN).unwrap();
    let begins = "SELECT id FROM message WHERE ( user_id IN (1) ) AND (message.`id` IN (1801,";
    assert!(narrowed.starts_with(begins), "{narrowed}");
    let ends = ",2) OR message.`id` IN (1)) ORDER BY id DESC LIMIT 9";
    assert!(narrowed.ends_with(ends), "{narrowed}");
    assert_eq!(narrowed.matches(" OR ").count(), 2);

    let (words, _) = read(text);
    let from = |form| {
        let shape = shaped(text, false).unwrap();
        shape.narrow(
            text.as_bytes(),
            &words,
            &feed(false),
            (CandidateCondition::From(7), None),
            form,
        )
    };
    assert_eq!(
        String::from_utf8(from(PLAIN).unwrap()).unwrap(),
        "SELECT id FROM message WHERE ( user_id IN (1) ) AND message.`id` >= 7 ORDER BY id DESC LIMIT 9"
    );
    let replaces_list = true;
    assert_eq!(
        from(NarrowingForm {
            replaces_list,
            ..PLAIN
        }),
        None
    );
}

#[test]
fn fewer_than_two_ids_are_not_put_in() {
    let text = "SELECT id FROM message WHERE user_id IN (1) ORDER BY id DESC LIMIT 9";
    assert_eq!(narrow(text, &[], PLAIN), None);
    assert_eq!(narrow(text, &[5, 5], PLAIN), None);
}

/// The narrowed text is read as the original, with one condition more or in a list's place.
#[test]
fn it_is_read_as_the_original_and_one_condition() {
    for (text, replaces_list) in [
        (
            "SELECT id FROM message WHERE user_id IN (1,2) ORDER BY id DESC LIMIT 9",
            false,
        ),
        (
            "SELECT id FROM message WHERE user_id IN (1,2) ORDER BY id DESC LIMIT 9",
            true,
        ),
        (
            "SELECT DISTINCT m.id FROM message m WHERE (m.user_id = 1 OR m.user_id IN (2)) AND m.id < 9 GROUP BY m.id ORDER BY m.id DESC LIMIT 3, 9",
            false,
        ),
        (
            "SELECT m.id FROM message m JOIN follower f ON f.author = m.user_id AND f.reader = 3 ORDER BY m.id DESC LIMIT 9",
            false,
        ),
    ] {
        for buffered in [false, true] {
            let narrowed = narrow(
                text,
                &[7, 5],
                NarrowingForm {
                    replaces_list,
                    buffered,
                },
            )
            .unwrap();
            // The grammar refuses the word; the servers read it as nothing else.
            let narrowed = narrowed.replace(" SQL_BUFFER_RESULT", "");
            let (before, after) = (read(text).1.unwrap(), read(&narrowed).1.unwrap());
            assert_eq!(
                conditions(&after),
                conditions(&before) + usize::from(!replaces_list),
                "{narrowed}"
            );
            assert_eq!(
                (
                    after.distinct,
                    after.items.len(),
                    after.sources.len(),
                    after.order.len(),
                    after.group.len(),
                    after.offset.is_some()
                ),
                (
                    before.distinct,
                    before.items.len(),
                    before.sources.len(),
                    before.order.len(),
                    before.group.len(),
                    before.offset.is_some()
                ),
                "{narrowed}"
            );
        }
    }
}

/// Conditions of WHERE, taken apart at AND.
fn conditions(query: &FeedSelect) -> usize {
    let Some((_, filter)) = &query.filter else {
        return 0;
    };
    let mut all = Vec::new();
    crate::equalities::conjuncts(filter, &mut all);
    assert!(
        all.iter()
            .all(|one| !matches!(one.kind, ConditionKind::And(_)))
    );
    all.len()
}
