//! The system's allocator, with a counter of allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Allocator that counts allocations by thread, at almost no cost.
pub(crate) struct Counting;

/// Returns the number of allocations of this thread.
pub(crate) fn count() -> u64 {
    COUNT.with(Cell::get)
}

fn add() {
    // A thread that ends has no counter any more, and needs none.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add();
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add();
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
