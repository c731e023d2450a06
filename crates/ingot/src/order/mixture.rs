//! Mixing parts by weight, with exact proportions at every prefix.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LEN_MAX;
use crate::{Error, Result};

/// The weights of a mix add up to at most this.
pub const WEIGHTS_MAX: u64 = 65_536;

/// Weights change at most so often: each change has a table of its own.
const CHANGES_MAX: usize = 1024;

/// One period of a mix by integer weights: which part each position takes a sample of.
///
/// After any n positions, a part of weight w has supplied more than `n * w / sum - 1` samples and
/// fewer than `n * w / sum + 1`: its j-th sample (from 0) has to be at position
/// `floor(j * sum / w)` or later and before `ceil((j + 1) * sum / w)`. The sample with the earliest
/// limit comes first, which meets all of these limits whenever they can be met; and they can,
/// because fractions of samples could.
pub struct Period {
    weights: Vec<u64>,
    /// The part of each position, and how many samples of it come before in the period.
    turns: Vec<(u16, u16)>,
}

impl Period {
    /// Plans a period.
    ///
    /// # Errors
    ///
    /// The weights are all zero, or add up to more than [`WEIGHTS_MAX`].
    pub fn new(weights: &[u64]) -> Result<Self> {
        let sum = weights.iter().fold(0, |sum: u64, &weight| sum.saturating_add(weight));
        if sum == 0 || sum > WEIGHTS_MAX {
            let reason = format!("weights add up to 1 to {WEIGHTS_MAX}, these to {sum}");
            return Err(Error::Invalid(reason));
        }
        let mut waiting: Vec<Vec<(u16, u16)>> = vec![Vec::new(); sum as usize];
        for (part, &weight) in weights.iter().enumerate() {
            for count in 0..weight {
                waiting[(count * sum / weight) as usize].push((part as u16, count as u16));
            }
        }
        let mut ready = BinaryHeap::new();
        let turns = waiting.into_iter().map(|released| {
            for (part, count) in released {
                let due = ((u64::from(count) + 1) * sum).div_ceil(weights[part as usize]);
                ready.push(Reverse((due, part, count)));
            }
            let Some(Reverse((_, part, count))) = ready.pop() else {
                unreachable!("by position n at least n + 1 samples are released");
            };
            (part, count)
        });
        let turns = turns.collect();
        Ok(Period { weights: weights.to_vec(), turns })
    }

    /// Returns the part of a position, and how many samples of it come before.
    #[inline]
    fn at(&self, position: u64) -> (usize, u64) {
        let period = self.turns.len() as u64;
        let (part, count) = self.turns[(position % period) as usize];
        let part = part as usize;
        (part, (position / period) * self.weights[part] + u64::from(count))
    }

    /// Returns how many samples each part supplies before a position.
    fn counts(&self, position: u64) -> Vec<u64> {
        let period = self.turns.len() as u64;
        let mut counts: Vec<u64> =
            self.weights.iter().map(|&weight| position / period * weight).collect();
        for &(part, _) in &self.turns[..(position % period) as usize] {
            counts[part as usize] += 1;
        }
        counts
    }

    /// Returns the position at which each part supplies its sample number `counts[part]`; `None`
    /// if that is never, or past all positions.
    fn positions(&self, counts: &[Option<u64>]) -> Vec<Option<u64>> {
        let mut places = vec![None; counts.len()];
        for (place, &(part, before)) in self.turns.iter().enumerate() {
            let (part, before) = (part as usize, u64::from(before));
            let Some(count) = counts[part] else { continue };
            if count % self.weights[part] == before {
                let periods = u128::from(count / self.weights[part]) * self.turns.len() as u128;
                places[part] = u64::try_from(periods + place as u128).ok();
            }
        }
        places
    }
}

/// A mix whose weights may change at some positions.
pub struct Mixture {
    segments: Vec<Segment>,
    len: Option<u64>,
}

struct Segment {
    start: u64,
    /// How many samples each part has supplied before.
    given: Vec<u64>,
    period: Period,
}

impl Mixture {
    /// Plans a mix of parts of some lengths; `None` is a part without end.
    ///
    /// `schedule` has the positions from which weights apply, the first of which is 0. No sample
    /// is lost or repeated where they change. The mix ends before the first position for which
    /// the part that is due has no sample left.
    ///
    /// # Errors
    ///
    /// The list of parts is empty, the schedule is too long, does not begin at 0 or does not
    /// increase, or weights do not fit the parts.
    pub fn new(lens: &[Option<u64>], schedule: &[(u64, Vec<u64>)]) -> Result<Self> {
        if lens.is_empty() {
            return Err(Error::Invalid("a mix has at least one part".to_owned()));
        }
        if schedule.first().is_none_or(|&(start, _)| start != 0) {
            return Err(Error::Invalid("the weights of a mix begin at position 0".to_owned()));
        }
        if schedule.len() > CHANGES_MAX {
            let found = schedule.len();
            let reason =
                format!("a mix has weights for at most {CHANGES_MAX} positions, not {found}");
            return Err(Error::Invalid(reason));
        }
        let mut mixture = Mixture { segments: Vec::with_capacity(schedule.len()), len: None };
        let mut given = vec![0; lens.len()];
        for (k, (start, weights)) in schedule.iter().enumerate() {
            let after = schedule.get(k + 1).map(|&(start, _)| start);
            if after.is_some_and(|after| after <= *start) {
                let reason = "the positions at which weights change go up";
                return Err(Error::Invalid(reason.to_owned()));
            }
            if weights.len() != lens.len() {
                let (expected, found) = (lens.len(), weights.len());
                let reason = format!("a mix of {expected} parts has {found} weights");
                return Err(Error::Invalid(reason));
            }
            let period = Period::new(weights)?;
            if mixture.len.is_none() {
                let left: Vec<Option<u64>> =
                    lens.iter().zip(&given).map(|(len, &given)| Some((*len)? - given)).collect();
                let end = period.positions(&left).into_iter().flatten().min();
                mixture.len = end
                    .and_then(|end| start.checked_add(end))
                    .filter(|&end| end <= LEN_MAX)
                    .filter(|&end| after.is_none_or(|after| end < after));
            }
            let counts = after.map(|after| period.counts(after - start));
            mixture.segments.push(Segment { start: *start, given: given.clone(), period });
            if mixture.len.is_none() {
                for (given, count) in given.iter_mut().zip(counts.into_iter().flatten()) {
                    *given += count;
                }
            }
        }
        Ok(mixture)
    }

