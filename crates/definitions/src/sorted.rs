//! Maps and sets as sorted lists, with the part of the standard library's B-tree interface that is used here.
//!
//! A B-tree costs 7 KB of wasm for each of forty pairs of types. Definitions and the data of a thread in
//! memory are small, are built once and read often; for them a sorted list is as fast.
//!
//! Building from many entries (`collect`, `extend`, JSON) sorts once. A single insertion moves all later
//! entries, so use a map of the standard library for data that clients can grow.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Sorts entries. Of several equal entries the last one remains. Each entry is moved only a few times,
/// whatever the input order.
fn in_order<T>(entries: Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if entries.is_sorted_by(|a, b| compare(a, b).is_lt()) {
        return entries;
    }
    let places = places_in_order(entries.len(), &|a, b| match (entries.get(a), entries.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    let mut entries: Vec<Option<T>> = entries.into_iter().map(Some).collect();
    let mut sorted: Vec<T> = Vec::with_capacity(entries.len());
    for place in places {
        let Some(entry) = entries.get_mut(place).and_then(Option::take) else { continue };
        match sorted.last_mut().filter(|last| compare(last, &entry).is_eq()) {
            Some(last) => *last = entry,
            None => sorted.push(entry),
        }
    }
    sorted
}

/// The positions of this number of entries, in sorted order. Sorting is the larger part of the code, so it is
/// compiled once, not for every type.
fn places_in_order(entries: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..entries).collect();
    places.sort_unstable_by(|a, b| compare(*a, *b).then(a.cmp(b)));
    places
}

/// Counts the entries that an insertion or removal moves, in tests only.
mod moved {
    #[cfg(test)]
    thread_local! {
        pub(super) static ENTRIES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[inline]
    pub(super) fn add(_entries: usize) {
        #[cfg(test)]
        ENTRIES.with(|all| all.set(all.get() + _entries));
    }
}

/// A map sorted by its keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortedMap<K, V>(Vec<(K, V)>);

impl<K, V> SortedMap<K, V> {
    /// An empty map.
    pub const fn new() -> Self {
        SortedMap(Vec::new())
    }

    /// Whether the map is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Keys and values, in the order of the keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.0.iter().map(pair)
    }

    /// Keys and mutable values, in the order of the keys.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.0.iter_mut().map(pair_mut)
    }

    /// The keys.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, in the order of the keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The mutable values, in the order of the keys.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// The keys, by value.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> {
        self.0.into_iter().map(|(key, _)| key)
    }

    /// The values, by value, in the order of the keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.0.into_iter().map(|(_, value)| value)
    }

    /// The smallest key with its value.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.0.first().map(pair)
    }

    /// The largest key with its value.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.0.last().map(pair)
    }

    /// Removes the largest key, and returns it with its value.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        self.0.pop()
    }

    /// Keeps the entries for which `keeps` returns true.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keeps(key, value));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// The position of a key, or the position for its insertion.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        // Fast path: most maps are built in order.
        if self.0.last().is_none_or(|(last, _)| last.borrow() < key) {
            return Err(self.0.len());
        }
        self.0.binary_search_by(|(known, _)| known.borrow().cmp(key))
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// The mutable value of a key.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().and_then(|at| self.0.get_mut(at)).map(|(_, value)| value)
    }

    /// The stored key and its value.
    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().and_then(|at| self.0.get(at)).map(pair)
    }

    /// Whether the map has this key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Sets the value of a key, and returns its old value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => self.0.get_mut(at).map(|(_, had)| std::mem::replace(had, value)),
            Err(at) => {
                moved::add(self.0.len() - at);
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| self.0.remove(at).1)
    }

    /// The mutable value of a key. A missing value is created with `make`.
    pub fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        // Removed and inserted again, so that the compiler knows that the entry exists.
        let (at, entry) = match self.place(&key) {
            Ok(at) => (at, self.0.remove(at)),
            Err(at) => (at, (key, make())),
        };
        &mut self.0.insert_mut(at, entry).1
    }
}

