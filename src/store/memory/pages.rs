//! The table `mem_pages`: 256 vectors in a row, with a byte for each number and a scale for each vector. A
//! search compares all of them: it is exact, and finds what was just written.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

/// Vectors in a row. A slot is the page's number times this, plus the place in the page.
const PLACES: usize = 256;
/// Bytes of a bit set of places.
const BITS: usize = PLACES / 8;
/// Bytes of a vector's scale, and of its chunk's number.
const SCALE: usize = 4;
const CHUNK: usize = 8;
/// Bytes before the vectors.
const HEAD: usize = PLACES * (SCALE + CHUNK);

/// `used`: occupied places. `live`: places of chunks that searches may return. `data`: 256 scales, 256 chunk
/// numbers, then the vectors.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_pages (
        page INTEGER PRIMARY KEY, store INTEGER NOT NULL, free INTEGER NOT NULL, used BLOB NOT NULL, live BLOB NOT NULL,
        data BLOB NOT NULL)"],
    drop: "DROP TABLE IF EXISTS mem_pages",
};

/// A vector with a byte for each number.
pub(crate) struct QuantizedVector {
    scale: f32,
    numbers: Vec<i8>,
}

impl QuantizedVector {
    /// Packs a vector of length 1.
    pub(crate) fn of(vector: &[f32]) -> QuantizedVector {
        let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let scale = if largest > 0.0 && largest.is_finite() { largest / 127.0 } else { 1.0 };
        let byte = |x: &f32| (x / scale).round().clamp(-127.0, 127.0) as i8;
        QuantizedVector { scale, numbers: vector.iter().map(byte).collect() }
    }
}

/// The vector of a query, as integers for products with packed ones.
pub(crate) struct Question {
    scale: f32,
    numbers: Vec<i32>,
}

impl Question {
    pub(crate) fn of(vector: &[f32]) -> Question {
        let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        // The sum of 4,096 products of 11 and 7 bits fits into 31 bits.
        let scale = if largest > 0.0 && largest.is_finite() { largest / 2_047.0 } else { 1.0 };
        Question { scale, numbers: vector.iter().map(|x| (x / scale).round() as i32).collect() }
    }

    pub(crate) fn dims(&self) -> usize {
        self.numbers.len()
    }
}

struct Page {
    page: i64,
    used: Vec<u8>,
    live: Vec<u8>,
    data: Vec<u8>,
}

fn bit(bits: &[u8], place: usize) -> bool {
    bits.get(place / 8).is_some_and(|byte| byte & (1 << (place % 8)) != 0)
}

