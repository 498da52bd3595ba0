//! One query as a metric sees it: its lists after the named steps.

use cuemark_core::{Answer, Lists, NormSpan, Progress, Relevance, Span, Truth, VideoId};

use crate::{Answerable, EvalError, Judge, LengthRange, Matching, Step, Ties};

/// Which predictions of a list are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// All of them.
    Everywhere,
    /// Those in videos of the truth: no other can count. What stands in other videos still takes its rank.
    AtRightVideos,
}

/// One prediction with its video resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// From 0, in the list as the steps leave it.
    pub(crate) rank: usize,
    pub(crate) video: &'a VideoId,
    pub(crate) span: Span,
    pub(crate) score: Option<f64>,
}

/// One moment that the truth knows of; ungraded ones have relevance 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) video: &'a VideoId,
    pub(crate) span: Span,
    pub(crate) relevance: f64,
}

/// How far a prediction overlaps what it has to meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Met {
    /// The prediction's rank, from 0.
    pub(crate) rank: usize,
    /// Below every overlap where it meets nothing.
    pub(crate) overlap: f64,
}

/// How far down a list its hits are looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Until {
    /// Ranks beyond this are in no metric.
    pub(crate) depth: usize,
    /// The highest threshold: whoever reaches it is a hit at every other too, so nothing further down changes a score.
    pub(crate) enough: f64,
}

/// How two videos are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    /// By their names.
    Name,
    /// By the references to them: all videos of the list, and the truth's own where it is among them, refer to one table.
    Reference,
}

/// One query, ready to be scored.
pub(crate) struct Case<'a> {
    pub(crate) truth: &'a Truth,
    pub(crate) targets: Vec<Target<'a>>,
    /// In the unit of the spans: seconds, or 1 after [`Step::Normalise`].
    pub(crate) duration: Option<f64>,
    pub(crate) ranked: Vec<Candidate<'a>>,
    pub(crate) saliency: Option<&'a [f64]>,
    identity: Identity,
}

impl<'a> Case<'a> {
    pub(crate) fn new(
        truth: &'a Truth,
        answer: Option<(&'a dyn Lists, usize)>,
        steps: &[Step],
        looks: Looks,
    ) -> Result<Self, EvalError> {
        let table = answer.and_then(|(lists, _)| lists.videos());
        // A video that is not in the table is none of the list's, and neither is the reference to it.
        let listed = |video: &'a VideoId| table.and_then(|table| table.get(video)).unwrap_or(video);
        let targets = truth.moments.iter().map(|graded| Target {
            video: listed(&graded.moment.video),
            span: graded.moment.span,
            relevance: graded.relevance.map_or(1.0, Relevance::value),
        });
        let mut case = Self {
            truth,
            targets: targets.collect(),
            duration: truth.duration(),
            ranked: Vec::new(),
            saliency: answer.and_then(|(lists, place)| lists.saliency(place)),
            identity: Identity::Name,
        };
        let ranked = answer.map_or_else(Vec::new, |(lists, place)| case.taken_up(lists, place, steps, looks));
        if table.is_some() && ranked.iter().all(|(_, answer)| answer.video.is_some()) {
            case.identity = Identity::Reference;
        }
        let own = case.own_video();
        let resolved = |(rank, Answer { video, span, score }): (usize, Answer<'a>)| {
            let video = video.or(own).ok_or_else(|| EvalError::NoVideo { query: truth.query.id.clone() })?;
            Ok(Candidate { rank, video, span, score })
        };
        case.ranked = ranked.into_iter().map(resolved).collect::<Result<_, EvalError>>()?;
        for step in steps {
            case.apply(step)?;
        }
        Ok(case)
    }

    /// The predictions that are looked at, with their ranks.
    fn taken_up(&self, lists: &'a dyn Lists, place: usize, steps: &[Step], looks: Looks) -> Vec<(usize, Answer<'a>)> {
        // Any other step needs the rest of the list to tell what it leaves.
        let cut = |most: usize, step: &Step| match step {
            Step::TakeFirst(n) => Some(most.min(*n)),
            _ => None,
        };
        let depth = steps.iter().try_fold(usize::MAX, cut).filter(|_| looks == Looks::AtRightVideos);
        let few = depth.and_then(|depth| {
            let videos: Vec<&VideoId> = self.right(None).map(|target| target.video).collect();
            lists.ranked_in(place, depth, &videos)
        });
        few.unwrap_or_else(|| lists.ranked(place).into_iter().enumerate().collect())
    }

    /// Ranks anew what a step has left.
    fn rank(&mut self) {
        for (rank, candidate) in self.ranked.iter_mut().enumerate() {
            candidate.rank = rank;
        }
    }

    /// The one video that the query is about: the truth's own, or the only one its moments lie in.
    fn own_video(&self) -> Option<&'a VideoId> {
        let own = self.truth.video.as_ref().map(|video| &video.id);
        own.or_else(|| {
            let first = self.targets.first()?.video;
            self.targets.iter().all(|target| target.video == first).then_some(first)
        })
    }

