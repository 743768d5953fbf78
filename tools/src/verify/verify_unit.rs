//! What is compared: a definition or a feed in a database, and the queries about each reader's page of it.

use std::collections::BTreeMap;

use super::answer::{ComparableAnswer, last_id};
use super::comparison_rounds::{AnswerPair, AnswerVerdict};
use super::latency_watch::LatencyWatch;
use super::pattern::StatementPattern;
use super::reader_scan::{ReaderColumn, ReaderScan};
use super::ties;
use headwater_proxy::shadow::procedure_call;
use headwater_sql::quoted;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};

#[derive(Debug)]
pub(super) struct VerifyUnit {
    pub(super) title: String,
    pub(super) database: String,
    pub(super) scan: ReaderScan,
    pub(super) authors: AuthorListSource,
    pub(super) queries: Vec<ReaderQuery>,
    pub(super) skipped: Vec<SkippedComparison>,
    /// Readers done.
    pub(super) readers: u64,
}

/// Where the authors of a list come from.
#[derive(Clone, Debug)]
pub(super) enum AuthorListSource {
    /// There is no list.
    None,
    /// From the column `author` of rows with the reader in the column `by`.
    Followed { by: ReaderColumn, author: String },
    /// From this column of authors, starting at the reader: there is no follow table.
    From(ReaderColumn),
}

#[derive(Debug)]
pub(super) struct ReaderQuery {
    pub(super) title: String,
    pub(super) kind: ReaderQueryKind,
    pub(super) tally: VerdictTally,
    pub(super) latency: LatencyWatch,
    /// Why it is no longer sent.
    pub(super) drop_reason: Option<QueryDropReason>,
}

#[derive(Clone, Debug)]
pub(super) enum ReaderQueryKind {
    Call(Box<VerifiedTimeline>, ProcedureForm),
    /// With the column of the messages' ids.
    Select(StatementPattern, String),
}

/// A definition, and the columns of its messages.
#[derive(Clone, Debug)]
pub(super) struct VerifiedTimeline {
    pub(super) definition: TimelineDefinition,
    pub(super) columns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkippedComparison {
    pub(super) what: String,
    pub(super) why: String,
    /// It should be compared, and something prevents that.
    pub(super) fails: bool,
}

/// Why a query is no longer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryDropReason {
    pub(super) why: String,
    pub(super) fails: bool,
}

#[derive(Debug, Default)]
pub(super) struct VerdictTally {
    pub(super) compared: u64,
    pub(super) equal: u64,
    /// Equal, except for the order of tied rows.
    pub(super) tied: u64,
    pub(super) different: u64,
    pub(super) late: u64,
    pub(super) undecided: u64,
    /// Not equal at once.
    pub(super) asked_again: u64,
    /// What Headwater reported as the source, for some of them.
    pub(super) answered_from: BTreeMap<String, u64>,
}

impl VerifyUnit {
    pub(super) fn of(
        title: String,
        scan: ReaderScan,
        column: &ReaderColumn,
        authors: AuthorListSource,
        queries: Vec<ReaderQuery>,
    ) -> VerifyUnit {
        VerifyUnit {
            title,
            database: column.database.clone(),
            scan,
            authors,
            queries,
            skipped: Vec::new(),
            readers: 0,
        }
    }

    pub(super) fn answers(&self) -> u64 {
        let queries = self.queries.iter();
        let asked_count = queries.filter(|query| query.drop_reason.is_none()).count();
        self.scan
            .total
            .saturating_mul(u64::try_from(asked_count).unwrap_or(u64::MAX))
    }
}

impl ReaderQuery {
    pub(super) fn call(timeline: &VerifiedTimeline, form: ProcedureForm) -> ReaderQuery {
        let name = quoted(timeline.definition.procedure_name(form));
        let title = match form {
            ProcedureForm::Newest => format!("CALL {name}(READER), and the page behind it"),
            ProcedureForm::Bounded => format!("CALL {name}(READER, BOUND), and the page behind it"),
            ProcedureForm::Heads => format!("CALL {name}(READER, BOUND), and the heads behind it"),
        };
        ReaderQuery::new(
            title,
            ReaderQueryKind::Call(Box::new(timeline.clone()), form),
        )
    }

    /// `id`: the column of the messages' ids.
    pub(super) fn select(pattern: StatementPattern, id: &str) -> ReaderQuery {
        ReaderQuery::new(
            pattern.shown(),
            ReaderQueryKind::Select(pattern, id.to_owned()),
        )
    }

    fn new(title: String, kind: ReaderQueryKind) -> ReaderQuery {
        ReaderQuery {
            title,
            kind,
            tally: VerdictTally::default(),
            latency: LatencyWatch::default(),
            drop_reason: None,
        }
    }

