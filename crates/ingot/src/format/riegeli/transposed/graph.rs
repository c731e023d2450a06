//! Which steps follow each other on a path, and how often.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

/// One step that follows another.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub count: u32,
}

/// All that follow each other.
pub struct Graph {
    /// Those from one step stand together, the most frequent first.
    pub edges: Vec<Edge>,
    /// Which are from each step.
    pub ranges: Vec<Range<usize>>,
    /// The edges along the path.
    pub walk: Vec<u32>,
}

impl Graph {
    /// Counts what follows each step on a path of steps below `num_steps`.
    pub fn of(path: &[u32], num_steps: usize) -> Graph {
        let mut edges: Vec<Edge> = Vec::new();
        let mut numbers = HashMap::new();
        let mut latest = vec![u32::MAX; num_steps];
        let mut walk = Vec::with_capacity(path.len());
        for (&from, &to) in path.iter().zip(path.iter().skip(1)) {
            let guess = latest[from as usize];
            let number = match edges.get(guess as usize) {
                Some(edge) if edge.to == to => guess,
                _ => *numbers.entry((from, to)).or_insert_with(|| {
                    edges.push(Edge { from, to, count: 0 });
                    edges.len() as u32 - 1
                }),
            };
            edges[number as usize].count += 1;
            latest[from as usize] = number;
            walk.push(number);
        }
        let mut order: Vec<u32> = (0..edges.len() as u32).collect();
        order.sort_by_key(|&number| {
            let Edge { from, to, count } = edges[number as usize];
            (from, Reverse(count), to)
        });
        let mut ranks = vec![0; edges.len()];
        let mut ranges = vec![0..0; num_steps];
        for (rank, &number) in order.iter().enumerate() {
            ranks[number as usize] = rank as u32;
            let range: &mut Range<usize> = &mut ranges[edges[number as usize].from as usize];
            if range.end == 0 {
                range.start = rank;
            }
            range.end = rank + 1;
        }
        for number in &mut walk {
            *number = ranks[*number as usize];
        }
        let edges = order.iter().map(|&number| edges[number as usize]).collect();
        Graph { edges, ranges, walk }
    }
}
