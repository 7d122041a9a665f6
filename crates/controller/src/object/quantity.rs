//! Conversion of API quantities to numbers.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use opkit_apimachinery::quantity::{Quantity, QuantityError};

/// Conversions between the quantity of `k8s_openapi`, which is text, and [`Quantity`], which
/// supports comparison and arithmetic.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
/// use opkit::{Quantity, QuantityExt};
///
/// let (asked, present) = (ApiQuantity("10Gi".into()), ApiQuantity("8192Mi".into()));
/// assert!(asked.to_number()? >= present.to_number()?); // not "10Gi" < "8192Mi", as texts
/// let more = ApiQuantity::from_number(asked.to_number()? * 2);
/// assert_eq!(more.0, "20Gi");
///
/// // A quarter of a CPU and 64 MiB for each of six workers.
/// let cpu = Quantity::from_milli(250) * 6;
/// assert_eq!((ApiQuantity::from_number(cpu).0.as_str(), cpu.milli_value()), ("1500m", Some(1500)));
/// let memory = ApiQuantity::from_number(Quantity::from_bytes(64 << 20) * 6);
/// assert_eq!(memory.0, "384Mi");
/// # Ok::<(), opkit_controller::QuantityError>(())
/// ```
pub trait QuantityExt: Sized {
    /// Parses the quantity.
    ///
    /// # Errors
    /// When the text is not a quantity.
    fn to_number(&self) -> Result<Quantity, QuantityError>;

    /// Returns the quantity as text, in Kubernetes' canonical form.
    fn from_number(number: Quantity) -> Self;
}

impl QuantityExt for ApiQuantity {
    fn to_number(&self) -> Result<Quantity, QuantityError> {
        self.0.parse()
    }

    fn from_number(number: Quantity) -> Self {
        Self(number.to_string())
    }
}
