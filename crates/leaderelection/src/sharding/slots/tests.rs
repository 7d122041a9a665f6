use std::time::Duration;

use super::*;

/// Longest time of work in a slot that is to be given away.
const LIMIT: Duration = Duration::from_secs(15);

fn view(owned: &[u32], of: u32) -> SlotView {
    SlotView {
        of,
        owned: owned.iter().copied().collect(),
        draining: BTreeSet::new(),
        ring: 1,
        until: Duration::MAX,
    }
}

fn open() -> Fence {
    let fence = Fence::new();
    fence.open(1, Duration::MAX);
    fence
}

/// Returns slots that a replica serves in its first term.
fn serving(owned: &[u32], of: u32) -> OwnedSlots {
    let slots = OwnedSlots::new(open(), LIMIT);
    slots.publish(Some(1), &view(owned, of), Owners::default());
    serve(&slots);
    slots
}

fn serve(slots: &OwnedSlots) {
    let assignment = slots.subscribe().borrow().clone();
    slots.serve(&assignment);
}

/// Returns the first hash in a slot.
fn in_slot(slot: u64, of: u64) -> u64 {
    slot * (u64::MAX / of + 1)
}

#[test]
fn work_begins_only_in_slots_that_are_served() {
    let slots = OwnedSlots::new(open(), LIMIT);
    assert!(slots.begin(0).is_none());
    slots.publish(Some(1), &view(&[0, 2], 4), Owners::default());
    assert!(slots.begin(0).is_none(), "the caches are not filled yet");
    serve(&slots);
    let served = [0, 1, 2, 3].map(|slot| slots.serves(in_slot(slot, 4)));
    assert_eq!(served, [true, false, true, false]);
    assert!(slots.serves(u64::MAX / 4) && !slots.serves(u64::MAX));
    // A process that was paused does not begin before it knows that its Lease has expired.
    slots.shared.fence.close();
    assert!(slots.begin(0).is_none());
}

#[test]
fn a_slot_is_idle_after_its_last_work_and_its_fence_is_closed_then() {
    let slots = serving(&[0, 1], 4);
    let (first, second) = (slots.begin(0).unwrap(), slots.begin(0).unwrap());
    slots.publish(Some(1), &view(&[1], 4), Owners::default());
    assert!(slots.begin(0).is_none() && slots.begin(in_slot(1, 4)).is_some());
    drop(first);
    assert!(!slots.is_idle(0, 4));
    let fence = second.fence().clone();
    assert_eq!(
        (fence.check(), second.lost().is_cancelled()),
        (Ok(()), false)
    );
    drop(second);
    assert!(slots.is_idle(0, 4) && fence.check().is_err());
}

#[test]
fn a_slot_that_is_kept_after_all_is_another_grant() {
    let slots = serving(&[0], 2);
    let work = slots.begin(0).unwrap();
    slots.publish(Some(1), &view(&[], 2), Owners::default());
    slots.publish(Some(1), &view(&[0], 2), Owners::default());
    serve(&slots);
    let next = slots.begin(0).unwrap();
    assert_ne!(work.grant(), next.grant());
    assert_eq!(
        (work.fence().check(), next.fence().check()),
        (Ok(()), Ok(()))
    );
    assert!(!slots.is_idle(0, 2));
}

#[test]
fn more_slots_do_not_end_work() {
    let slots = serving(&[0, 1], 4);
    let work = slots.begin(0).unwrap();
    // Slot 0 of 4 is slots 0 and 1 of 8.
    slots.publish(Some(1), &view(&[0, 1, 2, 3], 8), Owners::default());
    serve(&slots);
    assert_eq!(slots.begin(0).unwrap().grant(), work.grant());
    // A half of it is given away: the work must end, and the other half goes on.
    slots.publish(Some(1), &view(&[1, 2, 3], 8), Owners::default());
    serve(&slots);
    assert!(slots.begin(0).is_none());
    let kept = slots.begin(in_slot(1, 8)).unwrap();
    assert_ne!(kept.grant(), work.grant());
    assert!(!slots.is_idle(0, 8));
    drop(work);
    assert!(slots.is_idle(0, 8) && kept.fence().check().is_ok());
    // Two slots become one again.
    slots.publish(Some(1), &view(&[1], 4), Owners::default());
    serve(&slots);
    assert!(slots.serves(in_slot(2, 8)) && slots.serves(in_slot(3, 8)));
    assert!(!slots.serves(in_slot(1, 8)));
}

