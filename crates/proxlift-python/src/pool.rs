//! Threads: one pool and one engine for each process, work that Ctrl-C ends, and forks.
//!
//! A process that was forked has none of its parent's threads, and whoever waits for one waits for ever. So a child starts
//! with a pool and an engine of its own; those of its parent are left alone. What the library computes once, and keeps behind
//! locks, is computed before the first fork.
//!
//! To hand work to another thread and be woken by it takes some 50 microseconds, which small pictures would notice. So the
//! main thread of Python belongs to a second pool, and does small work itself.

use crate::error::to_python;
use proxlift::engine::{self, SharedEngine};
use proxlift::image::{Channels, Image};
use proxlift::model::BuiltIn;
use proxlift::noise::NoiseModel;
use proxlift::{Error, Result};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

/// How often a long call looks whether Ctrl-C was pressed.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

pub struct State {
    pool: ThreadPool,
    pub engine: SharedEngine,
}

/// The pool of this process; null before the first call. What was here is never freed: a call may still be using it.
static STATE: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());
/// 0 for one thread a core, or what `RAYON_NUM_THREADS` says.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The pool that the main thread belongs to, for small work; null before the first.
static MAIN_POOL: AtomicPtr<ThreadPool> = AtomicPtr::new(std::ptr::null_mut());
/// The main thread, if it was the one that imported the module.
static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();
/// Whether this thread cannot belong to a pool of this process: it was forked, or other numbers of threads are wanted.
static NO_MAIN_POOL: AtomicBool = AtomicBool::new(false);

/// The pool of the main thread, if this is the main thread.
fn main_pool() -> Option<&'static ThreadPool> {
    if NO_MAIN_POOL.load(Ordering::Relaxed) || MAIN_THREAD.get() != Some(&std::thread::current().id()) {
        return None;
    }
    let there = MAIN_POOL.load(Ordering::Acquire);
    // SAFETY: what the pointer ever pointed to is never freed.
    if let Some(pool) = unsafe { there.as_ref() } {
        return Some(pool);
    }
    let threads = THREADS.load(Ordering::Relaxed);
    let pool = ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build();
    let Ok(pool) = pool else {
        NO_MAIN_POOL.store(true, Ordering::Relaxed);
        return None;
    };
    // Only the main thread comes here.
    let made = Box::leak(Box::new(pool));
    MAIN_POOL.store(made, Ordering::Release);
    Some(made)
}

/// [`run`] for work that is done before anybody could press Ctrl-C.
pub fn run_small<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Cancel) -> Result<R> + Send,
) -> PyResult<R> {
    match main_pool() {
        Some(pool) => py.detach(|| pool.install(|| work(&AtomicBool::new(false)))).map_err(to_python),
        None => run(py, work),
    }
}

fn new_state(threads: usize) -> PyResult<State> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("proxlift-{i}")).build();
    let pool = pool.map_err(|e| PyRuntimeError::new_err(format!("no threads could be started: {e}")))?;
    Ok(State { pool, engine: engine::standard() })
}

/// The pool and the engine of this process.
pub fn state() -> PyResult<&'static State> {
    let there = STATE.load(Ordering::Acquire);
    // SAFETY: what the pointer ever pointed to is never freed.
    if let Some(state) = unsafe { there.as_ref() } {
        return Ok(state);
    }
    let made = Box::into_raw(Box::new(new_state(THREADS.load(Ordering::Relaxed))?));
    match STATE.compare_exchange(there, made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it was just made, and is never freed from here on.
        Ok(_) => Ok(unsafe { &*made }),
        Err(first) => {
            // SAFETY: nobody else has seen this one; another thread was first.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: what the pointer ever pointed to is never freed.
            Ok(unsafe { &*first })
        }
    }
}

/// Told to long work: whether somebody wants it to end.
pub type Cancel = AtomicBool;

/// Runs `work` on the pool without the interpreter's lock, and looks after Ctrl-C meanwhile.
pub fn run<R: Send + 'static>(py: Python<'_>, work: impl FnOnce(&Cancel) -> Result<R> + Send) -> PyResult<R> {
    run_with(py, |_, cancel| work(cancel), |_, ()| Ok(true))
}

/// Asks the thread of the caller, which answers with the interpreter's lock in its hands: whether to go on.
pub type Ask<'a, Q> = &'a Arc<dyn Fn(Q) -> Result<bool> + Send + Sync>;

