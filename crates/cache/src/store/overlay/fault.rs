//! Faults that the simulation builds in, to prove that it would find them.

/// What is done wrong. Other builds than those of the tests have no fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Deletions refuse news of their UID alone, of any version.
    NoFloor,
    /// Deletions refuse news up to their floor alone, of any UID.
    NoUid,
    /// Older news replace own writes.
    WritesNotHeld,
    /// Responses that the watch has passed are taken in.
    OldResponses,
    /// Lists that begin after own writes may be older than these.
    StaleLists,
    /// Every complete list ends every entry, also one that is older.
    AnyListWins,
    /// Deletions outlast complete lists that contain the object.
    NoListWins,
    /// The end of a list takes away what we wrote after it began.
    ListsSweepWrites,
    /// An object that a selector matches no longer counts as gone.
    UnselectedIsGone,
    /// A new split into watches forgets own writes and deletions.
    SplitForgets,
    /// A write that takes the last finalizer leaves the object visible.
    EndedStays,
}
