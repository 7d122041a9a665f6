use super::*;

#[test]
fn a_bound_belongs_to_its_bucket() {
    for (index, bound) in BOUNDS.into_iter().enumerate() {
        for (nanos, expected) in [(bound - 1, index), (bound, index), (bound + 1, index + 1)] {
            let mut histogram = Histogram::default();
            histogram.observe(nanos);
            let found = histogram.buckets.iter().position(|count| *count == 1);
            assert_eq!(found, Some(expected), "{nanos}");
        }
    }
    let mut histogram = Histogram::default();
    for nanos in [0, 1, u64::MAX] {
        histogram.observe(nanos);
    }
    assert_eq!((histogram.buckets[0], histogram.buckets[12]), (2, 1));
    assert_eq!(histogram.count(), 3);
}
