//! Body of the fuzz target `classify`: takes any bytes and fails by an assertion.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Class, Classes, Effects, TailForm, classify};
use crate::timeline::Definition;

/// Any text has a class; what is remembered is what is found; a call's reader is of its type.
pub fn text(data: &[u8]) {
    let definitions: Arc<[Definition]> = [Definition::classic()].into();
    let class = classify(data, &definitions, false);
    let classes = Classes::new(Arc::clone(&definitions), NonZeroUsize::MIN, usize::MAX);
    assert_eq!(classes.classify(data, false), class);
    assert_eq!(classes.classify(data, false), class);
    match class {
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
                classify(asked.as_bytes(), &definitions, false),
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
                classify(alone, &definitions, false),
                Class::Call(_) | Class::Unbound(_) | Class::Other(_)
            ));
        }
        Class::Unbound(statement) => {
            let unknown = statement.variables().count() + statement.parameters();
            assert!((1..=2).contains(&unknown));
            let call = statement.bind(&definitions, &vec![7; unknown]);
            // Written out, it is that call.
            if let Some(call) = call {
                let text = call.written_out(&definitions).unwrap_or_default();
                assert_eq!(
                    classify(text.as_bytes(), &definitions, false),
                    Class::Call(call)
                );
            }
        }
        Class::Dynamic(_) | Class::Other(_) => {}
    }
}
