//! Units of measurement.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::work::native::tools::arithmetic::format_number;

/// The quantity of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Length,
    Area,
    Volume,
    Mass,
    Time,
    Speed,
    Data,
    Energy,
    Temperature,
}

/// A unit: its names, the first for display; its quantity; its size in the quantity's base unit; for
/// temperatures, its zero in the base unit.
type Unit = (&'static [&'static str], Quantity, f64, f64);

const UNITS: &[Unit] = {
    use Quantity::*;
    &[
        (&["mm", "millimetre", "millimeter"], Length, 0.001, 0.0),
        (&["cm", "centimetre", "centimeter"], Length, 0.01, 0.0),
        (&["m", "metre", "meter"], Length, 1.0, 0.0),
        (&["km", "kilometre", "kilometer"], Length, 1_000.0, 0.0),
        (&["in", "inch", "inches", "\""], Length, 0.0254, 0.0),
        (&["ft", "foot", "feet"], Length, 0.3048, 0.0),
        (&["yd", "yard"], Length, 0.9144, 0.0),
        (&["mi", "mile"], Length, 1_609.344, 0.0),
        (&["nmi", "nautical mile"], Length, 1_852.0, 0.0),
        (&["m²", "m2", "square metre", "square meter", "sqm"], Area, 1.0, 0.0),
        (&["km²", "km2", "square kilometre", "square kilometer"], Area, 1e6, 0.0),
        (&["ha", "hectare"], Area, 1e4, 0.0),
        (&["ft²", "ft2", "square foot", "square feet", "sqft"], Area, 0.092_903_04, 0.0),
        (&["acre"], Area, 4_046.856_422_4, 0.0),
        (&["ml", "millilitre", "milliliter"], Volume, 0.001, 0.0),
        (&["l", "litre", "liter"], Volume, 1.0, 0.0),
        (&["m³", "m3", "cubic metre", "cubic meter"], Volume, 1_000.0, 0.0),
        (&["tsp", "teaspoon"], Volume, 0.004_928_921_593_75, 0.0),
        (&["tbsp", "tablespoon"], Volume, 0.014_786_764_781_25, 0.0),
        (&["US fl oz", "fl oz", "fluid ounce"], Volume, 0.029_573_529_562_5, 0.0),
        (&["US cup", "cup"], Volume, 0.236_588_236_5, 0.0),
        (&["US pint", "pint", "pt"], Volume, 0.473_176_473, 0.0),
        (&["US gal", "gal", "gallon", "us gallon"], Volume, 3.785_411_784, 0.0),
        (&["imperial gal", "imperial gallon"], Volume, 4.546_09, 0.0),
        (&["mg", "milligram"], Mass, 1e-6, 0.0),
        (&["g", "gram"], Mass, 0.001, 0.0),
        (&["kg", "kilogram", "kilo"], Mass, 1.0, 0.0),
        (&["t", "tonne", "metric ton"], Mass, 1_000.0, 0.0),
        (&["oz", "ounce"], Mass, 0.028_349_523_125, 0.0),
        (&["lb", "lbs", "pound"], Mass, 0.453_592_37, 0.0),
        (&["st", "stone"], Mass, 6.350_293_18, 0.0),
        (&["ms", "millisecond"], Time, 0.001, 0.0),
        (&["s", "sec", "second"], Time, 1.0, 0.0),
        (&["min", "minute"], Time, 60.0, 0.0),
        (&["h", "hr", "hour"], Time, 3_600.0, 0.0),
        (&["d", "day"], Time, 86_400.0, 0.0),
        (&["week", "wk"], Time, 604_800.0, 0.0),
        (&["m/s", "metres per second", "meters per second"], Speed, 1.0, 0.0),
        (&["km/h", "kmh", "kph"], Speed, 1.0 / 3.6, 0.0),
        (&["mph", "miles per hour"], Speed, 0.447_04, 0.0),
        (&["kn", "knot"], Speed, 1_852.0 / 3_600.0, 0.0),
        (&["B", "byte"], Data, 1.0, 0.0),
        (&["kB", "kilobyte"], Data, 1e3, 0.0),
        (&["MB", "megabyte"], Data, 1e6, 0.0),
        (&["GB", "gigabyte"], Data, 1e9, 0.0),
        (&["TB", "terabyte"], Data, 1e12, 0.0),
        (&["KiB", "kibibyte"], Data, 1_024.0, 0.0),
        (&["MiB", "mebibyte"], Data, 1_048_576.0, 0.0),
        (&["GiB", "gibibyte"], Data, 1_073_741_824.0, 0.0),
        (&["J", "joule"], Energy, 1.0, 0.0),
        (&["kJ", "kilojoule"], Energy, 1e3, 0.0),
        (&["kcal", "kilocalorie", "calorie"], Energy, 4_184.0, 0.0),
        (&["kWh", "kilowatt hour"], Energy, 3.6e6, 0.0),
        (&["K", "kelvin"], Temperature, 1.0, 0.0),
        (&["°C", "c", "celsius", "degrees celsius"], Temperature, 1.0, 273.15),
        (&["°F", "f", "fahrenheit", "degrees fahrenheit"], Temperature, 5.0 / 9.0, 459.67 * 5.0 / 9.0),
    ]
};

