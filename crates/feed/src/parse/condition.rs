//! Conditions and operands.

use super::words::Reader;
use crate::query::{Column, Comparison, Condition, List, Literal, Operand, Rows, Says};
use crate::refused::Refused;
use crate::words::Is;

/// What a comparison of pairs compares.
type Pair = [Operand; 2];

/// What stands left of a predicate.
enum Left {
    One(Operand),
    Two(Pair),
}

impl Reader<'_> {
    /// Conditions with OR between them.
    pub(super) fn condition(&mut self) -> Result<Condition, Refused> {
        self.deeper(|reader| reader.joined_by("OR", Reader::conjunction, Says::Or))
    }

    fn conjunction(&mut self) -> Result<Condition, Refused> {
        self.joined_by("AND", Reader::negation, Says::And)
    }

    fn joined_by(
        &mut self,
        keyword: &str,
        mut one: impl FnMut(&mut Self) -> Result<Condition, Refused>,
        says: fn(Vec<Condition>) -> Says,
    ) -> Result<Condition, Refused> {
        let start = self.place();
        let first = one(self)?;
        if !self.is_next(keyword) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.takes(keyword) {
            all.push(one(self)?);
        }
        Ok(Condition {
            is: says(all),
            words: start..self.place(),
        })
    }

    /// NOT stands before what has one meaning only in every mode: a parenthesis, EXISTS, a column alone.
    fn negation(&mut self) -> Result<Condition, Refused> {
        let start = self.place();
        if !self.takes("NOT") {
            return self.predicate();
        }
        let inner = if self.is_next("EXISTS") {
            self.predicate()?
        } else if self.is_next_punct(b'(') {
            let inner = self.predicate()?;
            // `NOT (a) = b`, `NOT (a, b) < (c, d)`: of what it is a negation depends on the mode.
            match self.is_in_parentheses(&inner.words) {
                true => inner,
                false => return Err(Refused::NotUnderstood),
            }
        } else {
            let at = self.place();
            let column = self.column()?;
            Condition {
                is: Says::Truth(column),
                words: at..self.place(),
            }
        };
        self.ends_predicate()?;
        Ok(Condition {
            is: Says::Not(Box::new(inner)),
            words: start..self.place(),
        })
    }

    /// One predicate, or a condition in parentheses.
    fn predicate(&mut self) -> Result<Condition, Refused> {
        let start = self.place();
        let says = if self.takes("EXISTS") {
            self.punct(b'(')?;
            let rows = self.rows(true)?;
            self.punct(b')')?;
            Says::Exists(Box::new(rows))
        } else if self.is_next_punct(b'(') && !self.begins_pair() {
            self.advance();
            let inner = self.condition()?;
            self.punct(b')')?;
            inner.is
        } else {
            let left = match self.is_next_punct(b'(') {
                true => Left::Two(self.pair()?),
                false => Left::One(self.operand()?),
            };
            self.behind(left)?
        };
        self.ends_predicate()?;
        Ok(Condition {
            is: says,
            words: start..self.place(),
        })
    }

    /// `(a, b)`: the parenthesis of a row, not of a condition.
    fn begins_pair(&mut self) -> bool {
        let start = self.place();
        self.advance();
        let is = self.operand().is_ok() && self.is_next_punct(b',');
        self.go_back(start);
        is
    }

    fn pair(&mut self) -> Result<Pair, Refused> {
        self.punct(b'(')?;
        let first = self.operand()?;
        self.punct(b',')?;
        let second = self.operand()?;
        self.punct(b')')?;
        Ok([first, second])
    }

    fn behind(&mut self, left: Left) -> Result<Says, Refused> {
        let left = match left {
            Left::Two(pair) => {
                let comparison = self.comparison().ok_or_else(|| self.astray())?;
                return Ok(Says::Pairs(pair, comparison, self.pair()?));
            }
            Left::One(operand) => operand,
        };
        if let Some(comparison) = self.comparison() {
            if self.is_next("ALL") || self.is_next("ANY") || self.is_next("SOME") {
                return Err(Refused::NotPlain);
            }
            return Ok(Says::Compare(left, comparison, self.right()?));
        }
        if self.takes("IS") {
            let is = !self.takes("NOT");
            self.keyword("NULL")?;
            return Ok(Says::Null(left, is));
        }
        let is = !self.takes("NOT");
        if self.takes("BETWEEN") {
            let from = self.operand()?;
            self.keyword("AND")?;
            return Ok(Says::Between(left, from, self.operand()?, is));
        }
        if self.takes("LIKE") {
            let pattern = self.literal()?.ok_or(Refused::NotPlain)?;
            if self.is_next("ESCAPE") {
                return Err(Refused::NotPlain);
            }
            return Ok(Says::Like(left, pattern, is));
        }
        if self.takes("IN") {
            return self.within(left, is);
        }
        match (is, left) {
            (true, Operand::Column(column)) => Ok(Says::Truth(column)),
            _ => Err(self.astray()),
        }
    }

    fn within(&mut self, left: Operand, is: bool) -> Result<Says, Refused> {
        if let Some(Is::List(_)) = self.peek() {
            return Ok(Says::In(left, List::Whole(self.advance()), is));
        }
        self.punct(b'(')?;
        if self.is_next("SELECT") {
            let rows = self.rows(false)?;
            self.punct(b')')?;
            return Ok(Says::InRows(left, Box::new(rows), is));
        }
        let all = self.separated(|reader| reader.literal()?.ok_or_else(|| reader.astray()))?;
        self.punct(b')')?;
        Ok(Says::In(left, List::Each(all), is))
    }

    /// A SELECT within a condition. `exists`: it is asked only whether there is a row.
    fn rows(&mut self, exists: bool) -> Result<Rows, Refused> {
        self.deeper(|reader| {
            reader.keyword("SELECT")?;
            if !reader.takes("DISTINCT") {
                reader.takes("ALL");
            }
            let columns = match exists {
                true => reader.separated(Reader::looked_for)?,
                false => vec![Some(reader.named_column()?)],
            };
            reader.keyword("FROM")?;
            let sources = reader.sources()?;
            let filter = match reader.takes("WHERE") {
                true => Some(reader.condition()?),
                false => None,
            };
            // LIMIT 1 behind EXISTS, as some write it, makes no difference; LIMIT 0 does.
            if exists && reader.takes("LIMIT") {
                let limit = reader.number_that_stays().ok_or(Refused::NotUnderstood)?;
                if limit.iter().all(|digit| *digit == b'0') {
                    return Err(Refused::NotUnderstood);
                }
            }
            match reader.is_next_punct(b')') {
                true => Ok(Rows {
                    columns: columns.into_iter().flatten().collect(),
                    sources,
                    filter,
                }),
                false => Err(reader.astray()),
            }
        })
    }

    /// A column of a SELECT that is asked only whether it has a row.
    fn looked_for(&mut self) -> Result<Option<Column>, Refused> {
        if self.takes_punct(b'*') || self.all_of().is_some() {
            return Ok(None);
        }
        match self.literal()? {
            Some(_) => self.named().map(|_| None),
            None => self.named_column().map(Some),
        }
    }

    /// A column, and a name that nothing can call it by here.
    fn named_column(&mut self) -> Result<Column, Refused> {
        let column = self.column()?;
        self.named()?;
        Ok(column)
    }

    /// Behind a predicate no further operator may follow: `a = b = c`, `a BETWEEN 0 AND b IN (1)`.
    fn ends_predicate(&self) -> Result<(), Refused> {
        const NEXT: [&str; 12] = [
            "AND", "OR", "GROUP", "ORDER", "LIMIT", "JOIN", "INNER", "LEFT", "CROSS", "WHERE",
            "HAVING", "FOR",
        ];
        let ends = self.is_at_end()
            || self.is_next_punct(b')')
            || self.is_next_punct(b',')
            || NEXT.iter().any(|word| self.is_next(word));
        match ends {
            true => Ok(()),
            false => Err(self.astray()),
        }
    }

    fn comparison(&mut self) -> Option<Comparison> {
        // `<=>` first: it is none of these.
        let start = self.place();
        if self.takes_pair(b'<', b'=') {
            if self.is_next_punct(b'>') && self.is_close() {
                self.go_back(start);
                return None;
            }
            return Some(Comparison::AtMost);
        }
        for (first, second, is) in [
            (b'>', b'=', Comparison::AtLeast),
            (b'<', b'>', Comparison::Unequal),
            (b'!', b'=', Comparison::Unequal),
        ] {
            if self.takes_pair(first, second) {
                return Some(is);
            }
        }
        for (byte, is) in [
            (b'=', Comparison::Equal),
            (b'<', Comparison::Less),
            (b'>', Comparison::Greater),
        ] {
            if self.takes_punct(byte) {
                return Some(is);
            }
        }
        None
    }

    /// An operand behind a comparison: a column may have parentheses of its own.
    fn right(&mut self) -> Result<Operand, Refused> {
        if !self.takes_punct(b'(') {
            return self.operand();
        }
        let column = self.column()?;
        self.punct(b')')?;
        Ok(Operand::Column(column))
    }

    /// A column, a literal, or one of the functions that neither fail nor warn.
    pub(super) fn operand(&mut self) -> Result<Operand, Refused> {
        if let Some(literal) = self.literal()? {
            return Ok(Operand::Literal(literal));
        }
        let calls = |reader: &Self, name: &str| reader.is_next(name) && reader.is_call();
        if calls(self, "COALESCE") || calls(self, "IFNULL") {
            self.advance();
            self.advance();
            let all = self.separated(|reader| reader.deeper(Reader::operand))?;
            self.punct(b')')?;
            return Ok(Operand::Coalesce(all));
        }
        if calls(self, "NOW") || self.is_next("CURRENT_TIMESTAMP") {
            return self.now();
        }
        self.column().map(Operand::Column)
    }

    /// NOW(), CURRENT_TIMESTAMP, with a precision or not, and INTERVAL behind it.
    fn now(&mut self) -> Result<Operand, Refused> {
        self.advance();
        if self.takes_punct(b'(') {
            if self.peek() == Some(Is::Number) {
                match self.number_that_stays() {
                    Some([b'0'..=b'6']) => {}
                    _ => return Err(Refused::NotPlain),
                }
            }
            self.punct(b')')?;
        }
        if self.takes_punct(b'-') || self.takes_punct(b'+') {
            const UNITS: [&str; 6] = ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH"];
            // More than that could leave the range of dates, which warns.
            const MOST_DIGITS: usize = 4;
            self.keyword("INTERVAL")?;
            let count = self.number_that_stays().ok_or(Refused::NotPlain)?;
            if count.len() > MOST_DIGITS {
                return Err(Refused::NotPlain);
            }
            if !UNITS.iter().any(|unit| self.takes(unit)) {
                return Err(Refused::NotPlain);
            }
        }
        Ok(Operand::Now)
    }

    /// A literal, if one is next.
    pub(super) fn literal(&mut self) -> Result<Option<Literal>, Refused> {
        let literal = match self.peek() {
            Some(Is::Number) => {
                let at = self.advance();
                if !(self.is_next_punct(b'.') && self.is_close()) {
                    return Ok(Some(Literal::Number(at)));
                }
                self.advance();
                if self.peek() != Some(Is::Number) || !self.is_close() {
                    return Err(Refused::Types);
                }
                self.advance();
                Literal::Decimal
            }
            Some(Is::Punct(b'-')) => {
                self.advance();
                if self.peek() != Some(Is::Number) {
                    return Err(Refused::NotPlain);
                }
                let at = self.advance();
                match self.is_next_punct(b'.') {
                    true => return Err(Refused::Types),
                    false => Literal::Negative(at),
                }
            }
            Some(Is::Text) => {
                let at = self.advance();
                // Two side by side are one.
                if self.peek() == Some(Is::Text) || self.is_next("COLLATE") {
                    return Err(Refused::NotUnderstood);
                }
                Literal::Text(at)
            }
            Some(Is::Parameter) => Literal::Parameter(self.advance()),
            Some(Is::Name) if self.takes("TRUE") => Literal::Truth(true),
            Some(Is::Name) if self.takes("FALSE") => Literal::Truth(false),
            Some(Is::Name) if self.takes("NULL") => Literal::Null,
            _ => return Ok(None),
        };
        Ok(Some(literal))
    }
}
