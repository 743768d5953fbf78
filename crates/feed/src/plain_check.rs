//! Checks that nothing in a statement may fail, warn or act: its operands are of one class each, and its literals plain.

use crate::equalities::{ColumnEqualities, conditions_of_every_row};
use crate::join_cardinality::has_one_row;
use crate::plain_functions::{ArgumentKind, PlainFunction};
use crate::query::{
    ColumnReference, ConditionKind, Literal, LiteralList, Operand, ScalarSubquery, ScalarValue,
    SelectCondition, SelectItem, Subquery,
};
use crate::refusal::NarrowingRefusal;
use crate::schema::{ComparisonClass, Schema};
use crate::scope::{NameScope, ScopedTable};
use crate::words::{ListKind, StatementWords, WordKind};

/// A value to check in each statement, because it is compared with this class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteralCheck {
    /// The literal.
    pub literal: Literal,
    /// The class that it is compared with.
    pub class: ComparisonClass,
}

/// Checks a whole statement.
pub struct PlainCheck<'a> {
    /// The statement's words.
    pub words: &'a StatementWords,
    /// The tables that it may name.
    pub schema: &'a dyn Schema,
    /// Values to check in each statement.
    pub literal_checks: Vec<LiteralCheck>,
    /// A TIMESTAMP is compared. By row and by index the result may differ in an hour that occurs twice.
    pub zoned: bool,
}

/// An operand's class, or the literal that it is.
#[derive(Clone, Copy)]
enum OperandKind {
    Of(ComparisonClass),
    Literal(Literal),
}

impl<'a> PlainCheck<'a> {
    /// Checks a column of the reply.
    ///
    /// # Errors
    /// What is not plain about it.
    pub fn item(
        &mut self,
        item: &'a SelectItem,
        scope: &NameScope<'a>,
    ) -> Result<(), NarrowingRefusal> {
        if let SelectItem::Operand(operand, _) = item {
            return match operand {
                Operand::Literal(Literal::Moment(_)) => Err(NarrowingRefusal::NotPlain),
                Operand::Count(Some(column)) => scope.resolve(column).map(|_| ()),
                _ => self.operand(operand, scope).map(|_| ()),
            };
        }
        if scope.shown_tables(item).next().is_none() {
            return Err(NarrowingRefusal::Names);
        }
        let mut columns = scope
            .shown_tables(item)
            .flat_map(|scoped| &scoped.table.columns);
        match columns.any(|column| column.is_virtual) {
            true => Err(NarrowingRefusal::NotPlain),
            false => Ok(()),
        }
    }

    /// Checks a condition and all its parts.
    ///
    /// # Errors
    /// What is not plain about it.
    pub fn condition(
        &mut self,
        condition: &'a SelectCondition,
        scope: &NameScope<'a>,
    ) -> Result<(), NarrowingRefusal> {
        match &condition.kind {
            ConditionKind::And(all) | ConditionKind::Or(all) => {
                all.iter().try_for_each(|one| self.condition(one, scope))
            }
            ConditionKind::Not(inner) => self.condition(inner, scope),
            ConditionKind::Compare(left, _, right) => self.compare(left, right, scope),
            ConditionKind::ComparePairs(left, _, right) => {
                let [a, b] = left;
                let [c, d] = right;
                self.compare(a, c, scope)?;
                self.compare(b, d, scope)
            }
            // Whether there is a first row does not depend on which it is.
            ConditionKind::Null(Operand::Subquery(select), _)
                if select.value == ScalarValue::FirstRow =>
            {
                self.subquery(&select.rows, scope)?;
                let inner = scope.within(&select.rows.sources, self.schema)?;
                let column = select
                    .rows
                    .columns
                    .first()
                    .ok_or(NarrowingRefusal::NotPlain)?;
                let of = inner.resolve(column)?;
                let is_outer = |scoped: &ScopedTable<'_>| scoped.source.outer.is_some();
                let may_be_null = inner.table(of.table).is_none_or(is_outer)
                    || inner
                        .column_schema(of)
                        .is_none_or(|facts| facts.is_nullable);
                match may_be_null {
                    false => Ok(()),
                    true => Err(NarrowingRefusal::NotPlain),
                }
            }
            ConditionKind::Null(operand, _) => self.operand(operand, scope).map(|_| ()),
            ConditionKind::IsTruth(operand, ..) => match self.operand(operand, scope)? {
                OperandKind::Of(ComparisonClass::Integer) => Ok(()),
                _ => Err(NarrowingRefusal::Types),
            },
            ConditionKind::Between(operand, from, to, _) => {
                self.compare(operand, from, scope)?;
                self.compare(operand, to, scope)
            }
            ConditionKind::Like(operand, pattern, _) => {
                match self.compared_operand(operand, scope)? {
                    OperandKind::Of(ComparisonClass::Text) => {
                        self.check_literal(*pattern, ComparisonClass::Text)
                    }
                    _ => Err(NarrowingRefusal::Types),
                }
            }
            ConditionKind::In(operand, list, _) => self.list(operand, list, scope),
            ConditionKind::InSubquery(operand, rows, _) => {
                let left = self.compared_operand(operand, scope)?;
                let right = self.subquery(rows, scope)?;
                match (left, right) {
                    (OperandKind::Of(left), Some(right)) if left.compares_with(right) => Ok(()),
                    (OperandKind::Literal(literal), Some(right)) => {
                        self.check_literal(literal, right)
                    }
                    _ => Err(NarrowingRefusal::Types),
                }
            }
            ConditionKind::Exists(rows) => self.subquery(rows, scope).map(|_| ()),
            ConditionKind::Truth(column) => match scope.class(scope.resolve(column)?) {
                ComparisonClass::Integer => Ok(()),
                _ => Err(NarrowingRefusal::Types),
            },
        }
    }

