//! Conditions and operands.

use super::word_reader::{NamedSelect, WordReader};
use crate::plain_functions::{PlainFunction, plain_function};
use crate::query::{
    ColumnReference, ComparisonOperator, ConditionKind, Literal, LiteralList, Operand,
    ScalarSubquery, ScalarValue, SelectCondition, Subquery,
};
use crate::refusal::NarrowingRefusal;
use crate::words::WordKind;

/// One side of a comparison of pairs.
type OperandPair = [Operand; 2];

/// The left side of a predicate.
enum LeftOperand {
    Single(Operand),
    Pair(OperandPair),
}

impl WordReader<'_> {
    /// Conditions joined by OR.
    pub(super) fn condition(&mut self) -> Result<SelectCondition, NarrowingRefusal> {
        self.nested(|reader| reader.joined_by("OR", WordReader::conjunction, ConditionKind::Or))
    }

    fn conjunction(&mut self) -> Result<SelectCondition, NarrowingRefusal> {
        self.joined_by("AND", WordReader::negation, ConditionKind::And)
    }

    fn joined_by(
        &mut self,
        keyword: &str,
        mut one: impl FnMut(&mut Self) -> Result<SelectCondition, NarrowingRefusal>,
        combine: fn(Vec<SelectCondition>) -> ConditionKind,
    ) -> Result<SelectCondition, NarrowingRefusal> {
        let start = self.position();
        let first = one(self)?;
        if !self.is_next(keyword) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.take_keyword(keyword) {
            all.push(one(self)?);
        }
        Ok(SelectCondition {
            kind: combine(all),
            words: start..self.position(),
        })
    }

    /// NOT is read only where it has one meaning in every mode: before a parenthesis, EXISTS, or a single column.
    fn negation(&mut self) -> Result<SelectCondition, NarrowingRefusal> {
        let start = self.position();
        if !self.take_keyword("NOT") {
            return self.predicate();
        }
        let inner = if self.is_next("EXISTS") {
            self.predicate()?
        } else if self.is_next_punct(b'(') {
            let inner = self.predicate()?;
            // In `NOT (a) = b` and `NOT (a, b) < (c, d)`, the mode decides what is negated.
            match self.is_in_parentheses(&inner.words) {
                true => inner,
                false => return Err(NarrowingRefusal::NotUnderstood),
            }
        } else {
            let at = self.position();
            let column = self.column()?;
            SelectCondition {
                kind: ConditionKind::Truth(column),
                words: at..self.position(),
            }
        };
        self.expect_predicate_end()?;
        Ok(SelectCondition {
            kind: ConditionKind::Not(Box::new(inner)),
            words: start..self.position(),
        })
    }

    /// One predicate, or a condition in parentheses.
    fn predicate(&mut self) -> Result<SelectCondition, NarrowingRefusal> {
        let start = self.position();
        let kind = if self.take_keyword("EXISTS") {
            self.expect_punct(b'(')?;
            let rows = self.subquery(true)?;
            self.expect_punct(b')')?;
            ConditionKind::Exists(Box::new(rows))
        } else if self.is_next_punct(b'(') && !self.begins_pair() && !self.begins_operand() {
            self.advance();
            let inner = self.condition()?;
            self.expect_punct(b')')?;
            inner.kind
        } else {
            let left = match self.is_next_punct(b'(') && self.begins_pair() {
                true => LeftOperand::Pair(self.pair()?),
                false => LeftOperand::Single(self.operand_in_parentheses()?),
            };
            self.predicate_after(left)?
        };
        self.expect_predicate_end()?;
        Ok(SelectCondition {
            kind,
            words: start..self.position(),
        })
    }

    /// `(a, b)`: the parenthesis of a row, not of a condition.
    fn begins_pair(&mut self) -> bool {
        let start = self.position();
        self.advance();
        let is = self.operand().is_ok() && self.is_next_punct(b',');
        self.rewind(start);
        is
    }

    /// `(a)` before an operator: the parenthesis of an operand, not of a condition.
    fn begins_operand(&mut self) -> bool {
        const NEXT: [&str; 5] = ["IN", "IS", "NOT", "BETWEEN", "LIKE"];
        let start = self.position();
        let is = self.operand_in_parentheses().is_ok()
            && (NEXT.iter().any(|word| self.is_next(word))
                || [b'=', b'<', b'>', b'!']
                    .iter()
                    .any(|byte| self.is_next_punct(*byte)));
        self.rewind(start);
        is
    }

    /// An operand in any number of parentheses.
    pub(super) fn operand_in_parentheses(&mut self) -> Result<Operand, NarrowingRefusal> {
        if !self.is_next_punct(b'(') || self.begins_select() {
            return self.operand();
        }
        self.advance();
        let operand = self.nested(WordReader::operand_in_parentheses)?;
        self.expect_punct(b')')?;
        Ok(operand)
    }

    fn pair(&mut self) -> Result<OperandPair, NarrowingRefusal> {
        self.expect_punct(b'(')?;
        let first = self.operand()?;
        self.expect_punct(b',')?;
        let second = self.operand()?;
        self.expect_punct(b')')?;
        Ok([first, second])
    }

    fn predicate_after(&mut self, left: LeftOperand) -> Result<ConditionKind, NarrowingRefusal> {
        let left = match left {
            LeftOperand::Pair(pair) => {
                let comparison = self.comparison().ok_or_else(|| self.refusal())?;
                return Ok(ConditionKind::ComparePairs(pair, comparison, self.pair()?));
            }
            LeftOperand::Single(operand) => operand,
        };
        // `AND true`, as generated texts end.
        if matches!(left, Operand::Literal(Literal::Truth(true))) && self.ends_predicate() {
            return Ok(ConditionKind::And(Vec::new()));
        }
        if let Some(comparison) = self.comparison() {
            if self.is_next("ALL") || self.is_next("ANY") || self.is_next("SOME") {
                return Err(NarrowingRefusal::NotPlain);
            }
            return Ok(ConditionKind::Compare(
                left,
                comparison,
                self.operand_in_parentheses()?,
            ));
        }
        if self.take_keyword("IS") {
            let is = !self.take_keyword("NOT");
            for (word, truth) in [("TRUE", true), ("FALSE", false)] {
                if self.take_keyword(word) {
                    return Ok(ConditionKind::IsTruth(left, truth, is));
                }
            }
            self.expect_keyword("NULL")?;
            return Ok(ConditionKind::Null(left, is));
        }
        let is = !self.take_keyword("NOT");
        if self.take_keyword("BETWEEN") {
            let from = self.operand_in_parentheses()?;
            self.expect_keyword("AND")?;
            let to = self.operand_in_parentheses()?;
            return Ok(ConditionKind::Between(left, from, to, is));
        }
        if self.take_keyword("LIKE") {
            let pattern = self.literal()?.ok_or(NarrowingRefusal::NotPlain)?;
            if self.is_next("ESCAPE") {
                return Err(NarrowingRefusal::NotPlain);
            }
            return Ok(ConditionKind::Like(left, pattern, is));
        }
        if self.take_keyword("IN") {
            return self.in_predicate(left, is);
        }
        match (is, left) {
            (true, Operand::Column(column)) => Ok(ConditionKind::Truth(column)),
            _ => Err(self.refusal()),
        }
    }

    fn in_predicate(&mut self, left: Operand, is: bool) -> Result<ConditionKind, NarrowingRefusal> {
        if let Some(WordKind::List(_)) = self.peek() {
            return Ok(ConditionKind::In(
                left,
                LiteralList::Whole(self.advance()),
                is,
            ));
        }
        self.expect_punct(b'(')?;
        if self.is_next("SELECT") {
            let rows = self.subquery(false)?;
            self.expect_punct(b')')?;
            return Ok(ConditionKind::InSubquery(left, Box::new(rows), is));
        }
        let all = self.separated(|reader| reader.literal()?.ok_or_else(|| reader.refusal()))?;
        self.expect_punct(b')')?;
        Ok(ConditionKind::In(left, LiteralList::Each(all), is))
    }

    /// A SELECT within a condition. `exists`: only whether it has a row matters.
    fn subquery(&mut self, exists: bool) -> Result<Subquery, NarrowingRefusal> {
        if !exists && let Some(newest) = self.newest_in_list()? {
            return Ok(newest);
        }
        self.nested(|reader| {
            reader.expect_keyword("SELECT")?;
            if !reader.take_keyword("DISTINCT") {
                reader.take_keyword("ALL");
            }
            let columns = match exists {
                true => reader.separated(WordReader::exists_column)?,
                false => vec![Some(reader.aliased_column()?)],
            };
            reader.expect_keyword("FROM")?;
            if !exists && reader.begins_select() && !reader.wants_page() {
                return reader.subquery_in_from(columns.into_iter().flatten().next());
            }
            if !exists && let Some(select) = reader.take_named_select() {
                return reader.named_rows(select, columns.into_iter().flatten().next());
            }
            let sources = reader.table_references()?;
            let filter = reader.filter()?.map(|(_, filter)| filter);
            // LIMIT 1 in EXISTS, as some write it, makes no difference; LIMIT 0 does.
            if exists && reader.take_keyword("LIMIT") {
                let limit = reader
                    .verbatim_number()
                    .ok_or(NarrowingRefusal::NotUnderstood)?;
                if limit.iter().all(|digit| *digit == b'0') {
                    return Err(NarrowingRefusal::NotUnderstood);
                }
            }
            match reader.is_next_punct(b')') {
                true => Ok(Subquery {
                    columns: columns.into_iter().flatten().collect(),
                    sources,
                    filter,
                }),
                false => Err(reader.refusal()),
            }
        })
    }

    /// `WITH a AS (SELECT b FROM ...), c AS (...)`, if it is next.
    pub(super) fn with_selects(&mut self) -> Result<(), NarrowingRefusal> {
        if !self.take_keyword("WITH") {
            return Ok(());
        }
        self.separated(|reader| {
            let name = reader.name()?;
            if !name.text.is_ascii() {
                return Err(NarrowingRefusal::Structure);
            }
            reader.expect_keyword("AS")?;
            reader.expect_punct(b'(')?;
            let (rows, column) = reader.nested(WordReader::one_column_rows)?;
            reader.expect_punct(b')')?;
            // What follows may name it.
            reader.named_selects.push(NamedSelect {
                name: name.text,
                column,
                rows,
            });
            Ok(())
        })?;
        Ok(())
    }

    /// A SELECT of one column, and what it calls that.
    fn one_column_rows(&mut self) -> Result<(Subquery, String), NarrowingRefusal> {
        self.expect_keyword("SELECT")?;
        if !self.take_keyword("DISTINCT") {
            self.take_keyword("ALL");
        }
        let column = self.column()?;
        let name = self
            .optional_alias()?
            .unwrap_or_else(|| column.name.clone());
        self.expect_keyword("FROM")?;
        let sources = self.table_references()?;
        let filter = self.filter()?.map(|(_, filter)| filter);
        let rows = Subquery {
            columns: vec![column],
            sources,
            filter,
        };
        Ok((rows, name.text))
    }

    /// What WITH gave this name, if the next word is one that it gave.
    fn take_named_select(&mut self) -> Option<NamedSelect> {
        let start = self.position();
        let name = self.name().ok()?;
        let mut all = self.named_selects.iter();
        let named = all.find(|select| select.name == name.text).cloned();
        if named.is_none() {
            self.rewind(start);
        }
        named
    }

    /// The rows of a SELECT that WITH names, where nothing more is asked of them.
    fn named_rows(
        &mut self,
        select: NamedSelect,
        column: Option<ColumnReference>,
    ) -> Result<Subquery, NarrowingRefusal> {
        let alias = self.optional_alias()?;
        let called = alias.map_or(select.name, |alias| alias.text);
        let column = column.ok_or(NarrowingRefusal::Structure)?;
        let is_its = column.qualifier.len() < 2
            && column.qualifier.iter().all(|name| name.text == called)
            && column.name.text.eq_ignore_ascii_case(&select.column);
        match is_its && self.is_next_punct(b')') {
            true => Ok(select.rows),
            false => Err(NarrowingRefusal::Structure),
        }
    }

    /// `SELECT a FROM (SELECT a FROM t WHERE ...) d`: the inner SELECT alone.
    fn subquery_in_from(
        &mut self,
        column: Option<ColumnReference>,
    ) -> Result<Subquery, NarrowingRefusal> {
        self.expect_punct(b'(')?;
        let (rows, name) = self.one_column_rows()?;
        self.expect_punct(b')')?;
        let select = NamedSelect {
            name: String::new(),
            column: name,
            rows,
        };
        self.named_rows(select, column)
    }

    /// A column of a SELECT in EXISTS.
    fn exists_column(&mut self) -> Result<Option<ColumnReference>, NarrowingRefusal> {
        if self.take_punct(b'*') || self.all_of().is_some() {
            return Ok(None);
        }
        match self.literal()? {
            Some(_) => self.optional_alias().map(|_| None),
            None => self.aliased_column().map(Some),
        }
    }

    /// A column with an optional alias, which nothing here refers to.
    fn aliased_column(&mut self) -> Result<ColumnReference, NarrowingRefusal> {
        let column = self.column()?;
        self.optional_alias()?;
        Ok(column)
    }

    /// After a predicate no further operator may follow: `a = b = c`, `a BETWEEN 0 AND b IN (1)`.
    fn expect_predicate_end(&self) -> Result<(), NarrowingRefusal> {
        match self.ends_predicate() {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    fn ends_predicate(&self) -> bool {
        const NEXT: [&str; 19] = [
            "AND", "OR", "GROUP", "ORDER", "LIMIT", "JOIN", "INNER", "LEFT", "CROSS", "WHERE",
            "HAVING", "FOR", "FROM", "AS", "WHEN", "THEN", "ELSE", "END", "UNION",
        ];
        self.is_at_end()
            || self.is_next_punct(b')')
            || self.is_next_punct(b',')
            || NEXT.iter().any(|word| self.is_next(word))
    }

    fn comparison(&mut self) -> Option<ComparisonOperator> {
        if self.take_punct_pair(b'<', b'=') {
            if self.is_next_punct(b'>') && self.is_adjacent() {
                self.advance();
                return Some(ComparisonOperator::NullSafeEqual);
            }
            return Some(ComparisonOperator::AtMost);
        }
        for (first, second, is) in [
            (b'>', b'=', ComparisonOperator::AtLeast),
            (b'<', b'>', ComparisonOperator::Unequal),
            (b'!', b'=', ComparisonOperator::Unequal),
        ] {
            if self.take_punct_pair(first, second) {
                return Some(is);
            }
        }
        for (byte, is) in [
            (b'=', ComparisonOperator::Equal),
            (b'<', ComparisonOperator::Less),
            (b'>', ComparisonOperator::Greater),
        ] {
            if self.take_punct(byte) {
                return Some(is);
            }
        }
        None
    }

    /// A column, a literal, or one of the functions that neither fail nor warn.
    pub(super) fn operand(&mut self) -> Result<Operand, NarrowingRefusal> {
        if let Some(literal) = self.literal()? {
            return Ok(Operand::Literal(literal));
        }
        let calls = |reader: &Self, name: &str| reader.is_next(name) && reader.is_call();
        if calls(self, "COALESCE") || calls(self, "IFNULL") {
            self.advance();
            self.advance();
            let all = self.separated(|reader| reader.nested(WordReader::operand))?;
            self.expect_punct(b')')?;
            return Ok(Operand::Coalesce(all));
        }
        if calls(self, "TIMESTAMP") {
            self.advance();
            self.advance();
            let operand = match self.literal()? {
                Some(Literal::Text(at)) => Operand::Literal(Literal::Moment(at)),
                _ => return Err(NarrowingRefusal::NotPlain),
            };
            self.expect_punct(b')')?;
            return Ok(operand);
        }
        if calls(self, "NOW") || self.is_next("CURRENT_TIMESTAMP") {
            return self.now();
        }
        if self.is_next_punct(b'(') && self.begins_select() {
            return self.nested(WordReader::scalar_subquery);
        }
        if self.is_next("CASE") {
            return self.nested(WordReader::case);
        }
        if calls(self, "IF") {
            return self.nested(WordReader::if_function);
        }
        if let Some(function) = self.next_plain_function() {
            self.advance();
            self.advance();
            let arguments = self.separated(|reader| reader.nested(WordReader::operand))?;
            self.expect_punct(b')')?;
            return Ok(Operand::Function(function, arguments));
        }
        self.column().map(Operand::Column)
    }

    fn next_plain_function(&self) -> Option<&'static PlainFunction> {
        let is_name = self.peek() == Some(WordKind::Name) && self.is_call();
        is_name.then(|| plain_function(self.word_text(self.position())))?
    }

    /// `IF(condition, operand, operand)`.
    fn if_function(&mut self) -> Result<Operand, NarrowingRefusal> {
        self.advance();
        self.advance();
        let condition = self.condition()?;
        self.expect_punct(b',')?;
        let value = self.operand()?;
        self.expect_punct(b',')?;
        let otherwise = self.operand()?;
        self.expect_punct(b')')?;
        Ok(Operand::Case(
            vec![(condition, value)],
            Some(Box::new(otherwise)),
        ))
    }

    /// `CASE WHEN condition THEN operand ... ELSE operand END`.
    fn case(&mut self) -> Result<Operand, NarrowingRefusal> {
        self.expect_keyword("CASE")?;
        let mut branches = Vec::new();
        while self.take_keyword("WHEN") {
            let condition = self.condition()?;
            self.expect_keyword("THEN")?;
            branches.push((condition, self.operand()?));
        }
        let otherwise = match self.take_keyword("ELSE") {
            true => Some(Box::new(self.operand()?)),
            false => None,
        };
        self.expect_keyword("END")?;
        match branches.is_empty() {
            true => Err(NarrowingRefusal::NotUnderstood),
            false => Ok(Operand::Case(branches, otherwise)),
        }
    }

    /// A SELECT of one value: `(SELECT COUNT(*) FROM ...)`.
    fn scalar_subquery(&mut self) -> Result<Operand, NarrowingRefusal> {
        self.expect_punct(b'(')?;
        self.expect_keyword("SELECT")?;
        let (mut value, column) = self.scalar_value()?;
        self.optional_alias()?;
        self.expect_keyword("FROM")?;
        let sources = self.table_references()?;
        let filter = self.filter()?.map(|(_, filter)| filter);
        if self.take_keyword("LIMIT") {
            if self.verbatim_number() != Some(b"1") {
                return Err(NarrowingRefusal::NotUnderstood);
            }
            if value == ScalarValue::Row {
                value = ScalarValue::FirstRow;
            }
        }
        self.expect_punct(b')')?;
        Ok(Operand::Subquery(Box::new(ScalarSubquery {
            value,
            rows: Subquery {
                columns: column.into_iter().collect(),
                sources,
                filter,
            },
        })))
    }

    fn scalar_value(&mut self) -> Result<(ScalarValue, Option<ColumnReference>), NarrowingRefusal> {
        const AGGREGATES: [(&str, ScalarValue); 4] = [
            ("COUNT", ScalarValue::Count),
            ("MAX", ScalarValue::Extreme),
            ("MIN", ScalarValue::Extreme),
            ("SUM", ScalarValue::Sum),
        ];
        let mut aggregates = AGGREGATES.iter();
        let aggregate = aggregates.find(|(name, _)| self.is_next(name) && self.is_call());
        let Some((_, value)) = aggregate else {
            return Ok((ScalarValue::Row, Some(self.column()?)));
        };
        self.advance();
        self.advance();
        let is_count = *value == ScalarValue::Count;
        let column = if is_count && self.take_punct(b'*') {
            None
        } else if is_count && self.peek() == Some(WordKind::Number) {
            self.advance();
            None
        } else {
            self.take_keyword("DISTINCT");
            Some(self.column()?)
        };
        self.expect_punct(b')')?;
        Ok((*value, column))
    }

    /// NOW() or CURRENT_TIMESTAMP, with an optional precision and INTERVAL.
    fn now(&mut self) -> Result<Operand, NarrowingRefusal> {
        self.advance();
        if self.take_punct(b'(') {
            if self.peek() == Some(WordKind::Number) {
                match self.verbatim_number() {
                    Some([b'0'..=b'6']) => {}
                    _ => return Err(NarrowingRefusal::NotPlain),
                }
            }
            self.expect_punct(b')')?;
        }
        if self.take_punct(b'-') || self.take_punct(b'+') {
            const UNITS: [&str; 6] = ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH"];
            // A larger interval could leave the range of dates, which causes a warning.
            const MOST_DIGITS: usize = 4;
            self.expect_keyword("INTERVAL")?;
            let count = self.verbatim_number().ok_or(NarrowingRefusal::NotPlain)?;
            if count.len() > MOST_DIGITS {
                return Err(NarrowingRefusal::NotPlain);
            }
            if !UNITS.iter().any(|unit| self.take_keyword(unit)) {
                return Err(NarrowingRefusal::NotPlain);
            }
        }
        Ok(Operand::Now)
    }

    /// A literal, if it is next.
    pub(super) fn literal(&mut self) -> Result<Option<Literal>, NarrowingRefusal> {
        let literal = match self.peek() {
            Some(WordKind::Number) => {
                let at = self.advance();
                if !(self.is_next_punct(b'.') && self.is_adjacent()) {
                    return Ok(Some(Literal::Number(at)));
                }
                self.advance();
                if self.peek() != Some(WordKind::Number) || !self.is_adjacent() {
                    return Err(NarrowingRefusal::Types);
                }
                self.advance();
                Literal::Decimal
            }
            Some(WordKind::Punct(b'-')) => {
                self.advance();
                if self.peek() != Some(WordKind::Number) {
                    return Err(NarrowingRefusal::NotPlain);
                }
                let at = self.advance();
                match self.is_next_punct(b'.') {
                    true => return Err(NarrowingRefusal::Types),
                    false => Literal::Negative(at),
                }
            }
            Some(WordKind::Text) => {
                let at = self.advance();
                // Two adjacent strings are one.
                if self.peek() == Some(WordKind::Text) || self.is_next("COLLATE") {
                    return Err(NarrowingRefusal::NotUnderstood);
                }
                Literal::Text(at)
            }
            Some(WordKind::Parameter) => Literal::Parameter(self.advance()),
            Some(WordKind::Name) if self.take_keyword("TRUE") => Literal::Truth(true),
            Some(WordKind::Name) if self.take_keyword("FALSE") => Literal::Truth(false),
            Some(WordKind::Name) if self.take_keyword("NULL") => Literal::Null,
            _ => return Ok(None),
        };
        Ok(Some(literal))
    }
}
