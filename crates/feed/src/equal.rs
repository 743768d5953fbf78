//! Which columns are equal in every row of a SELECT, and to which literals, or to one of which list.

use std::collections::BTreeMap;

use crate::query::{Comparison, Condition, List, Literal, Operand, Says, Source};
use crate::schema::Class;
use crate::scope::{Of, Scope};

/// Columns that are equal wherever all conditions hold, joined into classes.
#[derive(Clone, Debug, Default)]
pub struct Equal {
    /// From a column to one that stands for it.
    leads_to: BTreeMap<Of, Of>,
    /// What a class is equal to.
    literals: BTreeMap<Of, Literal>,
    /// Of what it is one.
    lists: BTreeMap<Of, List>,
}

/// The conditions that hold in every row: WHERE and each ON of an inner join, taken apart at AND.
pub fn certain<'q>(sources: &'q [Source], filter: Option<&'q Condition>) -> Vec<&'q Condition> {
    let inner = sources.iter().filter(|source| !source.outer);
    let mut all = Vec::new();
    for condition in inner.filter_map(|source| source.on.as_ref()).chain(filter) {
        conjuncts(condition, &mut all);
    }
    all
}

/// A condition, taken apart at AND.
pub fn conjuncts<'q>(condition: &'q Condition, all: &mut Vec<&'q Condition>) {
    match &condition.is {
        Says::And(parts) => parts.iter().for_each(|part| conjuncts(part, all)),
        _ => all.push(condition),
    }
}

impl Equal {
    /// With what these conditions say; names were resolved before, so one that cannot be says nothing.
    pub fn learn(&mut self, conditions: &[&Condition], scope: &Scope<'_>) {
        for condition in conditions {
            let (left, right) = match &condition.is {
                Says::Compare(left, Comparison::Equal, right) => (left, right),
                Says::In(Operand::Column(column), list, true) => {
                    if let Ok(of) = scope.resolve(column) {
                        let of = self.stands_for(of);
                        self.lists.entry(of).or_insert_with(|| list.clone());
                    }
                    continue;
                }
                _ => continue,
            };
            match (left, right) {
                (Operand::Column(left), Operand::Column(right)) => {
                    if let (Ok(left), Ok(right)) = (scope.resolve(left), scope.resolve(right))
                        && scope.class(left) == Class::Integer
                        && scope.class(right) == Class::Integer
                    {
                        self.join(left, right);
                    }
                }
                (Operand::Column(column), Operand::Literal(literal))
                | (Operand::Literal(literal), Operand::Column(column)) => {
                    if let Ok(of) = scope.resolve(column) {
                        let of = self.stands_for(of);
                        self.literals.entry(of).or_insert(*literal);
                    }
                }
                _ => {}
            }
        }
    }

    /// These two are equal.
    pub fn join(&mut self, left: Of, right: Of) {
        let (left, right) = (self.stands_for(left), self.stands_for(right));
        if left == right {
            return;
        }
        self.leads_to.insert(right, left);
        if let Some(literal) = self.literals.remove(&right) {
            self.literals.entry(left).or_insert(literal);
        }
        if let Some(list) = self.lists.remove(&right) {
            self.lists.entry(left).or_insert(list);
        }
    }

    fn stands_for(&self, mut of: Of) -> Of {
        while let Some(next) = self.leads_to.get(&of) {
            of = *next;
        }
        of
    }

    /// Whether two columns are equal in every row.
    #[must_use]
    pub fn are_equal(&self, left: Of, right: Of) -> bool {
        self.stands_for(left) == self.stands_for(right)
    }

    /// The literal that a column is equal to in every row.
    #[must_use]
    pub fn literal(&self, of: Of) -> Option<Literal> {
        self.literals.get(&self.stands_for(of)).copied()
    }

    /// The list that a column is one of in every row.
    #[must_use]
    pub fn list(&self, of: Of) -> Option<&List> {
        self.lists.get(&self.stands_for(of))
    }

    /// The columns that this one is known to be equal to.
    pub fn equals(&self, of: Of) -> impl Iterator<Item = Of> + '_ {
        let own = self.stands_for(of);
        let all = self.leads_to.iter().flat_map(|(a, b)| [*a, *b]);
        all.filter(move |other| self.stands_for(*other) == own)
    }
}