#[test]
fn the_end_of_a_term_ends_all_work() {
    let slots = serving(&[0], 1);
    let work = slots.begin(7).unwrap();
    let assignment = slots.subscribe().borrow().clone();
    slots.publish(None, &view(&[], 0), Owners::default());
    assert!(work.lost().is_cancelled() && work.fence().check().is_err());
    assert!(slots.begin(7).is_none());
    // An assignment of the earlier term has no effect.
    slots.publish(Some(2), &view(&[0], 1), Owners::default());
    slots.serve(&assignment);
    assert!(slots.begin(7).is_none());
    serve(&slots);
    assert!(slots.begin(7).is_some());
}

#[test]
fn the_objects_of_all_replicas_are_estimated_by_the_own_share() {
    let slots = serving(&[0, 1, 2], 8);
    slots.set_objects(300);
    assert_eq!(slots.objects(), 800);
    assert_eq!(OwnedSlots::new(open(), LIMIT).objects(), 0);
}

/// Checks that work that never ends does not keep a slot from another replica.
#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_ended_after_the_limit() {
    let slots = serving(&[0, 1], 2);
    let work = slots.begin(0).unwrap();
    slots.publish(Some(1), &view(&[1], 2), Owners::default());
    assert!(slots.end_late().is_some_and(|time| time <= LIMIT));
    tokio::time::advance(LIMIT / 2).await;
    // The ring is read again, and the limit stays.
    slots.publish(Some(1), &view(&[1], 2), Owners::default());
    assert!(slots.end_late().is_some_and(|time| time <= LIMIT / 2));
    assert!(!work.lost().is_cancelled() && work.fence().check().is_ok());
    tokio::time::advance(LIMIT / 2).await;
    assert_eq!(slots.end_late(), None);
    assert!(work.lost().is_cancelled() && work.fence().check().is_err());
    slots.publish(Some(1), &view(&[1], 2), Owners::default());
    assert!(work.fence().check().is_err());
    assert!(!slots.is_idle(0, 2), "its future is not dropped yet");
    drop(work);
    assert!(slots.is_idle(0, 2));
}

#[tokio::test(start_paused = true)]
async fn work_in_a_slot_that_is_kept_after_all_has_no_limit() {
    let slots = serving(&[0], 2);
    let work = slots.begin(0).unwrap();
    slots.publish(Some(1), &view(&[], 2), Owners::default());
    slots.publish(Some(1), &view(&[0], 2), Owners::default());
    tokio::time::advance(LIMIT * 2).await;
    assert_eq!(slots.end_late(), None);
    assert!(!work.lost().is_cancelled() && work.fence().check().is_ok());
}

#[test]
fn another_ring_ends_all_work() {
    let slots = serving(&[0, 1], 2);
    let (work, mut assignments) = (slots.begin(0).unwrap(), slots.subscribe());
    assignments.borrow_and_update();
    let next = SlotView {
        ring: 2,
        ..view(&[0, 1], 2)
    };
    slots.publish(Some(1), &next, Owners::default());
    assert!(work.lost().is_cancelled() && work.fence().check().is_err());
    assert!(slots.begin(0).is_none());
    assert!(
        assignments.has_changed().unwrap(),
        "the slots are served again"
    );
    assert!(!slots.is_idle(0, 2));
    // The ring cannot be read.
    serve(&slots);
    let work = slots.begin(0).unwrap();
    slots.publish(Some(1), &SlotView::default(), Owners::default());
    assert!(work.lost().is_cancelled());
    assert_eq!(slots.subscribe().borrow().term, None);
}

#[tokio::test(start_paused = true)]
async fn slots_are_lost_when_the_ring_was_not_read_in_time() {
    let slots = OwnedSlots::new(open(), LIMIT);
    let until = |seconds| SlotView {
        until: slots.shared.fence.now() + Duration::from_secs(seconds),
        ..view(&[0], 1)
    };
    slots.publish(Some(1), &until(10), Owners::default());
    serve(&slots);
    let work = slots.begin(7).unwrap();
    tokio::time::advance(Duration::from_secs(8)).await;
    slots.publish(Some(1), &until(10), Owners::default());
    tokio::time::advance(Duration::from_secs(8)).await;
    assert!(slots.begin(7).is_some() && work.fence().check().is_ok());
    // The process was paused, so nothing was published.
    tokio::time::advance(Duration::from_secs(3)).await;
    assert!(slots.begin(7).is_none() && work.fence().check().is_err());
}
