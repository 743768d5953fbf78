//! Body of the fuzz target `classify`: takes any bytes and fails by an assertion.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Class, Classes, Effects, TailForm, classify};
use crate::timeline::Definition;

/// Any text has a class; what is remembered is what is found; a call's reader is of its type.
pub fn text(data: &[u8]) {
    let definitions: Arc<[Definition]> = [Definition::classic()].into();
    let class = classify(data, &definitions, false);
    let mut classes = Classes::new(Arc::clone(&definitions), NonZeroUsize::MIN, usize::MAX);
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
        Class::Other(_) => {}
    }
}
