//! Tests of compositions against lists.

use super::mixture::Mixture;
use super::permutation::Permutation;
use super::{Lengths, Level, Long, Order, Picks};
use crate::hash::Numbers;

/// A composition, as a value.
#[derive(Debug, Clone)]
enum Tree {
    Rows(u64),
    Table(Vec<u64>),
    Shuffle(Box<Tree>, u64),
    Repeat(Box<Tree>, Option<u64>),
    Slice(Box<Tree>, u64, i64, Option<u64>),
    Concat(Vec<Tree>),
    Interleave(Vec<Tree>),
    Mix(Vec<Tree>, Vec<(u64, Vec<u64>)>),
    Map(Box<Tree>),
}

/// Source, row, epoch.
type Item = (i32, i64, i64);

/// How many items of an infinite list are looked at.
const MANY: usize = 300;

impl Tree {
    fn random(numbers: &mut Numbers, depth: u64) -> Tree {
        if depth == 0 || numbers.below(6) == 0 {
            return match numbers.below(4) {
                0 => Tree::Table((0..numbers.below(9)).map(|_| numbers.below(50)).collect()),
                _ => Tree::Rows(numbers.below(14)),
            };
        }
        let kind = numbers.below(8);
        if kind >= 5 {
            let parts: Vec<Tree> =
                (0..1 + numbers.below(3)).map(|_| Tree::random(numbers, depth - 1)).collect();
            return match kind {
                5 => Tree::Concat(parts),
                6 => Tree::Interleave(parts),
                _ => {
                    let mut weigh = |start| {
                        let weights = parts.iter().map(|_| numbers.below(4)).collect::<Vec<u64>>();
                        (start, weights.into_iter().map(|weight| weight + 1).collect())
                    };
                    let schedule = vec![weigh(0), weigh(5), weigh(23)];
                    Tree::Mix(parts, schedule)
                }
            };
        }
        let inner = Box::new(Tree::random(numbers, depth - 1));
        match kind {
            0 | 1 => Tree::Shuffle(inner, numbers.below(3)),
            2 => Tree::Repeat(inner, (numbers.below(3) > 0).then(|| numbers.below(4))),
            3 => Tree::Map(inner),
            _ => {
                let Some(len) = inner.order().and_then(|order| order.len()) else {
                    let len = (numbers.below(2) == 0).then(|| numbers.below(20));
                    return Tree::Slice(inner, numbers.below(9), 1 + numbers.below(3) as i64, len);
                };
                let (start, step) = (numbers.below(len + 1), 1 + numbers.below(3));
                let count = (len - start).div_ceil(step);
                if numbers.below(3) == 0 && count > 0 {
                    let last = start + (count - 1) * step;
                    return Tree::Slice(inner, last, -(step as i64), Some(count));
                }
                Tree::Slice(inner, start, step as i64, Some(count))
            }
        }
    }

    /// Returns the order, if it is one that may be.
    fn order(&self) -> Option<Order> {
        let all = |parts: &[Tree]| parts.iter().map(Tree::order).collect::<Option<Vec<Order>>>();
        let made = match self {
            Tree::Rows(rows) => Order::of(*rows),
            Tree::Table(rows) => Order::table(rows.clone()),
            Tree::Shuffle(inner, seed) => inner.order()?.shuffle(*seed),
            Tree::Repeat(inner, times) => inner.order()?.repeat(*times),
            Tree::Slice(inner, start, step, len) => inner.order()?.slice(*start, *step, *len),
            Tree::Concat(parts) => Order::concat(all(parts)?),
            Tree::Interleave(parts) => Order::interleave(all(parts)?),
            Tree::Mix(parts, schedule) => Order::mix(all(parts)?, schedule),
            Tree::Map(inner) => inner.order()?.map(1),
        };
        made.ok()
    }

    /// Returns all items of a list that ends.
    fn whole(&self, epoch: u64, branch: i32) -> Vec<Item> {
        self.list(epoch, branch, self.order().unwrap().len().unwrap() as usize)
    }

    fn num_sources(&self) -> i32 {
        match self {
            Tree::Rows(_) | Tree::Table(_) => 1,
            Tree::Concat(parts) | Tree::Interleave(parts) | Tree::Mix(parts, _) => {
                parts.iter().map(Tree::num_sources).sum()
            }
            Tree::Shuffle(inner, _)
            | Tree::Repeat(inner, _)
            | Tree::Slice(inner, ..)
            | Tree::Map(inner) => inner.num_sources(),
        }
    }

