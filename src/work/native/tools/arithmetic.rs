//! Arithmetic, for which models are unreliable.

use serde_json::Value;

use crate::definitions::message::ToolResult;

/// Maximum characters of an expression.
const LENGTH: usize = 1_000;
/// Maximum nesting of brackets, signs and functions.
const DEPTH: usize = 50;

/// Evaluates `expression`: `+ - * / % ^`, brackets, the constants `pi` and `e`, and common functions.
pub(super) fn calculate(args: &Value) -> ToolResult {
    let Some(expression) = args.get("expression").and_then(Value::as_str) else {
        return ToolResult::error("expression: required but missing.");
    };
    match evaluate(expression) {
        Ok(value) => ToolResult::success(format!("{} = {}", expression.trim(), format_number(value))),
        Err(wrong) => ToolResult::error(format!("{wrong} in \"{}\".", brief(expression))),
    }
}

/// Formats a number with 15 significant digits, so that 0.1 + 0.2 is 0.3.
pub(super) fn format_number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let rounded: f64 = format!("{value:.14e}").parse().unwrap_or(value);
    if (1e-6..1e15).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

fn brief(text: &str) -> String {
    text.chars().take(80).collect()
}

fn evaluate(expression: &str) -> Result<f64, String> {
    if expression.chars().count() > LENGTH {
        return Err(format!("more than {LENGTH} characters"));
    }
    let mut parser = Parser { rest: expression, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None if value.is_finite() => Ok(value),
        None => Err("the result is not a finite number".to_owned()),
        Some(c) => Err(format!("unexpected \"{c}\"")),
    }
}

/// Recursive descent: a method for each level of precedence.
struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn eat(&mut self, symbols: &[&str]) -> bool {
        self.rest = self.rest.trim_start();
        match symbols.iter().find_map(|symbol| self.rest.strip_prefix(symbol)) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.eat(&["+"]) {
                value += self.product()?;
            } else if self.eat(&["-", "−", "–"]) {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        loop {
            if self.rest.trim_start().starts_with("**") {
                return Ok(value);
            } else if self.eat(&["*", "×", "·"]) {
                value *= self.signed()?;
            } else if self.eat(&["/", "÷"]) {
                let by = self.signed()?;
                if by == 0.0 {
                    return Err("a division by zero".to_owned());
                }
                value /= by;
            } else if self.eat(&["%"]) {
                let by = self.signed()?;
                if by == 0.0 {
                    return Err("a division by zero".to_owned());
                }
                value = value.rem_euclid(by);
            } else {
                return Ok(value);
            }
        }
    }

    /// `-2^2` is -4, as in mathematics.
    fn signed(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("nested more than {DEPTH} levels deep"));
        }
        let value = if self.eat(&["-", "−", "–"]) {
            -self.signed()?
        } else if self.eat(&["+"]) {
            self.signed()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.operand()?;
        if self.eat(&["^", "**"]) { Ok(base.powf(self.signed()?)) } else { Ok(base) }
    }

    fn operand(&mut self) -> Result<f64, String> {
        match self.peek() {
            Some('(') => self.bracket(),
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.named(),
            Some(c) => Err(format!("unexpected \"{c}\"")),
            None => Err("unexpected end".to_owned()),
        }
    }

    fn bracket(&mut self) -> Result<f64, String> {
        self.eat(&["("]);
        let value = self.sum()?;
        if self.eat(&[")"]) { Ok(value) } else { Err("a missing \")\"".to_owned()) }
    }

    fn take(&mut self, end: usize) -> &str {
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn number(&mut self) -> Result<f64, String> {
        let digits = |text: &str| {
            text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len())
        };
        let mut end = digits(self.rest);
        // An exponent, not the constant e.
        let tail = self.rest.get(end..).unwrap_or_default();
        if let Some(power) = tail.strip_prefix(['e', 'E']) {
            let sign = usize::from(power.starts_with(['+', '-']));
            let length = digits(power.get(sign..).unwrap_or_default());
            if length > 0 {
                end += 1 + sign + length;
            }
        }
        let text = self.take(end).replace('_', "");
        text.parse().map_err(|_| format!("\"{text}\" is not a number"))
    }

    fn named(&mut self) -> Result<f64, String> {
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let name = self.take(end).to_lowercase();
        match name.as_str() {
            "pi" | "π" => return Ok(std::f64::consts::PI),
            "e" => return Ok(std::f64::consts::E),
            _ => {}
        }
        if self.peek() != Some('(') {
            return Err(format!("unknown name \"{name}\""));
        }
        self.eat(&["("]);
        let mut values = vec![self.sum()?];
        while self.eat(&[",", ";"]) {
            values.push(self.sum()?);
        }
        if !self.eat(&[")"]) {
            return Err("a missing \")\"".to_owned());
        }
        call(&name, &values)
    }
}

