//! How good somebody else's construction is, measured against what is known.

use cuemark_core::{GradedMoment, Moment, Predictions, Task, Truth, VideoId};
use serde::{Deserialize, Serialize};

use crate::{AuditFigure, Result, WorldLog, relevance};

/// How well the positives of built pools agree with the known ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolQuality {
    /// Pools looked at.
    pub pools: usize,
    /// Share of claimed positive videos that are right.
    pub precision: AuditFigure,
    /// Share of right videos **in the pool** that were claimed.
    pub recall: AuditFigure,
    /// Known positive videos that lie in a pool unclaimed: false negatives that would punish a right answer.
    pub unclaimed: usize,
}

/// Compares the positives that `pools` claim (the videos of their moments) with those the log knows (videos with a
/// moment of level 4). Queries without a pool count as pools of their claimed videos.
///
/// # Errors
/// When a query or video is not the world's.
pub fn pool_quality(log: &WorldLog, pools: &[Truth]) -> Result<PoolQuality> {
    let (mut claimed, mut right, mut known) = (0, 0, 0);
    for truth in pools {
        let meaning = log.meaning(&truth.query.id)?;
        let mut positives: Vec<&VideoId> = truth.right().map(|moment| &moment.video).collect();
        let mut videos: Vec<&VideoId> = truth.pool.iter().flatten().chain(positives.iter().copied()).collect();
        for list in [&mut positives, &mut videos] {
            list.sort_unstable();
            list.dedup();
        }
        claimed += positives.len();
        for video in videos {
            if !relevance::answers(meaning, log.film(&truth.query.id, video)?).is_empty() {
                known += 1;
                right += usize::from(positives.contains(&video));
            }
        }
    }
    Ok(PoolQuality {
        pools: pools.len(),
        precision: AuditFigure::share(right, claimed),
        recall: AuditFigure::share(right, known),
        unclaimed: known - right,
    })
}

/// How well given grades agree with the known ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradeAgreement {
    /// Moments compared.
    pub moments: usize,
    /// Share with exactly the known grade.
    pub exact: AuditFigure,
    /// Share at most one level off.
    pub within_one: AuditFigure,
    /// Mean absolute difference in levels.
    pub mean_error: f64,
}

/// Compares the grades in `truths` with the log's; moments without a grade are left out.
///
/// # Errors
/// When a query or video is not the world's.
pub fn grade_agreement(log: &WorldLog, truths: &[Truth]) -> Result<GradeAgreement> {
    let mut errors = Vec::new();
    for truth in truths {
        for GradedMoment { moment, relevance } in &truth.moments {
            if let Some(given) = relevance {
                errors.push((given.value() - f64::from(log.grade(&truth.query.id, moment)?)).abs());
            }
        }
    }
    let within = |limit: f64| errors.iter().filter(|error| **error <= limit).count();
    Ok(GradeAgreement {
        moments: errors.len(),
        exact: AuditFigure::share(within(0.0), errors.len()),
        within_one: AuditFigure::share(within(1.0), errors.len()),
        mean_error: cuemark_core::stats::mean(&errors),
    })
}

/// The known grades of somebody's candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateGrades {
    /// Lists looked at.
    pub queries: usize,
    /// Candidates of each level, 0 to 4.
    pub by_grade: [usize; 5],
    /// Mean level over all candidates, with a bootstrap interval over queries of the mean per query.
    pub mean: AuditFigure,
    /// Mean level by rank, in tens: ranks 1 to 10, 11 to 20 …
    pub mean_by_tens: Vec<f64>,
}

/// Grades ranked candidates (best first) by the log; candidates that name no video are left out.
///
/// # Errors
/// When a query or video is not the world's.
pub fn grade_candidates(log: &WorldLog, candidates: &Predictions) -> Result<CandidateGrades> {
    let lists = candidates.for_task(Task::Any).unwrap_or_default();
    let (mut by_grade, mut means, mut tens): ([usize; 5], Vec<f64>, Vec<Vec<f64>>) = ([0; 5], Vec::new(), Vec::new());
    for list in lists {
        let mut grades = Vec::new();
        for (rank, candidate) in list.ranked.iter().enumerate() {
            let Some(video) = candidate.video.clone() else { continue };
            let grade = log.grade(&list.query, &Moment { video, span: candidate.span })?;
            if let Some(count) = by_grade.get_mut(usize::from(grade)) {
                *count += 1;
            }
            grades.push(f64::from(grade));
            if tens.len() <= rank / 10 {
                tens.resize(rank / 10 + 1, Vec::new());
            }
            if let Some(ten) = tens.get_mut(rank / 10) {
                ten.push(f64::from(grade));
            }
        }
        means.push(cuemark_core::stats::mean(&grades));
    }
    Ok(CandidateGrades {
        queries: lists.len(),
        by_grade,
        mean: AuditFigure::of_mean(&means, 0),
        mean_by_tens: tens.iter().map(|ten| cuemark_core::stats::mean(ten)).collect(),
    })
}
