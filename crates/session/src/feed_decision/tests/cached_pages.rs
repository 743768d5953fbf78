//! Pages of cached rows.

use super::*;
use crate::cached_rows::{MessageObservation, RowOutcome};
use crate::commands::UnseenSelect;

const NARROWED: &str = "run SELECT";

/// A session whose statement was narrowed once, so that its rows are cached.
fn filled() -> FeedScenario {
    let mut scene = FeedScenario::learned(JOINED);
    scene.policy.rows = true;
    let fetched = vec![
        named(&[9, 8], false),
        reply(1, 2),
        FeedInput::Unchanged(true),
    ];
    let needs = scene.play(JOINED, fetched);
    assert_eq!(needs.last().unwrap(), "tell");
    scene
}

fn paged() -> FeedInput {
    FeedInput::CachedPage(Some(CachedPage {
        packets: b"front".to_vec(),
        rows: 2,
        found_rows: 5,
    }))
}

/// The actions of one more statement after the candidates.
fn needs(scene: &mut FeedScenario, fetched: Vec<FeedInput>) -> Vec<String> {
    let fetched = std::iter::once(named(&[9, 8], false)).chain(fetched);
    let mut needs = scene.play(JOINED, fetched.collect());
    needs.remove(0);
    needs
}

fn narrows(scene: &mut FeedScenario) -> bool {
    let needs = needs(scene, Vec::new());
    needs.first().unwrap().starts_with(NARROWED)
}

#[test]
fn a_page_of_cached_rows_needs_no_query() {
    let mut scene = filled();
    assert_eq!(
        needs(&mut scene, vec![paged()]),
        ["page of [9, 8] 0 2", "tell what was kept"]
    );
    let told = scene.told.take().unwrap();
    // Two rows after the columns, so the end has the fifth number.
    let end = [7, 0, 0, 5, 0xfe, 0, 0, 2, 0, 0, 0];
    assert_eq!(told, [&b"front"[..], &end].concat());
    assert_eq!(
        scene.session.take_unseen_selects(),
        [UnseenSelect::FoundRows(5)]
    );
}

#[test]
fn missing_rows_are_queried_from_the_server() {
    let mut scene = filled();
    let fetched = vec![
        FeedInput::CachedPage(None),
        reply(1, 2),
        FeedInput::Unchanged(true),
    ];
    let needs = needs(&mut scene, fetched);
    assert!(needs[1].starts_with(NARROWED), "{needs:?}");
    assert_eq!(needs[2..], ["unchanged?", "tell"]);
    assert_eq!(scene.session.take_unseen_selects(), []);
}

#[test]
fn what_is_doubted_while_a_page_is_looked_for_is_proved_anew() {
    let asks = |needs: &[String]| needs[0].starts_with("ask SELECT DATABASE()");
    let mut scene = filled();
    scene.doubts = true;
    let told = needs(&mut scene, vec![FeedInput::CachedPage(None)]);
    assert!(asks(&told[1..]), "{told:?}");
    // After a narrowed reply as well.
    let mut scene = filled();
    scene.doubts = true;
    scene.policy.rows = false;
    let told = needs(&mut scene, vec![reply(1, 2), FeedInput::Unchanged(false)]);
    assert_eq!(told[1], "unchanged?");
    assert!(asks(&told[2..]), "{told:?}");
}

#[test]
fn a_session_is_answered_for_as_long_as_its_right_counts() {
    let mut scene = filled();
    scene.now += Duration::from_secs(2);
    assert!(narrows(&mut scene));
    // Another session's right proves nothing about it.
    let mut scene = filled();
    let other = FeedScenario::learned(JOINED);
    scene.session = other.session;
    scene.session.state.note_server_contact(scene.now);
    assert!(narrows(&mut scene));
}

