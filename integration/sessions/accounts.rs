//! Accounts with fewer rights.

use super::transcripts::stories;

stories!(
    "accounts":
    every_account_gets_what_its_rights_allow,
    without_execute_it_is_1370,
    execute_on_one_procedure_is_no_leave_for_the_other,
    a_right_taken_away_in_mid_session_is_missed_soon,
    select_on_a_table_taken_away_leaves_the_procedure,
    a_column_that_the_account_may_not_read_stays_hidden,
    a_role_that_is_laid_down_takes_its_rights_along,
);
