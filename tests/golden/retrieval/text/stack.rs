//! A stack of readings that forgets the oldest.

use std::collections::VecDeque;
use std::fmt;

/// How a reading came to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    Gauge,
    Forecast,
    Manual,
}

#[derive(Debug, Clone)]
pub struct Reading {
    pub level_mm: i32,
    pub source: Source,
    pub label: &'static str,
}

/// Bounded; the oldest goes first.
pub struct Stack<T> {
    items: VecDeque<T>,
    limit: usize,
}

impl<T: Clone> Stack<T> {
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "a stack of nothing: {{}}");
        Stack { items: VecDeque::with_capacity(limit), limit }
    }

    // Pushes, and says what fell out at the other end. This comment is long enough that the method is
    // not tiny, so that each of the methods around it has a chunk of its own when the impl block is cut
    // into parts; it goes on for a while, to say that nothing is lost but what the caller was told about,
    // and that the limit is not a hint but a promise, which the tests hold the stack to.
    pub fn push(&mut self, item: T) -> Option<T> {
        let fallen = if self.items.len() == self.limit {
            self.items.pop_front()
        } else {
            None
        };
        self.items.push_back(item);
        fallen
    }

    pub fn latest(&self) -> Option<&T> {
        self.items.back()
    }

    /// The items from the oldest to the youngest, as they are now. A copy, since a reader should not
    /// hold up whoever measures; it costs what it costs, and the stack is small. Should that ever change,
    /// hand out an iterator with the lifetime of the lock, and say so in the name.
    pub fn snapshot(&self) -> Vec<T> {
        let mut out = Vec::with_capacity(self.items.len());
        for item in &self.items {
            out.push(item.clone());
        }
        out
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Gauge => write!(f, "{} mm", self.level_mm),
            Source::Forecast => write!(f, "{} mm (forecast)", self.level_mm),
            Source::Manual => write!(f, "{} mm, says {}", self.level_mm, self.label),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_falls_out() {
        let mut stack = Stack::new(2);
        assert_eq!(stack.push(1), None);
        assert_eq!(stack.push(2), None);
        assert_eq!(stack.push(3), Some(1));
        assert_eq!(stack.snapshot(), vec![2, 3]);
    }
}
