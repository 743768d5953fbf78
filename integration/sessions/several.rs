//! A call and further statements in one command, as PHP programs send them.

use super::stage::{TAIL, look, on_each_stage};
use super::transcripts::stories;
use crate::kit::wire_client::{Login, capability};

stories!(
    "several":
    a_call_and_its_tail_are_answered_as_one_command,
    whatever_stands_behind_a_call_is_told_in_one_chain,
    calls_in_a_row_are_one_chain,
    what_is_answered_differently_alone_is_left_to_the_server,
    several_statements_are_one_error_where_they_are_not_taken,
);

#[test]
fn clients_of_every_kind_are_told_the_same_chain() {
    on_each_stage(|stage| {
        for login in [
            Login::default().without(capability::DEPRECATE_EOF),
            Login::default().without(capability::SESSION_TRACK),
            Login::default().with(capability::QUERY_ATTRIBUTES),
        ] {
            let mut twin = stage.twin_of(&login);
            twin.run(&format!("CALL fetch_timeline_ids(1); {TAIL}; DO 1"));
            twin.run(&format!("CALL fetch_timeline_ids2(1, 200); {TAIL}"));
            look(&mut twin);
        }
        stage.owned(6);
        let login = Login::default().with(capability::QUERY_ATTRIBUTES);
        let mut twin = stage.twin_of(&login);
        let both = format!("CALL fetch_timeline_ids(1); {TAIL}");
        twin.attributed(&both, &[("trace", "a-1")]);
        twin.attributed(&both, &[]);
        look(&mut twin);
    });
}
