use opkit_random::Random;

use super::*;

#[test]
fn agrees_with_a_sorted_list() {
    let mut random = Random::new(1);
    let (mut heap, mut list) = (Heap::default(), Vec::<(u64, u32)>::new());
    for _ in 0..20_000 {
        let id = random.below(200) as u32;
        list.retain(|(_, other)| *other != id);
        if random.percent(60) {
            // Keys are distinct, so that there is only one correct order.
            let key = random.below(1_000_000) * 200 + u64::from(id);
            heap.set(id, key);
            list.push((key, id));
        } else {
            heap.remove(id);
        }
        list.sort_unstable();
        assert_eq!(heap.first(), list.first().copied());
        assert_eq!(heap.len(), list.len());
        let shown = heap.smallest(7);
        assert_eq!(shown, list.iter().copied().take(7).collect::<Vec<_>>());
    }
}
