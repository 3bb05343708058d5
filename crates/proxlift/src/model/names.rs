//! JSON in which no object names anything twice: which of the two would count?

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::{collections::HashSet, fmt};

/// Any JSON value without a name that stands twice.
pub(super) struct NamedOnce;

impl<'de> Deserialize<'de> for NamedOnce {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Names)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = NamedOnce;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedOnce, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<NamedOnce>()?;
            if names.contains(&name) {
                return Err(A::Error::custom(format_args!("the name {name:?} stands twice")));
            }
            names.insert(name);
        }
        Ok(NamedOnce)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<NamedOnce, A::Error> {
        while values.next_element::<NamedOnce>()?.is_some() {}
        Ok(NamedOnce)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<NamedOnce, E> {
        Ok(NamedOnce)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<NamedOnce, E> {
        Ok(NamedOnce)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<NamedOnce, E> {
        Ok(NamedOnce)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<NamedOnce, E> {
        Ok(NamedOnce)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<NamedOnce, E> {
        Ok(NamedOnce)
    }

    fn visit_unit<E: Error>(self) -> Result<NamedOnce, E> {
        Ok(NamedOnce)
    }
}