    /// Checks a subquery. Returns the class of its first column.
    fn subquery(
        &mut self,
        rows: &'a Subquery,
        scope: &NameScope<'a>,
    ) -> Result<Option<ComparisonClass>, NarrowingRefusal> {
        let inner = scope.within(&rows.sources, self.schema)?;
        // Of several joins, an ON sees the tables of its own, and then those of the outer SELECT.
        // An ON may name a table around it where a later one of its own FROM is called alike.
        let is_around = |scoped: &ScopedTable<'_>| {
            let mut around = scope.all_tables();
            around.any(|other| {
                let name = other.source.reference_name();
                name.eq_ignore_ascii_case(scoped.source.reference_name())
            })
        };
        let mut later = inner.innermost_tables().iter().skip(1);
        if later.any(is_around) {
            return Err(NarrowingRefusal::Names);
        }
        let names_join = |column: &ColumnReference| !column.qualifier.is_empty();
        let has_several_joins = rows.sources.len() > 2;
        for source in &rows.sources {
            if let Some(on) = &source.on {
                let mut named = true;
                on.visit_all_columns(&mut |column| named &= names_join(column));
                if has_several_joins && !named {
                    return Err(NarrowingRefusal::Names);
                }
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

    fn list(
        &mut self,
        operand: &'a Operand,
        list: &LiteralList,
        scope: &NameScope<'a>,
    ) -> Result<(), NarrowingRefusal> {
        let OperandKind::Of(class) = self.compared_operand(operand, scope)? else {
            return Err(NarrowingRefusal::Types);
        };
        match list {
            LiteralList::Whole(at) => {
                match (self.words.words.get(*at).map(|word| word.kind), class) {
                    (
                        Some(WordKind::List(ListKind::Numbers)),
                        ComparisonClass::Integer | ComparisonClass::Number,
                    )
                    | (Some(WordKind::List(ListKind::Texts)), ComparisonClass::Text) => Ok(()),
                    (Some(WordKind::List(ListKind::Parameters)), _) => {
                        self.check_literal(Literal::Parameter(*at), class)
                    }
                    (Some(WordKind::List(ListKind::Texts)), ComparisonClass::Integer) => {
                        self.check_literal(Literal::Text(*at), class)
                    }
                    _ => Err(NarrowingRefusal::Types),
                }
            }
            LiteralList::Each(all) => all.iter().try_for_each(|one| match (one, class) {
                // Numbers and strings in one list.
                (Literal::Text(_), ComparisonClass::Integer) => Err(NarrowingRefusal::Types),
                _ => self.check_literal(*one, class),
            }),
        }
    }

    fn compare(
        &mut self,
        left: &'a Operand,
        right: &'a Operand,
        scope: &NameScope<'a>,
    ) -> Result<(), NarrowingRefusal> {
        match (
            self.compared_operand(left, scope)?,
            self.compared_operand(right, scope)?,
        ) {
            (OperandKind::Of(left), OperandKind::Of(right)) if left.compares_with(right) => Ok(()),
            (OperandKind::Of(class), OperandKind::Literal(literal))
            | (OperandKind::Literal(literal), OperandKind::Of(class)) => {
                self.check_literal(literal, class)
            }
            (
                OperandKind::Literal(Literal::Number(_)),
                OperandKind::Literal(Literal::Number(_)),
            ) => Ok(()),
            _ => Err(NarrowingRefusal::Types),
        }
    }

    /// Checks an operand of a comparison.
    fn compared_operand(
        &mut self,
        operand: &'a Operand,
        scope: &NameScope<'a>,
    ) -> Result<OperandKind, NarrowingRefusal> {
        let zoned =
            |column: &&ColumnReference| scope.resolve(column).is_ok_and(|of| scope.is_zoned(of));
        self.zoned |= operand.columns().iter().any(zoned);
        self.operand(operand, scope)
    }

    fn operand(
        &mut self,
        operand: &'a Operand,
        scope: &NameScope<'a>,
    ) -> Result<OperandKind, NarrowingRefusal> {
        match operand {
            Operand::Column(column) => Ok(OperandKind::Of(scope.class(scope.resolve(column)?))),
            Operand::Literal(literal) => Ok(OperandKind::Literal(*literal)),
            Operand::Now => Ok(OperandKind::Of(ComparisonClass::Moment(6))),
            Operand::Count(_) => Ok(OperandKind::Of(ComparisonClass::Integer)),
            Operand::Function(function, arguments) => self.function(function, arguments, scope),
            Operand::Case(branches, otherwise) => {
                let mut class = None;
                for (condition, value) in branches {
                    self.condition(condition, scope)?;
                    self.add_result(value, &mut class, scope)?;
                }
                if let Some(value) = otherwise {
                    self.add_result(value, &mut class, scope)?;
                }
                Ok(OperandKind::Of(class.unwrap_or(ComparisonClass::Other)))
            }
            Operand::Condition(condition) => {
                self.condition(condition, scope)?;
                Ok(OperandKind::Of(ComparisonClass::Integer))
            }
            Operand::Subquery(select) => self.scalar_subquery(select, scope),
            Operand::Coalesce(all) => {
                let mut class = None;
                for one in all {
                    match (self.operand(one, scope)?, class) {
                        (OperandKind::Of(own), None) => class = Some(own),
                        (OperandKind::Of(operand_class), Some(other))
                            if operand_class.compares_with(other) => {}
                        // The result would be a string.
                        (
                            OperandKind::Literal(Literal::Text(_)),
                            Some(ComparisonClass::Integer),
                        ) => {
                            return Err(NarrowingRefusal::Types);
                        }
                        (OperandKind::Literal(literal), Some(class)) => {
                            self.check_literal(literal, class)?
                        }
                        _ => return Err(NarrowingRefusal::Types),
                    }
                }
                class.map(OperandKind::Of).ok_or(NarrowingRefusal::Types)
            }
        }
    }

    /// One of several results of a CASE: of one class each, or literals.
    fn add_result(
        &mut self,
        value: &'a Operand,
        class: &mut Option<ComparisonClass>,
        scope: &NameScope<'a>,
    ) -> Result<(), NarrowingRefusal> {
        let own = match self.operand(value, scope)? {
            OperandKind::Of(own) => own,
            OperandKind::Literal(Literal::Null) => return Ok(()),
            OperandKind::Literal(Literal::Number(_) | Literal::Negative(_) | Literal::Truth(_)) => {
                ComparisonClass::Integer
            }
            OperandKind::Literal(Literal::Text(_)) => ComparisonClass::Text,
            OperandKind::Literal(_) => return Err(NarrowingRefusal::Types),
        };
        match class {
            Some(class) if !class.compares_with(own) => Err(NarrowingRefusal::Types),
            _ => {
                class.get_or_insert(own);
                Ok(())
            }
        }
    }

    fn function(
        &mut self,
        function: &PlainFunction,
        arguments: &'a [Operand],
        scope: &NameScope<'a>,
    ) -> Result<OperandKind, NarrowingRefusal> {
        if !function.takes(arguments.len()) {
            return Err(NarrowingRefusal::NotPlain);
        }
        let mut first = None;
        for (at, argument) in arguments.iter().enumerate() {
            let wanted = function.argument(at).ok_or(NarrowingRefusal::NotPlain)?;
            let zoned = |column: &&ColumnReference| {
                scope.resolve(column).is_ok_and(|of| scope.is_zoned(of))
            };
            self.zoned |= argument.columns().iter().any(zoned);
            let kind = self.operand(argument, scope)?;
            // A result longer than `max_allowed_packet` is NULL, with a warning.
            let is_long = |column: &&ColumnReference| {
                let of = scope
                    .resolve(column)
                    .ok()
                    .and_then(|of| scope.column_schema(of));
                of.is_none_or(|facts| facts.is_long)
            };
            if function.repeats
                && (argument.has_subquery() || argument.columns().iter().any(is_long))
            {
                return Err(NarrowingRefusal::NotPlain);
            }
            let fits = match (wanted, kind) {
                (ArgumentKind::Number, OperandKind::Literal(literal)) => matches!(
                    literal,
                    Literal::Number(_) | Literal::Negative(_) | Literal::Truth(_)
                ),
                (ArgumentKind::Text, OperandKind::Of(ComparisonClass::Text))
                | (
                    ArgumentKind::Text | ArgumentKind::Pattern,
                    OperandKind::Literal(Literal::Text(_)),
                )
                | (ArgumentKind::Moment, OperandKind::Of(ComparisonClass::Moment(_)))
                | (
                    ArgumentKind::Any,
                    OperandKind::Literal(Literal::Text(_) | Literal::Number(_) | Literal::Null),
                ) => true,
                (ArgumentKind::Any, OperandKind::Of(class)) => class != ComparisonClass::Other,
                (ArgumentKind::Undated, OperandKind::Of(class)) => {
                    !matches!(class, ComparisonClass::Other | ComparisonClass::Moment(_))
                }
                (ArgumentKind::Same, OperandKind::Of(class)) => {
                    first.is_some_and(|first: ComparisonClass| first.compares_with(class))
                }
                // The result would be a string.
                (ArgumentKind::Same, OperandKind::Literal(Literal::Text(_)))
                    if first == Some(ComparisonClass::Integer) =>
                {
                    false
                }
                (ArgumentKind::Same, OperandKind::Literal(literal)) => {
                    first.is_some_and(|class| self.check_literal(literal, class).is_ok())
                }
                _ => false,
            };
            if !fits {
                return Err(NarrowingRefusal::NotPlain);
            }
            if let (0, OperandKind::Of(class)) = (at, kind) {
                first = Some(class);
            }
        }
        let class = function.result_class(first.unwrap_or(ComparisonClass::Other));
        Ok(OperandKind::Of(class))
    }

    /// Checks a SELECT of one value: it has one row for certain.
    fn scalar_subquery(
        &mut self,
        select: &'a ScalarSubquery,
        scope: &NameScope<'a>,
    ) -> Result<OperandKind, NarrowingRefusal> {
        let rows = &select.rows;
        let class = self.subquery(rows, scope)?;
        let class = match (select.value, class) {
            (ScalarValue::Count, _) => ComparisonClass::Integer,
            // A sum of decimals may overflow.
            (ScalarValue::Sum, Some(ComparisonClass::Integer)) => ComparisonClass::Number,
            (ScalarValue::Extreme, Some(class)) => class,
            (ScalarValue::Row | ScalarValue::FirstRow, Some(class)) => {
                let inner = scope.within(&rows.sources, self.schema)?;
                let holds = conditions_of_every_row(&rows.sources, rows.filter.as_ref());
                let mut equal = ColumnEqualities::default();
                equal.add_conditions(&holds, &inner);
                if !has_one_row(&inner, &equal) {
                    return Err(NarrowingRefusal::NotPlain);
                }
                class
            }
            _ => return Err(NarrowingRefusal::Types),
        };
        Ok(OperandKind::Of(class))
    }

    /// Checks whether a literal's kind may be compared with a class. Its value is checked in each statement.
    fn check_literal(
        &mut self,
        literal: Literal,
        with: ComparisonClass,
    ) -> Result<(), NarrowingRefusal> {
        let number = matches!(with, ComparisonClass::Integer | ComparisonClass::Number);
        match literal {
            Literal::Null if with != ComparisonClass::Other => Ok(()),
            Literal::Number(_) | Literal::Negative(_) | Literal::Truth(_) if number => Ok(()),
            Literal::Decimal if with == ComparisonClass::Number => Ok(()),
            Literal::Text(_) if with == ComparisonClass::Text => Ok(()),
            Literal::Text(_)
                if matches!(with, ComparisonClass::Moment(_) | ComparisonClass::Integer) =>
            {
                self.literal_checks.push(LiteralCheck {
                    literal,
                    class: with,
                });
                Ok(())
            }
            Literal::Moment(_) if matches!(with, ComparisonClass::Moment(_)) => {
                self.literal_checks.push(LiteralCheck {
                    literal,
                    class: with,
                });
                Ok(())
            }
            Literal::Parameter(_) if with != ComparisonClass::Other => {
                self.literal_checks.push(LiteralCheck {
                    literal,
                    class: with,
                });
                Ok(())
            }
            _ => Err(NarrowingRefusal::Types),
        }
    }
}