    /// Returns the first `count` items, made from whole lists; `branch` sources are before them.
    fn list(&self, epoch: u64, branch: i32, count: usize) -> Vec<Item> {
        let mut items = match self {
            Tree::Rows(rows) => (0..*rows as i64).map(|row| (0, row, epoch as i64)).collect(),
            Tree::Table(rows) => rows.iter().map(|&row| (0, row as i64, epoch as i64)).collect(),
            Tree::Map(inner) => inner.list(epoch, branch, count),
            Tree::Shuffle(inner, seed) => {
                let items = inner.whole(epoch, branch);
                let permutation = Permutation::new(items.len() as u64, *seed, epoch, branch as u32);
                (0..items.len() as u64).map(|k| items[permutation.at(k) as usize]).collect()
            }
            Tree::Repeat(inner, times) => {
                let mut items = Vec::new();
                for k in 0..times.unwrap_or(count as u64) {
                    let below = super::walk::combine(epoch, *times, k);
                    items.extend(inner.whole(below, branch));
                    if items.len() >= count || items.is_empty() {
                        break;
                    }
                }
                items
            }
            Tree::Slice(inner, start, step, len) => {
                let len = len.map_or(count, |len| count.min(len as usize));
                let place = |k: usize| (*start as i64 + k as i64 * step) as usize;
                let reach = (0..len).map(place).max().map_or(0, |last| last + 1);
                let items = inner.list(epoch, branch, reach);
                (0..len).map(|k| items[place(k)]).collect()
            }
            Tree::Concat(parts) => {
                let mut items = Vec::new();
                for part in self.lists(parts, epoch, branch, count) {
                    items.extend(part);
                }
                items
            }
            Tree::Interleave(parts) => {
                let lists = self.lists(parts, epoch, branch, count);
                let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
                (0..longest)
                    .flat_map(|k| lists.iter().filter_map(move |list| list.get(k).copied()))
                    .collect()
            }
            Tree::Mix(parts, schedule) => {
                let mut lists: Vec<_> = self
                    .lists(parts, epoch, branch, count)
                    .into_iter()
                    .map(Vec::into_iter)
                    .collect();
                let mixture = Mixture::new(&vec![None; parts.len()], schedule).unwrap();
                (0..count as u64).map_while(|at| lists[mixture.at(at).0].next()).collect()
            }
        };
        items.truncate(count);
        items
    }

    fn lists(&self, parts: &[Tree], epoch: u64, branch: i32, count: usize) -> Vec<Vec<Item>> {
        let mut first = 0;
        let mut lists = Vec::new();
        for part in parts {
            let list = part.list(epoch, branch + first, count);
            lists.push(list.into_iter().map(|item| (item.0 + first, item.1, item.2)).collect());
            first += part.num_sources();
        }
        lists
    }
}

fn items(rows: &Picks) -> Vec<Item> {
    (0..rows.rows.len()).map(|k| (rows.sources[k], rows.rows[k], rows.epochs[k])).collect()
}

#[test]
fn any_composition_is_what_lists_give() {
    let mut numbers = Numbers::new(5);
    let (mut tried, mut infinite) = (0, 0);
    while tried < 3000 {
        let tree = Tree::random(&mut numbers, 5);
        let Some(order) = tree.order() else { continue };
        tried += 1;
        infinite += u64::from(order.len().is_none());
        let expected = tree.list(0, 0, order.len().map_or(MANY, |len| len as usize + 1));
        let len = order.len().unwrap_or(MANY as u64);
        assert_eq!(expected.len() as u64, len, "{tree:?}");
        assert_eq!(items(&order.rows(0, len).unwrap()), expected, "{tree:?}");
        let some: Vec<u64> = (0..len).rev().step_by(3).collect();
        let there: Vec<Item> = some.iter().map(|&at| expected[at as usize]).collect();
        assert_eq!(items(&order.rows_at(&some).unwrap()), there, "{tree:?}");
    }
    assert!(infinite > 100, "{infinite}");
}