/// [`run`], for work that has questions to the caller's thread: an answer that is an exception ends the work.
pub fn run_with<R: Send + 'static, Q: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Ask<'_, Q>, &Cancel) -> Result<R> + Send,
    mut answer: impl FnMut(Python<'_>, Q) -> PyResult<bool> + Send,
) -> PyResult<R> {
    enum Message<R, Q> {
        Done(Result<R>),
        Question(Q),
    }
    let state = state()?;
    let cancel = &AtomicBool::new(false);
    let (result, raised) = py.detach(|| {
        let (send, receive) = sync_channel(1);
        let (reply, replies) = sync_channel(1);
        let replies = Mutex::new(replies);
        let asked = send.clone();
        state.pool.in_place_scope(|scope| {
            scope.spawn(move |_| {
                let ask: Arc<dyn Fn(Q) -> Result<bool> + Send + Sync> = Arc::new(move |question| {
                    asked.send(Message::Question(question)).map_err(|_| Error::Cancelled)?;
                    wait(&replies).ok_or(Error::Cancelled)
                });
                // Nobody listens only after a panic here.
                let _ = send.send(Message::Done(work(&ask, cancel)));
            });
            let mut raised = None;
            loop {
                let message = receive.recv_timeout(BETWEEN_LOOKS);
                let heard = match message {
                    Ok(Message::Done(result)) => return (Some(result), raised),
                    Ok(Message::Question(question)) => {
                        let heard = Python::attach(|py| answer(py, question));
                        let _ = reply.send(heard.as_ref().ok().copied());
                        heard.map(drop)
                    }
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    // The work panicked; the scope passes that on.
                    Err(RecvTimeoutError::Disconnected) => return (None, raised),
                };
                if let Err(exception) = heard {
                    raised.get_or_insert(exception);
                    cancel.store(true, Ordering::Relaxed);
                }
            }
        })
    });
    match (raised, result) {
        (Some(exception), _) => Err(exception),
        (None, Some(result)) => result.map_err(to_python),
        (None, None) => Err(PyRuntimeError::new_err("the work ended without a result")),
    }
}

/// The reply, doing other work of the pool until it comes: the caller may start some.
fn wait(replies: &Mutex<Receiver<Option<bool>>>) -> Option<bool> {
    loop {
        match replies.lock().ok()?.try_recv() {
            Ok(reply) => return reply,
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return None,
        }
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Uses so many threads from now on; 0 is one for each core.
#[pyfunction]
pub fn set_threads(count: usize) -> PyResult<()> {
    if count > 1024 {
        return Err(PyValueError::new_err(format!("{count} threads are too many: give at most 1024")));
    }
    THREADS.store(count, Ordering::Relaxed);
    if !MAIN_POOL.load(Ordering::Acquire).is_null() {
        // A thread belongs to one pool for ever.
        NO_MAIN_POOL.store(true, Ordering::Relaxed);
    }
    STATE.store(Box::into_raw(Box::new(new_state(count)?)), Ordering::Release);
    Ok(())
}

/// The number of threads in use.
#[pyfunction]
pub fn threads() -> PyResult<usize> {
    Ok(state()?.pool.current_num_threads())
}

/// Computes all that is computed once.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    // Not by threads of a pool, which a child does not have.
    py.detach(|| {
        for model in BuiltIn::ALL {
            model.model(Channels::Grey);
            model.model(Channels::Rgb);
        }
        if let Ok(image) = Image::zeros(1, 64, 64) {
            let _ = state().map(|state| state.pool.install(|| NoiseModel::estimate(&image, 1.0)));
        }
    });
}

/// Forgets the parent's threads.
#[pyfunction]
pub fn after_fork() {
    NO_MAIN_POOL.store(true, Ordering::Relaxed);
    STATE.store(std::ptr::null_mut(), Ordering::Release);
}

/// Finds out which thread is the main one, and makes forks safe, where there are any.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let threading = module.py().import("threading")?;
    if threading.call_method0("current_thread")?.is(threading.call_method0("main_thread")?) {
        let _ = MAIN_THREAD.set(std::thread::current().id());
    }
    let os = module.py().import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let hooks = pyo3::types::PyDict::new(module.py());
    hooks.set_item("before", module.getattr("before_fork")?)?;
    hooks.set_item("after_in_child", module.getattr("after_fork")?)?;
    os.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}
