//! The service account: its name as in a GRANT, and the rights that it needs.

use super::goal::Goal;
use crate::binlog::right::Right;
use crate::sql::quoted;
use crate::timeline::check::Product;
use crate::timeline::definition::{Definition, Form};

/// What stands in a statement where only the reader knows the name.
pub(super) const ANY_DATABASE: &str = "DATABASE";
const ANY_HOST: &str = "HOST";

/// An account from CURRENT_USER(): only the last `@` divides.
pub(super) fn as_known(current_user: &str) -> String {
    let (user, host) = current_user
        .rsplit_once('@')
        .unwrap_or((current_user, ANY_HOST));
    format!("{}@{}", quoted(user), quoted(host))
}

/// An account that is yet to be made.
pub(super) fn to_make(user: &str) -> String {
    format!("{}@{}", quoted(user), quoted(ANY_HOST))
}

/// The rights for all of these timelines, each once: a definition and the database that it is found in, or nobody knows which.
///
/// Where answers are compared with the procedures', the account runs those too.
pub(super) fn rights<'a>(
    goal: Goal,
    compares: bool,
    product: Product,
    timelines: impl Iterator<Item = (&'a Definition, Option<&'a str>)>,
) -> Vec<Right> {
    let mut rights = match goal {
        Goal::Memory => vec![
            Right::FollowLog,
            Right::LogPosition,
            Right::OpenTransactions,
        ],
        Goal::Lookups => Vec::new(),
    };
    let mut add = |right| {
        if !rights.contains(&right) {
            rights.push(right);
        }
    };
    for (definition, database) in timelines {
        if !definition.trust_unseen_body {
            add(Right::Bodies(product));
        }
        for table in [&definition.follower.table, &definition.message.table] {
            add(Right::Read {
                database: database.unwrap_or(ANY_DATABASE).to_owned(),
                table: table.clone(),
            });
        }
        for form in Form::ALL.into_iter().filter(|_| compares) {
            add(execute(definition, form, database.unwrap_or(ANY_DATABASE)));
        }
    }
    rights
}

/// The right to run one of the procedures.
pub(super) fn execute(definition: &Definition, form: Form, database: &str) -> Right {
    Right::Execute {
        database: database.to_owned(),
        procedure: definition.procedure(form).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_at_divides_an_account() {
        assert_eq!(as_known("head@water@127.0.0.1"), "`head@water`@`127.0.0.1`");
        assert_eq!(as_known("@%"), "``@`%`");
        assert_eq!(to_make("a`b"), "`a``b`@`HOST`");
    }

    #[test]
    fn two_timelines_in_one_database_share_their_rights() {
        let classic = Definition::classic();
        let trusting = Definition {
            trust_unseen_body: true,
            ..Definition::classic()
        };
        let count = |goal, timelines: &[(&Definition, Option<&str>)]| {
            rights(goal, false, Product::Mysql, timelines.iter().copied()).len()
        };
        let both = [(&classic, Some("app")), (&trusting, Some("app"))];
        assert_eq!(count(Goal::Memory, &both), 6);
        assert_eq!(count(Goal::Lookups, &both), 3);
        assert_eq!(count(Goal::Lookups, &[(&trusting, None)]), 2);
        let one = [(&trusting, Some("app"))];
        let compared = rights(Goal::Memory, true, Product::Mysql, one.into_iter());
        assert_eq!(compared.len(), 5 + Form::ALL.len());
    }
}
