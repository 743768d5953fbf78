//! Temporary tables that hide others, table locks, and what a client does to the result table.

use super::transcripts::stories;

stories!(
    "tables":
    a_temporary_table_that_hides_message_is_what_the_procedure_reads,
    a_temporary_table_made_between_call_and_tail_hides_message_from_the_tail,
    a_result_table_of_the_clients_own_keeps_its_form,
    a_heads_table_of_the_clients_own_keeps_its_form,
    a_permanent_result_table_shows_through_until_the_temporary_one_is_there,
    whatever_a_client_does_to_the_result_table_the_next_call_counts_it,
    table_locks_have_the_effect_that_they_have_on_the_procedure,
    a_lock_between_call_and_tail_is_met_by_the_tail,
    the_helper_called_by_itself_leaves_the_result_table_alone,
    explain_describe_and_show_see_the_result_table,
);
