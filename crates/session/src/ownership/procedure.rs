//! What is known of a procedure that is called by a name of ours, and runs on the server.

use headwater_statement::Effects;
use headwater_timeline::check::Verdict;
use headwater_timeline::{DefinitionId, Form};

use super::Knowledge;
use crate::asked::Wanted;
use crate::reason::Reason;
use crate::standing::Standing;

/// A definition's procedure in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcedurePlace {
    /// The definition's number.
    pub definition: DefinitionId,
    /// Which of its procedures.
    pub form: Form,
    /// Where.
    pub database: Vec<u8>,
}

/// What the last check saw of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// No check has been made of it, or it cannot be told which one it is.
    Nothing,
    /// It is the known one; `lately`: it was, and is to be looked at again.
    Known { lately: bool },
    /// It is another one, or was when it was looked at; `lately`: that is due again.
    Refused { lately: bool },
}

/// A call that goes on to the server.
#[derive(Debug, PartialEq, Eq)]
pub struct Relayed {
    /// What the procedure may do beyond its tables; `None`: it was seen to be the known one, which does nothing.
    pub effects: Option<Effects>,
    /// Which known procedure it is, whose definer's rights the server's answer tells of.
    pub known: Option<ProcedurePlace>,
    /// The database of a refused one.
    pub refused: Option<Vec<u8>>,
}

impl Relayed {
    /// What is known of the procedure that this call runs.
    pub fn new(wanted: &Wanted, standing: &Standing, known: &impl Knowledge) -> Relayed {
        let place = place(wanted, standing, known);
        let seen = seen(place.as_ref(), known);
        let effects = unknown_effects(seen);
        match (place, seen) {
            (Some(place), Seen::Known { .. }) => Relayed {
                effects,
                known: Some(place),
                refused: None,
            },
            (place, seen) => Relayed {
                effects,
                known: None,
                refused: place
                    .filter(|_| matches!(seen, Seen::Refused { .. }))
                    .map(|place| place.database),
            },
        }
    }
}

/// Why a call is relayed that this is in the way of. What a refused procedure may have left behind is in no way of the next
/// call of it, which is relayed as the first was.
pub(super) fn true_reason(
    obstacle: Reason,
    wanted: &Wanted,
    standing: &Standing,
    known: &impl Knowledge,
) -> Reason {
    match obstacle {
        Reason::OneShotTransaction
            if matches!(
                seen(place(wanted, standing, known).as_ref(), known),
                Seen::Refused { .. }
            ) =>
        {
            Reason::Definition
        }
        obstacle => obstacle,
    }
}

/// Which definition a call is of, in which form and database.
fn place(wanted: &Wanted, standing: &Standing, known: &impl Knowledge) -> Option<ProcedurePlace> {
    let current = standing.certain_database().or(standing.refused_in());
    let (definition, form, database) = wanted.place(known.definitions(), current)?;
    Some(ProcedurePlace {
        definition,
        form,
        database: database.to_vec(),
    })
}

fn seen(place: Option<&ProcedurePlace>, known: &impl Knowledge) -> Seen {
    let Some(place) = place else {
        return Seen::Nothing;
    };
    let Some((verdict, fresh)) = known.last_verdict(place.definition, &place.database) else {
        return Seen::Nothing;
    };
    match &*verdict {
        Verdict::Accelerate(facts) if facts.form(place.form).is_ok() => {
            Seen::Known { lately: !fresh }
        }
        _ => Seen::Refused { lately: !fresh },
    }
}

fn unknown_effects(seen: Seen) -> Option<Effects> {
    // Any may change definitions, but what is accepted was checked after that.
    let refused = Effects {
        definition: false,
        ..Effects::ALL
    };
    // Nothing is known to be in the way of the next call.
    let unchecked = Effects {
        one_shot: false,
        ..refused
    };
    // It was the known one until lately, and is being looked at again.
    let lately = Effects {
        dynamic: false,
        database: false,
        ..unchecked
    };
    match seen {
        Seen::Nothing | Seen::Refused { lately: true } => Some(unchecked),
        Seen::Refused { lately: false } => Some(refused),
        Seen::Known { lately: true } => Some(lately),
        Seen::Known { lately: false } => None,
    }
}