/// Keys and values of a [`SortedMap`].
pub type Iter<'a, K, V> = std::iter::Map<std::slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> (&'a K, &'a V)>;

/// Keys and mutable values of a [`SortedMap`].
pub type IterMut<'a, K, V> =
    std::iter::Map<std::slice::IterMut<'a, (K, V)>, fn(&'a mut (K, V)) -> (&'a K, &'a mut V)>;

fn pair<K, V>((key, value): &(K, V)) -> (&K, &V) {
    (key, value)
}

fn pair_mut<K, V>((key, value): &mut (K, V)) -> (&K, &mut V) {
    (key, value)
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        SortedMap(in_order(entries.into_iter().collect(), |(a, _), (b, _)| a.cmp(b)))
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        *self = std::mem::take(self).into_iter().chain(entries).collect();
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut SortedMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K: Serialize, V: Serialize> Serialize for SortedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for SortedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);
        impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = SortedMap<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<K, V> schemars::JsonSchema for SortedMap<K, V>
where
    std::collections::BTreeMap<K, V>: schemars::JsonSchema,
{
    fn inline_schema() -> bool {
        std::collections::BTreeMap::<K, V>::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::collections::BTreeMap::<K, V>::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        std::collections::BTreeMap::<K, V>::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<K, V>::json_schema(generator)
    }
}

/// A sorted set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortedSet<K>(Vec<K>);

impl<K> SortedSet<K> {
    /// An empty set.
    pub const fn new() -> Self {
        SortedSet(Vec::new())
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of keys.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The keys, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, K> {
        self.0.iter()
    }

    /// Keeps the keys for which `keeps` returns true.
    pub fn retain(&mut self, keeps: impl FnMut(&K) -> bool) {
        self.0.retain(keeps);
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Ord> SortedSet<K> {
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|known| known.borrow().cmp(key))
    }

    /// Whether the set has this key.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Adds a key. Returns whether the key was new.
    pub fn insert(&mut self, key: K) -> bool {
        let Err(at) = self.place(&key) else { return false };
        moved::add(self.0.len() - at);
        self.0.insert(at, key);
        true
    }

    /// Removes a key. Returns whether the set had it.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok_and(|at| {
            self.0.remove(at);
            true
        })
    }
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        SortedSet::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for SortedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<K: Serialize> Serialize for SortedSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<K: Ord> FromIterator<K> for SortedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        SortedSet(in_order(keys.into_iter().collect(), K::cmp))
    }
}

impl<K: Ord> Extend<K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        *self = std::mem::take(self).into_iter().chain(keys).collect();
    }
}

impl<K: Ord, const N: usize> From<[K; N]> for SortedSet<K> {
    fn from(keys: [K; N]) -> Self {
        keys.into_iter().collect()
    }
}

impl<K> IntoIterator for SortedSet<K> {
    type Item = K;
    type IntoIter = std::vec::IntoIter<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, K> IntoIterator for &'a SortedSet<K> {
    type Item = &'a K;
    type IntoIter = std::slice::Iter<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::sorted::{SortedMap, SortedSet};