fn call(name: &str, values: &[f64]) -> Result<f64, String> {
    let value = match (name, values) {
        ("min", values) => values.iter().copied().fold(f64::INFINITY, f64::min),
        ("max", values) => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ("sqrt", [x]) if *x < 0.0 => return Err("the square root of a negative number".to_owned()),
        ("ln" | "log" | "log2" | "log10", [x]) if *x <= 0.0 => {
            return Err("a logarithm of a number that is not positive".to_owned());
        }
        ("sqrt", [x]) => x.sqrt(),
        ("abs", [x]) => x.abs(),
        ("round", [x]) => x.round(),
        ("round", [x, places]) => {
            let scale = 10f64.powf(places.round());
            (x * scale).round() / scale
        }
        ("floor", [x]) => x.floor(),
        ("ceil", [x]) => x.ceil(),
        ("exp", [x]) => x.exp(),
        ("ln", [x]) => x.ln(),
        ("log" | "log10", [x]) => x.log10(),
        ("log2", [x]) => x.log2(),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("tan", [x]) => x.tan(),
        _ => return Err(format!("no function \"{name}\" of {} values", values.len())),
    };
    Ok(value)
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    fn told(expression: &str) -> String {
        calculate(&json!({ "expression": expression })).text()
    }

    #[test]
    fn calculates_as_on_paper() {
        let cases = [
            ("1+1", "2"),
            ("2 + 3 * 4", "14"),
            ("(2 + 3) * 4", "20"),
            ("-2^2", "-4"),
            ("2^-1", "0.5"),
            ("2^3^2", "512"),
            ("2**10", "1024"),
            ("10 - 4 - 3", "3"),
            ("100 / 10 / 2", "5"),
            ("-7 % 3", "2"),
            ("0.1 + 0.2", "0.3"),
            ("1e3 + 2.5e-1", "1000.25"),
            ("1_000 × 3 ÷ 2 − 1", "1499"),
            ("sqrt(16) + max(1, 2, 3) - abs(-1)", "6"),
            ("round(2.345, 2)", "2.35"),
            ("2 * pi", "6.28318530717959"),
            ("1/3", "0.333333333333333"),
            ("10^20", "1e20"),
            ("1 - 1", "0"),
        ];
        for (expression, expected) in cases {
            assert_eq!(told(expression), format!("{expression} = {expected}"));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        let deep = "(".repeat(60);
        let cases = [
            ("", "unexpected end"),
            ("1 +", "unexpected end"),
            ("1 / 0", "a division by zero"),
            ("5 % 0", "a division by zero"),
            ("(1", "a missing \")\""),
            ("1)", "unexpected \")\""),
            ("2e", "unexpected \"e\""),
            ("x + 1", "unknown name \"x\""),
            ("foo(1)", "no function \"foo\" of 1 values"),
            ("1.2.3", "\"1.2.3\" is not a number"),
            ("sqrt(-1)", "the square root of a negative number"),
            ("ln(0)", "a logarithm of a number that is not positive"),
            ("9^9^9^9", "the result is not a finite number"),
            (deep.as_str(), "nested more than 50 levels deep"),
            ("2 $ 3", "unexpected \"$\""),
        ];
        for (expression, expected) in cases {
            let told = told(expression);
            assert!(told.starts_with(expected), "{expression}: {told}");
        }
        assert!(told(&"1+".repeat(600)).starts_with("more than 1000 characters"));
        assert!(calculate(&json!({})).error.is_some());
    }
}