fn set_bit(bits: &mut [u8], place: usize, on: bool) {
    if let Some(byte) = bits.get_mut(place / 8) {
        let mask = 1 << (place % 8);
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
}

fn slot_of(page: i64, place: usize) -> i64 {
    page * PLACES as i64 + place as i64
}

fn place_of(slot: i64) -> (i64, usize) {
    (slot.div_euclid(PLACES as i64), usize::try_from(slot.rem_euclid(PLACES as i64)).unwrap_or_default())
}

fn read(cells: &[Cell]) -> Result<Page> {
    let [page, used, live, data] = cells else {
        return Err(Error::internal("a page of vectors has the wrong number of columns"));
    };
    let bytes = |cell: &Cell| cell.blob().unwrap_or_default().to_vec();
    Ok(Page { page: page.int().unwrap_or_default(), used: bytes(used), live: bytes(live), data: bytes(data) })
}

/// Stores vectors and passes each chunk with its slot to `placed`. `live`: whether searches may return them
/// at once.
pub(crate) fn put(
    sql: &dyn Sql,
    store: i64,
    vectors: &[(i64, QuantizedVector)],
    live: bool,
    mut placed: impl FnMut(i64, i64) -> Result<()>,
) -> Result<()> {
    let dims = vectors.first().map_or(0, |(_, packed)| packed.numbers.len());
    let mut rest = vectors.iter();
    let mut left = rest.len();
    while left > 0 {
        let mut page = with_room(sql, store, dims)?;
        for place in 0..PLACES {
            if bit(&page.used, place) {
                continue;
            }
            let Some((chunk, packed)) = rest.next() else { break };
            left -= 1;
            set_bit(&mut page.used, place, true);
            set_bit(&mut page.live, place, live);
            write(&mut page.data, place, *chunk, packed);
            placed(*chunk, slot_of(page.page, place))?;
        }
        store_page(sql, store, &page)?;
    }
    Ok(())
}

fn write(data: &mut [u8], place: usize, chunk: i64, packed: &QuantizedVector) {
    let dims = packed.numbers.len();
    let mut copy = |at: usize, bytes: &[u8]| {
        if let Some(into) = data.get_mut(at..at + bytes.len()) {
            into.copy_from_slice(bytes);
        }
    };
    copy(place * SCALE, &packed.scale.to_le_bytes());
    copy(PLACES * SCALE + place * CHUNK, &chunk.to_le_bytes());
    let numbers: Vec<u8> = packed.numbers.iter().map(|n| n.to_le_bytes()).map(|[byte]| byte).collect();
    copy(HEAD + place * dims, &numbers);
}

/// A page with free places, possibly a new one.
fn with_room(sql: &dyn Sql, store: i64, dims: usize) -> Result<Page> {
    let mut found = None;
    let statement =
        "SELECT page, used, live, data FROM mem_pages WHERE store = ? AND free > 0 ORDER BY page LIMIT 1";
    sql.each(statement, &[Param::Int(store)], &mut |cells| {
        found = Some(read(cells)?);
        Ok(ControlFlow::Break(()))
    })?;
    if let Some(page) = found {
        return Ok(page);
    }
    let page = integer(sql, "SELECT coalesce(max(page), 0) + 1 FROM mem_pages", &[])?.unwrap_or(1);
    Ok(Page { page, used: vec![0; BITS], live: vec![0; BITS], data: vec![0; HEAD + PLACES * dims] })
}

fn free(page: &Page) -> i64 {
    page.used.iter().map(|byte| i64::from(byte.count_zeros())).sum()
}

fn store_page(sql: &dyn Sql, store: i64, page: &Page) -> Result<()> {
    sql.run(
        "INSERT INTO mem_pages (page, store, free, used, live, data) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (page) DO UPDATE SET free = excluded.free, used = excluded.used, live = excluded.live,
            data = excluded.data",
        &[
            Param::Int(page.page),
            Param::Int(store),
            Param::Int(free(page)),
            Param::Blob(&page.used),
            Param::Blob(&page.live),
            Param::Blob(&page.data),
        ],
    )
}

/// A change of vectors whose chunks change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Searches may return their chunks from now on.
    Found,
    /// Their chunks are deleted.
    Gone,
}

/// Changes the bit sets for these slots.
pub(crate) fn change(sql: &dyn Sql, slots: &[i64], change: Change) -> Result<()> {
    let mut slots: Vec<i64> = slots.to_vec();
    slots.sort_unstable();
    for of_page in slots.chunk_by(|a, b| place_of(*a).0 == place_of(*b).0) {
        let Some((page, _)) = of_page.first().map(|slot| place_of(*slot)) else { continue };
        let mut sets = None;
        sql.each("SELECT used, live FROM mem_pages WHERE page = ?", &[Param::Int(page)], &mut |cells| {
            if let [used, live] = cells {
                sets = Some((
                    used.blob().unwrap_or_default().to_vec(),
                    live.blob().unwrap_or_default().to_vec(),
                ));
            }
            Ok(ControlFlow::Break(()))
        })?;
        let Some((mut used, mut live)) = sets else { continue };
        for slot in of_page {
            let (_, place) = place_of(*slot);
            set_bit(&mut live, place, change == Change::Found);
            set_bit(&mut used, place, change == Change::Found);
        }
        let free: i64 = used.iter().map(|byte| i64::from(byte.count_zeros())).sum();
        sql.run(
            "UPDATE mem_pages SET free = ?, used = ?, live = ? WHERE page = ?",
            &[Param::Int(free), Param::Blob(&used), Param::Blob(&live), Param::Int(page)],
        )?;
    }
    Ok(())
}