#[test]
fn parts_of_equal_length_and_seed_have_permutations_of_their_own() {
    for len in [500, 5000] {
        let one = Order::of(len).unwrap().shuffle(7).unwrap();
        let alone = one.rows(0, len).unwrap().rows;
        let inner = Order::concat(vec![one.clone(), one.clone()]).unwrap();
        let order = Order::concat(vec![inner, one.clone()]).unwrap();
        let rows = order.rows(0, 3 * len).unwrap().rows;
        let found: Vec<&[i64]> = rows.chunks(len as usize).collect();
        assert_eq!(found[0], alone);
        assert!(found[0] != found[1] && found[0] != found[2] && found[1] != found[2]);
        for part in found {
            let mut sorted = part.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..len as i64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn packs_and_windows_hold_the_same_rows_in_any_part() {
    let lengths = Lengths::new(vec![(0..3000).map(|row| 1 + row % 37).collect()]);
    let one = Order::of(3000).unwrap().shuffle(4).unwrap();
    let packs = one.pack(lengths.clone(), 40, Long::Refuse).unwrap();
    let windows = one.window(lengths, 5, 5, true).unwrap();
    for part in [packs, windows] {
        let len = part.len().unwrap();
        let alone = part.rows(0, len).unwrap();
        let twice = Order::concat(vec![part.clone(), part]).unwrap();
        let second = twice.rows(len, 2 * len).unwrap();
        assert_eq!((second.rows, second.stops), (alone.rows, alone.stops));
    }
}

#[test]
fn nested_repeats_count_on() {
    let order = Order::of(1).unwrap().repeat(Some(3)).unwrap().repeat(Some(2)).unwrap();
    assert_eq!(order.rows(0, 6).unwrap().epochs, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_map_has_a_key_for_each_position_and_epoch() {
    let leaf = Order::of(5).unwrap();
    let order = leaf.map(1).unwrap().repeat(None).unwrap().map(1).unwrap();
    let rows = order.rows(0, 40).unwrap();
    let level = &rows.levels[0];
    assert_eq!((level.width, &level.maps[..4]), (2, &[0, 1, 0, 1][..]));
    let mut keys = level.keys.clone();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 80);
    let both = Order::concat(vec![leaf.map(1).unwrap(), leaf.clone()]).unwrap();
    let level =
        Level { width: 1, maps: vec![0, -1], ..both.rows_at(&[0, 5]).unwrap().levels.remove(0) };
    assert_eq!(both.rows_at(&[0, 5]).unwrap().levels, [level]);
}

#[test]
fn batches_of_batches_have_offsets_on_each_level() {
    let order = Order::of(7).unwrap().map(0).unwrap().batch(2, false).unwrap();
    let order = order.map(0).unwrap().batch(3, false).unwrap();
    assert_eq!(order.len(), Some(2));
    let rows = order.rows(0, 2).unwrap();
    assert_eq!(rows.rows, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(rows.levels[0].offsets, [0, 3, 4]);
    assert_eq!(rows.levels[1].offsets, [0, 2, 4, 6, 7]);
    assert_eq!(rows.levels[1].maps, [1, 1, 1, 1]);
    assert_eq!(rows.levels[2].maps, [0; 7]);
    assert_eq!(Order::of(7).unwrap().batch(2, true).unwrap().len(), Some(3));
}

#[test]
fn windows_cover_each_row() {
    let lengths = Lengths::new(vec![vec![5, 0, 3, 2, 7]]);
    let leaf = Order::of(5).unwrap();
    let told = |order: &Order| {
        let rows = order.rows(0, order.len().unwrap()).unwrap();
        let told = |k: usize| (rows.rows[k], rows.starts[k], rows.stops[k]);
        (0..rows.rows.len()).map(told).collect::<Vec<_>>()
    };
    let whole = leaf.window(lengths.clone(), 3, 2, false).unwrap();
    assert_eq!(told(&whole), [(0, 0, 3), (0, 2, 5), (2, 0, 3), (4, 0, 3), (4, 2, 5), (4, 4, 7)]);
    let all = leaf.window(lengths, 4, 4, true).unwrap();
    assert_eq!(told(&all), [(0, 0, 4), (0, 4, 5), (2, 0, 3), (3, 0, 2), (4, 0, 4), (4, 4, 7)]);
}

#[test]
fn packs_are_the_same_in_each_epoch_and_long_rows_are_as_asked() {
    let lengths = Lengths::new(vec![(0..10_000).map(|row| row % 37).collect()]);
    let leaf = Order::of(10_000).unwrap().shuffle(4).unwrap();
    let packs = leaf.pack(lengths.clone(), 64, Long::Refuse).unwrap();
    let len = packs.len().unwrap();
    let twice = packs.repeat(Some(2)).unwrap();
    let (one, two) = (twice.rows(0, len).unwrap(), twice.rows(len, 2 * len).unwrap());
    assert_eq!(one.rows, two.rows);
    assert_eq!((one.epochs[0], two.epochs[0]), (0, 1));
    let mut rows = one.rows.clone();
    rows.sort_unstable();
    assert_eq!(rows, (0..10_000).collect::<Vec<i64>>());

    let refused = leaf.pack(lengths.clone(), 35, Long::Refuse).err().unwrap().to_string();
    assert!(
        refused.ends_with(
            "is 36 long, a pack at most 35: long=\"cut\" cuts such rows, \
                               long=\"drop\" drops them"
        ),
        "{refused}"
    );
    let dropped = leaf.pack(lengths.clone(), 35, Long::Drop).unwrap();
    let rows = dropped.rows(0, dropped.len().unwrap()).unwrap();
    assert_eq!(rows.rows.len(), 10_000 - 270);
    let cut = leaf.pack(lengths, 10, Long::Cut).unwrap();
    let rows = cut.rows(0, cut.len().unwrap()).unwrap();
    let total: i64 = (0..rows.rows.len()).map(|k| rows.stops[k] - rows.starts[k]).sum();
    assert_eq!(total, (0..10_000).map(|row| row % 37).sum::<i64>());
    let huge = Lengths::new(vec![vec![u64::MAX]]);
    assert!(Order::of(1).unwrap().pack(huge, 1, Long::Cut).is_err());
}

#[test]
fn numbers_near_the_end_are_errors_and_not_wrong() {
    let last = i64::MAX as u64;
    let endless = Order::of(10).unwrap().repeat(None).unwrap();
    assert_eq!(endless.rows_at(&[last - 1]).unwrap().rows, [((last - 1) % 10) as i64]);
    assert!(endless.rows_at(&[last]).is_err());
    assert!(endless.rows_at(&[u64::MAX]).is_err());
    assert!(endless.slice(5, 3, None).unwrap().rows_at(&[last / 2]).is_err());
    assert!(endless.batch(1 << 24, false).unwrap().rows_at(&[last - 1]).is_err());
    assert!(Order::of(last + 1).is_err());
    assert!(Order::of(last).unwrap().repeat(Some(2)).is_err());
    assert!(Order::concat(vec![Order::of(last).unwrap(), Order::of(1).unwrap()]).is_err());
    assert!(Order::interleave(vec![Order::of(last).unwrap(), Order::of(1).unwrap()]).is_err());
    assert!(Order::of(last).unwrap().rows(0, last).is_err());
    assert_eq!(
        Order::of(last).unwrap().shuffle(0).unwrap().rows_at(&[last - 1]).unwrap().rows.len(),
        1
    );
    let weights = [(0, vec![1, 1])];
    let mixed = Order::mix(vec![Order::of(last).unwrap(), endless.clone()], &weights).unwrap();
    assert_eq!(mixed.len(), None);
    assert!(endless.shuffle(0).is_err() && endless.repeat(Some(2)).is_err());
    assert!(Order::of(3).unwrap().slice(0, 1, Some(4)).is_err());
    assert!(Order::of(3).unwrap().slice(2, -1, Some(4)).is_err());
    assert!(Order::concat(vec![]).is_err());
    assert!(Order::of(3).unwrap().batch(0, false).is_err());
}

#[test]
fn nothing_repeated_is_nothing() {
    let none = Order::of(0).unwrap();
    assert_eq!(none.shuffle(1).unwrap().repeat(None).unwrap().len(), Some(0));
    let both = Order::interleave(vec![none.clone(), none]).unwrap();
    assert!(both.rows(0, 0).unwrap().rows.is_empty());
}

#[test]
fn a_composition_has_a_bounded_depth() {
    let mut order = Order::of(3).unwrap();
    let error = loop {
        match order.map(0) {
            Ok(deeper) => order = deeper,
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(error, "an order has at most 200 steps one after another");
}
