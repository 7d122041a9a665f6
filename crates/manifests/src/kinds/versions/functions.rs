//! Conversions of fields in JSON, from the conversions of Rust types.

use opkit_apimachinery::conversion::{Conversion, Fields, Functions, Notes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Version;

/// Type of a field of an object.
pub trait Field: Serialize + DeserializeOwned + Clone {}

impl<T: Serialize + DeserializeOwned + Clone> Field for T {}

type Result<T> = std::result::Result<T, serde_json::Error>;

/// Returns the conversions of a version with its own spec, and with the status of the hub.
pub const fn of_spec<S>() -> Functions
where
    S: Version<Hub: Field> + Field,
{
    Functions {
        fields: &["spec"],
        to_hub: |fields, is_reversed| {
            let mut conversion = Conversion::default();
            to_hub::<S>("spec", fields, is_reversed, &mut conversion)?;
            Ok(conversion)
        },
        from_hub: |fields, is_reversed| {
            let mut conversion = Conversion::default();
            from_hub::<S>("spec", fields, is_reversed, &mut conversion)?;
            Ok(conversion)
        },
        notes: |_| Some(S::notes()),
    }
}

/// Returns the conversions of a version with its own spec and status.
pub const fn of_spec_and_status<S, T>() -> Functions
where
    S: Version<Hub: Field> + Field,
    T: Version<Hub: Field> + Field,
{
    Functions {
        fields: &["spec", "status"],
        to_hub: |fields, is_reversed| {
            let mut conversion = Conversion::default();
            to_hub::<S>("spec", fields, is_reversed, &mut conversion)?;
            if fields.contains_key("status") {
                to_hub::<T>("status", fields, is_reversed, &mut conversion)?;
            }
            Ok(conversion)
        },
        from_hub: |fields, is_reversed| {
            let mut conversion = Conversion::default();
            from_hub::<S>("spec", fields, is_reversed, &mut conversion)?;
            if fields.contains_key("status") {
                from_hub::<T>("status", fields, is_reversed, &mut conversion)?;
            }
            Ok(conversion)
        },
        notes: |field| match field {
            "status" => Some(T::notes()),
            _ => Some(S::notes()),
        },
    }
}

/// Returns the conversions of a version that converts whole objects.
pub const fn of_object<K>() -> Functions
where
    K: Version<Hub: Field> + Field,
{
    Functions {
        fields: &["metadata", "spec", "status"],
        to_hub: |fields, is_reversed| {
            let object: K = serde_json::from_value(Value::Object(fields.clone()))?;
            let hub = object.to_hub();
            let reversed = match is_reversed {
                true => object_fields(&K::from_hub(hub.clone()))?,
                false => Fields::new(),
            };
            let fields = object_fields(&hub)?;
            Ok(Conversion { fields, reversed })
        },
        from_hub: |fields, is_reversed| {
            let hub: K::Hub = serde_json::from_value(Value::Object(fields.clone()))?;
            let object = K::from_hub(hub);
            let reversed = match is_reversed {
                true => object_fields(&object.clone().to_hub())?,
                false => Fields::new(),
            };
            let fields = object_fields(&object)?;
            Ok(Conversion { fields, reversed })
        },
        notes: |_| None::<Notes>,
    }
}

fn to_hub<T: Version<Hub: Field> + Field>(
    name: &str,
    fields: &Fields,
    is_reversed: bool,
    conversion: &mut Conversion,
) -> Result<()> {
    let value: T = read(fields, name)?;
    let hub = value.to_hub();
    if is_reversed {
        let reversed = serde_json::to_value(T::from_hub(hub.clone()))?;
        conversion.reversed.insert(name.to_owned(), reversed);
    }
    let hub = serde_json::to_value(hub)?;
    conversion.fields.insert(name.to_owned(), hub);
    Ok(())
}

fn from_hub<T: Version<Hub: Field> + Field>(
    name: &str,
    fields: &Fields,
    is_reversed: bool,
    conversion: &mut Conversion,
) -> Result<()> {
    let hub: T::Hub = read(fields, name)?;
    let value = T::from_hub(hub);
    if is_reversed {
        let reversed = serde_json::to_value(value.clone().to_hub())?;
        conversion.reversed.insert(name.to_owned(), reversed);
    }
    let value = serde_json::to_value(value)?;
    conversion.fields.insert(name.to_owned(), value);
    Ok(())
}

fn read<T: DeserializeOwned>(fields: &Fields, name: &str) -> Result<T> {
    let value = fields.get(name).unwrap_or(&Value::Null);
    T::deserialize(value).map_err(|error| {
        <serde_json::Error as serde::de::Error>::custom(format!("{name}: {error}"))
    })
}

/// Returns the fields of an object that a conversion may change.
fn object_fields(object: &impl Serialize) -> Result<Fields> {
    let Value::Object(mut fields) = serde_json::to_value(object)? else {
        return Ok(Fields::new());
    };
    fields.retain(|name, _| ["metadata", "spec", "status"].contains(&name.as_str()));
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        metadata.retain(|name, _| {
            ["name", "namespace", "labels", "annotations"].contains(&name.as_str())
        });
    }
    Ok(fields)
}
