//! The service account: its name as in a GRANT, and the privileges that it needs.

use super::serving_goal::ServingGoal;
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_sql::quoted;
use headwater_timeline::check::ServerProduct;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};

/// Placeholder for a name that only the operator knows.
pub(super) const ANY_DATABASE: &str = "DATABASE";
const ANY_HOST: &str = "HOST";

/// The account from CURRENT_USER(): the last `@` separates user and host.
pub(super) fn grant_name(current_user: &str) -> String {
    let (user, host) = current_user
        .rsplit_once('@')
        .unwrap_or((current_user, ANY_HOST));
    format!("{}@{}", quoted(user), quoted(host))
}

pub(super) fn new_account_name(user: &str) -> String {
    format!("{}@{}", quoted(user), quoted(ANY_HOST))
}

/// The privileges for all of these timelines, each once: a definition and its database, if known.
///
/// If answers are compared with the procedures', the account must run those too.
pub(super) fn required_privileges<'a>(
    goal: ServingGoal,
    compares: bool,
    product: ServerProduct,
    timelines: impl Iterator<Item = (&'a TimelineDefinition, Option<&'a str>)>,
) -> Vec<RequiredPrivilege> {
    let mut rights = match goal {
        ServingGoal::Memory => vec![
            RequiredPrivilege::FollowLog,
            RequiredPrivilege::LogPosition,
            RequiredPrivilege::OpenTransactions,
        ],
        ServingGoal::Lookups => Vec::new(),
    };
    let mut add = |right| {
        if !rights.contains(&right) {
            rights.push(right);
        }
    };
    for (definition, database) in timelines {
        if !definition.trust_unseen_body {
            add(RequiredPrivilege::Bodies(product));
        }
        for table in [&definition.follower.table, &definition.message.table] {
            add(RequiredPrivilege::Read {
                database: database.unwrap_or(ANY_DATABASE).to_owned(),
                table: table.clone(),
            });
        }
        for form in ProcedureForm::ALL.into_iter().filter(|_| compares) {
            add(execute_privilege(
                definition,
                form,
                database.unwrap_or(ANY_DATABASE),
            ));
        }
    }
    rights
}

pub(super) fn execute_privilege(
    definition: &TimelineDefinition,
    form: ProcedureForm,
    database: &str,
) -> RequiredPrivilege {
    RequiredPrivilege::Execute {
        database: database.to_owned(),
        procedure: definition.procedure_name(form).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_at_divides_an_account() {
        assert_eq!(
            grant_name("head@water@127.0.0.1"),
            "`head@water`@`127.0.0.1`"
        );
        assert_eq!(grant_name("@%"), "``@`%`");
        assert_eq!(new_account_name("a`b"), "`a``b`@`HOST`");
    }

    #[test]
    fn two_timelines_in_one_database_share_their_rights() {
        let classic = TimelineDefinition::classic();
        let trusting = TimelineDefinition {
            trust_unseen_body: true,
            ..TimelineDefinition::classic()
        };
        let count = |goal, timelines: &[(&TimelineDefinition, Option<&str>)]| {
            required_privileges(goal, false, ServerProduct::Mysql, timelines.iter().copied()).len()
        };
        let both = [(&classic, Some("app")), (&trusting, Some("app"))];
        assert_eq!(count(ServingGoal::Memory, &both), 6);
        assert_eq!(count(ServingGoal::Lookups, &both), 3);
        assert_eq!(count(ServingGoal::Lookups, &[(&trusting, None)]), 2);
        let one = [(&trusting, Some("app"))];
        let compared = required_privileges(
            ServingGoal::Memory,
            true,
            ServerProduct::Mysql,
            one.into_iter(),
        );
        assert_eq!(compared.len(), 5 + ProcedureForm::ALL.len());
    }
}
