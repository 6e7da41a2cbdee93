//! Fusion of two ranked lists of candidates.

use crate::definitions::memory::{Fusion, Retrieval};

/// The constant of reciprocal rank fusion.
const RANK: f64 = 60.0;

/// One side of a search: its candidates with scores, best first, and its weight.
pub(super) struct Side<'a> {
    pub(super) found: &'a [(i64, f64)],
    pub(super) weight: f64,
}

/// Candidates and their scores, best first; the newer first if equal.
pub(super) fn fuse(sides: &[Side<'_>], retrieval: &Retrieval) -> Vec<(i64, f64)> {
    let mut fused: Vec<(i64, f64)> = Vec::new();
    // A single side has full weight.
    let alone = sides.len() == 1;
    for side in sides {
        let weight = if alone { 1.0 } else { side.weight };
        for (place, (chunk, _)) in side.found.iter().enumerate() {
            let score = weight
                * match retrieval.fusion {
                    Fusion::Weighted => scaled(side.found, place),
                    Fusion::Rrf => 1.0 / (RANK + 1.0 + place as f64),
                };
            match fused.iter_mut().find(|(known, _)| known == chunk) {
                Some((_, sum)) => *sum += score,
                None => fused.push((*chunk, score)),
            }
        }
    }
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    fused.retain(|(_, score)| *score >= retrieval.min_score);
    fused
}

/// The score of a candidate, scaled between the worst and the best of its list.
fn scaled(found: &[(i64, f64)], place: usize) -> f64 {
    let score = |at: usize| found.get(at).map_or(0.0, |(_, score)| *score);
    let (best, worst) = (score(0), score(found.len().saturating_sub(1)));
    if best - worst <= f64::EPSILON { 1.0 } else { (score(place) - worst) / (best - worst) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fused(vector: &[(i64, f64)], text: &[(i64, f64)], retrieval: Retrieval) -> Vec<(i64, f64)> {
        let sides = [
            Side { found: vector, weight: retrieval.vector_weight },
            Side { found: text, weight: retrieval.text_weight },
        ];
        let found = fuse(&sides, &retrieval);
        found.into_iter().map(|(chunk, score)| (chunk, (score * 1e4).round() / 1e4)).collect()
    }

    #[test]
    fn each_list_is_scaled_and_weighted() {
        let vector = [(1, 0.9), (2, 0.7), (3, 0.5)];
        let text = [(3, 12.0), (4, 2.0)];
        let found = fused(&vector, &text, Retrieval::default());
        assert_eq!(found, [(1, 0.7), (2, 0.35), (3, 0.3), (4, 0.0)]);
        // All equal: 1. Ties: the newer first.
        assert_eq!(fused(&[], &[(5, 2.0), (6, 2.0)], Retrieval::default()), [(6, 0.3), (5, 0.3)]);
        let strict = Retrieval { min_score: 0.31, ..Retrieval::default() };
        assert_eq!(fused(&vector, &text, strict), [(1, 0.7), (2, 0.35)]);
    }

    #[test]
    fn ranks_need_no_scale() {
        let ranks =
            Retrieval { fusion: Fusion::Rrf, vector_weight: 1.0, text_weight: 1.0, ..Retrieval::default() };
        let found = fused(&[(1, 0.9), (2, 0.1)], &[(2, 900.0)], ranks);
        assert_eq!(found, [(2, 0.0325), (1, 0.0164)]);
    }

    #[test]
    fn a_side_that_is_alone_counts_whole() {
        let retrieval = Retrieval::default();
        let side = Side { found: &[(1, 3.0), (2, 1.0)], weight: retrieval.text_weight };
        assert_eq!(fuse(&[side], &retrieval), [(1, 1.0), (2, 0.0)]);
    }
}
