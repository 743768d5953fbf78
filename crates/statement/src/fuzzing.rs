//! Body of the fuzz target `classify`: takes any bytes and fails by an assertion.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{
    FollowUpForm, ShowHeadwater, StatementClass, StatementClassifier, StatementEffects, classify,
};
use headwater_timeline::TimelineDefinition;

/// Any text has a class; the cached class equals the computed one; a call's reader is of its type.
pub fn text(data: &[u8]) {
    let definitions: Arc<[TimelineDefinition]> = [TimelineDefinition::classic()].into();
    let classes = StatementClassifier::new(Arc::clone(&definitions), NonZeroUsize::MIN, usize::MAX);
    // Whether the server has functions may change while the class is cached.
    for no_functions in [false, true, false] {
        let class = classify(data, &definitions, no_functions);
        assert_eq!(classes.classify(data, no_functions), class);
        assert_eq!(classes.classify(data, no_functions), class);
    }
    let [some, none] = [false, true].map(|none| classify(data, &definitions, none));
    match (some, none) {
        (StatementClass::Other(some), StatementClass::Other(none)) => {
            // Without functions, a statement has at most the same effects.
            assert!(some.stored_code || !none.stored_code);
            assert!(some.result_table || !none.result_table);
            assert!(none.is_pure_read || !some.is_pure_read);
            assert_eq!(none.assuming_functions(), some);
            assert_eq!(some.assuming_functions(), some);
        }
        (some, none) => assert_eq!(some, none),
    }
    for no_functions in [false, true] {
        check_class(data, &definitions, no_functions);
    }
}

fn check_class(data: &[u8], definitions: &[TimelineDefinition], no_functions: bool) {
    match classify(data, definitions, no_functions) {
        StatementClass::Call(call) => {
            assert!(
                definitions
                    .iter()
                    .any(|definition| definition.user_type.holds(call.reader))
            );
        }
        StatementClass::FollowUp(follow_up) => {
            assert!(follow_up.limit > 0);
            assert!(follow_up.rewrite(FollowUpForm::List, &[]).is_none());
            let rewritten = follow_up.rewrite(FollowUpForm::BufferedList, &[7]);
            // With the ids in it, it is an ordinary SELECT that no longer reads the result table.
            let rewritten_text = rewritten.unwrap_or_default();
            assert!(matches!(
                classify(rewritten_text.as_bytes(), definitions, no_functions),
                StatementClass::Other(StatementEffects {
                    next_transaction: false,
                    ..
                })
            ));
        }
        StatementClass::CallBatch(batch, _) => {
            assert!(batch.remainder_start < data.len());
            let first = data.get(..batch.remainder_start).unwrap_or_default();
            assert!(matches!(
                classify(first, definitions, no_functions),
                StatementClass::Call(_) | StatementClass::UnboundCall(_) | StatementClass::Other(_)
            ));
        }
        StatementClass::Feed(_) | StatementClass::FeedBatch(_) => {
            unreachable!("no table is a feed's")
        }
        StatementClass::UnboundCall(statement) => {
            let unknown = statement.session_expressions().count() + statement.parameter_count();
            assert!((1..=2).contains(&unknown));
            let call = statement.bind(definitions, &vec![7; unknown]);
            // Its plain SQL is that call.
            if let Some(call) = call {
                let text = call.to_sql(definitions).unwrap_or_default();
                assert_eq!(
                    classify(text.as_bytes(), definitions, no_functions),
                    StatementClass::Call(call)
                );
            }
        }
        StatementClass::ShowHeadwater(ShowHeadwater::Explanation(statement)) => {
            assert!(data.get(statement).is_some_and(|it| !it.is_empty()));
        }
        StatementClass::ShowHeadwater(_)
        | StatementClass::Dynamic(_)
        | StatementClass::Other(_) => {}
    }
}
