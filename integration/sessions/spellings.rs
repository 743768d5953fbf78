//! A call in other words, other arguments, other commands.

use super::stage::{TAIL, on_each_stage};
use super::transcripts::stories;
use crate::kit::wire_client::{Login, capability};

stories!(
    "spellings":
    a_call_in_any_dress_is_the_same_call,
    arguments_that_are_wrong_or_no_plain_numbers_are_the_servers,
    several_statements_at_once_are_the_servers_but_for_a_call_in_front,
    prepared_calls_and_tails_mix_with_plain_ones,
);

#[test]
fn query_attributes_stand_in_front_of_a_call_and_a_tail() {
    on_each_stage(|stage| {
        let login = Login::default().with(capability::QUERY_ATTRIBUTES | capability::SESSION_TRACK);
        let mut twin = stage.twin_of(&login);
        twin.attributed("CALL fetch_timeline_ids(1)", &[("trace", "a-1"), ("", "x")]);
        twin.attributed(TAIL, &[("trace", "a-2")]);
        twin.attributed("CALL fetch_timeline_ids2(1, 300)", &[]);
        twin.attributed(TAIL, &[("n", "20")]);
        twin.attributed("SELECT COUNT(*) FROM fetch_timeline_tt", &[("n", "20")]);
        stage.owned(2);
    });
}