    /// Returns the number of positions; `None` if it has no end.
    pub fn len(&self) -> Option<u64> {
        self.len
    }

    /// Returns the part of a position, and the position in the part.
    #[inline]
    pub fn at(&self, position: u64) -> (usize, u64) {
        let after = self.segments.partition_point(|segment| segment.start <= position);
        let segment = &self.segments[after - 1];
        let (part, count) = segment.period.at(position - segment.start);
        (part, segment.given[part] + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Numbers;

    #[test]
    fn every_prefix_has_its_proportions() {
        let mut numbers = Numbers::new(1);
        for case in 0..300 {
            let parts = 1 + numbers.below(12) as usize;
            let most = if case % 10 == 0 { WEIGHTS_MAX / 12 } else { 1 + numbers.below(40) };
            let mut weights: Vec<u64> = (0..parts).map(|_| numbers.below(most + 1)).collect();
            weights[0] += u64::from(weights.iter().sum::<u64>() == 0);
            let sum: u64 = weights.iter().sum();
            let period = Period::new(&weights).unwrap();
            let mut counts = vec![0; parts];
            for position in 0..2 * sum.min(5000) {
                let (part, before) = period.at(position);
                assert_eq!(before, counts[part]);
                counts[part] += 1;
                for (&count, &weight) in counts.iter().zip(&weights) {
                    let error = (count * sum) as i64 - ((position + 1) * weight) as i64;
                    assert!(error.unsigned_abs() < sum, "{weights:?} at {position}");
                }
            }
            assert_eq!(period.counts(2 * sum.min(5000)), counts);
        }
    }

    #[test]
    fn the_largest_period_keeps_its_proportions() {
        let weights = [1, 65_535 - 20_000, 20_000];
        let period = Period::new(&weights).unwrap();
        assert_eq!(period.counts(WEIGHTS_MAX), weights);
    }

    #[test]
    fn a_mix_ends_before_the_first_sample_that_is_missing() {
        let mut numbers = Numbers::new(2);
        for _ in 0..2000 {
            let parts = 1 + numbers.below(4) as usize;
            let lens: Vec<Option<u64>> =
                (0..parts).map(|_| (numbers.below(4) > 0).then(|| numbers.below(30))).collect();
            let mut start = 0;
            let schedule: Vec<(u64, Vec<u64>)> = (0..1 + numbers.below(4))
                .map(|_| {
                    let mut weights: Vec<u64> = (0..parts).map(|_| numbers.below(5)).collect();
                    weights[0] += u64::from(weights.iter().sum::<u64>() == 0);
                    let entry = (start, weights);
                    start += 1 + numbers.below(20);
                    entry
                })
                .collect();
            let mixture = Mixture::new(&lens, &schedule).unwrap();
            let mut counts = vec![0; parts];
            for position in 0..mixture.len().unwrap_or(400) {
                let (part, at) = mixture.at(position);
                assert_eq!(at, counts[part], "{lens:?} {schedule:?} at {position}");
                counts[part] += 1;
                assert!(lens[part].is_none_or(|len| at < len));
            }
            if let Some(len) = mixture.len() {
                let (part, at) = mixture.at(len);
                assert_eq!(Some(at), lens[part], "{lens:?} {schedule:?}");
            }
        }
    }

    #[test]
    fn wrong_weights_are_rejected() {
        let none = Mixture::new(&[], &[]);
        assert_eq!(none.err().unwrap().to_string(), "a mix has at least one part");
        let zero = Mixture::new(&[None], &[(0, vec![0])]);
        assert_eq!(zero.err().unwrap().to_string(), "weights add up to 1 to 65536, these to 0");
        let many = Mixture::new(&[None; 2], &[(0, vec![u64::MAX, 2])]);
        assert!(many.err().unwrap().to_string().ends_with(&u64::MAX.to_string()));
        let often: Vec<(u64, Vec<u64>)> = (0..1025).map(|start| (start, vec![1])).collect();
        assert!(Mixture::new(&[None], &often).is_err());
        let late = Mixture::new(&[None], &[(1, vec![1])]);
        assert_eq!(late.err().unwrap().to_string(), "the weights of a mix begin at position 0");
    }
}