/// Converts `value` from the unit `from` into the unit `to`.
pub(super) fn convert_units(args: &Value) -> ToolResult {
    let text = |name| args.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(value) = args.get("value").and_then(Value::as_f64) else {
        return ToolResult::error("value: expected a number.");
    };
    let (from, to) = match (find(text("from")), find(text("to"))) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(wrong), _) | (_, Err(wrong)) => return ToolResult::error(wrong),
    };
    let ((from_names, from_quantity, from_size, from_zero), (to_names, to_quantity, to_size, to_zero)) =
        (from, to);
    let name = |names: &[&'static str]| names.first().copied().unwrap_or_default();
    if from_quantity != to_quantity {
        return ToolResult::error(format!(
            "{} is a unit of {}, {} of {}: there is no conversion.",
            name(from_names),
            noun(*from_quantity),
            name(to_names),
            noun(*to_quantity)
        ));
    }
    let base = value * from_size + from_zero;
    if *from_quantity == Quantity::Temperature && base < -1e-9 {
        return ToolResult::error("That is below absolute zero.");
    }
    let result = format_number(round((base - to_zero) / to_size));
    ToolResult::success(format!(
        "{} {} = {result} {}",
        format_number(value),
        name(from_names),
        name(to_names)
    ))
}

/// Ten significant digits, because factors and zeros are not exact in binary.
fn round(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

fn noun(quantity: Quantity) -> String {
    format!("{quantity:?}").to_lowercase()
}

/// Finds a unit by exact name first, because `MB` is not `mb`; then ignoring case, then without a plural `s`.
fn find(name: &str) -> Result<&'static Unit, String> {
    let name = name.trim();
    let lower = name.to_lowercase();
    let singular = lower.strip_suffix('s').filter(|rest| rest.len() > 2).unwrap_or(&lower);
    let by =
        |fits: &dyn Fn(&str) -> bool| UNITS.iter().find(|(names, ..)| names.iter().any(|known| fits(known)));
    by(&|known| known == name)
        .or_else(|| by(&|known| known.to_lowercase() == lower))
        .or_else(|| by(&|known| known.to_lowercase() == singular))
        .ok_or_else(|| {
            let known: Vec<&str> = UNITS.iter().filter_map(|(names, ..)| names.first().copied()).collect();
            format!("\"{name}\" is not a unit I know. Known: {}.", known.join(", "))
        })
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    fn told(value: f64, from: &str, to: &str) -> String {
        convert_units(&json!({ "value": value, "from": from, "to": to })).text()
    }

    #[test]
    fn converts() {
        let cases = [
            (1.0, "mile", "km", "1 mi = 1.609344 km"),
            (5.0, "Feet", "metres", "5 ft = 1.524 m"),
            (100.0, "°C", "fahrenheit", "100 °C = 212 °F"),
            (-40.0, "F", "C", "-40 °F = -40 °C"),
            (0.0, "celsius", "K", "0 °C = 273.15 K"),
            (10.0, "lbs", "kg", "10 lb = 4.5359237 kg"),
            (1.0, "GiB", "MB", "1 GiB = 1073.741824 MB"),
            (100.0, "km/h", "mph", "100 km/h = 62.13711922 mph"),
            (3.0, "hours", "min", "3 h = 180 min"),
            (2.0, "cups", "ml", "2 US cup = 473.176473 ml"),
            (1.0, "m", "m", "1 m = 1 m"),
        ];
        for (value, from, to, expected) in cases {
            assert_eq!(told(value, from, to), expected);
        }
    }

    #[test]
    fn says_what_does_not_fit() {
        assert_eq!(told(1.0, "kg", "m"), "kg is a unit of mass, m of length: there is no conversion.");
        assert!(told(1.0, "furlong", "m").starts_with("\"furlong\" is not a unit I know. Known: mm, cm, "));
        assert_eq!(told(-300.0, "C", "K"), "That is below absolute zero.");
        assert!(convert_units(&json!({ "from": "m", "to": "m" })).error.is_some());
    }

    #[test]
    fn no_name_stands_for_two_units() {
        let names: Vec<&str> = UNITS.iter().flat_map(|(names, ..)| names.iter().copied()).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
