//! What is known of a procedure that is called by a name of ours, and runs on the server.

use headwater_statement::StatementEffects;
use headwater_timeline::check::DefinitionVerdict;
use headwater_timeline::{DefinitionId, ProcedureForm};

use super::CallKnowledge;
use crate::call_relay_reason::CallRelayReason;
use crate::call_request::RequestedCall;
use crate::session_state::SessionState;

/// A definition's procedure in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcedureLocation {
    /// The definition's number.
    pub definition: DefinitionId,
    /// Which of its procedures.
    pub form: ProcedureForm,
    /// Where.
    pub database: Vec<u8>,
}

/// What the last check saw of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcedureCheck {
    /// No check has been made of it, or it cannot be told which one it is.
    Nothing,
    /// It is the known one; `outdated`: it was, and is to be looked at again.
    Known { outdated: bool },
    /// It is another one, or was when it was looked at; `outdated`: that is due again.
    Refused { outdated: bool },
}

/// A call that goes on to the server.
#[derive(Debug, PartialEq, Eq)]
pub struct RelayedCall {
    /// What the procedure may do beyond its tables; `None`: it was seen to be the known one, which does nothing.
    pub effects: Option<StatementEffects>,
    /// Which known procedure it is, whose definer's rights the server's answer tells of.
    pub known: Option<ProcedureLocation>,
    /// The database of a refused one.
    pub refused: Option<Vec<u8>>,
}

impl RelayedCall {
    /// What is known of the procedure that this call runs.
    pub fn new(
        wanted: &RequestedCall,
        standing: &SessionState,
        known: &impl CallKnowledge,
    ) -> RelayedCall {
        let place = locate_procedure(wanted, standing, known);
        let seen = last_check(place.as_ref(), known);
        let effects = unknown_effects(seen);
        match (place, seen) {
            (Some(place), ProcedureCheck::Known { .. }) => RelayedCall {
                effects,
                known: Some(place),
                refused: None,
            },
            (place, seen) => RelayedCall {
                effects,
                known: None,
                refused: place
                    .filter(|_| matches!(seen, ProcedureCheck::Refused { .. }))
                    .map(|place| place.database),
            },
        }
    }
}

/// Why a call is relayed that this is in the way of. What a refused procedure may have left behind is in no way of the next
/// call of it, which is relayed as the first was.
pub(super) fn actual_reason(
    obstacle: CallRelayReason,
    wanted: &RequestedCall,
    standing: &SessionState,
    known: &impl CallKnowledge,
) -> CallRelayReason {
    match obstacle {
        CallRelayReason::OneShotTransaction
            if matches!(
                last_check(locate_procedure(wanted, standing, known).as_ref(), known),
                ProcedureCheck::Refused { .. }
            ) =>
        {
            CallRelayReason::Definition
        }
        obstacle => obstacle,
    }
}

/// Which definition a call is of, in which form and database.
fn locate_procedure(
    wanted: &RequestedCall,
    standing: &SessionState,
    known: &impl CallKnowledge,
) -> Option<ProcedureLocation> {
    let current = standing.certain_database().or(standing.refused_in());
    let (definition, form, database) = wanted.resolve(known.definitions(), current)?;
    Some(ProcedureLocation {
        definition,
        form,
        database: database.to_vec(),
    })
}

fn last_check(place: Option<&ProcedureLocation>, known: &impl CallKnowledge) -> ProcedureCheck {
    let Some(place) = place else {
        return ProcedureCheck::Nothing;
    };
    let Some((verdict, fresh)) = known.last_verdict(place.definition, &place.database) else {
        return ProcedureCheck::Nothing;
    };
    match &*verdict {
        DefinitionVerdict::Accelerate(facts) if facts.procedure_status(place.form).is_ok() => {
            ProcedureCheck::Known { outdated: !fresh }
        }
        _ => ProcedureCheck::Refused { outdated: !fresh },
    }
}

fn unknown_effects(seen: ProcedureCheck) -> Option<StatementEffects> {
    // Any may change definitions, but what is accepted was checked after that.
    let refused = StatementEffects {
        definition: false,
        ..StatementEffects::ALL
    };
    // Nothing is known to be in the way of the next call.
    let unchecked = StatementEffects {
        next_transaction: false,
        ..refused
    };
    // It was the known one until lately, and is being looked at again.
    let lately = StatementEffects {
        dynamic: false,
        database: false,
        ..unchecked
    };
    match seen {
        ProcedureCheck::Nothing | ProcedureCheck::Refused { outdated: true } => Some(unchecked),
        ProcedureCheck::Refused { outdated: false } => Some(refused),
        ProcedureCheck::Known { outdated: true } => Some(lately),
        ProcedureCheck::Known { outdated: false } => None,
    }
}
