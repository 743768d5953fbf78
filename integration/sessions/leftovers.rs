//! What a statement leaves besides its reply: counts, warnings, ids.

use super::transcripts::stories;

stories!(
    "leftovers":
    after_a_call_the_counts_are_the_procedures,
    after_a_tail_the_counts_are_the_tails,
    an_insert_id_outlives_a_call,
    warnings_of_the_statement_before_end_with_the_call,
    user_variables_and_prepared_statements_outlive_a_call,
);
