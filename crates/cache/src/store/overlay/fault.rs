//! Faults that the simulation injects, to prove that it would find them.

/// Injected fault. Builds other than the tests have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    #[default]
    None,
    /// Deletions refuse all versions of their UID, but no older versions of other UIDs.
    NoFloor,
    /// Deletions refuse versions up to their floor, but no later versions of their UID.
    NoUid,
    /// Older versions replace own writes.
    WritesNotHeld,
    /// Responses at or below the version that the watch has reached are taken in.
    OldResponses,
    /// Lists that start after own writes may return older state.
    StaleLists,
    /// Every complete list removes every entry, even a list older than the entry.
    AnyListWins,
    /// Deletions remain after complete lists that contain the object.
    NoListWins,
    /// The end of a list removes objects that were written after the list started.
    ListsSweepWrites,
    /// An object that no longer matches the selector counts as deleted.
    UnselectedIsGone,
    /// A new split into watches drops own writes and deletions.
    SplitForgets,
    /// A write that removes the last finalizer leaves the object visible.
    EndedStays,
}