#[test]
fn sessions_whose_rows_may_be_others_are_not_answered_so() {
    for rows in [None, Some(b"latin1".to_vec())] {
        let mut scene = filled();
        let settings = SessionSettings {
            row_settings: rows,
            ..settings()
        };
        scene.session.state.settings_proved(settings);
        assert!(narrows(&mut scene));
    }
    // In a transaction the snapshot decides.
    let mut scene = filled();
    scene.session.state.observe(&OkPacket {
        status: 3,
        ..OkPacket::default()
    });
    assert!(narrows(&mut scene));
    let mut scene = filled();
    scene.policy.rows = false;
    assert!(narrows(&mut scene));
    let mut scene = filled();
    scene.policy.privileges_ttl = Duration::ZERO;
    assert!(narrows(&mut scene));
}

#[test]
fn each_generation_of_the_log_has_its_own_rows() {
    let mut scene = filled();
    let found = CandidateSet {
        ids: vec![9, 8],
        exhaustive: false,
        tied: false,
        authors: 2,
        written_by: vec![1, 2],
        author_lists: Vec::new(),
        generation: 2,
        gaps: None,
    };
    let needs = scene.play(JOINED, vec![FeedInput::Candidates(Ok(found))]);
    assert!(needs[1].starts_with(NARROWED), "{needs:?}");
}

#[test]
fn the_server_is_contacted_before_it_ends_an_idle_session() {
    let mut scene = filled();
    scene.session.state.settings_proved(SessionSettings {
        wait_timeout: Duration::from_millis(10),
        ..settings()
    });
    scene.now += Duration::from_millis(1);
    assert!(narrows(&mut scene));
}

#[test]
fn the_outcome_for_each_message_is_cached_after_the_freshness_proof() {
    let mut scene = FeedScenario::learned(JOINED);
    scene.policy.rows = true;
    let mut decision = FeedDecision::new([b"\x03", JOINED.as_bytes()].concat(), scene.policy);
    let mut input = FeedInput::Begin;
    let mut fetched = VecDeque::from([
        named(&[9, 8], false),
        reply(1, 2),
        FeedInput::Unchanged(true),
    ]);
    let told = loop {
        match decision.next(input, &mut scene.session, &scene.known, scene.now) {
            FeedAction::Reply(told) => break told,
            _ => input = fetched.pop_front().unwrap(),
        }
    };
    let rows = told.fill.unwrap().rows;
    let shown = rows.into_iter().map(
        |MessageObservation {
             id,
             outcome: says,
             joined_rows: made_of,
             ..
         }| {
            let (RowOutcome::Row(range), true) = (&says, made_of.is_empty()) else {
                panic!("{says:?}");
            };
            let range = range.clone();
            let row = told.bytes.get(range).unwrap();
            (id, String::from_utf8(row.to_vec()).unwrap())
        },
    );
    let row = |id, text: &str| (id, text.to_owned());
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [row(9, "\x010"), row(8, "\x011")]
    );
}

const CHOSEN: &str = "SELECT m.id FROM message m JOIN follower f ON f.author = m.author WHERE f.reader = 7 AND f.author > 3 \
                      ORDER BY m.id DESC LIMIT 2";

/// Replies about edges from before the candidates were named may no longer hold after that.
#[test]
fn author_lists_are_queried_again_with_each_candidate_lookup() {
    let mut scene = FeedScenario::learned(CHOSEN);
    scene.policy.rows = true;
    let round = |unchanged| {
        [
            named(&[9, 8], false),
            FeedInput::Answers(vec![QueryReply::Rows(result_set_of(&[]))]),
            reply(1, 2),
            FeedInput::Unchanged(unchanged),
        ]
    };
    let fetched = round(false).into_iter().chain(round(true)).collect();
    let needs = scene.play(CHOSEN, fetched);
    let asks = "ask SELECT DISTINCT f.`author` FROM `follower` f WHERE (f.author > 3) AND f.`reader` = 7 LIMIT 8001";
    let asked: Vec<usize> = (0..needs.len()).filter(|at| needs[*at] == asks).collect();
    assert_eq!(asked, [1, 5], "{needs:?}");
    assert_eq!(needs.last().unwrap(), "tell");
}