    /// Pseudorandom numbers.
    fn numbers() -> impl Iterator<Item = u32> {
        std::iter::successors(Some(7_u32), |n| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)))
            .map(|n| n >> 16)
    }

    #[test]
    fn a_map_does_what_a_b_tree_does() {
        let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
        for (step, n) in numbers().take(4000).enumerate() {
            let (key, value) = (format!("{}", n % 97), step);
            match n % 5 {
                0 => assert_eq!(map.remove(key.as_str()), tree.remove(key.as_str())),
                1 => {
                    *map.entry(key.clone(), || 1) += step;
                    *tree.entry(key).or_insert(1) += step;
                }
                2 => assert_eq!(map.get(key.as_str()), tree.get(key.as_str())),
                3 if n % 40 == 3 => assert_eq!(map.pop_last(), tree.pop_last()),
                _ => assert_eq!(map.insert(key.clone(), value), tree.insert(key, value)),
            }
            assert!(map.iter().eq(tree.iter()), "step {step}");
            assert_eq!(map.first_key_value(), tree.first_key_value());
            assert_eq!(map.last_key_value(), tree.last_key_value());
        }
        assert!(map.len() > 50, "{}", map.len());
        map.retain(|_, value| *value % 2 == 0);
        tree.retain(|_, value| *value % 2 == 0);
        assert_eq!(format!("{map:?}"), format!("{tree:?}"));
        assert!(map.into_iter().eq(tree));
    }

    #[test]
    fn many_entries_at_once_are_sorted_once() {
        use std::cell::Cell;

        struct Counted<'a>(u32, &'a Cell<usize>);
        impl PartialEq for Counted<'_> {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }
        impl Eq for Counted<'_> {}
        impl PartialOrd for Counted<'_> {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for Counted<'_> {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.1.set(self.1.get() + 1);
                self.0.cmp(&other.0)
            }
        }

        let entries: Vec<(u32, u32)> = numbers().map(|n| n % 500).zip(0..).take(2000).collect();
        let map: SortedMap<u32, u32> = entries.iter().copied().collect();
        let tree: BTreeMap<u32, u32> = entries.iter().copied().collect();
        assert!(map.iter().eq(&tree), "the last of a key counts");
        let mut extended: SortedMap<u32, u32> = [(7, 0), (999, 1)].into();
        extended.extend(entries.iter().copied());
        let expected: BTreeMap<u32, u32> = [(7, 0), (999, 1)].into_iter().chain(entries).collect();
        assert!(extended.iter().eq(&expected));
        let set: SortedSet<u32> = numbers().map(|n| n % 500).take(2000).collect();
        assert!(set.iter().eq(&numbers().map(|n| n % 500).take(2000).collect::<BTreeSet<_>>()));

        let compared = Cell::new(0);
        let many = 100_000;
        let map: SortedMap<Counted<'_>, ()> = (0..many).rev().map(|n| (Counted(n, &compared), ())).collect();
        assert_eq!(map.len(), many as usize);
        assert!(compared.get() < 40 * many as usize, "{} comparisons", compared.get());
        let json: String = (0..many).rev().map(|n| format!(",\"{n:06}\":0")).collect();
        let map: SortedMap<String, u32> = crate::json::from_str(&format!("{{{}}}", &json[1..])).unwrap();
        let set: SortedSet<String> = map.keys().rev().cloned().collect();
        assert_eq!(set.len(), many as usize);
        assert_eq!(super::moved::ENTRIES.with(std::cell::Cell::get), 0, "no entry makes room for another");
    }

    #[test]
    fn a_set_does_what_a_b_tree_does() {
        let (mut set, mut tree) = (SortedSet::new(), BTreeSet::new());
        for n in numbers().take(2000) {
            let key = n % 61;
            if n % 3 == 0 {
                assert_eq!(set.remove(&key), tree.remove(&key));
            } else {
                assert_eq!(set.insert(key), tree.insert(key));
            }
            assert_eq!(set.contains(&(key / 2)), tree.contains(&(key / 2)));
            assert!(set.iter().eq(tree.iter()));
        }
        assert_eq!(set.len(), tree.len());
    }

    #[test]
    fn a_map_is_read_as_json_in_any_order_and_the_last_of_a_key_counts() {
        let json = r#"{"b":2,"a":1,"c":3,"b":4}"#;
        let map: SortedMap<String, u32> = crate::json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":1,"b":4,"c":3}"#);
        assert_eq!(map, SortedMap::from([("a".into(), 1), ("b".into(), 4), ("c".into(), 3)]));
    }
}
