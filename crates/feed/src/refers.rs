//! Rows that a message refers to: of tables that are joined by their key, which a column of the message's names.

use crate::equal::conjuncts;
use crate::query::{Column, Comparison, Condition, Operand, Says};
use crate::schema::Class;
use crate::scope::{Of, Scope, Seen};

/// A row that a message's row is made of as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refer {
    /// Its table.
    pub table: String,
    /// The table's key.
    pub id: String,
    /// What says which row it is.
    pub by: By,
    /// Whether a message passes depends on it.
    pub decides: bool,
}

/// A column of the message's that holds a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// Its author, whom memory knows.
    Author,
    /// This one, where the answer shows it.
    Column(String),
}

/// Where tables are looked for that messages refer to.
pub(crate) struct Tables<'s, 'a> {
    pub(crate) scope: &'s Scope<'a>,
    /// The message's author, and a column that is equal to it in every row.
    pub(crate) author: Of,
    pub(crate) also_author: Option<Of>,
}

/// What was found.
pub(crate) struct Found<'q> {
    refers: Vec<Refer>,
    /// Their numbers in the statement.
    pub(crate) numbers: Vec<usize>,
    /// The conditions that say which rows they are, where these hold in every row.
    pub(crate) keys: Vec<&'q Condition>,
    /// What else is said in ON of those of a LEFT JOIN.
    pub(crate) beside: Vec<&'q Condition>,
}

impl<'a> Tables<'_, 'a> {
    /// These tables, joined by their keys. `None`: one of them is not.
    pub(crate) fn refers<'q>(
        &self,
        tables: &[&Seen<'a>],
        holds: &[&'q Condition],
    ) -> Option<Found<'q>>
    where
        'a: 'q,
    {
        let mut found = Found {
            refers: Vec::new(),
            numbers: tables.iter().map(|seen| seen.number).collect(),
            keys: Vec::new(),
            beside: Vec::new(),
        };
        for seen in tables {
            let mut on = Vec::new();
            if seen.source.outer {
                conjuncts(seen.source.on.as_ref()?, &mut on);
            }
            let all = if seen.source.outer { &on[..] } else { holds };
            let mut keys = all
                .iter()
                .filter_map(|one| Some((*one, self.key(one, seen)?)));
            let (own, (id, by)) = keys.next()?;
            if seen.source.outer {
                let others = on.iter().filter(|one| !std::ptr::eq(**one, own));
                found.beside.extend(others);
            } else {
                found.keys.push(own);
            }
            found.refers.push(Refer {
                table: seen.source.table.text.clone(),
                id: seen.table.columns.get(id)?.name.clone(),
                by,
                decides: !seen.source.outer,
            });
        }
        Some(found)
    }

    /// The key's column, and what it is equal to, where a condition says that.
    fn key(&self, condition: &Condition, seen: &Seen<'_>) -> Option<(usize, By)> {
        let Says::Compare(Operand::Column(left), Comparison::Equal, Operand::Column(right)) =
            &condition.is
        else {
            return None;
        };
        let (left, right) = (
            self.scope.resolve(left).ok()?,
            self.scope.resolve(right).ok()?,
        );
        let (own, other) = match (left.table == seen.number, right.table == seen.number) {
            (true, false) => (left, right),
            (false, true) => (right, left),
            _ => return None,
        };
        let whole = [own, other].map(|of| self.scope.class(of) == Class::Integer);
        let unique = seen.table.unique.iter().any(|key| *key == [own.column]);
        let by = if other == self.author || self.also_author == Some(other) {
            By::Author
        } else if other.table == self.author.table {
            By::Column(self.scope.facts(other)?.name.clone())
        } else {
            return None;
        };
        (whole == [true, true] && unique).then_some((own.column, by))
    }

    /// The tables, where `rest` says which messages pass.
    pub(crate) fn decided(&self, found: Found<'_>, rest: &[&Condition]) -> Vec<Refer> {
        let mut decide = Vec::new();
        for condition in rest.iter().chain(&found.beside) {
            columns(condition, &mut |column| {
                decide.extend(self.scope.resolve(column).ok().map(|of| of.table));
            });
        }
        let numbers = found.numbers.iter();
        let each = found.refers.into_iter().zip(numbers);
        let refers = each.map(|(refer, number)| Refer {
            decides: refer.decides || decide.contains(number),
            ..refer
        });
        refers.collect()
    }
}

/// Every column in a condition without a SELECT in it.
pub(crate) fn columns<'q>(condition: &'q Condition, each: &mut impl FnMut(&'q Column)) {
    let mut operands = |all: &[&'q Operand]| {
        let columns = all.iter().flat_map(|operand| operand.columns());
        columns.for_each(&mut *each);
    };
    match &condition.is {
        Says::And(all) | Says::Or(all) => all.iter().for_each(|one| columns(one, each)),
        Says::Not(one) => columns(one, each),
        Says::Compare(left, _, right) => operands(&[left, right]),
        Says::Pairs([a, b], _, [c, d]) => operands(&[a, b, c, d]),
        Says::Between(operand, from, to, _) => operands(&[operand, from, to]),
        Says::Null(operand, _) | Says::Like(operand, ..) | Says::In(operand, ..) => {
            operands(&[operand]);
        }
        Says::Truth(column) => each(column),
        Says::InRows(..) | Says::Exists(_) => {}
    }
}