pub(super) fn drop_of(sql: &dyn Sql, store: i64) -> Result<()> {
    sql.run("DELETE FROM mem_pages WHERE store = ?", &[Param::Int(store)])
}

/// Bytes of the vectors of a memory.
pub(super) fn bytes(sql: &dyn Sql, store: i64) -> Result<i64> {
    let statement = "SELECT sum(length(data)) FROM mem_pages WHERE store = ?";
    Ok(integer(sql, statement, &[Param::Int(store)])?.unwrap_or_default())
}

/// The chunks whose vectors are nearest to a query's, best first. `allowed`: a sorted list of slots that may
/// match.
pub(crate) fn nearest(
    sql: &dyn Sql,
    store: i64,
    question: &Question,
    most: usize,
    allowed: Option<&[i64]>,
) -> Result<Vec<(i64, f64)>> {
    let dims = question.dims();
    let mut best: Vec<(i64, f32)> = Vec::with_capacity(most + 1);
    let mut least = f32::NEG_INFINITY;
    let statement = "SELECT page, live, data FROM mem_pages WHERE store = ?";
    sql.each(statement, &[Param::Int(store)], &mut |cells| {
        let [page, live, data] = cells else {
            return Err(Error::internal("a page of vectors has the wrong number of columns"));
        };
        let page = page.int().unwrap_or_default();
        let (live, data) = (live.blob().unwrap_or_default(), data.blob().unwrap_or_default());
        let (Some(head), Some(vectors)) = (data.get(..HEAD), data.get(HEAD..)) else {
            return Ok(ControlFlow::Continue(()));
        };
        let (scales, chunks) = head.split_at(PLACES * SCALE);
        let places =
            scales.chunks_exact(SCALE).zip(chunks.chunks_exact(CHUNK)).zip(vectors.chunks_exact(dims.max(1)));
        for (place, ((scale, chunk), vector)) in places.enumerate() {
            if !bit(live, place) {
                continue;
            }
            if allowed.is_some_and(|allowed| allowed.binary_search(&slot_of(page, place)).is_err()) {
                continue;
            }
            let scale = f32::from_le_bytes(scale.try_into().unwrap_or_default());
            let score = dot(&question.numbers, vector) as f32 * scale * question.scale;
            if best.len() < most || score > least {
                let chunk = i64::from_le_bytes(chunk.try_into().unwrap_or_default());
                let at = best.partition_point(|(_, known)| *known >= score);
                best.insert(at, (chunk, score));
                best.truncate(most);
                least = best.last().map_or(least, |(_, score)| *score);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(best.into_iter().map(|(chunk, score)| (chunk, f64::from(score))).collect())
}

fn dot(question: &[i32], vector: &[u8]) -> i32 {
    question.iter().zip(vector).map(|(q, byte)| q * i32::from(byte.cast_signed())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_vector_is_near_itself() {
        let vector = crate::memory::embedding::demo("Refunds are granted within thirty days.");
        let other = crate::memory::embedding::demo("The shop opens at nine on weekdays.");
        let near = |a: &[f32], b: &[f32]| {
            let (question, packed) = (Question::of(a), QuantizedVector::of(b));
            let bytes: Vec<u8> = packed.numbers.iter().map(|n| n.cast_unsigned()).collect();
            dot(&question.numbers, &bytes) as f32 * packed.scale * question.scale
        };
        let exact: f32 = vector.iter().zip(&other).map(|(a, b)| a * b).sum();
        assert!((near(&vector, &vector) - 1.0).abs() < 0.01);
        assert!((near(&vector, &other) - exact).abs() < 0.01);
    }

    #[test]
    fn places_are_found_again() {
        for (page, place) in [(1, 0), (1, 255), (40, 17)] {
            assert_eq!(place_of(slot_of(page, place)), (page, place));
        }
        let mut bits = vec![0_u8; BITS];
        set_bit(&mut bits, 77, true);
        assert!(bit(&bits, 77) && !bit(&bits, 76));
        set_bit(&mut bits, 77, false);
        assert!(!bit(&bits, 77));
    }
}
