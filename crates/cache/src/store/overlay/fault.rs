//! Faults that the simulation injects into the informer, to prove that the simulation would find
//! them.

/// Injected fault. Only test builds have faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    #[default]
    None,
    /// A deletion refuses all versions of the deleted UID, but no older versions of other UIDs.
    NoFloor,
    /// A deletion refuses versions up to its floor, but no later versions of the deleted UID.
    NoUid,
    /// Older versions replace the writes of this process.
    WritesNotHeld,
    /// Responses at or below the version that the watch has reached are stored.
    OldResponses,
    /// Lists that start after writes of this process may return older state.
    StaleLists,
    /// Every complete list removes every entry, even an entry that is newer than the list.
    AnyListWins,
    /// Entries of deletions remain after complete lists that contain the object.
    NoListWins,
    /// The end of a list removes objects that were written after the list started.
    ListsSweepWrites,
    /// An object that no longer matches the selector counts as deleted.
    UnselectedIsGone,
    /// A new split of the kind over watches drops the writes and deletions of this process.
    SplitForgets,
    /// A write that removes the last finalizer of a deleted object leaves the object visible.
    EndedStays,
}
