//! Evaluates an enum member as far as its own code and that of its neighbours need it.

use oxc_ast::ast::*;

use super::Eraser;

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    /// Some string. Members with a string value have no reverse mapping.
    Text,
}

impl Eraser<'_> {
    /// The value of an initializer, if its text determines it.
    pub(super) fn value_of(&self, it: &Expression<'_>) -> Option<Value> {
        match it {
            Expression::NumericLiteral(literal) => Some(Value::Number(literal.value)),
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Some(Value::Text),
            Expression::ParenthesizedExpression(it) => self.value_of(&it.expression),
            Expression::TSAsExpression(it) => self.value_of(&it.expression),
            Expression::TSSatisfiesExpression(it) => self.value_of(&it.expression),
            Expression::TSTypeAssertion(it) => self.value_of(&it.expression),
            Expression::TSNonNullExpression(it) => self.value_of(&it.expression),
            Expression::UnaryExpression(it) => {
                let Value::Number(number) = self.value_of(&it.argument)? else { return None };
                unary(it.operator, number).map(Value::Number)
            }
            Expression::BinaryExpression(it) => self.binary(it),
            Expression::Identifier(it) => self.value_of_name(it),
            Expression::StaticMemberExpression(it) => self.value_of_member(&it.object, &it.property.name),
            Expression::ComputedMemberExpression(it) => match &it.expression {
                Expression::StringLiteral(name) => self.value_of_member(&it.object, &name.value),
                _ => None,
            },
            _ => None,
        }
    }

    /// Evaluates a binary expression in a loop: a sum may have thousands of terms, nested on the left.
    fn binary(&self, it: &BinaryExpression<'_>) -> Option<Value> {
        let mut terms = vec![it];
        let mut first = &it.left;
        while let Expression::BinaryExpression(left) = first {
            terms.push(left);
            first = &left.left;
        }
        let mut value = self.value_of(first);
        for term in terms.into_iter().rev() {
            value = match (term.operator, value, self.value_of(&term.right)) {
                (BinaryOperator::Addition, Some(Value::Text), _)
                | (BinaryOperator::Addition, _, Some(Value::Text)) => Some(Value::Text),
                (operator, Some(Value::Number(left)), Some(Value::Number(right))) => {
                    arithmetic(operator, left, right).map(Value::Number)
                }
                _ => None,
            };
        }
        value
    }

    fn value_of_name(&self, it: &IdentifierReference<'_>) -> Option<Value> {
        if let Some(current) = self.current_enum
            && let Some(value) = self.enum_values.get(&(current, it.name.to_string()))
            && self.substitute(it).is_some()
        {
            return Some(*value);
        }
        match self.symbol_of(it) {
            Some(symbol) => self.constants.get(&symbol).copied(),
            None if it.name == "Infinity" => Some(Value::Number(f64::INFINITY)),
            None if it.name == "NaN" => Some(Value::Number(f64::NAN)),
            None => None,
        }
    }

    fn value_of_member(&self, object: &Expression<'_>, name: &str) -> Option<Value> {
        let Expression::Identifier(object) = object else { return None };
        let key = self.catalog.of_variable(self.symbol_of(object)?)?;
        self.enum_values.get(&(key, name.to_owned())).copied()
    }
}

fn unary(operator: UnaryOperator, value: f64) -> Option<f64> {
    match operator {
        UnaryOperator::UnaryPlus => Some(value),
        UnaryOperator::UnaryNegation => Some(-value),
        UnaryOperator::BitwiseNot => Some(f64::from(!to_int32(value))),
        _ => None,
    }
}

fn arithmetic(operator: BinaryOperator, left: f64, right: f64) -> Option<f64> {
    let (left32, right32) = (to_int32(left), to_int32(right));
    let shift = right32 as u32 & 31;
    Some(match operator {
        BinaryOperator::Addition => left + right,
        BinaryOperator::Subtraction => left - right,
        BinaryOperator::Multiplication => left * right,
        BinaryOperator::Division => left / right,
        BinaryOperator::Remainder => left % right,
        BinaryOperator::Exponential if right.is_nan() || (left.abs() == 1.0 && right.is_infinite()) => {
            f64::NAN
        }
        BinaryOperator::Exponential => left.powf(right),
        BinaryOperator::BitwiseOR => f64::from(left32 | right32),
        BinaryOperator::BitwiseAnd => f64::from(left32 & right32),
        BinaryOperator::BitwiseXOR => f64::from(left32 ^ right32),
        BinaryOperator::ShiftLeft => f64::from(left32.wrapping_shl(shift)),
        BinaryOperator::ShiftRight => f64::from(left32.wrapping_shr(shift)),
        BinaryOperator::ShiftRightZeroFill => f64::from((left32 as u32).wrapping_shr(shift)),
        _ => return None,
    })
}

/// ToInt32 of ECMAScript.
fn to_int32(value: f64) -> i32 {
    if !value.is_finite() {
        return 0;
    }
    value.trunc().rem_euclid(4_294_967_296.0) as u32 as i32
}

/// A number as an ECMAScript literal.
pub(super) fn literal(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else {
        format!("{value}")
    }
}
