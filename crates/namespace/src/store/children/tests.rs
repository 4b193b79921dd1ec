use super::*;
use std::collections::BTreeSet;

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// The tree orders handles by their own value here.
fn by(key: u32) -> impl Fn(u32) -> Ordering {
    move |entry| entry.cmp(&key)
}

fn check(heap: &Heap, root: u32, model: &BTreeSet<u32>) {
    assert_eq!(count(heap, root) as usize, model.len());
    assert!(iterate(heap, root, 0).eq(model.iter().copied()));
    let middle = model.len() as u32 / 2;
    assert!(iterate(heap, root, middle).eq(model.iter().copied().skip(middle as usize)));
}

#[test]
fn random_inserts_and_removes_agree_with_an_ordered_set() {
    for seed in 0..8 {
        let mut state = seed;
        let mut heap = Heap::new();
        let mut root = NONE;
        let mut model = BTreeSet::new();
        let range = [10, 300, 5_000, 40_000][seed as usize % 4];
        for step in 0..6_000 {
            let key = (next(&mut state) % range) as u32;
            let growing = (step / 1_500) % 2 == 0;
            let insert_it = next(&mut state) % 10 < if growing { 8 } else { 2 };
            if insert_it && model.insert(key) {
                assert_eq!(find(&heap, root, by(key)), None);
                root = insert(&mut heap, root, key, by(key));
            } else if !insert_it && model.remove(&key) {
                root = remove(&mut heap, root, by(key));
            }
            assert_eq!(find(&heap, root, by(key)).is_some(), model.contains(&key));
            let rank = model.range(..=key).count() as u32;
            if step % 50 == 0 {
                assert_eq!(rank_after(&heap, root, by(key)), rank);
            }
        }
        check(&heap, root, &model);
        for key in model.clone() {
            root = remove(&mut heap, root, by(key));
        }
        assert_eq!(root, NONE);
    }
}

#[test]
fn names_in_order_fill_the_leaves() {
    for descending in [false, true] {
        let mut heap = Heap::new();
        let mut root = NONE;
        for n in 0..30_000 {
            let key = if descending { 30_000 - n } else { n };
            root = insert(&mut heap, root, key, by(key));
        }
        check(&heap, root, &(0..30_000).map(|n| if descending { n + 1 } else { n }).collect());
        let bytes_an_entry = heap.bytes() as f64 / 30_000.0;
        assert!(bytes_an_entry < if descending { 12.0 } else { 6.7 }, "{bytes_an_entry}");
        clear(&mut heap, root);
    }
}
