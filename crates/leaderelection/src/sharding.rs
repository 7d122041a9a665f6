//! Sharding: replicas divide the objects of an operator among them.

mod engine;
mod leases;
mod member;
mod ring;
#[cfg(test)]
mod simulate;
mod slots;

pub use self::member::ShardMember;
pub use self::slots::{OwnedSlots, SlotAssignment, SlotPermit};
