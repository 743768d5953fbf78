//! What is known of a procedure that has a definition's name and runs on the server.

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
    /// The definition's id.
    pub definition: DefinitionId,
    /// Which of its procedures.
    pub form: ProcedureForm,
    /// The database.
    pub database: Vec<u8>,
}

/// What the last check found about a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcedureCheck {
    /// No check was made, or it is unclear which procedure it is.
    Nothing,
    /// It is the known one; `outdated`: the check has expired.
    Known { outdated: bool },
    /// It is another one; `outdated`: the check has expired.
    Refused { outdated: bool },
}

/// A call that is relayed to the server.
#[derive(Debug, PartialEq, Eq)]
pub struct RelayedCall {
    /// What the procedure may do beyond its tables; `None`: it is the known one, which does nothing else.
    pub effects: Option<StatementEffects>,
    /// The known procedure, whose definer's rights the server's reply shows.
    pub known: Option<ProcedureLocation>,
    /// The database of a refused one.
    pub refused: Option<Vec<u8>>,
}

impl RelayedCall {
    /// What is known of the procedure that this call runs.
    pub fn new(
        wanted: &RequestedCall,
        state: &SessionState,
        knowledge: &impl CallKnowledge,
    ) -> RelayedCall {
        let location = locate_procedure(wanted, state, knowledge);
        let check = last_check(location.as_ref(), knowledge);
        let effects = unknown_effects(check);
        match (location, check) {
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

/// Why a call with this obstacle is relayed. What a refused procedure may have left does not matter to the next call of it, which is
/// relayed as the first was.
pub(super) fn actual_reason(
    obstacle: CallRelayReason,
    wanted: &RequestedCall,
    state: &SessionState,
    knowledge: &impl CallKnowledge,
) -> CallRelayReason {
    match obstacle {
        CallRelayReason::OneShotTransaction
            if matches!(
                last_check(
                    locate_procedure(wanted, state, knowledge).as_ref(),
                    knowledge
                ),
                ProcedureCheck::Refused { .. }
            ) =>
        {
            CallRelayReason::Definition
        }
        obstacle => obstacle,
    }
}

fn locate_procedure(
    wanted: &RequestedCall,
    state: &SessionState,
    knowledge: &impl CallKnowledge,
) -> Option<ProcedureLocation> {
    let current = state.certain_database().or(state.refused_in());
    let (definition, form, database) = wanted.resolve(knowledge.definitions(), current)?;
    Some(ProcedureLocation {
        definition,
        form,
        database: database.to_vec(),
    })
}

fn last_check(
    location: Option<&ProcedureLocation>,
    knowledge: &impl CallKnowledge,
) -> ProcedureCheck {
    let Some(location) = location else {
        return ProcedureCheck::Nothing;
    };
    let Some((verdict, fresh)) = knowledge.last_verdict(location.definition, &location.database)
    else {
        return ProcedureCheck::Nothing;
    };
    match &*verdict {
        DefinitionVerdict::Accelerate(facts) if facts.procedure_status(location.form).is_ok() => {
            ProcedureCheck::Known { outdated: !fresh }
        }
        _ => ProcedureCheck::Refused { outdated: !fresh },
    }
}

fn unknown_effects(check: ProcedureCheck) -> Option<StatementEffects> {
    // Any may change definitions, but accepted ones were checked after that.
    let refused = StatementEffects {
        definition: false,
        ..StatementEffects::ALL
    };
    // Nothing is known that would stop the next call.
    let unchecked = StatementEffects {
        next_transaction: false,
        ..refused
    };
    // It was the known one until recently, and its check is running.
    let recently_known = StatementEffects {
        dynamic: false,
        database: false,
        ..unchecked
    };
    match check {
        ProcedureCheck::Nothing | ProcedureCheck::Refused { outdated: true } => Some(unchecked),
        ProcedureCheck::Refused { outdated: false } => Some(refused),
        ProcedureCheck::Known { outdated: true } => Some(recently_known),
        ProcedureCheck::Known { outdated: false } => None,
    }
}
