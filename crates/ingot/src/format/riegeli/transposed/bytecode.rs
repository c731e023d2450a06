//! The machine of a transposed chunk: states in an order that makes their transitions
//! short.
//!
//! A step that always has the same successor needs no transition. Other steps lead to a
//! row of copies of their frequent successors, the most frequent first. What follows them
//! seldom is found through a tree of rows that all of them share.

use std::cmp::Reverse;
use std::ops::Range;

use super::graph::Graph;

/// States that one transition can choose from.
const ROW: usize = 64;

/// Transitions that are worth a copy of the state that they lead to.
const FREQUENT: u32 = 10;

/// Most zeros that a transition can have behind it.
const REPEAT_MAX: u8 = 3;

/// A state of the machine: a step, or only a way to others.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub step: Option<u32>,
    /// As in the layout.
    pub next: usize,
}

/// A machine that takes a certain path.
#[derive(Debug)]
pub struct Bytecode {
    pub entries: Vec<Entry>,
    pub first: usize,
    pub transitions: Vec<u8>,
}

impl Bytecode {
    /// Returns a machine that takes the steps of `path`, each of them below `num_steps`.
    pub fn of(path: &[u32], num_steps: usize) -> Bytecode {
        let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
            let entries = vec![Entry { step: None, next: 0 }];
            return Bytecode { entries, first: 0, transitions: Vec::new() };
        };
        let graph = Graph::of(path, num_steps);
        let exits =
            (0..).zip(&graph.ranges).map(|(step, range)| Exit::of(&graph, range, step == last));
        let exits: Vec<Exit> = exits.collect();
        let mut builder = Builder::new(num_steps);
        builder.plant(&seldom(&graph, &exits), &mut Vec::new());
        builder.copy(&graph, &exits);
        let first = builder.place(first);
        builder.connect(&graph, &exits);
        let transitions = builder.transitions(&graph, &exits);
        Bytecode { entries: builder.entries, first, transitions }
    }
}

/// How the successors of a step are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// There is only one.
    Always,
    /// This many, the most frequent, in a row of their own, and the others in the tree.
    Row { copies: usize, others: bool },
}

impl Exit {
    fn of(graph: &Graph, range: &Range<usize>, is_last: bool) -> Exit {
        let edges = &graph.edges[range.clone()];
        if edges.len() == 1 && !is_last {
            return Exit::Always;
        }
        let frequent = edges.iter().take_while(|edge| edge.count >= FREQUENT).count();
        let all = frequent == edges.len() && frequent <= ROW;
        Exit::Row { copies: if all { frequent } else { frequent.min(ROW - 1) }, others: !all }
    }
}

/// Returns the steps that have to be in the tree, the most frequent first.
fn seldom(graph: &Graph, exits: &[Exit]) -> Vec<u32> {
    let mut counts = vec![0_u64; exits.len()];
    for (exit, range) in exits.iter().zip(&graph.ranges) {
        if let Exit::Row { copies, .. } = exit {
            for edge in &graph.edges[range.clone()][*copies..] {
                counts[edge.to as usize] += u64::from(edge.count);
            }
        }
    }
    let mut steps: Vec<u32> = (0..exits.len() as u32).filter(|&k| counts[k as usize] > 0).collect();
    steps.sort_by_key(|&step| (Reverse(counts[step as usize]), step));
    steps
}

/// A machine under construction.
struct Builder {
    entries: Vec<Entry>,
    /// A place of each step.
    places: Vec<Option<usize>>,
    /// Transitions that lead from the root of the tree to each step.
    ways: Vec<Vec<u8>>,
    /// Where the row of each step begins.
    rows: Vec<usize>,
}

impl Builder {
    fn new(num_steps: usize) -> Builder {
        Builder {
            entries: Vec::new(),
            places: vec![None; num_steps],
            ways: vec![Vec::new(); num_steps],
            rows: vec![0; num_steps],
        }
    }

    fn push(&mut self, step: u32) {
        self.places[step as usize].get_or_insert(self.entries.len());
        self.entries.push(Entry { step: Some(step), next: 0 });
    }

    /// Adds a tree of rows with these steps; `way` leads to it. Returns where it begins.
    fn plant(&mut self, steps: &[u32], way: &mut Vec<u8>) -> usize {
        let start = self.entries.len();
        let mut below = 1;
        while below * ROW < steps.len() {
            below *= ROW;
        }
        let branches = steps.len().saturating_sub(ROW).div_ceil((below - 1).max(1));
        let (here, others) = steps.split_at(steps.len().min(ROW - branches));
        for (k, &step) in (0..).zip(here) {
            self.push(step);
            self.ways[step as usize] = [&way[..], &[k]].concat();
        }
        self.entries.resize(self.entries.len() + branches, Entry { step: None, next: 0 });
        for (k, steps) in (here.len()..).zip(others.chunks(below)) {
            way.push(k as u8);
            self.entries[start + k].next = self.plant(steps, way);
            way.pop();
        }
        start
    }

    /// Adds the rows of frequent successors, behind the tree.
    fn copy(&mut self, graph: &Graph, exits: &[Exit]) {
        for (step, (exit, range)) in exits.iter().zip(&graph.ranges).enumerate() {
            let &Exit::Row { copies, others } = exit else { continue };
            if copies == 0 {
                continue;
            }
            self.rows[step] = self.entries.len();
            for edge in &graph.edges[range.clone()][..copies] {
                self.push(edge.to);
            }
            if others {
                self.entries.push(Entry { step: None, next: 0 });
            }
        }
    }

    /// Returns where a step is, and adds it if it is nowhere.
    fn place(&mut self, step: u32) -> usize {
        self.places[step as usize].unwrap_or_else(|| {
            self.push(step);
            self.entries.len() - 1
        })
    }

    /// Says of each state which is next.
    fn connect(&mut self, graph: &Graph, exits: &[Exit]) {
        let successor = |step: usize| match exits[step] {
            Exit::Always => Some(graph.edges[graph.ranges[step].start].to),
            Exit::Row { .. } => None,
        };
        for step in 0..exits.len() {
            if let Some(next) = successor(step) {
                self.place(next);
            }
        }
        let count = self.entries.len();
        for entry in &mut self.entries {
            let Some(step) = entry.step else { continue };
            entry.next = match successor(step as usize) {
                Some(next) => count + self.places[next as usize].expect("all have a place"),
                None => self.rows[step as usize],
            };
        }
    }

    /// Returns the transitions along the path.
    fn transitions(&self, graph: &Graph, exits: &[Exit]) -> Vec<u8> {
        let mut transitions = Vec::new();
        let mut push = |place: u8| match transitions.last_mut() {
            Some(last) if place == 0 && *last & REPEAT_MAX < REPEAT_MAX => *last += 1,
            _ => transitions.push(place << 2),
        };
        for &number in &graph.walk {
            let edge = graph.edges[number as usize];
            let Exit::Row { copies, .. } = exits[edge.from as usize] else { continue };
            let place = number as usize - graph.ranges[edge.from as usize].start;
            if place < copies {
                push(place as u8);
                continue;
            }
            if copies > 0 {
                push(copies as u8);
            }
            for &place in &self.ways[edge.to as usize] {
                push(place);
            }
        }
        transitions
    }
}
