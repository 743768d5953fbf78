//! Readers who follow many authors on data nodes, and those whose follow list differs at each query.

use super::*;
use crate::LookupError;

fn call(reader: u64, bound: Option<u64>) -> TimelineCall {
    TimelineCall {
        definition: DefinitionId(0),
        form: match bound {
            None => ProcedureForm::Newest,
            Some(_) => ProcedureForm::Bounded,
        },
        database: None,
        reader,
        bound,
    }
}

/// Every author has a message, but each fifth.
fn tables(authors: u64) -> ServerTables {
    let mut tables = ServerTables::default();
    let writers = (0..authors).filter(|author| author % 5 > 0);
    tables
        .messages
        .extend(writers.map(|author| (1 + author * 7919 % authors, author)));
    tables
        .follows
        .extend((0..authors).map(|author| (1, author)));
    tables
}

#[test]
fn a_reader_of_many_takes_a_few_questions() {
    let definition = TimelineDefinition::classic();
    for (authors, chunks) in [(500, 1), (501, 2), (1_300, 3), (5_000, 10)] {
        let tables = tables(authors);
        let facts = facts(ServerProduct::Mariadb, TableStorage::Spread, authors);
        for bound in [None, Some(authors / 2)] {
            let call = call(1, bound);
            let lookup = lookup(&definition, &facts, &call, 10_000);
            // The follow list, a guess that may prove nothing, as many for the heads as have to be, lists; then the guess and what it lacks.
            let mut hints = LookupHints::new(10_000, 10_000);
            for most in [3 + chunks, 2 + chunks] {
                let (found, asked) = look_up(&lookup, &tables, &mut hints);
                assert_eq!(found, tables.procedure(&call, 20), "{authors} {bound:?}");
                assert!(asked <= most, "{asked} for {authors} {bound:?}");
            }
        }
    }
}

#[test]
fn a_reader_of_more_is_the_procedures() {
    let definition = TimelineDefinition::classic();
    let tables = tables(5_001);
    let facts = facts(ServerProduct::Mariadb, TableStorage::Spread, 5_001);
    let call = call(1, None);
    let lookup = lookup(&definition, &facts, &call, 10_000);
    let mut hints = LookupHints::new(10_000, 10_000);
    for _ in 0..2 {
        let step = lookup.first_step(&mut hints);
        assert!(matches!(step, LookupStep::Follows(_)));
        let rows = tables.answer(step.query());
        assert!(rows.len() <= lookup.collect_limits().max_rows);
        let end = lookup.next_step(&step, &rows, &mut hints);
        assert!(matches!(end, Err(LookupError::TooManyIds)), "{end:?}");
    }
}

/// However a lookup begins, it ends: with the page if the list stays at last, else with the procedure.
#[test]
fn a_follow_list_that_changes_each_time_is_queried_a_few_times() {
    let definition = TimelineDefinition::classic();
    for (known, bound) in [
        (false, None),
        (true, None),
        (false, Some(40)),
        (true, Some(40)),
    ] {
        for stays_after in 0..24 {
            let mut tables = tables(60);
            let facts = facts(ServerProduct::Mariadb, TableStorage::Spread, 60);
            let call = call(1, bound);
            let lookup = lookup(&definition, &facts, &call, 1_000);
            let mut hints = LookupHints::new(1_000, 1_000);
            if known {
                look_up(&lookup, &tables, &mut hints);
            }
            let mut step = lookup.first_step(&mut hints);
            let mut asked = 0;
            let end = loop {
                if asked < stays_after {
                    tables.follows.remove(&(1, asked));
                }
                asked += 1;
                let rows = tables.answer(step.query());
                match lookup.next_step(&step, &rows, &mut hints) {
                    Ok(LookupStepOutcome::Continue(next)) => step = next,
                    Ok(LookupStepOutcome::Heads(heads)) => break Ok(heads),
                    Err(unusable) => break Err(unusable),
                }
            };
            assert!(asked <= 20, "{asked}");
            match end {
                Ok(heads) => assert_eq!(
                    heads.heads.iter().map(|head| head.id).max(),
                    tables.procedure(&call, 20).ids.first().copied()
                ),
                Err(unusable) => {
                    assert_eq!(unusable, LookupError::FollowsChanging);
                    assert!(stays_after > 16, "{stays_after}");
                }
            }
        }
    }
}
