//! Statements that clients send after a call: mostly the follow-up SELECT, sometimes others that show the call's effects.

use crate::kit::random::Random;
use crate::kit::timeline::Timeline;
use crate::kit::twin::Twin;
use crate::kit::wire_client::Answer;

const CLASSIC_TAIL: &str = "SELECT message.id,user_id,body FROM message \
     INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";

/// Other forms of the follow-up SELECT.
const OTHER_TAILS: &[&str] = &[
    "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 40",
    "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 1",
    "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 2",
    "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 19",
    "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 21",
    "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 1000",
    "select m.body as b, m.id from message m join fetch_timeline_tt t using (id) order by m.id desc limit 5;",
    "SELECT `message`.`body` AS text FROM message JOIN fetch_timeline_tt USING(`id`) ORDER BY message.id DESC LIMIT 20",
    "SELECT m.id FROM message AS m INNER JOIN fetch_timeline_tt AS t USING(id) ORDER BY m.id DESC LIMIT 20",
    "SELECT user_id FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 3",
    "SELECT m.id, m.id AS id2, m.user_id, m.user_id AS u FROM message m JOIN fetch_timeline_tt USING(id) ORDER BY m.id DESC LIMIT 20",
    "SELECT * FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20",
    "SELECT id, body FROM fetch_timeline_tt JOIN message USING(id) ORDER BY id DESC LIMIT 10",
    "SELECT message.id,user_id,body FROM message,fetch_timeline_tt WHERE message.id=fetch_timeline_tt.id ORDER BY message.id DESC LIMIT 20",
    "SELECT nothing FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20",
    "SELECT message.id FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 5, 10",
    "SELECT message.id FROM message LEFT JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 7",
];

/// SELECTs without ORDER BY; on the server each table has its own order.
const ROWS: &[&str] = &[
    "SELECT * FROM fetch_timeline_tt",
    "SELECT id FROM fetch_timeline_tt",
    "SELECT * FROM max_ids_of_followers",
];

const SUMS: &[&str] = &[
    "SELECT COUNT(*) FROM fetch_timeline_tt",
    "SELECT MIN(id), MAX(id), COUNT(*) FROM fetch_timeline_tt",
    "SELECT id FROM fetch_timeline_tt ORDER BY id DESC LIMIT 25",
    "SELECT COUNT(*), MIN(max_id), MAX(user_id) FROM max_ids_of_followers",
    "SELECT * FROM max_ids_of_followers ORDER BY max_id DESC, user_id",
];

/// The statements of one session.
#[derive(Debug)]
pub(crate) struct Asked {
    page_tail: String,
    prepared: Option<[u32; 2]>,
}

impl Asked {
    pub(crate) fn new(timeline: &Timeline) -> Asked {
        Asked {
            page_tail: CLASSIC_TAIL.replace("LIMIT 20", &format!("LIMIT {}", timeline.n)),
            prepared: None,
        }
    }

    /// Runs a statement after a call, or none.
    #[track_caller]
    pub(crate) fn after_call(&mut self, twin: &mut Twin, random: &mut Random) {
        match random.below(20) {
            0..=8 => {
                twin.run(CLASSIC_TAIL);
            }
            9..=11 => {
                twin.run(&self.page_tail);
            }
            12 => {}
            13 => {
                twin.run(CLASSIC_TAIL);
                twin.run(CLASSIC_TAIL);
            }
            14 | 15 => {
                twin.run(random.pick::<&str>(OTHER_TAILS));
            }
            16 => {
                twin.run(random.pick::<&str>(SUMS));
                twin.run(random.pick::<&str>(OTHER_TAILS));
            }
            17 => twin.run_unordered(random.pick::<&str>(ROWS)),
            // Before the first call, the table to prepare it on does not exist.
            18 if matches!(twin.run(CLASSIC_TAIL)[..], [Answer::Rows(_)]) => {
                let statement = *self
                    .prepared
                    .get_or_insert_with(|| twin.prepare(CLASSIC_TAIL));
                twin.execute(statement, &[]);
            }
            _ => {
                twin.run(random.pick::<&str>(SUMS));
            }
        }
    }
}
