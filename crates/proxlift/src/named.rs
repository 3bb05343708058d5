//! Enums whose variants have names for people: the same in flags, files and languages, each with a line of help.
//!
//! ```
//! use proxlift::named::Named;
//! use proxlift::network::Unrolling;
//!
//! assert_eq!(Unrolling::Inertial.to_string(), "inertial");
//! let older: Unrolling = "strongly-convex".parse()?;
//! assert_eq!(older, Unrolling::ChambollePockAccelerated);
//! assert!(Unrolling::names().iter().all(|name| !name.help().is_empty()));
//! # Ok::<(), proxlift::Error>(())
//! ```

use crate::Result;

/// How people call a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its name.
    pub name: &'static str,
    /// Names that it had before, which are still understood.
    pub aliases: &'static [&'static str],
    pub(crate) doc: &'static [&'static str],
}

impl Name {
    /// What it means: the first paragraph of its documentation.
    pub fn help(&self) -> String {
        first_paragraph(self.doc)
    }
}

/// The first paragraph of documentation, in one line and without its full stop.
pub(crate) fn first_paragraph(doc: &[&str]) -> String {
    let lines = doc.iter().map(|line| line.trim()).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").trim_end_matches('.').to_string()
}

/// An enum of which every variant has a name.
pub trait Named: Sized + Copy + 'static {
    /// What it is: `metric`.
    const WHAT: &'static str;
    /// All variants; the first is the default.
    const ALL: &'static [Self];

    /// The names of all variants, in their order.
    fn names() -> &'static [Name];
}

/// The variant that is, or was, called so.
pub fn from_name<T: Named>(given: &str) -> Result<T> {
    let called = |name: &Name| name.name == given || name.aliases.contains(&given);
    T::names().iter().position(called).map(|i| T::ALL[i]).ok_or_else(|| {
        let names: Vec<&str> = T::names().iter().map(|name| name.name).collect();
        invalid!("`{given}` is no {}: it is one of {}", T::WHAT, names.join(", "))
    })
}

/// Declares an enum with a name, older names and a help text for each variant.
macro_rules! named {
    (
        $(#[doc = $about:literal])+
        pub enum $enum:ident ($what:literal) {
            $($(#[doc = $doc:literal])+ $variant:ident = $name:literal $(| $alias:literal)*,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $enum {
            $($(#[doc = $doc])+ #[serde(rename = $name $(, alias = $alias)*)] $variant,)+
        }

        impl $crate::named::Named for $enum {
            const WHAT: &'static str = $what;
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn names() -> &'static [$crate::named::Name] {
                &[$($crate::named::Name { name: $name, aliases: &[$($alias),*], doc: &[$($doc),+] }),+]
            }
        }

        impl Default for $enum {
            fn default() -> Self {
                <Self as $crate::named::Named>::ALL[0]
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $name),+ })
            }
        }

        impl std::str::FromStr for $enum {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                $crate::named::from_name(name)
            }
        }
    };
}
pub(crate) use named;
