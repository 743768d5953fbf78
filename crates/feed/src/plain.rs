//! Nothing in a statement may fail, warn or act: its operands are of one class each, and its literals plain.

use crate::query::{Column, Condition, Item, List, Literal, Operand, Rows, Says};
use crate::refused::Refused;
use crate::schema::{Class, Schema};
use crate::scope::Scope;
use crate::words::{Is, Members, Words};

/// A value that has to be looked at in each statement: it is compared with this class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The word.
    pub literal: Literal,
    /// What it is compared with.
    pub with: Class,
}

/// Looks over a whole statement.
pub struct Plain<'a> {
    /// Its words.
    pub words: &'a Words,
    /// Its tables.
    pub schema: &'a dyn Schema,
    /// What is left to be looked at in each statement.
    pub looks: Vec<Look>,
    /// A TIMESTAMP is compared: by row and by index it may come out otherwise in an hour that comes twice.
    pub zoned: bool,
}

/// What an operand is.
#[derive(Clone, Copy)]
enum Kind {
    Of(Class),
    Literal(Literal),
}

impl<'a> Plain<'a> {
    /// A column of the answer.
    ///
    /// # Errors
    /// What is not plain about it.
    pub fn item(&mut self, item: &Item, scope: &Scope<'_>) -> Result<(), Refused> {
        if let Item::Operand(operand, _) = item {
            return self.operand(operand, scope).map(|_| ());
        }
        if scope.shown(item).next().is_none() {
            return Err(Refused::Names);
        }
        let mut columns = scope.shown(item).flat_map(|seen| &seen.table.columns);
        match columns.any(|column| column.is_virtual) {
            true => Err(Refused::NotPlain),
            false => Ok(()),
        }
    }

    /// A condition, with all that stands in it.
    ///
    /// # Errors
    /// What is not plain about it.
    pub fn condition(
        &mut self,
        condition: &'a Condition,
        scope: &Scope<'a>,
    ) -> Result<(), Refused> {
        match &condition.is {
            Says::And(all) | Says::Or(all) => {
                all.iter().try_for_each(|one| self.condition(one, scope))
            }
            Says::Not(inner) => self.condition(inner, scope),
            Says::Compare(left, _, right) => self.compare(left, right, scope),
            Says::Pairs(left, _, right) => {
                let [a, b] = left;
                let [c, d] = right;
                self.compare(a, c, scope)?;
                self.compare(b, d, scope)
            }
            Says::Null(operand, _) => self.operand(operand, scope).map(|_| ()),
            Says::Between(operand, from, to, _) => {
                self.compare(operand, from, scope)?;
                self.compare(operand, to, scope)
            }
            Says::Like(operand, pattern, _) => match self.compared(operand, scope)? {
                Kind::Of(Class::Text) => self.fits(*pattern, Class::Text),
                _ => Err(Refused::Types),
            },
            Says::In(operand, list, _) => self.list(operand, list, scope),
            Says::InRows(operand, rows, _) => {
                let left = self.compared(operand, scope)?;
                let right = self.rows(rows, scope)?;
                match (left, right) {
                    (Kind::Of(left), Some(right)) if left.compares_with(right) => Ok(()),
                    _ => Err(Refused::Types),
                }
            }
            Says::Exists(rows) => self.rows(rows, scope).map(|_| ()),
            Says::Truth(column) => match scope.class(scope.resolve(column)?) {
                Class::Integer => Ok(()),
                _ => Err(Refused::Types),
            },
        }
    }

    /// A SELECT within a condition; returns what its first column is.
    fn rows(&mut self, rows: &'a Rows, scope: &Scope<'a>) -> Result<Option<Class>, Refused> {
        let inner = scope.within(&rows.sources, self.schema)?;
        for source in &rows.sources {
            if let Some(on) = &source.on {
                self.condition(on, &inner)?;
            }
        }
        if let Some(filter) = &rows.filter {
            self.condition(filter, &inner)?;
        }
        let columns = rows.columns.iter().map(|column| inner.resolve(column));
        let of = columns.collect::<Result<Vec<_>, _>>()?.first().copied();
        self.zoned |= of.is_some_and(|of| inner.is_zoned(of));
        Ok(of.map(|of| inner.class(of)))
    }

