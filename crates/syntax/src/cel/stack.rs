//! Stack for deep expressions.
//!
//! The parser, the checker and the evaluator recurse. An expression of the maximum depth needs more
//! stack than a thread of a server has, so that it is compiled and evaluated on a thread of its
//! own. Such expressions do not occur in practice.

use std::thread;

/// Size of the stack for deep expressions in bytes. Only the part that is used takes memory.
const STACK_SIZE: usize = 64 << 20;
/// Depth up to which the stack of the caller is used.
const DEPTH_MAX: usize = 40;
/// Number of characters up to which a chain of operators is not deep.
const LENGTH_MAX: usize = 2_000;

/// Reports whether the compilation of an expression may need much stack.
pub fn is_deep(source: &str) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut operators = 0;
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'?' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<' | b'>' | b'!' => operators += 1,
            _ => {}
        }
    }
    deepest > DEPTH_MAX || operators > DEPTH_MAX * 2 || source.len() > LENGTH_MAX
}

/// Runs `work` on the stack of the caller, or on a large stack. Returns `None` if no thread can be
/// started.
pub fn run<T: Send>(is_deep: bool, work: impl FnOnce() -> T + Send) -> Option<T> {
    if !is_deep {
        return Some(work());
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK_SIZE);
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}
