//! Body of the fuzz target `classify`: takes any bytes and fails by an assertion.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Class, Classes, Effects, Own, TailForm, classify};
use headwater_timeline::Definition;

/// Any text has a class; what is remembered is what is found; a call's reader is of its type.
pub fn text(data: &[u8]) {
    let definitions: Arc<[Definition]> = [Definition::classic()].into();
    let classes = Classes::new(Arc::clone(&definitions), NonZeroUsize::MIN, usize::MAX);
    // Whether the server has functions may change while the class is remembered.
    for no_functions in [false, true, false] {
        let class = classify(data, &definitions, no_functions);
        assert_eq!(classes.classify(data, no_functions), class);
        assert_eq!(classes.classify(data, no_functions), class);
    }
    let [some, none] = [false, true].map(|none| classify(data, &definitions, none));
    match (some, none) {
        (Class::Other(some), Class::Other(none)) => {
            // Where there are none, a statement is only suspected of less.
            assert!(some.stored_code || !none.stored_code);
            assert!(some.result_table || !none.result_table);
            assert!(none.spares || !some.spares);
            assert_eq!(none.distrusted(), some);
            assert_eq!(some.distrusted(), some);
        }
        (some, none) => assert_eq!(some, none),
    }
    for no_functions in [false, true] {
        means_what_it_says(data, &definitions, no_functions);
    }
}

fn means_what_it_says(data: &[u8], definitions: &[Definition], no_functions: bool) {
    match classify(data, definitions, no_functions) {
        Class::Call(call) => {
            assert!(
                definitions
                    .iter()
                    .any(|definition| definition.user_type.holds(call.reader))
            );
        }
        Class::Tail(tail) => {
            assert!(tail.limit > 0);
            assert!(tail.rewrite(TailForm::List, &[]).is_none());
            let asked = tail.rewrite(TailForm::BufferedList, &[7]);
            // With the ids in it, it is an ordinary SELECT that no longer looks at the result table.
            let asked = asked.unwrap_or_default();
            assert!(matches!(
                classify(asked.as_bytes(), definitions, no_functions),
                Class::Other(Effects {
                    one_shot: false,
                    ..
                })
            ));
        }
        Class::Several(several, _) => {
            assert!(several.rest < data.len());
            let alone = data.get(..several.rest).unwrap_or_default();
            assert!(matches!(
                classify(alone, definitions, no_functions),
                Class::Call(_) | Class::Unbound(_) | Class::Other(_)
            ));
        }
        Class::Feed(_) | Class::Batch(_) => unreachable!("no table is a feed's"),
        Class::Unbound(statement) => {
            let unknown = statement.expressions().count() + statement.parameters();
            assert!((1..=2).contains(&unknown));
            let call = statement.bind(definitions, &vec![7; unknown]);
            // Written out, it is that call.
            if let Some(call) = call {
                let text = call.written_out(definitions).unwrap_or_default();
                assert_eq!(
                    classify(text.as_bytes(), definitions, no_functions),
                    Class::Call(call)
                );
            }
        }
        Class::Own(Own::WhyFor(statement)) => {
            assert!(data.get(statement).is_some_and(|it| !it.is_empty()));
        }
        Class::Own(_) | Class::Dynamic(_) | Class::Other(_) => {}
    }
}
