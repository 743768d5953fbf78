//! The values of a call, where its packet does not hold them: of user variables.

use super::asked::{Values, Wanted};
use super::driver::Session;
use super::owned::{ASK_LIMITS, Refusal, failed};
use super::reason::Reason;
use crate::backend::Batch;
use crate::statement::Call;
use crate::wire::command::digits;
use crate::wire::resultset::{Answer, Rows};

impl Session {
    /// The call with its values; variables are asked for.
    pub(super) async fn bound(&mut self, wanted: &Wanted) -> Result<Call, Refusal> {
        let (statement, values) = match wanted {
            Wanted::Call(call) => return Ok(call.clone()),
            Wanted::Statement(statement, Values::Given(values)) => (statement, values.clone()),
            Wanted::Statement(statement, Values::Variables(names)) => {
                (statement, self.variables(names).await?)
            }
            Wanted::Statement(_, Values::Unfit) => return Err(Reason::Arguments.into()),
            Wanted::Astray => return Err(Reason::OtherDatabase.into()),
        };
        let call = statement.bind(self.shared.catalogue.definitions(), &values);
        call.ok_or_else(|| Reason::Arguments.into())
    }

    /// What these variables hold: numbers, or strings of digits.
    async fn variables(&mut self, names: &[String]) -> Result<Vec<u64>, Refusal> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let names: Vec<_> = names.iter().map(|name| format!("@{name}")).collect();
        let mut batch = Batch::new(capabilities);
        batch.query(&format!("SELECT {}", names.join(",")));
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        match answers.first() {
            Some(Answer::Rows(rows)) => {
                if let Some(commands) = self.machine.commands() {
                    commands.standing.observe(rows.end());
                }
                numbers(rows, names.len()).ok_or_else(|| Reason::Arguments.into())
            }
            Some(Answer::Err(error)) => Err(failed(error)),
            _ => Err(Reason::Arguments.into()),
        }
    }
}

/// The row's values, which say the same number whatever type they have.
fn numbers(rows: &Rows, count: usize) -> Option<Vec<u64>> {
    let row = rows.iter().next()?;
    (0..count)
        .map(|column| row.cell(column).and_then(digits))
        .collect()
}
