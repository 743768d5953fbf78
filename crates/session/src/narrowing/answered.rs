//! What the server has answered: a statement as it is, to be learned from, or a narrowed one, to be judged and told as it would be directly.

use headwater_feed::Template;
use headwater_feed::cost::Crowd;
use headwater_feed::template::Retired;
use headwater_feed::variants::Plan;
use headwater_timeline::index::Range;
use headwater_wire::reply::Outcome;

use super::{
    Candidates, Feeds, INTERRUPTED, Need, Reply, Stage, Subject, Told, Turn, Why, Wishes, World,
    reply, wish,
};

/// So often candidates that have changed are taken anew.
const TAKEN_ANEW: u32 = 2;

impl<K: Feeds> World<'_, K> {
    /// The server's own answer: the client is told it, and what it says of its columns is remembered.
    pub(super) fn learned(
        &mut self,
        subject: &Subject,
        crowd: Crowd,
        plan: Option<Plan>,
        reply: Reply,
    ) -> Turn {
        let template = &subject.template;
        let Some(bytes) = reply.bytes else {
            template.retire(Retired::Long);
            return Err(Why::Retired(Retired::Long));
        };
        let outcome = reply.outcome.ok_or(Why::Failed)?;
        self.session.observe(&outcome);
        match &outcome {
            Outcome::Ok(ok) if ok.warnings == 0 => {
                self.session.standing.ends_conditions();
                let took = self.microseconds();
                if let Some(said) = reply::read(&bytes, self.session.capabilities)
                    && let Some(columns) = said.columns
                {
                    template.learn((crowd, self.under()), plan, took, columns, said.ends);
                }
            }
            Outcome::Ok(_) => template.retire(Retired::Warns),
            _ => {
                if let Some(executed) = self.executed {
                    self.session.statements().failed(executed.statement);
                }
            }
        }
        let told = Told {
            narrowed: false,
            ..Told::narrowed(bytes, outcome)
        };
        Ok((Stage::Ended, Need::Tell(told)))
    }

    /// Judges the narrowed answer.
    pub(super) fn ran(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        candidates: Candidates,
        reply: Reply,
    ) -> Turn {
        let template = &subject.template;
        let outcome = reply.outcome.ok_or(Why::Failed)?;
        // It may have opened a transaction.
        self.session.observe(&outcome);
        let bytes = reply.bytes.ok_or(Why::Failed)?;
        match &outcome {
            Outcome::Ok(ok) if ok.warnings == 0 => self.session.standing.ends_conditions(),
            Outcome::Err(error) if error.code == INTERRUPTED => {
                let told = Told::narrowed(bytes, outcome);
                return Ok((Stage::Ended, Need::Tell(told)));
            }
            _ => {
                if let Some(executed) = self.executed {
                    self.session.statements().own_failed(&executed.feed);
                }
                return Err(Why::Failed);
            }
        }
        let rows = usize::try_from(reply.rows).unwrap_or(usize::MAX);
        let limit = usize::try_from(wishes.asked.limit).unwrap_or(usize::MAX);
        if rows < limit && !candidates.all {
            template.fell_short(candidates.count, wishes.passed(rows));
            if candidates.tied {
                template.took_in_vain(candidates.crowd, self.microseconds());
                return Err(Why::Ties);
            }
            let wider = Template::wider(candidates.count, self.policy.candidates);
            let Some(most) = wider else {
                template.took_in_vain(candidates.crowd, self.microseconds());
                return Err(Why::Filtered);
            };
            let range = Range {
                most,
                ..wishes.range
            };
            let short = true;
            return Ok(wish(
                subject,
                Wishes {
                    range,
                    short,
                    ..wishes
                },
            ));
        }
        let bytes = self.described(template, &wishes, &candidates, bytes)?;
        let fill = self.fill(&subject, &wishes, &candidates, &bytes);
        let told = Told {
            fill: fill.map(Box::new),
            ..Told::narrowed(bytes, outcome)
        };
        let waiting = Stage::Waiting(subject, wishes, candidates, told);
        Ok((waiting, Need::Unchanged))
    }

    /// The narrowed answer with its columns as the server describes them directly.
    fn described(
        &mut self,
        template: &Template,
        wishes: &Wishes,
        candidates: &Candidates,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, Why> {
        let differ = match wishes.plan {
            Some(_) => Why::ColumnsUnsure,
            None => Why::Retired(Retired::Columns),
        };
        let (capabilities, under) = (self.session.capabilities, self.under());
        let said = reply::read(&bytes, capabilities).ok_or(differ)?;
        let own = self.own_columns(said.columns, candidates).ok_or(differ)?;
        // Of other columns than those that were told of the client's own statement, the server tells it with a flag.
        if let Some(executed) = self.executed
            && executed.columns != own.count()
        {
            return Err(differ);
        }
        let (crowd, plan) = (candidates.crowd, wishes.plan.as_ref());
        let told = template.told(crowd, under, plan, &own);
        let (columns, ends) = told.ok_or(differ)?;
        match reply::put_back(&mut bytes, capabilities, &columns, ends) {
            true => self.to_be_told(bytes, &columns),
            false => Err(differ),
        }
    }

    pub(super) fn waited(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        candidates: &Candidates,
        told: Told,
        unchanged: bool,
    ) -> Turn {
        let template = &subject.template;
        if !unchanged {
            if !self.is_certain() {
                return self.begin();
            }
            // What a snapshot does not show stays hidden however often it is asked.
            if wishes.anew == TAKEN_ANEW || self.session.standing.reads_a_snapshot() {
                template.took_in_vain(candidates.crowd, self.microseconds());
                return Err(Why::Changed);
            }
            let anew = wishes.anew + 1;
            return Ok(wish(subject, Wishes { anew, ..wishes }));
        }
        // How many candidates are needed is still being learned where they did not suffice: that is rare, and no cost of this way.
        if !wishes.short {
            let keeps = wishes.keeping.is_some();
            template.took(candidates.crowd, self.microseconds(), keeps);
        }
        if !candidates.all {
            template.sufficed();
        }
        Ok((Stage::Ended, Need::Tell(told)))
    }
}

impl Wishes {
    /// How many candidates passed the filter, as far as is known: OFFSET passed over some, where a page was begun.
    fn passed(&self, rows: usize) -> usize {
        let offset = usize::try_from(self.asked.offset).unwrap_or(usize::MAX);
        match rows {
            0 => 0,
            _ => offset.saturating_add(rows),
        }
    }
}
