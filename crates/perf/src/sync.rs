//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data is sound at every moment: a thread that panicked leaves it usable.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