    /// The statements for a reader; `bound`: for the page after the newest one. `None`: there are none.
    pub(super) fn statements(
        &self,
        reader: i128,
        bound: Option<u64>,
        authors: &[i128],
    ) -> Option<Vec<String>> {
        match &self.kind {
            ReaderQueryKind::Call(timeline, form) => {
                Some(timeline.statements(*form, reader, bound))
            }
            ReaderQueryKind::Select(pattern, _) => {
                Some(vec![pattern.statement_for(reader, authors)?])
            }
        }
    }

    pub(super) fn tie_query(&self, statements: &[String]) -> Option<ties::TieQuery> {
        match (&self.kind, statements) {
            (ReaderQueryKind::Select(_, id), [page]) => ties::TieQuery::of_page(page, id),
            _ => None,
        }
    }

    /// The bound of the next page, if these are the answers to a newest one.
    pub(super) fn next_bound(&self, answers: &[ComparableAnswer]) -> Option<u64> {
        match self.kind {
            ReaderQueryKind::Call(_, ProcedureForm::Newest) => {
                Some(last_id(answers.last()?)?.saturating_sub(1))
            }
            _ => None,
        }
    }
}

impl VerifiedTimeline {
    fn statements(&self, form: ProcedureForm, reader: i128, bound: Option<u64>) -> Vec<String> {
        let definition = &self.definition;
        let bound = bound.unwrap_or(definition.id_type.max());
        let bound = form.is_bounded().then_some(bound);
        let call = procedure_call::call_statement(definition, form, reader, bound);
        let select = match form.fills_result() {
            true => self.page(),
            false => self.heads(),
        };
        vec![call, select]
    }

    /// The SELECT after a call, as an app sends it.
    fn page(&self) -> String {
        let TimelineDefinition {
            message, result, n, ..
        } = &self.definition;
        let id = quoted(&message.id);
        let columns: Vec<String> = std::iter::once(&message.id)
            .chain(self.columns.iter().filter(|name| **name != message.id))
            .map(|name| format!("m.{}", quoted(name)))
            .collect();
        format!(
            "SELECT {} FROM {} AS m JOIN {} AS t ON m.{id} = t.{} ORDER BY m.{id} DESC LIMIT {n}",
            columns.join(", "),
            quoted(&message.table),
            quoted(&result.table),
            quoted(&result.id),
        )
    }

    fn heads(&self) -> String {
        let heads = &self.definition.heads;
        let (author, head) = (quoted(&heads.author), quoted(&heads.head));
        format!(
            "SELECT {author}, {head} FROM {} ORDER BY {author}",
            quoted(&heads.table)
        )
    }
}

impl VerdictTally {
    /// Records the result of a comparison; returns both answers if they are to be shown.
    pub(super) fn record(&mut self, verdict: AnswerVerdict) -> Option<AnswerPair> {
        self.compared += 1;
        match verdict {
            AnswerVerdict::Equal => self.equal += 1,
            AnswerVerdict::Tied => self.tied += 1,
            AnswerVerdict::Undecided => self.undecided += 1,
            AnswerVerdict::Late(pair) => {
                self.late += 1;
                return Some(*pair);
            }
            AnswerVerdict::Different(pair) => {
                self.different += 1;
                return Some(*pair);
            }
        }
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use headwater_statement::{StatementClass, classify};

    fn timeline() -> VerifiedTimeline {
        VerifiedTimeline {
            definition: TimelineDefinition::classic(),
            columns: vec!["id".into(), "user_id".into(), "body".into()],
        }
    }

    #[test]
    fn a_reader_is_queried_as_by_an_app() {
        let question = |form| ReaderQuery::call(&timeline(), form);
        assert_eq!(
            question(ProcedureForm::Newest)
                .statements(7, None, &[])
                .unwrap(),
            [
                "CALL `fetch_timeline_ids`(7)",
                "SELECT m.`id`, m.`user_id`, m.`body` FROM `message` AS m JOIN `fetch_timeline_tt` AS t ON m.`id` = t.`id` \
                 ORDER BY m.`id` DESC LIMIT 20",
            ]
        );
        let definitions = [TimelineDefinition::classic()];
        let page = timeline().page();
        let class = classify(page.as_bytes(), &definitions, true);
        assert!(matches!(class, StatementClass::FollowUp(_)), "{class:?}");
        let bounded = question(ProcedureForm::Bounded)
            .statements(7, Some(5), &[])
            .unwrap();
        let call = bounded.first().unwrap();
        assert_eq!(call, "CALL `fetch_timeline_ids2`(7, 5)");
        let heads = question(ProcedureForm::Heads)
            .statements(7, None, &[])
            .unwrap();
        assert_eq!(
            heads,
            [
                "CALL `build_max_ids_of_followers`(7, 4294967295)",
                "SELECT `user_id`, `max_id` FROM `max_ids_of_followers` ORDER BY `user_id`",
            ]
        );
    }
}
