//! The meaning of a command's text for a timeline: total, and `Other` wherever there is doubt.

use std::sync::Arc;

use super::call::{CallArgument, CallStatement, TimelineCall};
use super::call_batch::CallBatch;
use super::dynamic_sql::DynamicStatement;
use super::effects::StatementEffects;
use super::feed_batch::FeedBatch;
use super::follow_up::FollowUpSelect;
use super::show_headwater::ShowHeadwater;
use headwater_sql::lexer::Lexer;
use headwater_sql::page_words::{
    DESCENDING, begins_count, has_group_words, has_page_words, has_value_list,
};
use headwater_sql::{contains_ignoring_case, contains_name};
use headwater_timeline::TimelineDefinition;

/// The class of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// A call that may be answered.
    Call(TimelineCall),
    /// A call whose values must be looked up first: user variables, or the parameters of a statement to be prepared.
    UnboundCall(CallStatement),
    /// A call followed by more statements, and their effects.
    CallBatch(CallBatch, StatementEffects),
    /// A statement that is prepared or executed by name.
    Dynamic(DynamicStatement),
    /// A follow-up SELECT. If it is relayed unchanged, it reads the result table and no more.
    FollowUp(Arc<FollowUpSelect>),
    /// A SELECT that may be a feed's: it names a message table, and has an order and a limit, or is a count. The effects apply if it is relayed.
    Feed(StatementEffects),
    /// Several statements, of which one may be a feed's.
    FeedBatch(FeedBatch),
    /// A request to Headwater itself.
    ShowHeadwater(ShowHeadwater),
    /// Any other text, and its effects on the session.
    Other(StatementEffects),
}

/// Classifies a text, for a server that is known to have `no_functions` or may have some. Never fails, never panics; a text that is not
/// understood is [`StatementClass::Other`] with all effects.
pub fn classify(
    text: &[u8],
    definitions: &[TimelineDefinition],
    no_functions: bool,
) -> StatementClass {
    if let Some(class) = classify_by_verb(text, definitions) {
        return class;
    }
    if may_name_result_table(text, definitions)
        && let Some(follow_up) = FollowUpSelect::parse(text, definitions)
    {
        return StatementClass::FollowUp(Arc::new(follow_up));
    }
    classify_other(text, definitions, no_functions)
}

/// The classes of texts that begin with the words of a call, of dynamic SQL, or of a request to Headwater.
pub(super) fn classify_by_verb(
    text: &[u8],
    definitions: &[TimelineDefinition],
) -> Option<StatementClass> {
    let verb = Lexer::new(text).next()?;
    if !verb.is_word("CALL") {
        if verb.is_word("SHOW") {
            return ShowHeadwater::parse(text).map(StatementClass::ShowHeadwater);
        }
        let dynamic = DYNAMIC_SQL_VERBS.iter().any(|word| verb.is_word(word));
        return dynamic
            .then(|| DynamicStatement::parse(text, definitions).map(StatementClass::Dynamic))
            .flatten();
    }
    let Some(statement) = CallStatement::parse(text, definitions) else {
        let batch = CallBatch::parse(text, definitions)?;
        let remainder = text.get(batch.remainder_start..).unwrap_or_default();
        let effects = StatementEffects::of(remainder, definitions, false);
        return Some(StatementClass::CallBatch(batch, effects));
    };
    let is_known = |argument: &CallArgument| matches!(argument, CallArgument::Number(_));
    if statement.arguments().all(is_known) {
        return statement.bind(definitions, &[]).map(StatementClass::Call);
    }
    Some(StatementClass::UnboundCall(statement))
}

/// First words of statements that are prepared or executed by name.
const DYNAMIC_SQL_VERBS: &[&str] = &["PREPARE", "EXECUTE", "DEALLOCATE", "DROP"];

pub(super) fn classify_other(
    text: &[u8],
    definitions: &[TimelineDefinition],
    no_functions: bool,
) -> StatementClass {
    StatementClass::Other(StatementEffects::of(text, definitions, no_functions))
}

/// True for a SELECT, maybe in parentheses or behind WITH, that seems to name one of these tables (with `any_table`: any), and to have an order and a limit;
/// or to be a count, or to have a list of values or groups.
pub(super) fn may_be_feed(text: &[u8], messages: &[Box<[u8]>], any_table: bool) -> bool {
    (any_table || !messages.is_empty())
        && Lexer::new(text)
            .find(|token| !token.is_punct(b'('))
            .is_some_and(|verb| verb.is_word("SELECT") || verb.is_word("WITH"))
        && has_feed_words(text, messages, any_table)
}

/// True for a text that contains the words of a feed's SELECT.
pub(super) fn has_feed_words(text: &[u8], messages: &[Box<[u8]>], any_table: bool) -> bool {
    let (is_page, is_count) = (has_page_words(text), begins_count(text));
    let is_named = || messages.iter().any(|table| contains_name(text, table));
    (is_page || is_count) && is_named()
        // Feeds that Headwater finds itself have messages in any table.
        || any_table && (is_count || is_page && contains_ignoring_case(text, DESCENDING))
        || (any_table || is_named()) && (has_value_list(text) || has_group_words(text))
}

/// False: the text has no result table's name, so it is no follow-up SELECT.
pub(super) fn may_name_result_table(text: &[u8], definitions: &[TimelineDefinition]) -> bool {
    definitions.iter().any(|definition| {
        let first_part = definition
            .result
            .table
            .split('`')
            .next()
            .unwrap_or_default()
            .as_bytes();
        first_part.is_empty() || contains_name(text, first_part)
    })
}
