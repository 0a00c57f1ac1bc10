# SPDX-License-Identifier: MIT
# rustc: compiles a program with generics and threads (the compiler brings a jemalloc of its own, its linker does not), runs it.
# needs: rustc
cat > work.rs <<'END'
use std::collections::{BTreeMap, HashMap};
use std::thread;
fn work(seed: u64) -> u64 {
    let mut x = seed; let mut map: BTreeMap<u64, Vec<u8>> = BTreeMap::new(); let mut words: HashMap<String, usize> = HashMap::new();
    for i in 0..100_000u64 { x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        map.insert(x >> 50, vec![i as u8; (x >> 33) as usize % 700]); *words.entry(format!("w{}", x >> 52)).or_default() += 1; }
    map.values().map(|v| v.len() as u64 * (*v.first().unwrap_or(&1) as u64)).sum::<u64>() + words.len() as u64
}
fn main() {
    let handles: Vec<_> = (0..6).map(|s| thread::spawn(move || work(s))).collect();
    for h in handles { println!("{}", h.join().unwrap()); }
}
END
rustc -O work.rs -o work
./work
