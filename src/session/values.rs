//! The values of a call, where its packet does not hold them: of user variables, and of strings that may be names.

use super::asked::{Values, Wanted};
use super::driver::Session;
use super::owned::{ASK_LIMITS, Refusal, failed};
use super::reason::Reason;
use crate::backend::Batch;
use crate::statement::Call;
use crate::wire::command::digits;
use crate::wire::resultset::{Answer, Rows};

impl Session {
    /// The call with its values; what only the session knows is asked for.
    pub(super) async fn bound(&mut self, wanted: &Wanted) -> Result<Call, Refusal> {
        let (statement, values) = match wanted {
            Wanted::Call(call) => return Ok(call.clone()),
            Wanted::Statement(statement, Values::Given(values)) => (statement, values.clone()),
            Wanted::Statement(statement, Values::Expressions(asked)) => {
                (statement, self.expressions(asked).await?)
            }
            Wanted::Statement(_, Values::Unfit) => return Err(Reason::Arguments.into()),
            Wanted::Astray => return Err(Reason::OtherDatabase.into()),
        };
        let call = statement.bind(self.shared.catalogue.definitions(), &values);
        call.ok_or_else(|| Reason::Arguments.into())
    }

    /// What these stand for: numbers, or strings of digits.
    async fn expressions(&mut self, asked: &[String]) -> Result<Vec<u64>, Refusal> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        batch.query(&format!("SELECT {}", asked.join(",")));
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        match answers.first() {
            Some(Answer::Rows(rows)) => {
                if let Some(commands) = self.machine.commands() {
                    commands.standing.observe(rows.end());
                }
                numbers(rows, asked.len()).ok_or_else(|| Reason::Arguments.into())
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
