//! No abort where memory ends: the program says so, removes what it was writing, and leaves with exit code 2.
//!
//! The library turns large requests that fail into errors, which name the file. This is for all the rest: decoders, and the
//! last few bytes.

use proxlift::{memory, storage};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        checked(unsafe { System.realloc(pointer, layout, size) })
    }
}

#[inline]
fn checked(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() && !memory::is_tried() {
        leave();
    }
    pointer
}

/// A new thread that finds no memory for its stack of signals panics before any of ours is called: that ends in the sentence too.
pub fn tell_of_threads_without_memory() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let of_the_system = std::io::Error::from_raw_os_error(NO_MEMORY).to_string();
        if panic.to_string().contains(&of_the_system) {
            leave();
        }
        before(panic);
    }));
}

/// The code of the system for it.
#[cfg(unix)]
const NO_MEMORY: i32 = libc::ENOMEM;
#[cfg(not(unix))]
const NO_MEMORY: i32 = 8;

/// Ends the program; returns only in the thread that does so, should it ask for memory meanwhile.
#[cold]
fn leave() {
    static LEAVING: AtomicBool = AtomicBool::new(false);
    thread_local! {
        static HERE: Cell<bool> = const { Cell::new(false) };
    }
    if HERE.replace(true) {
        return;
    }
    while LEAVING.swap(true, Ordering::Relaxed) {
        std::thread::sleep(Duration::from_secs(1));
    }
    storage::remove_partials_if_free();
    let _ = std::io::stderr()
        .write_all(b"error: the system has no memory left: free some, or give smaller pictures or batches\n");
    end(i32::from(super::BAD_INPUT));
}

/// At once: what other libraries do at the end may ask for memory, and abort.
#[cfg(unix)]
fn end(code: i32) -> ! {
    // SAFETY: nothing is left to be done; partial files are removed, and what was said is not buffered.
    unsafe { libc::_exit(code) }
}

#[cfg(not(unix))]
fn end(code: i32) -> ! {
    std::process::exit(code)
}