    fn apply(&mut self, step: &Step) -> Result<(), EvalError> {
        match step {
            Step::TakeFirst(n) => self.ranked.retain(|candidate| candidate.rank < *n),
            Step::SortByScore(ties) => self.sort(*ties)?,
            Step::Suppress(nms) => {
                let at = |position: usize| (Some(self.ranked[position].video), self.ranked[position].span);
                let kept = nms.keep_by(self.ranked.len(), at, &Progress::new())?;
                self.ranked = kept.into_iter().map(|position| self.ranked[position]).collect();
                self.rank();
            }
            Step::OnlyPool => {
                if let Some(pool) = &self.truth.pool {
                    self.ranked.retain(|candidate| pool.contains(candidate.video));
                    self.rank();
                }
            }
            Step::ClipTruth => {
                let duration = self.needs_duration("clip_truth")?;
                for target in &mut self.targets {
                    target.span = target.span.clip_to(duration);
                }
            }
            Step::Normalise => {
                let duration = self.needs_duration("charades-cd")?;
                let unit = |span: Span| NormSpan::of(span, duration).map_or(Span::whole(0.0), |norm| norm.to_span(1.0));
                for target in &mut self.targets {
                    target.span = unit(target.span);
                }
                for candidate in &mut self.ranked {
                    candidate.span = unit(candidate.span);
                }
                self.duration = Some(1.0);
            }
        }
        Ok(())
    }

    fn sort(&mut self, ties: Ties) -> Result<(), EvalError> {
        if self.ranked.iter().any(|candidate| candidate.score.is_none()) {
            return Err(EvalError::NoScore { query: self.truth.query.id.clone() });
        }
        if ties == Ties::LastFirst {
            self.ranked.reverse();
        }
        self.ranked.sort_by(|a, b| {
            let by_score = b.score.unwrap_or(0.0).total_cmp(&a.score.unwrap_or(0.0));
            match ties {
                Ties::FileOrder | Ties::LastFirst => by_score,
                Ties::ByPlace => by_score
                    .then_with(|| a.video.cmp(b.video))
                    .then_with(|| a.span.start().total_cmp(&b.span.start()))
                    .then_with(|| a.span.end().total_cmp(&b.span.end())),
            }
        });
        self.rank();
        Ok(())
    }

    /// Whether a prediction lies in the video of a moment.
    #[inline]
    pub(crate) fn meets(&self, candidate: &Candidate<'a>, target: &Target<'a>) -> bool {
        match self.identity {
            Identity::Reference => std::ptr::eq(candidate.video, target.video),
            // Names of one dataset mostly have one length and differ at the end, which tells without looking at the rest.
            Identity::Name => {
                let last = |video: &VideoId| video.as_str().as_bytes().last().copied();
                last(candidate.video) == last(target.video) && candidate.video == target.video
            }
        }
    }

    /// Whether the truth names a moment.
    pub(crate) fn answerable(&self) -> Answerable {
        if self.right(None).next().is_some() { Answerable::Yes } else { Answerable::No }
    }

    pub(crate) fn needs_duration(&self, metric: &str) -> Result<f64, EvalError> {
        self.duration
            .filter(|duration| *duration > 0.0)
            .ok_or_else(|| EvalError::NoDuration { metric: metric.to_owned(), query: self.truth.query.id.clone() })
    }

    /// The moments that answer the query at all, of one length if so asked.
    pub(crate) fn right(&self, range: Option<LengthRange>) -> impl Iterator<Item = &Target<'a>> + Clone {
        let in_range = move |target: &&Target<'a>| range.is_none_or(|range| range.holds(target.span));
        self.targets.iter().filter(|target| target.relevance > 0.0).filter(in_range)
    }

    /// Overlaps of predictions with what they have to meet, best ranked first, as far down as `until` says.
    pub(crate) fn overlaps(&self, until: Until, range: Option<LengthRange>, judge: Judge) -> Vec<Met> {
        let ranked = self.ranked.iter().map(|candidate| (candidate.rank, candidate));
        self.met_until(ranked, until, range, judge)
    }

    /// The same as if the list held nothing but the right videos: what lies in others takes no rank.
    pub(crate) fn overlaps_inside(&self, until: Until, range: Option<LengthRange>, judge: Judge) -> Vec<Met> {
        let inside = |candidate: &&Candidate<'a>| self.right(None).any(|target| self.meets(candidate, target));
        self.met_until(self.ranked.iter().filter(inside).enumerate(), until, range, judge)
    }

    fn met_until<'b>(
        &'b self,
        ranked: impl Iterator<Item = (usize, &'b Candidate<'a>)>,
        until: Until,
        range: Option<LengthRange>,
        judge: Judge,
    ) -> Vec<Met>
    where
        'a: 'b,
    {
        let mut met = Vec::new();
        for (rank, candidate) in ranked.take_while(|(rank, _)| *rank < until.depth) {
            let overlap = self.met(candidate, range, judge);
            met.push(Met { rank, overlap });
            if judge.passes(overlap, until.enough) {
                break;
            }
        }
        met
    }

    /// The overlap that counts for one prediction.
    fn met(&self, candidate: &Candidate<'a>, range: Option<LengthRange>, judge: Judge) -> f64 {
        let two = judge.matching == Matching::TwoOfFour && self.targets.len() >= 4;
        // A prediction that meets nothing scores below every overlap, 0 included, so that it never counts.
        let (mut best, mut second) = (-1.0, -1.0);
        for target in self.right(range).filter(|target| self.meets(candidate, target)) {
            let overlap = judge.iou.of(candidate.span, target.span);
            if overlap > best {
                (best, second) = (overlap, best);
            } else if overlap > second {
                second = overlap;
            }
        }
        if two { second } else { best }
    }
}
