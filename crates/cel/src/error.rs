//! Errors of compilation and evaluation.

/// An expression that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Syntax or type errors, as cel-go prints them: one block per error, with the source line and
    /// a mark.
    #[error("{0}")]
    Invalid(String),
    /// An error of a constant part of the expression, such as `int('a')`.
    #[error("{0}")]
    Constant(String),
}

/// An expression that has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// An error in the words of cel-go, such as `no such key: x`.
    #[error("{0}")]
    Failed(String),
    /// The evaluation ended because its cost exceeded the budget.
    #[error("operation cancelled: actual cost limit exceeded")]
    BudgetExceeded,
}

impl EvaluationError {
    /// Reports whether the evaluation ended because its cost exceeded the budget.
    pub fn is_budget_exceeded(&self) -> bool {
        matches!(self, Self::BudgetExceeded)
    }
}