    fn list(&mut self, operand: &Operand, list: &List, scope: &Scope<'_>) -> Result<(), Refused> {
        let Kind::Of(class) = self.compared(operand, scope)? else {
            return Err(Refused::Types);
        };
        match list {
            List::Whole(at) => match (self.words.words.get(*at).map(|word| word.is), class) {
                (Some(Is::List(Members::Numbers)), Class::Integer | Class::Number)
                | (Some(Is::List(Members::Texts)), Class::Text) => Ok(()),
                (Some(Is::List(Members::Parameters)), _) => {
                    self.fits(Literal::Parameter(*at), class)
                }
                (Some(Is::List(Members::Texts)), Class::Integer) => {
                    self.fits(Literal::Text(*at), class)
                }
                _ => Err(Refused::Types),
            },
            List::Each(all) => all.iter().try_for_each(|one| match (one, class) {
                // Numbers and strings side by side.
                (Literal::Text(_), Class::Integer) => Err(Refused::Types),
                _ => self.fits(*one, class),
            }),
        }
    }

    fn compare(
        &mut self,
        left: &Operand,
        right: &Operand,
        scope: &Scope<'_>,
    ) -> Result<(), Refused> {
        match (self.compared(left, scope)?, self.compared(right, scope)?) {
            (Kind::Of(left), Kind::Of(right)) if left.compares_with(right) => Ok(()),
            (Kind::Of(class), Kind::Literal(literal))
            | (Kind::Literal(literal), Kind::Of(class)) => self.fits(literal, class),
            (Kind::Literal(Literal::Number(_)), Kind::Literal(Literal::Number(_))) => Ok(()),
            _ => Err(Refused::Types),
        }
    }

    /// An operand that is compared.
    fn compared(&mut self, operand: &Operand, scope: &Scope<'_>) -> Result<Kind, Refused> {
        let zoned = |column: &&Column| scope.resolve(column).is_ok_and(|of| scope.is_zoned(of));
        self.zoned |= operand.columns().iter().any(zoned);
        self.operand(operand, scope)
    }

    fn operand(&mut self, operand: &Operand, scope: &Scope<'_>) -> Result<Kind, Refused> {
        match operand {
            Operand::Column(column) => Ok(Kind::Of(scope.class(scope.resolve(column)?))),
            Operand::Literal(literal) => Ok(Kind::Literal(*literal)),
            Operand::Now => Ok(Kind::Of(Class::Moment(6))),
            Operand::Coalesce(all) => {
                let mut class = None;
                for one in all {
                    match (self.operand(one, scope)?, class) {
                        (Kind::Of(own), None) => class = Some(own),
                        (Kind::Of(own), Some(other)) if own.compares_with(other) => {}
                        // All of it would be a string.
                        (Kind::Literal(Literal::Text(_)), Some(Class::Integer)) => {
                            return Err(Refused::Types);
                        }
                        (Kind::Literal(literal), Some(class)) => self.fits(literal, class)?,
                        _ => return Err(Refused::Types),
                    }
                }
                class.map(Kind::Of).ok_or(Refused::Types)
            }
        }
    }

    /// Whether a literal may be compared with a class, as far as its kind tells; what its value has to tell is looked at later.
    fn fits(&mut self, literal: Literal, with: Class) -> Result<(), Refused> {
        let number = matches!(with, Class::Integer | Class::Number);
        match literal {
            Literal::Null if with != Class::Other => Ok(()),
            Literal::Number(_) | Literal::Negative(_) | Literal::Truth(_) if number => Ok(()),
            Literal::Decimal if with == Class::Number => Ok(()),
            Literal::Text(_) if with == Class::Text => Ok(()),
            Literal::Text(_) if matches!(with, Class::Moment(_) | Class::Integer) => {
                self.looks.push(Look { literal, with });
                Ok(())
            }
            Literal::Parameter(_) if with != Class::Other => {
                self.looks.push(Look { literal, with });
                Ok(())
            }
            _ => Err(Refused::Types),
        }
    }
}
