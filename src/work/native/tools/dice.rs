//! Dice.

use serde_json::Value;

use crate::definitions::message::ToolResult;

const DICE: u32 = 100;
const SIDES: u32 = 1_000;

/// Rolls `dice`, such as `d20`, `2d6` or `3d8+2`. `random`: the call's random bytes; the same bytes give the
/// same roll.
pub(super) fn roll_dice(args: &Value, random: [u8; 16]) -> ToolResult {
    let text = args.get("dice").and_then(Value::as_str).unwrap_or("1d6");
    let Some(Throw { count, sides, plus }) = parse(text) else {
        return ToolResult::error(format!("\"{text}\" is not a throw; write it like 2d6 or 1d20+3."));
    };
    if !(1..=DICE).contains(&count) || !(2..=SIDES).contains(&sides) {
        return ToolResult::error(format!("At most {DICE} dice with 2 to {SIDES} sides."));
    }
    let mut source = Source(u128::from_le_bytes(random));
    let rolls: Vec<u32> = (0..count).map(|_| source.below(sides) + 1).collect();
    let total = rolls.iter().map(|roll| i64::from(*roll)).sum::<i64>() + plus;
    let mut sum = rolls.iter().map(u32::to_string).collect::<Vec<_>>().join(" + ");
    if plus != 0 {
        sum.push_str(&format!(" {} {}", if plus < 0 { '-' } else { '+' }, plus.abs()));
    }
    let equation = if count == 1 && plus == 0 { sum } else { format!("{sum} = {total}") };
    ToolResult::success(format!("{}: {equation}", text.trim()))
}

struct Throw {
    count: u32,
    sides: u32,
    plus: i64,
}

fn parse(text: &str) -> Option<Throw> {
    let text: String = text.to_ascii_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
    let (count, rest) = text.split_once('d')?;
    let at = rest.find(['+', '-']).unwrap_or(rest.len());
    let (sides, plus) = rest.split_at_checked(at)?;
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten()
    };
    let plus = match plus.split_at_checked(1) {
        Some(("-", number_text)) => -i64::from(number(number_text)?),
        Some((_, number_text)) => i64::from(number(number_text)?),
        None => 0,
    };
    Some(Throw { count: if count.is_empty() { 1 } else { number(count)? }, sides: number(sides)?, plus })
}

/// Random numbers: SplitMix64 over both halves of the bytes.
struct Source(u128);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let mut z = (self.0 ^ (self.0 >> 64)) as u64;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A uniform number below `n`. Draws that would cause a bias are repeated.
    fn below(&mut self, n: u32) -> u32 {
        let n = u64::from(n.max(1));
        let fair = u64::MAX - u64::MAX % n;
        loop {
            let drawn = self.next();
            if drawn < fair {
                return (drawn % n) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn rolls_within_the_sides_and_adds_up() {
        for seed in 0..200u8 {
            let text = roll_dice(&json!({ "dice": "3d6 + 2" }), [seed; 16]).text();
            let (rolls, total) = text.strip_prefix("3d6 + 2: ").unwrap().split_once(" = ").unwrap();
            let numbers: Vec<i64> = rolls.split(" + ").map(|n| n.parse().unwrap()).collect();
            assert_eq!((numbers.len(), numbers[3]), (4, 2));
            assert!(numbers[..3].iter().all(|n| (1..=6).contains(n)), "{text}");
            assert_eq!(numbers.iter().sum::<i64>().to_string(), total);
        }
    }

    #[test]
    fn every_side_comes_up_about_as_often() {
        let mut counts = [0; 6];
        for seed in 0..6_000u128 {
            let text = roll_dice(&json!({}), seed.to_le_bytes()).text();
            counts[text.strip_prefix("1d6: ").unwrap().parse::<usize>().unwrap() - 1] += 1;
        }
        assert!(counts.iter().all(|count| (850..=1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_same_bytes_roll_the_same() {
        let roll = |seed| roll_dice(&json!({ "dice": "10d100" }), [seed; 16]).text();
        assert_eq!(roll(7), roll(7));
        assert_ne!(roll(7), roll(8));
    }

    #[test]
    fn forms_of_a_throw() {
        for (dice, start) in [("d20", "d20: "), ("1D6-1", "1D6-1: "), (" 2d6 ", "2d6: ")] {
            let text = roll_dice(&json!({ "dice": dice }), [1; 16]).text();
            assert!(text.starts_with(start), "{text}");
        }
        for wrong in
            ["", "6", "2x6", "0d6", "101d6", "1d1", "1d1001", "d", "2d6+", "-1d6", "1d6+x", "99999999999d6"]
        {
            assert!(roll_dice(&json!({ "dice": wrong }), [1; 16]).error.is_some(), "{wrong}");
        }
    }
}
